"""A progress bar with tokens a second and the time left; nothing where standard error is no terminal.

An audit takes long, so without a terminal it writes a plain line every 30 seconds.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich import progress as rich
from rich.console import Console

from pretrace.auditing.watch import Outlook, Stage
from pretrace.cli.progress_file import EVERY, Noted, note, progress_file
from pretrace.scoring.evidence import Progress, Silent

if TYPE_CHECKING:
    from pretrace.tuning.plan import OnStep, TrainingStep
    from pretrace.types import AuditPlan


class Bar:
    """Shows passes over texts as they are done."""

    def __init__(self, progress: rich.Progress, task: rich.TaskID) -> None:
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
def watched(what: str) -> Iterator[Progress]:
    """Progress on standard error if that is a terminal, none otherwise."""
    if not sys.stderr.isatty():
        yield Noted(what) if progress_file() else Silent()
        return
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[rate]}"),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Bar(progress, progress.add_task(what, rate="", total=None))


@contextmanager
def counted_bytes() -> Iterator[Callable[[int, int], None]]:
    """Shows how many texts and megabytes are counted, and how fast, on a terminal."""
    if not sys.stderr.isatty():
        yield lambda texts, size: None
        return
    columns = (rich.TextColumn("counting"), rich.TextColumn("{task.fields[done]}"))
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as progress:
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
    """A bar for training with its loss, on a terminal; otherwise None."""
    if not sys.stderr.isatty():
        yield (lambda step: note(step.step / step.steps, None, what)) if progress_file() else None
        return
    columns = (
        rich.TextColumn(what),
        rich.BarColumn(),
        rich.TextColumn("{task.fields[state]}"),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", state="", total=None)

        def show(step: TrainingStep) -> None:
            state = f"loss {step.loss:.2f}, {step.tokens_per_second:,.0f} tokens/s"
            progress.update(task, completed=step.step, total=step.steps, state=state)

        yield show


def announce_training(classifiers: Sequence[str]) -> None:
    """Say on standard error that classifiers are trained before anything else is shown, which takes long."""
    trained_first = [name for name in classifiers if name.startswith(("pretrained", "gpt2"))]
    if trained_first:
        print(
            f"pretrace: note: {', '.join(trained_first)}: trained on the texts first; on a processor that can take "
            "many minutes.",
            file=sys.stderr,
        )


LINE_SECONDS = 30.0
"""The time between two lines where there is no terminal."""


class Stages:
    """The stages of an audit on standard error: which step of how many, and the time left of the whole.

    A bar on a terminal; without one a plain line every 30 seconds, also while a step reports nothing.
    """

    def __init__(self, outlook: Outlook | None = None) -> None:
        self.outlook = outlook or Outlook()
        self._told = self.outlook.clock()

    def planned(self, plan: AuditPlan, /) -> None:
        """Nothing is shown: only an audit has such a plan."""

    def plan(self, stages: Sequence[Stage], /) -> None:
        """All stages that lie ahead."""
        self.outlook.plan(stages)

    @contextmanager
    def passes(self, stage: str, /) -> Iterator[Progress]:
        """A stage in which texts go through a model."""
        with self._shown(stage):
            yield _Share(self.outlook)

    @contextmanager
    def training(self, stage: str, /) -> Iterator[OnStep | None]:
        """A stage in which a model is trained."""
        with self._shown(stage):
            yield lambda step: self.outlook.advance(step.step / step.steps)

    def line(self, stage: str) -> str:
        """What is shown now: "step 2 of 5 · training the generator · 1 min 40 s left of the whole"."""
        step, steps = self.outlook.step
        return f"step {step} of {steps} · {stage} · {_duration(self.outlook.left())} left of the whole"

    @contextmanager
    def _shown(self, stage: str) -> Iterator[None]:
        self.outlook.begin(stage)
        with self._bar(stage) if sys.stderr.isatty() else self._lines(stage), self._noted(stage):
            yield
        self.outlook.end()

    @contextmanager
    def _noted(self, stage: str) -> Iterator[None]:
        if progress_file() is None:
            yield
            return
        step, steps = self.outlook.step
        said = f"step {step} of {steps} · {stage}"
        show = lambda: note(self.outlook.share, self.outlook.left(), said)  # noqa: E731 - said once, called often
        with _repeated(show, first=0.0, every=EVERY):
            yield

    @contextmanager
    def _bar(self, stage: str) -> Iterator[None]:
        columns = (rich.TextColumn("{task.description}", markup=False), rich.BarColumn())
        progress = rich.Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
        task = progress.add_task(self.line(stage), total=1.0)

        def show() -> None:
            progress.update(task, completed=self.outlook.share, description=self.line(stage), refresh=True)

        with progress, _repeated(show, first=0.0, every=0.25):
            yield

    @contextmanager
    def _lines(self, stage: str) -> Iterator[None]:
        def show() -> None:
            self._told = self.outlook.clock()
            print(self.line(stage), file=sys.stderr, flush=True)

        waited = self.outlook.clock() - self._told
        with _repeated(show, first=max(0.0, LINE_SECONDS - waited), every=LINE_SECONDS):
            yield


class _Share:
    """Passes over texts as a share of a stage."""

    def __init__(self, outlook: Outlook) -> None:
        self.outlook, self.total, self.done = outlook, 0, 0

    def begin(self, texts: int) -> None:
        self.total += texts

    def advance(self, texts: int, tokens: int, seconds: float, fresh: bool) -> None:
        self.done += texts
        self.outlook.advance(self.done / max(1, self.total))


@contextmanager
def _repeated(act: Callable[[], None], *, first: float, every: float) -> Iterator[None]:
    """Call `act` after `first` seconds and then every so often, from a thread, while the context lasts."""
    over = threading.Event()

    def run() -> None:
        wait = first
        while not over.wait(wait):
            act()
            wait = every

    thread = threading.Thread(target=run, name="pretrace-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _duration(seconds: float) -> str:
    """Seconds as "40 s", "1 min 40 s" or "2 h 5 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min"
