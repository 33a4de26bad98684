"""What a visitor uploads: taken in as a whole or not at all, and what was seen in it.

There is one way in (`take`), and it fails in one way: a RequestError, after which nothing is left. The bytes lie in
`incoming/` while another process looks into them (`pretrace.web.inspection`), and become an entry of `texts/` by one
renaming.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from pretrace.results.atomic import explained
from pretrace.web.archives import ending_of
from pretrace.web.facts import Facts
from pretrace.web.inspection import BUSY, inspected
from pretrace.web.limits import Limits
from pretrace.web.workspace import RequestError, Workspace, fresh, record_in, save, slug

_PIECE = 1 << 20
_LONGEST_NAME = 200


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


def take(
    workspace: Workspace, name: str, stream: BinaryIO, limits: Limits | None = None, most: int | None = None
) -> Upload:
    """The upload, kept in the workspace with what was seen in it; `most` is the size of the workspace in bytes from
    which on nothing is taken.

    RequestError, and nothing kept, where it is empty, not what its name says, too costly to look into, or cannot be
    read.
    """
    limits = limits or Limits()
    name = PurePosixPath(name.replace("\\", "/")).name.strip()
    ending = ending_of(name)
    name = f"{name.removesuffix(ending)[:_LONGEST_NAME]}{ending}"
    workspace.check_room("texts", limits.kept)
    left = workspace.left(most) if most else limits.expanded
    made = fresh(name.removesuffix(ending))
    folder = workspace.room("incoming") / made
    with explained(folder):
        folder.mkdir()
        try:
            file = folder / f"{slug(name.removesuffix(ending))}{ending}"
            size, digest = _copied(stream, file)
            if not size:
                raise RequestError(f"{name} is empty: choose a file that holds texts.")
            found = inspected(file, name, limits, unpack=True, most_bytes=min(limits.expanded, left))
            path = f"texts/{made}/{found.path.relative_to(folder).as_posix()}"
            upload = Upload(made, name, path, size, digest, time.time(), found.files)
            save(folder / "facts.json", found.facts)
            save(folder / "upload.json", upload)
            folder.rename(workspace.room("texts") / made)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return upload


def rename(workspace: Workspace, upload: Upload, name: str) -> Upload:
    """The upload under another name; its ending and its file stay."""
    ending = ending_of(upload.name)
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
    places = sorted(workspace.room("texts").glob("*/upload.json"), reverse=True)
    return [found for place in places if (found := record_in(Upload, place))]


def upload_of(workspace: Workspace, name: str) -> Upload:
    """The upload of that id; RequestError (404) where there is none."""
    for one in uploads(workspace):
        if one.id == name:
            return one
    raise RequestError("There is no such collection here: it may have been deleted from the workspace.", 404)


def texts_of(workspace: Workspace, name: str) -> str:
    """The path of the texts of the upload of that id, for a command; RequestError where they could not be read."""
    one = upload_of(workspace, name)
    problem = facts_of(workspace, one).problem
    if problem:
        raise RequestError(f"{one.name} cannot be used: {problem}", 422)
    return str(workspace.within(one.path))


def facts_of(workspace: Workspace, upload: Upload) -> Facts:
    """What was seen in an upload, from its file; looked into now where that was not done. It never fails: what cannot
    be seen is a `problem`."""
    place = workspace.room("texts") / upload.id / "facts.json"
    known = record_in(Facts, place)
    if known is not None:
        return known
    try:
        return seen(workspace, upload)
    except RequestError as error:
        found = Facts(problem=str(error))
        if error.status != BUSY:
            save(place, found)
        return found


def seen(workspace: Workspace, upload: Upload, text_column: str = "", limits: Limits | None = None) -> Facts:
    """Look into an upload again, at another column of text, and keep what was seen; RequestError, and what was seen
    before stays, where that cannot be."""
    path = workspace.within(upload.path)
    if not os.path.lexists(path):
        raise RequestError(f"The file of {upload.name} is not there any more: upload it again.", 404)
    found = inspected(path, upload.name, limits or Limits(), text_column=text_column).facts
    save(workspace.room("texts") / upload.id / "facts.json", found)
    return found


def _copied(stream: BinaryIO, place: Path) -> tuple[int, str]:
    """The bytes copied, and their SHA-256."""
    size, digest = 0, hashlib.sha256()
    with place.open("wb") as file:
        while piece := stream.read(_PIECE):
            size += len(piece)
            digest.update(piece)
            file.write(piece)
    return size, digest.hexdigest()
