"""Texts as the bytes that are compared: their letters and digits alone, whatever is written between them.

Tags, entities and escapes of HTML and JSON are taken out or read, numbers that count lines are dropped, characters are
decomposed (NFKD), case folded, and only letters, digits and accents stay: however often a string is escaped, it folds
to the same bytes. The rule is in `kernels`, by `_forms`; `tests/plugins/scan/plain_folding.py` has it in Python. The
strings of one column follow each other without a gap (`streams_of`), so what stands across rows is found.
"""

from __future__ import annotations

import html.entities
import importlib.util
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pretrace.errors import MissingPackageError

Bytes = npt.NDArray[np.uint8]
Spans = npt.NDArray[np.int64]
"""Places in a buffer: [strings, 2], start and end."""
Numbers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

BLOCK = 24
"""Bytes that are compared by their hash."""
_FEWEST_BITS, _MOST_BITS, _BITS_A_KEY = 10, 27, 16
"""Of the bit map of hashes: the least and the most of its words, as powers of two, and its bits for each hash."""
GAP = 0xFF
"""The byte between columns; it stands in no UTF-8, so no common run crosses it."""
SPACE = 0x20
CHARACTERS = 0x34000
"""Characters from this number on are left out: none is a letter."""
TAG = 400
"""Bytes that a tag may have behind its first letter."""
MARKS = 30
"""Accents behind one letter that are put in order together."""
TAIL, LONGEST_TAIL = 128, 4 << 20
"""Bytes of a column that are searched again with the next buffer: the first, or those of a run up to the second."""
_COLUMNS = 256
"""Columns of a buffer whose ends are kept for the next one."""
_IGNORED = {
    0x0345, 0x034F, 0x0640, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0xFE00, 0xFE10),
}  # fmt: skip
"""Letters and accents that are not seen, or only stretch a word."""

_NAMES = {name[:-1].encode(): meaning for name, meaning in html.entities.html5.items() if name.endswith(";")}


def _letters_of(character: str) -> str:
    """What stays of a character: letters, digits and accents, decomposed and case folded."""
    made = unicodedata.normalize("NFKD", character).replace("\u0345", "").replace("\u0131", "i")
    for _ in range(3):
        made = unicodedata.normalize("NFKD", made.casefold())
    if made[:1] == " ":  # an accent that stands alone is a sign
        return ""
    return "".join(one for one in made if unicodedata.category(one) in _KEPT and ord(one) not in _IGNORED)


_KEPT = ("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Nd", "Nl", "No")


@cache
def _forms(*, spaced: bool) -> tuple[npt.NDArray[Any], ...]:
    """The rule as arrays, for the kernels. `plain` is what a byte becomes that stands alone, 0 for nothing, from 0x80
    on where more must be looked at; `pairs` the same of two bytes, with their number from bit 16 on, and bit 31 where
    more must be looked at. `codes` says of a character: 0 it is dropped, 1 it stays, 2 it is an accent that
    stays, else 32 times the place of its letters in `letters` and their number. `orders` are the classes of accents.
    `names` are the hashes of the names of entities, in order, and `meanings` [names, 2] their characters."""
    codes, letters = np.zeros(CHARACTERS, dtype=np.int32), [0]
    orders = np.zeros(CHARACTERS, dtype=np.uint8)
    for code in range(CHARACTERS):
        character = chr(code)
        kind = unicodedata.category(character)
        if kind[0] == "C" and code > 0xFF:
            continue
        if spaced and character.isspace():
            made = " "
        elif kind in _KEPT or kind[0] == "S" or unicodedata.decomposition(character):
            made = _letters_of(character)
        else:
            continue
        orders[code] = unicodedata.combining(character)
        if made == character:
            codes[code] = 2 if orders[code] else 1
        elif made:
            codes[code] = len(letters) * 32 + len(made)
            letters += map(ord, made)
    plain = np.zeros(256, dtype=np.uint8)
    for code in range(128):
        character = chr(code)
        blank = SPACE if spaced and character.isspace() else 0
        plain[code] = ord(character.lower()) if character.isalnum() else blank
    plain[128:] = 0x80
    plain[list(b"<&\\\n")] = 0x80
    low, high = np.tile(plain, 256).astype(np.uint32), np.repeat(plain, 256).astype(np.uint32)
    pairs = np.where(low > 0, low | high << 8, high) | ((low > 0).astype(np.uint32) + (high > 0)) << 16
    pairs |= ((low | high) & 0x80) << 24
    named = sorted((hash_of(0, name), meaning) for name, meaning in _NAMES.items())
    meanings = [(*map(ord, meaning), 0)[:2] for _, meaning in named]
    names = np.array([one for one, _ in named], dtype=np.uint64)
    letters_of, meant = np.array(letters, dtype=np.int32), np.array(meanings, dtype=np.int32)
    return plain, pairs.astype(np.uint32), codes, letters_of, orders, names, meant


_PRIME = 0x100000001B3


def hash_of(start: int, name: bytes) -> int:
    """A hash of a name below another one (FNV-1a), by which columns and entities are told apart."""
    made = start or 0xCBF29CE484222325
    for byte in name:
        made = (made ^ byte) * _PRIME & 0xFFFFFFFFFFFFFFFF
    return made


def load_kernels() -> ModuleType:
    """The loops that numba compiles. MissingPackageError without the extra `scan`."""
    if importlib.util.find_spec("numba") is None:
        raise MissingPackageError("numba", "searching a corpus", "scan")
    from pretrace.plugins.scan import kernels

    return kernels


# Strings


@dataclass(frozen=True, slots=True, eq=False)
class Strings:
    """Strings of a file: places in `raw`, row, column (a hash of the names that lead to it), and whether JSON."""

    raw: bytes | memoryview | Bytes
    places: Spans
    rows: Numbers
    columns: Hashes
    escaped: npt.NDArray[np.bool_]

    @classmethod
    def of(
        cls, written: Sequence[bytes], *, rows: Sequence[int] | None = None, columns: Sequence[int] | None = None
    ) -> Strings:  # fmt: skip
        """Some strings, a document each unless `rows` are told, and of one column unless these are."""
        number = len(written)
        ends = np.cumsum(np.array([len(one) for one in written], dtype=np.int64))
        return cls(
            b"".join(written),
            np.stack([np.append(0, ends[:-1])[:number], ends], axis=1),
            np.arange(number) if rows is None else np.array(rows, dtype=np.int64),
            np.array([0] * number if columns is None else columns, dtype=np.uint64),
            np.zeros(number, dtype=np.bool_),
        )

    @classmethod
    def joined(cls, some: Sequence[Strings]) -> Strings:
        """Several, in the order of their rows."""
        raws = [np.frombuffer(one.raw, dtype=np.uint8) for one in some]
        shifts = np.append(0, np.cumsum([len(raw) for raw in raws]))
        places = np.concatenate(
            [one.places + shift for one, shift in zip(some, shifts.tolist(), strict=False)]
        )
        rows, columns, escaped = (
            np.concatenate([getattr(one, name) for one in some]) for name in ("rows", "columns", "escaped")
        )
        joined = cls(np.concatenate(raws), places, rows, columns, escaped)
        return joined._only(np.argsort(rows, kind="stable"))

    def _only(self, wanted: npt.NDArray[Any]) -> Strings:
        """Some of them, in this order."""
        rest = (one[wanted] for one in (self.places, self.rows, self.columns, self.escaped))
        return Strings(self.raw, *rest)


def fold_strings(
    strings: Strings,
    *,
    exact: bool,
    spaced: bool = False,
    behind: Sequence[bytes | None] | None = None,
    room: Bytes | None = None,
) -> tuple[Bytes, Spans]:
    """Strings as they are compared, one behind the other in one buffer, and their places. `behind` says behind what
    each one comes: None behind the one before it, else behind a gap and some bytes. `room` may be the base of an
    earlier buffer, which is written over."""
    kernels, kept = load_kernels(), behind or [None] * len(strings.places)
    heads = [one for one in kept if one is not None]
    head = np.frombuffer(b"".join(heads) or b"\0", np.uint8)
    sizes = np.array([-1 if one is None else len(one) for one in kept], dtype=np.int64)
    size = 2 * BLOCK + int((strings.places[:, 1] - strings.places[:, 0] + sizes + 1).sum())
    raw, spans = np.frombuffer(strings.raw, dtype=np.uint8), np.empty((len(kept), 2), dtype=np.int64)
    wanted = size + size // 4 + 256
    out = room if room is not None and len(room) >= wanted else np.empty(wanted, dtype=np.uint8)
    how = (size, head, sizes, _forms(spaced=spaced), exact, spaced)
    while (end := kernels.fold(raw, strings.places, strings.escaped, *how, out, spans)) < 0:
        out = np.empty(3 * len(out), dtype=np.uint8)
    return out[:end], spans


def fold_pieces(raw: Sequence[bytes]) -> tuple[bytes, ...]:
    """Strings of bytes as they are compared by their letters and digits."""
    buffer, spans = fold_strings(Strings.of(raw), exact=False)
    made = buffer.tobytes()
    return tuple(made[start:end] for start, end in spans.tolist())


class FoldedTexts:
    """Texts as they are compared, in one buffer at `spans`, each behind a block of gaps."""

    def __init__(self, written: Sequence[bytes], *, exact: bool = False) -> None:
        gaps = [bytes([GAP]) * (BLOCK - 1)] * len(written)
        self.buffer, self.spans = fold_strings(Strings.of(written), exact=exact, behind=gaps)
        self.sizes: Numbers = self.spans[:, 1] - self.spans[:, 0]

    def letters(self, text: int) -> npt.NDArray[np.intp]:
        """The bytes of a text at which its characters begin, and its end."""
        content = self.buffer[slice(*self.spans[text].tolist())]
        return np.append(np.flatnonzero(content & 0xC0 != 0x80), len(content))


class HashTable(NamedTuple):
    """Hashes to be found: `keys` are the different ones in order, `first[i]:first[i + 1]` the places of the i-th among
    all; `bitmap` has the bit of the first bits of each key, those left by `shift`, and `buckets` says where the keys
    begin that share them."""

    keys: Hashes
    first: npt.NDArray[np.int32 | np.int64]
    bitmap: Hashes
    shift: np.uint64
    buckets: npt.NDArray[np.int32]

    @classmethod
    def of(cls, ordered: Hashes) -> HashTable:
        """The table of hashes that are in order."""
        fresh, kind = np.ones(len(ordered), dtype=np.bool_), np.int32 if len(ordered) < 1 << 31 else np.int64
        fresh[1:] = ordered[1:] != ordered[:-1]
        keys = ordered[fresh]
        wanted = int(np.ceil(np.log2(max(1, len(keys) * _BITS_A_KEY // 64))))
        bits = min(_MOST_BITS, max(_FEWEST_BITS, wanted))
        shift, bitmap = np.uint64(64 - bits), np.zeros(1 << bits, dtype=np.uint64)
        buckets = np.searchsorted(keys, np.arange(1 << bits, dtype=np.uint64) << shift)
        load_kernels().set_bits(keys, shift, bitmap)
        first = np.append(np.flatnonzero(fresh).astype(kind), kind(len(ordered)))
        return cls(keys, first, bitmap, shift, np.append(buckets, len(keys)).astype(np.int32))


# Streams


class Tail(NamedTuple):
    """The end of a column: its folded bytes, where strings begin in them, the rows of these, and whether a run reaches
    over it."""

    content: bytes = b""
    starts: Numbers = np.zeros(0, dtype=np.int64)
    rows: Numbers = np.zeros(0, dtype=np.int64)
    is_held: bool = False


class Stream:
    """`strings` folded in one buffer, those of a column one behind the other; those at `firsts` begin a column, behind
    its tail, and behind the `last` stream nothing comes. `spans` and `rows` go by the string, in the order of the
    buffer; `begins` and `ends` are where columns begin and end, and what ends before `fresh` of a column was found
    before. Who searches says in `holds` how much of each column's end a run reaches over."""

    def __init__(
        self, strings: Strings, firsts: Numbers, tails: Sequence[Tail], *,
        exact: bool, room: Bytes | None = None, last: bool = False,
    ) -> None:  # fmt: skip
        self.strings, self.last = strings, last
        behind: list[bytes | None] = [None] * len(strings.places)
        for at, tail in zip(firsts.tolist(), tails, strict=True):
            behind[at] = tail.content
        self.buffer, spans = fold_strings(strings, exact=exact, behind=behind, room=room)
        self.fresh, self.ends = spans[firsts, 0], np.append(spans[firsts[1:] - 1, 1], spans[-1, 1])
        self.begins = self.fresh - np.array([len(tail.content) for tail in tails], dtype=np.int64)
        self.holds = np.zeros_like(self.begins)
        kept = [begin + tail.starts for begin, tail in zip(self.begins, tails, strict=True)]
        starts = np.concatenate([*kept, spans[:, 0]])
        order = np.argsort(starts, kind="stable")
        starts = starts[order]
        column = np.searchsorted(self.begins, starts, side="right") - 1
        stops = np.minimum(np.append(starts[1:], self.ends[-1]), self.ends[column])
        self.spans: Spans = np.stack([starts, stops], axis=1)
        self.rows: Numbers = np.concatenate([*(tail.rows for tail in tails), strings.rows])[order]

    @cached_property
    def tails(self) -> list[Tail]:
        """The ends of the first columns, which are searched again, once `holds` is known."""
        made = []
        for column, held in enumerate(self.holds[:_COLUMNS].tolist()):
            end = int(self.ends[column])
            start = max(int(self.begins[column]), end - max(TAIL, min(LONGEST_TAIL, held)))
            first, last = np.searchsorted(self.spans[:, 0], (start + 1, end)) - (1, 0)
            starts = np.maximum(self.spans[first:last, 0] - start, 0)
            made.append(Tail(self.buffer[start:end].tobytes(), starts, self.rows[first:last], bool(held)))
        return made


def rows_of(tails: Iterable[Tail]) -> set[int]:
    """The rows of which some ends of columns hold something: those that may go on."""
    return {row for tail in tails for row in tail.rows.tolist()}


def streams_of(
    batches: Iterable[Strings], tails: dict[int, Tail] | None = None, *, exact: bool
) -> Iterator[Stream]:
    """Join the strings of each buffer to the ends of their columns, the `tails` by column; what stands at an end that a
    run reaches over is given once more when nothing comes behind it."""
    tails, room = {} if tails is None else tails, None
    for some in batches:
        strings = some if len(some.places) else Strings.of([b""])
        strings = strings._only(np.argsort(strings.columns, kind="stable"))
        firsts = np.append(0, np.flatnonzero(np.diff(strings.columns)) + 1)
        names = strings.columns[firsts].tolist()
        before = [tails.get(name, Tail()) for name in names]
        made = Stream(strings, firsts, before, exact=exact, room=room)
        room = made.buffer.base
        yield made
        for name in names:
            tails.pop(name, None)
        for name, tail in zip(names, made.tails, strict=False):
            if len(tails) < 4 * _COLUMNS:
                tails[name] = tail
    for tail in tails.values():
        if tail.is_held:
            last = Strings.of([b""], rows=[int(tail.rows[-1])])
            yield Stream(last, np.zeros(1, np.int64), [tail], exact=exact, last=True)
