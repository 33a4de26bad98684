"""The cache: what was made of texts, kept on disk between runs (traces and states, continuations, neighbours, written
texts), where it lies, and taking some of it away.

There is one sqlite file a model. What an entry depends on besides the text and its label is the model's fingerprint,
which names the file and is checked inside it. An entry is written whole or not at all, carries a checksum, and is a
miss rather than an answer when anything about it is wrong.

Write-ahead logging lets readers and a writer work at once and survives `kill -9` at a whole transaction.
It needs a local disk: on a network drive shared by several machines point PRETRACE_CACHE elsewhere.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import shutil
import sqlite3
import struct
import threading
import warnings
import weakref
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Self, TypeVar
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from pretrace.errors import OutputError, require, require_least
from pretrace.results.atomic import explained
from pretrace.types import Quantity, Sampling, Trace, Written

T = TypeVar("T")


def cache_folder() -> Path:
    """Where caches lie: PRETRACE_CACHE unless that is off, `pretrace` below XDG_CACHE_HOME, or ~/.cache/pretrace."""
    try:
        if (chosen := os.environ.get("PRETRACE_CACHE", "off")) not in ("", "off"):
            return Path(chosen).expanduser()
        shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
        if shared.is_absolute():  # the XDG specification wants relative ones ignored
            return shared / "pretrace"
        return Path.home() / ".cache" / "pretrace"
    except RuntimeError as error:
        raise OutputError(f"no place for the cache: {error}; set PRETRACE_CACHE to a folder.") from error


def text_key(text: str, after: str = "") -> bytes:
    """The key of a text, read after another one or after none: 32 bytes that change with any character of either, lone
    surrogates included."""
    key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return hashlib.sha256(b"after" + text_key(after) + key).digest() if after else key


_WAIT = 30.0  # seconds a process waits for another one's transaction
_LOG_PAGES = 8000
"""Pages of 4 KiB that the log holds before they go to the file. Keys are hashes, so nearly each new entry is on a page
of the index of its own, and a longer log writes such a page once for many entries."""
_CURE = "set PRETRACE_CACHE to another folder, or to off, to do without a cache."
FORMAT = 2
"""A part of the file's name: files of format 1, which had other tables, are not looked at."""
_META = "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value BLOB NOT NULL)"
# A rowid table: WITHOUT ROWID would carry the bodies in the index's own tree, at twice the size.
_ENTRIES = (
    "CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, key BLOB NOT NULL, label TEXT NOT NULL, "
    "checksum INTEGER NOT NULL, body BLOB NOT NULL, UNIQUE (key, label))"
)

_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


# The last: sqlite3 cannot even say what is wrong, where its message quotes a damaged name.
_FAILURES = (sqlite3.Error, UnicodeDecodeError)
_CHUNK = 500  # keys a query: older sqlite takes at most 999 variables
_ADD = (
    "INSERT INTO entries (key, label, checksum, body) VALUES (?, ?, ?, ?) ON CONFLICT (key, label) DO NOTHING"
)
_PUT = _ADD.replace("NOTHING", "UPDATE SET checksum = excluded.checksum, body = excluded.body")


@dataclass(frozen=True, slots=True)
class _EntryCodec(Generic[T]):
    """How a content becomes bytes and is read back; `better(new, old)` says whether a new content takes the place of
    one that is there. ValueError from `encode` for what cannot be stored."""

    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]
    better: Callable[[T, T], bool] = lambda new, old: False


CacheEntry = tuple[bytes, str, Any, _EntryCodec[Any]]
"""A content under its key and label: key, label, content, and the codec of all entries of the label."""


class Entries:
    """The entries of one model on disk, in the folder of their `kind`; usable from threads, forks and other processes
    at once. For the fingerprint None nothing is kept or found. OutputError where the folder cannot be written, at once
    and not at the first entry. The connection is opened when first used in a process and never crosses a fork."""

    def __init__(self, kind: str, fingerprint: str | None, folder: Path | None = None) -> None:
        self.path, self._fingerprint = Path(os.devnull), fingerprint
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._inode: tuple[int, int] | None = None
        self._closed = False
        if fingerprint is not None:
            name = hashlib.sha256(fingerprint.encode("utf-8", "surrogatepass")).hexdigest()[:32]
            self.path = (folder or cache_folder()) / kind / f"{name}-v{FORMAT}.sqlite"
            _opened.add(self)
            self._run(lambda connection: None)

    def find(self, keys: Iterable[bytes], label: str, codec: _EntryCodec[T]) -> dict[bytes, T]:
        """What is stored under the keys and the label, without those that are missing or damaged."""
        if self._fingerprint is None:
            return {}
        wanted = dict.fromkeys(keys)
        return self._run(lambda connection: _find(connection, wanted, label, codec))

    def write(self, entries: Sequence[CacheEntry]) -> None:
        """Store the entries in one transaction. One that is there already stays, unless it is damaged or the new
        one is better. OutputError when the disk is full; what was stored before stays readable."""
        if self._fingerprint is None or not entries:
            return
        bodies = [(key, label, codec.encode(content)) for key, label, content, codec in entries]
        rows = [(key, label, _checksum(key, label, body), body) for key, label, body in bodies]
        self._run(lambda connection: _write(connection, entries, rows))

    def close(self) -> None:
        """Close the file for good; closing twice is no mistake."""
        with self._lock:
            self._closed = True
            self._drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What `work` returns; a damaged file is set aside and the work done once more. OutputError where the file
        cannot be used."""
        with self._lock:
            if self._closed:
                raise ValueError(f"the cache {self.path} is closed")
            try:
                try:
                    return work(self._connected())
                except _FAILURES as error:
                    if isinstance(error, sqlite3.Error) and _code(error) not in _DAMAGE:
                        raise
                    self._drop()
                    self._set_aside(error)
                return work(self._connected())
            except (*_FAILURES, OSError) as error:
                self._drop()
                raise OutputError(_refusal(f"cache {self.path}", error)) from error

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with _alone(self.path.parent):
                self._inode = _inode(self.path) if self.path.exists() else None
                self._connection = _connect(self.path, self._fingerprint or "")
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
            for path in _logs(self.path):
                path.unlink(missing_ok=True)
        warnings.warn(
            f"the cache {self.path} is damaged ({error}) and was set aside as {damaged.name}; what it held is "
            "computed again.",
            stacklevel=5,
        )


def _connect(path: Path, fingerprint: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
    try:
        connection.text_factory = bytes  # damaged text must reach our checks, not fail to decode
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
        name = fingerprint.encode("utf-8", "surrogatepass")
        wanted = {b"fingerprint": name, b"format": str(FORMAT).encode()}
        with connection:  # also finds out at once whether the file can be written
            for statement in ("BEGIN IMMEDIATE", _META, _ENTRIES):
                connection.execute(statement)
            rows = [(name.decode(), value) for name, value in wanted.items()]
            connection.executemany("INSERT OR IGNORE INTO meta (name, value) VALUES (?, ?)", rows)
        connection.execute("SELECT key, label, checksum, body FROM entries LIMIT 0")
        if dict(connection.execute("SELECT name, value FROM meta")) != wanted:
            raise _damaged("it was written for another model or format")
    except _FAILURES as error:
        connection.close()
        if _code(error) == sqlite3.SQLITE_ERROR:  # our own words do not fit: it has other tables or columns
            raise _damaged(str(error)) from error
        raise
    return connection


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process at a time open, make or set aside files of a folder: sqlite's own lock, which dies with its
    holder."""
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


def _damaged(reason: str) -> sqlite3.Error:
    """What sqlite raises for damage, for a file that it takes for sound, and that still is not ours or contradicts
    itself."""
    error = sqlite3.DatabaseError(reason)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def _refusal(cache: str, error: Exception) -> str:
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if full or _code(error) == sqlite3.SQLITE_FULL:
        return f"the {cache} cannot grow: the disk is full; free some space, {_CURE}"
    if _code(error) == sqlite3.SQLITE_BUSY:
        return f"the {cache} was held by another process for {_WAIT:.0f} seconds; {_CURE}"
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"the {cache} cannot be used: {reason}; {_CURE}"


def _find(
    connection: sqlite3.Connection, wanted: dict[bytes, None], label: str, codec: _EntryCodec[T]
) -> dict[bytes, T]:
    keys, found = list(wanted), dict[bytes, T]()
    for some in (keys[start : start + _CHUNK] for start in range(0, len(keys), _CHUNK)):
        marks = ",".join("?" * len(some))
        query = f"SELECT key, label, checksum, body FROM entries WHERE key IN ({marks}) AND label = ?"
        for key, named, checksum, body in connection.execute(query, [*some, label]):
            if key not in wanted or named != label.encode():
                raise _damaged("its index points to other rows")
            # sqlite gives back whatever type a cell holds; a damaged one may hold any.
            if isinstance(body, bytes) and checksum == _checksum(key, label, body):
                found[key] = codec.decode(body)
    return found


def _write(
    connection: sqlite3.Connection, entries: Sequence[CacheEntry], rows: Sequence[tuple[Any, ...]]
) -> None:
    with connection:  # all that is written inside, or nothing of it
        connection.execute("BEGIN IMMEDIATE")
        before = connection.total_changes
        connection.executemany(_ADD, rows)
        if connection.total_changes - before == len(rows):
            return
        # What is to take the place of what is stored, which is damaged or has less in it. What is stored is looked at
        # inside the transaction: another process may have stored something by now.
        for (key, label, content, codec), row in zip(entries, rows, strict=True):
            there = _find(connection, {key: None}, label, codec)
            if key not in there or codec.better(content, there[key]):
                connection.execute(_PUT, row)


def _checksum(key: bytes, label: str, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(label.encode() + b"\0", zlib.crc32(key)))


# sqlite forbids carrying a connection across a fork, even to close it in the child (it would tidy away a
# log the parent still writes). So every connection is closed before a fork, and opened again when used.
_opened: weakref.WeakSet[Entries] = weakref.WeakSet()
_held: list[Entries] = []


def _before_fork() -> None:
    for store in list(_opened):
        store._lock.acquire()
        _held.append(store)
        store._drop()


def _after_fork() -> None:
    while _held:
        _held.pop()._lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


Array = npt.NDArray[Any]

_FLOATS = {Quantity.LOGP.value: 1, (Quantity.LOGP | Quantity.MOMENTS).value: 3}
_HOLDS = {number: holds for holds, number in _FLOATS.items()}
_HEAD = struct.Struct("<qq")
_INT, _FLOAT = np.dtype("<i4"), np.dtype("<f4")


def _encode_trace(trace: Trace) -> bytes:
    """Encode how many of the token-by-token quantities are there and how much was cut, then the arrays in a row."""
    floats = [one for one in (trace.logp, trace.mean, trace.std) if one is not None]
    if len(floats) == 2 or any(len(one) != len(trace.tokens) for one in floats):
        raise ValueError("a trace's arrays differ in length, or it has a mean without a standard deviation")
    head = _HEAD.pack(_HOLDS[len(floats)], int(trace.cut))
    tokens = trace.tokens.astype(_INT, copy=False).tobytes()
    return b"".join([head, tokens, *[one.astype(_FLOAT, copy=False).tobytes() for one in floats]])


def _decode_trace(body: bytes) -> Trace:
    holds, cut = _HEAD.unpack_from(body)
    count = _FLOATS[holds]
    length = (len(body) - _HEAD.size) // (4 * (count + 1))
    tokens = np.frombuffer(body, _INT, length, _HEAD.size).astype(np.int32, copy=False)
    floats = np.frombuffer(body, _FLOAT, offset=_HEAD.size + 4 * length).astype(np.float32, copy=False)
    logp, *moments = floats.reshape(count, length)
    mean, std = moments or (None, None)
    return Trace(tokens, logp, mean, std, cut)


def _encode_array(array: Array) -> bytes:
    if array.dtype.kind not in "biuf":
        raise ValueError(f"a state of {array.dtype} cannot be stored")
    made = io.BytesIO()
    np.save(made, np.asarray(array, array.dtype.newbyteorder("<"), order="C"), allow_pickle=False)
    return made.getvalue()


def _decode_array(body: bytes) -> Array:
    array: Array = np.load(io.BytesIO(body), allow_pickle=False)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    array.flags.writeable = False
    return array


def _encode_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


TRACE = _EntryCodec(
    _encode_trace, _decode_trace, better=lambda new, old: new.holds != old.holds and old.holds in new.holds
)
"""A trace without its states; one with more quantities takes the place of one with fewer."""
STATE = _EntryCodec(_encode_array, _decode_array)
"""An array of numbers, to the last bit; it is read-only when it comes back."""
TEXT = _EntryCodec(_encode_text, lambda body: body.decode("utf-8", "surrogatepass"))
"""A continuation; its label is `Draw.label`."""
WRITTEN: _EntryCodec[Written] = _EntryCodec(
    lambda written: bytes([written.ended]) + _encode_text(written.text),
    lambda body: Written(TEXT.decode(body[1:]), body[0] == 1),
)
"""What a model wrote until it was done by its own account, or was cut off."""
NEIGHBORS: _EntryCodec[tuple[str, ...]] = _EntryCodec(
    lambda texts: zlib.compress(_encode_text(json.dumps(texts, ensure_ascii=False))),
    lambda body: tuple(json.loads(TEXT.decode(zlib.decompress(body)))),
    better=lambda new, old: len(new) > len(old),
)
"""The neighbours of one text are nearly the same text many times over, so they are compressed together. A longer list
takes the place of a shorter one, of which it is the continuation."""


Batch = tuple[Sequence[str], Sequence[Written]]
Write = Callable[[Mapping[str, Written]], Iterable[Batch]]
"""Given what is known already, yields batches of texts that are not, with what was written for each."""


@dataclass(frozen=True, slots=True)
class Draw:
    """How texts are continued: tokens, sampling, and the seed of what is drawn; ExpressionError for a value out of
    range."""

    tokens: int = 32
    sampling: Sampling = field(default_factory=Sampling)
    seed: int = 0

    def __post_init__(self) -> None:
        t, p, r = self.sampling.temperature, self.sampling.top_p, self.sampling.repetition_penalty
        require(0 <= t < float("inf"), f"sampling: temperature must be 0 or more, found {t}.")
        require(0 < p <= 1, f"sampling: top_p must be above 0 and at most 1, found {p}.")
        require(0 < r < float("inf"), f"sampling: repetition_penalty must be above 0, found {r}.")
        require_least("sampling", self, tokens=1, seed=0)

    @property
    def label(self) -> str:
        """The same as text, all of it: what tells the continuations of one prompt apart."""
        how = self.sampling.temperature, self.sampling.top_p, self.sampling.repetition_penalty
        t, p, r = (float(value).hex() for value in how)
        return f"tokens={int(self.tokens)} temperature={t} top_p={p} repetition_penalty={r} seed={int(self.seed)}"


def written_once(fingerprint: str | None, texts: Sequence[str], label: str, write: Write) -> list[Written]:
    """What was written for each text, in order: from disk where it is there, else by `write`, every batch of which
    is stored before the next is begun. An empty answer is not stored: it is asked for again. For the fingerprint
    None nothing is kept. Raises OutputError where the cache cannot be written."""
    keys = {text: text_key(text) for text in texts}
    with Entries("written", fingerprint) as store:
        stored = store.find(keys.values(), label, WRITTEN)
        known = {text: stored[key] for text, key in keys.items() if key in stored}
        for some, written in write(dict(known)):
            made = zip(some, written, strict=True)
            store.write([(keys[text], label, one, WRITTEN) for text, one in made if one.text])
            known.update(zip(some, written, strict=True))
    return [known[text] for text in texts]


KINDS = {
    "traces": "log-probabilities of texts",
    "continuations": "continuations of texts",
    "neighbors": "neighbours of texts",
    "written": "answers and translations",
    "adapters": "tuned adapters",
    "planted": "planted models of a power measurement that was stopped",
    "gguf": "unpacked .gguf files",
    "hashes": "hashes of files of weights",
}
"""The folders of the cache that can be made again. The others, `audits.jsonl` and `servers`, say what was done and met
on this machine: they stay."""
_OURS = re.compile(r"[0-9a-f]{16,64}(-v\d+\.sqlite(\.damaged)?|\.json)?")
_BESIDE = ("-wal", "-shm")


@dataclass(frozen=True, slots=True)
class CachedFile:
    """One file or folder of the cache. `entries` is None where it has none to count, or they cannot be counted; `model`
    is what it says of the model it belongs to: the beginning of the weights' SHA-256, or a server's name for it."""

    kind: str
    path: Path
    size: int
    changed: float
    entries: int | None
    model: str
    fingerprint: str


def kept(folder: Path | None = None) -> tuple[CachedFile, ...]:
    """Everything in the cache that can be made again, by kind."""
    found = [(kind, path) for kind in KINDS for path in sorted((folder or cache_folder()).glob(f"{kind}/*"))]
    ours = [(kind, path) for kind, path in found if _OURS.fullmatch(path.name) and not path.is_symlink()]
    return tuple(_described(kind, path) for kind, path in ours)


def remove(some: Collection[CachedFile]) -> int:
    """Take these away; the bytes that were freed. OutputError where one cannot be removed."""
    for one in some:
        with explained(one.path):
            if one.path.is_dir():
                shutil.rmtree(one.path)
                continue
            # the main file first: sqlite throws away a log without one, so a kill in between is harmless
            for path in (one.path, *_logs(one.path)):
                path.unlink(missing_ok=True)
    return sum(one.size for one in some)


def _described(kind: str, path: Path) -> CachedFile:
    parts = [path, *_logs(path)] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    states = [part.stat() for part in parts]
    size = sum(state.st_size for state in states)
    changed = max((state.st_mtime for state in states), default=path.stat().st_mtime)
    entries, fingerprint = _looked_into(path) if path.suffix == ".sqlite" else (None, "")
    return CachedFile(kind, path, size, changed, entries, _model(fingerprint), fingerprint)


def _logs(path: Path) -> list[Path]:
    found = (path.with_name(path.name + suffix) for suffix in _BESIDE)
    return [one for one in found if one.exists()]


def _looked_into(path: Path) -> tuple[int | None, str]:
    """How many entries a file has, and the fingerprint of its model; nothing of a damaged one."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
            [[number]] = connection.execute("SELECT count(*) FROM entries")
            rows = connection.execute("SELECT value FROM meta WHERE name = 'fingerprint'").fetchall()
    except sqlite3.Error:
        return None, ""
    return int(number), bytes(rows[0][0]).decode("utf-8", "replace") if rows else ""


def _model(fingerprint: str) -> str:
    """The innermost model that a fingerprint names."""
    try:
        found: Any = json.loads(fingerprint)
    except ValueError:
        return ""
    for _ in range(5):
        if not isinstance(found, dict):
            return ""
        if name := found.get("weights") or found.get("model"):
            return str(name)[:12] if re.fullmatch(r"[0-9a-f]{64}", str(name)) else str(name)
        inner = next(
            (found[one] for one in ("base", "continued by", "followed by", "causal") if one in found), ""
        )
        found = json.loads(inner) if isinstance(inner, str) and inner.startswith("{") else inner
    return ""
