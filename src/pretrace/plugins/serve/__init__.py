"""A page on this machine: look at a text, test a collection, read results; its own server, security and jobs.

This module is the folder in which it keeps everything: texts, single texts that were looked at, jobs and results.

    incoming/ID/   an upload that is being taken in; it vanishes unless it becomes one of the next
    texts/ID/      one upload: its files, and upload.json (its name and size, and what was seen in it)
    looks/ID/      one text that was looked at: look.json, text.jsonl, and run/ when it was scored
    jobs/ID/       one command: job.json, log.txt, progress.json
    results/NAME/  what commands write; results from elsewhere may be put here as well
    secret         the key of sessions; nobody else may read it
    server.json    the process that serves this folder

Nobody but the user who made it may open the folder.
Every name that comes from a request becomes a path through `inside`, which lets nothing out of its folder.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pretrace.errors import OutputError, PretraceError
from pretrace.results.atomic import atomic_bytes, explained
from pretrace.results.folder import from_json, from_plain, to_json, to_plain
from pretrace.results.wording import say

T = TypeVar("T")
_FOLDERS = ("incoming", "texts", "looks", "jobs", "results")
_RECORDS = {
    "Upload": ("texts", "upload.json", "collection"),
    "Look": ("looks", "look.json", "text"),
    "WebJob": ("jobs", "job.json", "job"),
}
"""Of each class of records the folder that has an entry for each, the file there, and what it is of."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 200
_BLOCK = 4096  # a file takes more room than its bytes, and so does its name


class RequestError(PretraceError):
    """A request that is answered with a sentence and a status of HTTP; `field` is that of the form, or ""."""

    def __init__(self, message: str, status: int = 400, *, field: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.field = field


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folders of a workspace; `folder` is absolute."""

    folder: Path

    @classmethod
    def at(cls, folder: Path) -> Workspace:
        """The workspace in `folder`, made where there is none; OutputError where it holds something else."""
        with explained(folder):
            place = Path(os.path.realpath(folder))
            strange = place.is_dir() and any(place.iterdir()) and not (place / "secret").is_file()
            if strange:
                raise OutputError(say("serve.refused.not_workspace", folder=folder))
            place.mkdir(parents=True, exist_ok=True)
            place.chmod(0o700)
            for name in _FOLDERS:
                (place / name).mkdir(exist_ok=True)
            key = place / "secret"
            if not key.is_file():
                handle = os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(handle, "w", encoding="ascii") as file:
                    file.write(secrets.token_hex(32))
        return cls(place)

    def check_room(self, name: str, most: int) -> None:
        """RequestError (507) where one of its folders holds so many entries that no more are taken in."""
        if sum(1 for _ in (self.folder / name).iterdir()) >= most:
            raise RequestError(say("serve.refused.room_full", name=name, most=most), 507)

    def left(self, megabytes: int) -> int:
        """The bytes until the workspace has so many; RequestError (507) where there are none left."""
        used, most = 0, megabytes * 1_000_000
        for root, _, files in os.walk(self.folder):
            for name in files:
                with suppress(OSError):  # a job may take it away meanwhile
                    used += Path(root, name).lstat().st_size + _BLOCK
        if used >= most:
            said = say("serve.refused.workspace_full", used=used // 1_000_000, most=megabytes)
            raise RequestError(said, 507)
        return most - used

    def within(self, relative: str) -> Path:
        """A path that the workspace itself recorded, relative to its folder; RequestError where it leads out of it."""
        return _below(self.folder, self.folder / relative)

    def records(self, kind: type[T]) -> list[T]:
        """All records of a kind, the latest first: an Upload, a Look or a WebJob."""
        folder, file, _ = _RECORDS[kind.__name__]
        places = sorted((self.folder / folder).glob(f"*/{file}"), reverse=True)
        return [found for place in places if (found := _record_in(kind, place))]

    def record(self, kind: type[T], name: str) -> T:
        """The record of that id; RequestError (404) where there is none."""
        folder, file, what = _RECORDS[kind.__name__]
        with suppress(RequestError):
            if found := _record_in(kind, inside(self.folder / folder, name) / file):
                return found
        raise RequestError(f"There is no such {what} here: it may have been deleted from the workspace.", 404)


def inside(folder: Path, name: str) -> Path:
    """The entry of a folder that a request names, also of several parts; RequestError (404) where it lies elsewhere."""
    parts = name.split("/")
    plain = all(part not in ("", ".", "..") and len(part) <= _LONGEST for part in parts)
    place = _below(folder, folder.joinpath(*parts)) if plain and not {"\0", "\\"} & {*name} else folder
    if place == folder or not place.exists():
        raise RequestError("There is no such page here.", 404)
    return place


def _below(folder: Path, place: Path) -> Path:
    """A path with its links followed; RequestError (404) where it leads out of a folder."""
    found = Path(os.path.realpath(place))
    if not found.is_relative_to(os.path.realpath(folder)):
        raise RequestError("There is no such page here.", 404)
    return found


def slug(name: str, fallback: str = "texts") -> str:
    """A name as a part of a path: letters, digits, full stops and hyphens."""
    return _UNSAFE.sub("-", name).strip("-.")[:60] or fallback


def fresh(stem: str) -> str:
    """An id that no other entry has, by which entries sort in the order they were made."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{slug(stem)}-{secrets.token_hex(3)}"


def save(path: Path, record: object) -> None:
    """Write a dataclass as JSON."""
    atomic_bytes(path, to_json(to_plain(record, path.stem)))


def _record_in(kind: type[T], path: Path) -> T | None:
    """The dataclass that `save` wrote; None where there is none, or something else."""
    try:
        return from_plain(kind, from_json(path.read_bytes()), path.stem)
    except (OSError, ValueError, TypeError, LookupError, OverflowError):
        return None
