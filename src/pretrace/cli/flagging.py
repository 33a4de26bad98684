"""What `flag` does, in order: check all that can be checked, open, ask, write, print."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text as Plain

from pretrace.cli import options as o
from pretrace.cli.job import Asking, Job, Measuring, Opening, Running, Source, grouped

if TYPE_CHECKING:
    from pretrace.flagging import FlagSettings
    from pretrace.types import Flagged

_SHOWN = 10
_FLAGGING = "Flagging"
_CONTROLS = "Controls"

NonMembers = Annotated[
    str,
    typer.Option(
        "--nonmembers",
        help="Texts of the same kind, source and time that the model cannot have seen, from 20 documents or more; "
        "given as TEXTS is.",
        show_default=False,
        rich_help_panel=_FLAGGING,
    ),
]
OneScore = Annotated[
    str,
    typer.Option(
        "--score",
        help="The score that decides, chosen beforehand: any that is not fitted on labels. With an earlier checkpoint "
        "of the model at hand: ref, and --reference-model CHECKPOINT.",
        rich_help_panel=_FLAGGING,
    ),
]
Rate = Annotated[
    float,
    typer.Option(
        "--fdr",
        help="The share of the flagged texts (documents, where they have several texts) that may be false, on average.",
        rich_help_panel=_FLAGGING,
    ),
]
Level = Annotated[
    float,
    typer.Option(
        "--level",
        help="How often the test of the TEXTS as a whole may say that they stand out where none was seen.",
        rich_help_panel=_FLAGGING,
    ),
]
FlagMethod = Annotated[
    str,
    typer.Option(
        "--method",
        help="How that rate is kept: bh (documents are independent of each other), by (they depend on each other; "
        "stricter), or auto: bh.",
        rich_help_panel=_FLAGGING,
    ),
]
Randomised = Annotated[
    bool,
    typer.Option(
        "--randomised",
        help="Break ties of scores by lot instead of against the text.",
        rich_help_panel=_FLAGGING,
    ),
]
FlagPlacebo = Annotated[
    str | None,
    typer.Option(
        "--placebo",
        help="A model that cannot have seen TEXTS; any --model value. If the same flagging finds anything there, the "
        "answer is refused.",
        rich_help_panel=_CONTROLS,
    ),
]
FlagOut = Annotated[
    Path,
    typer.Option(
        "--out",
        help="Folder for flags.csv, flags.json, known.csv and report.html; a flagging that is already there is "
        "replaced.",
        show_default=False,
        rich_help_panel=_FLAGGING,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flagging:
    """What the texts are held against, and how it is decided."""

    nonmembers: NonMembers
    out: FlagOut
    score: OneScore = "min_k_plus_plus"
    fdr: Rate = 0.05
    level: Level = 0.05
    method: FlagMethod = "auto"
    randomised: Randomised = False
    placebo: FlagPlacebo = None
    placebo_revision: o.PlaceboRevision = None
    counts: o.Counts = None
    reference_model: o.ReferenceModel = None
    tuned: o.Tuned = None
    neighbors: o.Neighbors = None
    seed: o.Seed = 0
    no_cache: o.NoCache = False


@grouped
def flag(source: Source, opening: Opening, flagging: Flagging) -> None:
    """Which of these texts were seen? Each against known non-members, at a rate of false flags, and all
    together. Exit code 3 when any is flagged or they stand out as a whole, 0 when neither, 4 when there is no answer:
    the two sets differ as texts, or the known ones are too few for "none" to mean anything."""
    raise typer.Exit(printed(carry_out(source, opening, flagging), flagging.out))


def carry_out(source: Source, opening: Opening, flagging: Flagging) -> Flagged:
    """The flagging, written to `flagging.out`; on any error nothing is left there."""
    from dataclasses import replace

    from pretrace.cli.assembling import assemble
    from pretrace.cli.progress import watched
    from pretrace.corpora import open_corpus
    from pretrace.flagging import flag as flag_texts
    from pretrace.flagging import plan
    from pretrace.results.atomic import check_writable
    from pretrace.runs import save_flags
    from pretrace.scoring.holdout import Parts

    settings = flag_settings(opening, flagging)
    check_writable(flagging.out)
    corpus = open_corpus(source.texts, source.columns)
    known = open_corpus(flagging.nonmembers, source.columns)
    for note in plan(corpus, known, settings).notes:  # said before a model is opened, while it costs nothing
        print(f"pretrace: note: {note}", file=sys.stderr)
    models, _ = assemble(_job(source, opening, flagging), lambda _: Parts(None, None, corpus))
    with watched("reading") as progress:
        made = flag_texts(corpus, known, models, settings, progress=progress)
    command = _command(source, opening, flagging)
    made = replace(made, settings={**made.settings, "command": command})
    save_flags(made, flagging.out)
    return made


def flag_settings(opening: Opening, flagging: Flagging) -> FlagSettings:
    """The options as `flag` takes them; ExpressionError or ModelError for one that is wrong or has no use, before
    anything is opened."""
    from pretrace.errors import ExpressionError, ModelError
    from pretrace.flagging import FlagSettings
    from pretrace.scoring.plan import ScorePlan

    settings = FlagSettings(
        score=flagging.score,
        fdr=flagging.fdr,
        level=flagging.level,
        method=flagging.method,  # type: ignore[arg-type]  # which is checked there
        randomised=flagging.randomised,
        seed=flagging.seed,
        cache=not flagging.no_cache,
    )
    given = {
        "reference": ("--reference-model", flagging.reference_model),
        "tuned": ("--tuned", flagging.tuned),
        "neighbors": ("--neighbors", flagging.neighbors),
    }
    there = [name for name, (_, value) in given.items() if value]
    plan = ScorePlan.parse(flagging.score)
    plan.require([*there, *(["counts"] if flagging.counts else [])])
    for name in there:
        if name not in plan.uses:
            raise ExpressionError(f"{given[name][0]} has no use: --score {flagging.score} does not ask it.")
    if flagging.placebo == opening.model and not flagging.placebo_revision and not opening.revision:
        raise ModelError(
            f"--placebo {flagging.placebo} is the model itself: name one that cannot have seen the texts, such as an "
            "earlier checkpoint (--placebo-revision) or a sibling."
        )
    return settings


def printed(flagged: Flagged, out: Path) -> int:
    """Print what was found; the exit code that tells a script the outcome."""
    from pretrace.results.flags import EXIT_CODES
    from pretrace.runs import REPORT

    console = Console(highlight=False)
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
    return EXIT_CODES[flagged.outcome]


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


def _job(source: Source, opening: Opening, flagging: Flagging) -> Job:
    """The models as `evaluate` would open them."""
    asking = Asking(
        scores=flagging.score,
        counts=flagging.counts,
        reference_model=flagging.reference_model,
        tuned=flagging.tuned,
        neighbors=flagging.neighbors,
    )
    running = Running(out=flagging.out, seed=flagging.seed, no_cache=flagging.no_cache)
    placebo = flagging.placebo or (opening.model if flagging.placebo_revision else None)
    measuring = Measuring(placebo=placebo, placebo_revision=flagging.placebo_revision)
    return Job(source, opening, asking, running, measuring)


def _command(*parts: Any) -> dict[str, Any]:
    """The options as they were given."""
    from dataclasses import asdict

    given = {name: value for part in parts for name, value in asdict(part).items()}
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in given.items()
        if value is not None
    }
