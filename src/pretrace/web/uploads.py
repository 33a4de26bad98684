"""What a visitor uploads: checked against what it says it is, kept as a file, or as a folder of texts from a zip.

A zip is read entry by entry and never past the limits, whatever its table of contents says. Its names become paths
inside the upload's own folder or the whole upload is refused.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import shutil
import stat
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from pretrace.results.atomic import explained
from pretrace.web.workspace import RequestError, Workspace, fresh, record_in, save, slug

TEXT_FILES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".txt")
TAKEN = "a .jsonl, .csv, .tsv, .parquet or .txt file (also .gz), or a .zip of .txt files"
MOST_ENTRIES = 20_000
"""Files of a zip."""
MOST_EXPANDED = 1_000_000_000
"""Bytes of all files of a zip, or of a .gz file, when they are unpacked."""
_HEAD = 65_536
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Upload:
    """One upload: `path` is the file or folder of texts, relative to the workspace; `name` what the visitor called it,
    `size` and `sha256` those of what was sent, `at` the time in seconds since 1970."""

    id: str
    name: str
    path: str
    size: int
    sha256: str
    at: float
    files: int = 1


def take(workspace: Workspace, name: str, stream: BinaryIO) -> Upload:
    """The upload, kept in the workspace; RequestError, and nothing kept, where it is empty, too large when unpacked,
    or not what its name says."""
    name = PurePosixPath(name.replace("\\", "/")).name.strip()
    ending = _ending(name)
    made = fresh(name.removesuffix(ending))
    folder = workspace.room("texts") / made
    folder.mkdir()
    try:
        with explained(folder):
            upload = _kept(workspace, folder, name, stream)
        save(folder / "upload.json", upload)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return upload


def _kept(workspace: Workspace, folder: Path, name: str, stream: BinaryIO) -> Upload:
    """The upload, whose files lie in `folder`."""
    ending = _ending(name)
    stem = name.removesuffix(ending)
    plain = folder / f"{slug(stem)}{ending}"
    size, digest = _copied(stream, plain)
    if not size:
        raise RequestError(f"{name} is empty: choose a file that holds texts.")
    files = 1
    with _readable(name):
        if ending.lower() == ".zip":
            files = _unpacked(plain, folder / slug(stem))
            plain.unlink()
            plain = folder / slug(stem)
        else:
            _check(plain, name, ending)
    path = plain.relative_to(workspace.folder).as_posix()
    return Upload(folder.name, name, path, size, digest, time.time(), files)


def uploads(workspace: Workspace) -> list[Upload]:
    """All uploads, the latest first."""
    places = sorted(workspace.room("texts").glob("*/upload.json"), reverse=True)
    return [found for place in places if (found := record_in(Upload, place))]


def upload_of(workspace: Workspace, name: str) -> Upload:
    """The upload of that id; RequestError (404) where there is none."""
    for one in uploads(workspace):
        if one.id == name:
            return one
    raise RequestError("There is no such collection here: it may have been deleted from the workspace.", 404)


def _ending(name: str) -> str:
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


def _copied(stream: BinaryIO, place: Path) -> tuple[int, str]:
    """The bytes copied, and their SHA-256."""
    size, digest = 0, hashlib.sha256()
    with place.open("wb") as file:
        while piece := stream.read(_PIECE):
            size += len(piece)
            digest.update(piece)
            file.write(piece)
    return size, digest.hexdigest()


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


def _check(place: Path, name: str, ending: str) -> None:
    """RequestError where the first bytes are not those of such a file, or a .gz file unpacks to too much."""
    low = ending.lower().removesuffix(".gz")
    with gzip.open(place) if low != ending.lower() else place.open("rb") as file:
        head = file.read(_HEAD)
        _drained(file, name)
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


def _drained(file: gzip.GzipFile | IO[bytes], name: str) -> None:
    size = 0
    while piece := file.read(_PIECE):
        size += len(piece)
        _check_size(size, name)


def _check_size(size: int, name: str) -> None:
    if size > MOST_EXPANDED:
        raise RequestError(
            f"{name} unpacks to more than {MOST_EXPANDED // 1_000_000:,} MB: upload a part of it, or use the command "
            "line, which reads files of any size.",
            413,
        )


def _unpacked(archive: Path, folder: Path) -> int:
    """The number of .txt files of a zip, which lie in `folder` afterwards."""
    folder.mkdir()
    with zipfile.ZipFile(archive) as opened:
        entries = [one for one in opened.infolist() if not one.is_dir() and not _litter(one.filename)]
        if len(entries) > MOST_ENTRIES:
            raise RequestError(
                f"{archive.name} holds {len(entries):,} files, and {MOST_ENTRIES:,} is the most: upload them as one "
                ".jsonl file, one text a line."
            )
        places = [_place(one, folder, archive.name) for one in entries]
        names = {str(place).lower() for place in places}
        folders = {str(parent).lower() for place in places for parent in place.parents}
        if len(names) < len(places) or names & folders:
            raise RequestError(
                f"{archive.name} holds two files, or a file and a folder, of the same name: rename one of them."
            )
        if not places:
            raise RequestError(f"{archive.name} holds no files: put .txt files into it.")
        size = 0
        for entry, place in zip(entries, places, strict=True):
            place.parent.mkdir(parents=True, exist_ok=True)
            with opened.open(entry) as source, place.open("xb") as file:
                while piece := source.read(_PIECE):
                    size += len(piece)
                    _check_size(size, archive.name)
                    file.write(piece)
    return len(places)


def _litter(name: str) -> bool:
    """Whether file browsers put an entry there, and no author."""
    parts = PurePosixPath(name).parts
    return "__MACOSX" in parts or (bool(parts) and parts[-1] in (".DS_Store", "Thumbs.db", "desktop.ini"))


def _place(entry: zipfile.ZipInfo, folder: Path, archive: str) -> Path:
    """Where an entry goes; RequestError for one that is no text, is locked or a link, or would leave the folder."""
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
    return folder.joinpath(*parts)
