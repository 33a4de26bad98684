"""Texts + scores + models → a Run: plan what each model must be asked, ask it once, score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pretrace.cache.location import text_key
from pretrace.errors import PretraceError, TextsError
from pretrace.rewrites import Selective
from pretrace.scoring.evidence import Progress, Silent
from pretrace.scoring.heat import Extremes
from pretrace.scoring.holdout import check_disjoint
from pretrace.scoring.plan import FittedScores, Models, ScorePlan
from pretrace.scoring.provenance import record_corpus, record_counts, record_software, record_tuning
from pretrace.types import Backend, Control, Corpus, Evidence, Missing, Run, Score, Skipped, Text, View


@dataclass(frozen=True, slots=True)
class Options:
    """How a run is done. `cache` False keeps no traces on disk. `shuffles` is how often each score that is
    fitted on labelled texts is fitted again on shuffled labels, as its control. `settings` is added to the
    run's record."""

    cache: bool = True
    seed: int = 0
    shuffles: int = 20
    progress: Progress = field(default_factory=Silent)
    settings: Mapping[str, Any] = field(default_factory=dict)


def detect(
    corpus: Corpus,
    models: Models | Backend,
    expressions: str | Sequence[str] | ScorePlan = "loss,zlib,min_k",
    options: Options | None = None,
) -> Run:
    """The scores of every text, one row a text in the corpus' order, one column an expression.

    A text that gives the target nothing to predict is in `Run.skipped` and has no row. Where a text has no
    value of one score alone, that cell is NaN and `Run.missing` says why. With a placebo among the models,
    and for scores fitted on labelled texts, `Run.controls` holds the same scores without what they claim to
    see. Raises a PretraceError before any model is asked when an expression is wrong or something it needs
    is missing, LeakError when a text to be scored was tuned or fitted on.
    """
    options = options or Options()
    models = models if isinstance(models, Models) else Models(models)
    plan = ScorePlan.parse(expressions)
    if not corpus.texts:
        raise TextsError(f"{corpus.name} holds no texts.")
    plan.check_texts(corpus)
    for some in (models, models.placebo):
        if some is not None:  # the placebo as well: it is asked last, perhaps hours later
            plan.check(some)
            _check_leaks(corpus, some)
    found = _Pass.over(corpus.texts, models, plan, options)
    if not found.rows:
        raise TextsError(
            f"none of the {len(corpus)} texts of {corpus.name} has a token to predict; "
            "a text needs at least two tokens."
        )
    for name, column in zip(plan.scores, found.matrix.T, strict=True):
        if np.isnan(column).all():
            reason = next(one.reason for one in found.missing if one.score == name)
            raise TextsError(f"no text of {corpus.name} has a value of {name} ({reason}): leave {name} out.")
    placebo: tuple[Control, ...] = ()
    if models.placebo is not None:
        blank = replace(options, shuffles=0)
        placebo = found.held_against(_Pass.over(corpus.texts, models.placebo, plan, blank))
    return _run(corpus, models, options, found, placebo)


@dataclass(frozen=True, slots=True)
class _Row:
    text: Text
    values: list[float]
    shuffled: list[list[float]]
    tokens: int
    cut: int


@dataclass(frozen=True, slots=True)
class _Pass:
    """What one set of models said of a corpus."""

    scores: FittedScores
    rows: list[_Row] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    extremes: Extremes = field(default_factory=Extremes)

    @classmethod
    def over(cls, texts: Sequence[Text], models: Models, plan: ScorePlan, options: Options) -> _Pass:
        """The scores of all texts under these models."""
        scores = plan.fit(
            models,
            seed=options.seed,
            shuffles=options.shuffles,
            cache=options.cache,
            progress=options.progress,
        )
        made = cls(scores)
        with models.reader(scores.needs, plan=plan, cache=options.cache, progress=options.progress) as reader:
            for evidence in reader.read(texts):
                made.add(evidence, plan)
        return made

    @property
    def matrix(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The scores of the rows, float64 [texts, scores]; NaN where a text has no value of one."""
        return np.array([row.values for row in self.rows], dtype=np.float64)

    def add(self, evidence: Evidence, plan: ScorePlan) -> None:
        """The text's row, or the reason why it has none."""
        text, empty, scores = evidence.text, evidence.empty, self.scores
        values = {name: _value(name, score, evidence, empty) for name, score in scores.ready.items()}
        lost = [name for name, value in values.items() if np.isnan(value)]
        reasons = {name: _reason(evidence, empty & _views(scores.ready[name]), plan) for name in lost}
        if View() in empty or len(lost) == len(values):
            tokens = max((len(traces[0]) for traces in evidence.views.values() if traces), default=0)
            self.skipped.append(Skipped(text.id, _reason(evidence, empty, plan), tokens))
            return
        shuffled = [
            [_value(name, score, evidence, empty) for score in repeats]
            for name, repeats in scores.shuffled.items()
        ]
        self.missing.extend(Missing(text.id, name, reason) for name, reason in reasons.items())
        self.rows.append(_Row(text, list(values.values()), shuffled, len(evidence.plain), evidence.plain.cut))
        first = next(iter(values.values()))
        if not np.isnan(first):
            self.extremes.offer(first, text, evidence.plain)

    def held_against(self, placebo: _Pass) -> tuple[Control, ...]:
        """The scores of the same rows under the placebo; a cell that the placebo lacks is NaN and is added to
        `missing`. TextsError where the placebo has no value for any text."""
        other = {row.text.id: row.values for row in placebo.rows}
        reasons = {(one.id, one.score): one.reason for one in placebo.missing}
        skipped = {one.id: one.reason for one in placebo.skipped}
        nothing = [float("nan")] * len(self.scores.ready)
        matrix = np.array([other.get(row.text.id, nothing) for row in self.rows], dtype=np.float64)
        if np.isnan(matrix).all():
            raise TextsError("no text has something to predict for both the target and the placebo model.")
        for row, values in zip(self.rows, matrix, strict=True):
            for name, value, mine in zip(self.scores.ready, values, row.values, strict=True):
                if np.isnan(value) and not np.isnan(mine):
                    why = reasons.get((row.text.id, name)) or skipped[row.text.id]
                    self.missing.append(Missing(row.text.id, name, f"under the placebo model: {why}"))
        return tuple(Control(name, "placebo", matrix[:, [i]]) for i, name in enumerate(self.scores.ready))


def _views(score: Score) -> frozenset[View]:
    return frozenset(score.needs.views)


def _value(name: str, score: Score, evidence: Evidence, empty: frozenset[View]) -> float:
    """The score of a text; NaN where one of the views that it compares has nothing in it."""
    if empty & _views(score):
        return float("nan")
    value = score(evidence)
    if not np.isfinite(value):
        raise PretraceError(
            f"{name} gave {value} for text {evidence.text.id!r}; this is a mistake in the score."
        )
    return value


def _reason(evidence: Evidence, empty: frozenset[View], plan: ScorePlan) -> str:
    """Why a text has no score, or none of some scores: `empty` are the views that lack a prediction."""
    if not evidence.text.text.strip():
        return "the text is empty"
    if len(evidence.empty) == len(evidence.views):
        return "a single token: without a start token there is nothing to predict"
    lacking = [view for view in evidence.views if view in empty]
    formless = (plan.rewrites[view.rewrite] for view in lacking if not evidence.views[view])
    reasons = dict.fromkeys(made.formless for made in formless if isinstance(made, Selective))
    first = lacking[0]
    return (
        "; ".join(reasons) or f"its {first.rewrite} form under the {first.model} model has nothing to predict"
    )


def _run(corpus: Corpus, models: Models, options: Options, found: _Pass, placebo: tuple[Control, ...]) -> Run:
    texts = [row.text for row in found.rows]
    shuffled = (
        Control(name, "shuffled", np.array([row.shuffled[i] for row in found.rows], dtype=np.float64))
        for i, name in enumerate(found.scores.shuffled)
    )
    return Run(
        corpus=corpus.name,
        ids=tuple(text.id for text in texts),
        groups=tuple(text.document for text in texts),
        members=tuple(text.member for text in texts),
        tokens=np.array([row.tokens for row in found.rows], dtype=np.int32),
        cut=np.array([row.cut for row in found.rows], dtype=np.int32),
        scores=tuple(found.scores.ready),
        matrix=found.matrix,
        skipped=tuple(found.skipped),
        missing=tuple(found.missing),
        heat=found.extremes.heat(models.target),
        controls=(*placebo, *shuffled),
        settings=_settings(corpus, models, options, found),
    )


def _check_leaks(corpus: Corpus, models: Models) -> None:
    labelled = models.labelled
    if labelled is not None:
        keys = frozenset(text_key(text.text) for text in labelled.texts)
        cure = "Take them out of one of the two files, or draw the reference with --reference-share."
        check_disjoint(corpus, keys, "are among the reference texts that detectors are fitted on", cure)
    if models.tuned is not None:
        cure = "Take them out, or let evaluate split TEXTS itself with --tune-share 0.3."
        check_disjoint(corpus, models.tuned.seen, "are among the texts the adapter was tuned on", cure)


def evaluate(
    run: Run, corpus: Corpus, *, seed: int = 0, resamples: int = 1000, validation: float = 0.2
) -> Run:
    """The run with its `evaluation`: metrics with 95% intervals, and the blind baseline beside them.

    `corpus` is the one that was scored. `validation` is the share of documents on which accuracy
    thresholds are chosen. Raises TextsError where labels are missing or all of one class.
    """
    from pretrace.scoring.evaluation import evaluate as measure

    check_labels(corpus)
    by_id = {text.id: text.text for text in corpus.texts}
    texts = [by_id[name] for name in run.ids]
    found = measure(run, texts, seed=seed, resamples=resamples, validation=validation)
    return replace(run, evaluation=found)


def check_labels(corpus: Corpus) -> None:
    """TextsError unless every text is labelled and both classes are there."""
    unknown = [text.id for text in corpus.texts if text.member is None]
    if unknown:
        raise TextsError(
            f"{len(unknown)} of {len(corpus)} texts of {corpus.name} have no label (such as {unknown[0]!r}): "
            "evaluation needs a column with 1 for members and 0 for non-members (--label-column), "
            "or use `pretrace score`."
        )
    members = sum(text.member is True for text in corpus.texts)
    if members in (0, len(corpus)):
        kind = "members" if members else "non-members"
        raise TextsError(
            f"all {len(corpus)} texts of {corpus.name} are {kind}: evaluation needs both classes."
        )


def _settings(corpus: Corpus, models: Models, options: Options, found: _Pass) -> dict[str, Any]:
    """What run.json says of how the numbers came about."""
    cut = [row for row in found.rows if row.cut]
    named = models.named()
    if models.placebo:
        named["placebo"] = models.placebo.target
    record = {
        **options.settings,
        "seed": options.seed,
        "models": {name: dict(backend.facts) for name, backend in named.items()},
        "texts": record_corpus(corpus),
        "counts": record_counts(models.counts),
        "cut": {
            "texts": len(cut),
            "tokens": sum(row.cut for row in cut),
            "of_tokens": sum(row.cut + row.tokens for row in found.rows),
            "ids": [row.text.id for row in cut[:50]],
        },
        "software": record_software(),
    }
    if models.labelled is not None:
        record["reference"] = record_corpus(models.labelled)
    if models.tuned is not None:
        record["adapter"] = record_tuning(models.tuned.card)
    if models.placebo is not None and models.placebo.tuned is not None:
        record["placebo_adapter"] = record_tuning(models.placebo.tuned.card)
    if models.proposer is not None:
        record["neighbors"] = dict(models.proposer.facts)
    if found.scores.facts:
        record["fitted"] = dict(found.scores.facts)
    return record
