"""The stages of an audit: known beforehand, timed as they run, with an estimate of the time left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from pretrace.scoring.evidence import Progress, Silent
from pretrace.tuning.plan import OnStep
from pretrace.types import AuditPlan

Clock = Callable[[], float]
Action = Literal["reading", "writing", "training"]

_SECONDS: dict[Action, float] = {"reading": 1.3e-11, "writing": 3e-11, "training": 4e-11}
"""Seconds for a token and a parameter on two cores: orders of magnitude, which the first stages correct."""
_GPU = 200.0
"""How many times faster a graphics processor is: an order of magnitude again."""
_TRUSTED = 0.1
"""The share of a stage from which its own pace alone says how long the rest takes."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage that lies ahead, and a guess of the seconds it takes."""

    name: str
    seconds: float


class Watch(Protocol):
    """An observer of an audit's stages, and of the training steps and passes over texts within them.

    `plan` comes before the first stage. A stage that was not in the plan is shown all the same, and a stage
    may be entered again.
    """

    def planned(self, plan: AuditPlan, /) -> None:
        """What the audit can answer, before anything is done."""
        ...

    def plan(self, stages: Sequence[Stage], /) -> None:
        """All stages that lie ahead, in their order; told again, it replaces those not begun."""
        ...

    def passes(self, stage: str, /) -> AbstractContextManager[Progress]:
        """For a stage in which texts go through a model."""
        ...

    def training(self, stage: str, /) -> AbstractContextManager[OnStep | None]:
        """For a stage in which a model is trained."""
        ...


class Unwatched:
    """An audit that nobody watches."""

    def planned(self, plan: AuditPlan, /) -> None:
        """Nothing is shown."""

    def plan(self, stages: Sequence[Stage], /) -> None:
        """Nothing is shown."""

    @contextmanager
    def passes(self, stage: str, /) -> Iterator[Progress]:
        """Nothing is shown."""
        yield Silent()

    @contextmanager
    def training(self, stage: str, /) -> Iterator[OnStep | None]:
        """Nothing is shown."""
        yield None


@dataclass
class Timed:
    """A watch that passes everything on and notes the seconds each stage took, under its name."""

    watch: Watch
    clock: Clock = time.perf_counter
    seconds: dict[str, float] = field(default_factory=dict)

    def planned(self, plan: AuditPlan, /) -> None:
        """As the watch itself."""
        self.watch.planned(plan)

    def plan(self, stages: Sequence[Stage], /) -> None:
        """As the watch itself."""
        self.watch.plan(stages)

    @contextmanager
    def passes(self, stage: str, /) -> Iterator[Progress]:
        """As the watch itself, timed."""
        with self._timed(stage), self.watch.passes(stage) as progress:
            yield progress

    @contextmanager
    def training(self, stage: str, /) -> Iterator[OnStep | None]:
        """As the watch itself, timed."""
        with self._timed(stage), self.watch.training(stage) as on_step:
            yield on_step

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        begin = self.clock()
        try:
            yield
        finally:
            self.seconds[stage] = round(self.seconds.get(stage, 0.0) + self.clock() - begin, 2)


class Outlook:
    """How far a plan of stages has come and how many seconds are left of the whole.

    What finished stages really took, and the one under way so far, corrects the guesses of those ahead: they are
    multiplied by the seconds measured over the seconds guessed. A stage under way is judged by its own pace from a
    tenth of it on; up to there its guess and its pace count in part.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self.clock = clock
        self.stages: list[Stage] = []
        self.current: int | None = None
        self.share = 0.0
        self._began = self._guessed = self._measured = 0.0

    def plan(self, stages: Sequence[Stage]) -> None:
        """Set the stages ahead; those already begun stay in front of them."""
        begun = 0 if self.current is None else self.current + 1
        self.stages[begun:] = stages

    def begin(self, name: str) -> None:
        """A stage begins: the next of this name, or an earlier one that is entered again, or a new one.

        Stages between the last and this one were skipped; their seconds are no longer ahead.
        """
        begun = 0 if self.current is None else self.current + 1
        names = [stage.name for stage in self.stages]
        if name in names[begun:]:
            self.current = names.index(name, begun)
        elif name not in names[:begun]:
            self.stages.insert(begun, Stage(name, 0.0))
            self.current = begun
        self.share, self._began = 0.0, self.clock()

    def advance(self, share: float) -> None:
        """So much of the stage under way is done, from 0 to 1."""
        self.share = min(max(share, 0.0), 1.0)

    def end(self) -> None:
        """The stage under way is done; its time corrects the guesses of those ahead."""
        guessed = self._stage().seconds
        if guessed > 0:
            self._guessed += guessed
            self._measured += self.clock() - self._began
        self.share = 1.0

    @property
    def step(self) -> tuple[int, int]:
        """Which stage is under way, counted from 1, and of how many."""
        return (0 if self.current is None else self.current + 1), len(self.stages)

    def left(self) -> float:
        """Seconds left of the whole, as far as is known."""
        ahead = self.stages[0 if self.current is None else self.current + 1 :]
        return self._rest() + self._pace() * sum(stage.seconds for stage in ahead)

    def _rest(self) -> float:
        """Seconds left of the stage under way: by its pace, and as long as there is little of it by the guess."""
        if self.current is None or self.share >= 1:
            return 0.0
        gone = self.clock() - self._began
        guess = max(self._factor() * self._stage().seconds - gone, 0.0)
        if self.share <= 0:
            return guess
        weight = min(1.0, self.share / _TRUSTED)
        return weight * gone * (1 - self.share) / self.share + (1 - weight) * guess

    def _factor(self) -> float:
        """Seconds measured over seconds guessed, of finished stages alone."""
        return self._measured / self._guessed if self._guessed > 0 else 1.0

    def _pace(self) -> float:
        """The same with what is done of the stage under way; of its first tenth as far as it is done, beside so much of
        the guesses where nothing else was measured."""
        if self.current is None or not 0 < self.share < 1:
            return self._factor()
        guess, weight = self._stage().seconds, min(1.0, self.share / _TRUSTED)
        known = 0.0 if self._guessed > 0 else (1 - weight) * guess * _TRUSTED
        guessed = self._guessed + weight * self.share * guess + known
        measured = self._measured + weight * (self.clock() - self._began) + known
        return measured / guessed if guessed > 0 else self._factor()

    def _stage(self) -> Stage:
        assert self.current is not None, "no stage has begun"
        return self.stages[self.current]


def guessed_seconds(action: Action, *, parameters: int, tokens: int, device: str = "cpu") -> float:
    """A guess of the seconds an action takes: it grows with the model's parameters times the tokens.

    Of a training, tokens are those of all epochs. Right to an order of magnitude; what was measured corrects it.
    """
    seconds = _SECONDS[action] * parameters * tokens
    return seconds if device == "cpu" else seconds / _GPU
