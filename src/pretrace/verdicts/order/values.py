"""What a model makes of every unit in its published order and in others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pretrace.scoring.plan import Models
from pretrace.statistics.lots import lot_effects
from pretrace.types import Backend, Doubles, Skipped
from pretrace.verdicts.order.settings import OrderSettings
from pretrace.verdicts.order.units import Unit, drawn_orders
from pretrace.verdicts.reading import Reader, Watched
from pretrace.verdicts.settings import ALONE

CUT = "in one of its orders it is longer than a model reads at once"
_SMALL, _ALL = 4, 23
"""Options of an item up to which every order is read, and the other orders that four options have."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """The units and the texts of each in the orders that are read, the published one first."""

    units: tuple[Unit, ...]
    texts: tuple[tuple[str, ...], ...]
    skipped: tuple[Skipped, ...] = ()

    @property
    def passes(self) -> int:
        """Texts that go through a model."""
        return len({text for texts in self.texts for text in texts})

    @property
    def ranked(self) -> bool:
        """Whether the value of an order is its rank: for items, whose texts differ more than their orders."""
        return any(unit.lettered for unit in self.units)


def asked(units: Sequence[Unit], backends: Sequence[Backend], settings: OrderSettings) -> Asked:
    """Draw the orders of every unit, and leave out units of which a back end would cut off the end in any order.

    Leaving out is harmless: the rule looks at all orders of a unit alike, the published one as the others, so that the
    published order of the units that stay is still one of these by lot.
    """
    rng = np.random.default_rng([settings.seed, 0])
    kept, texts, skipped = [], [], []
    for unit in units:
        found = tuple(unit.texts(drawn_orders(unit, _number(unit, settings), rng)))
        if any(one.cut > 0 for backend in backends for one in backend.encode(found)):
            skipped.append(Skipped(unit.name, CUT, 0))
        else:
            kept.append(unit)
            texts.append(found)
    return Asked(tuple(kept), tuple(texts), tuple(skipped))


@dataclass(frozen=True, slots=True)
class OrderReader:
    """Reads the texts of all orders: the log-probability of the whole text in nats, less that of the reference model
    where there is one."""

    asked: Asked
    models: Models
    watch: Watched
    cache: bool

    def read(self, under: Backend, stage: str) -> tuple[Doubles, ...]:
        """The log-probabilities of every unit, [units][orders], the published order first."""
        own = self._totals(under, stage)
        if self.models.reference is not None:
            other = self._totals(self.models.reference, "reading with the reference model")
            own = {text: value - other[text] for text, value in own.items()}
        return tuple(np.array([own[text] for text in texts]) for texts in self.asked.texts)

    def values(self, read: Sequence[Doubles]) -> tuple[Doubles, ...]:
        """What is tested: the log-probabilities of shards, for items the rank of each order among those of its item,
        over their number."""
        if not self.asked.ranked:
            return tuple(read)
        return tuple(ranks(row) for row in read)

    def effects(self, under: Backend, stage: str) -> Doubles:
        """The value of the published order less the mean of the others, [units]."""
        return lot_effects(self.values(self.read(under, stage)))

    def _totals(self, under: Backend, stage: str) -> dict[str, float]:
        """The log-probability of each text. Texts are read in an order that does not tell which one was published:
        what a model computes for a text depends in its last digits on what it is read together with."""
        texts = [text for found in self.asked.texts for text in sorted(set(found))]
        reader = Reader(replace(self.models, reference=None), ALONE, self.watch, self.cache)
        return dict(zip(texts, reader.read(texts, under=under, stage=stage).totals.tolist(), strict=True))


def ranks(values: Doubles) -> Doubles:
    """The ranks of values over their number, the highest 1, the mean rank for equal values."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values) / len(values))


def _number(unit: Unit, settings: OrderSettings) -> int:
    """Other orders of a unit that are read."""
    if not unit.lettered:
        return settings.shuffles
    return _ALL if len(unit.parts) <= _SMALL else settings.orders
