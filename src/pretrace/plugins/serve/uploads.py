"""What a visitor uploads: taken in as a whole or not at all, and what was seen in it.

`take` fails with a RequestError, after which nothing is left. Bytes lie in `incoming/` until they become an entry of
`texts/` by one renaming. A zip is read entry by entry and never past the limits, and names in it become paths inside
the upload's own folder (`_placed`).
"""

from __future__ import annotations

import shutil
import stat
import statistics
import tempfile
import time
import zipfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from pretrace.corpora import Columns
from pretrace.corpora.documents import DOCUMENTS, SOURCE
from pretrace.corpora.folders import is_about
from pretrace.corpora.formats import ENDINGS, TABLES, ending_of, file_rows, recognise_format, without_packing
from pretrace.corpora.formats import open_unpacked as unpacked_file
from pretrace.corpora.opening import choose_text, resolve_source
from pretrace.corpora.reading import HEAD, USUAL, TextReading, encoding_of
from pretrace.errors import PretraceError, TextsError
from pretrace.plugins.serve import RequestError, Workspace, fresh, save, slug
from pretrace.plugins.serve.command import ServeSettings
from pretrace.results.atomic import explained
from pretrace.results.wording import say
from pretrace.types import Situation
from pretrace.verdicts.advise import Names, look

TAKEN = say("serve.taken")
_OF_A_FOLDER = (".txt", *DOCUMENTS)
"""Files that are one text each in a folder or a zip."""
_BINARY = (".parquet", ".arrow", ".docx", ".pdf", ".epub")
"""No plain text: their readers say what is wrong with one."""
_PIECE = 1 << 20
_LONGEST_NAME = 200
_LONGEST_SENTENCE = 600


_FIRST = 3
"""Texts of which the beginning is shown."""
_FIRST_READ, _FIRST_SHOWN = 2_000, 300


@dataclass(frozen=True, slots=True)
class _UploadFacts:
    """What was seen in an upload. Lengths are in characters; `first` are the beginnings of the first texts. `problem`
    says why nothing else could be seen, `columns` then what there is to choose from. `other_labels`: a column called
    label says something else than membership, and must be left out. `guessed`: nobody named the column of the text."""

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
    said: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    situation: Situation = field(default_factory=Situation)
    names: Names = field(default_factory=Names)
    problem: str = ""
    other_labels: bool = False
    first: tuple[str, ...] = ()
    guessed: bool = False


@dataclass(frozen=True, slots=True)
class Upload:
    """One upload: `path` is the file or folder of texts, relative to the workspace; `name` what it is called, `size`
    the bytes of its texts, `at` the time in seconds since 1970, `left_out` the files of a folder or zip that are no
    texts."""

    id: str
    name: str
    path: str
    size: int
    at: float
    files: int
    left_out: int
    facts: _UploadFacts


def take(workspace: Workspace, files: Sequence[tuple[str, BinaryIO]], settings: ServeSettings) -> Upload:
    """The upload of what was sent at once, by its names: one file, what a .zip holds, or the texts of a folder. It is
    kept with what was seen in it; RequestError, and nothing is kept."""
    workspace.check_room("texts", settings.most_records)
    room = workspace.left(settings.most_kept)
    paths = [PurePosixPath(name.replace("\\", "/")) for name, _ in files]
    alone = len(files) == 1 and len(paths[0].parts) < 2
    ending = _whole_ending(paths[0].name) if alone else ""
    several = len({path.parts[0] for path in paths}) > 1
    name = (
        paths[0].name if alone else f"{paths[0]} and {len(paths) - 1} more" if several else paths[0].parts[0]
    )
    name = f"{name.strip().removesuffix(ending)[:_LONGEST_NAME]}{ending}"
    called = slug(name.removesuffix(ending)) + ending * (ending.lower() != ".zip")
    folder = workspace.folder / "incoming" / fresh(called)
    place = folder / called
    with explained(folder):
        folder.mkdir()
        try:
            with _readable(place, name):
                if not alone:
                    opened = {str(path): file for path, (_, file) in zip(paths, files, strict=True)}
                    counted = _placed([*map(str, paths)], opened.__getitem__, place, name, settings, room)
                elif ending.lower() == ".zip":
                    counted = _unpacked(files[0][1], place, name, settings, room)
                else:
                    counted = _copied(files[0][1], place, name, room), 1, 0
                    if not counted[0]:
                        raise RequestError(f"{name} is empty: choose a file that holds texts.")
                    _check(place, name, min(settings.expanded, room))
                facts = _look_into(place, name, "", settings)
            where = f"texts/{folder.name}"
            upload = Upload(
                folder.name, name, f"{where}/{called}", counted[0], time.time(), *counted[1:], facts
            )
            save(folder / "upload.json", upload)
            folder.rename(workspace.folder / where)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return upload


@contextmanager
def _readable(path: Path, name: str) -> Iterator[None]:
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
        said = " ".join(f"{type(error).__name__}: {error}".rstrip(".: ").replace(str(path), name).split())
        said = f"{name} cannot be read ({said[:_LONGEST_SENTENCE]}): mend it, or upload it in another format."
        raise RequestError(said, 422) from error


def text_in(workspace: Workspace, name: str, stream: BinaryIO, most: int) -> str:
    """The text of a file of at most so many bytes that a visitor sends to look at; nothing is kept. RequestError where
    it has none."""
    name = name[-_LONGEST_NAME:]
    with tempfile.TemporaryDirectory(dir=workspace.folder / "incoming") as folder:
        file = Path(folder, "document")
        with explained(file), _readable(file, name):
            _copied(stream, file, name, most)
            _check(file, name, most)
            reading = TextReading(USUAL, name)
            kind = ending_of(name) if ending_of(name) in DOCUMENTS else SOURCE
            return next(reading.stream(file_rows(file, reading, kind))).text


def remove(folder: Path) -> None:
    """Delete a folder of the workspace: first out of sight by one renaming, then its files."""
    with explained(folder):
        gone = folder.parent.parent / "incoming" / fresh("deleted")
        folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def texts_of(workspace: Workspace, name: str) -> str:
    """The path of the texts of the upload of that id, for a command; RequestError where they could not be read."""
    one = workspace.record(Upload, name)
    if one.facts.problem:
        raise RequestError(f"{one.name} cannot be used: {one.facts.problem}", 422)
    return str(workspace.within(one.path))


def look_again(workspace: Workspace, upload: Upload, text_column: str, settings: ServeSettings) -> None:
    """Look into an upload again, at another column, and keep what was seen; RequestError, and nothing changes."""
    path = workspace.within(upload.path)
    with _readable(path, upload.name):
        found = _look_into(path, upload.name, text_column, settings)
    save(workspace.folder / "texts" / upload.id / "upload.json", replace(upload, facts=found))


def _copied(stream: IO[bytes], place: Path, name: str, most: int, size: int = 0) -> int:
    """Copy a stream into a new file; `size` and its bytes, `most` together."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("xb") as file:
        while piece := stream.read(_PIECE):
            size += len(piece)
            _check_size(size, name, most)
            file.write(piece)
    return size


# What lies in an upload: checked against what its name says, unpacked where it is a zip.


def _whole_ending(name: str) -> str:
    """The ending of a file that can be taken, as it is written; RequestError for a name of another kind."""
    plain = without_packing(name)
    if name.lower().endswith(".zip"):
        return name[-4:]
    if ending_of(name) in ENDINGS:
        return name[len(plain) - len(ending_of(name)) :]
    raise RequestError(
        f"{name[:100] or 'A file without a name'} is of no kind that can be read here: upload {TAKEN}."
    )


def _check(place: Path, name: str, most: int) -> None:
    """RequestError where a file that should be plain text is none, or a packed one has more than `most` bytes."""
    with unpacked_file(place) as file:
        head = file.peek(HEAD)[:HEAD]
        kind, size = recognise_format(name, head), 0
        while not file.seekable() and (piece := file.read(_PIECE)):
            size += len(piece)
            _check_size(size, name, most)
    if kind not in _BINARY and b"\0" in head and encoding_of(head, None) == "utf-8":
        raise RequestError(f"{name} holds no plain text, whatever its ending says: upload {TAKEN}.")


def _check_size(size: int, name: str, most: int) -> None:
    if size > most:
        raise RequestError(f"{name} unpacks to more than {most // 1_000_000:,} MB: upload a part of it.", 413)


def _unpacked(
    stream: BinaryIO, place: Path, name: str, settings: ServeSettings, most: int
) -> tuple[int, int, int]:
    """Unpack a zip as `_placed` does; RequestError for a link in it."""
    with zipfile.ZipFile(stream) as packed:
        entries = [one for one in packed.infolist() if not one.is_dir()]
        for one in entries:
            if stat.S_ISLNK(one.external_attr >> 16):
                said = (
                    f"{name}: {one.filename[:100]} is a link and no file: put the file itself into the zip."
                )
                raise RequestError(said)
        names = [one.filename for one in entries]
        return _placed(names, packed.open, place, name, settings, min(settings.expanded, most))


def _placed(
    names: Collection[str],
    opened: Callable[[str], IO[bytes]],
    folder: Path,
    whole: str,
    settings: ServeSettings,
    most: int,
) -> tuple[int, int, int]:
    """Copy the texts among the files of a zip, or of a folder that a visitor calls `whole`, into `folder`: their bytes,
    their number, and that of the other files. RequestError for none, too many, or a name that leaves the folder."""
    kept = [name for name in names if not _is_litter(name)]
    parts = {name: _parts(name, whole, settings.most_depth) for name in kept}
    above = {one[0] for one in parts.values()} if all(len(one) > 1 for one in parts.values()) else set()
    within = {name: one[1:] if len(above) == 1 else one for name, one in parts.items()}
    documents = [name for name in within if ending_of(name) in _OF_A_FOLDER]
    tables = [name for name in within if ending_of(name) in TABLES]
    if tables and all(is_about("/".join(within[name])) for name in documents):
        documents = []  # what tells of the tables is no text beside them
    texts, size = {name: folder.joinpath(*within[name]) for name in documents or tables}, 0
    if not texts:
        endings = ", ".join((*_OF_A_FOLDER, *TABLES))
        raise RequestError(f"{whole} holds no texts: put files that end in {endings} into it.")
    found = {str(place).lower() for place in texts.values()}
    folders = {str(up).lower() for one in texts.values() for up in one.parents if up.is_relative_to(folder)}
    if len(parts) < len(kept) or len(found) < len(texts) or found & folders:
        raise RequestError(
            f"{whole} holds files, or a file and a folder, of the same name: rename one of them."
        )
    if (number := len(found | folders) - 1) > settings.most_entries:
        numbers = {"most": number, "entries": settings.most_entries}
        raise RequestError(say("serve.refused.entries", whole=whole, **numbers))
    for name, place in texts.items():
        with opened(name) as source:
            size = _copied(source, place, whole, most, size)
    return size, len(texts), len(parts) - len(texts)


def _is_litter(name: str) -> bool:
    """Whether file browsers put an entry there, and no author."""
    path = PurePosixPath(name)
    return "__MACOSX" in path.parts or path.name in (".DS_Store", "Thumbs.db", "desktop.ini")


def _parts(name: str, whole: str, depth: int) -> tuple[str, ...]:
    """The parts of the path of a file; RequestError for one that is too deep, or would leave its folder."""
    shown = f"{whole}: {name[:100]}"
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\\" in name or ":" in name or "\0" in name:
        raise RequestError(say("serve.refused.outside", shown=shown))
    if len(parts) - 1 > depth:
        raise RequestError(say("serve.refused.depth", shown=shown, most=len(parts) - 1, depth=depth))
    return parts


def _look_into(path: Path, name: str, text_column: str, settings: ServeSettings) -> _UploadFacts:
    """What is seen in a file or folder that a visitor calls `name`. A table without a text has a `problem`: choose a
    column. TextsError where nothing can be read, RequestError beyond the limits; other errors of a reader pass."""
    place = str(path)
    columns = _columns(path, settings)
    chosen, guessed = choose_text(place, Columns(text=text_column or None))
    try:
        seen = look(place, chosen)
    except TextsError as error:
        if not {*columns} - {"text", "input", chosen.text}:  # no other column could be chosen
            raise
        problem = str(error).replace(place, name)
        return _UploadFacts(text_column=chosen.text or "", columns=columns, problem=problem)
    corpus = seen.corpus
    texts = [text.text for text in corpus.texts]
    lengths = [len(text) for text in texts]
    return _UploadFacts(
        text_column=chosen.text or "",
        texts=len(texts),
        documents=seen.situation.documents,
        members=sum(text.member is True for text in corpus.texts),
        nonmembers=sum(text.member is False for text in corpus.texts),
        columns=columns,
        shortest=min(lengths),
        median=round(statistics.median(lengths)),
        longest=max(lengths),
        empty=sum(not text.strip() for text in texts),
        duplicates=len(texts) - len(set(texts)),
        said=tuple(said.replace(place, name) for said in seen.said[1:]),
        notes=tuple(note.replace(place, name) for note in corpus.notes),
        situation=seen.situation,
        names=seen.names,
        first=tuple(" ".join(text[:_FIRST_READ].split())[:_FIRST_SHOWN] for text in texts[:_FIRST]),
        other_labels=seen.columns.label == "",
        guessed=bool(guessed),
    )


def _columns(path: Path, settings: ServeSettings) -> tuple[str, ...]:
    """The columns of a table's first row, none of documents; RequestError where it holds too much."""
    names: tuple[str, ...] = ()
    size = 0
    reading = TextReading(USUAL, str(path), every_column=True)
    for number, row in enumerate(resolve_source(path)[2](reading), start=1):
        if reading.kinds:  # a text a file: what it may hold was checked as it came
            return ()
        if number == 1 and {*row.fields} != {"text"}:
            names = tuple(row.fields)
            if len(" ".join(names)) > settings.column_characters:
                raise RequestError(say("serve.refused.columns", most=settings.column_characters))
        size += sum(len(cell) for cell in row.fields.values() if isinstance(cell, str))
        if number > settings.most_texts or size > settings.expanded:
            raise RequestError(say("serve.refused.too_large", limits=settings), 413)
    return names
