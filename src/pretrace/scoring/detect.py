"""Texts + scores + models → a Run: plan what each model must be asked, ask it once, score."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from pretrace.cache.location import text_key
from pretrace.corpora import Texts, corpus_of
from pretrace.errors import PretraceError, TextsError, shown
from pretrace.results.folder import arrow_column
from pretrace.results.run import control_columns, masked
from pretrace.results.wording import say
from pretrace.rewrites import Lower
from pretrace.scoring.evidence import CHUNK, Progress, Silent
from pretrace.scoring.holdout import check_disjoint
from pretrace.scoring.parts import SHOWN, Manifest, Ranked, ScoredRows, Shard, run_of
from pretrace.scoring.plan import FittedScores, Models, ScorePlan
from pretrace.scoring.provenance import record_corpus, record_counts, record_software, record_tuning
from pretrace.types import (
    Backend,
    Control,
    Corpus,
    Doubles,
    Evidence,
    Heat,
    Missing,
    Run,
    Score,
    Skipped,
    Stack,
    Stackable,
    Text,
    Trace,
    View,
)

PIECES = 400
"""Tokens shown of a text."""

T = TypeVar("T")


_LABELS = {True: "a known member", False: "a known non-member", None: "not labelled"}


class Extremes:
    """Keeps the texts with the highest and the lowest score as they come by: `ends` holds each with its score, its
    place among those `seen`, from 0, and its trace, the highest score first; equal scores rank in the order they come.
    """

    def __init__(self) -> None:
        self.seen = 0
        self.ends: list[tuple[float, int, Text, Trace]] = []

    def offer(self, scores: Doubles, texts: Sequence[Text], traces: Sequence[Trace]) -> None:
        """Take notice of as many texts one after another."""
        order = _outer(np.argsort(-scores, kind="stable").tolist())
        more = ((float(scores[i]), self.seen + i, texts[i], traces[i]) for i in order)
        self.ends = _outer(sorted([*self.ends, *more], key=lambda one: (-one[0], one[1])))
        self.seen += len(scores)

    def ranked(self, backend: Backend) -> tuple[Ranked, ...]:
        """The ends with their tokens."""
        return tuple(
            Ranked(score, place, _LABELS[text.member], heat_of(text, trace, backend))
            for score, place, text, trace in self.ends
        )


def _outer(ordered: list[T]) -> list[T]:
    """What of some that are in order can be shown, however many others come."""
    return ordered if len(ordered) <= 3 * SHOWN else [*ordered[: 2 * SHOWN], *ordered[-SHOWN:]]


def heat_of(text: Text, trace: Trace, backend: Backend, *, limit: int | None = PIECES) -> Heat:
    """One text as pieces with their log-probabilities; what lies beyond `limit` tokens is left out and said."""
    spans = backend.spans(text.text)
    read = len(spans) - trace.cut
    unpredicted = max(0, read - len(trace))  # the first token, where no start token stands before it
    values = [None] * unpredicted + [float(value) for value in trace.logp]
    shown = read if limit is None else min(read, limit)
    pieces = [text.text[start:end] for start, end in spans[:shown]]
    note = f"first {shown} of {len(spans)} tokens shown" if shown < len(spans) else ""
    return Heat(text.id, tuple(pieces), tuple(values[:shown]), note)


_PLAIN = View()


class ScoredText(NamedTuple):
    """A text that has a score: its scores in the plan's order, those fitted on shuffled labels, its tokens, and how
    many of them the limit dropped."""

    text: Text
    values: list[float]
    shuffled: list[list[float]]
    tokens: int
    cut: int


class NamedScore(NamedTuple):
    """A score with its expression, the views that it compares, and the fewest tokens that it takes."""

    name: str
    score: Score
    views: frozenset[View]
    fewest: int = 0

    @classmethod
    def of(cls, name: str, score: Score) -> NamedScore:
        """The score with its views."""
        return cls(name, score, frozenset(score.needs.views), getattr(score, "fewest", 0))

    def lacks(self, evidence: Evidence, empty: frozenset[View]) -> bool:
        """Whether one of the views that it compares has nothing in it, or too little."""
        return bool(empty and empty & self.views) or (self.fewest > 0 and len(evidence.plain) < self.fewest)

    def checked(self, values: Any, texts: Sequence[Text], shape: tuple[int, ...] = ()) -> Any:
        """The values of texts, an array of a shape; PretraceError where one is no number."""
        try:
            found = np.asarray(values)
        except ValueError:  # lists of different lengths
            found = np.asarray(None)
        if found.dtype.kind not in "biuf" or found.shape != shape:
            told = {"score": self.name, "values": shown(repr(values))[:100], "text": repr(texts[0].id)}
            raise PretraceError(say("scoring.no_number", **told))
        if not (good := np.isfinite(found)).all():
            wrong = int(np.flatnonzero(~good)[0])
            value, text = float(np.ravel(found)[wrong]), repr(texts[wrong].id)
            raise PretraceError(say("scoring.infinite", score=self.name, value=value, text=text))
        return values


def _stacked(traces: Sequence[Trace]) -> Iterator[tuple[npt.NDArray[np.int64], Stack]]:
    """Stack the traces that have a prediction by their numbers of tokens, each stack with their places."""
    lengths = np.array([len(trace.logp) for trace in traces], dtype=np.int64)
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] > 0]
    if not len(order):
        return
    some = [traces[i] for i in order.tolist()]
    logp = np.concatenate([trace.logp for trace in some])
    means = [trace.mean for trace in some if trace.mean is not None]
    stds = [trace.std for trace in some if trace.std is not None]
    moments = (np.concatenate(means), np.concatenate(stds)) if len(means) == len(stds) == len(some) else None
    begin = 0
    for places in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1):
        shape = len(places), int(lengths[places[0]])
        part = slice(begin, begin := begin + shape[0] * shape[1])
        mean, std = (None, None) if moments is None else (moments[0][part], moments[1][part])
        yield (
            places,
            Stack(
                logp[part].reshape(shape),
                None if mean is None else mean.reshape(shape),
                None if std is None else std.reshape(shape),
            ),
        )


@dataclass(slots=True)
class ModelScores:
    """What one set of models said of texts, in their order: rows, and what has none."""

    scores: FittedScores
    plan: ScorePlan
    rows: list[ScoredText] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    extremes: Extremes = field(default_factory=Extremes)
    _ready: list[NamedScore] = field(init=False)
    _shuffled: list[list[NamedScore]] = field(init=False)

    def __post_init__(self) -> None:
        self._ready = [NamedScore.of(name, score) for name, score in self.scores.ready.items()]
        self._shuffled = [
            [NamedScore.of(name, score) for score in repeats]
            for name, repeats in self.scores.shuffled.items()
        ]

    @property
    def matrix(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The scores of the rows, float64 [texts, scores]; NaN where a text has no value of one."""
        return np.array([row.values for row in self.rows], dtype=np.float64)

    def read(self, evidence: Iterable[Evidence]) -> ModelScores:
        """This, with the rows of all the evidence."""
        left = iter(evidence)
        while some := list(islice(left, CHUNK)):
            emptied, traces = [one.empty for one in some], [one.views[_PLAIN][0] for one in some]
            stacks = list(_stacked(traces))
            values = np.full((len(some), len(self._ready)), np.nan)
            for column, one in enumerate(self._ready):
                if isinstance(one.score, Stackable) and one.views == {_PLAIN}:  # texts of one length at once
                    for places, stack in stacks:
                        if stack.logp.shape[1] >= one.fewest:
                            texts = [some[i].text for i in places]
                            values[places, column] = one.checked(
                                one.score.over(stack, texts), texts, (len(texts),)
                            )
                    continue
                for row, (seen, empty) in enumerate(zip(some, emptied, strict=True)):
                    if not one.lacks(seen, empty):
                        values[row, column] = one.checked(one.score(seen), (seen.text,))
            if self._shuffled or any(emptied) or np.isnan(values).any():
                for seen, empty, found in zip(some, emptied, values.tolist(), strict=True):
                    self._add(seen, empty, found)
                continue
            self.rows += [
                ScoredText(one.text, found, [], len(trace.tokens), trace.cut)
                for one, found, trace in zip(some, values.tolist(), traces, strict=True)
            ]
            self.extremes.offer(values[:, 0], [one.text for one in some], traces)
        return self

    def _add(self, evidence: Evidence, empty: frozenset[View], values: list[float]) -> None:
        text = evidence.text
        if (empty or any(map(math.isnan, values))) and not self._record_missing(evidence, values, empty):
            return
        shuffled = [
            [
                float("nan") if one.lacks(evidence, empty) else one.checked(one.score(evidence), (text,))
                for one in repeats
            ]
            for repeats in self._shuffled
        ]
        plain = evidence.views[_PLAIN][0]
        self.rows.append(ScoredText(text, values, shuffled, len(plain), plain.cut))
        if values[0] == values[0]:
            self.extremes.offer(np.array(values[:1]), (text,), (plain,))

    def _record_missing(self, evidence: Evidence, values: list[float], empty: frozenset[View]) -> bool:
        """Record what the text lacks; False where it has no row."""
        lost = [one for one, value in zip(self._ready, values, strict=True) if math.isnan(value)]
        reasons = {one.name: self._why(one, evidence, empty & one.views) for one in lost}
        if _PLAIN in empty or len(lost) == len(values):
            tokens = max((len(traces[0]) for traces in evidence.views.values() if traces), default=0)
            why = self._why(lost[0], evidence, empty) if lost else _reason(evidence, empty, self.plan)
            self.skipped.append(Skipped(evidence.text.id, why, tokens))
            return False
        self.missing.extend(Missing(evidence.text.id, name, reason) for name, reason in reasons.items())
        return True

    def _why(self, one: NamedScore, evidence: Evidence, empty: frozenset[View]) -> str:
        if empty:
            return _reason(evidence, empty, self.plan)
        return say("scoring.short", tokens=len(evidence.plain), score=one.name, fewest=one.fewest)

    def placebo_controls(self, placebo: ModelScores) -> tuple[Control, ...]:
        """The scores of the same rows under the placebo; a cell that the placebo lacks is NaN and is added to
        `missing`."""
        other = {row.text.id: row.values for row in placebo.rows}
        reasons = {(one.id, one.score): one.reason for one in placebo.missing}
        skipped = {one.id: one.reason for one in placebo.skipped}
        nothing = [float("nan")] * len(self.scores.ready)
        matrix = np.array([other.get(row.text.id, nothing) for row in self.rows], dtype=np.float64)
        matrix = matrix.reshape(len(self.rows), len(nothing))
        for row, values in zip(self.rows, matrix.tolist(), strict=True):
            for name, value, mine in zip(self.scores.ready, values, row.values, strict=True):
                if math.isnan(value) and not math.isnan(mine):
                    why = reasons.get((row.text.id, name)) or skipped[row.text.id]
                    self.missing.append(Missing(row.text.id, name, f"under the placebo model: {why}"))
        return tuple(Control(name, "placebo", matrix[:, [i]]) for i, name in enumerate(self.scores.ready))

    @property
    def shuffled(self) -> tuple[Control, ...]:
        """The scores of the rows that were fitted on shuffled labels."""
        return tuple(
            Control(
                name,
                "shuffled",
                np.array([row.shuffled[i] for row in self.rows], np.float64).reshape(-1, len(repeats)),
            )
            for i, (name, repeats) in enumerate(self.scores.shuffled.items())
        )


def _reason(evidence: Evidence, empty: frozenset[View], plan: ScorePlan) -> str:
    """Why a text has no score, or none of some scores: `empty` are the views that lack a prediction."""
    if not evidence.text.text.strip():
        return "the text is empty"
    if len(evidence.empty) == len(evidence.views):
        return say("scoring.single_token")
    lacking = [view for view in evidence.views if view in empty]
    formless = (plan.rewrites[view.rewrite] for view in lacking if not evidence.views[view])
    reasons = dict.fromkeys(made.formless for made in formless if isinstance(made, Lower))
    return "; ".join(reasons) or say("scoring.no_form", view=lacking[0])


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
    texts: Corpus | Texts,
    models: Models | Backend | str,
    expressions: str | Sequence[str] | ScorePlan = "loss,zlib,min_k",
    options: Options | None = None,
) -> Run:
    """The scores of every text, one row a text in the corpus' order, one column an expression.

    `texts` are a corpus, or all that `open_corpus` takes: a list, a column of a table. `models` may be a model's name.
    A text that gives the target nothing to predict is in `Run.skipped` and has no row. Where a text has no
    value of one score alone, that cell is NaN and `Run.missing` says why. With a placebo among the models,
    and for scores fitted on labelled texts, `Run.controls` holds the same scores without what they claim to
    see. Raises a PretraceError before any model is asked when an expression is wrong or something it needs
    is missing, LeakError when a text to be scored was tuned or fitted on.
    """
    options = options or Options()
    corpus = corpus_of(texts)
    return run_of(score_rows(corpus, Models.of(models), ScorePlan.parse(expressions), options or Options()))


def score_rows(corpus: Corpus, models: Models, plan: ScorePlan, options: Options) -> ScoredRows:
    """Score texts in memory, as one shard; errors as of `detect`."""
    if not corpus.texts:
        raise TextsError(f"{corpus.name} holds no texts.")
    plan.check_texts(corpus)
    for leak in leaks(models, plan):  # of the placebo as well: it is asked last, perhaps hours later
        leak.check(corpus)
    with Scorer(models, plan, options) as scorer:
        table, facts = scorer.part(Shard(0, "", corpus.texts))
        part = Manifest(key="", rows=table.num_rows, file="", sha256="", **facts)
        settings = recorded(models, options, record_corpus(corpus), scorer.scores.facts)
        return ScoredRows(corpus.name, tuple(plan.scores), scorer.outlines, settings, (part,), table)


class Scorer:
    """Scores texts with models that are open, and with the placebo among them. A context manager, which closes the
    stores of traces.

    Its scores are fitted once, when it is made; errors are those of `ScorePlan.fit`.
    """

    def __init__(self, models: Models, plan: ScorePlan, options: Options) -> None:
        self.models, self.plan = models, plan
        self._how: dict[str, Any] = {"cache": options.cache, "progress": options.progress}
        self.scores = plan.fit(models, seed=options.seed, shuffles=options.shuffles, **self._how)
        self._reader = models.reader(self.scores.needs, plan=plan, **self._how)
        self.placebo = plan.fit(models.placebo, seed=options.seed, **self._how) if models.placebo else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.__exit__()

    @property
    def outlines(self) -> list[dict[str, Any]]:
        """Kind, score and number of repeats of each control, in the order of the parts' columns."""
        placebo = [(name, "placebo", 1) for name in self.scores.ready] if self.placebo else []
        shuffled = [(name, "shuffled", len(some)) for name, some in self.scores.shuffled.items()]
        return [
            {"kind": kind, "score": name, "repeats": repeats} for name, kind, repeats in (*placebo, *shuffled)
        ]

    def part(self, shard: Shard) -> tuple[Any, dict[str, Any]]:
        """The part of a shard, a pyarrow table, and what its manifest says besides."""
        found = ModelScores(self.scores, self.plan).read(self._reader.read(shard.texts))
        controls = found.shuffled
        if self.placebo and self.models.placebo:
            with self.models.placebo.reader(self.placebo.needs, plan=self.plan, **self._how) as reader:
                other = ModelScores(self.placebo, self.plan).read(reader.read(shard.texts))
            controls = (*found.placebo_controls(other), *controls)
        facts = {
            "index": shard.index,
            "texts": len(shard.texts),
            "seen": found.extremes.seen,
            "skipped": tuple(found.skipped),
            "missing": tuple(found.missing),
            "ends": found.extremes.ranked(self.models.target),
        }
        return table_of(found, controls), facts


def table_of(found: ModelScores, controls: tuple[Control, ...]) -> Any:
    """The rows as a pyarrow table: `COLUMNS`, a column a score, a column a repeat of each control; null for what is
    not known."""
    import pyarrow as pa

    rows = found.rows
    labels = [None if row.text.member is None else int(row.text.member) for row in rows]
    columns: dict[str, Any] = {
        "id": arrow_column([row.text.id for row in rows]),
        "label": pa.array(labels, pa.int8()),
        "group": arrow_column([row.text.document for row in rows]),
        "n_tokens": pa.array([row.tokens for row in rows], pa.int32()),
        "n_cut": pa.array([row.cut for row in rows], pa.int32()),
        "n_chars": pa.array([len(row.text.text) for row in rows], pa.int32()),
    }
    copies = [row.text.copies for row in rows if row.text.copies is not None]
    if rows and len(copies) == len(rows):  # a scan counted those of all or none
        columns["copies"] = pa.array(copies, pa.int32())
    names = list(found.scores.ready)
    matrix = found.matrix.reshape(len(rows), len(names))
    values = {name: arrow_column(masked(matrix[:, i])) for i, name in enumerate(names)}
    for control in controls:
        for place, name in enumerate(control_columns(control.kind, control.score, control.values.shape[1])):
            values[name] = arrow_column(masked(control.values[:, place]))
    return pa.table({**columns, **values})


@dataclass(frozen=True, slots=True)
class Leak:
    """Texts that must not be scored, by their `text_key`s: why not, and what to do where one of them is."""

    keys: frozenset[bytes]
    purpose: str
    cure: str

    def check(self, corpus: Corpus) -> None:
        """LeakError where one of them is in the corpus."""
        check_disjoint(corpus, self.keys, self.purpose, self.cure)


def leaks(models: Models, plan: ScorePlan) -> tuple[Leak, ...]:
    """The texts that these models or their placebo were tuned or fitted on, once a plan that asks them is checked."""
    found: list[Leak] = []
    for some in (models, models.placebo):
        if some is None:
            continue
        plan.check(some)
        if some.labelled is not None:
            keys = frozenset(text_key(text.text) for text in some.labelled.texts)
            found.append(Leak(keys, say("scoring.leak.reference"), say("scoring.leak.apart")))
        if some.tuned is not None:
            found.append(Leak(some.tuned.seen, say("scoring.leak.tuned"), say("scoring.leak.out")))
    return tuple(found)


def check_labels(corpus: Corpus) -> None:
    """TextsError unless every text is labelled and both classes are there."""
    labels = [text.member for text in corpus.texts]
    unlabelled = next((text.id for text in corpus.texts if text.member is None), "")
    check_label_counts(corpus.name, labels.count(True), labels.count(False), len(corpus), unlabelled)


def check_label_counts(name: str, members: int, nonmembers: int, texts: int, unlabelled: str) -> None:
    """The same by the numbers of texts of each class and of all, and the id of the first text without a label."""
    unknown = texts - members - nonmembers
    if unknown:
        told = {"number": unknown, "texts": texts, "name": name, "first": repr(unlabelled)}
        raise TextsError(say("scoring.unlabelled", **told))
    if not (members and nonmembers):
        kind = "members" if members else "non-members"
        raise TextsError(say("scoring.one_class", texts=texts, name=name, side=kind))


def recorded(
    models: Models,
    options: Options,
    texts: Mapping[str, Any],
    fitted: Mapping[str, Any],
) -> dict[str, Any]:
    """What run.json says of how the numbers came about; `texts` is what it says of the corpus, `fitted` what fitted
    scores tell of themselves."""
    named = models.named()
    if models.placebo:
        named["placebo"] = models.placebo.target
    record = {
        **options.settings,
        "seed": options.seed,
        "models": {name: dict(backend.facts) for name, backend in named.items()},
        "texts": dict(texts),
        "counts": record_counts(models.counts),
        "cut": {},
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
    if fitted:
        record["fitted"] = dict(fitted)
    return record
