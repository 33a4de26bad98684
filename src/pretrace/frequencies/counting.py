"""Texts to a table of token counts: exact, on all cores, in constant memory, resumed after a kill.

Threads, not processes: the work is done in numpy, Arrow and tokenizers, which all let go of Python's lock,
so no text is copied to another process and none has to be started.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from pretrace.errors import TableError
from pretrace.frequencies.encoding import ByPieces, Counts, PartCounts, WholeTexts, empty_pieces, merge_pieces
from pretrace.frequencies.seams import Seamless, Seams, find_seams
from pretrace.frequencies.table import Frequencies, load_arrays, save_arrays
from pretrace.registry import require
from pretrace.results.atomic import check_writable
from pretrace.results.output_checks import OWN
from pretrace.results.wording import say
from pretrace.rewrites import readable
from pretrace.settings import option

if TYPE_CHECKING:
    import pyarrow as pa
    from tokenizers import Tokenizer


MAX_PIECES = 2 << 20
MAX_PIECE_BYTES = 64 << 20
MAX_PENDING = 1 << 20
"""Rows of tables that wait to be merged: merging costs about as much for one as for many."""
KIND = "checkpoint of a token count"


@dataclass(slots=True)
class _Tally:
    """The first `texts` texts of a source, counted in bounded memory: `tokens` int64 [ids], and pieces still to be
    encoded. `last` is the hash of the last text, by which another source is recognised. It is kept on disk, so that a
    killed run goes on where it was."""

    tokens: Counts
    pieces: pa.Table
    texts: int = 0
    bytes: int = 0
    last: str = ""
    _last_text: str | None = None
    _pending: list[pa.Table] = field(default_factory=list)

    def add(self, part: PartCounts, texts: int, last: str) -> None:
        """Add what the next batch came to: so many texts, of which `last` is the last."""
        self.tokens += part.tokens
        self.texts += texts
        self.bytes += part.bytes
        self._last_text = last
        if part.pieces is not None:
            self._pending.append(part.pieces)
            if sum(map(len, self._pending)) > MAX_PENDING:
                self._merge()

    @property
    def is_full(self) -> bool:
        """Whether there are so many distinct pieces that they should be taken and encoded."""
        return len(self.pieces) > MAX_PIECES or self.pieces.nbytes > MAX_PIECE_BYTES

    def take_pieces(self) -> pa.Table:
        """The distinct pieces and their counts, which the tally then holds no longer."""
        self._merge()
        pieces, self.pieces = self.pieces, empty_pieces()
        return pieces

    def _merge(self) -> None:
        self.pieces = merge_pieces([self.pieces, *self._pending])
        self._pending = []

    def save(self, path: Path, settings: dict[str, Any]) -> None:
        """Write it for a run with these settings, whole or not at all; OutputError if that fails."""
        self._merge()
        if self._last_text is not None:
            self.last = _text_hash(self._last_text)
        facts = {"settings": settings, "texts": self.texts, "bytes": self.bytes, "last": self.last}
        pieces = self.pieces["piece"].to_pylist()
        arrays: dict[str, npt.NDArray[Any]] = {
            "tokens": self.tokens,
            "pieces": np.frombuffer(b"".join(pieces), dtype=np.uint8),
            "lengths": np.array([len(piece) for piece in pieces], dtype=np.int64),
            "counts": np.asarray(self.pieces["count"].to_numpy(), dtype=np.int64),
        }
        save_arrays(path, KIND, facts, arrays)

    @classmethod
    def load(cls, path: Path, settings: dict[str, Any]) -> _Tally:
        """What `save` wrote. TableError where the file is damaged, or comes from a run with other settings: going on
        from it would mix two counts."""
        import pyarrow as pa

        facts, arrays = load_arrays(path, KIND, cure="delete it to start again")
        for name, wanted in settings.items():
            found = facts["settings"].get(name)
            if found != wanted:
                told = {"name": name, "found": found, "wanted": wanted}
                raise TableError(say("counting.other_settings", path=path, **told))
        joined, ends = arrays["pieces"].tobytes(), np.cumsum(arrays["lengths"]).tolist()
        pieces = [joined[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        columns = pa.array(pieces, pa.binary()), pa.array(arrays["counts"], pa.int64())
        table = pa.table(dict(zip(("piece", "count"), columns, strict=True)))
        return cls(arrays["tokens"], table, facts["texts"], facts["bytes"], facts["last"])


def _text_hash(text: str) -> str:
    """Hash of one text, lone surrogates included."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


T = TypeVar("T")
R = TypeVar("R")
OnProgress = Callable[[int, int], object]

_BATCH = 1 << 20  # characters handed to a worker at a time
_SLICE = 1 << 14  # distinct pieces encoded by a worker at a time
_FIRST_CHECKS, _CHECKS, _CHECK_EVERY, _CHECKED_CHARS = 64, 2, 8, 1000
"""Parts of texts compared with the tokenizer itself: in the first batch, then in every eighth."""


class Batch(NamedTuple):
    """What some consecutive texts came to: how many they are, the last of them, and their tokens; None where their
    pieces had other tokens than the texts."""

    texts: int
    last: str
    part: PartCounts | None


@dataclass(frozen=True, slots=True)
class Portion:
    """How to count a part of the texts in another process: the tokenizer as its JSON, whether it takes special tokens
    for text, and whether every text is encoded whole."""

    spec: str
    plain: bool
    whole: bool

    def open(self) -> tuple[str, Callable[[Sequence[str]], PartCounts | None]]:
        """The version of the tokenizers, and what counts some texts on one core: None where their pieces had other
        tokens than the texts."""
        from tokenizers import Tokenizer, __version__

        tokenizer, spec = Tokenizer.from_str(self.spec), json.loads(self.spec)
        tokenizer.encode_special_tokens = self.plain
        seams = None if self.whole else find_seams(spec)
        by = ByPieces(tokenizer, spec, seams) if isinstance(seams, Seams) else WholeTexts(tokenizer, spec)
        run = _CountingRun("", "", Counting(workers=1), None)

        def counted(texts: Sequence[str]) -> PartCounts | None:
            try:
                tokens = run.count(texts, by, "").counts
            except _DisagreementError:
                return None
            return PartCounts(tokens, None, sum(len(readable(text).encode()) for text in texts))

        return __version__, counted


CountElsewhere = Callable[
    [Portion, Iterable[tuple[int, str, list[str]]]], Iterator[tuple[int, PartCounts | None]]
]
"""Counts batches of texts, each with its number and name, in other processes: what each came to, in any order."""
CHARACTERS = 1 << 24
"""Handed to another process at a time: enough that most pieces of text occur more than once in them and are encoded
once."""


@dataclass(frozen=True, slots=True)
class Counting:
    """How to count.

    `workers`: threads, 0 for one a core that this process may use. With `checkpoint`, what is counted is
    kept there after every `checkpoint_bytes` bytes of text, and a run that was killed goes on from it.
    `whole` encodes every text as it is instead of cutting it into pieces: slow, with the same result. `elsewhere`
    counts in place of threads.
    """

    workers: int = option(0, "Threads, or workers of --engine ray; 0 for one per core.", least=0)
    checkpoint: Path | None = None
    checkpoint_bytes: int = 256 << 20
    whole: bool = False
    elsewhere: CountElsewhere | None = None

    def __post_init__(self) -> None:
        require(self.workers >= 0, f"workers must be 0 (one a core) or more, found {self.workers}.")


class _DisagreementError(Exception):
    """Pieces of a text have other tokens than the text: the seams found for its tokenizer are wrong."""


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

    No special tokens are added; those that stand in a text are counted. `source` says what the texts are,
    and tells one checkpoint from another. `on_progress(texts, bytes)` is called with what is counted so
    far. Parts of the texts are compared with the tokenizer throughout; should pieces ever differ, all is
    counted again with every text whole, and the table's `method` says so. Raises TableError for the
    checkpoint of another run, and for a difference in texts that can be read only once.
    """
    settings = settings or Counting()
    spec = json.loads(tokenizer.to_str())
    seams = Seamless("as was asked") if settings.whole else find_seams(spec)
    run = _CountingRun(tokenizer_hash, source, settings, on_progress)
    if isinstance(seams, Seamless):
        return run.count(texts, WholeTexts(tokenizer, spec), f"every text encoded whole: {seams.reason}")
    try:
        return run.count(texts, ByPieces(tokenizer, spec, seams), f"each distinct piece once: {seams.name}")
    except _DisagreementError:
        if iter(texts) is texts:
            raise TableError(say("counting.once", source=source)) from None
    run = replace(run, settings=replace(settings, whole=True))
    run.discard_checkpoint()
    return run.count(texts, WholeTexts(tokenizer, spec), "every text encoded whole: pieces had other tokens")


@dataclass(frozen=True, slots=True)
class _CountingRun:
    tokenizer_hash: str
    source: str
    settings: Counting
    on_progress: OnProgress | None

    def count(self, texts: Iterable[str], counter: WholeTexts | ByPieces, method: str) -> Frequencies:
        kept, identity = self.settings.checkpoint, self._identity
        tally = _Tally(np.zeros(counter.size, dtype=np.int64), empty_pieces())
        if kept is not None:
            check_writable(kept, OWN)
            if kept.exists():
                tally = _Tally.load(kept, identity)
        workers = self.settings.workers or count_cores()
        due = tally.bytes + self.settings.checkpoint_bytes
        pool = ThreadPoolExecutor(workers, thread_name_prefix="pretrace-count")
        try:
            for found in self._counted(self._remaining(texts, tally), counter, pool, workers):
                if found.part is None:
                    raise _DisagreementError
                tally.add(found.part, found.texts, found.last)
                if tally.is_full:
                    _encode(tally, counter, pool, workers)
                if tally.bytes >= due and kept:
                    tally.save(kept, identity)
                    due = tally.bytes + self.settings.checkpoint_bytes
                if self.on_progress:
                    self.on_progress(tally.texts, tally.bytes)
            _encode(tally, counter, pool, workers)
        finally:
            pool.shutdown(cancel_futures=True)
        self.discard_checkpoint()
        return Frequencies(tally.tokens, self.tokenizer_hash, self.source, tally.texts, method)

    def _counted(
        self, texts: Iterable[str], counter: WholeTexts | ByPieces, pool: ThreadPoolExecutor, workers: int
    ) -> Iterator[Batch]:
        """What the texts come to, batch by batch in their order: counted elsewhere, or by threads."""
        if self.settings.elsewhere is None:

            def counted(item: tuple[int, list[str]]) -> Batch:
                index, batch = item
                agree = not isinstance(counter, ByPieces) or counter.agrees(list(_samples(batch, index)))
                return Batch(len(batch), batch[-1], counter.part(batch) if agree else None)

            return _in_order(pool, counted, enumerate(batches(texts, _BATCH)), 2 * workers)
        tokenizer = (counter if isinstance(counter, WholeTexts) else counter.whole).tokenizer
        is_whole = isinstance(counter, WholeTexts)
        portion = Portion(tokenizer.to_str(), tokenizer.encode_special_tokens, is_whole)
        return _counted_elsewhere(self.settings.elsewhere, portion, texts)

    @property
    def _identity(self) -> dict[str, str | bool]:
        return {"source": self.source, "tokenizer": self.tokenizer_hash, "whole": self.settings.whole}

    def _remaining(self, texts: Iterable[str], tally: _Tally) -> Iterator[str]:
        """The texts that are not counted yet; TableError where those before are not the ones that were."""
        remaining = iter(texts)
        if tally.texts:
            last = next(islice(remaining, tally.texts - 1, None), None)
            if last is None or _text_hash(last) != tally.last:
                told = {"path": self.settings.checkpoint, "texts": tally.texts, "source": self.source}
                raise TableError(say("counting.changed", **told))
        return remaining

    def discard_checkpoint(self) -> None:
        if self.settings.checkpoint:
            self.settings.checkpoint.unlink(missing_ok=True)


def _samples(batch: list[str], index: int) -> Iterator[str]:
    """Parts of some texts of a batch: from their beginning and from their middle by turns."""
    wanted = _FIRST_CHECKS if index == 0 else _CHECKS if index % _CHECK_EVERY == 0 else 0
    for number in range(min(wanted, len(batch))):
        text = batch[number * len(batch) // wanted] if wanted < len(batch) else batch[number]
        start = max(0, len(text) - _CHECKED_CHARS) // 2 * (number % 2)
        yield text[start : start + _CHECKED_CHARS]


def _encode(tally: _Tally, counter: WholeTexts | ByPieces, pool: ThreadPoolExecutor, workers: int) -> None:
    """Turn the pieces of a tally into token counts."""
    if isinstance(counter, ByPieces):
        pieces = tally.take_pieces()
        slices = (pieces.slice(start, _SLICE) for start in range(0, len(pieces), _SLICE))
        for tokens in _in_order(pool, counter.tokens, slices, 2 * workers):
            tally.tokens += tokens


def _counted_elsewhere(elsewhere: CountElsewhere, portion: Portion, texts: Iterable[str]) -> Iterator[Batch]:
    """What batches came to, in the order of the texts, on which a checkpoint rests."""
    known: dict[int, tuple[int, str]] = {}
    early: dict[int, Batch] = {}
    following = 0

    def pieces() -> Iterator[tuple[int, str, list[str]]]:
        for index, batch in enumerate(batches(texts, CHARACTERS)):
            known[index] = len(batch), batch[-1]
            yield index, f"batch {index + 1} of the texts", batch

    for index, part in elsewhere(portion, pieces()):
        early[index] = Batch(*known.pop(index), part)
        while following in early:
            yield early.pop(following)
            following += 1


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
