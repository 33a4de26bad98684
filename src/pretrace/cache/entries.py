"""Entries of a cache: what was made of a text, found by the text's key and a label, and believed only when whole.

A cache is one sqlite file a model. What an entry depends on besides the text and the label is the model's
fingerprint, which names the file and is checked inside it. An entry is written whole or not at all, carries a
checksum, and is a miss rather than an answer when anything about it is wrong.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sqlite3
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from pretrace.cache.database import FORMAT, DamagedError, Database, Kind, transaction
from pretrace.cache.location import cache_folder
from pretrace.types import Quantity, Trace, Written

T = TypeVar("T")

_CHUNK = 500  # keys a query: older sqlite takes at most 999 variables
_ADD = (
    "INSERT INTO entries (key, label, checksum, body) VALUES (?, ?, ?, ?) ON CONFLICT (key, label) DO NOTHING"
)
_PUT = _ADD.replace("NOTHING", "UPDATE SET checksum = excluded.checksum, body = excluded.body")


@dataclass(frozen=True, slots=True)
class EntryCodec(Generic[T]):
    """How a content becomes bytes and is read back; `better(new, old)` says whether a new content takes the place of
    one that is there. ValueError from `encode` for what cannot be stored."""

    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]
    better: Callable[[T, T], bool] = lambda new, old: False


class CacheEntry(NamedTuple, Generic[T]):
    """A content under its key and label; all entries of a label have one codec."""

    key: bytes
    label: str
    content: T
    codec: EntryCodec[T]


class Entries:
    """The entries of one model on disk; safe to use from several threads and processes at once.

    For the fingerprint None nothing is kept or found, so that whoever asks need not care whether there is a cache.
    Raises OutputError where the folder cannot be written, at once and not at the first entry.
    """

    def __init__(self, kind: Kind, fingerprint: str | None, folder: Path | None = None) -> None:
        self.path, self._database = Path(os.devnull), None
        if fingerprint is not None:
            name = hashlib.sha256(fingerprint.encode("utf-8", "surrogatepass")).hexdigest()[:32]
            self.path = (folder or cache_folder()) / kind.folder / f"{name}-v{FORMAT}.sqlite"
            self._database = Database(self.path, fingerprint, kind)
            self._database.run(lambda connection: None)

    def find(self, keys: Iterable[bytes], label: str, codec: EntryCodec[T]) -> dict[bytes, T]:
        """What is stored under the keys and the label, without those that are missing or damaged."""
        if self._database is None:
            return {}
        wanted = dict.fromkeys(keys)
        return self._database.run(lambda connection: _find(connection, wanted, label, codec))

    def write(self, entries: Sequence[CacheEntry[Any]]) -> None:
        """Store the entries in one transaction: all of them or none.

        One that is there already stays, unless it is damaged or the new one is better. Raises OutputError when the
        disk is full; what was stored before stays readable.
        """
        if self._database is None or not entries:
            return
        bodies = [entry.codec.encode(entry.content) for entry in entries]
        self._database.run(lambda connection: _write(connection, entries, bodies))

    def close(self) -> None:
        """Let go of the file; closing twice is no mistake."""
        if self._database is not None:
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None, /
    ) -> None:
        self.close()


def _find(
    connection: sqlite3.Connection, wanted: dict[bytes, None], label: str, codec: EntryCodec[T]
) -> dict[bytes, T]:
    keys, found = list(wanted), dict[bytes, T]()
    for some in (keys[start : start + _CHUNK] for start in range(0, len(keys), _CHUNK)):
        marks = ",".join("?" * len(some))
        query = f"SELECT key, label, checksum, body FROM entries WHERE key IN ({marks}) AND label = ?"
        for key, named, checksum, body in connection.execute(query, [*some, label]):
            if key not in wanted or named != label.encode():
                raise DamagedError("its index points to other rows")
            # sqlite gives back whatever type a cell holds; a damaged one may hold any.
            if isinstance(body, bytes) and checksum == _checksum(key, label, body):
                found[key] = codec.decode(body)
    return found


def _write(
    connection: sqlite3.Connection, entries: Sequence[CacheEntry[Any]], bodies: Sequence[bytes]
) -> None:
    rows = [
        (key, label, _checksum(key, label, body), body)
        for (key, label, _, _), body in zip(entries, bodies, strict=True)
    ]
    with transaction(connection):
        before = connection.total_changes
        connection.executemany(_ADD, rows)
        if connection.total_changes - before < len(rows):
            connection.executemany(_PUT, _better(connection, entries, rows))


def _better(
    connection: sqlite3.Connection, entries: Sequence[CacheEntry[Any]], rows: Sequence[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    """The rows that are to take the place of what is stored, which is damaged or has less in it. What is stored is
    looked at inside the transaction: another process may have stored something by now."""
    labels: dict[str, dict[bytes, None]] = {}
    for entry in entries:
        labels.setdefault(entry.label, {})[entry.key] = None
    codecs = {entry.label: entry.codec for entry in entries}
    there = {label: _find(connection, keys, label, codecs[label]) for label, keys in labels.items()}
    found = []
    for entry, row in zip(entries, rows, strict=True):
        key, label, content, codec = entry
        if key not in there[label] or codec.better(content, there[label][key]):
            found.append(row)
            there[label][key] = content
    return found


def _checksum(key: bytes, label: str, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(label.encode() + b"\0", zlib.crc32(key)))


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


def _decode_text(body: bytes) -> str:
    return body.decode("utf-8", "surrogatepass")


TRACE = EntryCodec(
    _encode_trace, _decode_trace, better=lambda new, old: new.holds != old.holds and old.holds in new.holds
)
"""A trace without its states; one with more quantities takes the place of one with fewer."""
STATE = EntryCodec(_encode_array, _decode_array)
"""An array of numbers, to the last bit; it is read-only when it comes back."""
TEXT = EntryCodec(_encode_text, _decode_text)
WRITTEN: EntryCodec[Written] = EntryCodec(
    lambda written: bytes([written.ended]) + _encode_text(written.text),
    lambda body: Written(_decode_text(body[1:]), body[0] == 1),
)
NEIGHBORS: EntryCodec[tuple[str, ...]] = EntryCodec(
    lambda texts: zlib.compress(_encode_text(json.dumps(texts, ensure_ascii=False))),
    lambda body: tuple(json.loads(_decode_text(zlib.decompress(body)))),
    better=lambda new, old: len(new) > len(old),
)
"""The neighbours of one text are nearly the same text many times over, so they are compressed together. A longer list
takes the place of a shorter one, of which it is the continuation."""
