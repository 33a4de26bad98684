"""What lies in an upload: checked against what its name says, unpacked where it is a zip.

Everything here runs in the process that looks into an upload, whose time and memory are limited
(`pretrace.web.inspection`). A zip is read entry by entry and never past the limits, whatever its table of contents
says. Its names become paths inside the upload's own folder or the whole upload is refused.
"""

from __future__ import annotations

import gzip
import lzma
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from pretrace.web.limits import Limits
from pretrace.web.workspace import RequestError, slug

TEXT_FILES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".txt")
TAKEN = "a .jsonl, .csv, .tsv, .parquet or .txt file (also .gz), or a .zip of .txt files"
_HEAD = 65_536
_PIECE = 1 << 20


def ending_of(name: str) -> str:
    """The ending of a file that can be taken, as it is written; RequestError for a name of another kind."""
    low = name.lower()
    for ending in (*TEXT_FILES, ".parquet"):
        for whole in (ending, f"{ending}.gz"):
            if low.endswith(whole):
                return name[-len(whole) :]
    if low.endswith(".zip"):
        return name[-4:]
    raise RequestError(
        f"{name[:100] or 'A file without a name'} is of no kind that can be read here: upload {TAKEN}."
    )


def opened(file: Path, name: str, limits: Limits) -> tuple[Path, int]:
    """The file or folder of texts, beside `file`, and the number of files in it; a zip is unpacked and deleted.

    RequestError where it is not what its name says, or holds too much.
    """
    ending = ending_of(name)
    with _readable(name):
        if ending.lower() != ".zip":
            _check(file, name, ending, limits)
            return file, 1
        folder = file.with_name(slug(name.removesuffix(ending)))
        files = _unpacked(file, folder, name, limits)
    file.unlink()
    return folder, files


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
    if not parquet and b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise RequestError(
            f"{name} holds no plain text, whatever its ending says: upload {TAKEN}. Word and PDF files must be "
            "saved as text first."
        )


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


def _unpacked(archive: Path, folder: Path, name: str, limits: Limits) -> int:
    """The number of .txt files of a zip, which lie in `folder` afterwards."""
    folder.mkdir()
    with zipfile.ZipFile(archive) as opened:
        entries = [one for one in opened.infolist() if not one.is_dir() and not _litter(one.filename)]
        places = [_place(one, folder, name, limits) for one in entries]
        if not places:
            raise RequestError(f"{name} holds no files: put .txt files into it.")
        names = {str(place).lower() for place in places}
        folders = {str(up).lower() for one in places for up in one.parents if up.is_relative_to(folder)}
        if len(names) < len(places) or names & folders:
            raise RequestError(
                f"{name} holds two files, or a file and a folder, of the same name: rename one of them."
            )
        if len(names | folders) - 1 > limits.entries:
            raise RequestError(
                f"{name} holds {len(names | folders) - 1:,} files and folders, and {limits.entries:,} is the most: "
                "upload the texts as one .jsonl file, one text a line."
            )
        size = 0
        for entry, place in zip(entries, places, strict=True):
            place.parent.mkdir(parents=True, exist_ok=True)
            with opened.open(entry) as source, place.open("xb") as file:
                while piece := source.read(_PIECE):
                    size += len(piece)
                    _check_size(size, name, limits)
                    file.write(piece)
    return len(places)


def _litter(name: str) -> bool:
    """Whether file browsers put an entry there, and no author."""
    parts = PurePosixPath(name).parts
    return "__MACOSX" in parts or (bool(parts) and parts[-1] in (".DS_Store", "Thumbs.db", "desktop.ini"))


def _place(entry: zipfile.ZipInfo, folder: Path, archive: str, limits: Limits) -> Path:
    """Where an entry goes; RequestError for one that is no text, is locked or a link, lies too deep, or would leave the
    folder."""
    name = entry.filename
    shown = f"{archive}: {name[:100]}"
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or "\\" in name or ":" in name:
        raise RequestError(
            f"{shown} names a place outside of the archive: make the zip anew from the folder."
        )
    if entry.flag_bits & 1:
        raise RequestError(f"{shown} is locked with a password: make the zip without one.")
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise RequestError(f"{shown} is a link and no file: put the file itself into the zip.")
    if not name.lower().endswith(".txt"):
        raise RequestError(f"{shown} is no .txt file: a zip may hold nothing but .txt files, one text each.")
    if any(len(part.encode()) > 200 for part in parts):
        raise RequestError(f"{shown} has too long a name: shorten it.")
    if len(parts) - 1 > limits.depth:
        raise RequestError(
            f"{shown} lies in {len(parts) - 1:,} folders inside each other, and {limits.depth} is the most: put the "
            "files into fewer folders."
        )
    return folder.joinpath(*parts)
