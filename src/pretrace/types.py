"""The nouns of pretrace: texts → traces → scores → statistics → report. Imports errors and settings alone.

Sampling alone declares options, with `pretrace.settings`.

Everything here is immutable. Arrays are numpy; one entry of a trace is one token the model predicted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Flag, auto
from itertools import compress
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from pretrace.settings import Option

# What models said of a text, token by token, and what a score wants of that.


@dataclass(frozen=True, slots=True)
class Text:
    """One text to be judged.

    `member` is True for a known member, False for a known non-member, None where nobody knows.
    `group` names the document (or author) the text was cut from; statistics resample groups, since
    pieces of one document are not independent. Without a group a text is its own. `meta` are further columns, by
    name (`Columns.more`), a list in one as JSON.
    """

    id: str
    text: str
    member: bool | None = None
    group: str = ""
    meta: Mapping[str, str] = field(default_factory=dict)

    @property
    def document(self) -> str:
        """The group, or the text's own id where it has none."""
        return self.group or self.id

    @property
    def copies(self) -> int | None:
        """Documents of a searched corpus that hold the text, where a scan counted them: the column `copies`."""
        return int(self.meta["copies"]) if "copies" in self.meta else None


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts under one name. `source` says where they came from; `notes` what was done on the way
    (bytes replaced, lines skipped), in sentences a report can print; `card` is what is known of a published benchmark
    beside its texts (`corpora/benchmarks/cards.toml`)."""

    name: str
    texts: tuple[Text, ...]
    source: str = ""
    notes: tuple[str, ...] = ()
    card: Mapping[str, Any] | None = None

    def __len__(self) -> int:
        return len(self.texts)


Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Quantity(Flag):
    """What one pass over a text can yield: LOGP and MOMENTS token by token; the others are states, which have
    parameters of their own (`State`)."""

    NONE = 0
    LOGP = auto()
    """Log-probability of the token that stands there."""
    MOMENTS = auto()
    """Mean and standard deviation of log p(v) for v drawn from the model's own distribution."""
    NEURONS = auto()
    """Which feed-forward neurons the text activates (`Firing`)."""
    HIDDEN = auto()
    """Hidden states at the last token (`Hidden`)."""
    DRAWN = auto()
    """How likely each token is to be drawn among the likeliest (`Drawn`)."""
    PEAK = auto()
    """Log-probability of the likeliest token (`Peak`)."""
    CONTINUED = auto()
    """What the model writes in the place of the text's end (`Continued`)."""


Pool = Literal["any", "mean", "count"]


@dataclass(frozen=True, slots=True)
class Firing:
    """Which feed-forward neurons a text activates (NA-PDD eq. 2); every position the model read counts.

    `pool` "any": the activation exceeds `threshold` at some position; "mean": its mean over the positions
    does. Both are bits, packed along the neurons (`numpy.packbits`): uint8 [layers, ceil(neurons / 8)].
    "count" is the number of positions at which it does: uint32 [layers, neurons]. A layer with fewer
    neurons than the widest is padded with zeros. `gated` takes the product with the gate's partner, the
    input of the down projection, where a gated layer has one, instead of the activation function's output.
    """

    quantity: ClassVar = Quantity.NEURONS
    pool: Pool = "any"
    threshold: float = 1.0
    gated: bool = False


@dataclass(frozen=True, slots=True)
class Hidden:
    """Hidden states at the last token the model read, as transformers numbers them: 0 is the embedding, the
    last is what the output layer reads. All of them, float32 [layers + 1, width], or one, float32 [width]."""

    quantity: ClassVar = Quantity.HIDDEN
    layer: int | None = None


@dataclass(frozen=True, slots=True)
class Drawn:
    """How likely each token is to be drawn where the next token is drawn at `temperature` among the `k` likeliest:
    log-probabilities, float32 [predicted tokens], −inf where the token is not among the k (a tie with the last of them
    is). At any k from the size of the vocabulary on, and temperature 1, it is the log-probability itself."""

    quantity: ClassVar = Quantity.DRAWN
    k: int = 40
    temperature: float = 1.0


@dataclass(frozen=True, slots=True)
class Peak:
    """The largest log-probability over the vocabulary at each position, that of the token a model would write: float32
    [predicted tokens]. Where the text's own token is the likeliest it equals `Trace.logp` to the last bit."""

    quantity: ClassVar = Quantity.PEAK


@dataclass(frozen=True, slots=True)
class Continued:
    """What the model writes in the place of a text's end: token ids, int32 [samples, n − read(n)] for n predicted
    tokens, of which the first `read(n)`, a `share` of them and one at least, stay as they are and are read.

    Each token is drawn at `temperature` among all that are not special, by numbers that depend on what stands before
    the end, on `seed` and on the sample. With one predicted token there is no end.
    """

    quantity: ClassVar = Quantity.CONTINUED
    samples: int = 8
    share: float = 0.5
    temperature: float = 1.0
    seed: int = 0

    def read(self, predicted: int) -> int:
        """How many of so many predicted tokens stay as they are.

        >>> Continued(share=0.5).read(5), Continued(share=0.1).read(3)
        (2, 1)
        """
        return min(predicted, max(1, int(self.share * predicted)))


State = Firing | Hidden | Drawn | Peak | Continued
States = frozenset[State]


class View(NamedTuple):
    """A text as seen by one model after one rewrite: ("target", "plain"), ("target", "lower"), … A tuple, whose hash is
    taken several times for each text."""

    model: str = "target"
    rewrite: str = "plain"


@dataclass(frozen=True, slots=True)
class Trace:
    """What a model said of one text: arrays of equal length, one entry a predicted token; or of several texts that have
    equally many, [texts, tokens].

    `logp`, `mean` and `std` are in nats. With a start token in front the entries are t_0 … t_{n-1},
    without one t_1 … t_{n-1}. `cut` counts the tokens dropped from the end by the length limit. `states`
    are what was read inside the model or of its distribution, one array a state that was asked for.
    """

    tokens: Ints
    logp: Floats
    mean: Floats | None = None
    std: Floats | None = None
    cut: int = 0
    states: Mapping[State, npt.NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def holds(self) -> Quantity:
        """The token-by-token quantities this trace carries; `states` has its own keys."""
        return Quantity.LOGP if self.mean is None else _BOTH


_BOTH = Quantity.LOGP | Quantity.MOMENTS
_PLAIN = View()


@dataclass(frozen=True, slots=True)
class Evidence:
    """One text and all that the models said of it: what a score is computed from."""

    text: Text
    views: Mapping[View, tuple[Trace, ...]]
    model: str = "target"

    def trace(self, rewrite: str = "plain") -> Trace:
        """The trace of one rewrite under the model in view (the first, where a rewrite makes several)."""
        return self.views[View(self.model, rewrite)][0]

    @property
    def plain(self) -> Trace:
        """The trace of the text as it stands."""
        return self.views[_PLAIN][0] if self.model == "target" else self.trace()

    @property
    def empty(self) -> frozenset[View]:
        """The views in which nothing was predicted: a single token, or a text that a rewrite gives no form of."""
        return frozenset([view for view, traces in self.views.items() if not any(map(len, traces))])

    def through(self, model: str) -> Evidence:
        """The same evidence seen through another model: FSD is `of(e) - of(e.through("tuned"))`."""
        return replace(self, model=model)


@dataclass(init=False, slots=True)
class Needs:
    """The quantities, and the states inside the model, that a score wants of each view; combined with `|`.

    Whoever wants states is given log-probabilities too: the pass yields them anyway. A view of which nothing is wanted
    (`Needs(Quantity.NONE, View())`) has the text and its tokens, and no model reads it. `counts` says whether
    the score has to be fitted on token counts, `paired` whether it holds the tokens of one model against those of
    another one by one, for which both must cut texts into the same tokens.

    >>> both = Needs(Quantity.LOGP) | Needs(Quantity.LOGP, View(rewrite="lower"))
    >>> [view.rewrite for view in both.views]
    ['lower', 'plain']
    """

    views: Mapping[View, Quantity]
    states: Mapping[View, States]
    counts: bool
    paired: bool

    def __init__(
        self,
        quantity: Quantity = Quantity.NONE,
        *views: View,
        states: Iterable[State] = (),
        counts: bool = False,
        paired: bool = False,
    ) -> None:
        self.counts, self.paired = counts, paired
        wanted = frozenset(states)
        for state in wanted:
            quantity |= Quantity.LOGP | state.quantity
        where = views or ((View(),) if quantity else ())
        self.views = dict.fromkeys(sorted(where), quantity)
        self.states = dict.fromkeys(self.views, wanted) if wanted else {}

    @classmethod
    def _of(cls, views: Mapping[View, Quantity], states: Mapping[View, States], beside: Needs) -> Needs:
        """Needs of these views and states, with the counts and the pairing of `beside`."""
        needs = cls(counts=beside.counts, paired=beside.paired)
        needs.views = dict(sorted(views.items()))
        needs.states = {view: states[view] for view in needs.views if states.get(view)}
        return needs

    def __or__(self, other: Needs) -> Needs:
        views, states = dict(self.views), dict(self.states)
        for view, quantity in other.views.items():
            views[view] = views.get(view, Quantity.NONE) | quantity
        for view, wanted in other.states.items():
            states[view] = states.get(view, frozenset()) | wanted
        both = Needs(counts=self.counts or other.counts, paired=self.paired or other.paired)
        return Needs._of(views, states, both)

    def __bool__(self) -> bool:
        return bool(self.views)

    def through(self, model: str) -> Needs:
        """The same needs with another model in the target's place."""

        def moved(view: View) -> View:
            return View(model, view.rewrite) if view.model == "target" else view

        return Needs._of(
            {moved(view): quantity for view, quantity in self.views.items()},
            {moved(view): states for view, states in self.states.items()},
            self,
        )


# What comes out: estimates, evaluations, runs.


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


@dataclass(frozen=True, slots=True)
class Curve:
    """A ROC curve, thinned to at most a few hundred points: false and true positive rates, both rising."""

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.fpr) != len(self.tpr):
            raise ValueError(f"a curve has {len(self.fpr)} and {len(self.tpr)} rates")


@dataclass(frozen=True, slots=True)
class Measured:
    """One row of an evaluation: a score, or a control that stands beside the scores.

    `kind` is "score", "blind" (a classifier that never saw the model), "placebo" (the score of that name
    on a model that never saw the members) or "shuffled" (the score of that name fitted on reference texts
    whose labels were shuffled: its AUC is the median of the repeats, from the lowest to the highest).
    `tpr_low` is the true positive rate at 0.1% false positives, None below 10,000 non-members. `lead`, of a
    placebo's row, is how far the score's AUC on the target exceeds this one, from the same resamples, and
    `survives` whether the score keeps that lead; both are None on other rows. `texts` have the score.
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
    """AUC of each score against the baseline, from the resamples of the intervals; empty for fewer than two scores."""
    by_copies: tuple[ByCopies, ...] = ()
    """AUC by the number of copies of the members, where a scan counted them (`evaluate --labels`)."""


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

    def __post_init__(self) -> None:
        if len(self.pieces) != len(self.logp):
            raise ValueError(
                f"{self.id!r} has {len(self.pieces)} pieces and {len(self.logp)} log-probabilities"
            )

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
class Whole:
    """What a large run counted over all of its texts, of which its arrays hold a sample.

    `texts` have a row in the table, whose files in the folder are `parts`, each with its `name`, `rows` and `sha256`;
    `skipped` have none, `unreadable` records of the source are no texts. `missing` counts cells without a value,
    `lacking` the texts that have one. `reasons` are the most frequent ones of skipped texts. The first `sampled` rows
    of the run are drawn at random, each text alike; those behind them, up to `EXTREMES` from each end of each score,
    were not drawn and are there for their scores.
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
    parts: tuple[Mapping[str, Any], ...] = ()

    @property
    def unlabelled(self) -> int:
        """Texts of which nobody knows whether they are members."""
        return self.texts - self.members - self.nonmembers


@dataclass(frozen=True, slots=True)
class Run:
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

    def lacks(self, score: str) -> Bools:
        """Which rows have no value of a score, on the target or on the placebo, for a reason that is known."""
        names = {one.id for one in self.missing if one.score == score}
        return np.array([name in names for name in self.ids], dtype=np.bool_)

    def rows(self, chosen: Bools) -> Run:
        """The run with the chosen rows alone, without its evaluation."""
        per_row = ("ids", "groups", "members", "tokens", "cut", "matrix", "copies")
        found = {name: values for name in per_row if (values := getattr(self, name)) is not None}
        kept: dict[str, Any] = {
            name: values[chosen] if isinstance(values, np.ndarray) else tuple(compress(values, chosen))
            for name, values in found.items()
        }
        ids = set(kept["ids"])
        controls = tuple(replace(control, values=control.values[chosen]) for control in self.controls)
        missing = tuple(one for one in self.missing if one.id in ids)
        return replace(self, **kept, controls=controls, missing=missing, evaluation=None)

    def column(self, score: str) -> Doubles:
        """One score of every text, in row order, shape [texts]; NaN where a text has none."""
        return np.asarray(self.matrix[:, self.scores.index(score)])

    def quartiles(self, score: str) -> tuple[float, ...]:
        """Lowest value, lower quartile, median, upper quartile and highest value of one score; for a run with texts."""
        return tuple(float(value) for value in np.nanpercentile(self.column(score), [0, 25, 50, 75, 100]))

    def median(self, score: str, member: bool | None) -> float | None:
        """The median of one score over the texts with this label (None: those without one); None where no such
        text has it."""
        known = self.column(score)[[label is member for label in self.members]]
        known = known[~np.isnan(known)]
        return float(np.median(known)) if len(known) else None

    def __repr__(self) -> str:
        """Corpus, texts and scores on a line."""
        texts = self.whole.texts if self.whole else len(self.ids)
        listed = ", ".join([*self.scores[:_NAMED], *(["…"] if len(self.scores) > _NAMED else [])])
        return f"Run({self.corpus!r}, {texts:,} texts, scores: {listed or 'none'})"


# What an audit works on and what comes out of it: pieces of text, tests, checks, the verdict.


COMPARED = "What the texts are compared with"
"""The group of options on control documents and generated texts."""
GENERATING = Option(
    "How the generator is tuned and writes, as in temperature=0.6.", name="generator-args", panel=COMPARED
)

Outcome = Literal[
    "nothing", "consistent", "inconclusive", "found", "absent",
    "flagged", "set", "none", "missed", "refused",
]  # fmt: skip
"""Nothing shown, by an audit that would have seen training; consistent with training on the texts; or no answer,
because a control failed or the audit could have missed it. Of a search: texts were found, or none stands in all that
was read. Of a flagging: documents are flagged; none is, but the set as a whole stands out; neither, and a tenth of the
documents, if seen, would have been noticed; neither, but that could have been missed; or no answer, because a control
says that the two sets differ, or could differ, by more than membership."""

Status = Literal["passed", "failed", "not run"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a generator draws the next token; temperature 1 with the whole distribution is what it learnt.

    `top_p` keeps the likeliest tokens that together reach this probability, `repetition_penalty` divides the
    positive logits of tokens that already stand in the text (prompt included) and multiplies the negative
    ones. The authors' release of post-hoc dataset inference uses 0.6, 0.9 and 1.2.
    """

    temperature: float = GENERATING.key(
        1.0, "Temperature of its sampling; 1 samples from the distribution that it learned."
    )
    top_p: float = GENERATING.key(
        1.0, "Sample only from the likeliest tokens whose probabilities add up to this."
    )
    repetition_penalty: float = GENERATING.key(
        1.0, "Make tokens that already occurred less likely; 1 switches this off."
    )


@dataclass(frozen=True, slots=True)
class Pair:
    """One place in a suspect text: what stands there after `prefix`, and what a generator wrote instead.

    `document` names the document (or group of documents that share text) it was cut from.
    """

    id: str
    document: str
    prefix: str
    true: str
    generated: str


@dataclass(frozen=True, slots=True)
class Check:
    """A control of the audit: `title` for a table, `words` says in a sentence or two what was done and seen,
    `cure` what would help where it failed. `figures` holds its numbers in plain values."""

    name: str
    title: str
    status: Status
    words: str
    cure: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Null:
    """The statistic that was tested, and what chance makes of it: a histogram of its values for texts not used.

    `edges` [bins + 1] and `counts` [bins] hold every drawn value; at or above `critical` lie so few of them that
    the test rejects. `observed` may lie outside the edges.
    """

    statistic: str
    observed: float
    critical: float
    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Power:
    """What the audit could have seen: `planted` documents were read `epochs` times by a copy of the target.

    `probability` is the share of such audits that reject, at the number of documents of this one; `needed` the
    documents that 80% would take (None where no number would do). `curve` holds numbers of documents and the
    probability there.
    """

    probability: Estimate
    needed: int | None
    planted: int
    epochs: int
    effect: Estimate
    curve: tuple[tuple[int, float], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gap:
    """How well a classifier that saw only texts tells two sets apart: AUC, 0.5 where it cannot."""

    classifier: str
    auc: Estimate
    texts: int
    note: str = ""


# The one noun of whatever ends in an outcome: audits, flaggings, and every test that needs no earlier checkpoint.


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table of a result, on disk `NAME.csv`: columns of equal length by name, of texts, of numbers (float64, NaN
    where a cell is empty) or of yes and no (bool, masked where a cell is empty)."""

    name: str
    columns: Mapping[str, tuple[str, ...] | Doubles | Bools]

    def __getitem__(self, column: str) -> Any:
        """A column; KeyError where there is none of that name."""
        return self.columns[column]

    def __len__(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.columns.values()), ()))


@dataclass(frozen=True, slots=True)
class Situation:
    """What the one who asks has, as far as a result or an answer says: numbers of documents, 0 where there are none.

    `unseen` counts control documents, `canaries` random strings that stand in the texts. `documents` are the texts in
    question, 0 also where it was not said. `access` is what the model offers: "weights", "logprobs" (a server that
    gives log-probabilities of a prompt) or "text" alone. `windowed` counts the documents in question that `recite` can
    ask about, None where they were not looked at. `parameters` and `training_tokens` are the model's, 0 where nobody
    knows.
    """

    unpublished: int = 0
    documents: int = 0
    unseen: int = 0
    canaries: int = 0
    checkpoint: bool = False
    access: Literal["weights", "logprobs", "text"] = "weights"
    windowed: int | None = None
    parameters: float = 0.0
    training_tokens: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """The whole of an audit, a flagging or another test, as the report reads it and `result.json` holds it.

    `exact` says whether the null distribution is known by construction; `assumption` is what must hold in any case
    for p to mean what it says. `p` is None where no test could be made. `units` (documents, shards, …) carry the test
    and `unit` names one. `null` is the distribution of the statistic if the texts were not used. `effect` has the unit
    `effect_unit`; `standardised` is the effect over its spread between units. `planted` is what training a copy of
    the target brought, None where it was not measured. `question` is what the report asks, `compared` and `trust` are
    sentences for a reader without statistics: what was compared, and how far the answer can be trusted. `reasons`
    lead to the outcome, `advice` says what would help, `notes` what was done on the way. `figures` are the test's own
    numbers in plain values, `tables` one row a unit. `register` says which test of these texts this is on this machine,
    and tells of the others. `statements` are what the one who asks says of texts and models. `situation` is what the
    advice on other tests rests on. `settings` is everything needed to repeat it.
    """

    test: str
    corpus: str
    model: str
    outcome: Outcome
    statement: str
    level: float
    exact: bool
    assumption: str
    hypothesis: str
    statistic: str
    p: float | None
    units: int
    unit: str
    question: str
    compared: tuple[str, ...]
    trust: tuple[str, ...] = ()
    null: Null | None = None
    effect: Estimate | None = None
    effect_unit: str = ""
    standardised: float | None = None
    planted: Power | None = None
    checks: tuple[Check, ...] = ()
    reasons: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    register: tuple[str, ...] = ()
    statements: Mapping[str, str] = field(default_factory=dict)
    situation: Situation = Situation()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def table(self, name: str) -> Table:
        """The table of that name; KeyError where there is none."""
        return {one.name: one for one in self.tables}[name]

    def __repr__(self) -> str:
        """Test, corpus, model, outcome and p, and the statement in a second line."""
        p = "no p" if self.p is None else f"p = {self.p:.2g}"
        head = f"{self.test}, {self.corpus!r}, model {self.model!r}, {self.outcome}, {p}"
        return f"Verdict({head}:\n    {self.statement})"


# A model that can be asked.


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text as token ids: `prefix` (start tokens, and a text before it: context only) then `tokens`, cut to the limit.
    The first `shared` of these ids begin other texts of the same call too: a back end may read them once. `text` has
    its characters, where a server takes no ids."""

    prefix: Ints
    tokens: Ints
    cut: int = 0
    shared: int = 0
    text: str | None = None

    @property
    def length(self) -> int:
        """Tokens the model reads."""
        return len(self.prefix) + len(self.tokens)

    @property
    def predicted(self) -> int:
        """Tokens the model predicts: all of them after a start token, all but the first without."""
        return len(self.tokens) if len(self.prefix) else max(0, len(self.tokens) - 1)


class Backend(Protocol):
    """A model that can be asked. `pretrace.scoring.evidence.trace` drives it: encode, pack, run, in that order.

    `fingerprint` names everything a trace depends on (weights' hash, dtype, tokenizer hash, start rule,
    length limit): it is the cache's key. `facts` is what a run records about the model, in plain values.
    """

    name: str
    offers: Quantity
    fingerprint: str
    tokenizer_hash: str
    vocabulary: int
    max_tokens: int
    facts: Mapping[str, Any]

    def encode(self, texts: Sequence[str], /) -> list[Encoded]:
        """Token ids of each text, in order."""
        ...

    def spans(self, text: str, /) -> npt.NDArray[np.int64]:
        """Where each token of `tokens` stands in the text: characters [start, end), shape [n, 2]."""
        ...

    def pack(self, encoded: Sequence[Encoded], /) -> list[tuple[int, ...]]:
        """Which texts go through the model together: indices, every text with a prediction exactly once. Where there is
        a method `work`, it gives the work of a batch by the lengths of its rows, in tokens of a short text."""
        ...

    def run(self, batch: Sequence[Encoded], want: Quantity, states: States = ..., /) -> list[Trace]:
        """One pass over texts that fit together; traces in the batch's order, each with all the states."""
        ...


class Progress:
    """Told of work that lies ahead, piece by piece, and of every finished batch: how much of the passes that must be
    made is done. What is `fresh` came from no store, `tokens` in so many `seconds`. A subclass shows it."""

    def __init__(self) -> None:
        self.total = self.done = self.fresh = self.tokens = self.weighed = 0
        self.seconds = self._ahead = self._worked = 0.0

    def begin(self, texts: int) -> None:
        """So many more passes over a text lie ahead."""
        self.total += texts

    def weigh(self, texts: int, work: float) -> None:
        """So many of them are so much work, without those whose answers are in the store. The unit is a token of a
        short text: the longest texts are read first, so that a text is no measure of the time left."""
        self.weighed += texts
        self._ahead += work

    def worked(self, work: float) -> None:
        """So much of it is done."""
        self._worked += work

    def advance(self, texts: int, tokens: int, seconds: float, fresh: bool) -> None:
        """So many texts are done; `fresh` is False for what came from the store."""
        self.done += texts
        if fresh:
            self.fresh += texts
            self.tokens += tokens
            self.seconds += seconds

    @property
    def sizes(self) -> tuple[float, float]:
        """How much is done of what does not come from the store, and of how much: work, or texts where nobody weighed
        them."""
        if self._ahead:  # what is not weighed yet counts at the average
            return self._worked, self._ahead * max(self.total, self.weighed) / self.weighed
        return self.fresh, self.fresh + max(0, self.total - self.done)


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """The target after fine-tuning: a back end over the same base weights, and the texts it was tuned on
    (their `text_key`s), which must never be scored with it. `card` tells how it was made."""

    backend: Backend
    seen: frozenset[bytes]
    card: Mapping[str, Any]


class Proposer(Protocol):
    """A model that proposes other words: what makes the neighbours of a text. `facts` is what a run records."""

    facts: Mapping[str, Any]

    def propose(
        self, texts: Sequence[str], /, *, number: int, share: float, seed: int
    ) -> list[tuple[str, ...]]:
        """For each text its first `number` neighbours, each with about `share` of the tokens replaced.
        They depend on the text, the share, the seed and the neighbour's number alone."""
        ...


@dataclass(frozen=True, slots=True)
class Written:
    """What a model wrote, and whether it `ended` by itself rather than at a limit of length."""

    text: str
    ended: bool = True


# What turns evidence into a number, and what it may have to be fitted on first.


class Score(Protocol):
    """A number a text, from its evidence. Higher always means "more likely a member"."""

    @property
    def needs(self) -> Needs: ...

    def __call__(self, evidence: Evidence, /) -> float: ...


@dataclass(frozen=True, eq=False)
class FittedScore:
    """A score by its `value` of evidence, with the `facts` that a run records of how it was fitted."""

    needs: Needs
    value: Callable[[Evidence], float]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, evidence: Evidence, /) -> float:
        return self.value(evidence)


@dataclass(frozen=True, slots=True)
class Reference:
    """What a recipe is fitted on; none of these texts may be scored afterwards."""

    counts: Any = None
    """How often tokens occur in a reference corpus, as `pretrace.frequencies.Frequencies` has it."""
    vocabulary: int = 0
    """Size of the target's logits table, |V| of the smoothing."""
    evidence: tuple[Evidence, ...] = ()
    """Texts with known labels and what the models said of them: as much as `Recipe.reference` asks for."""
    seed: int = 0
    """Of whatever a recipe draws at random."""


@runtime_checkable
class Recipe(Protocol):
    """A score that must be fitted first. It is not callable, so forgetting to fit is a type error."""

    @property
    def needs(self) -> Needs:
        """What the fitted score will want of a text, as far as that is known before fitting."""
        ...

    @property
    def reference(self) -> Needs:
        """What fitting wants of each labelled reference text; empty where it needs none of them."""
        ...

    def fit(self, reference: Reference, /) -> Score: ...


class Rewrite(Protocol):
    """From texts to the forms a model is to read, `count` of each text."""

    @property
    def count(self) -> int: ...

    def __call__(self, texts: Sequence[str], proposer: Proposer | None, /) -> list[tuple[str, ...]]: ...
