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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

import numpy as np

from pretrace.baselines import blind as baseline
from pretrace.baselines.classifiers import WIDENING
from pretrace.corpora import Texts, TextStream, corpus_of
from pretrace.corpora.near_copies import Sketches, link
from pretrace.corpora.opening import GivenStream
from pretrace.errors import ExpressionError, TextsError
from pretrace.registry import require
from pretrace.results.wording import say
from pretrace.scoring.detect import check_label_counts, check_labels
from pretrace.scoring.findings import (
    BLIND,
    LENGTH,
    Circumstances,
    best_of,
    blind_of,
    listed,
    sentences,
    shown,
)
from pretrace.scoring.holdout import drawn_documents
from pretrace.scoring.parts import ScoredRows, all_rows
from pretrace.scoring.settings import RETRAINED
from pretrace.statistics.controls import (
    PLACEBO,
    ThresholdDivision,
    check_controls,
    placebos,
    shuffled_rows,
    shuffles,
    survives,
)
from pretrace.statistics.documents import MEMBERS, NONMEMBERS, Grouping, Numbers, grouped_split
from pretrace.statistics.paired import adjusted, compare, usual_baseline
from pretrace.statistics.resampling import (
    Bootstrap,
    Calls,
    group_bootstrap,
    paired_difference,
)
from pretrace.statistics.roc import best_threshold, roc_curve
from pretrace.types import (
    Bools,
    ByCopies,
    Comparison,
    Corpus,
    Doubles,
    Estimate,
    Evaluation,
    Ints,
    Measured,
    Run,
    Text,
    Unlearned,
)

_Key = tuple[str, str]
"""A column's name and kind."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredPart:
    """Columns measured together on `texts`: `columns` [columns][texts], in the order of `keys`."""

    keys: Sequence[_Key]
    columns: Sequence[Doubles]
    members: Bools
    calls: Calls
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
            threshold=float(self.calls.thresholds[k]),
            curve=roc_curve(self.columns[k], self.members),
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
        return paired_difference(self.bootstrap.auc, *map(self.keys.index, keys))[0]


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredParts:
    """The columns by the texts that they have: those with the same texts are measured together, under the same
    resamples. A column whose texts are all of one class has no part. All are measured by `members` and `groups`
    [texts], how thresholds are chosen, and the draws."""

    columns: Mapping[_Key, Doubles]
    members: Bools
    groups: Numbers
    division: ThresholdDivision
    seed: int
    wanted: int
    _found: dict[bytes, MeasuredPart] = field(default_factory=dict)

    @property
    def resamples(self) -> int:
        """The fewest resamples that were made of any part; 0 without one."""
        return min((part.bootstrap.resamples for part in self._found.values()), default=0)

    def part(self, *keys: _Key) -> MeasuredPart | None:
        """The part with the texts that have all these columns; None where it could not be measured."""
        return self._found.get(self._texts(*keys).tobytes())

    def _texts(self, *keys: _Key) -> Bools:
        wanted = {*keys, *((name, "score") for name, kind in keys if kind == PLACEBO)}
        texts: Bools = np.logical_and.reduce([np.isfinite(self.columns[key]) for key in wanted])
        return texts

    def measure(self, scores: Sequence[str]) -> None:
        """Measure every column on its texts, together with what it is compared with: the score of a placebo,
        the usual baseline and the blind baselines beside a score. TextsError where no score can be measured."""
        wanted: dict[bytes, tuple[Bools, set[_Key]]] = {}
        blind = [key for key in self.columns if key[1] == "blind"]
        first = [(usual_baseline(scores), "score")] if scores else []
        for key in self.columns:
            beside = {PLACEBO: [(key[0], "score")], "score": [*blind, *first]}.get(key[1], [])
            for other in (key, *beside):
                texts = self._texts(key, other)
                wanted.setdefault(texts.tobytes(), (texts, set()))[1].update((key, other))
        for name, (texts, keys) in wanted.items():
            if len(np.unique(self.members[texts])) == 2:
                self._found[name] = self._part([key for key in self.columns if key in keys], texts)
        if scores and not any(self.part((name, "score")) for name in scores):
            raise TextsError(say("measured.nothing"))

    def _part(self, keys: Sequence[_Key], texts: Bools) -> MeasuredPart:
        some = slice(None) if texts.all() else texts  # all of them are not copied
        columns = [self.columns[key][some] for key in keys]
        members, groups = self.members[some], self.groups[some]
        division = self.division.within(texts, self.members)
        chosen = division.chosen
        thresholds = [best_threshold(column[chosen], members[chosen]) for column in columns]
        calls = Calls(np.array(thresholds, dtype=np.float64), division.tested)
        how = {"seed": self.seed, "resamples": self.wanted}
        bootstrap = group_bootstrap(columns, members, groups=groups, calls=calls, **how)
        bag = (BLIND, "blind")
        if bag in keys:  # a cross-fitted classifier varies more than its fixed predictions do
            bootstrap = bootstrap.widened(keys.index(bag), WIDENING)
        return MeasuredPart(keys, columns, members, calls, bootstrap, Grouping.of(groups, members).fewest)


def evaluate(
    run: Run,
    texts: Corpus | Texts,
    *,
    seed: int = 0,
    resamples: int = 1000,
    validation: float = 0.2,
    unlearned: float | None = None,
) -> Run:
    """The run with its `evaluation`: metrics with 95% intervals, and the blind baseline beside them.

    `texts` are those that were scored. `validation` is the share of documents on which accuracy
    thresholds are chosen. `unlearned` is the margin of AUC within which a model that was to forget the members counts
    as the placebo, a model retrained without them. Raises TextsError where labels are missing or all of one class.
    """
    corpus = corpus_of(texts)
    check_labels(corpus)
    rows, how = ScoredRows.of_run(run, corpus.texts), {"seed": seed, "resamples": resamples}
    found = measure(rows, GivenStream(corpus), validation=validation, unlearned=unlearned, **how)
    return replace(run, evaluation=found)


_BLIND_TEXTS = 20_480
"""Texts that the blind classifier learns from and judges, drawn by document."""


def measure(
    rows: ScoredRows,
    stream: TextStream | None,
    *,
    seed: int = 0,
    resamples: int = 1000,
    validation: float = 0.2,
    unlearned: float | None = None,
) -> Evaluation:
    """How well each score told members from non-members, with the controls beside it.

    `stream` has the texts of the rows; without it there is no blind baseline. `validation` is the share of texts
    thresholds are chosen on, 0 for all. Intervals are 95%, from resampling documents. `comparisons` are by the same
    resamples (`statistics.paired`); draws without a text to measure accuracy on, which only few
    documents can make, are left out. Labels, numbers of documents, scores
    and controls of all rows are in memory, the texts of those alone that the blind classifier judges. TextsError when
    labels are missing or of one class, ExpressionError when a score or control is not a finite number and
    `Run.missing` does not say why.
    """
    require(0 <= validation < 1, f"the validation share lies between 0 and 1, found {validation}.")
    run, counted, groups = all_rows(rows)
    members = _checked(rows, run, counted["label"])
    linked, withheld = 0, ""
    if stream and unlearned is not None:  # before a classifier judges: no near copies on both of its sides
        groups, linked, withheld = compare_as_texts(stream.texts(), rows.ids(), groups, members, seed=seed)
    judged = _judged(rows, stream, members, groups, seed) if stream else None
    columns = {(name, "score"): run.matrix[:, k] for k, name in enumerate(run.scores)}  # resampled together
    note = say("measured.blind_left_out")
    if judged is not None:
        note = say("measured.no_blind", note=judged.note)
        if judged.scores is not None:
            columns[BLIND, "blind"], note = judged.scores, judged.note
        columns[LENGTH, "blind"] = counted["n_chars"].astype(np.float64)
    columns |= {(name, PLACEBO): values for name, values in placebos(run).items()}
    division = _divided(members, groups, share=validation, seed=seed)
    parts = MeasuredParts(columns, members, groups, division, seed, resamples)
    parts.measure(run.scores)
    grouping = Grouping.of(groups, members)
    measured = tuple(part.row(key) for key in columns if (part := parts.part(key)))
    best, blind, lead = best_of(measured), blind_of(measured), None
    if best is not None and blind is not None:
        both = (best.name, best.kind), (blind.name, blind.kind)
        lead = part.lead(*both) if (part := parts.part(*both)) else None
    named = placebo_name(run.settings)
    readings, said = (
        ((), ()) if unlearned is None else _forgotten(measured, unlearned, named, linked, withheld)
    )
    evaluation = Evaluation(
        rows=(*measured, *shuffled_rows(run, members, division)),
        members=int(np.count_nonzero(members)),
        nonmembers=int(np.count_nonzero(~members)),
        groups=len(grouping),
        resamples=parts.resamples,
        validation=division.held_out,
        comparisons=_comparisons(run.scores, parts),
        by_copies=_by_copies(run, members, groups, seed=seed, resamples=resamples),
        unlearned=readings,
    )
    circumstances = Circumstances(
        lead=lead,
        member_groups=grouping.holding(MEMBERS),
        nonmember_groups=grouping.holding(NONMEMBERS),
        asked=resamples,
        blind_note=note,
        placebo=named,
        shuffles=shuffles(run),
        partial=_partial(run),
        forgetting=unlearned is not None,
    )
    return replace(evaluation, findings=(*said, *sentences(evaluation, circumstances)))


def _judged(
    rows: ScoredRows, stream: TextStream, members: Bools, groups: Numbers, seed: int
) -> baseline.BlindScores:
    """What a bag of words makes of texts drawn by whole documents; NaN for the others."""
    drawn = drawn_documents(groups, members, most=_BLIND_TEXTS, seed=seed)
    texts = rows.texts_at(stream, drawn)
    found = baseline.bag_of_words(texts, members[drawn], groups[drawn], seed=seed)
    if found.scores is None or drawn.all():
        return found
    scores = np.full(len(members), np.nan)
    scores[drawn] = found.scores
    note = say("measured.sampled", drawn=len(texts), texts=len(members))
    return baseline.BlindScores(scores, f"{note} {found.note}".strip())


def _comparisons(scores: Sequence[str], parts: MeasuredParts) -> tuple[Comparison, ...]:
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


def _by_copies(
    run: Run, members: Bools, groups: Numbers, *, seed: int, resamples: int
) -> tuple[ByCopies, ...]:
    """The AUC of each score for the members with so many copies: 1, 2, 3 to 4, 5 to 8, … against all non-members."""
    if run.copies is None:
        return ()
    alike: dict[bytes, list[int]] = {}  # the places of columns that are known for the same texts
    for place, column in enumerate(run.matrix.T):
        alike.setdefault(np.isnan(column).tobytes(), []).append(place)
    steps = np.ceil(np.log2(np.maximum(1, run.copies)))
    found = []
    for step in np.unique(steps[members]).tolist():
        for places in alike.values():
            here = (~members | (steps == step)) & ~np.isnan(run.matrix[:, places[0]])
            if len(np.unique(members[here])) < 2:
                continue
            columns = [run.matrix[here, place] for place in places]
            made = group_bootstrap(
                columns, members[here], groups=groups[here], seed=seed, resamples=resamples
            )
            least = 1 if step == 0 else int(2 ** (step - 1)) + 1
            number = int(np.count_nonzero(members[here]))
            found += [
                ByCopies(run.scores[k], least, int(2**step), number, made.auc.estimate(i))
                for i, k in enumerate(places)
            ]
    return tuple(sorted(found, key=lambda one: (run.scores.index(one.score), one.least)))


def _partial(run: Run) -> tuple[str, ...]:
    """Which scores lack values for some texts, why, and what their figures rest on; one sentence a score."""
    said = []
    for name in run.scores:
        lost = {one.id: one.reason for one in run.missing if one.score == name}
        if lost:
            first, reason = next(iter(lost.items()))
            numbers = {"number": len(lost), "first": repr(first), "left": len(run.ids) - len(lost)}
            said.append(say("measured.partial", score=name, reason=reason, **numbers))
    return tuple(said)


def placebo_name(settings: Mapping[str, Any]) -> str:
    """What the run records as the placebo's name; of a folder its last part; "" where it records none."""
    models = settings.get("models")
    facts = models.get(PLACEBO) if isinstance(models, Mapping) else None
    name = facts.get("name") if isinstance(facts, Mapping) else None
    path = PurePath(str(name or ""))
    return path.name if path.is_absolute() else str(name or "")


def _checked(rows: ScoredRows, run: Run, labels: Ints) -> Bools:
    """Who is a member, by the `labels` of `all_rows`, once all that an evaluation rests on is seen to be there."""
    members: Bools = labels == 1
    check_label_counts(run.corpus, int(members.sum()), int((labels == 0).sum()), len(labels))
    known = np.column_stack([run.lacks(name) for name in run.scores]) if run.scores else False
    wrong = np.argwhere(~(np.isfinite(run.matrix) | known))
    if len(wrong):
        row, column = wrong[0]
        (name,) = rows.ids(np.arange(len(labels)) == row)
        found = {"score": run.scores[column], "value": run.matrix[row, column], "text": repr(name)}
        raise ExpressionError(say("measured.infinite", number=len(wrong), **found))
    check_controls(run)
    return members


def _divided(members: Bools, groups: Numbers, *, share: float, seed: int) -> ThresholdDivision:
    """The texts thresholds are chosen on and the others, by whole documents; all for both where few."""
    whole = np.ones(len(members), dtype=bool)
    chosen = grouped_split(groups, share, seed, labels=members) if share else ~whole
    apart = all(len(np.unique(members[part])) == 2 for part in (chosen, ~chosen))
    return ThresholdDivision(chosen, ~chosen, True) if apart else ThresholdDivision(whole, whole, False)


# Were the members forgotten? An evaluation read in both directions, beside a model that was retrained without them.

_JUDGED = 1000
"""Texts of each label that classifiers of texts see."""


def compare_as_texts(
    texts: Iterable[Text], ids: Sequence[str], groups: Numbers, members: Bools, *, seed: int
) -> tuple[Numbers, int, str]:
    """The document of each row, where texts without a group that say mostly the same as others of their label count
    with these as one; how many documents fewer that makes; and why members and non-members are not known to be alike
    as texts, "" where nothing that sees texts alone (words, form, length) tells them apart, of at most 1,000 texts of
    each label, drawn at random. `ids`, `groups` and `members` are of the rows, [rows]; `texts` are at least theirs.

    Rows of near copies move together in any model. Counted as many, they make a model that forgot the members, and one
    that never saw them, look as if it had not. Two models that never saw the members, trained alike but for chance,
    differ in how well they know one kind of text and another, by the same in all documents of a kind. No interval over
    documents holds that, so it would be read as memory of the members, or as its lack.
    """
    rng = np.random.default_rng(seed)
    sides = [np.flatnonzero(members == label) for label in (True, False)]
    drawn = {row for rows in sides for row in rng.permutation(rows)[:_JUDGED].tolist()}
    place, sketches, order = {name: i for i, name in enumerate(ids)}, Sketches(), list[int]()
    judged: dict[int, str] = {}
    for text in texts:
        if (row := place.get(text.id)) is not None:
            sketches.add(text.text, alone=not text.group)
            order.append(row)
            if row in drawn:
                judged[row] = text.text
    known, documents = members[order], int(groups.max()) + 1
    linked = link(sketches, groups[order], np.arange(documents), (known, ~known))
    groups, fewer = linked[groups], documents - len(np.unique(linked))
    found: tuple[list[Text], list[Text]] = ([], [])
    for row, said in judged.items():
        found[0 if members[row] else 1].append(Text(ids[row], said, group=str(groups[row])))
    mine, others = Corpus("members", tuple(found[0])), Corpus("non-members", tuple(found[1]))
    try:
        gaps = baseline.gap(mine, others, "words,form", seed=seed)
    except TextsError as error:
        return groups, fewer, say("unlearned.unknown", why=str(error).rstrip("."))
    length, widest = gaps[-1], max(gaps, key=lambda one: one.auc.low)
    if length.auc.high < 0.5:
        widest = length
    elif widest.auc.low <= 0.5:
        return groups, fewer, ""
    auc = "{} [{}, {}]".format(*shown(widest.auc, edges=(0.5,)))
    return groups, fewer, say("unlearned.apart", classifier=widest.classifier, auc=auc)


def _forgotten(
    rows: Sequence[Measured], margin: float, retrained: str, copies: int, withheld: str
) -> tuple[tuple[Unlearned, ...], Sequence[str]]:
    """The reading of each score of a model that was to forget the members, whose placebo is the model `retrained`
    without them, and what is said of it. `margin` is the difference of AUC within which the two count as the same;
    `copies` are the documents that count with near copies of them as one, `withheld` says why nothing can be read
    (`compare_as_texts`). ExpressionError for a margin out of range, TextsError without a placebo.
    """
    require(0 < margin <= 0.5, f"the margin of --unlearned lies above 0 and is at most 0.5, found {margin}.")
    found = tuple(Unlearned(row.name, margin, row.lead, withheld) for row in rows if row.lead is not None)
    if not found:
        raise TextsError(RETRAINED)
    first, *more = found  # by the score that was named first, and what the others say beside it
    value, low, high = shown(first.difference, edges=(0.0,))
    numbers = {
        "score": first.score,
        "retrained": retrained or "the placebo",
        "margin": margin,
        "why": withheld,
    }
    kind = "withheld" if withheld else first.reading
    said = [say(f"unlearned.{kind}", value=value, low=low, high=high, **numbers)]
    if more and not withheld:
        said.append(say("unlearned.beside", readings=listed([f"{one.score}: {one.reading}" for one in more])))
    if copies:
        said.append(say("unlearned.copies", copies=copies))
    return found, said
