"""The nouns of pretrace: texts → traces → scores → statistics → report. Imports nothing of ours.

Everything here is immutable. Arrays are numpy; one entry of a trace is one token the model predicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Flag, auto
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Text:
    """One text to be judged.

    `member` is True for a known member, False for a known non-member, None where nobody knows.
    `group` names the document (or author) the text was cut from; statistics resample groups, since
    pieces of one document are not independent. Without a group a text is its own.
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


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts under one name. `source` says where they came from; `notes` what was done on the way
    (bytes replaced, lines skipped), in sentences a report can print."""

    name: str
    texts: tuple[Text, ...]
    source: str = ""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.texts)


class Quantity(Flag):
    """What one pass over a text can yield, token by token."""

    NONE = 0
    LOGP = auto()
    """Log-probability of the token that stands there."""
    MOMENTS = auto()
    """Mean and standard deviation of log p(v) for v drawn from the model's own distribution."""


@dataclass(frozen=True, slots=True, order=True)
class View:
    """A text as seen by one model after one rewrite: ("target", "plain"), ("target", "lower"), …"""

    model: str = "target"
    rewrite: str = "plain"


@dataclass(frozen=True, slots=True)
class Trace:
    """What a model said of one text: arrays of equal length, one entry a predicted token.

    `logp`, `mean` and `std` are in nats. With a start token in front the entries are t_0 … t_{n-1},
    without one t_1 … t_{n-1}. `cut` counts the tokens dropped from the end by the length limit.
    """

    tokens: Ints
    logp: Floats
    mean: Floats | None = None
    std: Floats | None = None
    cut: int = 0

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def holds(self) -> Quantity:
        """The quantities this trace carries."""
        return Quantity.LOGP if self.mean is None else Quantity.LOGP | Quantity.MOMENTS


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
        return self.trace()

    def through(self, model: str) -> Evidence:
        """The same evidence seen through another model: FSD is `of(e) - of(e.through("tuned"))`."""
        return replace(self, model=model)


class Needs:
    """The quantities a score wants of each view; needs combine with `|`.

    >>> both = Needs(Quantity.LOGP) | Needs(Quantity.LOGP, View(rewrite="lower"))
    >>> [view.rewrite for view in both.views]
    ['lower', 'plain']
    """

    __slots__ = ("views",)

    def __init__(self, quantity: Quantity = Quantity.NONE, *views: View) -> None:
        wanted = views or ((View(),) if quantity else ())
        self.views: Mapping[View, Quantity] = dict.fromkeys(sorted(wanted), quantity)

    @classmethod
    def _of(cls, views: Mapping[View, Quantity]) -> Needs:
        needs = cls()
        needs.views = dict(sorted(views.items()))
        return needs

    def __or__(self, other: Needs) -> Needs:
        views = dict(self.views)
        for view, quantity in other.views.items():
            views[view] = views.get(view, Quantity.NONE) | quantity
        return Needs._of(views)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Needs) and dict(self.views) == dict(other.views)

    def __hash__(self) -> int:
        return hash(tuple(self.views.items()))

    def __repr__(self) -> str:
        return f"Needs({dict(self.views)!r})"

    def through(self, model: str) -> Needs:
        """The same needs with another model in the target's place."""
        moved = {View(model, v.rewrite) if v.model == "target" else v: q for v, q in self.views.items()}
        return Needs._of(moved)


class Score(Protocol):
    """A number a text, from its evidence. Higher always means "more likely a member"."""

    @property
    def needs(self) -> Needs: ...

    def __call__(self, evidence: Evidence, /) -> float: ...


class TokenTable(Protocol):
    """How often each token of one tokenizer occurs in a reference corpus."""

    @property
    def tokenizer_hash(self) -> str: ...

    def log_frequency(self, vocabulary: int) -> Doubles:
        """Laplace-smoothed log f(v) for every id below `vocabulary`."""
        ...


@dataclass(frozen=True, slots=True)
class Reference:
    """What a recipe is fitted on; none of these texts may be scored afterwards."""

    counts: TokenTable | None = None
    vocabulary: int = 0
    """Size of the target's logits table, |V| of the smoothing."""


@runtime_checkable
class Recipe(Protocol):
    """A score that must be fitted first. It is not callable, so forgetting to fit is a type error."""

    @property
    def needs(self) -> Needs: ...

    def fit(self, reference: Reference, /) -> Score: ...


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text as token ids: `prefix` (start tokens, context only) then `tokens`, cut to the limit."""

    prefix: Ints
    tokens: Ints
    cut: int = 0

    @property
    def length(self) -> int:
        """Tokens the model reads."""
        return len(self.prefix) + len(self.tokens)

    @property
    def predicted(self) -> int:
        """Tokens the model predicts: all of them after a start token, all but the first without."""
        return max(0, self.length - max(1, len(self.prefix)))


class Backend(Protocol):
    """A model that can be asked. `pretrace.tracing.trace` drives it: encode, pack, run, in that order.

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
        """Which texts go through the model together: indices, every text with a prediction exactly once."""
        ...

    def run(self, batch: Sequence[Encoded], want: Quantity, /) -> list[Trace]:
        """One pass over texts that fit together; traces in the batch's order."""
        ...


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

    `kind` is "score" or "blind" (a classifier that never saw the model). `tpr_low` is the true positive
    rate at 0.1% false positives, None below 10,000 non-members.
    """

    name: str
    kind: str
    auc: Estimate
    tpr: Estimate
    accuracy: Estimate
    threshold: float
    curve: Curve
    tpr_low: Estimate | None = None


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


@dataclass(frozen=True, slots=True)
class Skipped:
    """A text without a score, and why."""

    id: str
    reason: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Heat:
    """One text as coloured tokens: `pieces` concatenate to the part that was read, `logp[i]` belongs to
    `pieces[i]` and is None where the model predicted nothing (the first token without a start token)."""

    id: str
    pieces: tuple[str, ...]
    logp: tuple[float | None, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """What `detect` returns and `report` reads: row i of every array is text i.

    `matrix` is float64 [texts, scores] and finite everywhere; texts that could not be scored are in
    `skipped` and have no row. `settings` is what run.json records.
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
    settings: Mapping[str, Any] = field(default_factory=dict)

    def column(self, score: str) -> Doubles:
        """One score of every text, in row order, shape [texts]."""
        return np.asarray(self.matrix[:, self.scores.index(score)])

    @property
    def labelled(self) -> bool:
        """Whether every row is a known member or a known non-member."""
        return bool(self.members) and all(member is not None for member in self.members)
