"""What comes out: estimates, evaluations, runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Literal

import numpy as np

from pretrace.types.traces import Bools, Doubles, Ints


class Tabular:
    """A result with a row a text or document."""

    __slots__ = ()

    def to_arrow(self) -> Any:
        """The rows as a `pyarrow.Table`, with the columns of the table on disk; of a large run those of its sample."""
        return import_module("pretrace.results.export").to_arrow(self)

    def to_pandas(self) -> Any:
        """The same as a `pandas.DataFrame`; MissingPackageError without pandas."""
        return import_module("pretrace.results.export").to_pandas(self)


class ShownAsHtml:
    """A result that a notebook shows as HTML."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """A small table of a run; the first page of the report of anything else."""
        return str(import_module("pretrace.report.notebook").html(self))


Measure = Literal["auc", "tpr"]
Survival = Literal["yes", "no", "not shown", "not above chance"]
LEVEL = 0.05
"""At or below which the difference between two scores counts as shown."""
_NAMED = 6
"""Scores that the short form of a run names."""
EXTREMES = 10
"""Texts from each end of each score that a large run keeps besides its sample."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95% interval; without an interval `low` and `high` equal `value`. Never NaN."""

    value: float
    low: float
    high: float

    @property
    def excludes(self) -> float:
        """Distance of the interval from 0.5: positive where it excludes chance for an AUC."""
        return max(self.low - 0.5, 0.5 - self.high)


@dataclass(frozen=True, slots=True)
class Curve:
    """A ROC curve, thinned to at most a few hundred points: false and true positive rates, both rising."""

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """One row of an evaluation: a score, or a control that stands beside the scores.

    `kind` is "score", "blind" (a classifier that never saw the model), "placebo" (the score of that name
    on a model that never saw the members) or "shuffled" (the score of that name fitted on reference texts
    whose labels were shuffled: its AUC is the median of the repeats, from the lowest to the highest).
    `tpr_low` is the true positive rate at 0.1% false positives, None below 10,000 non-members. `lead`, of a
    placebo's row, is how far the score's AUC on the target exceeds this one, from the same resamples, and
    `survives` whether the score keeps that lead; both are None on other rows, and `survives` also in an
    evaluation from before it was recorded.
    """

    name: str
    kind: str
    auc: Estimate
    tpr: Estimate
    accuracy: Estimate
    threshold: float
    curve: Curve
    tpr_low: Estimate | None = None
    lead: Estimate | None = None
    survives: Survival | None = None
    texts: int | None = None
    """Texts that the figures rest on, those that have the score; None in an evaluation from before it was
    recorded."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How much the figure of `score` exceeds that of `baseline`, in its own unit, with a 95% interval.

    `p` is two-sided, for both being equally good; `adjusted` is the same after Holm's correction for all the
    comparisons that were made together. `least` is the smallest value that `adjusted` could have taken with so
    many comparisons, resamples and documents: above 0.05 nothing could have been shown.
    """

    score: str
    baseline: str
    measure: Measure
    difference: Estimate
    p: float
    adjusted: float
    least: float

    @property
    def shown(self) -> bool:
        """Whether the two differ at 5% after the correction."""
        return self.adjusted <= LEVEL

    @property
    def possible(self) -> bool:
        """Whether any difference, however large, could have been shown at 5% after the correction."""
        return self.least <= LEVEL


@dataclass(frozen=True, slots=True)
class ByCopies:
    """The AUC of a score for the members that stand `least` to `most` times in the training data, against all
    non-members; `members` is how many they are."""

    score: str
    least: int
    most: int
    members: int
    auc: Estimate


_Forgotten = Literal["still known", "over-unlearned", "as retrained", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Unlearned:
    """How far the AUC of a score on a model that was to forget the members lies from that on a model retrained without
    them: `difference`, with its 95% interval over documents, and the `margin` within which both count as the same."""

    score: str
    margin: float
    difference: Estimate
    withheld: str = ""
    """Why nothing is read from the difference: members and non-members are not known to be alike as texts."""

    @property
    def reading(self) -> _Forgotten:
        """Two-sided. "as retrained" where the whole interval lies within the margin (two one-sided tests at 2.5% each);
        else "still known" or "over-unlearned" where it lies above or below 0; else, or if `withheld`, "inconclusive".
        """
        if self.withheld:
            return "inconclusive"
        low, high = self.difference.low, self.difference.high
        if -self.margin < low and high < self.margin:
            return "as retrained"
        if low > 0:
            return "still known"
        return "over-unlearned" if high < 0 else "inconclusive"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How well each score told members from non-members, beside the controls."""

    rows: tuple[Measured, ...]
    members: int
    nonmembers: int
    groups: int
    resamples: int
    validation: int
    """Texts the accuracy thresholds were chosen on; accuracy is measured on the others."""
    findings: tuple[str, ...] = ()
    """Plain sentences a report prints first."""
    comparisons: tuple[Comparison, ...] = ()
    """AUC of each score against the baseline, from the resamples of the intervals; empty for fewer than two
    scores, and in an evaluation from before comparisons were recorded."""
    by_copies: tuple[ByCopies, ...] = ()
    """AUC by the number of copies of the members, where a scan counted them (`evaluate --labels`)."""
    unlearned: tuple[Unlearned, ...] = ()
    """Whether the members were forgotten, by each score, where `evaluate --unlearned` asked."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A text without a score, and why."""

    id: str
    reason: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Missing:
    """One score that cannot be had for a text that has others, and why: a cell without a value."""

    id: str
    score: str
    reason: str


@dataclass(frozen=True, slots=True)
class Heat:
    """One text as coloured tokens: `pieces` concatenate to the part that was read, `logp[i]` belongs to
    `pieces[i]` and is None where the model predicted nothing (the first token without a start token)."""

    id: str
    pieces: tuple[str, ...]
    logp: tuple[float | None, ...]
    note: str = ""

    @property
    def predicted(self) -> tuple[tuple[str, float], ...]:
        """The pieces that the model predicted, each with its log-probability in nats."""
        pairs = zip(self.pieces, self.logp, strict=True)
        return tuple((piece, logp) for piece, logp in pairs if logp is not None and not math.isnan(logp))

    @property
    def mean_logp(self) -> float | None:
        """The mean log-probability of the predicted pieces in nats, None where nothing was predicted."""
        known = self.predicted
        # Summed as Python floats: -inf stays -inf, and numpy would only warn about it.
        return sum(logp for _, logp in known) / len(known) if known else None


@dataclass(frozen=True, slots=True, eq=False)
class Control:
    """What a detector says without the thing it claims to see: `kind` "placebo" is the score on a model
    that never saw the members, "shuffled" the score fitted on reference texts with shuffled labels.
    `values` is float64 [texts, repeats], row i is the run's text i."""

    score: str
    kind: str
    values: Doubles


@dataclass(frozen=True, slots=True)
class TablePart:
    """One file of the whole table of a large run: its name in the run's folder, its rows, its SHA-256."""

    name: str
    rows: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Whole:
    """What a large run counted over all of its texts, of which its arrays hold a sample.

    `texts` have a row in the table, whose files are `parts`; `skipped` have none, `unreadable` records of the source
    are no texts. `missing` counts cells without a value, `lacking` the texts that have one. `reasons` are the most
    frequent ones of skipped texts. The first `sampled` rows of the run are drawn at random, each text alike; those
    behind them, up to `EXTREMES` from each end of each score, were not drawn and are there for their scores.
    """

    texts: int
    documents: int
    members: int
    nonmembers: int
    tokens: int
    skipped: int
    missing: int
    lacking: int
    cut_texts: int
    cut_tokens: int
    unreadable: int
    sampled: int
    reasons: Mapping[str, int] = field(default_factory=dict)
    parts: tuple[TablePart, ...] = ()

    @property
    def unlabelled(self) -> int:
        """Texts of which nobody knows whether they are members."""
        return self.texts - self.members - self.nonmembers


@dataclass(frozen=True, slots=True)
class Run(ShownAsHtml, Tabular):
    """What `detect` returns and `report` reads: row i of every array is text i.

    `matrix` is float64 [texts, scores]. Texts that could not be scored are in `skipped` and have no row; where
    a text has no value of one score alone, the cell is NaN and `missing` says why. `settings` is what run.json
    records. A run of more texts than memory holds has `whole`: its rows are then a sample of them, and `skipped` and
    `missing` may not be all.
    """

    corpus: str
    ids: tuple[str, ...]
    groups: tuple[str, ...]
    members: tuple[bool | None, ...]
    tokens: Ints
    cut: Ints
    scores: tuple[str, ...]
    matrix: Doubles
    skipped: tuple[Skipped, ...] = ()
    heat: tuple[Heat, ...] = ()
    evaluation: Evaluation | None = None
    controls: tuple[Control, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[Missing, ...] = ()
    whole: Whole | None = None
    copies: Ints | None = None
    """Documents of a searched corpus that hold each text [texts], where a scan gave the labels."""

    @property
    def complete(self) -> Run:
        """The run with the texts alone that have every score and control; the others are in `skipped`."""
        whole = np.asarray(np.isfinite(self.matrix).all(axis=1))
        for control in self.controls:
            whole &= np.isfinite(control.values).all(axis=1)
        reasons: dict[str, str] = {}
        for one in self.missing:
            reasons.setdefault(one.id, one.reason)
        rows = zip(self.ids, self.tokens.tolist(), strict=True)
        lost = (Skipped(name, reasons[name], tokens) for name, tokens in rows if name in reasons)
        return replace(self.rows(whole), skipped=(*self.skipped, *lost), missing=())

    def lacks(self, score: str) -> Bools:
        """Which rows have no value of a score, on the target or on the placebo, for a reason that is known."""
        names = {one.id for one in self.missing if one.score == score}
        return np.array([name in names for name in self.ids], dtype=np.bool_)

    def rows(self, chosen: Bools) -> Run:
        """The run with the chosen rows alone, without its evaluation."""
        keep = np.flatnonzero(chosen).tolist()
        names = {self.ids[i] for i in keep}
        return replace(
            self,
            ids=tuple(self.ids[i] for i in keep),
            groups=tuple(self.groups[i] for i in keep),
            members=tuple(self.members[i] for i in keep),
            tokens=self.tokens[keep],
            cut=self.cut[keep],
            matrix=self.matrix[keep],
            controls=tuple(replace(control, values=control.values[keep]) for control in self.controls),
            missing=tuple(one for one in self.missing if one.id in names),
            evaluation=None,
            copies=None if self.copies is None else self.copies[keep],
        )

    def column(self, score: str) -> Doubles:
        """One score of every text, in row order, shape [texts]; NaN where a text has none."""
        return np.asarray(self.matrix[:, self.scores.index(score)])

    def quartiles(self, score: str) -> tuple[float, ...]:
        """Lowest value, lower quartile, median, upper quartile and highest value of one score; ValueError
        for a run without texts."""
        if not self.ids:
            raise ValueError("a run without texts has no quartiles")
        return tuple(float(value) for value in np.nanpercentile(self.column(score), [0, 25, 50, 75, 100]))

    def median(self, score: str, member: bool | None) -> float | None:
        """The median of one score over the texts with this label (None: those without one); None where no such
        text has it."""
        rows = [index for index, label in enumerate(self.members) if label is member]
        known = self.column(score)[rows]
        known = known[~np.isnan(known)]
        return float(np.median(known)) if len(known) else None

    @property
    def labelled(self) -> bool:
        """Whether every row is a known member or a known non-member."""
        return bool(self.members) and all(member is not None for member in self.members)

    def __repr__(self) -> str:
        """Corpus, model, texts and scores on one or two lines, with the AUC of each where it was measured."""
        models = self.settings.get("models")
        target = models.get("target") if isinstance(models, Mapping) else None
        name = target.get("name") if isinstance(target, Mapping) else None
        model = f"model {name!r}, " if name else ""
        texts = self.whole.texts if self.whole else len(self.ids)
        head = f"Run({self.corpus!r}, {model}{texts:,} texts, {len(self.scores):,} scores:"
        rows = self.evaluation.rows if self.evaluation else ()
        auc = {row.name: f" {row.auc.value:.3f}" for row in rows if row.kind == "score"}
        named = [f"{score}{auc.get(score, '')}" for score in self.scores[:_NAMED]]
        more = len(self.scores) - _NAMED
        listed = ", ".join([*named, *([f"{more:,} more"] if more > 0 else [])])
        return f"{head}\n    {'AUC ' if auc else ''}{listed or 'none'})"


@dataclass(frozen=True, slots=True)
class RunScore:
    """What one run says of one score.

    `auc` and `tpr` (at 5% false positives) are None for a run without an evaluation; `median` is that of the
    texts, None where none has the score. `texts` have the score. `placebo` and `shuffled` are the AUCs of its controls,
    `lead` and `survives` as in `Measured`; None where there is no such control.
    """

    score: str
    texts: int
    median: float | None
    auc: Estimate | None = None
    tpr: Estimate | None = None
    placebo: Estimate | None = None
    lead: Estimate | None = None
    survives: Survival | None = None
    shuffled: Estimate | None = None


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One of the runs, numbered from 1: where it lies, its place in the table (`model` and `corpus`, told apart where
    two share a name), its texts, its strongest blind control (None without one), and its scores.

    Of a large run, medians are those of `sampled` texts; 0 for a run that holds all of its texts.
    """

    number: int
    folder: str
    model: str
    corpus: str
    texts: int
    members: int
    nonmembers: int
    sampled: int
    blind_name: str
    blind: Estimate | None
    scores: tuple[RunScore, ...]

    def score(self, name: str) -> RunScore | None:
        """What the run says of the score of this name; None where it does not have it."""
        return next((one for one in self.scores if one.score == name), None)


@dataclass(frozen=True, slots=True)
class SettingDifference:
    """A setting in which runs differ: each value with the numbers of its runs, and what follows from that.

    `compares` says whether numbers of these runs can still be held against each other.
    """

    setting: str
    values: tuple[tuple[str, tuple[int, ...]], ...]
    compares: bool
    words: str


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Runs side by side, in the order given. `scores` are those that are shown; `differences` begin with those that
    forbid a comparison."""

    runs: tuple[ComparedRun, ...]
    scores: tuple[str, ...]
    differences: tuple[SettingDifference, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """The rows of the table."""
        return tuple(dict.fromkeys(run.model for run in self.runs))

    @property
    def corpora(self) -> tuple[str, ...]:
        """The columns of the table."""
        return tuple(dict.fromkeys(run.corpus for run in self.runs))

    def cell(self, model: str, corpus: str, score: str) -> tuple[tuple[ComparedRun, RunScore], ...]:
        """What the runs of this model and corpus say of a score: often one, none where there is no such run."""
        here = [run for run in self.runs if (run.model, run.corpus) == (model, corpus)]
        return tuple((run, found) for run in here if (found := run.score(score)) is not None)
