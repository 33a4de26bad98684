"""What models said of a text, token by token, and what a score wants of that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Flag, auto
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt


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
class Card:
    """What is known of a benchmark beside its texts, in sentences a report can print.

    `size` is the published one; `flaws` say what a figure on it does not show, each with its source; `home` is
    a hub id or an address; `licence` is what its authors state, or that they state none.
    """

    title: str
    what: str
    size: str
    licence: str
    citation: str
    home: str
    flaws: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts under one name. `source` says where they came from; `notes` what was done on the way
    (bytes replaced, lines skipped), in sentences a report can print; `card` is that of a published benchmark."""

    name: str
    texts: tuple[Text, ...]
    source: str = ""
    notes: tuple[str, ...] = ()
    card: Card | None = None

    def __len__(self) -> int:
        return len(self.texts)


Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


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

    pool: Pool = "any"
    threshold: float = 1.0
    gated: bool = False


@dataclass(frozen=True, slots=True)
class Hidden:
    """Hidden states at the last token the model read, as transformers numbers them: 0 is the embedding, the
    last is what the output layer reads. All of them, float32 [layers + 1, width], or one, float32 [width]."""

    layer: int | None = None


@dataclass(frozen=True, slots=True)
class Drawn:
    """How likely each token is to be drawn where the next token is drawn at `temperature` among the `k` likeliest:
    log-probabilities, float32 [predicted tokens], −inf where the token is not among the k (a tie with the last of them
    is). At any k from the size of the vocabulary on, and temperature 1, it is the log-probability itself."""

    k: int = 40
    temperature: float = 1.0


@dataclass(frozen=True, slots=True)
class Peak:
    """The largest log-probability over the vocabulary at each position, that of the token a model would write: float32
    [predicted tokens]. Where the text's own token is the likeliest it equals `Trace.logp` to the last bit."""


@dataclass(frozen=True, slots=True)
class Continued:
    """What the model writes in the place of a text's end: token ids, int32 [samples, n − read(n)] for n predicted
    tokens, of which the first `read(n)`, a `share` of them and one at least, stay as they are and are read.

    Each token is drawn at `temperature` among all that are not special, by numbers that depend on what stands before
    the end, on `seed` and on the sample. With one predicted token there is no end.
    """

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


class Quantity(Flag):
    """What one pass over a text can yield: LOGP and MOMENTS token by token; the others are states, which have
    parameters of their own (see `pretrace.types.traces`)."""

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


class View(NamedTuple):
    """A text as seen by one model after one rewrite: ("target", "plain"), ("target", "lower"), … A tuple, whose hash is
    taken several times for each text."""

    model: str = "target"
    rewrite: str = "plain"


@dataclass(frozen=True, slots=True)
class Trace:
    """What a model said of one text: arrays of equal length, one entry a predicted token.

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

    __slots__ = ("counts", "paired", "states", "views")

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
            quantity |= Quantity.LOGP | quantity_of(state)
        where = views or ((View(),) if quantity else ())
        self.views: Mapping[View, Quantity] = dict.fromkeys(sorted(where), quantity)
        self.states: Mapping[View, States] = dict.fromkeys(self.views, wanted) if wanted else {}

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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Needs) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    @property
    def _parts(self) -> tuple[object, ...]:
        return (tuple(self.views.items()), tuple(self.states.items()), self.counts, self.paired)

    def __repr__(self) -> str:
        states = f", states={dict(self.states)!r}" if self.states else ""
        more = "".join(f", {name}=True" for name in ("counts", "paired") if getattr(self, name))
        return f"Needs({dict(self.views)!r}{states}{more})"

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


def quantity_of(state: State) -> Quantity:
    """The quantity a back end must offer for a state to be read."""
    if isinstance(state, Drawn):
        return Quantity.DRAWN
    if isinstance(state, Peak):
        return Quantity.PEAK
    if isinstance(state, Continued):
        return Quantity.CONTINUED
    return Quantity.NEURONS if isinstance(state, Firing) else Quantity.HIDDEN
