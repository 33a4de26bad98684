"""Texts as the bytes that are compared: lower case, and runs of white space as one space; or exactly as they stand.

Folding is one rule for the user's texts and for the corpus, whichever way it is computed: numpy alone, or kernels of
numba, which also take the texts out of JSON lines without building an object a line. Letters are lowered one by one,
and only where the lower letter has as many bytes in UTF-8 (all of Latin, Greek, Cyrillic and Armenian but a handful).
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Spans = npt.NDArray[np.int64]
"""Documents in a buffer: [documents, 2], start and end."""

BLOCK = 24
"""Bytes that are compared by their hash. A document begins at a multiple of it in a buffer, so that what is found in it
depends on no other document."""
GAP = 0xFF
"""The byte between documents; it stands in no UTF-8, so no common run crosses it."""
SPACE = 0x20
_SPACES = re.compile(r"\s")


@cache
def _lowered() -> npt.NDArray[np.uint16]:
    """For every character below U+10000 the one that it is compared as, uint16 [65536]; 32 for white space."""
    made = np.arange(0x10000, dtype=np.uint16)
    for code in range(0x10000):
        if 0xD800 <= code < 0xE000:
            continue
        character = chr(code)
        if _SPACES.match(character):
            made[code] = SPACE
            continue
        lower = character.lower()
        if len(lower) == 1 and len(lower.encode()) == len(character.encode()):
            made[code] = ord(lower)
    made[0] = SPACE
    return made


@cache
def plain(*, exact: bool, json: bool) -> Bytes:
    """For every byte what it becomes where it stands alone, uint8 [256]; 0 where more must be looked at: bytes of
    longer characters, in JSON also quotes and backslashes, and all where every byte counts."""
    made = np.zeros(256, dtype=np.uint8)
    if not exact:
        made[:128] = _lowered()[:128]
        if json:
            made[[ord('"'), ord("\\")]] = 0
    return made


def has_numba() -> bool:
    """Whether the fast kernels can be had (the extra `scan`)."""
    return importlib.util.find_spec("numba") is not None


def folded(text: str | bytes, *, exact: bool = False) -> bytes:
    """One text as it is compared; without white space at both ends unless `exact`."""
    written = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if exact:
        return bytes(written).replace(b"\xff", b"?")
    buffer, spans = packed([written], exact=False, fast=False)
    start, end = spans[0]
    return buffer[start:end].tobytes().strip(b" ")


def packed(documents: Sequence[bytes], *, exact: bool, fast: bool) -> tuple[Bytes, Spans]:
    """Documents as they are compared, one behind the other in one buffer, each at a multiple of `BLOCK`; and their
    places. The buffer ends with a whole block of gaps."""
    joined = np.frombuffer(bytes([GAP]).join((*documents, b"")), dtype=np.uint8)
    if fast:
        from pretrace.scan import kernels

        out = np.empty(len(joined) + BLOCK * (len(documents) + 2), dtype=np.uint8)
        spans = np.empty((len(documents), 2), dtype=np.int64)
        size = kernels.fold(joined, _lowered(), plain(exact=exact, json=False), exact, out, spans)
        return out[:size], spans
    if not exact and len(joined):
        joined = _folded_in_numpy(joined)
    ends = np.flatnonzero(joined == GAP)
    starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64) if len(ends) else ends
    sizes = ends - starts
    room = -(-(sizes + 1) // BLOCK) * BLOCK
    places = np.concatenate([[0], np.cumsum(room)]).astype(np.int64)
    out = np.full(int(places[-1]) + BLOCK, GAP, dtype=np.uint8)
    for place, start, end in zip(places.tolist(), starts.tolist(), ends.tolist(), strict=False):
        out[place : place + end - start] = joined[start:end]
    return out, np.stack([places[:-1], places[:-1] + sizes], axis=1)


def _folded_in_numpy(joined: Bytes) -> Bytes:
    """The same as the kernel `fold`, a few passes over the whole buffer."""
    table = _lowered()
    made = table[:128].astype(np.uint8)[np.minimum(joined, 127)]
    made[joined > 127] = joined[joined > 127]
    following = joined[1:] & 0xC0 == 0x80
    two = np.flatnonzero((joined[:-1] >= 0xC2) & (joined[:-1] <= 0xDF) & following)
    if len(two):
        code = table[(joined[two] & 31).astype(np.int64) << 6 | joined[two + 1] & 63].astype(np.int64)
        space = code == SPACE
        made[two] = np.where(space, SPACE, 0xC0 | code >> 6)
        made[two + 1] = np.where(space, SPACE, 0x80 | code & 63)
    lead = (joined[:-2] >= 0xE0) & (joined[:-2] <= 0xEF) & following[:-1] & following[1:]
    lead &= (joined[:-2] > 0xE0) | (joined[1:-1] >= 0xA0)  # no character stands in more bytes than it takes
    three = np.flatnonzero(lead)
    if len(three):
        old = (joined[three] & 15).astype(np.int64) << 12 | (joined[three + 1] & 63).astype(np.int64) << 6
        code = table[old | joined[three + 2] & 63].astype(np.int64)
        space = code == SPACE
        for place, byte in enumerate((0xE0 | code >> 12, 0x80 | code >> 6 & 63, 0x80 | code & 63)):
            made[three + place] = np.where(space, SPACE, byte)
    spaces = made == SPACE
    keep = np.ones(len(made), dtype=bool)
    keep[1:] = ~(spaces[1:] & spaces[:-1])
    return made[keep]


def room_for(size: int) -> Bytes:
    """A new buffer of so many bytes."""
    return np.empty(size, dtype=np.uint8)


def lines_of(
    raw: bytes | memoryview, key: str, *, exact: bool, room: Callable[[int], Bytes] = room_for
) -> tuple[Bytes, Spans, npt.NDArray[np.bool_], Spans, Spans]:
    """The texts under `key` of JSON lines, folded as in `packed`: the buffer, their places in it, which lines must be
    read in another way (no object, no string there, the key twice), the lines' places in `raw` [lines, 2], and those of
    the strings themselves. `room`
    gives the buffer that they are written into, of so many bytes or more."""
    from pretrace.scan import kernels

    buffer = np.frombuffer(raw, dtype=np.uint8)
    ends = np.flatnonzero(buffer == 10)
    starts = np.concatenate([[0], ends + 1])
    if starts[-1] != len(buffer):
        starts = np.append(starts, len(buffer))
    starts = starts.astype(np.int64)
    out = room(len(raw) + BLOCK * (len(starts) + 3))
    spans = np.zeros((len(starts) - 1, 2), dtype=np.int64)
    irregular = np.zeros(len(starts) - 1, dtype=np.bool_)
    inside = np.zeros_like(spans)
    name = np.frombuffer(key.encode(), dtype=np.uint8)
    size = kernels.lines(
        buffer, starts, name, _lowered(), plain(exact=exact, json=True), exact, out, spans, irregular, inside
    )
    return out[:size], spans, irregular, np.stack([starts[:-1], starts[1:]], axis=1), inside


def hashed(
    first: npt.NDArray[np.uint64],
    second: npt.NDArray[np.uint64],
    third: npt.NDArray[np.uint64],
    factors: npt.NDArray[np.uint64],
) -> npt.NDArray[np.uint64]:
    """The hashes of blocks, from their three words of 8 bytes each: each is mixed thoroughly before the next one is
    added, or words that differ in a few bytes would cancel each other. What agrees is compared byte by byte."""
    h = np.zeros_like(first)
    for word in (first, second, third):
        h += word
        for factor in factors:
            h ^= h >> np.uint64(32)
            h *= factor
        h ^= h >> np.uint64(29)
    return h
