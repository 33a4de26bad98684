"""What training on the texts would bring: a copy of the target reads them, and the same values are taken again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pretrace.auditing.power import SIZES, planted_copy
from pretrace.errors import TextsError
from pretrace.statistics import power as statistics
from pretrace.statistics.intervals import mean_interval
from pretrace.tuning.planting import split_members
from pretrace.types import Backend, Corpus, Doubles, Estimate, Power, Text
from pretrace.verdicts.reading import Watched
from pretrace.verdicts.settings import TestSettings

FEWEST = 4
"""Planted units below which nothing is said of what training brings."""


@dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """How much training moved the value of each planted unit, [planted]; `units` are their places."""

    units: tuple[int, ...]
    moved: Doubles


def planted_shift(
    target: Backend,
    texts: Sequence[str],
    values: Doubles,
    again: Callable[[Backend], Doubles],
    settings: TestSettings,
    watch: Watched,
) -> Shift:
    """Train a copy of the target on a random half of the `texts`, one a unit, and take the units' values `again` under
    it; `values` [units] are those of the target. ModelError without weights here, TextsError for too few units."""
    named = (Text(str(i), text) for i, text in enumerate(texts) if np.isfinite(values[i]))
    corpus = Corpus("planted", tuple(named))
    if len(corpus) < 2 * FEWEST:
        raise TextsError(
            f"--power trains on half of the units and takes {2 * FEWEST} or more, found {len(corpus)}: leave it away."
        )
    planting = settings.planting
    members = split_members(corpus, planting.share, planting.seed)
    units = tuple(int(text.id) for text in members.texts if text.member)
    with planted_copy(target, corpus, planting, cache=settings.cache, training=watch.training) as copy:
        after = again(copy)
    return Shift(units, np.asarray(after[list(units)] - values[list(units)]))


def paired_power(values: Doubles, shift: Shift, settings: TestSettings) -> Power:
    """The power of a test of one value a unit against 0, `values` [units], with the shift that training brought."""
    noise = values[np.isfinite(values)]
    moved = shift.moved[np.isfinite(shift.moved)]
    return Power(
        probability=statistics.power(noise, moved, len(noise), level=settings.level, seed=settings.seed),
        needed=statistics.needed(noise, moved, level=settings.level, seed=settings.seed),
        planted=len(moved),
        epochs=settings.power_epochs,
        effect=mean_interval(moved),
        curve=statistics.curve(noise, moved, SIZES, level=settings.level, seed=settings.seed),
    )


def rank_power(others: Doubles, shift: Shift, settings: TestSettings) -> Power:
    """The power of ranking one value among `others` [controls], were it one of them with the shift added.

    The chance is the share of controls that would pass the test with the mean shift; its interval is that of the shift.
    """
    moved = shift.moved[np.isfinite(shift.moved)]
    effect = mean_interval(moved)
    value, low, high = (
        _passing(others, gain, settings.level) for gain in (effect.value, effect.low, effect.high)
    )
    return Power(
        probability=Estimate(value, low, high),
        needed=None,
        planted=len(moved),
        epochs=settings.power_epochs,
        effect=effect,
    )


def _passing(others: Doubles, gain: float, level: float) -> float:
    """The share of controls that would be ranked within the level among the others, raised by so much."""
    passing = [
        (1 + np.count_nonzero(np.delete(others, i) >= one + gain)) / len(others) <= level
        for i, one in enumerate(others)
    ]
    return float(np.mean(passing))
