"""`pretrace flag`: check all that can be checked, open, ask, write, print."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text as Plain

from pretrace.cli.answer import Answer, of_folder
from pretrace.cli.notes import note as say_note
from pretrace.cli.options import Given
from pretrace.cli.paths import Source
from pretrace.corpora import open_corpus
from pretrace.errors import ExpressionError
from pretrace.flagging.planning import FLAGGING, FlagSettings
from pretrace.results.atomic import check_writable
from pretrace.scoring.settings import Companions, EvaluationSettings, ModelsSettings, Target
from pretrace.settings import CONTROLS, dry_run_option, like, option
from pretrace.types import Flagged

_SHOWN = 10
_PLACEBO = (
    "--placebo {} is the model itself: name one that cannot have seen the texts, such as an earlier checkpoint "
    "(--placebo-revision) or a sibling."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagInputs:
    """What the texts are compared with, and where the flags go."""

    nonmembers: str = option(
        help="Texts of the same kind, source and time that the model cannot have seen, from 20 documents or more; "
        "given as TEXTS is.",
        panel=FLAGGING,
        path="in",
        essential=True,
    )
    out: Path = option(
        help="Folder for flags.csv, flags.json, known.csv and report.html; a flagging that is already there is "
        "replaced.",
        panel=FLAGGING,
        path="out",
        essential=True,
    )
    placebo: str | None = option(
        None,
        "A model that cannot have seen TEXTS; any --model value. If the same flagging finds anything there, the "
        "answer is refused.",
        panel=CONTROLS,
        path="in",
        essential=True,
    )
    placebo_revision: str | None = like(EvaluationSettings, "placebo_revision")
    companions: Companions = field(default_factory=Companions)
    dry_run: bool = dry_run_option()


def flag(source: Source, target: Target, inputs: FlagInputs, settings: FlagSettings, given: Given) -> Answer:
    """Which of these texts were seen? Each against known non-members, at a rate of false flags, and all
    together. Exit code 3 when any is flagged or they stand out as a whole, 0 when neither, 4 when there is no answer:
    the two sets differ as texts, or the known ones are too few for "none" to mean anything."""
    from pretrace.cli.printing import foretold
    from pretrace.cli.progress import watched
    from pretrace.flagging import flag as flag_texts
    from pretrace.flagging import plan
    from pretrace.runs import save_flags
    from pretrace.scoring.models import check_placebo, named_placebos, open_models, with_texts
    from pretrace.scoring.workload import workload

    check_use(settings, inputs.companions)
    wanted = ModelsSettings(
        target=target,
        companions=inputs.companions,
        placebos=named_placebos([inputs.placebo], inputs.placebo_revision, target.model),
        placebo_revision=inputs.placebo_revision,
        cache=settings.cache,
    )
    check_placebo(wanted, _PLACEBO)
    check_writable(inputs.out)
    corpus = source.open()
    known = open_corpus(inputs.nonmembers, source.columns)
    planned = plan(corpus, known, settings)
    for note in planned.notes:  # said before a model is opened, while it costs nothing
        say_note(note)
    settings.plan.check_servers(wanted.roles)
    models = open_models(wanted)
    if inputs.dry_run:
        return foretold(workload(planned.corpus, models, settings.plan, cache=settings.cache))
    models = with_texts(models, wanted, seed=settings.seed)
    with watched("reading") as progress:
        made = flag_texts(corpus, known, models, settings, progress=progress)
    made = replace(made, settings={**made.settings, "command": dict(given)})
    save_flags(made, inputs.out)
    return printed(made, inputs.out)


def check_use(settings: FlagSettings, beside: Companions) -> None:
    """A PretraceError for a score that misses something, and for a model that it does not ask."""
    given = {
        "reference": ("--reference-model", beside.reference_model),
        "tuned": ("--tuned", beside.tuned),
        "neighbors": ("--neighbors", beside.neighbors),
    }
    there = [name for name, (_, value) in given.items() if value]
    settings.plan.require([*there, *(["counts"] if beside.counts else [])])
    for name in there:
        if name not in settings.plan.uses:
            raise ExpressionError(f"{given[name][0]} has no use: --score {settings.score} does not ask it.")


def printed(flagged: Flagged, out: Path) -> Answer:
    """What was found, with the exit code that tells a script the outcome."""
    return of_folder(out, partial(_printed, flagged, out))


def _printed(flagged: Flagged, out: Path, console: Console) -> None:
    from pretrace.runs import REPORT

    console.print(Plain(flagged.statement, style="bold"))
    for reason in flagged.reasons:
        console.print(Plain(f"- {reason}"))
    if flagged.number:
        console.print(_table(flagged))
    if flagged.skipped:
        names = ", ".join(f"{one.id!r} ({one.reason})" for one in flagged.skipped[:3])
        more = f" and {len(flagged.skipped) - 3:,} more" if len(flagged.skipped) > 3 else ""
        console.print(Plain(f"Not scored: {len(flagged.skipped):,}: {names}{more}; all in flags.json."))
    for advice in flagged.advice:
        console.print(Plain(f"What would help: {advice}"))
    console.print(Plain(f"Report: {out / REPORT}"), soft_wrap=True)


def _table(flagged: Flagged) -> Table:
    """The flagged texts, the most conspicuous first."""
    texts = flagged.texts
    rows = sorted((i for i, chosen in enumerate(texts.flagged) if chosen), key=lambda i: -texts.scores[i])
    table = Table(box=None, padding=(0, 2, 0, 0))
    several = texts.number < len(texts.ids)  # then documents are flagged, with all of their texts
    table.add_column("text of a flagged document" if several else "flagged text", overflow="fold")
    for name in (flagged.score, "p", "q"):
        table.add_column(Plain(name), justify="right", no_wrap=True)
    for i in rows[:_SHOWN]:
        figures = (texts.scores[i], texts.p[i], texts.q[i])
        table.add_row(Plain(texts.ids[i]), *(f"{figure:.3g}" for figure in figures))
    if len(rows) > _SHOWN:
        table.caption = f"{len(rows) - _SHOWN:,} more in flags.csv"
    return table
