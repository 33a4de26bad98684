"""From texts to token counts: whole, as the tokenizer itself does it, or piece by piece."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pretrace.frequencies.seams import Seams
from pretrace.rewrites import readable

if TYPE_CHECKING:
    import pyarrow as pa
    from tokenizers import Tokenizer


START = b"\xff"
"""Stands before every text; a piece that begins with it begins a text."""

_BLOCK = 1 << 20  # bytes cut at a time: what numpy makes of them fits in a processor's cache


def join_texts(texts: Sequence[bytes]) -> bytes:
    """The texts in UTF-8, one after another, START before each."""
    return START + START.join(texts) if texts else b""


def count_pieces(raw: bytes, seams: Seams) -> pa.Table:
    """The distinct pieces of joined texts: columns `piece` (binary) and `count` (int64), in any order."""
    import pyarrow as pa

    tables = [empty_pieces()]
    for block, offsets in _blocks(raw, seams):
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block)]
        counted = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers).value_counts()
        tables.append(pa.table({"piece": counted.field("values"), "count": counted.field("counts")}))
    return pa.concat_tables(tables)


def merge_pieces(tables: Sequence[pa.Table]) -> pa.Table:
    """Several tables of pieces as one, every piece once."""
    import pyarrow as pa

    together = (
        pa.concat_tables([empty_pieces(), *tables])
        .group_by("piece", use_threads=False)
        .aggregate([("count", "sum")])
    )
    return pa.table({"piece": together["piece"], "count": together["count_sum"]}).combine_chunks()


def empty_pieces() -> pa.Table:
    """A table of no pieces."""
    import pyarrow as pa

    return pa.table({"piece": pa.array([], pa.binary()), "count": pa.array([], pa.int64())})


def _blocks(raw: bytes, seams: Seams) -> Iterator[tuple[memoryview, npt.NDArray[np.int32]]]:
    """Parts of `raw` that end at a seam, each with the offsets of its pieces, int32 [pieces + 1]."""
    view = memoryview(raw)
    start, size = 0, _BLOCK
    while start < len(raw):
        block = view[start : start + size]
        places = _seams(block, seams)
        if start + size >= len(raw):
            places = np.append(places, len(block))
        elif not len(places):
            size *= 2  # one piece longer than a block
            continue
        offsets = np.zeros(len(places) + 1, dtype=np.int32)
        offsets[1:] = places
        yield block[: offsets[-1]], offsets
        start, size = start + int(offsets[-1]), _BLOCK


def _seams(block: memoryview, seams: Seams) -> npt.NDArray[np.intp]:
    """Positions of the seams strictly inside a block, which begins with one or with START: int [seams]."""
    codes = np.frombuffer(block, dtype=np.uint8)
    pairs = codes[1:].astype(np.uint16)
    pairs <<= 8
    pairs |= codes[:-1]
    found = np.take(seams.flags, pairs)
    odd = np.flatnonzero(found & (codes[:-1] >= 0x80) & (codes[:-1] < START[0]) & (codes[1:] != START[0]))
    found[odd[np.isin(codes[odd - 1].astype(np.uint16) << 8 | codes[odd], seams.unsafe)]] = False
    return np.flatnonzero(found) + 1


Ids = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]

_NONE: Ids = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class PartCounts:
    """What some texts came to: token counts, and pieces whose tokens are not yet counted."""

    tokens: Counts
    pieces: pa.Table
    bytes: int


class TokenCounter:
    """Counts the tokens of texts as encoding each of them by itself would: cut at their seams, so that each distinct
    piece need be encoded only once, or whole where there are none. `spec` is the tokenizer as its JSON, `plain` says
    that it takes special tokens for text, which the JSON does not hold."""

    def __init__(self, spec: str, plain: bool, seams: Seams | None) -> None:
        self._seams = seams
        self._whole = self._inner = _opened(spec, plain)
        self.size = 1 + max(self._whole.get_vocab(with_added_tokens=True).values(), default=-1)
        if seams is not None and seams.prefixed:
            facts = json.loads(spec)
            facts |= {key: _unprefixed(facts[key]) for key in ("normalizer", "pre_tokenizer")}
            self._inner = _opened(json.dumps(facts), plain)

    def part(self, texts: Sequence[str]) -> PartCounts:
        """The pieces of some texts; tokens of those that must not be cut."""
        kept_whole, cut, size, seams = list[str](), list[bytes](), 0, self._seams
        for text in map(readable, texts):
            size += len(raw := text.encode())
            if seams is None or seams.whole.search(text):
                kept_whole.append(text)
            else:
                cut.append(raw)
        pieces = count_pieces(join_texts(cut), seams) if seams else empty_pieces()
        return PartCounts(self._tally(_encode(self._whole, kept_whole)[0]), pieces, size)

    def tokens(self, pieces: pa.Table) -> Counts:
        """The token counts of a table of pieces, each taken as often as it says."""
        import pyarrow.compute as pc

        first, counts = pc.starts_with(pieces["piece"], START), np.zeros(self.size, dtype=np.int64)
        for mask, tokenizer in ((first, self._whole), (pc.invert(first), self._inner)):
            some = pieces.filter(mask)
            texts = [piece.removeprefix(START).decode() for piece in some["piece"].to_pylist()]
            ids, owners = _encode(tokenizer, texts)
            counts += self._tally(ids, some["count"].to_numpy()[owners])
        return counts

    def agrees(self, texts: Sequence[str]) -> bool:
        """Whether the pieces of some texts have exactly the tokens of the texts."""
        part, whole = self.part(texts), _encode(self._whole, [readable(text) for text in texts])[0]
        return np.array_equal(part.tokens + self.tokens(part.pieces), self._tally(whole))

    def _tally(self, ids: Ids, weights: Counts | None = None) -> Counts:
        """How often each id occurs, int64 [size]; each occurrence counts `weights` times."""
        # bincount adds weights in float64, which is exact up to 2^53 tokens: 9 million billion.
        return np.bincount(ids, weights, minlength=self.size).astype(np.int64)


def _opened(spec: str, plain: bool) -> Tokenizer:
    """The tokenizer without truncation and padding, which must not reach the counts."""
    from tokenizers import Tokenizer

    made = Tokenizer.from_str(spec)
    made.no_truncation()
    made.no_padding()
    made.encode_special_tokens = plain
    return made


def _encode(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[Ids, Ids]:
    """The ids of all texts one after another, and for each id the index of its text."""
    encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    ids = [np.array(encoding.ids, dtype=np.int64) for encoding in encodings]
    owners = np.repeat(np.arange(len(ids)), [len(of_text) for of_text in ids])
    return np.concatenate([_NONE, *ids]), owners


def _unprefixed(stage: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A stage of a tokenizer less what it puts in front of a text."""
    if stage is None or stage["type"] == "Prepend":
        return None
    if stage["type"] == "ByteLevel":
        return {**stage, "add_prefix_space": False}
    if stage["type"] == "Metaspace":
        return {**stage, "prepend_scheme": "never"}
    for key in ("normalizers", "pretokenizers"):
        if key in stage:
            return {**stage, key: [kept for inner in stage[key] if (kept := _unprefixed(inner)) is not None]}
    return dict(stage)
