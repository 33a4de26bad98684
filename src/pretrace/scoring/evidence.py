"""From texts to evidence: what is in the store is taken from there, the rest goes through the models once and stays."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.backends.tokens import LEAST, alike, behind
from pretrace.cache import STATE, TRACE, CacheEntry, Entries, text_key
from pretrace.errors import ModelError
from pretrace.results.wording import say
from pretrace.rewrites import After, rewrites
from pretrace.settings import is_kept
from pretrace.types import (
    Backend,
    Continued,
    Drawn,
    Encoded,
    Evidence,
    Firing,
    Needs,
    Peak,
    Proposer,
    Quantity,
    State,
    States,
    Text,
    Trace,
    View,
)
from pretrace.types import Progress as Progress

CHUNK = 2048
"""Texts whose traces are in memory at once."""
HELD = 0.3
"""Seconds of reading whose traces may wait for others to be stored together: what a process that is killed has lost at
most, beside the batch that it was reading. The answers of a server, which may have been paid for, wait for none: the
next one may take long."""


Passes = Generator[tuple[tuple[int, ...], list[Trace]]]
"""Batches, as the places of their texts, with the traces of these."""
_TRACE = ""  # its label; that of a state is the state's name


class Traces(Entries):
    """The traces of one back end, whose fingerprint names weights, dtype, tokenizer, start rule and length limit, below
    `cache_folder()` unless a folder is given."""

    def __init__(self, fingerprint: str | None, folder: Path | None = None) -> None:
        super().__init__("traces", fingerprint, folder)

    def get(self, keys: Sequence[bytes], want: Quantity, states: States = frozenset()) -> list[Trace | None]:
        """For each key the stored trace, if it carries at least what is wanted, or None.

        A trace may carry more quantities than were wanted, and exactly the states. Its arrays are read-only.
        """
        want &= Quantity.LOGP | Quantity.MOMENTS  # the others are states
        traces = self.find(keys, _TRACE, TRACE)
        read = {state: self.find(traces, _state_name(state), STATE) for state in states}
        found = {}
        for key, trace in traces.items():
            inside = {state: arrays[key] for state, arrays in read.items() if key in arrays}
            if trace.holds & want == want and len(inside) == len(states):
                found[key] = replace(trace, states=inside)
        return [found.get(key) for key in keys]

    def put(self, keys: Sequence[bytes], traces: Sequence[Trace]) -> None:
        """Store one trace a key in one transaction: all of them or none.

        A trace takes the place of one with fewer quantities, never of one with more; states are added to
        those that are there. Raises OutputError when the disk is full; what was stored before stays readable.
        """
        pairs = list(zip(keys, traces, strict=True))
        entries: list[CacheEntry] = [(key, _TRACE, trace, TRACE) for key, trace in pairs]
        entries += [
            (key, _state_name(state), array, STATE)
            for key, trace in pairs
            if trace.states
            for state, array in trace.states.items()
        ]
        self.write(entries)

    def keeping(self, keys: Sequence[bytes], passes: Passes, hold: float = 0.0) -> Passes:
        """The passes, whose traces are stored: batches that take less than `hold` seconds several at once, since each
        transaction writes most of the index, and what is held in any case when the passes end, are closed or raise."""
        held: list[tuple[bytes, Trace]] = []
        since = time.monotonic()
        try:
            with closing(passes):
                for batch, made in passes:
                    held += zip([keys[i] for i in batch], made, strict=True)
                    if time.monotonic() - since >= hold:
                        some, held = held, []
                        self.put(*zip(*some, strict=True))
                        since = time.monotonic()
                    yield batch, made
        finally:
            if held:
                self.put(*zip(*held, strict=True))


def _state_name(state: State) -> str:
    """The name a state has on disk: equal for equal states, and another for every other.

    >>> _state_name(Firing("any", threshold=1))
    'firing any>1.0 gated=False'
    """
    if isinstance(state, Firing):
        threshold = float(state.threshold) + 0.0  # -0.0 equals 0.0
        return f"firing {state.pool}>{threshold!r} gated={bool(state.gated)}"
    if isinstance(state, Drawn):
        return f"drawn k={int(state.k)} temperature={float(state.temperature)!r}"
    if isinstance(state, Peak):
        return "peak"
    if isinstance(state, Continued):
        sampled = f"samples={int(state.samples)} share={float(state.share)!r}"
        return f"continued {sampled} temperature={float(state.temperature)!r} seed={int(state.seed)}"
    return f"hidden {'all' if state.layer is None else int(state.layer)}"


@dataclass(frozen=True, slots=True)
class Options:
    """How a run is done. `cache` False keeps no traces on disk. `shuffles` is how often each score that is
    fitted on labelled texts is fitted again on shuffled labels, as its control. `settings` is added to the
    run's record."""

    cache: bool = field(default_factory=is_kept)
    seed: int = 0
    shuffles: int = 20
    progress: Progress = field(default_factory=Progress)
    settings: Mapping[str, Any] = field(default_factory=dict)


class EvidenceReader:
    """Reads texts with all models: each (model, rewrite) is passed over once, whatever the scores. A context manager,
    which closes the stores of traces."""

    def __init__(
        self, models: Mapping[str, Backend], needs: Needs, options: Options, proposer: Proposer | None = None
    ) -> None:
        self.models, self.proposer, self.progress = models, proposer, options.progress
        # plain before its rewrites: a text that a rewrite leaves alone is then already in the store
        self.needs = needs
        self.views = sorted(needs.views, key=lambda view: (view.model, view.rewrite != "plain"))
        self.forms = {name: rewrites.make(name) for name in {view.rewrite for view in needs.views}}
        self.stores = {
            name: Traces(models[name].fingerprint if options.cache else None)
            for name in {view.model for view in needs.views}
        }

    def __enter__(self) -> EvidenceReader:
        return self

    def __exit__(self, *_: object) -> None:
        for store in self.stores.values():
            store.close()

    def announce(self, texts: int) -> None:
        """Tell the progress of so many texts, all that will be read."""
        self.progress.begin(texts * sum(self.forms[view.rewrite].count for view in self.views))

    def read(self, texts: Sequence[Text]) -> Iterator[Evidence]:
        """The evidence of each text, in order. `Evidence.empty` names the views without a prediction."""
        for start in range(0, len(texts), CHUNK):
            yield from self._chunk(texts[start : start + CHUNK])

    def _chunk(self, texts: Sequence[Text]) -> list[Evidence]:
        seen: list[dict[View, tuple[Trace, ...]]] = [{} for _ in texts]
        for view in self.views:
            form = self.forms[view.rewrite]
            forms = form([text.text for text in texts], self.proposer)
            traces = iter(
                trace(
                    self.models[view.model],
                    [form for some in forms for form in some],
                    self.needs.views[view],
                    self.needs.states.get(view, frozenset()),
                    store=self.stores[view.model],
                    progress=self.progress,
                    after=form.text if isinstance(form, After) else "",
                )
            )
            for views, some in zip(seen, forms, strict=True):
                views[view] = tuple(islice(traces, len(some)))
        return [Evidence(text, views) for text, views in zip(texts, seen, strict=True)]


def trace(  # noqa: PLR0913 (what is asked, of whom, and where it is kept)
    backend: Backend,
    texts: Sequence[str],
    want: Quantity,
    states: States = frozenset(),
    *,
    store: Traces,
    progress: Progress | None = None,
    after: str = "",
) -> list[Trace]:
    """One trace a text, in the texts' order, with quantities token by token and states inside the model; a text with
    nothing to predict has an empty one. ModelError where the back end leaves one out.

    With `after`, the model reads each text behind that one, and the traces are of the texts' own tokens alone, the
    first among them: log p(text | after). Either is cut into tokens by itself. ModelError where `after` leaves no room.
    What texts begin with alike is read once where the back end can do that. Where nothing is wanted, no model reads
    the texts: the traces have their tokens, and no number for any.

    Batches are planned over all the texts given, whatever the store holds, and stored whole: a run that
    was killed and starts again sees the same batches, so it ends with the same numbers to the last bit.
    A text that is there several times is read once.
    """
    progress = progress or Progress()
    if not want:
        progress.weigh(len(texts), 0)
        progress.advance(len(texts), 0, 0.0, False)
        unread = (
            (e, e.tokens[len(e.tokens) - e.predicted :], np.full(e.predicted, np.nan, np.float32))
            for e in backend.encode(texts)
        )
        return [_fixed(Trace(tokens, logp, cut=e.cut)) for e, tokens, logp in unread]
    keys = [text_key(text, after) for text in texts]
    once = dict(zip(keys, texts, strict=True))
    progress.advance(len(texts) - len(once), 0, 0.0, False)
    encoded = encoded_for(backend, list(once.values()), want, states, after)
    traces, lengths = store.get(list(once), want, states), [e.length for e in encoded]
    nothing = np.zeros(0, dtype=np.float32)
    moments = nothing if Quantity.MOMENTS in want else None
    for i, e in enumerate(encoded):
        if traces[i] is None and not e.predicted:
            traces[i] = Trace(np.zeros(0, dtype=np.int32), nothing, moments, moments, e.cut)
    known = [i for i, found in enumerate(traces) if found is not None]
    progress.advance(len(known), sum([lengths[i] for i in known]), 0.0, False)
    batches = remaining_batches(backend, encoded, traces)
    weight = getattr(backend, "work", sum)  # of a batch, by the lengths of its rows
    work = {batch: weight([lengths[i] for i in batch]) for batch in batches}
    progress.weigh(len(texts), sum(work.values()))
    last = time.perf_counter()
    # closed whatever happens: a batch that is under way elsewhere does not outlive the call
    hold = HELD if "device" in backend.facts else 0.0
    passes = _passes(backend, encoded, batches, want, states)
    with closing(store.keeping(list(once), passes, hold)) as kept:
        for batch, made in kept:
            for i, one in zip(batch, made, strict=True):
                traces[i] = _fixed(one)
            progress.worked(work[batch])
            before, last = last, time.perf_counter()
            progress.advance(len(batch), sum([lengths[i] for i in batch]), last - before, True)
    read = {key: found for key, found in zip(once, traces, strict=True) if found is not None}
    if len(read) < len(once):  # the others would stand beside the wrong texts
        raise ModelError(
            say("scoring.unanswered", name=backend.name, left=len(once) - len(read), texts=len(once))
        )
    return [read[key] for key in keys]


def encoded_for(
    backend: Backend, texts: Sequence[str], want: Quantity, states: States = frozenset(), after: str = ""
) -> list[Encoded]:
    """The token ids of each text behind `after`, with what it shares with others. Nothing is shared where states are
    wanted that belong to a whole pass."""
    encoded = backend.encode(texts)
    if after:
        encoded = behind(encoded, backend.encode([after])[0], backend.max_tokens)
    inside = any(not isinstance(one, Drawn | Peak) for one in states)
    if inside or want & (Quantity.HIDDEN | Quantity.NEURONS):
        return encoded
    return alike(encoded, getattr(backend, "least_shared", LEAST))


def _passes(
    backend: Backend,
    encoded: Sequence[Encoded],
    batches: Sequence[tuple[int, ...]],
    want: Quantity,
    states: States,
) -> Passes:
    """Each batch with its traces: in order, or as they are answered where a back end works on several at once."""
    rows = ([encoded[i] for i in batch] for batch in batches)
    if hasattr(backend, "stream"):
        for i, made in backend.stream(list(rows), want, states):
            yield batches[i], made
        return
    for batch, row in zip(batches, rows, strict=True):
        yield batch, backend.run(row, want, states)


def remaining_batches(
    backend: Backend, encoded: Sequence[Encoded], traces: Sequence[Trace | None]
) -> list[tuple[int, ...]]:
    """The planned batches of which nothing is known yet, then the gaps of the others packed anew."""
    whole, gaps = [], []
    for batch in backend.pack(encoded):
        missing = [i for i in batch if traces[i] is None]
        if len(missing) == len(batch):
            whole.append(batch)
        else:
            gaps.extend(missing)
    packed = backend.pack([encoded[i] for i in gaps]) if gaps else []
    return whole + [tuple(gaps[i] for i in batch) for batch in packed]


def _fixed(made: Trace) -> Trace:
    """Read-only like a trace from the store: a score that writes into it fails on the first run already."""
    for array in (made.tokens, made.logp, made.mean, made.std, *made.states.values()):
        if array is not None and array.flags.writeable:
            array.flags.writeable = False
    return made
