"""The commands that score texts, in memory or in shards: `pretrace score`, `evaluate`, `flag`, and `runs merge`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from rich.table import Table

from pretrace.cli import note as say_note
from pretrace.cli.commands import Answered, RawOptions, Reply, output_option, plain_table, prose
from pretrace.cli.telling import Stages, doing, foretold, trained, watched, write_run, write_verdict
from pretrace.corpora import Columns, TextStream, open_corpus, open_stream
from pretrace.corpora.opening import Source, record_corpus
from pretrace.corpora.reading import Unreadable
from pretrace.errors import ExpressionError, OutputError
from pretrace.jobs import ShardJob, work
from pretrace.plugins import find_plugin
from pretrace.results.atomic import OWN, RESULT, atomic_bytes, check_writable, explained
from pretrace.results.folder import Write, file_hash, json_lines, write_csv
from pretrace.results.run import RUN, SKIPPED_COLUMNS
from pretrace.results.wording import first_of, p_value, say
from pretrace.runs import FLAGGING as FLAGGING_FOLDER
from pretrace.scoring import parts as shards
from pretrace.scoring.detect import Leak, Options, Scorer, check_label_counts, check_labels, leaks, score_rows
from pretrace.scoring.evaluation import measure
from pretrace.scoring.holdout import CorpusParts, check_disjoint, set_aside
from pretrace.scoring.outlook import EVALUATION, REPORT, SET_TEST, Watch, workload
from pretrace.scoring.parts import (
    EVERY,
    UNREADABLE,
    EngineSettings,
    JobSettings,
    ScoredRows,
    Survey,
    Turn,
    check_parts,
    run_of,
    survey,
)
from pretrace.scoring.plan import (
    Companions,
    EvaluationSettings,
    Models,
    ModelsSettings,
    ScorePlan,
    ScoreSettings,
    Target,
    check_use,
    open_models,
    with_texts,
)
from pretrace.settings import CONTROLS, Option, like, requested_option
from pretrace.settings import RUN as RUN_PANEL
from pretrace.tuning.plan import methods
from pretrace.types import Corpus, Situation, Verdict
from pretrace.verdicts.advise import foresee
from pretrace.verdicts.flag.flag import flag_rows, flagged_rows, unscored
from pretrace.verdicts.flag.planning import FLAGGING, BothSets, FlagPlan, FlagSettings
from pretrace.verdicts.frame import check_plantable
from pretrace.verdicts.settings import input_option


@dataclass(frozen=True, slots=True, kw_only=True)
class _TextsToScore:
    """The texts of one command, once everything that needs no model was checked: the `corpus`, where they fit into one
    shard in memory, else what a first reading `found` and the `size` of shards; and the records that were not read."""

    stream: TextStream
    source: Source
    how: JobSettings
    out: Path
    kept: Mapping[str, Any] = field(default_factory=dict)
    """What the file of a job says besides of where its texts are from."""
    evaluation: dict[str, Any] | None = None
    unread: Sequence[Unreadable] = ()
    corpus: Corpus | None = None
    found: Survey | None = None
    size: int = shards.SHARD

    @property
    def unreadable(self) -> int:
        """Records of texts in shards that were not read; those of a small source are `unread`."""
        return self.found.unreadable if self.found else 0

    @property
    def folder(self) -> Path:
        """Where the parts lie."""
        return self.how.parts or _parts_folder(self.out)

    def corpora(self, turn: Turn = EVERY) -> Iterator[Corpus]:
        """The texts of each shard, or of each that is a worker's."""
        if self.corpus is not None:
            yield self.corpus
            return
        for shard in shards.shards(self.stream, self.size):
            if turn.takes(shard.index):
                yield Corpus(self.stream.name, shard.texts)

    def score(self, models: Models, plan: ScorePlan, options: Options, after: float) -> ScoredRows | Reply:
        """Score the texts, or the shards of this worker, with models that are open; `after` are the seconds of other
        work that follows. A reply where other workers' shards are left to them."""
        with watched("reading", after) as progress:
            if self.corpus is not None:
                return score_rows(self.corpus, models, plan, replace(options, progress=progress))
            self._refuse(leaks(models, plan))
            options = replace(options, progress=progress)
            with Scorer(models, plan, options) as scorer:
                job, turn = self._begin(ShardJob.of(scorer, options)), self.how.turn
                scorer.announce(sum(job.missing(self.folder, turn).values()))
                made = work(job, self.stream, self.folder, scorer.each, turn=turn, size=self.size)
        if turn.of == 1:
            return job.rows(self.folder)
        lacking = len(job.missing(self.folder))
        rest = f"{lacking:,} of all shards have no part yet" if lacking else "all shards have a part"
        first = f"Worker {turn.number} of {turn.of} scored {made:,} shards; {rest}."
        said = [first, f"When all workers are done: pretrace runs merge {self.out}"]
        return Reply(said, outcome="part", statement=first, own={"made": made, "lacking": lacking})

    def score_on_ray(self, engine: EngineSettings, *task: Any) -> ShardJob:
        """The same by workers on a cluster, of which each does a `task` (`plugins.ray.scoring.open_scoring`): the
        job, of which all is scored. No model is opened here."""
        cluster = find_plugin("ray.scoring")
        with cluster.opened_pool(engine, partial(cluster.open_scoring, *task)) as pool:
            told, found = pool.told
            self._refuse(found)
            job = self._begin(told)
            with watched("reading") as progress:
                progress.begin(sum(job.missing(self.folder).values()))
                scored = partial(cluster.spread_over, pool, job, progress)
                work(job, self.stream, self.folder, scored, size=self.size)
        return job

    def _refuse(self, found: Sequence[Leak]) -> None:
        """LeakError where a text of the source is one that the models were tuned or fitted on."""
        for corpus in self.corpora() if found else ():
            for leak in found:
                check_disjoint(corpus, *leak)

    def _begin(self, opened: ShardJob) -> ShardJob:
        """Write the file of the job, and what could not be read, to the folder of parts."""
        source = {
            "texts": _lasting(self.source.texts),
            "columns": self.source.columns.recorded,
            "skip_unreadable": self.how.skip_unreadable,
            **self.kept,
        }
        assert self.found is not None  # a first reading of texts in shards
        job = opened.over(self.stream, self.found, source=source, evaluation=self.evaluation)
        with explained(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        job.save(self.folder)  # first: by it the folder is known as one of parts
        _write_unreadable(self.unread, self.folder)
        return job


def _divided_by(job: JobSettings, engine: EngineSettings) -> str:
    """The option that divides the work, "" where nothing does; ExpressionError for --shard and --ray at once."""
    if job.shard and engine.on_ray:
        raise ExpressionError(say("cluster.both"))
    return "--shard" if job.shard else "--ray" if engine.on_ray else ""


def _parts_folder(out: Path) -> Path:
    """Where the parts of a run lie until it is whole: `.NAME.parts` beside it."""
    return out.with_name(f".{out.name}.parts")


def _in_shards(texts: _TextsToScore, engine: EngineSettings, *, labelled: bool = False) -> _TextsToScore:
    """The texts in shards, once their source was read from end to end; TextsError for what is wrong with that."""
    stream = texts.stream
    unread = list[Unreadable]()
    size = find_plugin("ray.scoring").shard_size(stream.texts()) if engine.on_ray else shards.SHARD
    check_parts(texts.folder)
    check_writable(texts.folder / UNREADABLE, OWN)
    with doing("checking all texts before the first is scored", spinner=True):
        found = survey(stream, size, unread)
    if labelled:
        check_label_counts(stream.name, found.members, found.nonmembers, found.texts, found.unlabelled)
    return replace(texts, found=found, unread=unread, size=size)


def _label_source(source: Source, found: Path, *, skip_unreadable: bool) -> TextStream:
    """The texts with the labels that the result of a scan gives them, and no column of labels."""
    plain = replace(source, columns=replace(source.columns, label=""))
    texts = plain.stream(skip_unreadable=skip_unreadable)
    labelled: TextStream = find_plugin("scan.result").LabelledStream(texts, found)
    return labelled


def _write_unreadable(unread: Sequence[Unreadable], folder: Path) -> None:
    """List the records that were not read in a folder, where there are any."""
    if unread:
        atomic_bytes(folder / UNREADABLE, json_lines(map(asdict, unread)))


def _lasting(texts: str) -> str:
    """How texts are named in the file of a job, which may be read from another folder."""
    path = Path(texts)
    return str(path.resolve()) if path.exists() else texts


def _finish_run(
    rows: ScoredRows,
    stream: TextStream,
    out: Path,
    evaluation: Mapping[str, Any] | None,
    unread: Sequence[Unreadable] = (),
    unreadable: int = 0,
) -> Reply:
    """Make the run of all rows, evaluate where that was asked for, write it, and take the parts away."""
    seed = int(rows.settings["seed"])
    run = run_of(rows, seed=seed, unreadable=unreadable)
    if evaluation is not None:
        run = replace(run, evaluation=measure(rows, stream, seed=seed, **evaluation))
    if not rows.on_disk:
        return write_run(run, out, beside=lambda folder: _write_unreadable(unread, folder))
    answer = write_run(run, out, beside=lambda folder: rows.write(folder, run))
    rows.place.remove()
    return answer


_OF_WORKERS = {"ray", "shard", "parts"}
"""Options that differ between workers who make the same run or flagging."""
_NOT_RECORDED = _OF_WORKERS | {"out", "dry_run"}
"""Options that differ between commands that make the same run."""


_Out = Annotated[
    Path,
    Option(
        "Folder for run.json, scores.parquet, scores.csv, skipped.csv and report.html; a run that is already there is "
        "replaced.",
        panel=RUN_PANEL,
        path="out",
        essential=True,
    ),
]


def score(
    source: Source,
    target: Target,
    settings: ScoreSettings,
    job: JobSettings,
    engine: EngineSettings,
    out: _Out,
    given: RawOptions,
) -> Answered:
    """Score texts: one row a text, one column a score, higher = more member-like."""
    return _ScoreCommand(source, target, settings, None, job, engine, out, given).run()


def evaluate(
    source: Source,
    target: Target,
    settings: ScoreSettings,
    evaluation: EvaluationSettings,
    job: JobSettings,
    engine: EngineSettings,
    out: _Out,
    given: RawOptions,
) -> Answered:
    """Score labelled texts and measure: AUC, TPR at 5% FPR, accuracy, intervals, and the controls beside them."""
    return _ScoreCommand(source, target, settings, evaluation, job, engine, out, given).run()


@dataclass(frozen=True, slots=True)
class _ScoreCommand:
    """`score`, or `evaluate` where there are settings of one."""

    source: Source
    target: Target
    settings: ScoreSettings
    evaluation: EvaluationSettings | None
    job: JobSettings
    engine: EngineSettings
    out: Path
    given: RawOptions

    def run(self) -> Answered:
        """Do it; a PretraceError as early as a mistake can be known."""
        settings, engine, labelled = self.settings, self.engine, self.evaluation is not None
        plan = ScorePlan.parse(settings.scores)
        method = methods.make(self._how.method)
        check_use(plan, settings, self._how)
        plan.check_servers(self._wanted.roles)
        check_writable(self.out, RUN)
        stream = self._stream()
        unread: list[Unreadable] = []
        whole = self._how.tune_share or self._how.reference_share
        divided = _divided_by(self.job, engine)
        if whole and divided:
            raise ExpressionError(say("scoring.whole", option=divided))
        corpus = None if divided else stream.whole(sys.maxsize - 1 if whole else shards.SHARD, unread.append)
        how = self.evaluation
        measuring = {"resamples": how.resamples, "validation": how.validation} if how else None
        texts = _TextsToScore(
            stream=stream,
            source=self.source,
            how=self.job,
            out=self.out,
            kept={"labels": _lasting(str(self._how.labels))} if self._how.labels else {},
            evaluation=measuring,
            unread=unread,
            corpus=corpus,
        )
        if corpus is None:
            texts = _in_shards(texts, engine, labelled=labelled)
        elif labelled:
            check_labels(corpus)
        first = next(texts.corpora())  # on which what concerns a corpus as a whole is checked
        plan.check_texts(first)  # here as well: tuning takes long
        given = self._reference()
        parts = CorpusParts(None, given, first)
        if engine.on_ray and not settings.dry_run:
            fitted = replace(parts, test=Corpus(stream.name, ()))
            task = self._wanted, settings.scores, fitted, method, self._options(parts)
            job = texts.score_on_ray(engine, *task)
            return self._finish(job.rows(texts.folder), texts)
        if corpus is not None:
            parts = self._divided(corpus, given)
            texts = replace(texts, corpus=parts.test, stream=TextStream.of(parts.test))
        with doing("opening the models"):
            models = open_models(self._wanted)
        if settings.dry_run:
            mine = texts.corpora(self.job.turn)
            return foretold(workload(mine, models, plan, labelled=parts.reference, cache=settings.cache))
        with trained() as on_step:
            models = with_texts(models, self._wanted, parts, method, seed=settings.seed, on_step=on_step)
        after = REPORT + (EVALUATION if labelled else 0.0)
        scored = texts.score(models, plan, self._options(parts, corpus), after)
        return scored if isinstance(scored, Reply) else self._finish(scored, texts)

    def _finish(self, rows: ScoredRows, texts: _TextsToScore) -> Reply:
        return _finish_run(rows, texts.stream, self.out, texts.evaluation, texts.unread, texts.unreadable)

    def _stream(self) -> TextStream:
        skip, found = self.job.skip_unreadable, self._how.labels
        if found is None:
            return self.source.stream(skip_unreadable=skip)
        if self.source.columns.label:
            raise ExpressionError("--labels and --columns label both give the labels: give one of the two.")
        return _label_source(self.source, found, skip_unreadable=skip)

    @property
    def _how(self) -> EvaluationSettings:
        """How an evaluation is made, or would be."""
        return self.evaluation or EvaluationSettings()

    @property
    def _wanted(self) -> ModelsSettings:
        placebos = [self._how.placebo]
        return ModelsSettings(target=self.target, companions=self.settings.companions, placebos=placebos)

    def _reference(self) -> Corpus | None:
        if not self.settings.reference:
            return None
        given = open_corpus(self.settings.reference, self.source.columns.of_another)
        check_labels(given)
        return given

    def _divided(self, corpus: Corpus, given: Corpus | None) -> CorpusParts:
        if self.evaluation is None:
            return CorpusParts(None, given, corpus)
        parts = set_aside(corpus, **self._shares, seed=self.settings.seed)
        if parts.tuning or parts.reference:
            check_labels(parts.test)
        if parts.reference is not None:
            check_labels(parts.reference)
        return replace(parts, reference=parts.reference or given)

    @property
    def _shares(self) -> dict[str, float]:
        return {"tuning": self._how.tune_share, "reference": self._how.reference_share}

    def _options(self, parts: CorpusParts, corpus: Corpus | None = None) -> Options:
        """How texts are scored, with what run.json says of the command."""
        settings, opening, labels = self.settings, asdict(self.target.opening), self._how.labels
        record: dict[str, Any] = {
            "command": "evaluate" if self.evaluation else "score",
            "scores": settings.scores,
            "columns": self.source.columns.recorded,
            "opening": {name: value for name, value in opening.items() if value is not None},
        }
        if labels:
            record["labels"] = {"scan": str(labels), "sha256": file_hash(labels / RESULT)}
        if any(self._shares.values()):
            record["set_aside"] = {
                name: {"share": share, "texts": len(getattr(parts, name) or ()) if share else 0}
                for name, share in self._shares.items()
            }
        record["given"] = {name: value for name, value in self.given.items() if name not in _NOT_RECORDED}
        if corpus is not None and "set_aside" in record:  # a part of it is scored
            record["whole_texts"] = record_corpus(corpus)
        return Options(cache=settings.cache, seed=settings.seed, settings=record)


_KEY = "flagging"
"""Under which the settings of a flagging stand in those of its job."""


def _finish_flagging(
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
        beside[UNREADABLE] = lambda path: path.write_bytes(json_lines(map(asdict, unread)))
    shown: list[Any] = [_table(flagged)] if flagged.figures["counts"]["flagged"] else []
    if number := flagged.figures["counts"]["skipped"]:
        names = first_of([f"{one.id!r} ({one.reason})" for one in flagged.skipped[:3]], number)
        place = "skipped.csv" if flagged.figures.get("whole") else "result.json"
        shown.append(prose(f"Not scored: {number:,}: {names}; all in {place}."))
    answer = write_verdict(flagged, out, command, *shown, checked=False, beside=beside)
    if rows.on_disk:
        rows.place.remove()
    return answer


_MOST_SHOWN = 10


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
    divided = _divided_by(job, engine)
    check_flagging(settings, inputs.companions)
    wanted = models_of_flagging(target, inputs.companions, inputs.placebo)
    check_writable(inputs.out, FLAGGING_FOLDER)
    source = source.with_text_column(say_note)
    stream = source.stream(skip_unreadable=job.skip_unreadable)
    # whichever worker is the last writes the file of a job: what tells them apart is left out
    command = {name: value for name, value in given.items() if name not in _OF_WORKERS}
    other = open_stream(inputs.controls, source.columns.of_another, skip_unreadable=job.skip_unreadable)
    unread: list[Unreadable] = []
    corpus = None if divided else stream.whole(shards.SHARD, unread.append)
    known = other.whole(shards.SHARD, unread.append) if corpus is not None else None
    both, sets = BothSets(stream, other), None
    if corpus is not None and known is not None:
        both = BothSets(TextStream.of(corpus), TextStream.of(known))
        sets = both.corpus
    asked = {name: value for name, value in asdict(settings).items() if name != "plan"}
    texts = _TextsToScore(
        stream=both,
        source=source,
        how=job,
        out=inputs.out,
        kept={"nonmembers": _lasting(inputs.controls), "command": command},
        evaluation={_KEY: {"settings": asked}},
        unread=unread,
        corpus=sets,
    )
    if sets is None:
        texts = _in_shards(texts, engine)
    planned = FlagPlan.of(both, settings)
    settings.plan.check_texts(next(texts.corpora()))
    for note in planned.prospect.notes:  # before a model is opened, while it costs nothing
        say_note(note)
    settings.plan.check_servers(wanted.roles)
    finish = partial(_finish_flagging, planned=planned, out=inputs.out, command=command)
    options = Options(cache=settings.cache)
    if engine.on_ray and not inputs.dry_run:
        none = CorpusParts(None, None, Corpus(both.name, ()))
        made = texts.score_on_ray(engine, wanted, settings.score, none, None, options)
        rows = made.rows(texts.folder)
        return finish(rows, model=made.target, unreadable=texts.unreadable)
    with doing("opening the models"):
        models = open_models(wanted)
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


def models_of_flagging(target: Target, companions: Companions, placebo: str | None) -> ModelsSettings:
    """The target with its second model: the placebo that is named, the packaged one, or with "none" nobody."""
    asked = placebo != "none"
    placebos = [placebo] if asked else []
    return ModelsSettings(target=target, companions=companions, placebos=placebos, second=asked)


def check_flagging(settings: FlagSettings, beside: Companions) -> None:
    """A PretraceError for a score that misses something, and for what it does not use."""
    scored = ScoreSettings(scores=settings.score, companions=beside)
    check_use(settings.plan, scored, EvaluationSettings())
    if beside.reference_model and "reference" not in settings.plan.uses:
        raise ExpressionError(say("plan.use.none", option="--reference-model", score="ref"))


def _table(flagged: Verdict) -> Table:
    texts, figures = flagged.table("flags"), flagged.figures
    counts, rows = figures["counts"], flagged_rows(flagged)
    several = counts["documents"] < counts["texts"]  # then documents are flagged, with all of their texts
    named = "text of a flagged document" if several else "flagged text"
    more, place = counts["flagged"] - _MOST_SHOWN, "flags/" if figures.get("whole") else "flags.csv"
    return plain_table(
        named,
        numbers=(figures["score"], "p", "q"),
        rows=[
            (texts["id"][i], f"{texts['score'][i]:.3g}", *(p_value(texts[name][i]) for name in ("p", "q")))
            for i in rows[:_MOST_SHOWN]
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
    folder = parts or _parts_folder(out)
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
    if job.evaluation is not None and _KEY in job.evaluation:
        sides = (("texts", columns), ("nonmembers", columns.of_another))
        both = (open_stream(job.source[name], read, skip_unreadable=skip) for name, read in sides)
        flagged = FlagPlan.of(BothSets(*both), FlagSettings(**job.evaluation[_KEY]["settings"]))
    check_writable(out, FLAGGING_FOLDER if flagged else RUN)
    if flagged:
        return _finish_flagging(rows, flagged, out, job.target, job.source["command"], unreadable=unreadable)
    source, labels = Source(texts=job.source["texts"], columns=columns), job.source.get("labels")
    stream = (
        _label_source(source, Path(labels), skip_unreadable=skip)
        if labels
        else source.stream(skip_unreadable=skip)
    )
    return _finish_run(rows, stream, out, job.evaluation, unreadable=unreadable)
