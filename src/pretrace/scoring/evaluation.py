"""From a run to what it is worth: every score and the controls beside it, measured on the same texts.

Scores, blind baselines and placebos share the resamples, so that their differences are paired; what was
fitted on shuffled labels has no interval of its own, but a range over the repeats. The comparisons of the
scores with one another come from these resamples too, and so cost no second bootstrap.

AUC and true positive rates are measured on all texts. Accuracy needs a threshold: it is chosen on a
validation split of whole documents, and the accuracy is measured on the others. Where documents are too
few for both parts to hold members and non-members, thresholds are chosen and accuracies measured on all
texts; `validation` is then 0 and a finding says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.baselines import WIDENING, bag_of_words
from pretrace.corpora import Texts, TextStream, corpus_of
from pretrace.errors import TextsError
from pretrace.registry import require
from pretrace.results.wording import say
from pretrace.scoring.detect import check_label_counts, check_labels
from pretrace.scoring.findings import BLIND, LENGTH, sentences
from pretrace.scoring.parts import ScoredRows
from pretrace.statistics.documents import (
    MEMBERS,
    NONMEMBERS,
    Grouping,
    Numbers,
    drawn_documents,
    grouped_split,
)
from pretrace.statistics.roc import (
    PLACEBO,
    SHUFFLED,
    Bootstrap,
    ReadColumn,
    adjusted,
    best_threshold,
    compare,
    divide_texts,
    group_bootstrap,
    roc_curve,
    shuffled_row,
    survives,
    usual_baseline,
)
from pretrace.types import Bools, ByCopies, Comparison, Corpus, Doubles, Estimate, Evaluation, Measured, Run

_Key = tuple[str, str]
"""A column's name and kind."""


@dataclass(frozen=True, slots=True, eq=False)
class _MeasuredPart:
    """Columns measured together on the same texts, in the order of `keys`; `columns` read each, [texts]."""

    keys: Sequence[_Key]
    columns: Sequence[ReadColumn]
    members: Bools
    thresholds: Doubles
    bootstrap: Bootstrap
    documents: int
    """Documents of the scarcer class."""

    def row(self, key: _Key) -> Measured:
        """The figures of a column; of a placebo also how far the score's AUC on the target exceeds it."""
        k, bootstrap = self.keys.index(key), self.bootstrap
        assert bootstrap.accuracy is not None  # thresholds were given
        row = Measured(
            name=key[0],
            kind=key[1],
            auc=bootstrap.auc.estimate(k),
            tpr=bootstrap.tpr.estimate(k),
            accuracy=bootstrap.accuracy.estimate(k),
            threshold=float(self.thresholds[k]),
            curve=roc_curve(self.columns[k](), self.members),
            tpr_low=bootstrap.low_tpr.estimate(k) if bootstrap.low_tpr else None,
            texts=len(self.members),
        )
        if key[1] != PLACEBO:
            return row
        target = (key[0], "score")
        row = replace(row, lead=self.lead(target, key))
        return replace(row, survives=survives(self.row(target), row))

    def lead(self, *keys: _Key) -> Estimate:
        """How far the AUC of the first of two columns exceeds that of the second."""
        return self.bootstrap.auc.difference(*map(self.keys.index, keys)).estimate(0)


@dataclass(frozen=True, slots=True, eq=False)
class _MeasuredParts:
    """The columns by the texts that they have: those with the same texts are measured together, under the same
    resamples, with what they are compared with: the score of a placebo, the usual baseline and the blind baselines
    beside a score. A column whose texts are all of one class has no part. All are measured by `members`, `groups` and
    the texts that thresholds are `chosen` on, [texts], and the draws. A column is read when it is measured, and not
    kept. TextsError where no score can be measured."""

    columns: Mapping[_Key, ReadColumn]
    members: Bools
    groups: Numbers
    chosen: Bools
    seed: int
    wanted: int
    _known: dict[_Key, npt.NDArray[np.uint8]] = field(default_factory=dict)
    _found: dict[bytes, _MeasuredPart] = field(default_factory=dict)

    def __post_init__(self) -> None:
        scores = [name for name, kind in self.columns if kind == "score"]
        blind = [key for key in self.columns if key[1] == "blind"]
        first = [(usual_baseline(scores), "score")] if scores else []
        wanted = []
        for key in self.columns:
            beside = {PLACEBO: [(key[0], "score")], "score": [*blind, *first]}.get(key[1], [])
            wanted += [(key, other) for other in (key, *beside)]
        for texts, name, keys in self.alike(wanted):
            self._found[name] = self._part(keys, texts)
        if scores and not any(self.part((name, "score")) for name in scores):
            raise TextsError(say("measured.nothing"))

    @property
    def resamples(self) -> int:
        """The fewest resamples that were made of any part; 0 without one."""
        return min((part.bootstrap.resamples for part in self._found.values()), default=0)

    def part(self, *keys: _Key) -> _MeasuredPart | None:
        """The part with the texts that have all these columns; None where it could not be measured."""
        return self._found.get(self._texts(*keys))

    def alike(self, columns: Iterable[Sequence[_Key]]) -> Iterator[tuple[Bools, bytes, list[_Key]]]:
        """Which texts have all of some columns, with their name, once for all columns that have the same."""
        wanted: dict[bytes, set[_Key]] = {}
        for keys in columns:
            wanted.setdefault(self._texts(*keys), set()).update(keys)
        for name, some in wanted.items():
            texts = np.unpackbits(np.frombuffer(name, np.uint8), count=len(self.members)).view(np.bool_)
            if len(np.unique(self.members[texts])) == 2:
                yield texts, name, [key for key in self.columns if key in some]

    def _texts(self, *keys: _Key) -> bytes:
        wanted = {*keys, *((name, "score") for name, kind in keys if kind == PLACEBO)}
        for key in wanted - self._known.keys():
            self._known[key] = np.packbits(np.isfinite(self.columns[key]()))
        return bytes(np.bitwise_and.reduce([self._known[key] for key in wanted]).tobytes())

    def _part(self, keys: Sequence[_Key], texts: Bools) -> _MeasuredPart:
        some = slice(None) if texts.all() else texts  # all of them are not copied

        def read(key: _Key) -> Doubles:
            return self.columns[key]()[some]

        columns = [partial(read, key) for key in keys]
        members, groups = self.members[some], self.groups[some]
        chosen, tested = divide_texts(self.chosen[some], members)
        best = (best_threshold(column()[chosen], members[chosen]) for column in columns)
        calls = np.fromiter(best, dtype=np.float64), tested
        how = {"seed": self.seed, "resamples": self.wanted}
        made = group_bootstrap((column() for column in columns), members, groups=groups, calls=calls, **how)
        bag = (BLIND, "blind")
        if bag in keys:  # a cross-fitted classifier varies more than its fixed predictions do
            made = made.widened(keys.index(bag), WIDENING)
        return _MeasuredPart(keys, columns, members, calls[0], made, Grouping.of(groups, members).fewest)


def evaluate(
    run: Run,
    texts: Corpus | Texts,
    *,
    seed: int = 0,
    resamples: int = 1000,
    validation: float = 0.2,
) -> Run:
    """The run with its `evaluation`: metrics with 95% intervals, and the blind baseline beside them.

    `texts` are those that were scored. `validation` is the share of documents on which accuracy
    thresholds are chosen. Raises TextsError where labels are missing or all of one class.
    """
    corpus = corpus_of(texts)
    check_labels(corpus)
    how: dict[str, Any] = {"seed": seed, "resamples": resamples, "validation": validation}
    found = measure(ScoredRows.of_run(run, corpus.texts), TextStream.of(corpus), **how)
    return replace(run, evaluation=found)


_BLIND_TEXTS = 20_480
"""Texts that the blind classifier learns from and judges, drawn by document."""


def measure(
    rows: ScoredRows,
    stream: TextStream,
    *,
    seed: int = 0,
    resamples: int = 1000,
    validation: float = 0.2,
) -> Evaluation:
    """How well each score told members from non-members, with the controls beside it.

    `stream` has the texts of the rows. `validation` is the share of texts thresholds are chosen on, 0 for all.
    Intervals are 95%, from resampling documents; draws without a text to measure accuracy on, which only few documents
    can make, are left out. `comparisons` are by the same resamples (`statistics.roc`). In memory are labels and
    numbers of documents of all rows, the ranks of the columns that are measured, and the texts that the blind
    classifier judges. TextsError when labels are missing or of one class.
    """
    require(0 <= validation < 1, f"the validation share lies between 0 and 1, found {validation}.")
    scores, groups, labels = rows.scores, rows.documents, rows.column("label")
    members: Bools = labels == 1
    check_label_counts(rows.corpus, int(members.sum()), int((labels == 0).sum()), len(rows))
    columns: dict[_Key, ReadColumn] = {(name, "score"): partial(rows.column, name) for name in scores}
    judged, note = _judged(rows, stream, members, groups, seed)
    columns |= {(BLIND, "blind"): judged} if judged else {}
    columns[LENGTH, "blind"] = partial(rows.column, "n_chars")
    columns |= {(name, PLACEBO): one for name, (one,) in rows.controls(PLACEBO).items()}  # resampled together
    shuffled = rows.controls(SHUFFLED)
    chosen = grouped_split(groups, validation, seed, labels=members) if validation else np.zeros_like(members)
    chosen, tested = divide_texts(chosen, members)
    parts = _MeasuredParts(columns, members, groups, chosen, seed, resamples)
    grouping = Grouping.of(groups, members)
    measured = tuple(part.row(key) for key in columns if (part := parts.part(key)))
    fitted = (shuffled_row(name, some, members, chosen) for name, some in shuffled.items())
    evaluation = Evaluation(
        rows=(*measured, *filter(None, fitted)),
        members=int(np.count_nonzero(members)),
        nonmembers=int(np.count_nonzero(~members)),
        groups=len(grouping),
        resamples=parts.resamples,
        validation=int(np.count_nonzero(chosen & ~tested)),
        comparisons=_comparisons(scores, parts),
        by_copies=_by_copies(rows, parts),
    )

    def lead(row: Measured, other: Measured) -> Estimate | None:
        both = (row.name, row.kind), (other.name, other.kind)
        beside = parts.part(*both)
        return beside.lead(*both) if beside else None

    notes = [note, *_partial(rows)]
    if parts.resamples < resamples:
        notes.append(say("measured.resamples", made=parts.resamples, asked=resamples))
    found = sentences(
        evaluation,
        (grouping.holding(MEMBERS), grouping.holding(NONMEMBERS)),
        lead=lead,
        notes=notes,
        placebo=_placebo_name(rows.settings),
        shuffles={name: len(some) for name, some in shuffled.items()},
    )
    return replace(evaluation, findings=tuple(filter(None, found)))


def _judged(
    rows: ScoredRows, stream: TextStream, members: Bools, groups: Numbers, seed: int
) -> tuple[ReadColumn | None, str]:
    """What a bag of words makes of texts drawn by whole documents, NaN for the others, and a note on it; None where it
    makes nothing of them."""
    drawn = drawn_documents(groups, members, most=_BLIND_TEXTS, seed=seed)
    scores, note = bag_of_words(rows.texts_at(stream, drawn), members[drawn], groups[drawn], seed=seed)
    if scores is None:
        return None, say("measured.no_blind", note=note)
    sampled = "" if drawn.all() else say("measured.sampled", drawn=int(drawn.sum()), texts=len(members))

    def column() -> Doubles:
        values = np.full(len(members), np.nan)
        values[drawn] = scores
        return values

    return column, f"{sampled} {note}".strip()


def _comparisons(scores: Sequence[str], parts: _MeasuredParts) -> tuple[Comparison, ...]:
    if len(scores) < 2:
        return ()
    first = usual_baseline(scores)
    found = []
    for name in scores:
        both = (name, "score"), (first, "score")
        if name != first and (part := parts.part(*both)):
            i, j = map(part.keys.index, both)
            found.append(compare(name, first, part.bootstrap.auc, (i, j), part.documents))
    return adjusted(found)


def _by_copies(rows: ScoredRows, parts: _MeasuredParts) -> tuple[ByCopies, ...]:
    """The AUC of each score for the members with so many copies: 1, 2, 3 to 4, 5 to 8, … against all non-members."""
    if not rows.counted:
        return ()
    members, groups = parts.members, parts.groups
    how: dict[str, Any] = {"seed": parts.seed, "resamples": parts.wanted}
    steps = np.ceil(np.log2(np.maximum(1, rows.column("copies"))))
    found = []
    for texts, _, keys in parts.alike([[(name, "score")] for name in rows.scores]):
        for step in np.unique(steps[members]).tolist():
            here = (~members | (steps == step)) & texts
            if number := int(np.count_nonzero(members[here])):
                some = (parts.columns[key]()[here] for key in keys)
                made = group_bootstrap(some, members[here], groups=groups[here], **how)
                least = 1 if step == 0 else int(2 ** (step - 1)) + 1
                found += [
                    ByCopies(name, least, int(2**step), number, made.auc.estimate(i))
                    for i, (name, _) in enumerate(keys)
                ]
    return tuple(sorted(found, key=lambda one: (rows.scores.index(one.score), one.least)))


def _partial(rows: ScoredRows) -> tuple[str, ...]:
    """Which scores lack values for some texts, why, and what their figures rest on; one sentence a score."""
    said = []
    for name in rows.scores:
        lost = {one.id: one.reason for one in rows.lost(name)}
        if lost:
            first, reason = next(iter(lost.items()))
            numbers = {"number": len(lost), "first": repr(first), "left": len(rows) - len(lost)}
            said.append(say("measured.partial", score=name, reason=reason, **numbers))
    return tuple(said)


def _placebo_name(settings: Mapping[str, Any]) -> str:
    """What the run records as the placebo's name; of a folder its last part; "" where it records none."""
    name = str(settings.get("models", {}).get(PLACEBO, {}).get("name") or "")
    return PurePath(name).name if PurePath(name).is_absolute() else name
