"""`pretrace flag`: check all that can be checked, open, ask, write, print; and `pretrace runs merge`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from rich.table import Table

from pretrace.cli import note as say_note
from pretrace.cli.answer import Reply, plain_table, prose
from pretrace.cli.opening import opened, with_text_column
from pretrace.cli.options import RawOptions, output_option
from pretrace.cli.printing import foretold, write_verdict
from pretrace.cli.progress import Stages
from pretrace.cli.scoring import TextsToScore, finish_run, in_shards, label_source, lasting
from pretrace.corpora import Columns, open_stream
from pretrace.corpora.opening import Source, TextStream
from pretrace.corpora.reading import Unreadable
from pretrace.errors import ExpressionError, OutputError
from pretrace.jobs.settings import EngineSettings, JobSettings, divided_by
from pretrace.jobs.worker import ShardJob, parts_folder
from pretrace.results.atomic import check_writable
from pretrace.results.folder import Write, write_csv, write_lines
from pretrace.results.run import RUN, SKIPPED_COLUMNS
from pretrace.results.verdicts import FLAGGING as FLAGGING_FOLDER
from pretrace.results.wording import first_of, p_value, say
from pretrace.scoring import parts as shards
from pretrace.scoring.detect import Options
from pretrace.scoring.holdout import CorpusParts
from pretrace.scoring.outlook import REPORT, SET_TEST, Watch, workload
from pretrace.scoring.parts import UNREADABLE, ScoredRows
from pretrace.scoring.plan import Models, with_texts
from pretrace.scoring.plan import check_use as check_scores
from pretrace.scoring.settings import Companions, EvaluationSettings, ModelsSettings, ScoreSettings, Target
from pretrace.settings import CONTROLS, Option, like, requested_option
from pretrace.types import Corpus, Situation, Verdict
from pretrace.verdicts.advise import foresee
from pretrace.verdicts.flag.flag import flag_rows, flagged_rows, unscored
from pretrace.verdicts.flag.planning import FLAGGING, BothSets, FlagPlan, FlagSettings
from pretrace.verdicts.frame import check_plantable
from pretrace.verdicts.settings import input_option

KEY = "flagging"
"""Under which the settings of a flagging stand in those of its job."""


def _finish(
    rows: ScoredRows,
    planned: FlagPlan,
    out: Path,
    model: str,
    command: Mapping[str, Any],
    *,
    asking: tuple[Models, Watch] | None = None,
    unread: Sequence[Unreadable] = (),
    unreadable: int = 0,
) -> Reply:
    """Conclude, write the folder, take the parts away, and say what was found."""
    flagged, tables = flag_rows(rows, planned, model, asking=asking, command=command, unreadable=unreadable)
    said, now = command.get("requested_by"), datetime.now(UTC).isoformat(timespec="seconds")
    told = {"requested_by": said} if said else {}
    flagged = replace(flagged, settings={"time": now, **flagged.settings}, statements=told)
    beside: dict[str, Write] = {}
    if rows.on_disk:
        skipped = ((one.id, one.reason, one.tokens) for one in unscored(rows))
        beside |= tables.writers()
        beside["skipped.csv"] = lambda path: write_csv(path, SKIPPED_COLUMNS, skipped)
        listed = rows.place.folder / UNREADABLE
        if unreadable and listed.exists():
            beside[UNREADABLE] = lambda path: path.write_bytes(listed.read_bytes())
    elif unread:
        beside[UNREADABLE] = lambda path: write_lines(path, map(asdict, unread))
    shown: list[Any] = [_table(flagged)] if flagged.figures["counts"]["flagged"] else []
    if number := flagged.figures["counts"]["skipped"]:
        names = first_of([f"{one.id!r} ({one.reason})" for one in flagged.skipped[:3]], number)
        place = "skipped.csv" if flagged.figures.get("whole") else "result.json"
        shown.append(prose(f"Not scored: {number:,}: {names}; all in {place}."))
    answer = write_verdict(flagged, out, command, *shown, checked=False, beside=beside)
    if rows.on_disk:
        rows.place.remove()
    return answer


_NOT_RECORDED = {"ray", "shard", "parts"}
"""Options that differ between commands that make the same flagging."""
_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagInputs:
    """What the texts are compared with, and where the flags go."""

    controls: str = input_option(
        help="Texts of the same kind, source and time that the model cannot have seen, from 20 documents or more; "
        "given as TEXTS is.",
        panel=FLAGGING,
    )
    out: Path = output_option(
        help="Folder for flags.csv, known.csv, result.json and report.html; a flagging that is already there is "
        "replaced.",
        panel=FLAGGING,
    )
    placebo: str | None = input_option(
        None,
        "A model that cannot have seen TEXTS; any --model value, or NAME@REVISION. If the same flagging finds anything "
        "there, the answer is refused. Default: smollm2, for a score of the model alone; none asks no second model, "
        "and then nothing is said of training.",
        panel=CONTROLS,
    )
    requested_by: str = requested_option(FLAGGING)
    companions: Companions = field(default_factory=Companions)
    dry_run: bool = like(ScoreSettings, "dry_run")


def flag(
    source: Source,
    target: Target,
    inputs: FlagInputs,
    settings: FlagSettings,
    job: JobSettings,
    engine: EngineSettings,
    given: RawOptions,
) -> Reply:
    """Which of these texts were seen? Each against known non-members, at a rate of false flags, and all
    together. Exit code 3 when any is flagged or they stand out as a whole; 0 when neither, and --power showed that a
    tenth of the texts, if seen, would have; 4 when there is no answer: the two sets differ as texts, or it could have
    been missed."""
    divided = divided_by(job, engine)
    check_use(settings, inputs.companions)
    asks = inputs.placebo != "none"
    placebos = [inputs.placebo] if asks else []
    wanted = ModelsSettings(target=target, companions=inputs.companions, placebos=placebos, second=asks)
    check_writable(inputs.out, FLAGGING_FOLDER)
    source = with_text_column(source)
    stream = source.stream(skip_unreadable=job.skip_unreadable)
    # whichever worker is the last writes the file of a job: what tells them apart is left out
    command = {name: value for name, value in given.items() if name not in _NOT_RECORDED}
    other = open_stream(inputs.controls, source.columns.of_another, skip_unreadable=job.skip_unreadable)
    unread: list[Unreadable] = []
    corpus = None if divided else stream.whole(shards.SHARD, unread.append)
    known = other.whole(shards.SHARD, unread.append) if corpus is not None else None
    both, sets = BothSets(stream, other), None
    if corpus is not None and known is not None:
        both = BothSets(TextStream.of(corpus), TextStream.of(known))
        sets = both.corpus
    asked = {name: value for name, value in asdict(settings).items() if name != "plan"}
    texts = TextsToScore(
        stream=both,
        source=source,
        how=job,
        out=inputs.out,
        kept={"nonmembers": lasting(inputs.controls), "command": command},
        evaluation={KEY: {"settings": asked}},
        unread=unread,
        corpus=sets,
    )
    if sets is None:
        texts = in_shards(texts, engine)
    planned = FlagPlan.of(both, settings)
    settings.plan.check_texts(next(texts.corpora()))
    for note in planned.prospect.notes:  # before a model is opened, while it costs nothing
        say_note(note)
    settings.plan.check_servers(wanted.roles)
    finish = partial(_finish, planned=planned, out=inputs.out, command=command)
    options = Options(cache=settings.cache)
    if engine.on_ray and not inputs.dry_run:
        none = CorpusParts(None, None, Corpus(both.name, ()))
        made = texts.score_on_ray(engine, wanted, settings.score, none, None, options)
        rows = made.rows(texts.folder)
        return finish(rows, model=made.target, unreadable=texts.unreadable)
    models = opened(wanted)
    if inputs.dry_run:
        size, limits = float(models.target.facts.get("parameters") or 0), planned.prospect
        has = Situation(documents=limits.asked, unseen=limits.known, parameters=size)
        return foretold(
            workload(texts.corpora(job.turn), models, settings.plan, cache=settings.cache),
            *foresee("flag", has),
        )
    models = with_texts(models, wanted)
    if settings.power:
        check_plantable(models.target)
    scored = texts.score(models, settings.plan, options, REPORT + SET_TEST)
    if isinstance(scored, Reply):
        return scored
    asking = (models, Stages()) if settings.power else None
    return finish(scored, model=models.target.name, asking=asking, unread=unread, unreadable=texts.unreadable)


def check_use(settings: FlagSettings, beside: Companions) -> None:
    """A PretraceError for a score that misses something, and for what it does not use."""
    scored = ScoreSettings(scores=settings.score, companions=beside)
    check_scores(settings.plan, scored, EvaluationSettings())
    if beside.reference_model and "reference" not in settings.plan.uses:
        raise ExpressionError(say("plan.use.none", option="--reference-model", score="ref"))


def _table(flagged: Verdict) -> Table:
    texts, figures = flagged.table("flags"), flagged.figures
    counts, rows = figures["counts"], flagged_rows(flagged)
    several = counts["documents"] < counts["texts"]  # then documents are flagged, with all of their texts
    named = "text of a flagged document" if several else "flagged text"
    more, place = counts["flagged"] - _SHOWN, "flags/" if figures.get("whole") else "flags.csv"
    return plain_table(
        named,
        numbers=(figures["score"], "p", "q"),
        rows=[
            (texts["id"][i], f"{texts['score'][i]:.3g}", *(p_value(texts[name][i]) for name in ("p", "q")))
            for i in rows[:_SHOWN]
        ],
        caption=f"{more:,} more in {place}" if more > 0 else "",
    )


_Merged = Annotated[
    Path,
    Option(
        "The --out of the workers, whose parts lie beside it; the run is written there.",
        metavar="OUT",
        path="out",
    ),
]


def merge(
    out: _Merged,
    parts: Annotated[
        Path | None, Option("The folder of parts, where the workers were given one.", path="in")
    ] = None,
) -> Reply:
    """Put the parts of `score --shard`, `evaluate --shard` or `flag --shard` together: the table, the run or flagging,
    and its report. The exit code of a flagging is that of `flag`."""
    folder = parts or parts_folder(out)
    jobs = [ShardJob.load(path) for path in sorted(folder.glob("job-*.json"))]
    if not jobs:
        raise OutputError(f"{folder} holds no parts of a run: give the --out that its workers were given.")
    jobs.sort(key=lambda one: len(one.missing(folder)))
    whole = [job for job in jobs if not job.missing(folder)]
    if len(whole) > 1:
        raise OutputError(say("scoring.several_jobs", folder=folder, number=len(whole)))
    job, flagged = jobs[0], None
    rows, unreadable = job.rows(folder), job.survey.unreadable
    columns, skip = Columns(**job.source["columns"]), bool(job.source["skip_unreadable"])
    if job.evaluation is not None and KEY in job.evaluation:
        sides = (("texts", columns), ("nonmembers", columns.of_another))
        both = (open_stream(job.source[name], read, skip_unreadable=skip) for name, read in sides)
        flagged = FlagPlan.of(BothSets(*both), FlagSettings(**job.evaluation[KEY]["settings"]))
    check_writable(out, FLAGGING_FOLDER if flagged else RUN)
    if flagged:
        return _finish(rows, flagged, out, job.target, job.source["command"], unreadable=unreadable)
    source, labels = Source(texts=job.source["texts"], columns=columns), job.source.get("labels")
    stream = (
        label_source(source, Path(labels), skip_unreadable=skip)
        if labels
        else source.stream(skip_unreadable=skip)
    )
    return finish_run(rows, stream, out, job.evaluation, unreadable=unreadable)
