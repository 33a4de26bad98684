"""`pretrace score` and `evaluate`, and the texts of a command, in memory or in shards."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pretrace.cli.commands import Answered, RawOptions, Reply
from pretrace.cli.printing import foretold, write_run
from pretrace.cli.progress import doing, trained, watched
from pretrace.corpora import TextStream, open_corpus
from pretrace.corpora.opening import Source, record_corpus
from pretrace.corpora.reading import Unreadable
from pretrace.errors import ExpressionError
from pretrace.jobs import EVERY, EngineSettings, JobSettings, ShardJob, Turn, divided_by, parts_folder, work
from pretrace.plugins import find_plugin
from pretrace.results.atomic import OWN, RESULT, check_writable, explained, write_atomically
from pretrace.results.folder import file_hash, write_lines
from pretrace.results.run import RUN
from pretrace.results.wording import say
from pretrace.scoring import parts as shards
from pretrace.scoring.detect import Leak, Options, Scorer, check_label_counts, check_labels, leaks, score_rows
from pretrace.scoring.evaluation import measure
from pretrace.scoring.holdout import CorpusParts, check_disjoint, set_aside
from pretrace.scoring.outlook import EVALUATION, REPORT, workload
from pretrace.scoring.parts import UNREADABLE, ScoredRows, Survey, check_parts, run_of, survey
from pretrace.scoring.plan import (
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
from pretrace.settings import RUN as RUN_PANEL
from pretrace.settings import Option
from pretrace.tuning.plan import methods
from pretrace.types import Corpus


@dataclass(frozen=True, slots=True, kw_only=True)
class TextsToScore:
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
        return self.how.parts or parts_folder(self.out)

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
            "texts": lasting(self.source.texts),
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


def in_shards(texts: TextsToScore, engine: EngineSettings, *, labelled: bool = False) -> TextsToScore:
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


def label_source(source: Source, found: Path, *, skip_unreadable: bool) -> TextStream:
    """The texts with the labels that the result of a scan gives them, and no column of labels."""
    plain = replace(source, columns=replace(source.columns, label=""))
    texts = plain.stream(skip_unreadable=skip_unreadable)
    labelled: TextStream = find_plugin("scan.result").LabelledStream(texts, found)
    return labelled


def _write_unreadable(unread: Sequence[Unreadable], folder: Path) -> None:
    """List the records that were not read in a folder, where there are any."""
    if unread:
        write_atomically(folder / UNREADABLE, lambda path: write_lines(path, map(asdict, unread)))


def lasting(texts: str) -> str:
    """How texts are named in the file of a job, which may be read from another folder."""
    path = Path(texts)
    return str(path.resolve()) if path.exists() else texts


def finish_run(
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


_NOT_RECORDED = {"out", "shard", "parts", "dry_run", "ray"}
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
        divided = divided_by(self.job, engine)
        if whole and divided:
            raise ExpressionError(say("scoring.whole", option=divided))
        corpus = None if divided else stream.whole(sys.maxsize - 1 if whole else shards.SHARD, unread.append)
        how = self.evaluation
        measuring = {"resamples": how.resamples, "validation": how.validation} if how else None
        texts = TextsToScore(
            stream=stream,
            source=self.source,
            how=self.job,
            out=self.out,
            kept={"labels": lasting(str(self._how.labels))} if self._how.labels else {},
            evaluation=measuring,
            unread=unread,
            corpus=corpus,
        )
        if corpus is None:
            texts = in_shards(texts, engine, labelled=labelled)
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

    def _finish(self, rows: ScoredRows, texts: TextsToScore) -> Reply:
        return finish_run(rows, texts.stream, self.out, texts.evaluation, texts.unread, texts.unreadable)

    def _stream(self) -> TextStream:
        skip, found = self.job.skip_unreadable, self._how.labels
        if found is None:
            return self.source.stream(skip_unreadable=skip)
        if self.source.columns.label:
            raise ExpressionError("--labels and --columns label both give the labels: give one of the two.")
        return label_source(self.source, found, skip_unreadable=skip)

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
