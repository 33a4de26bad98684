"""How many texts a test of marks needs: said before publication, from a copy of a model that reads the texts."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, replace

import numpy as np

from pretrace.scoring.plan import Models
from pretrace.statistics.ranks import lot_effects
from pretrace.types import Backend, Doubles, Power
from pretrace.verdicts.audit.watch import Watch
from pretrace.verdicts.frame import watched
from pretrace.verdicts.marking.sealed import Seal
from pretrace.verdicts.marking.settings import Lot
from pretrace.verdicts.marks import variant_values
from pretrace.verdicts.planting import paired_power, planted_shift
from pretrace.verdicts.reading import Reader
from pretrace.verdicts.settings import TestSettings

FACTOR = 6.2
"""(z of 0.95 + z of 0.8) squared: a one-sided test at 5% with power 0.8 needs this over d² documents."""
ENOUGH = 0.8


@dataclass(frozen=True, slots=True)
class SampleSize:
    """What planting brought: `d` is the mean of a text's difference after training over its spread between texts,
    `documents` how many texts there are, `power` the rest."""

    d: float
    documents: int
    power: Power

    @property
    def formula(self) -> int | None:
        """About 6.2 / d² texts are needed for power 0.8 at 5%; None where training moved nothing."""
        return math.ceil(FACTOR / self.d**2) if self.d > 0 else None


def sample_size(
    seal: Seal,
    models: Models,
    settings: TestSettings,
    *,
    lot: Lot = secrets.randbelow,
    watch: Watch | None = None,
) -> SampleSize:
    """The sample size for a model like `models.target`, of which a copy reads half of the texts.

    The copy reads variants of a fresh draw by `lot`, so that nothing of the sealed one gets into a model. ModelError
    without weights here, TextsError for fewer than eight texts.
    """
    anew = replace(
        seal, documents=tuple(replace(one, drawn=lot(len(one.variants))) for one in seal.documents)
    )
    reader = Reader(models, seal.score, watched(watch), settings.cache)

    def effects(model: Backend, stage: str) -> Doubles:
        rows, _ = variant_values(anew, reader, model, stage, totals=seal.totals)
        found = np.full(len(rows), np.nan)
        whole = [i for i, row in enumerate(rows) if np.isfinite(row).all()]
        found[whole] = lot_effects([rows[i] for i in whole])
        return found

    before = effects(models.target, "reading with the model")
    texts = [one.published for one in anew.documents]
    shift = planted_shift(
        models.target,
        texts,
        before,
        lambda copy: effects(copy, "reading with the copy"),
        settings,
        reader.watch,
        seed=lot(2**32),
    )
    power = paired_power(before, shift, settings)
    places = list(shift.units)
    after = before[places] + shift.moved
    spread = float(np.std(after[np.isfinite(after)], ddof=1))
    d = power.effect.value / spread if spread > 0 else 0.0
    return SampleSize(d, int(np.isfinite(before).sum()), power)


def words_of(found: SampleSize | None, level: float) -> tuple[str, ...]:
    """What to tell the one who marks, a sentence each; `found` is None where nothing was measured."""
    formula = (
        f"A test at 5% with power 0.8 needs about {FACTOR:g} / d² texts, where d is the mean of a text's difference "
        "over its spread."
    )
    if found is None:
        return (
            formula,
            "d was not measured: give --model with an open model like the one that may come, and a copy of it is "
            "trained on the texts.",
        )
    power = found.power
    needed = "no number of texts would do" if power.needed is None else f"{power.needed:,} texts are needed"
    chance = power.probability.value
    said = (
        "That is enough."
        if chance >= ENOUGH
        else "That is not enough: mark more texts, or use variants that differ more."
    )
    by_formula = "" if found.formula is None else f" ({found.formula:,} by the formula)"
    read = "once" if power.epochs == 1 else f"{power.epochs} times"
    return (
        formula,
        f"A copy of the model that read the texts {read} gave d = {found.d:.3f}: for power 0.8 at {level:.0%}, {needed}"
        f"{by_formula}.",
        f"With the {found.documents:,} texts at hand the power is {chance:.2f} "
        f"[{power.probability.low:.2f}, {power.probability.high:.2f}]. {said}",
        "This is the favourable case: texts that are read among billions of others leave a fainter trace.",
    )
