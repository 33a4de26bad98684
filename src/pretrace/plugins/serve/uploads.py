"""What a visitor uploads: taken in as a whole or not at all, and what was seen in it.

`take` (a file) and `take_folder` (several that are one text each) fail with a RequestError, after which nothing is
left. Bytes lie in `incoming/` until they become an entry of `texts/` by one renaming. A zip is read entry by entry and
never past the limits, and names in it become paths inside the upload's own folder (`_places`).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import statistics
import time
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, BinaryIO

from pretrace.corpora import Columns, open_corpus
from pretrace.corpora.columns import USUAL
from pretrace.corpora.documents import DOCUMENTS, SOURCE
from pretrace.corpora.folders import is_about
from pretrace.corpora.formats import ENDINGS, TABLES, file_rows, recognise_format
from pretrace.corpora.opening import choose_text, resolve_source
from pretrace.corpora.packing import HEAD, encoding_of, without_packing
from pretrace.corpora.packing import ending_of as reader_of
from pretrace.corpora.packing import open_unpacked as unpacked_file
from pretrace.corpora.reading import EveryColumn, TextReading
from pretrace.errors import PretraceError, TextsError
from pretrace.plugins.serve.settings import Limits
from pretrace.plugins.serve.workspace import RequestError, Workspace, fresh, record_in, save, slug
from pretrace.results.atomic import explained
from pretrace.results.wording import say
from pretrace.types import Situation
from pretrace.verdicts.advise import Names, look

TAKEN = say("serve.taken")
OF_A_FOLDER = (".txt", *DOCUMENTS)
"""Files that are one text each in a folder or a zip."""
_BINARY = (".parquet", ".arrow", ".docx", ".pdf", ".epub")
"""No plain text: their readers say what is wrong with one."""
_LONGEST_PART = 200
_PIECE = 1 << 20
_LONGEST_NAME = 200
_LONGEST_SENTENCE = 600


@dataclass(frozen=True, slots=True)
class Upload:
    """One upload: `path` is the file or folder of texts, relative to the workspace; `name` what the visitor called it,
    `size` and `sha256` those of what was sent (of a folder that of all hashes), `at` the time in seconds since 1970,
    `left_out` the files of a folder or zip that are no texts."""

    id: str
    name: str
    path: str
    size: int
    sha256: str
    at: float
    files: int = 1
    left_out: int = 0


def take(
    workspace: Workspace, name: str, stream: BinaryIO, limits: Limits | None = None, most: int | None = None
) -> Upload:
    """The upload, kept with what was seen in it, up to `most` bytes of workspace; RequestError, and nothing is kept."""
    limits = limits or Limits()
    name = PurePosixPath(name.replace("\\", "/")).name.strip()
    ending = ending_of(name)
    stem = name.removesuffix(ending)[:_LONGEST_NAME]
    name = f"{stem}{ending}"
    with _entry(workspace, stem, limits, most) as (folder, left):
        file = folder / f"{slug(stem)}{ending}"
        sent = _copied(stream, file)
        if not sent[0]:
            raise RequestError(f"{name} is empty: choose a file that holds texts.")
        path, counts, room = file, (1, 0), replace(limits, expanded=min(limits.expanded, left))
        with _readable(file, name, unpacking=True):
            if ending.lower() == ".zip":
                path = folder / slug(stem)
                counts = _unpacked(file, path, name, room)
                file.unlink()
            else:
                check(file, name, room)
        return _kept(path, name, sent, counts, limits)


def take_folder(
    workspace: Workspace,
    name: str,
    files: Mapping[str, BinaryIO],
    limits: Limits | None = None,
    most: int | None = None,
) -> Upload:
    """The upload of a folder, or of several files that are one text each, by their paths; otherwise as `take`."""
    limits = limits or Limits()
    name = " ".join(name.split())[:_LONGEST_NAME]
    with _entry(workspace, name, limits, most) as (folder, _):
        found = _places(list(files), folder / slug(name), name, limits)
        size, digest = 0, hashlib.sha256()
        for path, place in sorted(found.items()):
            one, hashed = _copied(files[path], place)
            size += one
            digest.update(f"{hashed}  {path}\n".encode("utf-8", "replace"))
        counts = len(found), len(files) - len(found)
        return _kept(folder / slug(name), name, (size, digest.hexdigest()), counts, limits)


@contextmanager
def _entry(workspace: Workspace, stem: str, limits: Limits, most: int | None) -> Iterator[tuple[Path, int]]:
    """A folder for an upload that comes in, and the bytes it may have; nothing is left of it after an error."""
    workspace.check_room("texts", limits.kept)
    left = workspace.left(most) if most else limits.expanded
    folder = workspace.room("incoming") / fresh(stem)
    with explained(folder):
        folder.mkdir()
        try:
            yield folder, left
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


@contextmanager
def _readable(path: Path, name: str, *, unpacking: bool = False) -> Iterator[None]:
    """RequestError, with the name that the visitor knows, for what readers of archives, tables and texts raise."""
    try:
        yield
    except RequestError:
        raise
    except PretraceError as error:
        raise RequestError(str(error).replace(str(path), name)[:_LONGEST_SENTENCE], 422) from error
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk, and not the file
            raise
        if unpacking:
            raise RequestError(say("serve.refused.packed", name=name, error=error)) from error
        said = f"{type(error).__name__}: {error}".rstrip(".: ").replace(str(path), name)
        raise RequestError(
            say("serve.refused.unreadable", name=name, found=" ".join(said.split())[:_LONGEST_SENTENCE]), 422
        ) from error


def _kept(path: Path, name: str, sent: tuple[int, str], counts: tuple[int, int], limits: Limits) -> Upload:
    """Look into an upload, whose texts lie at `path`, and move it to the others by one renaming."""
    with _readable(path, name):
        facts = look_into(path, name, "", limits)
    folder = path.parent
    upload = Upload(folder.name, name, f"texts/{folder.name}/{path.name}", *sent, time.time(), *counts)
    save(folder / "facts.json", facts)
    save(folder / "upload.json", upload)
    folder.rename(folder.parent.parent / "texts" / folder.name)
    return upload


def together(names: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Which of the files that were sent at once become a collection together, as places in `names`: those of a folder,
    which their paths begin with, and where one is a document all that are one text each; with what to call it. A file
    by itself has no name but its own, "".

    >>> together(["a.csv", "drafts/1.txt", "drafts/2.txt"])
    [('', [0]), ('drafts', [1, 2])]
    >>> together(["essay.docx", "note.txt"])
    [('essay.docx and 1 more', [0, 1])]
    """
    paths = [PurePosixPath(name.replace("\\", "/")) for name in names]
    loose = [i for i, path in enumerate(paths) if len(path.parts) < 2]
    texts = [i for i in loose if paths[i].suffix.lower() in OF_A_FOLDER]
    if len(texts) < 2 or all(paths[i].suffix.lower() == ".txt" for i in texts):  # a text a line
        texts = []
    folders: dict[str, list[int]] = {}
    for i, path in enumerate(paths):
        if len(path.parts) > 1:
            folders.setdefault(path.parts[0], []).append(i)
    found = [("", [i]) for i in loose if i not in texts] + list(folders.items())
    return found + ([(f"{paths[texts[0]]} and {len(texts) - 1} more", texts)] if texts else [])


def text_in(workspace: Workspace, name: str, stream: BinaryIO, limits: Limits) -> str:
    """The text of a file that a visitor sends to look at; nothing is kept. RequestError where it has none."""
    folder = workspace.room("incoming") / fresh("document")
    with explained(folder):
        try:
            file = folder / "document"
            _copied(stream, file)
            name = name[-_LONGEST_NAME:]
            with _readable(file, name, unpacking=True):
                check(file, name, limits)
            with _readable(file, name):
                reading = TextReading(USUAL, name)
                kind = reader_of(name) if reader_of(name) in DOCUMENTS else SOURCE
                return next(reading.stream(file_rows(file, reading, kind))).text
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def rename(workspace: Workspace, upload: Upload, name: str) -> Upload:
    """The upload under another name; its file stays, and its ending, which a folder has not."""
    folder = workspace.within(upload.path).is_dir() and not upload.name.lower().endswith(".zip")
    ending = "" if folder else ending_of(upload.name)
    stem = " ".join(name.split()).removesuffix(ending).strip()
    if not stem:
        raise RequestError("A collection has a name: write one.", 422)
    made = replace(upload, name=f"{stem[:_LONGEST_NAME]}{ending}")
    save(workspace.room("texts") / upload.id / "upload.json", made)
    return made


def remove(folder: Path) -> None:
    """Delete a folder of the workspace: first out of sight by one renaming, then its files."""
    with explained(folder):
        gone = folder.parent.parent / "incoming" / fresh("deleted")
        folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def sweep(workspace: Workspace) -> None:
    """Delete what a server that was killed had not yet taken in."""
    for place in workspace.room("incoming").iterdir():
        shutil.rmtree(place, ignore_errors=True)


def uploads(workspace: Workspace) -> list[Upload]:
    """All uploads, the latest first."""
    return workspace.records(Upload, "texts")


def upload_of(workspace: Workspace, name: str) -> Upload:
    """The upload of that id; RequestError (404) where there is none."""
    return workspace.record(Upload, "texts", name)


def texts_of(workspace: Workspace, name: str) -> str:
    """The path of the texts of the upload of that id, for a command; RequestError where they could not be read."""
    one = upload_of(workspace, name)
    problem = facts_of(workspace, one).problem
    if problem:
        raise RequestError(f"{one.name} cannot be used: {problem}", 422)
    return str(workspace.within(one.path))


def facts_of(workspace: Workspace, upload: Upload) -> UploadFacts:
    """What was seen in an upload, if need be now; it never fails: what cannot be seen is a `problem`."""
    place = workspace.room("texts") / upload.id / "facts.json"
    try:
        return record_in(UploadFacts, place) or seen(workspace, upload)
    except RequestError as error:
        save(place, found := UploadFacts(problem=str(error)))
        return found


def seen(
    workspace: Workspace, upload: Upload, text_column: str = "", limits: Limits | None = None
) -> UploadFacts:
    """Look into an upload again, at another column, and keep what was seen; RequestError, and nothing changes."""
    path = workspace.within(upload.path)
    if not os.path.lexists(path):
        raise RequestError(f"The file of {upload.name} is not there any more: upload it again.", 404)
    with _readable(path, upload.name):
        found = look_into(path, upload.name, text_column, limits or Limits())
    save(workspace.room("texts") / upload.id / "facts.json", found)
    return found


def _copied(
    stream: IO[bytes], place: Path, check: Callable[[int], None] = lambda size: None, size: int = 0
) -> tuple[int, str]:
    """Copy a stream into a new file; `size` and its bytes, of which `check` is told, and its SHA-256."""
    digest = hashlib.sha256()
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("xb") as file:
        while piece := stream.read(_PIECE):
            size += len(piece)
            check(size)
            digest.update(piece)
            file.write(piece)
    return size, digest.hexdigest()


# What lies in an upload: checked against what its name says, unpacked where it is a zip.


def ending_of(name: str) -> str:
    """The ending of a file that can be taken, as it is written; RequestError for a name of another kind."""
    plain = without_packing(name)
    for ending in ENDINGS:
        if plain.lower().endswith(ending):
            return name[len(plain) - len(ending) :]
    if name.lower().endswith(".zip"):
        return name[-4:]
    raise RequestError(
        say("serve.refused.other_kind", name=name[:100] or "A file without a name", taken=TAKEN)
    )


def check(place: Path, name: str, limits: Limits) -> None:
    """RequestError where a file that should be plain text is none, or a packed one unpacks to too much."""
    with unpacked_file(place) as file:
        head = file.peek(HEAD)[:HEAD]
        kind, size = recognise_format(name, head), 0
        while not file.seekable() and (piece := file.read(_PIECE)):
            size += len(piece)
            _check_size(size, name, limits)
    if kind not in _BINARY and b"\0" in head and encoding_of(head, None) == "utf-8":
        raise RequestError(f"{name} holds no plain text, whatever its ending says: upload {TAKEN}.")


def _check_size(size: int, name: str, limits: Limits) -> None:
    if size > limits.expanded:
        raise RequestError(say("serve.refused.expanded", name=name, most=limits.expanded // 1_000_000), 413)


def _unpacked(archive: Path, folder: Path, name: str, limits: Limits) -> tuple[int, int]:
    """The number of texts of a zip, which lie in `folder` afterwards, and of files that are none."""
    folder.mkdir()
    with zipfile.ZipFile(archive) as packed:
        entries = [one for one in packed.infolist() if not one.is_dir()]
        for one in entries:
            shown = f"{name}: {one.filename[:100]}"
            if one.flag_bits & 1:
                raise RequestError(f"{shown} is locked with a password: make the zip without one.")
            if stat.S_ISLNK(one.external_attr >> 16):
                raise RequestError(f"{shown} is a link and no file: put the file itself into the zip.")
        found = _places([one.filename for one in entries], folder, name, limits)
        size = 0
        for path, place in found.items():
            with packed.open(path) as source:
                size, _ = _copied(source, place, lambda size: _check_size(size, name, limits), size)
    return len(found), sum(not _litter(one.filename) for one in entries) - len(found)


def _places(names: Sequence[str], folder: Path, whole: str, limits: Limits) -> dict[str, Path]:
    """Where the texts among the files of a zip, or of a folder that a visitor calls `whole`, go inside `folder`, by
    name, without files of other kinds. RequestError for none, too many, two of a name, or a name that leaves the
    folder."""
    kept = [name for name in names if not _litter(name)]
    parts = {name: _parts(name, whole, limits) for name in kept}
    above = {one[0] for one in parts.values()} if all(len(one) > 1 for one in parts.values()) else set()
    within = {name: one[1:] if len(above) == 1 else one for name, one in parts.items()}
    of_kind = {name: reader_of(name) for name in within}
    documents = [name for name, kind in of_kind.items() if kind in OF_A_FOLDER]
    tables = [name for name, kind in of_kind.items() if kind in TABLES]
    if tables and all(is_about("/".join(within[name])) for name in documents):
        documents = []  # what tells of the tables is no text beside them
    texts = {name: folder.joinpath(*within[name]) for name in documents or tables}
    if not texts:
        raise RequestError(
            say("serve.refused.no_texts", whole=whole, endings=", ".join((*OF_A_FOLDER, *TABLES)))
        )
    found = {str(place).lower() for place in texts.values()}
    folders = {str(up).lower() for one in texts.values() for up in one.parents if up.is_relative_to(folder)}
    if len(parts) < len(kept) or len(found) < len(texts) or found & folders:
        raise RequestError(say("serve.refused.same_names", whole=whole))
    if len(found | folders) - 1 > limits.entries:
        raise RequestError(
            say("serve.refused.entries", whole=whole, most=len(found | folders) - 1, entries=limits.entries)
        )
    return texts


def _litter(name: str) -> bool:
    """Whether file browsers put an entry there, and no author."""
    path = PurePosixPath(name)
    return "__MACOSX" in path.parts or path.name in (".DS_Store", "Thumbs.db", "desktop.ini")


def _parts(name: str, whole: str, limits: Limits) -> tuple[str, ...]:
    """The parts of the path of a file; RequestError for one that is too long, too deep, or would leave its folder."""
    shown = f"{whole}: {name[:100]}"
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\\" in name or ":" in name or "\0" in name:
        raise RequestError(say("serve.refused.outside", shown=shown))
    if any(len(part.encode("utf-8", "replace")) > _LONGEST_PART for part in parts):
        raise RequestError(f"{shown} has too long a name: shorten it.")
    if len(parts) - 1 > limits.depth:
        raise RequestError(say("serve.refused.depth", shown=shown, most=len(parts) - 1, depth=limits.depth))
    return parts


if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier


_LETTERS_READ = 2_000_000
"""Characters of all texts together that are looked at for their scripts."""
_SCRIPTS_SHOWN = 4
FIRST = 3
"""Texts of which the beginning is shown."""
_FIRST_READ, _FIRST_SHOWN = 2_000, 300


@dataclass(frozen=True, slots=True)
class UploadFacts:
    """What was seen in an upload. Lengths are in characters; `scripts` are shares of the letters by script,
    `languages` those of the texts by code, among `languages_of` texts that were looked at.
    `problem` says why nothing else could be seen, `columns` then what there is to choose from."""

    text_column: str = ""
    texts: int = 0
    documents: int = 0
    members: int = 0
    nonmembers: int = 0
    columns: tuple[str, ...] = ()
    shortest: int = 0
    median: int = 0
    longest: int = 0
    empty: int = 0
    duplicates: int = 0
    scripts: Mapping[str, float] = field(default_factory=dict)
    languages: Mapping[str, float] = field(default_factory=dict)
    languages_of: int = 0
    said: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    situation: Situation = field(default_factory=Situation)
    names: Names = field(default_factory=Names)
    problem: str = ""
    other_labels: bool = False
    first: tuple[str, ...] = ()
    guessed: bool = False
    """Whether a column called label says something else than membership, and must be left out. `first` are the
    beginnings of the first texts; `guessed` says that nobody named the column they stand in."""


def look_into(path: Path, name: str, text_column: str, limits: Limits) -> UploadFacts:
    """What is seen in a file or folder that a visitor calls `name`. A table without a text has a `problem`: choose a
    column. TextsError where nothing can be read, RequestError beyond the limits; other errors of a reader pass."""
    place = str(path)

    def plain(said: str) -> str:
        return said.replace(place, name)

    try:
        columns = _columns(path, limits)
        chosen, guessed = choose_text(place, Columns(text=text_column or None))
    except TextsError as error:
        raise TextsError(plain(str(error))) from error
    try:
        corpus, other = open_corpus(place, chosen), False
    except TextsError:
        try:
            corpus, other = open_corpus(place, replace(chosen, label="")), True
        except TextsError as error:
            if not {*columns} - {"text", "input", chosen.text}:  # no other column could be chosen
                raise TextsError(plain(str(error))) from error
            return UploadFacts(text_column=chosen.text or "", columns=columns, problem=plain(str(error)))
    texts = [text.text for text in corpus.texts]
    lengths = [len(text) for text in texts]
    told, (spoken, among) = look(place, chosen, corpus), languages(texts)
    return UploadFacts(
        text_column=chosen.text or "",
        texts=len(texts),
        documents=told.situation.documents,
        members=sum(text.member is True for text in corpus.texts),
        nonmembers=sum(text.member is False for text in corpus.texts),
        columns=columns,
        shortest=min(lengths),
        median=round(statistics.median(lengths)),
        longest=max(lengths),
        empty=sum(not text.strip() for text in texts),
        duplicates=len(texts) - len(set(texts)),
        scripts=scripts(texts),
        languages=spoken,
        languages_of=among,
        said=tuple(map(plain, told.said[1:])),
        notes=tuple(map(plain, corpus.notes)),
        situation=told.situation,
        names=told.names,
        first=tuple(" ".join(text[:_FIRST_READ].split())[:_FIRST_SHOWN] for text in texts[:FIRST]),
        other_labels=other,
        guessed=bool(guessed),
    )


def scripts(texts: Sequence[str]) -> dict[str, float]:
    """The share of each script among the letters of the first texts, the largest first.

    >>> scripts(["abc", "а1"])
    {'Latin': 0.75, 'Cyrillic': 0.25}
    """
    counted: Counter[str] = Counter()
    characters: Counter[str] = Counter()
    read = 0
    for text in texts:
        characters.update(text[: _LETTERS_READ - read])
        read += len(text)
        if read >= _LETTERS_READ:
            break
    for character, number in characters.items():
        if character.isalpha():
            counted[unicodedata.name(character, "other").split()[0].capitalize()] += number
    total = sum(counted.values())
    return {_SCRIPTS.get(name, name): n / total for name, n in counted.most_common(_SCRIPTS_SHOWN)}


_SCRIPTS = {"Cjk": "Chinese characters", "Hiragana": "Japanese (hiragana)", "Katakana": "Japanese (katakana)"}


def _columns(path: Path, limits: Limits) -> tuple[str, ...]:
    """The columns of a table's first row, none of documents; RequestError where it holds too much."""
    names: tuple[str, ...] = ()
    size = 0
    reading = EveryColumn(USUAL, str(path))
    for number, row in enumerate(resolve_source(path)[2](reading), start=1):
        if reading.kinds:  # a text a file: what it may hold was checked as it came
            return ()
        if number == 1 and {*row.fields} != {"text"}:
            names = tuple(row.fields)
            if len(names) > limits.columns or sum(map(len, names)) > limits.column_characters:
                found = {"columns": len(names), "characters": sum(map(len, names))}
                raise RequestError(say("serve.refused.columns", **found, limits=limits))
        size += sum(len(cell) for cell in row.fields.values() if isinstance(cell, str))
        if number > limits.texts or size > limits.expanded:
            most = f"{limits.texts:,} texts, or {limits.expanded:,} characters,"
            raise RequestError(say("serve.refused.too_large", most=most), 413)
    return names


# The languages of a collection, guessed text by text by py3langid, which needs no network and no second process.

_TEXTS_READ = 300
"""Texts that are looked at, spread evenly over the collection: about half a second of work."""
_CHARACTERS_READ = 1000
"""Characters of each text that are looked at."""
UNSPOKEN = {"und": "unknown", "zxx": "none (numbers, markup)"}
"""Codes that are no languages, with what a page says: it was not told, or there is none."""
_SURE = 0.5


def languages(texts: Sequence[str]) -> tuple[dict[str, float], int]:
    """The share of each language (ISO 639, or `UNSPOKEN`), the largest first, and how many texts were looked at."""
    step = max(1, -(-len(texts) // _TEXTS_READ))
    chosen = texts[::step]
    found = Counter(str(_identifier().classify(text[:_CHARACTERS_READ])[0]) for text in chosen)
    return {code: number / len(chosen) for code, number in found.most_common()}, len(chosen)


@cache
def _identifier() -> LanguageIdentifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True, min_confidence=_SURE)
