"""What models said of a text, token by token, and what a score wants of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Flag, auto

from pretrace.types.arrays import Floats, Ints
from pretrace.types.texts import Text


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
