"""Traces kept between runs: one sqlite file a model, a row a text, found by the hash of the text.

What was read inside the model (`Trace.states`) lies in a second table, a row a text and state, written
in the same transaction. A row is written whole or not at all, carries a checksum, and is a miss rather
than an answer when anything about it is wrong. What a trace depends on besides its text (weights, dtype,
tokenizer, start rule, length limit) is the back end's fingerprint, which names the file and is checked
inside it.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, overload

import numpy as np
import numpy.typing as npt

from pretrace.cache.database import Database, transaction
from pretrace.cache.rows import Row, Rows, Table, checksum, schema
from pretrace.cache.states import STATES, encode_state, state_name
from pretrace.errors import OutputError
from pretrace.types import Quantity, States, Trace

_TOKENWISE = Quantity.LOGP | Quantity.MOMENTS  # the others are states
_ARRAYS = {Quantity.LOGP: 2, _TOKENWISE: 4}


class Traces(Protocol):
    """Where traces are looked up and put down; `open_store` gives one."""

    def get(self, keys: Sequence[bytes], want: Quantity, states: States = frozenset()) -> list[Trace | None]:
        """For each key the stored trace, if it carries at least what is wanted, or None."""
        ...

    def put(self, keys: Sequence[bytes], traces: Sequence[Trace]) -> None:
        """Store one trace a key, all of them or none."""
        ...

    def close(self) -> None:
        """Let go of the file; closing twice is no mistake."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None, /
    ) -> None: ...


class TraceStore:
    """Traces of one back end on disk; safe to use from several threads and processes at once.

    It can be pickled: the copy opens the same file by itself. Raises OutputError where the folder cannot
    be written, at once and not at the first trace.
    """

    def __init__(self, fingerprint: str, folder: Path) -> None:
        self.fingerprint = fingerprint
        self.folder = folder
        name = hashlib.sha256(fingerprint.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self.path = folder / "traces" / f"{name}-v{_SCHEMA.format}.sqlite"
        self._traces = Rows(TRACES)
        self._states = Rows(STATES)
        self._database = Database(self.path, fingerprint, _SCHEMA)
        self._database.run(lambda connection: None)

    def get(self, keys: Sequence[bytes], want: Quantity, states: States = frozenset()) -> list[Trace | None]:
        """For each key the stored trace, if it carries at least what is wanted, or None.

        A trace may carry more quantities than were wanted, and exactly the states. Its arrays are read-only.
        """
        want &= _TOKENWISE
        found = self._database.run(lambda connection: self._find(connection, keys, want, states))
        return [found.get(key) for key in keys]

    def put(self, keys: Sequence[bytes], traces: Sequence[Trace]) -> None:
        """Store one trace a key in one transaction: all of them or none.

        A trace takes the place of one with fewer quantities, never of one with more; states are added to
        those that are there. Raises OutputError when the disk is full; what was stored before stays readable.
        """
        pairs = list(zip(keys, traces, strict=True))
        rows = [_encode(key, trace) for key, trace in pairs]
        states = [encode_state(key, *item) for key, trace in pairs for item in trace.states.items()]
        if rows:
            self._database.run(lambda connection: self._write(connection, rows, states))

    def close(self) -> None:
        """Let go of the file; closing twice is no mistake."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None, /
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[type[TraceStore], tuple[str, Path]]:
        return TraceStore, (self.fingerprint, self.folder)

    def _find(
        self, connection: sqlite3.Connection, keys: Iterable[bytes], want: Quantity, states: States
    ) -> dict[bytes, Trace]:
        traces = self._traces.find(connection, keys)
        # Looked up for every key, so that of a text with several damaged rows all are mended by one put.
        read = {state: self._states.find(connection, keys, state_name(state)) for state in states}
        found = {}
        for key, trace in traces.items():
            inside = {state: arrays[key] for state, arrays in read.items() if key in arrays}
            if trace.holds & want == want and len(inside) == len(states):
                found[key] = replace(trace, states=inside)
        return found

    def _write(self, connection: sqlite3.Connection, rows: Sequence[Row], states: Sequence[Row]) -> None:
        with transaction(connection):
            self._traces.write(connection, rows)
            self._states.write(connection, states)


class NullStore:
    """A store that keeps nothing, so that whoever asks need not care whether there is a cache."""

    def get(self, keys: Sequence[bytes], want: Quantity, states: States = frozenset()) -> list[Trace | None]:
        """None for every key."""
        return [None] * len(keys)

    def put(self, keys: Sequence[bytes], traces: Sequence[Trace]) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None, /
    ) -> None:
        pass


@overload
def open_store(fingerprint: str, folder: Path | None = None) -> TraceStore: ...
@overload
def open_store(fingerprint: None, folder: Path | None = None) -> NullStore: ...
def open_store(fingerprint: str | None, folder: Path | None = None) -> TraceStore | NullStore:
    """The traces stored for a back end's fingerprint, below `cache_folder()` unless a folder is given;
    for None a store that keeps nothing. Raises OutputError where the folder cannot be written."""
    if fingerprint is None:
        return NullStore()
    return TraceStore(fingerprint, folder or cache_folder())


def cache_folder() -> Path:
    """Where caches lie: PRETRACE_CACHE, else `pretrace` below XDG_CACHE_HOME, else ~/.cache/pretrace."""
    try:
        if chosen := os.environ.get("PRETRACE_CACHE"):
            return Path(chosen).expanduser()
        shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
        if shared.is_absolute():  # the XDG specification wants relative ones ignored
            return shared / "pretrace"
        return Path.home() / ".cache" / "pretrace"
    except RuntimeError as error:
        raise OutputError(
            f"no place for the trace cache: {error}; set PRETRACE_CACHE to a folder, or pass --no-cache."
        ) from error


def text_key(text: str) -> bytes:
    """The key of a text: 32 bytes that change with any character of it, lone surrogates included."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _encode(key: bytes, trace: Trace) -> Row:
    moments = [array for array in (trace.mean, trace.std) if array is not None]
    arrays = [_bytes(trace.tokens, "<i4"), *(_bytes(array, "<f4") for array in (trace.logp, *moments))]
    sizes = {len(array) for array in arrays}
    if len(sizes) != 1 or len(arrays) != _ARRAYS[trace.holds]:
        raise ValueError("a trace's arrays differ in length, or it has a mean without a standard deviation")
    holds, cut, body = trace.holds.value, int(trace.cut), b"".join(arrays)
    return key, holds, cut, _checksum(key, holds, cut, body), body


def _bytes(array: npt.NDArray[Any], kind: str) -> bytes:
    return np.asarray(array, dtype=kind).tobytes()


def _decode(row: Sequence[object]) -> Trace | None:
    key, holds, cut, expected, body = row
    # sqlite gives back whatever type a cell holds; a damaged one may hold any.
    if not (isinstance(key, bytes) and isinstance(body, bytes)):
        return None
    if not (isinstance(holds, int) and isinstance(cut, int)) or expected != _checksum(key, holds, cut, body):
        return None
    count = {quantity.value: number for quantity, number in _ARRAYS.items()}.get(holds, 0)
    if not count or len(body) % (4 * count):
        return None
    length = len(body) // (4 * count)
    tokens = np.frombuffer(body, "<i4", length).astype(np.int32, copy=False)
    floats = np.frombuffer(body, "<f4", offset=4 * length).astype(np.float32, copy=False)
    rows = floats.reshape(count - 1, length)
    return Trace(tokens, rows[0], rows[1], rows[2], cut) if count == 4 else Trace(tokens, rows[0], cut=cut)


def _checksum(key: bytes, holds: int, cut: int, body: bytes) -> int:
    return checksum(key, struct.pack("<qq", holds, cut), body)


TRACES: Table[Trace] = Table(
    "traces",
    _decode,
    carries={"holds": "INTEGER", "cut": "INTEGER"},
    better="(excluded.holds & holds) = holds AND excluded.holds <> holds",
)
_SCHEMA = schema("trace cache", "traces", TRACES, STATES)
