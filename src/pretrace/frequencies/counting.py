"""Texts to a table of token counts: exact, on all cores, in constant memory, resumed after a kill.

Threads, not processes: the work is done in numpy, Arrow and tokenizers, which all let go of Python's lock,
so no text is copied to another process and none has to be started.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pretrace.errors import TableError
from pretrace.frequencies.encoding import Counts, PartCounts, TokenCounter, merge_pieces
from pretrace.frequencies.seams import find_seams
from pretrace.frequencies.table import Frequencies, load_arrays, save_arrays
from pretrace.registry import require
from pretrace.results.atomic import check_writable
from pretrace.results.output_checks import OWN
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
Batch = tuple[int, str, PartCounts | None]
"""How many consecutive texts, the last of them, and what they came to: None where their pieces had other tokens."""


class _DisagreementError(Exception):
    """Pieces of a text have other tokens than the text: the seams found for its tokenizer are wrong."""


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
            counter, method = TokenCounter(spec, plain, None), f"every text encoded whole: {seams}"
        else:
            counter, method = TokenCounter(spec, plain, seams), f"each distinct piece once: {seams.name}"
        identity = {"source": source, "tokenizer": tokenizer_hash, "whole": seams is not known}
        tally, agrees = _Tally(counter, settings, identity), True
        try:
            tally.count(texts, on_progress)
        except _DisagreementError:
            agrees = False
            if iter(texts) is texts:
                raise TableError(say("counting.once", source=source)) from None
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

    counter: TokenCounter
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

    def count(self, texts: Iterable[str], on_progress: OnProgress | None) -> None:
        """Count the texts that are not counted yet. TableError where those before are not the ones that were."""
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
            found = _in_order(pool, self._counted, batches(remaining, _BATCH), 2 * workers)
            for number, last, part in found:
                if part is None:
                    raise _DisagreementError
                self.tokens += part.tokens
                self.texts += number
                self.bytes += part.bytes
                self._pending.append(part.pieces)
                is_due = kept is not None and self.bytes >= due
                if is_due or sum(pieces.nbytes for pieces in self._pending) > MAX_PENDING:
                    self._encode(pool, workers)
                if kept and is_due:
                    self._save(kept, last)
                    due = self.bytes + each
                if on_progress:
                    on_progress(self.texts, self.bytes)
            self._encode(pool, workers)
        finally:
            pool.shutdown(cancel_futures=True)

    def _counted(self, batch: list[str]) -> Batch:
        """What a batch came to: its pieces, of which some are compared with the texts."""
        samples = []  # from the beginning and from the middle of texts by turns
        for number, text in enumerate(batch[:: max(1, len(batch) // _CHECKS)]):
            start = max(0, len(text) - _CHECKED_CHARS) // 2 * (number % 2)
            samples.append(text[start : start + _CHECKED_CHARS])
        return len(batch), batch[-1], self.counter.part(batch) if self.counter.agrees(samples) else None

    def _encode(self, pool: ThreadPoolExecutor, workers: int) -> None:
        """Turn the distinct pieces into token counts."""
        pieces, self._pending = merge_pieces(self._pending), []
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


def batches(texts: Iterable[str], characters: int) -> Iterator[list[str]]:
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
