"""What lies in an upload: checked against what its name says, unpacked where it is a zip.

A zip is read entry by entry and never past the limits, whatever its table of contents says. The names in a zip, and
those of a folder's files, become paths inside the upload's own folder or the whole upload is refused (`places`).
"""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from pretrace.corpora.documents import DOCUMENTS
from pretrace.corpora.folders import is_about
from pretrace.corpora.formats import FORMATS, recognise_format
from pretrace.corpora.packing import HEAD, encoding_of, without_packing
from pretrace.corpora.packing import open_unpacked as unpacked_file
from pretrace.corpora.webpages import FEEDS
from pretrace.web.settings import Limits
from pretrace.web.workspace import RequestError, slug

TAKEN = (
    "a table (.jsonl, .json, .csv, .tsv, .parquet, .arrow), a text (.txt, .md, .html, .docx, .pdf, .epub) or a saved "
    "feed (.rss, .atom, .xml), each also packed (.gz, .zst, .bz2, .xz); a folder of texts or of tables, or a .zip of "
    "one"
)
OF_A_FOLDER = (".txt", *DOCUMENTS)
"""Files that are one text each in a folder or a zip."""
_TABLES = tuple(one for one in FORMATS if one != ".txt")
_BINARY = (
    ".parquet",
    ".arrow",
    ".docx",
    ".pdf",
    ".epub",
)  # no plain text; their readers say what is wrong with one
_PIECE = 1 << 20
_LONGEST_PART = 200


def ending_of(name: str) -> str:
    """The ending of a file that can be taken, as it is written; RequestError for a name of another kind."""
    plain = without_packing(name)
    for ending in (*FORMATS, *DOCUMENTS, *FEEDS):
        if plain.lower().endswith(ending):
            return name[len(plain) - len(ending) :]
    if name.lower().endswith(".zip"):
        return name[-4:]
    raise RequestError(
        f"{name[:100] or 'A file without a name'} is of no kind that can be read here: upload {TAKEN}."
    )


def opened(file: Path, name: str, limits: Limits) -> tuple[Path, int, int]:
    """The file or folder of texts, beside `file`, the number of files in it, and of those that were left out as they
    are no texts; a zip is unpacked and deleted.

    RequestError where it is not what its name says, or holds too much.
    """
    ending = ending_of(name)
    with readable(name):
        if ending.lower() != ".zip":
            check(file, name, limits)
            return file, 1, 0
        folder = file.with_name(slug(name.removesuffix(ending)))
        files, left_out = _unpacked(file, folder, name, limits)
    file.unlink()
    return folder, files, left_out


@contextmanager
def readable(name: str) -> Iterator[None]:
    """What the readers of archives raise for a damaged one becomes a RequestError."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk, and not the archive
            raise
        raise RequestError(
            f"{name} cannot be unpacked ({error}): make it again, or upload the files as they are."
        ) from error


def check(place: Path, name: str, limits: Limits) -> None:
    """RequestError where a file that should be plain text is none, or a packed one unpacks to too much."""
    with readable(name), unpacked_file(place) as file:
        head = file.peek(HEAD)[:HEAD]
        kind, size = recognise_format(name, head), 0
        while not file.seekable() and (piece := file.read(_PIECE)):
            size += len(piece)
            _check_size(size, name, limits)
    if kind not in _BINARY and b"\0" in head and encoding_of(head, None) == "utf-8":
        raise RequestError(f"{name} holds no plain text, whatever its ending says: upload {TAKEN}.")


def _check_size(size: int, name: str, limits: Limits) -> None:
    if size > limits.expanded:
        raise RequestError(
            f"{name} unpacks to more than {limits.expanded // 1_000_000:,} MB: upload a part of it, or use the command "
            "line, which reads files of any size.",
            413,
        )


def _unpacked(archive: Path, folder: Path, name: str, limits: Limits) -> tuple[int, int]:
    """The number of texts of a zip, which lie in `folder` afterwards, and of files that are none."""
    folder.mkdir()
    with zipfile.ZipFile(archive) as opened:
        entries = [one for one in opened.infolist() if not one.is_dir()]
        for one in entries:
            _check_entry(one, name)
        found = places([one.filename for one in entries], folder, name, limits)
        size = 0
        for entry in entries:
            place = found.get(entry.filename)
            if place is None:
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            with opened.open(entry) as source, place.open("xb") as file:
                while piece := source.read(_PIECE):
                    size += len(piece)
                    _check_size(size, name, limits)
                    file.write(piece)
    return len(found), sum(not _litter(one.filename) for one in entries) - len(found)


def places(names: Sequence[str], folder: Path, whole: str, limits: Limits) -> dict[str, Path]:
    """Where the texts among the files of a zip, or of a folder that a visitor calls `whole`, go inside `folder`, by
    their names; files of other kinds are left out, and so is the folder that all lie in.

    RequestError where nothing is left, where there are too many or two of a name, and for a name that lies too deep or
    would leave the folder.
    """
    parts = {name: _parts(name, whole, limits) for name in names if not _litter(name)}
    if len(parts) < sum(not _litter(name) for name in names):
        raise _same_name(whole)
    above = {one[0] for one in parts.values()} if all(len(one) > 1 for one in parts.values()) else set()
    within = {name: one[1:] if len(above) == 1 else one for name, one in parts.items()}
    of_kind = {name: PurePosixPath(without_packing(name.lower())).suffix for name in within}
    documents = [name for name, kind in of_kind.items() if kind in OF_A_FOLDER]
    tables = [name for name, kind in of_kind.items() if kind in _TABLES]
    if tables and all(is_about("/".join(within[name])) for name in documents):
        documents = []  # what tells of the tables is no text beside them
    texts = {name: folder.joinpath(*within[name]) for name in documents or tables}
    if not texts:
        raise RequestError(
            f"{whole} holds no texts: put files that end in {', '.join((*OF_A_FOLDER, *_TABLES))} into it."
        )
    found = {str(place).lower() for place in texts.values()}
    folders = {str(up).lower() for one in texts.values() for up in one.parents if up.is_relative_to(folder)}
    if len(found) < len(texts) or found & folders:
        raise _same_name(whole)
    if len(found | folders) - 1 > limits.entries:
        raise RequestError(
            f"{whole} holds {len(found | folders) - 1:,} files and folders, and {limits.entries:,} is the most: "
            "upload the texts as one .jsonl file, one text a line."
        )
    return texts


def _same_name(whole: str) -> RequestError:
    return RequestError(
        f"{whole} holds two files, or a file and a folder, of the same name: rename one of them."
    )


def _litter(name: str) -> bool:
    """Whether file browsers put an entry there, and no author."""
    parts = PurePosixPath(name).parts
    return "__MACOSX" in parts or (bool(parts) and parts[-1] in (".DS_Store", "Thumbs.db", "desktop.ini"))


def _check_entry(entry: zipfile.ZipInfo, archive: str) -> None:
    """RequestError for an entry of a zip that is locked, or a link."""
    shown = f"{archive}: {entry.filename[:100]}"
    if entry.flag_bits & 1:
        raise RequestError(f"{shown} is locked with a password: make the zip without one.")
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise RequestError(f"{shown} is a link and no file: put the file itself into the zip.")


def _parts(name: str, whole: str, limits: Limits) -> tuple[str, ...]:
    """The parts of the path of a file; RequestError for one that is too long, too deep, or would leave its folder."""
    shown = f"{whole}: {name[:100]}"
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\\" in name or ":" in name or "\0" in name:
        raise RequestError(
            f"{shown} names a place outside of it, or holds a sign that not every system has in names: rename the "
            "file, or make the zip anew from the folder."
        )
    if any(len(part.encode("utf-8", "replace")) > _LONGEST_PART for part in parts):
        raise RequestError(f"{shown} has too long a name: shorten it.")
    if len(parts) - 1 > limits.depth:
        raise RequestError(
            f"{shown} lies in {len(parts) - 1:,} folders inside each other, and {limits.depth} is the most: put the "
            "files into fewer folders."
        )
    return parts
