"""Who watches the stages of a test, and what notes the seconds they take."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from pretrace.scoring.evidence import Progress, Silent
from pretrace.scoring.outlook import Clock, Stage
from pretrace.tuning.plan import OnStep
from pretrace.types import AuditPlan


class Watch(Protocol):
    """An observer of an audit's stages, and of the training steps and passes over texts within them.

    `plan` comes before the first stage. A stage that was not in the plan is shown all the same, and a stage
    may be entered again.
    """

    def planned(self, plan: AuditPlan, /) -> None:
        """What the audit can answer, before anything is done."""
        ...

    def plan(self, stages: Sequence[Stage], after: float, /) -> None:
        """All stages that lie ahead, in their order, and the seconds that are computed outside of them; told again, it
        replaces those not begun."""
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

    def plan(self, stages: Sequence[Stage], after: float, /) -> None:
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

    def plan(self, stages: Sequence[Stage], after: float, /) -> None:
        """As the watch itself."""
        self.watch.plan(stages, after)

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
