"""Progress in words, for where there is no terminal: what is done of how much, how fast, and the time left."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pretrace.tuning.plan import TrainingStep

Clock = Callable[[], float]


class PassesLine:
    """Passes over texts; what came from the cache counts neither for the speed nor for the time left."""

    def __init__(self, what: str, clock: Clock = time.monotonic) -> None:
        self.what, self._clock = what, clock
        from pretrace.scoring.evidence import Work

        self._work = Work()
        self._tokens, self._seconds = 0, 0.0
        self._since = clock()

    def begin(self, texts: int) -> None:
        """So many more passes over a text lie ahead."""
        self._work.begin(texts)

    def weigh(self, texts: int, tokens: int) -> None:
        """So many of them have so many tokens."""
        self._work.weigh(texts, tokens)

    def advance(self, texts: int, tokens: int, seconds: float, fresh: bool) -> None:
        """So many are done."""
        self._work.advance(texts, tokens, fresh=fresh)
        if fresh:
            self._tokens += tokens
            self._seconds += seconds
        elif not self._work.fresh:
            self._since = self._clock()

    def line(self) -> str:
        """Nothing before there is something to read, then such as
        "reading · 1,024 of 30,000 texts · 5,300 tokens/s · 4 min 10 s left"."""
        work = self._work
        if not work.total:
            return ""
        parts = [self.what, f"{work.done:,} of {work.total:,} texts"]
        if self._seconds:
            parts.append(f"{self._tokens / self._seconds:,.0f} tokens/s")
        left = work.left(self._clock() - self._since)
        if left is not None:
            parts.append(f"{duration(left)} left")
        return " · ".join(parts)


class TrainingLine:
    """Steps of a training."""

    def __init__(self, what: str, clock: Clock = time.monotonic) -> None:
        self.what, self._clock = what, clock
        self._since, self._step = clock(), None

    _step: TrainingStep | None

    def __call__(self, step: TrainingStep) -> None:
        """So far it is."""
        self._step = step

    def line(self) -> str:
        """Nothing before the first step, then such as
        "training · step 20 of 400 · loss 3.21 · 512 tokens/s · 3 min 10 s left"."""
        step = self._step
        if step is None:
            return ""
        left = (self._clock() - self._since) * (step.steps / max(step.step, 1) - 1)
        figures = f"loss {step.loss:.2f} · {step.tokens_per_second:,.0f} tokens/s"
        return f"{self.what} · step {step.step:,} of {step.steps:,} · {figures} · {duration(left)} left"


class BytesLine:
    """Texts and bytes that are counted; how many there will be is not known."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock, self._since = clock, clock()
        self._first: int | None = None
        self._texts = self._size = 0

    def __call__(self, texts: int, size: int) -> None:
        """So much is counted; what was counted before a resumed count began does not count for the speed."""
        if self._first is None:
            self._first = size
        self._texts, self._size = texts, size

    def state(self) -> str:
        """Such as "1,200 texts, 35 MB, 20 MB/s"."""
        rate = (self._size - (self._first or 0)) / 1e6 / max(self._clock() - self._since, 1e-3)
        return f"{self._texts:,} texts, {self._size / 1e6:,.0f} MB, {rate:,.0f} MB/s"

    def line(self) -> str:
        """The same with what is done; nothing before that."""
        return f"counting · {self.state()}" if self._texts else ""


def duration(seconds: float) -> str:
    """Seconds as "40 s", "1 min 40 s" or "2 h 5 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min"
