"""What was read inside a model, as rows beside the traces: one a text and state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.cache.rows import Row, Table, checksum
from pretrace.types import Firing, State

_KINDS = ("|b1", "|u1", "<u2", "<u4", "<u8", "|i1", "<i2", "<i4", "<i8", "<f2", "<f4", "<f8")


def state_name(state: State) -> str:
    """The name a state has on disk: equal for equal states, and another for every other.

    >>> state_name(Firing("any", threshold=1))
    'firing any>1.0 gated=False'
    """
    if isinstance(state, Firing):
        threshold = float(state.threshold) + 0.0  # -0.0 equals 0.0
        return f"firing {state.pool}>{threshold!r} gated={bool(state.gated)}"
    return f"hidden {'all' if state.layer is None else int(state.layer)}"


def encode_state(key: bytes, state: State, array: npt.NDArray[Any]) -> Row:
    """The row that keeps an array of numbers to the last bit; ValueError for one of anything else."""
    little = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
    if little.dtype.str not in _KINDS:
        raise ValueError(f"a state of {array.dtype} cannot be stored")
    name, kind, body = (
        state_name(state),
        f"{little.dtype.str} {','.join(map(str, array.shape))}",
        little.tobytes(),
    )
    return key, name, kind, _checksum(key, name.encode(), kind.encode(), body), body


def _decode(row: Sequence[object]) -> npt.NDArray[Any] | None:
    key, name, kind, expected, body = row
    # sqlite gives back whatever type a cell holds; a damaged one may hold any.
    if not (isinstance(key, bytes) and isinstance(name, bytes) and isinstance(kind, bytes)):
        return None
    if not isinstance(body, bytes) or expected != _checksum(key, name, kind, body):
        return None
    dtype, _, sizes = kind.decode("ascii", "replace").partition(" ")
    if dtype not in _KINDS:
        return None
    try:
        array = np.frombuffer(body, dtype).reshape([int(size) for size in sizes.split(",") if size])
    except ValueError:
        return None
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _checksum(key: bytes, name: bytes, kind: bytes, body: bytes) -> int:
    return checksum(key, name, b"\x00", kind, b"\x00", body)


# Of two readings of one state the first stays, as the first of two traces does.
STATES: Table[npt.NDArray[Any]] = Table("states", _decode, label="state", carries={"kind": "TEXT"})
