"""What a model makes of the alternatives of a lot: their values, and those units that can be tested."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from pretrace.auditing.watch import Timed, Unwatched, Watch
from pretrace.statistics.lots import lot_effects, lot_test
from pretrace.statistics.permutation import PermutationTest
from pretrace.types import Backend, Check, Doubles, Skipped, Table
from pretrace.types.audit import Status
from pretrace.verdicts.reading import Reader, Watched
from pretrace.verdicts.settings import ALONE, BESIDE, TestSettings


@dataclass(frozen=True, slots=True)
class Unit:
    """What a lot decided on: its name, and the alternatives as texts, the realised one first."""

    id: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """The values of every unit's alternatives, the realised one first; NaN where a text has none. `cut` counts units
    of which a text was longer than the model reads."""

    units: tuple[Unit, ...]
    rows: tuple[Doubles, ...]
    reasons: tuple[str, ...]
    cut: int

    @property
    def usable(self) -> list[int]:
        """The places of units whose values are all there. That depends on no draw."""
        return [i for i, row in enumerate(self.rows) if np.isfinite(row).all()]

    @property
    def effects(self) -> Doubles:
        """Realised value less the mean of the others, [units], NaN where a value is missing."""
        found = np.full(len(self.rows), np.nan)
        places = self.usable
        found[places] = lot_effects([self.rows[i] for i in places])
        return found

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """The units that take no part, with the reason."""
        usable = set(self.usable)
        return tuple(
            Skipped(unit.id, self.reasons[i] or "a value is missing", 0)
            for i, unit in enumerate(self.units)
            if i not in usable
        )

    def test(self, settings: TestSettings) -> PermutationTest:
        """The exact test over the usable units; see `lot_test`."""
        return lot_test([self.rows[i] for i in self.usable], draws=settings.draws, seed=settings.seed)

    def table(self, name: str) -> Table:
        """One row a unit: the realised value, the mean of the others, the difference."""
        first = np.array([row[0] for row in self.rows])
        others = np.array([row[1:].mean() for row in self.rows])
        ids = tuple(unit.id for unit in self.units)
        return Table(name, {"id": ids, "published": first, "others": others, "difference": self.effects})


def values_of(
    reader: Reader, units: Sequence[Unit], *, totals: bool, under: Backend | None = None, stage: str
) -> Values:
    """The values of all alternatives under the target, or `under` another model: means, or `totals` over a text."""
    read = reader.read([text for unit in units for text in unit.texts], under=under, stage=stage)
    found = read.totals if totals else read.values
    ends = np.cumsum([len(unit.texts) for unit in units])
    starts = ends - [len(unit.texts) for unit in units]
    spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
    reasons = tuple(next((read.reasons[i] for i in range(*span) if i in read.reasons), "") for span in spans)
    cut = sum(bool(read.cut[start:end].any()) for start, end in spans)
    return Values(tuple(units), tuple(found[start:end] for start, end in spans), reasons, cut)


def effects_under(reader: Reader, units: Sequence[Unit], *, totals: bool) -> Callable[[Backend], Doubles]:
    """What takes the units' effects again, under a copy of the target."""

    def again(copy: Backend) -> Doubles:
        return values_of(reader, units, totals=totals, under=copy, stage="reading with the copy").effects

    return again


def timed_watch(watch: Watched | None) -> Timed:
    """A watch that notes the seconds of every stage, around the one that is given."""
    return Timed(cast(Watch, watch) if watch is not None else Unwatched())  # its plans are not used here


def effect_unit(score: str, *, totals: bool) -> str:
    """The unit of an effect."""
    if score not in (ALONE, BESIDE):
        return f"of the score {score}"
    return "nats a text" if totals else "nats a token"


def enough_check(sizes: Sequence[int], level: float, unit: str) -> Check:
    """Whether the draws have enough outcomes for p to reach the level at all."""
    ways = math.prod(sizes) if len(sizes) < 64 else 2**64
    title = f"There are enough {unit}s for the level"
    words = f"The smallest p-value that {len(sizes):,} {unit}s allow is about {1 / ways:.2g}; the level is {level:g}."
    status: Status = "passed" if sizes and 1 / ways <= level else "failed"
    return Check("enough", title, status, words, f"Test more {unit}s.", {unit + "s": len(sizes)})


def placebo_check(name: str, place: int, test: PermutationTest, level: float) -> Check:
    """Whether the same test finds nothing in a model that cannot know what was drawn."""
    title = f"A model that cannot have seen the texts shows nothing ({name})"
    words = (
        f"The same test was made with {name}, which cannot know what the lot decided: p = {test.p:.3g}. Chance alone "
        f"gives {level:g} or less in {level:.0%} of such tests."
    )
    cure = "Was this model trained on the published texts after all? If so, name another placebo."
    key = "placebo" if place == 1 else f"placebo {place}"
    return Check(key, title, "passed" if test.p > level else "failed", words, cure, {"p": test.p})
