"""What lies in an upload: checked against what its name says, unpacked where it is a zip.

A zip is opened by the process that looks into an upload, whose time and memory are limited (`pretrace.web.inspection`).
It is read entry by entry and never past the limits, whatever its table of contents says. The names in a zip, and those
of a folder's files, become paths inside the upload's own folder or the whole upload is refused (`places`).
"""

from __future__ import annotations

import gzip
import lzma
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from pretrace.corpora.documents import DOCUMENTS
from pretrace.corpora.formats import FORMATS
from pretrace.corpora.webpages import FEEDS
from pretrace.web.settings import Limits
from pretrace.web.workspace import RequestError, slug

TAKEN = (
    "a table (.jsonl, .csv, .tsv, .parquet), a text (.txt, .md, .html, .docx, .pdf) or a saved feed (.rss, .atom, "
    ".xml), each also with .gz; a folder of texts, or a .zip of one"
)
OF_A_FOLDER = (".txt", *DOCUMENTS)
"""Files that are one text each in a folder or a zip."""
_PACKED_INSIDE = (".docx", ".pdf")  # no plain text; their readers say what is wrong with one
_HEAD = 65_536
_PIECE = 1 << 20
_LONGEST_PART = 200


def ending_of(name: str) -> str:
    """The ending of a file that can be taken, as it is written; RequestError for a name of another kind."""
    low = name.lower()
    for ending in (*FORMATS, *DOCUMENTS, *FEEDS):
        for whole in (ending, f"{ending}.gz"):
            if low.endswith(whole):
                return name[-len(whole) :]
    if low.endswith(".zip"):
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
    with _readable(name):
        if ending.lower() != ".zip":
            _check(file, name, ending, limits)
            return file, 1, 0
        folder = file.with_name(slug(name.removesuffix(ending)))
        files, left_out = _unpacked(file, folder, name, limits)
    file.unlink()
    return folder, files, left_out


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """What the readers of archives raise for a damaged one becomes a RequestError."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, EOFError, NotImplementedError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk, and not the archive
            raise
        raise RequestError(
            f"{name} cannot be unpacked ({error}): make it again, or upload the files as they are."
        ) from error


def _check(place: Path, name: str, ending: str, limits: Limits) -> None:
    """RequestError where the first bytes are not those of such a file, or a .gz file unpacks to too much."""
    low = ending.lower().removesuffix(".gz")
    with gzip.open(place) if low != ending.lower() else place.open("rb") as file:
        head = file.read(_HEAD)
        _drained(file, name, limits)
    parquet = head.startswith(b"PAR1")
    if (low == ".parquet") != parquet:
        said = (
            "is a parquet file: give it the ending .parquet"
            if parquet
            else "is no parquet file: choose another"
        )
        raise RequestError(f"{name} {said}.")
    if low in _PACKED_INSIDE:
        return
    if not parquet and b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise RequestError(f"{name} holds no plain text, whatever its ending says: upload {TAKEN}.")


def _drained(file: gzip.GzipFile | IO[bytes], name: str, limits: Limits) -> None:
    size = _HEAD
    while isinstance(file, gzip.GzipFile) and (piece := file.read(_PIECE)):
        size += len(piece)
        _check_size(size, name, limits)


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
    texts = {
        name: folder.joinpath(*one[1:] if len(above) == 1 else one)
        for name, one in parts.items()
        if name.lower().endswith(OF_A_FOLDER)
    }
    if not texts:
        raise RequestError(f"{whole} holds no texts: put files that end in {', '.join(OF_A_FOLDER)} into it.")
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
