"""Blind gates: the same test on what can be seen in the texts alone, without any model.

An order that was drawn by lot stands out in none of these statistics more often than chance. Where one of them does, in
either direction, the order carries meaning, and the main test has no known null distribution: the effect then contains
what the order itself is worth to any model. That may lie above 0 (sorted rows are easier to predict) or below (rows
that were mixed on purpose), by an amount that nobody knows. So a gate that stands out withholds an accusation and an
all-clear alike. All gates together withhold a random order at most once in twenty times.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pretrace.statistics.lots import lot_test
from pretrace.statistics.words import words_of
from pretrace.types import Check, Doubles
from pretrace.verdicts.order.units import Orders, Unit, drawn_orders

LEVEL = 0.05
"""The level of all gates together."""
MOST, FEWEST, TOTAL = 199, 19, 20_000
"""Other orders of a unit that gates look at, at most and at least, and of all units together."""
DRAWS = 10_000
"""Draws of a gate: enough to tell a p-value from its share of the level."""
CHARACTERS = 40
"""Characters of a row by which it is put into the alphabet."""
_FRONT = re.compile(r"\W*(\d{1,15})")

Pairs = Callable[[Unit, int], Doubles]
"""What each part of a unit (and its number) is worth in front of each other part, [parts, parts]."""


def gate_values(units: Sequence[Unit], *, seed: int) -> dict[str, list[Doubles]]:
    """The blind statistics of every unit in its published order and in others, by gate: [units][orders].

    A gate that finds no difference between any two orders (no row begins with a number) is left out.
    """
    number = int(np.clip(TOTAL // max(1, len(units)), FEWEST, MOST))
    rng = np.random.default_rng([seed, 1])
    orders = [drawn_orders(unit, number, rng) for unit in units]
    values = {
        name: [
            neighbours(pairs(unit, i), order)
            for i, (unit, order) in enumerate(zip(units, orders, strict=True))
        ]
        for name, pairs in _gates(units).items()
    }
    if not any(unit.lettered for unit in units):
        values["how far they compress"] = [
            compressed(unit, order) for unit, order in zip(units, orders, strict=True)
        ]
    return {name: found for name, found in values.items() if any(np.ptp(row) > 0 for row in found)}


def order_check(values: Mapping[str, Sequence[Doubles]], *, cure: str, seed: int) -> Check:
    """Whether the published order looks like one that was drawn by lot, from the blind statistics; `cure` says what can
    be done where it does not."""
    title = "The published order looks drawn by lot"
    if not values:
        return Check("order", title, "not run", "There was nothing in the texts to compare.")
    p = {name: two_sided(found, seed=seed) for name, found in values.items()}
    bound = LEVEL / len(p)
    out = [name for name, value in p.items() if value <= bound]
    words = (
        f"Without any model, the published order was compared with random ones, by {_and(list(p))}. "
        + (f"It stands out by {_and(out)}" if out else "It stands out by none of these")
        + f" (the smallest p is {min(p.values()):.3g}; {bound:.3g} and less stands out)."
    )
    return Check("order", title, "failed" if out else "passed", words, cure if out else "", {"p": p})


def two_sided(values: Sequence[Doubles], *, seed: int) -> float:
    """The p-value of published orders that stand out in either direction."""
    higher = lot_test(values, draws=DRAWS, seed=seed).p
    lower = lot_test([-row for row in values], draws=DRAWS, seed=seed).p
    return min(1.0, 2 * min(higher, lower))


def neighbours(pairs: Doubles, orders: Orders) -> Doubles:
    """The sum over neighbours of what one is worth in front of the other, [orders], from `pairs` [parts, parts]."""
    return np.asarray(pairs[orders[:, :-1], orders[:, 1:]].sum(axis=1))


def compressed(unit: Unit, orders: Orders) -> Doubles:
    """Minus the bytes that zlib makes of the unit's text in each order, [orders]."""
    texts = (text.encode("utf-8", "replace") for text in unit.texts(orders))
    return np.array([-len(zlib.compress(text)) for text in texts], dtype=np.float64)


def _gates(units: Sequence[Unit]) -> dict[str, Pairs]:
    """The gates that look at neighbours, by what they look at: those of rows, or those of options."""
    shared: dict[str, Pairs] = {"the alphabet": _alphabet, "numbers in front": _numbers}
    if any(unit.lettered for unit in units):
        return {**shared, "length": lambda unit, _: _rising(_lengths(unit))}
    alike = _alike(units)
    lengths: Pairs = lambda unit, _: -np.abs(_differences(_lengths(unit)))  # noqa: E731
    return {**shared, "the length of neighbours": lengths, "the words of neighbours": alike}


def _alike(units: Sequence[Unit]) -> Pairs:
    """The cosine of tf-idf vectors of words, weighed over all units."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    parts = [part for unit in units for part in unit.parts]
    starts = np.cumsum([0, *(len(unit.parts) for unit in units)])
    if not any(words_of(part) for part in parts):
        return lambda unit, _: np.zeros((len(unit.parts), len(unit.parts)))
    vectors = TfidfVectorizer(analyzer=words_of, sublinear_tf=True).fit_transform(parts)

    def pairs(_: Unit, place: int) -> Doubles:
        own = vectors[starts[place] : starts[place + 1]]
        return np.asarray((own @ own.T).toarray(), dtype=np.float64)

    return pairs


def _alphabet(unit: Unit, _: int) -> Doubles:
    keys = [part.casefold().strip()[:CHARACTERS] for part in unit.parts]
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return _rising(np.array([ranks[key] for key in keys], dtype=np.float64))


def _numbers(unit: Unit, _: int) -> Doubles:
    """Like the alphabet, for numbers at the front; a part without one is neither above nor below another."""
    found = [_FRONT.match(part) for part in unit.parts]
    values = np.array([float(one[1]) if one else np.nan for one in found])
    return np.nan_to_num(_rising(values))


def _lengths(unit: Unit) -> Doubles:
    return np.array([float(len(part)) for part in unit.parts])


def _differences(values: Doubles) -> Doubles:
    """How much higher the second is, [first, second]."""
    return np.asarray(values[None, :] - values[:, None])


def _rising(values: Doubles) -> Doubles:
    """1 where the second is higher than the first, -1 where it is lower, 0 for the same: [first, second]."""
    return np.sign(_differences(values))


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
