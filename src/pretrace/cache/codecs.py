"""What caches hold, as bytes and back: traces, states, texts, neighbours of a text, and what a model wrote."""

from __future__ import annotations

import io
import json
import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.cache.entries import Codec
from pretrace.types import Quantity, Trace, Written

Array = npt.NDArray[Any]

_FLOATS = {Quantity.LOGP.value: 1, (Quantity.LOGP | Quantity.MOMENTS).value: 3}
_HOLDS = {number: holds for holds, number in _FLOATS.items()}
_HEAD = struct.Struct("<qq")
_INT, _FLOAT = np.dtype("<i4"), np.dtype("<f4")


def _encode_trace(trace: Trace) -> bytes:
    floats = [array for array in (trace.logp, trace.mean, trace.std) if array is not None]
    length = len(trace.tokens)
    if len(floats) not in _HOLDS or {len(array) for array in floats} != {length}:
        raise ValueError("a trace's arrays differ in length, or it has a mean without a standard deviation")
    head = _HEAD.pack(_HOLDS[len(floats)], int(trace.cut))
    return b"".join([head, _bytes(trace.tokens, _INT), *[_bytes(array, _FLOAT) for array in floats]])


def _bytes(array: Array, kind: np.dtype[Any]) -> bytes:
    return (array if array.dtype == kind else array.astype(kind)).tobytes()


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


TRACE = Codec(
    _encode_trace, _decode_trace, better=lambda new, old: new.holds != old.holds and old.holds in new.holds
)
"""A trace without its states; one with more quantities takes the place of one with fewer."""
STATE = Codec(_encode_array, _decode_array)
"""An array of numbers, to the last bit; it is read-only when it comes back."""
TEXT = Codec(_encode_text, _decode_text)
WRITTEN: Codec[Written] = Codec(
    lambda written: bytes([written.ended]) + _encode_text(written.text),
    lambda body: Written(_decode_text(body[1:]), body[0] == 1),
)
NEIGHBORS: Codec[tuple[str, ...]] = Codec(
    lambda texts: zlib.compress(_encode_text(json.dumps(texts, ensure_ascii=False))),
    lambda body: tuple(json.loads(_decode_text(zlib.decompress(body)))),
    better=lambda new, old: len(new) > len(old),
)
"""The neighbours of one text are nearly the same text many times over, so they are compressed together. A longer list
takes the place of a shorter one, of which it is the continuation."""
