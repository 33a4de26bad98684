"""What training on the texts would bring: a copy of the target reads them, and the same values are taken again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pretrace.errors import TextsError
from pretrace.statistics import power as statistics
from pretrace.statistics.intervals import mean_interval
from pretrace.tuning.planting import FULL_RATE, LORA_RATE, in_words, split_members
from pretrace.types import Backend, Corpus, Doubles, Power, Text
from pretrace.verdicts.audit.power import SIZES, planted_copy
from pretrace.verdicts.reading import Watched
from pretrace.verdicts.settings import TestSettings

FEWEST = 4
"""Planted units below which nothing is said of what training brings."""


@dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """How much training moved the value of each planted unit, [planted]; `units` are their places."""

    units: tuple[int, ...]
    moved: Doubles


def planted_shift(  # noqa: PLR0913
    target: Backend,
    texts: Sequence[str],
    values: Doubles,
    again: Callable[[Backend], Doubles],
    settings: TestSettings,
    watch: Watched,
    *,
    seed: int = 0,
) -> Shift:
    """Train a copy of the target on a random half of the `texts`, one a unit, and take the units' values `again` under
    it; `values` [units] are those of the target. ModelError without weights here, TextsError for too few units."""
    named = (Text(str(i), text) for i, text in enumerate(texts) if np.isfinite(values[i]))
    corpus = Corpus("planted", tuple(named))
    if len(corpus) < 2 * FEWEST:
        raise TextsError(
            f"--power trains on half of the units and takes {2 * FEWEST} or more, found {len(corpus)}: leave it away."
        )
    planting = settings.planting(seed)
    members = split_members(corpus, planting.share, planting.seed)
    units = tuple(int(text.id) for text in members.texts if text.member)
    with planted_copy(target, corpus, planting, cache=settings.cache, training=watch.training) as copy:
        after = again(copy)
    return Shift(units, np.asarray(after[list(units)] - values[list(units)]))


def paired_power(values: Doubles, shift: Shift, settings: TestSettings, *, seed: int = 0) -> Power:
    """The power of a test of one value a unit against 0, `values` [units], with the shift that training brought."""
    noise = values[np.isfinite(values)]
    moved = shift.moved[np.isfinite(shift.moved)]
    return Power(
        probability=statistics.power(noise, moved, len(noise), level=settings.level, seed=seed),
        needed=statistics.needed(noise, moved, level=settings.level, seed=seed),
        planted=len(moved),
        epochs=settings.power_epochs,
        effect=mean_interval(moved),
        curve=statistics.curve(noise, moved, SIZES, level=settings.level, seed=seed),
        facts=trained(settings, len(noise)),
    )


def trained(settings: TestSettings, units: int | None = None) -> dict[str, object]:
    """How the copy was trained, for the sentence on what an all-clear excludes; a half of so many units was read."""
    rate = LORA_RATE if settings.power_method == "lora" else FULL_RATE
    facts: dict[str, object] = {"how": in_words(settings.power_method, rate), "learning_rate": rate}
    return facts if units is None else {**facts, "units": units}
