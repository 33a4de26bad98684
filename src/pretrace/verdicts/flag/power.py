"""What a flagging would have seen: a copy of the target is trained on a tenth of the texts, and flagged again.

The copy shows what training adds to the score of a document that was read, beyond what it adds to known non-members
that were not. Flaggings of as many documents are then simulated: known ones stand for those nobody read, and a tenth of
those in question gets what training added. The share of these that end in an accusation is the power, with all that
withholds one: drift and spread that could not be excluded are taken off there as here.

How many documents there can be like those that were read follows from the same simulation: the largest share at which a
test statistic as low as the one that was found has a chance of at least 5%.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pretrace.results.wording import say
from pretrace.scoring.outlook import Watch
from pretrace.scoring.plan import Models
from pretrace.statistics.documents import means
from pretrace.statistics.intervals import mean_interval, share_interval
from pretrace.statistics.shift import SetShift, compare_below, set_shift
from pretrace.tuning.planting import PlantSettings
from pretrace.types import Bools, Corpus, Doubles, Estimate, Power, Text
from pretrace.verdicts.flag.concluding import FLOOR, WIDE, CheckedScores, Sides, outliers_at
from pretrace.verdicts.flag.planning import CLEARING
from pretrace.verdicts.outcome import ENOUGH
from pretrace.verdicts.planting import PlantedShift, planted_copy, trained
from pretrace.verdicts.reading import ScoreReader
from pretrace.verdicts.settings import POWER_BATCH

FEWEST = 4
"""Documents that are read at least: fewer say nothing of what training brings."""
MOST = 1_000
"""Documents of either side that take part in the planting; of more these are drawn."""
SIMULATED, LARGEST = 400, 2_000
"""Simulated flaggings, and the documents of either side with which they are simulated at most."""
SHARES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
"""Shares of documents that were read, at which the test statistic is simulated."""
_TAIL = 0.05
_TIMES = (1.5, 2, 3, 5, 8, 12, 20)
"""Times the documents that there are, of which the first that is enough is named."""
_SURELY = 0.9
"""The share of simulated flaggings that must accuse before a size is named: at that size 0.8 are to be measured."""


def measured(
    found: CheckedScores, read: Callable[[Bools], Sequence[str]], models: Models, watch: Watch
) -> tuple[Power | None, Estimate | None, str]:
    """The power, and the share of documents like the planted ones that there can be; or why it was not measured. `read`
    gives the texts of the chosen rows, in order. ModelError where the target has no weights here."""
    sides = found.sides
    if sides.number < 2 * FEWEST:
        return None, None, say("flag.plan.plantable", fewest=2 * FEWEST, number=sides.number)
    planted = _planted(sides, read, models, watch)
    if len(planted.moved) < FEWEST:
        return None, None, say("flag.plan.planted", number=len(planted.moved))
    return *simulated(found, planted), ""


def simulated(found: CheckedScores, planted: PlantedShift) -> tuple[Power, Estimate]:
    """The power and the share, from what training added."""
    sides = found.sides
    asked, known = (min(LARGEST, number) for number in (sides.number, sides.known))
    law = _Simulation.of(found, planted.moved, asked, known, np.random.default_rng([sides.seed, 7]))
    often = share_interval(law.accused(), SIMULATED)
    tenth = max(1, round(CLEARING * asked)) / asked
    enough = None if often.value >= ENOUGH else _enough(found, planted)
    gained = mean_interval(planted.moved / (float(law.values.std()) or 1.0))
    power = Power(
        probability=often,
        needed=enough[0] if enough else None,
        planted=len(planted.moved),
        epochs=planted.how.epochs,
        effect=Estimate(tenth, tenth, tenth),
        facts={
            **trained(planted.how, min(MOST, sides.number)),
            "share": tenth,
            "gained": [gained.value, gained.low, gained.high],
            "simulated": SIMULATED,
            **({"known_needed": enough[1]} if enough else {}),
        },
    )
    return power, law.share()


def _enough(found: CheckedScores, planted: PlantedShift) -> tuple[int, int] | None:
    """Numbers of documents at which a tenth is noticed with the least training adds (95%); None above `LARGEST`."""
    sides, modest = found.sides, mean_interval(planted.moved)
    gained = planted.moved - (modest.value - modest.low)
    rng = np.random.default_rng([sides.seed, 9])
    for times in _TIMES:
        asked, known = (math.ceil(times * number) for number in (sides.number, sides.known))
        if asked + known > 2 * LARGEST:
            return None
        if _Simulation.of(found, gained, asked, known, rng).accused() >= _SURELY * SIMULATED:
            return asked, known
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Simulation:
    """Flaggings of so many documents in question and known ones: values of known documents, what training added, and
    the law of the statistic at these numbers without ties."""

    found: CheckedScores
    values: Doubles
    gained: Doubles
    made: SetShift
    rng: np.random.Generator

    @classmethod
    def of(
        cls, found: CheckedScores, gained: Doubles, asked: int, known: int, rng: np.random.Generator
    ) -> _Simulation:
        """Simulated flaggings of so many documents in question and known ones."""
        sides, ranks = found.sides, (np.arange(asked, dtype=float), np.arange(known) + 0.5)
        made = set_shift(*ranks, level=sides.settings.level, seed=sides.seed)
        return cls(found, sides.by_document(sides.scores)[1], gained, made, rng)

    def drawn(self, seen: int) -> SetShift:
        """A test of the set of which `seen` documents were read, drawn with a little noise (a kernel) against ties."""
        asked, rng, values = len(self.made.asked), self.rng, self.values
        number, wide = asked + len(self.made.known), 0.9 * len(values) ** -0.2
        middle, shrunk = float(values.mean()), 1 / np.sqrt(1 + wide**2)
        both = rng.choice(values, number) + wide * float(values.std()) * rng.standard_normal(number)
        both = middle + (both - middle) * shrunk
        both[:seen] += rng.choice(self.gained, seen)
        shift = replace(self.made, asked=both[:asked], known=both[asked:])
        return replace(shift, p=shift.p_after())

    def accused(self) -> int:
        """How many simulated flaggings accuse where a tenth was read; unseen drift goes with the error of an AUC."""
        found, sides, accused = self.found, self.found.sides, 0
        numbers = (len(self.made.asked), len(self.made.known)), (sides.number, sides.known)
        errors = [(a + k + 1) / (a * k) for a, k in numbers]
        shrunk = math.sqrt(errors[0] / errors[1])
        least = FLOOR if sides.placebo is None else 0.0
        unseen = max(min(least, found.outliers.unseen), min(1.0, shrunk) * found.outliers.unseen)
        for _ in range(SIMULATED):
            shift = self.drawn(max(1, round(CLEARING * numbers[0][0])))
            spread = compare_below(shift.asked, shift.known).allowed(WIDE)
            one = outliers_at(shift, sides, unseen, spread)
            accused += one.withstands or bool(one.chosen.any())
        return accused

    def share(self) -> Estimate:
        """The share of documents like the planted ones: where the p that was found is the median, and where it is as
        high or higher, or as low or lower, in 5% of simulations."""
        p, asked = self.found.outliers.shift.p, len(self.made.asked)
        drawn = np.array(
            [[self.drawn(round(share * asked)).p for _ in range(SIMULATED // 2)] for share in SHARES]
        )
        high, middle, low = ((drawn >= p).mean(1), (drawn > p).mean(1), (drawn <= p).mean(1))
        value = _crossed(middle, 0.5, falling=True)
        return Estimate(
            value,
            min(value, _crossed(low, _TAIL, falling=False)),
            max(value, _crossed(high, _TAIL, falling=True)),
        )


def _crossed(chances: Doubles, level: float, *, falling: bool) -> float:
    """The share at which chances that fall (or rise) with it cross a level, read off a straight line between two."""
    if falling:
        return float(np.interp(level, np.minimum.accumulate(chances)[::-1], SHARES[::-1]))
    return float(np.interp(level, np.maximum.accumulate(chances), SHARES))


def _planted(
    sides: Sides, read: Callable[[Bools], Sequence[str]], models: Models, watch: Watch
) -> PlantedShift:
    """What a copy of the target that read a tenth of the documents makes of them, less what it makes of known ones."""
    settings, documents = sides.settings, sides.documents

    def drawn(side: Bools) -> Bools:
        names = np.unique(documents[side])
        if len(names) > MOST:
            names = np.random.default_rng([sides.seed, 8]).choice(names, MOST, replace=False)
        return np.asarray(side & np.isin(documents, names))

    asked, known = drawn(sides.asked), drawn(~sides.asked)
    texts = dict(zip(np.flatnonzero(asked | known).tolist(), read(asked | known), strict=True))
    here = np.flatnonzero(asked).tolist()
    corpus = Corpus("planted", tuple(Text(str(i), texts[i], group=f"d{documents[i]}") for i in here))
    number = len(np.unique(documents[asked]))
    planting = PlantSettings(
        share=max(CLEARING, (FEWEST + 0.5) / number),
        epochs=settings.power_epochs,
        batch=POWER_BATCH,
        method=settings.power_method,
        seed=sides.seed % 2**31,
    )
    how: dict[str, Any] = {"cache": settings.cache, "training": watch.training}
    with planted_copy(models.target, corpus, planting, **how) as (copy, members):
        mine = np.isin(documents, documents[[int(text.id) for text in members]]) & sides.drawn & asked
        others = sides.drawn & known
        some, after = np.flatnonzero(mine | others), np.full(len(documents), np.nan)
        reader, again = (
            ScoreReader(models, settings.plan, watch, settings.cache),
            [texts[i] for i in some.tolist()],
        )
        after[some] = reader.read(again, under=copy, stage="reading with the copy").values
    gained = after - sides.scores
    mine, others = mine & np.isfinite(gained), others & np.isfinite(gained)
    base = means(gained[others], documents[others]).mean()
    own = means(gained[mine], documents[mine]) - base if mine.any() else np.zeros(0)
    return PlantedShift(own, planting)
