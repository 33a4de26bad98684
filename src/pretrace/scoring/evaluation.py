"""From a run to what it is worth: every score and the controls beside it, measured on the same texts, and said in
sentences that a lawyer and a researcher can both rely on.

Scores, blind baselines and placebos share the resamples, so that their differences are paired; what was
fitted on shuffled labels has no interval of its own, but a range over the repeats. The comparisons of the
scores with one another come from these resamples too, and so cost no second bootstrap.

AUC and true positive rates are measured on all texts. Accuracy needs a threshold: it is chosen on a
validation split of whole documents, and the accuracy is measured on the others. Where documents are too
few for both parts to hold members and non-members, thresholds are chosen and accuracies measured on all
texts; `validation` is then 0 and a finding says so.

Every sentence of the findings says only what the figures carry (`words.toml`). "At chance" means that a 95% interval
holds 0.5; "survives the placebo" that the interval of a paired difference lies above 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from pretrace.results.wording import plural, say
from pretrace.scoring.detect import check_label_counts, check_labels
from pretrace.scoring.parts import ScoredRows
from pretrace.statistics.documents import (
    FEW_DOCUMENTS,
    MEMBERS,
    NONMEMBERS,
    Grouping,
    Numbers,
    drawn_documents,
    grouped_split,
)
from pretrace.statistics.roc import (
    ENOUGH_SHUFFLES,
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
        first = [(_usual_baseline(scores), "score")] if scores else []
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


def _usual_baseline(scores: Sequence[str]) -> str:
    """The score that others are compared with unless one is named: `loss`, or the first where it is missing."""
    return "loss" if "loss" in scores else scores[0]


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
    found = _sentences(
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
    first = _usual_baseline(scores)
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


BLIND = "bag of words"
LENGTH = "text length"
"""The baselines by their names in the table: a classifier of words, and the number of characters."""
MOST = 5
"""Scores that a sentence names; the table has all."""
_FEW_FOR_RATES = 60
"""Documents of non-members below which the interval of a true positive rate at 5% false positives is too narrow."""
_LOPSIDED = 0.6
"""Share of one class from which on an accuracy needs to be read against it."""


def _best_of(rows: Sequence[Measured]) -> Measured | None:
    """The score with the highest AUC, the first of them in a tie; None without scores."""
    return max((row for row in rows if row.kind == "score"), key=lambda row: row.auc.value, default=None)


def _blind_of(rows: Sequence[Measured], name: str = BLIND) -> Measured | None:
    """The row of a baseline that sees no model, None where there is none."""
    return next((row for row in rows if row.kind == "blind" and row.name == name), None)


def _above(row: Measured) -> bool:
    """Whether the AUC is shown to be better than chance."""
    return row.auc.low > 0.5


def _rounded(number: float, edges: Sequence[float] = (0.5, 1.0)) -> str:
    """Two decimals, and up to two more where rounding would put a number on an edge it only comes near."""
    places = 2
    while places < 4 and any(round(number, places) == edge != number for edge in edges):
        places += 1
    return f"{round(number, places) + 0.0:.{places}f}".replace("-", "−")  # + 0.0: no minus zero


def _short(figure: Estimate, *edges: float) -> str:
    """Write an AUC, or a difference whose edge is 0, with its interval."""
    value, low, high = (_rounded(one, edges or (0.5, 1.0)) for one in (figure.value, figure.low, figure.high))
    return f"{value}, {low} to {high}"


def _listed(names: Sequence[str]) -> str:
    """Names as an enumeration, the first of them where there are many; at least one."""
    if more := len(names[MOST:]):
        names = [*names[:MOST], plural(more, "other")]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _sentences(
    evaluation: Evaluation,
    groups: tuple[int, int],
    *,
    lead: Callable[[Measured, Measured], Estimate | None],
    notes: Sequence[str] = (),
    placebo: str = "",
    shuffles: Mapping[str, int] | None = None,
) -> Iterator[str]:
    """Yield the findings of an evaluation, the most important first; "" for what is not said.

    `groups` are the numbers of documents with members and with non-members, `lead` gives the AUC of a score less
    that of a blind baseline, `notes` are sentences that are known already, `placebo` names the placebo model, and
    `shuffles` says how often each fitted score was fitted on shuffled labels.
    """
    rows = evaluation.rows
    scores = [row for row in rows if row.kind == "score"]
    best, some = _best_of(rows), any(map(_above, scores))
    if best:
        yield "" if some else say("evaluation.all_chance")
        value, low, high = map(_rounded, (best.auc.value, best.auc.low, best.auc.high))
        yield say("evaluation.best", name=best.name, value=value, low=low, high=high)
    yield from _survival(rows, placebo)
    if best and _above(best):
        tpr = f"{best.tpr.value:.0%} ({best.tpr.low:.0%} to {best.tpr.high:.0%})"
        yield say("evaluation.reach", name=best.name, tpr=tpr)
        yield say("evaluation.no_width") if best.auc.low == best.auc.high else ""
    if blind := _blind_of(rows):
        which = "below" if blind.auc.high < 0.5 else "apart" if _above(blind) else "chance"
        yield say(f"evaluation.blind.{which}", auc=_short(blind.auc))
        if best and _above(best) and which != "below" and (ahead := lead(best, blind)):
            yield say("evaluation.blind.lead", lead=_short(ahead, 0.0))
    length = _blind_of(rows, LENGTH)
    if length and not length.auc.low <= 0.5 <= length.auc.high:  # many scores depend on it
        word = "longer" if length.auc.value > 0.5 else "shorter"
        yield say("evaluation.length", word=word, auc=_short(length.auc))
    yield from _labels(rows, shuffles or {})
    wrong = [f"{row.name} (AUC {_short(row.auc)})" for row in scores if row.auc.high < 0.5]
    chance = [row.name for row in scores if row.auc.low <= 0.5 <= row.auc.high]
    if wrong:
        yield say("evaluation.wrong", names=_listed(wrong))
    if chance and some:
        yield say("evaluation.chance", names=_listed(chance))
    if len(scores) > 1 and some:
        yield say("evaluation.looks", number=len(scores))
    yield from notes
    yield from _documents(evaluation, *groups)


def _survival(rows: Sequence[Measured], placebo: str) -> Iterator[str]:
    """Which scores above chance keep a lead over the placebo, and which do not, the largest lead first."""
    blind = [row for row in rows if row.kind == "blind"]  # do words or the length tell the two sets apart?
    differ = any(_above(row) or (row.name == LENGTH and row.auc.high < 0.5) for row in blind)
    meaning = say(f"evaluation.placebo.{'differ' if differ else 'alike'}")
    leads = [(row, other, other.lead) for row, other in _paired(rows, PLACEBO) if other.lead]
    named: dict[str, list[str]] = {"yes": [], "no": [], "not shown": [], "not above chance": []}
    for row, other, lead in sorted(leads, key=lambda one: -one[2].value):
        here, there = _rounded(row.auc.value), _rounded(other.auc.value)
        auc = {"here": here, "there": there, "lead": _short(lead, 0.0)}
        named[survives(row, other)].append(say("evaluation.placebo.named", name=row.name, **auc))
    del named["not above chance"]
    for state, names in named.items():
        if names:
            numbers = {"placebo": placebo or "without a name", "names": _listed(names), "meaning": meaning}
            yield say(f"evaluation.placebo.{state}", **numbers)


def _paired(rows: Sequence[Measured], kind: str) -> list[tuple[Measured, Measured]]:
    """The row of each score that has a control of this kind, and the control's."""
    controls = {row.name: row for row in rows if row.kind == kind}
    return [(row, controls[row.name]) for row in rows if row.kind == "score" and row.name in controls]


def _labels(rows: Sequence[Measured], shuffles: Mapping[str, int]) -> Iterator[str]:
    """Whether the scores that were fitted on labelled texts needed those labels; `shuffles` is how often
    each was fitted on shuffled ones."""
    named: dict[str, list[str]] = {"without": [], "with": []}
    for row, other in _paired(rows, SHUFFLED):
        auc, low, high = map(_rounded, (row.auc.value, other.auc.low, other.auc.high))
        repeats = {"low": low, "high": high, "repeats": shuffles.get(row.name, 0)}
        if row.auc.value <= other.auc.high or _above(row):
            which = "without" if row.auc.value <= other.auc.high else "with"
            named[which].append(say("evaluation.labels.range", name=row.name, auc=auc, **repeats))
    for which, names in named.items():
        if names:
            yield say(f"evaluation.labels.{which}", names=_listed(names), enough=ENOUGH_SHUFFLES)


def _documents(evaluation: Evaluation, members: int, nonmembers: int) -> Iterator[str]:
    """Documents or non-members that are too few, and what an accuracy has to be read against."""
    if min(members, nonmembers) < FEW_DOCUMENTS:
        yield say("evaluation.documents.few", members=members, others=nonmembers, fewest=FEW_DOCUMENTS)
    if nonmembers < _FEW_FOR_RATES:
        yield say("evaluation.documents.rates", others=nonmembers, enough=_FEW_FOR_RATES)
    if not evaluation.validation:
        yield say("evaluation.documents.validation")
    larger, side = max((evaluation.members, "members"), (evaluation.nonmembers, "non-members"))
    share = larger / (evaluation.members + evaluation.nonmembers)
    if share >= _LOPSIDED:
        yield say("evaluation.documents.lopsided", larger=share, side=side)
