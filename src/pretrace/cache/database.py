"""One sqlite file of a cache: opened, checked, shared between processes, and set aside when it is damaged.

Write-ahead logging lets readers and a writer work at once and survives `kill -9` at a whole transaction.
It needs a local disk: on a network drive shared by several machines point PRETRACE_CACHE elsewhere.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pretrace.errors import OutputError

T = TypeVar("T")

_WAIT = 30.0  # seconds a process waits for another one's transaction
_LOG_PAGES = 8000
"""Pages of 4 KiB that the log holds before they go to the file. Keys are hashes, so nearly each new entry is on a page
of the index of its own, and a longer log writes such a page once for many entries."""
_CURE = "set PRETRACE_CACHE to another folder, or do without a cache (--no-cache)."
FORMAT = 2
"""A part of the file's name: files of format 1, which had other tables, are not looked at."""
_META = "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value BLOB NOT NULL)"
# A rowid table: WITHOUT ROWID would carry the bodies in the index's own tree, at twice the size.
_ENTRIES = (
    "CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, key BLOB NOT NULL, label TEXT NOT NULL, "
    "checksum INTEGER NOT NULL, body BLOB NOT NULL, UNIQUE (key, label))"
)

_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class DamagedError(Exception):
    """A file that sqlite takes for sound, and that still is not ours or contradicts itself."""


# The last: sqlite3 cannot even say what is wrong, where its message quotes a damaged name.
_FAILURES = (sqlite3.Error, DamagedError, UnicodeDecodeError)


@dataclass(frozen=True, slots=True)
class Kind:
    """What a cache file holds: its folder below the cache, and the words for messages ("trace cache", "traces")."""

    folder: str
    noun: str
    contents: str


class Database:
    """A sqlite file that belongs to one fingerprint; usable from threads, forks and other processes.

    The connection is opened when first used in a process and never crosses a fork.
    """

    def __init__(self, path: Path, fingerprint: str, kind: Kind) -> None:
        self.path = path
        self._kind = kind
        self._fingerprint = fingerprint
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._inode: tuple[int, int] | None = None
        self._closed = False
        _databases.add(self)

    def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What `work` returns, given a connection.

        A damaged file is set aside and the work done once more on a new one. Raises OutputError where
        the file cannot be opened or written; the file stays usable then.
        """
        with self._lock:
            if self._closed:
                raise ValueError(f"the {self._kind.noun} {self.path} is closed")
            try:
                return self._attempt(work)
            except (*_FAILURES, OSError) as error:
                self._drop()
                raise OutputError(_refusal(f"{self._kind.noun} {self.path}", error)) from error

    def close(self) -> None:
        """Close the file for good; closing twice is no mistake."""
        with self._lock:
            self._closed = True
            self._drop()

    def _attempt(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return work(self._connected())
        except _FAILURES as error:
            if not _is_damage(error):
                raise
            self._drop()
            self._set_aside(error)
        return work(self._connected())

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with _alone(self.path.parent):
                self._inode = _inode(self.path) if self.path.exists() else None
                self._connection = _connect(self.path, self._fingerprint)
                self._inode = _inode(self.path)
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None

    def _set_aside(self, error: Exception) -> None:
        """Rename the damaged file, unless another process has put a new one in its place already."""
        with _alone(self.path.parent):
            if not self.path.exists() or _inode(self.path) != self._inode:
                return
            damaged = self.path.with_name(self.path.name + ".damaged")
            self.path.replace(damaged)
            # After the main file: sqlite throws away a log without one, so a kill in between is harmless.
            for suffix in ("-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        warnings.warn(
            f"the {self._kind.noun} {self.path} is damaged ({error}) and was set aside as {damaged.name}; "
            f"its {self._kind.contents} are computed anew.",
            stacklevel=5,
        )


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All that is written inside, or nothing of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _connect(path: Path, fingerprint: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
    try:
        connection.text_factory = bytes  # damaged text must reach our checks, not fail to decode
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
        wanted = {
            b"fingerprint": fingerprint.encode("utf-8", "surrogatepass"),
            b"format": str(FORMAT).encode(),
        }
        with transaction(connection):  # also finds out at once whether the file can be written
            for statement in (_META, _ENTRIES):
                connection.execute(statement)
            rows = [(name.decode(), value) for name, value in wanted.items()]
            connection.executemany("INSERT OR IGNORE INTO meta (name, value) VALUES (?, ?)", rows)
        connection.execute("SELECT key, label, checksum, body FROM entries LIMIT 0")
        if dict(connection.execute("SELECT name, value FROM meta")) != wanted:
            raise DamagedError("it was written for another model or format")
    except _FAILURES as error:
        connection.close()
        if _code(error) == sqlite3.SQLITE_ERROR:  # our own words do not fit: it has other tables or columns
            raise DamagedError(str(error)) from error
        raise
    return connection


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process at a time open, make or set aside files of a folder.

    The lock is sqlite's own on an empty file: it works wherever the cache works, and dies with its holder.
    """
    guard = sqlite3.connect(folder / "opening.lock", timeout=_WAIT, isolation_level=None)
    try:
        guard.execute("BEGIN EXCLUSIVE")
        yield
    finally:
        guard.close()


def _inode(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _code(error: BaseException) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _is_damage(error: Exception) -> bool:
    return isinstance(error, DamagedError | UnicodeDecodeError) or _code(error) in _DAMAGE


def _refusal(cache: str, error: Exception) -> str:
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if full or _code(error) == sqlite3.SQLITE_FULL:
        return f"the {cache} cannot grow: the disk is full; free some space, {_CURE}"
    if _code(error) == sqlite3.SQLITE_BUSY:
        return f"the {cache} was held by another process for {_WAIT:.0f} seconds; {_CURE}"
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"the {cache} cannot be used: {reason}; {_CURE}"


# sqlite forbids carrying a connection across a fork, even to close it in the child (it would tidy away a
# log the parent still writes). So every connection is closed before a fork, and opened again when used.
_databases: weakref.WeakSet[Database] = weakref.WeakSet()
_held: list[Database] = []


def _before_fork() -> None:
    for database in list(_databases):
        database._lock.acquire()
        _held.append(database)
        database._drop()


def _after_fork() -> None:
    while _held:
        _held.pop()._lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
