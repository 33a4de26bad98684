"""Texts + scores + models → a Run: plan what each model must be asked, ask it once, score."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from pretrace.cache import text_key
from pretrace.corpora import Texts, corpus_of
from pretrace.corpora.opening import record_corpus
from pretrace.errors import PretraceError, TextsError, shown
from pretrace.results.folder import Column, arrow_table, record_software
from pretrace.results.run import control_columns, label_column, masked
from pretrace.results.wording import say
from pretrace.rewrites import Lower
from pretrace.scoring.evidence import CHUNK
from pretrace.scoring.evidence import Options as Options
from pretrace.scoring.holdout import check_disjoint
from pretrace.scoring.parts import SHOWN, Manifest, Ranked, ScoredRows, Shard, run_of
from pretrace.scoring.plan import FittedScores, Models, ScorePlan
from pretrace.tuning.artifacts import record_tuning
from pretrace.types import (
    Backend,
    Corpus,
    Doubles,
    Evidence,
    Heat,
    Missing,
    Run,
    Score,
    Skipped,
    Text,
    Trace,
    View,
)

PIECES = 400
"""Tokens shown of a text."""
T = TypeVar("T")
_LABELS = {True: "a known member", False: "a known non-member", None: "not labelled"}


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


_Named = tuple[str, Score]
"""A score with its expression."""


def _fewest(score: Score) -> int:
    """The fewest tokens that a score takes."""
    return getattr(score, "fewest", 0)


def _finite(name: str, values: Any, texts: Sequence[Text], shape: tuple[int, ...] = ()) -> Any:
    """The values that a score gave texts, an array of a shape; PretraceError where one is no finite number."""
    try:
        found = np.asarray(values)
    except ValueError:  # lists of different lengths
        found = np.asarray(None)
    if found.dtype.kind not in "biuf" or found.shape != shape:
        wrong, value = 0, shown(repr(values))[:100]
    elif np.isfinite(found).all():
        return values
    else:
        wrong = int(np.flatnonzero(~np.isfinite(found))[0])
        value = str(float(np.ravel(found)[wrong]))
    raise PretraceError(say("scoring.no_number", score=name, value=value, text=repr(texts[wrong].id)))


def _stacked(traces: Sequence[Trace]) -> Iterator[tuple[npt.NDArray[np.int64], Trace]]:
    """Stack the traces that have a prediction by their numbers of tokens, each stack with their places; moments where
    all have them."""
    lengths = np.array([len(trace.logp) for trace in traces], dtype=np.int64)
    order = np.argsort(lengths, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1):
        some = [traces[i] for i in places.tolist()]
        if some and len(some[0].logp):
            moments = [one.mean for one in some], [one.std for one in some]
            mean, std = (None if any(one is None for one in of) else np.stack(of) for of in moments)
            tokens, logp = (np.stack(of) for of in ([one.tokens for one in some], [one.logp for one in some]))
            yield places, Trace(tokens, logp, mean, std)


class _ModelScores:
    """What one set of models said of texts, in their order. `texts` are those with a row, `tokens` how many of each
    were read and how many the limit dropped. `ends` are those of the `seen` texts with the highest and the lowest first
    score, highest first and equal ones as they came: the score, the place among those seen, from 0, and the trace."""

    def __init__(self, scores: FittedScores, plan: ScorePlan) -> None:
        self.scores, self.plan = scores, plan
        self.texts: list[Text] = []
        self.tokens: list[tuple[int, int]] = []
        self.skipped: list[Skipped] = []
        self.missing: list[Missing] = []
        self.seen = 0
        self.ends: list[tuple[float, int, Text, Trace]] = []
        shuffled = ((name, one) for name, repeats in scores.shuffled.items() for one in repeats)
        self._columns: list[_Named] = [*scores.ready.items(), *shuffled]
        self._ready = self._columns[: len(scores.ready)]
        self._values: list[Doubles] = []

    @property
    def matrix(self) -> Doubles:
        """The scores of the rows, then those fitted on shuffled labels, float64 [texts, columns]; NaN where a text has
        no value of one."""
        return np.concatenate([np.empty((0, len(self._columns))), *self._values])

    def read(self, evidence: Iterable[Evidence]) -> Self:
        """This, with the rows of all the evidence."""
        left = iter(evidence)
        while some := list(islice(left, CHUNK)):
            emptied, traces = [one.empty for one in some], [one.views[_PLAIN][0] for one in some]
            values = self._evaluate(some, emptied, traces)
            lacking = np.asarray(np.isnan(values[:, : len(self._ready)]).any(axis=1)).tolist()
            kept = [
                i
                for i, empty in enumerate(emptied)
                if not (empty or lacking[i]) or self._record_missing(some[i], values[i].tolist(), empty)
            ]
            self.texts += [some[i].text for i in kept]
            self.tokens += [(len(traces[i]), traces[i].cut) for i in kept]
            self._values.append(values[kept])
            ranked = [i for i in kept if not math.isnan(values[i, 0])]
            self._rank(values[ranked, 0], [some[i].text for i in ranked], [traces[i] for i in ranked])
        return self

    def _rank(self, scores: Doubles, texts: Sequence[Text], traces: Sequence[Trace]) -> None:
        """Keep those of as many further texts whose score is among the highest or lowest."""
        order = _outer(np.argsort(-scores, kind="stable").tolist())
        more = ((float(scores[i]), self.seen + i, texts[i], traces[i]) for i in order)
        self.ends = _outer(sorted([*self.ends, *more], key=lambda one: -one[0]))
        self.seen += len(scores)

    def _evaluate(
        self, some: Sequence[Evidence], emptied: Sequence[frozenset[View]], traces: Sequence[Trace]
    ) -> Doubles:
        """The columns of texts, [texts, columns]; NaN where one has nothing to see, or too little."""
        stacks = list(_stacked(traces))
        values = np.full((len(some), len(self._columns)), np.nan)
        for column, (name, score) in enumerate(self._columns):
            views, fewest = score.needs.views.keys(), _fewest(score)
            if hasattr(score, "over") and views == {_PLAIN}:  # texts of one length at once
                for places, stack in stacks:
                    if stack.logp.shape[1] >= fewest:
                        texts = [some[i].text for i in places]
                        values[places, column] = _finite(name, score.over(stack, texts), texts, (len(texts),))
                continue
            for row, (seen, empty) in enumerate(zip(some, emptied, strict=True)):
                if not (empty and empty & views) and (not fewest or len(seen.plain) >= fewest):
                    values[row, column] = _finite(name, score(seen), (seen.text,))
        return values

    def _record_missing(self, evidence: Evidence, values: list[float], empty: frozenset[View]) -> bool:
        """Record what the text lacks; False where it has no row."""
        lost = [one for one, value in zip(self._ready, values, strict=False) if math.isnan(value)]
        if _PLAIN in empty or len(lost) == len(self._ready):
            tokens = max((len(traces[0]) for traces in evidence.views.values() if traces), default=0)
            why = self._why(evidence, empty, lost[0] if lost else None)
            self.skipped.append(Skipped(evidence.text.id, why, tokens))
            return False
        for one in lost:
            views = empty & one[1].needs.views.keys()
            self.missing.append(Missing(evidence.text.id, one[0], self._why(evidence, views, one)))
        return True

    def _why(self, evidence: Evidence, empty: Collection[View], one: _Named | None) -> str:
        """Why a text has no score, or not this one: `empty` are the views that lack a prediction."""
        if one is not None and not empty:
            return say("scoring.short", tokens=len(evidence.plain), score=one[0], fewest=_fewest(one[1]))
        if not evidence.text.text.strip():
            return "the text is empty"
        if len(evidence.empty) == len(evidence.views):
            return say("scoring.single_token")
        lacking = [view for view in evidence.views if view in empty]
        formless = (self.plan.rewrites[view.rewrite] for view in lacking if not evidence.views[view])
        reasons = dict.fromkeys(made.formless for made in formless if isinstance(made, Lower))
        return "; ".join(reasons) or say("scoring.no_form", view=lacking[0])

    def under(self, placebo: _ModelScores) -> Doubles:
        """The scores of the same rows under the placebo, float64 [texts, scores]; a cell that the placebo lacks is NaN
        and is added to `missing`."""
        names = list(self.scores.ready)
        other = dict(zip((text.id for text in placebo.texts), placebo.matrix, strict=True))
        nothing = np.full(len(names), np.nan)
        found = np.array([other.get(text.id, nothing) for text in self.texts]).reshape(-1, len(names))
        reasons = {(one.id, one.score): one.reason for one in placebo.missing}
        skipped = {one.id: one.reason for one in placebo.skipped}
        for row, column in np.argwhere(np.isnan(found) & ~np.isnan(self.matrix[:, : len(names)])).tolist():
            name, score = self.texts[row].id, names[column]
            why = reasons.get((name, score)) or skipped[name]
            self.missing.append(Missing(name, score, f"under the placebo model: {why}"))
        return found


def _outer(ordered: list[T]) -> list[T]:
    """What of some that are in order can be shown, however many others come."""
    return ordered if len(ordered) <= 3 * SHOWN else [*ordered[: 2 * SHOWN], *ordered[-SHOWN:]]


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
    plan, models = ScorePlan.parse(expressions), Models.of(models)
    return run_of(score_rows(corpus_of(texts), models, plan, options or Options()))


def score_rows(corpus: Corpus, models: Models, plan: ScorePlan, options: Options) -> ScoredRows:
    """Score texts in memory, as one shard; errors as of `detect`."""
    if not corpus.texts:
        raise TextsError(f"{corpus.name} holds no texts.")
    plan.check_texts(corpus)
    for leak in leaks(models, plan):  # of the placebo as well: it is asked last, perhaps hours later
        check_disjoint(corpus, *leak)
    with Scorer(models, plan, options) as scorer:
        scorer.announce(len(corpus))
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
        self.scores = plan.fit(models, options)
        self._readers = [(self.scores, models.reader(self.scores.needs, options))]
        if models.placebo:
            fitted = plan.fit(models.placebo, replace(options, shuffles=0))
            self._readers.append((fitted, models.placebo.reader(fitted.needs, options)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for _, reader in self._readers:
            reader.__exit__()

    def announce(self, texts: int) -> None:
        """Tell the progress of so many texts, all that will be scored."""
        for _, reader in self._readers:
            reader.announce(texts)

    @property
    def outlines(self) -> list[dict[str, Any]]:
        """Kind, score and number of repeats of each control, in the order of the parts' columns."""
        placebo = [(name, "placebo", 1) for name in self.scores.ready] if self.models.placebo else []
        shuffled = [(name, "shuffled", len(some)) for name, some in self.scores.shuffled.items()]
        return [
            {"kind": kind, "score": name, "repeats": repeats} for name, kind, repeats in (*placebo, *shuffled)
        ]

    def each(self, some: Iterable[Shard]) -> Iterator[tuple[str, Any, dict[str, Any]]]:
        """The key of each shard with its part."""
        for shard in some:
            yield shard.key, *self.part(shard)

    def part(self, shard: Shard) -> tuple[Any, dict[str, Any]]:
        """The part of a shard, a pyarrow table (`COLUMNS`, a column a score, a column a repeat of each control; null
        where nothing is known), and what its manifest says besides."""
        found, *others = (
            _ModelScores(scores, self.plan).read(reader.read(shard.texts)) for scores, reader in self._readers
        )
        names, matrix = list(self.scores.ready), found.matrix
        for other in others:
            matrix = np.hstack([matrix[:, : len(names)], found.under(other), matrix[:, len(names) :]])
        names += [name for one in self.outlines for name in control_columns(**one)]
        read, copies = np.array(found.tokens, np.int32).reshape(-1, 2), [text.copies for text in found.texts]
        columns: dict[str, Column] = {
            "id": [text.id for text in found.texts],
            "label": label_column([text.member for text in found.texts]),
            "group": [text.document for text in found.texts],
            "n_tokens": read[:, 0],
            "n_cut": read[:, 1],
            "n_chars": np.array([len(text.text) for text in found.texts], np.int32),
        }
        if copies and None not in copies:  # a scan counted those of all or none
            columns["copies"] = np.array(copies, np.int32)
        columns |= zip(names, map(masked, matrix.T), strict=True)
        ends = tuple(
            Ranked(score, place, _LABELS[text.member], heat_of(text, trace, self.models.target))
            for score, place, text, trace in found.ends
        )
        lost = {"skipped": tuple(found.skipped), "missing": tuple(found.missing)}
        texts = {"index": shard.index, "texts": len(shard.texts), "seen": found.seen}
        return arrow_table(columns), {**texts, **lost, "ends": ends}


Leak = tuple[frozenset[bytes], str, str]
"""Texts that must not be scored, why, and what to do, as `check_disjoint` takes them."""


def leaks(models: Models, plan: ScorePlan) -> tuple[Leak, ...]:
    """The texts that these models or their placebo were tuned or fitted on, once a plan that asks them is checked."""
    found: list[Leak] = []
    for some in filter(None, (models, models.placebo)):
        plan.check(some)
        if some.labelled is not None:
            keys = frozenset(text_key(text.text) for text in some.labelled.texts)
            found.append((keys, say("scoring.leak.reference"), say("scoring.leak.apart")))
        if some.tuned is not None:
            found.append((some.tuned.seen, say("scoring.leak.tuned"), say("scoring.leak.out")))
    return tuple(found)


def check_labels(corpus: Corpus) -> None:
    """TextsError unless every text is labelled and both classes are there."""
    labels = [text.member for text in corpus.texts]
    unlabelled = next((text.id for text in corpus.texts if text.member is None), "")
    check_label_counts(corpus.name, labels.count(True), labels.count(False), len(corpus), unlabelled)


def check_label_counts(name: str, members: int, nonmembers: int, texts: int, unlabelled: str = "") -> None:
    """The same by the numbers of texts of each class and of all, and the id of the first text without a label."""
    if unknown := texts - members - nonmembers:
        first = f" (such as {unlabelled!r})" if unlabelled else ""
        raise TextsError(say("scoring.unlabelled", number=unknown, texts=texts, name=name, first=first))
    if not (members and nonmembers):
        kind = "members" if members else "non-members"
        raise TextsError(say("scoring.one_class", texts=texts, name=name, side=kind))


def recorded(
    models: Models, options: Options, texts: Mapping[str, Any], fitted: Mapping[str, Any]
) -> dict[str, Any]:
    """What run.json says of how the numbers came about; `texts` is what it says of the corpus, `fitted` what fitted
    scores tell of themselves."""
    named = models.named() | ({"placebo": models.placebo.target} if models.placebo else {})
    record: dict[str, Any] = {
        **options.settings,
        "seed": options.seed,
        "models": {name: dict(backend.facts) for name, backend in named.items()},
        "texts": dict(texts),
        "counts": models.recorded_counts,
        "cut": {},
        "software": record_software(),
    }
    tuned = {"adapter": models.tuned, "placebo_adapter": models.placebo and models.placebo.tuned}
    more = {
        "reference": models.labelled and record_corpus(models.labelled),
        **{name: one and record_tuning(one.card) for name, one in tuned.items()},
        "neighbors": models.proposer and dict(models.proposer.facts),
        "fitted": dict(fitted),
    }
    return record | {name: value for name, value in more.items() if value}
