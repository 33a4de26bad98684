"""What a command tells. While it works, how far it is: a bar on a terminal, elsewhere a line wherever nothing was said
for 30 seconds, lest whatever runs it takes it for dead, and the progress file; with --quiet nothing is shown. In the
end, what it found: written to its folder, and said on standard output, plain enough to read without colour.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from pretrace.cli import VARIABLE, quiet, said_at, say, write_progress
from pretrace.cli.commands import CANNOT_ANSWER, Reply, plain_table, printer, prose
from pretrace.report.tables import NAMES
from pretrace.results.wording import bracketed, duration, first_of, percent, plural
from pretrace.runs import REPORT, kind_of_test, save
from pretrace.scoring.evidence import Progress
from pretrace.scoring.outlook import REPORT as REPORTING
from pretrace.scoring.outlook import Clock, Stage, TimeEstimate, Watch, Workload
from pretrace.tuning.plan import OnStep, TrainingStep
from pretrace.types import Run, Verdict
from pretrace.verdicts.outcome import EXIT_CODES

LINE_SECONDS = 30.0
"""The time between two lines where there is no terminal."""
EVERY = 0.5
"""Seconds between two looks at how far the command is."""
_PREVIEW, _COLUMNS = 10, 4
_FIGURES = ("level", "p", "effect", "units", "unit")
_MEASURED = ("name", "kind", "auc", "tpr", "accuracy", "texts")


class Activity:
    """Something that a command does: `what`, and `line` with how far it is, such as "counting · 1,200 texts", "" where
    nothing is known."""

    def __init__(
        self, what: str, line: Callable[[], str] = lambda: "", clock: Clock = time.monotonic
    ) -> None:
        self.what, self.line, self.clock, self.since = what, line, clock, clock()


class _Passes(Progress):
    """Passes over texts, a stage of the job; what came from the cache counts neither for speed nor for time left."""

    def __init__(self, what: str, outlook: TimeEstimate) -> None:
        super().__init__()
        self.what, self.outlook = what, outlook

    def weigh(self, texts: int, work: float) -> None:
        self.outlook.waited()
        super().weigh(texts, work)
        if self.fresh:
            self.outlook.advance(*self.sizes)

    def advance(self, texts: int, tokens: int, seconds: float, fresh: bool) -> None:
        super().advance(texts, tokens, seconds, fresh)
        if fresh:
            self.outlook.advance(*self.sizes)
        elif not self.fresh:
            self.outlook.waited()

    def line(self) -> str:
        """How far it is, such as "reading · 1,024 of 30,000 texts · 5,300 tokens/s · 4 min 10 s left"."""
        if not self.total:
            return ""
        done = f"{self.done:,} of {self.total:,} texts"
        rate = f"{self.tokens / self.seconds:,.0f} tokens/s" if self.seconds else ""
        left = self.outlook.left() if self.outlook.share else None
        told = "" if left is None else f"{duration(left)} left"
        return " · ".join(filter(None, (self.what, done, rate, told)))


class Stages(Watch):
    """The stages of an audit: which step of how many, and the time left of the whole."""

    def __init__(self, outlook: TimeEstimate | None = None) -> None:
        super().__init__()
        self.outlook = outlook or _job()

    def plan(self, stages: Sequence[Stage], after: float, /) -> None:
        """Set all stages that lie ahead."""
        self.outlook.plan(stages, after)

    def passes(self, stage: str, /) -> AbstractContextManager[_Passes]:
        """For a stage in which texts go through a model."""
        return self.timed(stage, _Passes(stage, self.outlook))

    def training(self, stage: str, /) -> AbstractContextManager[OnStep | None]:
        """For a stage in which a model is trained."""
        return self.timed(stage, lambda step: self.outlook.advance(step.step / step.steps))

    @contextmanager
    def shown(self, stage: str, /) -> Iterator[None]:
        """Show which step of how many it is, and the time left of the whole."""
        self.outlook.begin(stage)
        words = f"step {self.outlook.begun} of {len(self.outlook.stages)} · {stage}"

        def line() -> str:
            left = self.outlook.left()
            return words if left is None else f"{words} · {duration(left)} left of the whole"

        with shown(Activity(words, line)):
            yield
        self.outlook.end()


@contextmanager
def watched(what: str, after: float = REPORTING) -> Iterator[Progress]:
    """Show passes over texts; so many seconds of other work come `after` them."""
    stages = Stages()
    stages.plan([Stage(what, 0.0)], after)
    with stages.passes(what) as passes, shown(Activity(what, passes.line)):
        yield passes


@contextmanager
def trained(what: str = "training") -> Iterator[OnStep]:
    """Show a training, such as "training · step 20 of 400 · loss 3.21 · 512 tokens/s · 3 min 10 s left", as a stage of
    a job whose other stages are not known yet."""
    outlook, last = _job(), list[TrainingStep]()

    def on_step(step: TrainingStep) -> None:
        if not last:
            outlook.plan([Stage(what, 0.0), Stage("reading", 0.0)])
            outlook.begin(what)
        last[:] = [step]
        outlook.advance(step.step / step.steps)

    def line() -> str:
        for step in last:
            left = (activity.clock() - activity.since) * (step.steps / max(step.step, 1) - 1)
            figures = f"loss {step.loss:.2f} · {step.tokens_per_second:,.0f} tokens/s"
            return f"{what} · step {step.step:,} of {step.steps:,} · {figures} · {duration(left)} left"
        return ""

    with shown(Activity(what, line, outlook.clock)) as activity:
        yield on_step
    if last:
        outlook.end()


@contextmanager
def counted() -> Iterator[Callable[[int, int], None]]:
    """Show texts and bytes that are counted, such as "counting · 1,200 texts, 35 MB"; how many there will be is not
    known."""
    last = list[tuple[int, int]]()

    def on_progress(texts: int, size: int) -> None:
        last[:] = [(texts, size)]

    def line() -> str:
        return "".join(f"counting · {texts:,} texts, {size / 1e6:,.0f} MB" for texts, size in last)

    with shown(Activity("counting", line)):
        yield on_progress


_doing: list[Activity] = []
"""What is being done, the innermost last."""
_jobs: list[TimeEstimate] = []
"""How long the commands that run still take: `ask` runs another."""
_bars: list[Live] = []
"""What stands on the terminal."""


def _job() -> TimeEstimate:
    """The outlook of the command that runs; one of its own outside of any."""
    return _jobs[-1] if _jobs else TimeEstimate()


@contextmanager
def shown(activity: Activity, *, bar: bool = True) -> Iterator[Activity]:
    """Show an activity while the context lasts: in the line, the progress file, and with a `bar` on a terminal."""
    _doing.append(activity)
    _write_share()
    try:
        with _bar() if bar and not _bars and not quiet() and sys.stderr.isatty() else nullcontext():
            yield activity
    finally:
        _doing.remove(activity)
        _write_share()


@contextmanager
def doing(what: str, *, spinner: bool = False, clock: Clock = time.monotonic) -> Iterator[None]:
    """Name something that reports no progress while the context lasts. `spinner` shows it on a terminal too, which
    nothing else may write to meanwhile."""
    with shown(Activity(what, clock=clock), bar=spinner):
        yield


@contextmanager
def _bar() -> Iterator[None]:
    live = Live(get_renderable=_drawn, console=printer(stderr=True), transient=True, refresh_per_second=4)
    _bars.append(live)
    try:
        with live:
            yield
    finally:
        _bars.remove(live)


def _drawn() -> RenderableType:
    share = _job().share
    row = Table.grid(padding=(0, 1))
    said = prose(_line() or (_doing[-1].what if _doing else ""))
    row.add_row(said, ProgressBar(total=1.0, completed=share, pulse=not share, width=40))
    return row


def _line() -> str:
    return next(filter(None, (one.line() for one in reversed(_doing))), "")


@contextmanager
def command(name: str, clock: Clock = time.monotonic) -> Iterator[None]:
    """Follow a whole command: how far it is goes to the progress file, where one is asked for, and without a terminal a
    line is said wherever nothing was said for 30 seconds."""
    followed = bool(_jobs)  # `ask` is, and so is what it runs
    _jobs.append(TimeEstimate())
    try:
        with doing(f"pretrace {name}", clock=clock), nullcontext() if followed else _repeated(_look):
            yield
    finally:
        _jobs.pop()


def _look(clock: Clock = time.monotonic) -> None:
    """Write the progress file, and say the line if it is time for one."""
    _write_share()
    now = clock()
    if sys.stderr.isatty() or quiet() or now - said_at[0] < LINE_SECONDS:
        return
    said_at[0] = now
    say(_line() or f"{_doing[-1].what} · {duration(now - _doing[-1].since)} so far")


def _write_share() -> None:
    if not _jobs or not os.environ.get(VARIABLE):
        return
    outlook = _jobs[-1]
    # every command that takes long begins with its texts, and ends with its result
    otherwise = "reading the texts" if not outlook.begun else ""
    write_progress(outlook.done, outlook.left(), _doing[-1].what if len(_doing) > 1 else otherwise)


@contextmanager
def _repeated(act: Callable[[], None]) -> Iterator[None]:
    """Call `act` every half second, from a thread, while the context lasts."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(EVERY):
            act()

    thread = threading.Thread(target=run, name="pretrace-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def write_run(run: Run, out: Path, **more: Any) -> Reply:
    """Write a run, with `more` files; what it found and where it lies. The answer has its JSON part (`result`), and the
    figures that matter most (`figures`)."""
    found = run.evaluation
    table, findings = (measured(run), found.findings) if found else (_preview(run), ())
    content = save(run, out, **more)
    figures: dict[str, Any] = {"counts": content["counts"]}
    if found:
        rows = [{name: getattr(row, name) for name in _MEASURED} for row in found.rows]
        figures |= {"rows": rows, "findings": findings}
    told = map(prose, (*(f"- {one}" for one in findings), *_losses(run)))
    return Reply(
        [table, *told, f"Report: {out / REPORT}"],
        statement=findings[0] if found else f"Texts scored: {content['counts']['texts']:,}.",
        folder=out,
        report=out / REPORT,
        own={"kind": "run", "figures": figures, "result": content},
    )


def write_verdict(
    found: Verdict,
    out: Path,
    given: Mapping[str, Any],
    *shown: RenderableType,
    checked: bool = True,
    **more: Any,
) -> Reply:
    """Write a verdict, with the options that were `given` and `more` files; what the test found: the statement, its
    reasons, what else is `shown`, the checks if they are to be listed, what would help, and where the report lies."""
    reasons = [f"- {one}" for one in (*found.reasons, *(_effects(found) if checked else ()))]
    listed = reasons if found.test == "scan" else map(prose, reasons)  # a search may name a file
    said: list[RenderableType] = [prose(found.statement, "bold"), *listed, *shown]
    if checked and found.checks:
        table = plain_table("check", "", rows=[(one.title, one.status) for one in found.checks])
        table.columns[1].no_wrap = True
        said.append(table)
    said += map(prose, found.register[:1] if checked else ())
    said += [f"Report: {out / REPORT}", *closing(found)]
    content = save(with_command(found, given), out, **more)
    main = {name: content[name] for name in _FIGURES if content.get(name) is not None}
    kind, figures = kind_of_test(found.test).name, {**main, **content["figures"]}
    return Reply(
        said,
        outcome=found.outcome,
        code=content["exit_code"],
        statement=found.statement,
        folder=out,
        report=out / REPORT,
        verdict=found,
        own={"kind": kind, "figures": figures, "result": content},
    )


def with_command(verdict: Verdict, given: Mapping[str, Any]) -> Verdict:
    """The verdict with the options that its command was given."""
    return replace(verdict, settings={**verdict.settings, "command": dict(given)})


def closing(found: Verdict) -> Iterator[str]:
    """The last lines below a verdict: why it has no answer, where it has none, and what would help."""
    if EXIT_CODES[found.outcome] == CANNOT_ANSWER:
        own = [one for one in found.reasons if one not in found.register]
        failed = tuple(
            f"{check.title}: this check failed." for check in found.checks if check.status == "failed"
        )
        else_ = found.statement if found.test in ("flag", "samples") or not own else own[-1]
        yield f"Why there is no answer: {next((one for one in own if failed and one.startswith(failed)), else_)}"
    for advice in found.advice:
        yield f"What would help: {advice}"


def _effects(found: Verdict) -> Iterator[str]:
    """The effect, and what training moved a copy by, in the unit of the score; page one of the report has neither."""
    planted = found.planted and found.planted.effect
    for words, one in (("The effect is", found.effect), ("Training moved the copy by", planted)):
        if one:
            yield f"{words} {one.value:.4f} {found.effect_unit} [{one.low:.4f}, {one.high:.4f}]."


def foretold(work: Sequence[Workload], *more: str) -> Reply:
    """What a run would ask of each model, with `more` lines."""
    first = "Dry run: no text went through a model."
    said, own = [first, *(one.line for one in work), *more], {"work": [asdict(one) for one in work]}
    return Reply(said, outcome="dry run", statement=first, own=own)


def measured(run: Run) -> Table:
    """Each score and control with its figures and 95% intervals."""
    assert run.evaluation is not None
    texts = _texts_of(run)
    rows = []
    for row in run.evaluation.rows:
        rests = f" ({row.texts:,} texts)" if row.texts is not None and row.texts < texts else ""
        name = NAMES.get(row.kind, "{}").format(row.name)
        rows.append((name + rests, *map(bracketed, (row.auc, row.tpr, row.accuracy))))
    title = f"{run.corpus}: {texts} texts, {run.evaluation.groups} documents; 95% intervals"
    figures = "AUC", "TPR at 5% FPR", "accuracy"  # narrow: it must fit in 80 columns
    return plain_table("score", numbers=figures, rows=rows, title=prose(title))


def _preview(run: Run) -> Table:
    """The texts that are the highest in the first score, with the first of their scores."""
    names, rows = run.scores[:_COLUMNS], []
    for i in (-run.matrix[:, 0]).argsort(kind="stable")[:_PREVIEW]:
        values = ("–" if one != one else f"{one:.4g}" for one in run.matrix[i, :_COLUMNS])
        rows.append((run.ids[i], str(run.tokens[i]), *values))
    more = len(run.scores[_COLUMNS:])
    caption = f"{plural(more, 'more score')} in {'scores/' if run.whole else 'scores.csv'}" if more else ""
    title = prose(f"{run.corpus}: {plural(_texts_of(run), 'text')}, the highest by {run.scores[0]}")
    table = plain_table("id", numbers=("tokens", *names), rows=rows, caption=caption, title=title)
    for column in table.columns[2:]:
        column.no_wrap, column.overflow = False, "fold"
    return table


def _losses(run: Run) -> Iterator[str]:
    """Lines on what was not scored and what was cut, so that nothing is lost in silence."""
    whole = run.whole
    if number := whole.skipped if whole else len(run.skipped):
        names = first_of([f"{s.id!r} ({s.reason})" for s in run.skipped[:3]], number)
        yield f"Not scored: {plural(number, 'text')}: {names}; all in skipped.csv."
    if run.missing:
        one, texts = run.missing[0], whole.lacking if whole else len({one.id for one in run.missing})
        yield (
            f"Without a value of some score: {plural(texts, 'text')}, such as {one.id!r} of {one.score} "
            f"({one.reason}); all in missing.csv."
        )
    cut, dropped, tokens = int((run.cut > 0).sum()), int(run.cut.sum()), int(run.tokens.sum())
    if whole:
        cut, dropped, tokens = whole.cut_texts, whole.cut_tokens, whole.tokens
    if cut:
        first = run.settings["cut"]["ids"][0] if whole else run.ids[int((run.cut > 0).argmax())]
        yield (
            f"Cut: {plural(cut, 'text')} (the first is {first!r}) lost {dropped:,} tokens at the end, "
            f"{percent(dropped / (dropped + tokens))} of all: cut them, with their group, into shorter ones."
        )
    yield from (f"Note: {note}" for note in run.settings.get("texts", {}).get("notes", ()))


def _texts_of(run: Run) -> int:
    return run.whole.texts if run.whole else len(run.ids)
