"""Texts to a table of token counts: exact, on all cores, in constant memory, resumed after a kill.

Threads, not processes: the work is done in numpy, Arrow and tokenizers, which all let go of Python's lock,
so no text is copied to another process and none has to be started.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from pretrace.backends.tokens import readable
from pretrace.errors import TableError
from pretrace.frequencies.seams import Seams, find_seams
from pretrace.frequencies.table import Frequencies, load_arrays, save_arrays
from pretrace.registry import require
from pretrace.results.atomic import OWN, check_writable
from pretrace.results.wording import say
from pretrace.settings import option

if TYPE_CHECKING:
    import pyarrow as pa
    from tokenizers import Tokenizer

MAX_PENDING = 64 << 20
"""Bytes of pieces that wait to be merged and encoded: those of some hundred million characters of text."""
KIND = "checkpoint of token counts"
T = TypeVar("T")
R = TypeVar("R")
OnProgress = Callable[[int, int], object]

_BATCH = 1 << 20  # characters handed to a thread at a time
_SLICE = 1 << 14  # distinct pieces encoded by a thread at a time
_CHECKS, _CHECKED_CHARS = 8, 1000
"""Parts of the texts of a batch that are compared with the tokenizer itself."""
_BLOCK = 1 << 20  # bytes cut at a time: what numpy makes of them fits in a processor's cache
START = b"\xff"
"""Stands before every text; a piece that begins with it begins a text."""
Ids = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]
_NONE: Ids = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Counting:
    """How to count. `workers`: threads, 0 for one a core that this process may use. With `checkpoint`, what is counted
    is kept there after every `checkpoint_bytes` bytes of text, and a run that was killed goes on from it."""

    workers: int = option(0, "Threads; 0 for one per core.", least=0)
    checkpoint: Path | None = None
    checkpoint_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        require(self.workers >= 0, f"workers must be 0 (one a core) or more, found {self.workers}.")


def count(
    texts: Iterable[str],
    tokenizer: Tokenizer,
    *,
    tokenizer_hash: str,
    source: str,
    settings: Counting | None = None,
    on_progress: OnProgress | None = None,
) -> Frequencies:
    """How often each token occurs in the texts, exactly as encoding each of them by itself would count.

    No special tokens are added; those that stand in a text are counted. `source` says what the texts are, and tells
    one checkpoint from another. `on_progress(texts, bytes)` is called with what is counted so far. Parts of the texts
    are compared with the tokenizer throughout; should pieces ever differ, all is counted again with every text whole,
    and the table's `method` says so. TableError for the checkpoint of another run, and for a difference in texts that
    can be read only once."""
    settings = settings or Counting()
    spec, plain = tokenizer.to_str(), tokenizer.encode_special_tokens
    known = find_seams(json.loads(spec))
    for seams in (known, "pieces had other tokens"):
        if isinstance(seams, str):
            counter, method = _TokenCounter(spec, plain, None), f"every text encoded whole: {seams}"
        else:
            counter, method = _TokenCounter(spec, plain, seams), f"each distinct piece once: {seams.name}"
        identity = {"source": source, "tokenizer": tokenizer_hash, "whole": seams is not known}
        tally = _Tally(counter, settings, identity)
        agrees = tally.count(texts, on_progress)
        if not agrees and iter(texts) is texts:
            raise TableError(say("counting.once", source=source))
        if settings.checkpoint:
            settings.checkpoint.unlink(missing_ok=True)
        if agrees:
            break
    return Frequencies(tally.tokens, tokenizer_hash, source, tally.texts, method)


@dataclass(slots=True)
class _Tally:
    """The first `texts` texts of a source, counted in bounded memory: `tokens` int64 [ids], and pieces that wait to be
    encoded. `last` is the hash of the last text, by which another source is recognised. It is kept on disk, for a
    run of this `identity`, so that a killed run goes on where it was."""

    counter: _TokenCounter
    settings: Counting
    identity: dict[str, Any]
    tokens: Counts = field(init=False)
    texts: int = 0
    bytes: int = 0
    last: str = ""
    _pending: list[pa.Table] = field(default_factory=list)

    def __post_init__(self) -> None:
        """TableError where the checkpoint is damaged, or comes from a run with other settings: going on from it would
        mix two counts. OutputError where it cannot be written."""
        self.tokens = np.zeros(self.counter.size, dtype=np.int64)
        kept = self.settings.checkpoint
        if kept is not None:
            check_writable(kept, OWN)
            if kept.exists():
                self._load(kept)

    def count(self, texts: Iterable[str], on_progress: OnProgress | None) -> bool:
        """Count the texts that are not counted yet; False where pieces of a text have other tokens than the text: the
        seams found for its tokenizer are wrong. TableError where those before are not the ones that were."""
        kept, each = self.settings.checkpoint, self.settings.checkpoint_bytes
        remaining, due = iter(texts), self.bytes + each
        if self.texts:
            before = next(islice(remaining, self.texts - 1, None), None)
            if before is None or _text_hash(before) != self.last:
                told = {"path": kept, "texts": self.texts, "source": self.identity["source"]}
                raise TableError(say("counting.changed", **told))
        workers = self.settings.workers or count_cores()
        pool = ThreadPoolExecutor(workers, thread_name_prefix="pretrace-count")
        try:
            for batch, part in _in_order(pool, self._counted, _batches(remaining, _BATCH), 2 * workers):
                if part is None:
                    return False
                tokens, pieces, size = part
                self.tokens += tokens
                self.texts += len(batch)
                self.bytes += size
                self._pending.append(pieces)
                is_due = kept is not None and self.bytes >= due
                if is_due or sum(waiting.nbytes for waiting in self._pending) > MAX_PENDING:
                    self._encode(pool, workers)
                if kept and is_due:
                    self._save(kept, batch[-1])
                    due = self.bytes + each
                if on_progress:
                    on_progress(self.texts, self.bytes)
            self._encode(pool, workers)
            return True
        finally:
            pool.shutdown(cancel_futures=True)

    def _counted(self, batch: list[str]) -> tuple[list[str], tuple[Counts, pa.Table, int] | None]:
        """A batch and what it came to (`_TokenCounter.part`), None where pieces of some samples had other tokens."""
        samples = []  # from the beginning and from the middle of texts by turns
        for number, text in enumerate(batch[:: max(1, len(batch) // _CHECKS)]):
            start = max(0, len(text) - _CHECKED_CHARS) // 2 * (number % 2)
            samples.append(text[start : start + _CHECKED_CHARS])
        return batch, self.counter.part(batch) if self.counter.agrees(samples) else None

    def _encode(self, pool: ThreadPoolExecutor, workers: int) -> None:
        """Turn the distinct pieces into token counts."""
        pieces, self._pending = _merge_pieces(self._pending), []
        slices = (pieces.slice(start, _SLICE) for start in range(0, len(pieces), _SLICE))
        for tokens in _in_order(pool, self.counter.tokens, slices, 2 * workers):
            self.tokens += tokens

    def _save(self, path: Path, last: str) -> None:
        """Write it, whole or not at all; OutputError if that fails."""
        counted = {"texts": self.texts, "bytes": self.bytes, "last": _text_hash(last)}
        save_arrays(path, KIND, {"settings": self.identity, **counted}, {"tokens": self.tokens})

    def _load(self, path: Path) -> None:
        """Take over what `_save` wrote."""
        facts, arrays = load_arrays(path, KIND, cure="delete it to start again")
        for name, wanted in self.identity.items():
            found = facts["settings"].get(name)
            if found != wanted:
                told = {"name": name, "found": found, "wanted": wanted}
                raise TableError(say("counting.other_settings", path=path, **told))
        self.tokens = arrays["tokens"]
        self.texts, self.bytes, self.last = facts["texts"], facts["bytes"], facts["last"]


def _text_hash(text: str) -> str:
    """Hash of one text, lone surrogates included."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _batches(texts: Iterable[str], characters: int) -> Iterator[list[str]]:
    """Consecutive texts of so many characters together, or a few more."""
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size >= characters:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def count_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # not on every system


def _in_order(
    pool: ThreadPoolExecutor, work: Callable[[T], R], items: Iterable[T], ahead: int
) -> Iterator[R]:
    """What `work` makes of each item, in order, with at most `ahead` items under way."""
    under_way: deque[Future[R]] = deque()
    for item in items:
        under_way.append(pool.submit(work, item))
        if len(under_way) >= ahead:
            yield under_way.popleft().result()
    while under_way:
        yield under_way.popleft().result()


def _count_pieces(raw: bytes, seams: Seams) -> pa.Table:
    """The distinct pieces of texts in UTF-8, START before each: columns `piece` (binary), `count` (int64)."""
    import pyarrow as pa

    tables = [_empty_pieces()]
    for block, offsets in _blocks(raw, seams):
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block)]
        counted = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers).value_counts()
        tables.append(pa.table({"piece": counted.field("values"), "count": counted.field("counts")}))
    return pa.concat_tables(tables)


def _merge_pieces(tables: Sequence[pa.Table]) -> pa.Table:
    """Several tables of pieces as one, every piece once."""
    import pyarrow as pa

    together = (
        pa.concat_tables([_empty_pieces(), *tables])
        .group_by("piece", use_threads=False)
        .aggregate([("count", "sum")])
    )
    return pa.table({"piece": together["piece"], "count": together["count_sum"]}).combine_chunks()


def _empty_pieces() -> pa.Table:
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


class _TokenCounter:
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

    def part(self, texts: Sequence[str]) -> tuple[Counts, pa.Table, int]:
        """The token counts of the texts that must not be cut, the pieces of the others, and the bytes of all."""
        kept_whole, cut, size, seams = list[str](), list[bytes](), 0, self._seams
        for text in map(readable, texts):
            size += len(raw := text.encode())
            if seams is None or seams.whole.search(text):
                kept_whole.append(text)
            else:
                cut.append(raw)
        pieces = _count_pieces(b"".join(START + raw for raw in cut), seams) if seams else _empty_pieces()
        return self._tally(_encode(self._whole, kept_whole)[0]), pieces, size

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
        tokens, pieces, _ = self.part(texts)
        whole = _encode(self._whole, [readable(text) for text in texts])[0]
        return np.array_equal(tokens + self.tokens(pieces), self._tally(whole))

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
