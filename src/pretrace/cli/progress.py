"""A progress bar with tokens a second and the time left; silent where nobody watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from pretrace.tracing import Progress as TraceProgress
from pretrace.tracing import Silent

if TYPE_CHECKING:
    from pretrace.tuning.plan import OnStep
    from pretrace.tuning.plan import Progress as Training


class Bar:
    """Shows passes over texts as they are done."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self.progress = progress
        self.task = task
        self.total = 0
        self.tokens = 0
        self.seconds = 0.0

    def begin(self, texts: int) -> None:
        """So many more passes over a text lie ahead."""
        self.total += texts
        self.progress.update(self.task, total=self.total)

    def advance(self, texts: int, tokens: int, seconds: float, fresh: bool) -> None:
        """So many are done; what came from the store does not count for the speed."""
        if fresh:
            self.tokens += tokens
            self.seconds += seconds
        rate = f"{self.tokens / self.seconds:,.0f} tokens/s" if self.seconds else "from the cache"
        self.progress.update(self.task, advance=texts, rate=rate)


@contextmanager
def watched(what: str) -> Iterator[TraceProgress]:
    """Progress on standard error if that is a terminal, none otherwise."""
    if not sys.stderr.isatty():
        yield Silent()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Bar(progress, progress.add_task(what, rate="", total=None))


@contextmanager
def counted_bytes() -> Iterator[Callable[[int, int], None]]:
    """Shows how many texts and megabytes are counted, and how fast; nothing where nobody watches."""
    if not sys.stderr.isatty():
        yield lambda texts, size: None
        return
    columns = (TextColumn("counting"), TextColumn("{task.fields[done]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", done="", total=None)
        begin = time.perf_counter()
        first: list[int] = []

        def show(texts: int, size: int) -> None:
            if not first:
                first.append(size)
            rate = (size - first[0]) / 1e6 / max(time.perf_counter() - begin, 1e-3)
            progress.update(task, done=f"{texts:,} texts, {size / 1e6:,.0f} MB, {rate:,.0f} MB/s")

        yield show


@contextmanager
def trained(what: str = "training") -> Iterator[OnStep | None]:
    """A bar for training with its loss; none where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (
        TextColumn(what),
        BarColumn(),
        TextColumn("{task.fields[state]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", state="", total=None)

        def show(step: Training) -> None:
            state = f"loss {step.loss:.2f}, {step.tokens_per_second:,.0f} tokens/s"
            progress.update(task, completed=step.step, total=step.steps, state=state)

        yield show
