"""What the order test is made of: units, each with its published order and the others that are read."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pretrace.types import Skipped

Orders = npt.NDArray[np.int64]
"""Orders of the parts of a unit, [orders, parts]: row 0 is the published order 0, 1, 2, …"""


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """A shard of rows, or an item with its options: parts that change places, all within one text.

    `head` stands before the parts and never moves, "" where there is none. `movable` holds groups of places; the
    parts within a group may take each other's place. `lettered` parts are options, named A, B, C by their place.
    """

    name: str
    parts: tuple[str, ...]
    movable: tuple[tuple[int, ...], ...]
    joint: str = "\n"
    head: str = ""
    lettered: bool = False

    @property
    def ways(self) -> int:
        """How many orders there are."""
        return math.prod(math.factorial(len(group)) for group in self.movable)

    def text(self, order: Sequence[int] | Orders) -> str:
        """The text with the parts in that order."""
        parts = [self.parts[i] for i in order]
        if self.lettered:
            parts = [f"{chr(ord('A') + place)}. {part}" for place, part in enumerate(parts)]
        return self.joint.join([self.head, *parts] if self.head else parts)

    def texts(self, orders: Orders) -> list[str]:
        """The text in each of the orders."""
        return [self.text(order) for order in orders.tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """The units of a test, and the rows or items that are no part of it, with the reason."""

    units: tuple[Unit, ...]
    skipped: tuple[Skipped, ...] = ()
    rows: int = 0
    """Rows, or items, in the units."""


def drawn_orders(unit: Unit, shuffles: int, rng: np.random.Generator) -> Orders:
    """The published order and so many drawn uniformly, [1 + shuffles, parts]; every order once where there are no more
    than that.

    A drawn order may be the published one, or one that was drawn before: only then are the published order and the
    drawn ones alike in law, as the test needs. A tie counts against the published order.
    """
    if unit.ways <= shuffles + 1:
        return every_order(unit)
    orders = np.tile(np.arange(len(unit.parts)), (shuffles + 1, 1))
    for group in unit.movable:
        places = np.array(group)
        orders[1:, places] = rng.permuted(np.tile(places, (shuffles, 1)), axis=1)
    return orders


def every_order(unit: Unit) -> Orders:
    """All orders of a unit, the published one first, [ways, parts]."""
    orders = np.tile(np.arange(len(unit.parts)), (unit.ways, 1))
    choices = itertools.product(*(itertools.permutations(group) for group in unit.movable))
    for row, chosen in enumerate(choices):
        for group, taken in zip(unit.movable, chosen, strict=True):
            orders[row, list(group)] = taken
    return orders
