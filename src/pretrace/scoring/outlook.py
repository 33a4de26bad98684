"""What a run will cost, counted before any text is read, and how long a job still takes: its stages are known
beforehand, and what it does corrects what was guessed of them.

A job has one `TimeEstimate`, whatever shows it: a terminal, a line, the page. The plan of a test adds up the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeVar

import numpy as np

from pretrace.backends.naming import served_kind
from pretrace.cache import text_key
from pretrace.rewrites import After, Neighbors
from pretrace.scoring.evidence import CHUNK, Progress, Traces, encoded_for, remaining_batches
from pretrace.scoring.plan import Models, ScorePlan
from pretrace.tuning.plan import OnStep
from pretrace.types import Backend, Corpus, Needs, Rewrite, Trace

T = TypeVar("T")
Clock = Callable[[], float]
Action = Literal["reading", "writing", "training"]

_SECONDS: dict[Action, float] = {"reading": 1.3e-11, "writing": 3e-11, "training": 4e-11}
"""Seconds for a token and a parameter on two cores: orders of magnitude, which the first stages correct."""
_GPU = 200.0
"""How many times faster a graphics processor is: an order of magnitude again."""
_TRUSTED = 0.1
"""The share of a stage from which its own pace alone says how long the rest takes."""
_OVERDUE = 0.25
"""The share of what was foretold, or of what it took so far, that is left at least of what is not over yet."""
REPORT = 1.7
"""Seconds that a result and its report take, of one core; most of it is opening what draws."""
EVALUATION, SET_TEST = 0.7, 0.8
"""Seconds that an evaluation takes besides, and a flagging: opening what computes, and little for each text."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage that lies ahead, and a guess of the seconds it takes; 0 where nothing is known."""

    name: str
    seconds: float


class TimeEstimate:
    """How far a job has come and how many seconds are left of it.

    What finished stages really took, and the one under way so far, corrects the guesses of those ahead: they are
    multiplied by the seconds measured over the seconds guessed. A stage under way is judged by its own pace from a
    tenth of it on; up to there its guess and its pace count in part. `after` are the seconds of all that is computed
    outside of stages, tests and the report.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self.clock, self.after, self.share = clock, REPORT, 0.0
        self.stages: list[Stage] = []
        self.begun = 0
        """How many stages have begun, the one under way among them."""
        self._born = self._began = clock()
        self._guessed = self._measured = self._last = self._shown = 0.0
        self._running = False

    def plan(self, stages: Sequence[Stage], after: float | None = None) -> None:
        """Set the stages ahead, and the seconds `after` them; those already begun stay in front of them."""
        self.stages[self.begun :] = stages
        self.after = self.after if after is None else after

    def begin(self, name: str) -> None:
        """Begin a stage: the next of this name, or an earlier one that is entered again, or a new one.

        Stages between the last and this one were skipped; their seconds are no longer ahead.
        """
        names = [stage.name for stage in self.stages]
        if name in names[self.begun :]:
            self.begun = names.index(name, self.begun) + 1
        elif name not in names[: self.begun]:
            self.stages.insert(self.begun, Stage(name, 0.0))
            self.begun += 1
        self.share, self._running, self._began, self._last = 0.0, True, self.clock(), 0.0

    def waited(self) -> None:
        """Note that what the stage under way waited for until now was not its own work."""
        if self._running and not self.share:
            self._began = self.clock()

    def advance(self, done: float, of: float = 1.0) -> None:
        """Note how much of the stage under way is done, and of how much; that may turn out on the way."""
        share = min(max(done / of, 0.0), 1.0) if of else 0.0
        if share != self.share:
            self._last = self.clock() - self._began
        self.share = share

    def end(self) -> None:
        """End the stage under way; its time corrects the guesses of those ahead."""
        now, guessed = self.clock(), self.stages[self.begun - 1].seconds
        if guessed > 0:
            self._guessed += guessed
            self._measured += now - self._began
        self.share, self._running, self._began = 1.0, False, now

    @property
    def done(self) -> float:
        """The share of the whole that is done, from 0 to 1, by the seconds; it never goes back. Where the seconds left
        are not known, that of the stage under way."""
        left, gone = self.left(), self.clock() - self._born
        if left is None or not self.begun:
            return self._shown or (self.share if self._running else 0.0)
        self._shown = max(self._shown, gone / max(gone + left, 1e-9))
        return self._shown

    def left(self) -> float | None:
        """Seconds left of the whole; None as long as nothing is known of a stage under way or ahead."""
        ahead, rest = [stage.seconds for stage in self.stages[self.begun :]], self._rest()
        if not self.stages or rest is None or 0 in ahead:
            return None
        # seconds measured over seconds guessed, of finished stages and of what is done of the one under way
        guessed, measured = self._guessed, self._measured
        if self._running and self.share >= _TRUSTED and (own := self.stages[self.begun - 1].seconds):
            guessed += self.share * own
            measured += self._last
        pace = measured / guessed if guessed > 0 else 1.0
        idle = self.clock() - self._began if self.begun and not self._running else 0.0
        return rest + pace * sum(ahead) + _still(self.after, idle)

    def _rest(self) -> float | None:
        """Seconds left of the stage under way: by its pace, and as long as there is little of it by the guess."""
        if not self._running or self.share >= 1:
            return 0.0
        gone, guessed = self.clock() - self._began, self.stages[self.begun - 1].seconds
        factor = self._measured / self._guessed if self._guessed > 0 else 1.0
        guess = _still(factor * guessed, gone) if guessed else None
        if self.share <= 0:
            return guess
        own = _still(self._last / self.share * (1 - self.share), gone - self._last)
        weight = 1.0 if guess is None else min(1.0, self.share / _TRUSTED)
        return weight * own + (1 - weight) * (guess or 0.0)


def _still(whole: float, gone: float) -> float:
    """Seconds left of what was foretold to take `whole` seconds and took `gone` so far, without being over."""
    return max(whole - gone, _OVERDUE * gone)


def guessed_seconds(model: Backend, action: Action, tokens: int) -> float:
    """Guess the seconds an action takes: they grow with the model's parameters (1 where unknown) times the tokens.

    Of a training, tokens are those of all epochs. Right to an order of magnitude; what was measured corrects it.
    """
    seconds = _SECONDS[action] * int(model.facts.get("parameters") or 1) * tokens
    return seconds if str(model.facts.get("device") or "cpu").startswith("cpu") else seconds / _GPU


class Watch:
    """An observer of a test's stages, and of the training steps and passes over texts within them, which notes in
    `seconds` how long each took. A subclass shows what it overrides; by itself it shows nothing.

    `plan` comes before the first stage. A stage that was not in the plan is shown all the same, and a stage
    may be entered again.
    """

    def __init__(self, clock: Clock = time.perf_counter) -> None:
        self.clock, self.seconds = clock, dict[str, float]()

    def plan(self, stages: Sequence[Stage], after: float, /) -> None:
        """All stages that lie ahead, in their order, and the seconds that are computed outside of them; told again, it
        replaces those not begun."""

    def passes(self, stage: str, /) -> AbstractContextManager[Progress]:
        """For a stage in which texts go through a model."""
        return self.timed(stage, Progress())

    def training(self, stage: str, /) -> AbstractContextManager[OnStep | None]:
        """For a stage in which a model is trained."""
        return self.timed(stage, None)

    def shown(self, stage: str, /) -> AbstractContextManager[object]:
        """Show a stage while the context lasts."""
        return nullcontext()

    @contextmanager
    def timed(self, stage: str, told: T) -> Iterator[T]:
        """Show a stage, and note its seconds."""
        begin = self.clock()
        try:
            with self.shown(stage):
                yield told
        finally:
            self.seconds[stage] = round(self.seconds.get(stage, 0.0) + self.clock() - begin, 2)


@dataclass(frozen=True, slots=True)
class Workload:
    """What one model will be asked: `requests` (batches, where its weights are here) with `tokens` of `passes` forms
    of texts. `known` are forms whose answers are on disk already."""

    model: str
    requests: int
    tokens: int
    passes: int
    known: int

    @property
    def line(self) -> str:
        """The workload as a sentence."""
        asked = f"{self.requests:,} {'requests' if served_kind(self.model) else 'batches'}"
        size = f"{self.tokens:,} tokens, {self.passes:,} texts and forms of texts"
        kept = f"; {self.known:,} more are answered already" if self.known else ""
        return f"{self.model}: {asked} with {size}{kept}"


def workload(
    corpora: Iterable[Corpus],
    models: Models,
    plan: ScorePlan,
    *,
    labelled: Corpus | None = None,
    cache: bool = True,
) -> tuple[Workload, ...]:
    """The work of each model for these scores of all corpora: the target's, its companions' and the placebo's.

    Texts go through no model. A rewrite whose words a model proposes is counted with the length of the text itself.
    What a model tuned later is asked counts for the target.
    """
    asked: list[tuple[Backend, Container[str]]] = []
    for some in (models, models.placebo):
        named = some.named() if some is not None else {}
        for name, backend in named.items():
            tuned_later = {view.model for view in (plan.needs | plan.reference).views} - named.keys()
            asked.append((backend, {name, *tuned_later} if name == "target" else {name}))
    work = np.zeros((len(asked), 4), np.int64)
    parts = chain(
        ((corpus, plan.needs) for corpus in corpora), [(labelled, plan.reference)] if labelled else []
    )
    for corpus, needs in parts:
        work += [_work(backend, plan, corpus, needs, mine, cache) for backend, mine in asked]
    return tuple(Workload(backend.name, *row) for (backend, _), row in zip(asked, work.tolist(), strict=True))


def _work(
    backend: Backend, plan: ScorePlan, corpus: Corpus, needs: Needs, mine: Container[str], cache: bool
) -> tuple[int, int, int, int]:
    requests = tokens = passes = known = 0
    nothing = np.zeros(0, dtype=np.float32)
    later = Trace(nothing.astype(np.int32), nothing)  # what this run itself will have answered by then
    seen: set[bytes] = set()
    views = [one for one in needs.views.items() if one[1] and one[0].model in mine]
    with Traces(backend.fingerprint if cache else None) as store:
        for view, quantity in sorted(views, key=lambda one: one[0].rewrite != "plain"):  # as they are read
            form = plan.rewrites[view.rewrite]
            for texts in _forms(corpus, form):
                encoded = encoded_for(backend, texts, quantity)
                # what will stand before the texts follows from fitting; it is read once
                keys = [text_key(text, form.name if isinstance(form, After) else "") for text in texts]
                there = store.get(keys, quantity)
                known += sum(one is not None for one in there)
                answers = zip(keys, there, strict=True)
                there = [later if one is None and key in seen else one for key, one in answers]
                left = remaining_batches(backend, encoded, there)
                seen |= set(keys) if cache else set()
                requests += len(left)
                tokens += sum(encoded[i].length for batch in left for i in batch)
                passes += sum(map(len, left))
    return requests, tokens, passes, known


def _forms(corpus: Corpus, form: Rewrite) -> Iterator[list[str]]:
    """The forms of the texts, as many at once as a run reads."""
    for start in range(0, len(corpus), CHUNK):
        some = [text.text for text in corpus.texts[start : start + CHUNK]]
        if isinstance(form, Neighbors):
            yield [text for text in some for _ in range(form.count)]
        else:
            yield [one for forms in form(some, None) for one in forms]
