"""A progress bar with tokens a second and the time left; a plain line every 30 seconds where standard error is no
terminal, lest whatever runs the command takes it for dead; nothing with --quiet."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from rich import progress as rich

from pretrace.cli.answer import printer
from pretrace.cli.streams import EVERY, note, note_share, progress_file, quiet, said_at, say
from pretrace.scoring.evidence import Progress, Work
from pretrace.scoring.outlook import REPORT, Clock, Outlook, Stage, Watch

if TYPE_CHECKING:
    from pretrace.tuning.plan import OnStep, TrainingStep
    from pretrace.types import AuditPlan


# Progress in words, for where there is no terminal: what is done of how much, how fast, and the time left.


class Passes(Progress):
    """Passes over texts, a stage of the job; what came from the cache counts neither for the speed nor for the time
    left."""

    def __init__(self, what: str, outlook: Outlook) -> None:
        self.what, self.outlook, self.work = what, outlook, Work()
        self.tokens, self.seconds = 0, 0.0
        self._weighed = False

    def begin(self, texts: int) -> None:
        """So many more passes over a text lie ahead."""
        self.work.begin(texts)

    def weigh(self, texts: int, work: float) -> None:
        """So many of them are so much work."""
        self._weighed = True
        self.outlook.waited()
        self.work.weigh(texts, work)
        if self.work.fresh:
            self.outlook.advance(*self.work.sizes)

    def worked(self, work: float) -> None:
        """So much of it is done."""
        self.work.worked(work)

    def advance(self, texts: int, tokens: int, seconds: float, fresh: bool) -> None:
        """So many are done."""
        self.work.advance(texts, fresh=fresh)
        if fresh:
            self.tokens += tokens
            self.seconds += seconds
            self.outlook.advance(*self.work.sizes)
        elif not self.work.fresh:
            self.outlook.waited()

    @property
    def rate(self) -> str:
        """Such as "5,300 tokens/s"; nothing before a batch was read."""
        return f"{self.tokens / self.seconds:,.0f} tokens/s" if self.seconds else ""

    def line(self) -> str:
        """Nothing before there is something to read, then such as
        "reading · 1,024 of 30,000 texts · 5,300 tokens/s · 4 min 10 s left"."""
        if not self.work.total:
            return ""
        done = f"{self.work.done:,} of {self.work.total:,} texts"
        return " · ".join(filter(None, (self.what, done, self.rate, _left_of(self.outlook))))

    def said(self) -> str:
        """What is done now."""
        if self.work.done or not self.work.total:
            return self.what
        return f"{self.what}: " + (
            "the first batch is computed" if self._weighed else f"tokenising {self.work.total:,} texts"
        )


def _left_of(outlook: Outlook) -> str:
    """Such as "4 min 10 s left"; nothing where it is not known."""
    left = outlook.left() if outlook.share else None
    return "" if left is None else f"{duration(left)} left"


class TrainingLine:
    """Steps of a training, a stage of a job whose other stages are not known yet."""

    def __init__(self, what: str, clock: Clock = time.monotonic, outlook: Outlook | None = None) -> None:
        self.what, self._clock, self._outlook = what, clock, outlook or Outlook(clock)
        self._since, self._step = clock(), None

    _step: TrainingStep | None

    def __call__(self, step: TrainingStep) -> None:
        """So far it is."""
        if self._step is None:
            self._outlook.plan([Stage(self.what, 0.0), Stage("reading", 0.0)])
            self._outlook.begin(self.what)
        self._step = step
        self._outlook.advance(step.step / step.steps)

    @contextmanager
    def over(self) -> Iterator[None]:
        """While the context lasts, the training goes on."""
        with _now(self.what):
            yield
        if self._step is not None:
            self._outlook.end()

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


class _Bar(Passes):
    """Shows passes over texts as they are done."""

    def __init__(self, what: str, outlook: Outlook, progress: rich.Progress) -> None:
        super().__init__(what, outlook)
        self.progress = progress
        self.task = progress.add_task(what, rate="", left="", total=None)

    def begin(self, texts: int) -> None:
        """So many more passes over a text lie ahead."""
        super().begin(texts)
        self.progress.update(self.task, total=self.work.total)

    def advance(self, texts: int, tokens: int, seconds: float, fresh: bool) -> None:
        """So many are done."""
        super().advance(texts, tokens, seconds, fresh)
        rate = self.rate or "from the cache"
        self.progress.update(self.task, advance=texts, rate=rate, left=_left_of(self.outlook))


@contextmanager
def watched(what: str, after: float = REPORT) -> Iterator[Progress]:
    """Passes over texts, shown on standard error; so many seconds of other work come `after` them."""
    outlook = job()
    outlook.plan([Stage(what, 0.0)], after)
    outlook.begin(what)
    if not sys.stderr.isatty() or quiet():
        passes = Passes(what, outlook)
        with _now(passes.said), said(passes.line):
            yield passes
    else:
        columns = (
            rich.TextColumn("{task.description}"),
            rich.BarColumn(),
            rich.MofNCompleteColumn(),
            rich.TextColumn("{task.fields[rate]}"),
            rich.TextColumn("{task.fields[left]}"),
        )
        with rich.Progress(*columns, console=printer(stderr=True), transient=True) as progress:
            bar = _Bar(what, outlook, progress)
            with _now(bar.said):
                yield bar
    outlook.end()


@contextmanager
def counted_bytes() -> Iterator[Callable[[int, int], None]]:
    """Shows how many texts and megabytes are counted, and how fast."""
    counted = BytesLine()
    if not sys.stderr.isatty() or quiet():
        with said(counted.line):
            yield counted
        return
    columns = (rich.TextColumn("counting"), rich.TextColumn("{task.fields[done]}"))
    with rich.Progress(*columns, console=printer(stderr=True), transient=True) as progress:
        task = progress.add_task("", done="", total=None)

        def show(texts: int, size: int) -> None:
            counted(texts, size)
            progress.update(task, done=counted.state())

        yield show


@contextmanager
def trained(what: str = "training") -> Iterator[OnStep | None]:
    """Training with its loss, shown on standard error."""
    steps = TrainingLine(what, outlook=job())
    if not sys.stderr.isatty() or quiet():
        with said(steps.line), steps.over():
            yield steps
        return
    columns = (
        rich.TextColumn(what),
        rich.BarColumn(),
        rich.TextColumn("{task.fields[state]}"),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=printer(stderr=True), transient=True) as progress:
        task = progress.add_task("", state="", total=None)

        def show(step: TrainingStep) -> None:
            steps(step)
            state = f"loss {step.loss:.2f}, {step.tokens_per_second:,.0f} tokens/s"
            progress.update(task, completed=step.step, total=step.steps, state=state)

        with steps.over():
            yield show


def announce_training(classifiers: Sequence[str]) -> None:
    """Say on standard error that classifiers are trained before anything else is shown, which takes long."""
    trained_first = [name for name in classifiers if name.startswith(("pretrained", "gpt2"))]
    if trained_first:
        note(
            f"{', '.join(trained_first)}: trained on the texts first; on a processor that can take many minutes."
        )


_LINE_SECONDS = 30.0
"""The time between two lines where there is no terminal."""


@contextmanager
def said(line: Callable[[], str], clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Print what `line` gives, if anything, to standard error every 30 seconds while the context lasts; nothing with
    --quiet."""
    if quiet():
        yield
        return

    def show() -> None:
        if words := line():
            said_at[0] = clock()
            say(words)

    waited = clock() - said_at[0]
    with repeated(show, first=max(0.0, _LINE_SECONDS - waited), every=_LINE_SECONDS):
        yield


class Stages(Watch):
    """The stages of an audit on standard error: which step of how many, and the time left of the whole.

    A bar on a terminal; without one a plain line every 30 seconds, also while a step reports nothing.
    """

    def __init__(self, outlook: Outlook | None = None) -> None:
        self.outlook = outlook or job()
        self._told = self.outlook.clock()

    def planned(self, plan: AuditPlan, /) -> None:
        """Nothing is shown: only an audit has such a plan."""

    def plan(self, stages: Sequence[Stage], after: float, /) -> None:
        """All stages that lie ahead."""
        self.outlook.plan(stages, after)

    @contextmanager
    def passes(self, stage: str, /) -> Iterator[Progress]:
        """A stage in which texts go through a model."""
        with self._shown(stage):
            yield Passes(stage, self.outlook)

    @contextmanager
    def training(self, stage: str, /) -> Iterator[OnStep | None]:
        """A stage in which a model is trained."""
        with self._shown(stage):
            yield lambda step: self.outlook.advance(step.step / step.steps)

    def line(self, stage: str) -> str:
        """What is shown now: "step 2 of 5 · training the generator · 1 min 40 s left of the whole"."""
        left = self.outlook.left()
        told = "" if left is None else f"{duration(left)} left of the whole"
        return " · ".join(filter(None, (self._words(stage), told)))

    def _words(self, stage: str) -> str:
        step, steps = self.outlook.step
        return f"step {step} of {steps} · {stage}"

    @contextmanager
    def _shown(self, stage: str) -> Iterator[None]:
        self.outlook.begin(stage)
        shown = nullcontext() if quiet() else self._bar(stage) if sys.stderr.isatty() else self._lines(stage)
        with shown, _now(self._words(stage)):
            yield
        self.outlook.end()

    @contextmanager
    def _bar(self, stage: str) -> Iterator[None]:
        columns = (rich.TextColumn("{task.description}", markup=False), rich.BarColumn())
        progress = rich.Progress(*columns, console=printer(stderr=True), transient=True, auto_refresh=False)
        task = progress.add_task(self.line(stage), total=1.0)

        def show() -> None:
            progress.update(task, completed=self.outlook.share, description=self.line(stage), refresh=True)

        with progress, repeated(show, first=0.0, every=0.25):
            yield

    @contextmanager
    def _lines(self, stage: str) -> Iterator[None]:
        def show() -> None:
            self._told, said_at[0] = self.outlook.clock(), time.monotonic()
            say(self.line(stage))

        waited = self.outlook.clock() - self._told
        with repeated(show, first=max(0.0, _LINE_SECONDS - waited), every=_LINE_SECONDS):
            yield


@contextmanager
def repeated(act: Callable[[], None], *, first: float, every: float) -> Iterator[None]:
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


# What a command is doing, said where it has been silent for long: models are opened, a large source is read once.
#
# Stages with lines or bars of their own (`progress`) come first; this is for everything between them.


_LATER = 1.0
"""Seconds that a stage's own line is given before it counts as missing; also the time between two looks."""
_Words = str | Callable[[], str]
_doing: list[tuple[_Words, float]] = []
"""What is being done and since when, the innermost last."""
_jobs: list[Outlook] = []
"""How long the command that runs still takes."""


def job() -> Outlook:
    """The outlook of the command that runs; one of its own outside of any."""
    return _jobs[-1] if _jobs else Outlook()


@contextmanager
def _now(what: _Words, since: float | None = None) -> Iterator[None]:
    """What is being done, for the line and for the progress file while the context lasts."""
    _doing.append((what, time.monotonic() if since is None else since))
    _note()
    try:
        yield
    finally:
        _doing.pop()
        _note()


def _note() -> None:
    """Write how far the command is, where a file is asked for."""
    if not _jobs or progress_file() is None:
        return
    outlook = _jobs[-1]
    # every command that takes long begins with its texts, and ends with its result
    otherwise = "reading the texts" if outlook.current is None else ""
    said = _in_words(_doing[-1][0]) if len(_doing) > 1 else otherwise
    note_share(outlook.done, outlook.left(), said)


def _in_words(what: _Words) -> str:
    return what if isinstance(what, str) else what()


@contextmanager
def doing(what: str, *, spinner: bool = False, clock: Clock = time.monotonic) -> Iterator[None]:
    """Something that reports no progress, named for the line and for the progress file while the context lasts.

    `spinner` shows it on a terminal too, which nothing else may write to meanwhile.
    """
    shown = spinner and sys.stderr.isatty() and not quiet()
    with _now(what, clock()), printer(stderr=True).status(what) if shown else nullcontext():
        yield


@contextmanager
def command(name: str, clock: Clock = time.monotonic) -> Iterator[None]:
    """A whole command: a plain line on standard error wherever nothing was said for 30 seconds, lest whatever runs it
    takes it for dead; nothing on a terminal or with --quiet."""
    _jobs.append(Outlook())
    lines = (
        nullcontext()
        if sys.stderr.isatty()
        else repeated(lambda: _say(clock), first=_LINE_SECONDS + _LATER, every=_LATER)
    )
    noted = repeated(_note, first=EVERY, every=EVERY) if progress_file() else nullcontext()
    try:
        with _now(f"pretrace {name}", clock()), lines, noted:
            yield
    finally:
        _jobs.pop()


def _say(clock: Clock) -> None:
    """The line, if it is time for one."""
    now = clock()
    if quiet() or now - said_at[0] < _LINE_SECONDS + _LATER:
        return
    said_at[0] = now
    what, since = _doing[-1]
    say(f"{_in_words(what)} · {duration(now - since)} so far")
