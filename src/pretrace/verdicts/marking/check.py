"""The test of marked texts: does the model prefer, of each text, the variant that was published?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pretrace.errors import TextsError
from pretrace.scoring.plan import Models
from pretrace.statistics.intervals import mean_interval, standardised
from pretrace.statistics.permutation import PermutationTest
from pretrace.types import Check, Estimate, Power, Situation, Verdict
from pretrace.verdicts.marking.seal_checks import (
    TRIES,
    earlier_checks,
    note_check,
    seal_check,
    tries_check,
    weights_of,
)
from pretrace.verdicts.marking.sealed import Seal
from pretrace.verdicts.marking.settings import CheckSettings
from pretrace.verdicts.marking.values import (
    Unit,
    Values,
    effect_unit,
    effects_under,
    enough_check,
    placebo_check,
    timed_watch,
    values_of,
)
from pretrace.verdicts.outcome import Found, conclude, null_of
from pretrace.verdicts.planting import paired_power, planted_shift
from pretrace.verdicts.reading import Reader, Watched, chosen_score
from pretrace.verdicts.record import record
from pretrace.verdicts.settings import ALONE, BESIDE, TestSettings

STATISTIC = (
    "the sum over texts of the published variant's value less the mean of all its variants' values, over its standard "
    "deviation in fresh draws"
)


@dataclass(frozen=True, slots=True, eq=False)
class Tested:
    """The values, the test on them, the checks, the effect and what planting brought."""

    values: Values
    test: PermutationTest
    checks: tuple[Check, ...]
    effect: Estimate | None
    planted: Power | None


def check_marks(
    seal: Seal,
    models: Models,
    settings: CheckSettings,
    *,
    statements: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    watch: Watched | None = None,
) -> Verdict:
    """The verdict of a sealed file on `models.target`: an exact test, whatever the model is.

    Each placebo of `models` is tested in the same way and must show nothing. The test is noted in this machine's
    register unless `settings.cache` is False. Errors as for `read`, TextsError where no text can be tested.
    """
    timed = timed_watch(watch)
    score = chosen_score(settings.score or ("" if models.reference is not None else seal.score), models)
    totals = seal.totals and score in (ALONE, BESIDE)
    asked = {"score": score, "reference": weights_of(models.reference) if models.reference else ""}
    weights = weights_of(models.target)
    first = (seal_check(seal), tries_check(earlier_checks(seal), weights, asked))
    units = [Unit(one.id, one.realised_first) for one in seal.documents]
    reader = Reader(models, score, timed, settings.cache)
    published = [one.published for one in seal.documents]
    found = by_lot(reader, units, settings, totals=totals, unit="text", planted=published)
    found = replace(found, checks=(*first, *found.checks))
    more = {"sealed": seal.described, "totals": totals}
    recorded = record(
        {"corpus": seal.corpus}, models, settings, score=score, seconds=timed.seconds, more=more
    )
    verdict = _verdict(seal, models, settings, found, recorded)
    verdict = replace(verdict, statements=dict(statements or {}), notes=(*verdict.notes, *notes))
    if settings.cache:
        note_check(seal, weights, verdict, asked)
    return verdict


def by_lot(
    reader: Reader,
    units: Sequence[Unit],
    settings: TestSettings,
    *,
    totals: bool,
    unit: str,
    planted: Sequence[str],
) -> Tested:
    """The test by lot of units, with its checks; `planted` holds the text of each that a copy is trained on, for the
    power."""
    values = values_of(reader, units, totals=totals, stage="reading with the target")
    if not values.usable:
        raise TextsError(f"no {unit} can be tested: {values.skipped[0].reason}.")
    test = values.test(settings)
    checks = [enough_check([len(values.rows[i]) for i in values.usable], settings.level, unit)]
    for place, placebo in enumerate(reader.models.placebos, 1):
        other = values_of(reader, units, totals=totals, under=placebo, stage=f"reading with {placebo.name}")
        if other.usable:
            checks.append(placebo_check(placebo.name, place, other.test(settings), settings.level))
    effects = values.effects
    finite = effects[np.isfinite(effects)]
    power = None
    if settings.power:
        again = effects_under(reader, units, totals=totals)
        shift = planted_shift(reader.models.target, planted, effects, again, settings, reader.watch)
        power = paired_power(effects, shift, settings)
    effect = mean_interval(finite) if len(finite) > 1 else None
    return Tested(values, test, tuple(checks), effect, power)


def _verdict(
    seal: Seal,
    models: Models,
    settings: CheckSettings,
    found: Tested,
    recorded: Mapping[str, Any],
) -> Verdict:
    effects = found.values.effects
    name, number = models.target.name, len(found.values.usable)
    unit = effect_unit(str(recorded["score"]), totals=bool(recorded["totals"]))
    of = f"the published texts of {seal.name}"
    test = Found(name, of, settings.level, found.test.p, found.effect, unit, found.planted, (TRIES,))
    result = conclude(test, found.checks)
    return Verdict(
        test="marks",
        corpus=seal.name,
        model=name,
        outcome=result.outcome,
        statement=result.statement,
        level=settings.level,
        exact=True,
        assumption=ASSUMPTION,
        hypothesis="The values of the variants do not depend on which of them were drawn and published.",
        statistic=STATISTIC,
        p=found.test.p,
        units=number,
        unit="text",
        question=f"Was {name} trained on the published texts of {seal.name}?",
        compared=_compared(seal, name),
        trust=(TRUST, KNOWN),
        null=null_of(found.test, settings.level, STATISTIC),
        effect=found.effect,
        effect_unit=unit,
        standardised=standardised(effects[np.isfinite(effects)]),
        planted=found.planted,
        checks=found.checks,
        reasons=result.reasons,
        advice=result.advice,
        notes=(*seal.notes, *_cut_note(found.values)),
        figures=_figures(seal, found.values),
        tables=(found.values.table("texts"),),
        skipped=found.values.skipped,
        situation=Situation(documents=number),
        settings=recorded,
    )


ASSUMPTION = (
    "For every text one variant was drawn by lot and published, and the others were kept secret until the model was "
    "trained. The draw was fixed beforehand by the commitment."
)
TRUST = (
    "A model that was not trained on the published texts cannot know what the lot decided. So it prefers the published "
    "variant of a text only by chance, whatever the model is and whatever the texts are about."
)
KNOWN = (
    "The result says that the published versions reached the model. It does not say by which way: a copy of them, a "
    "quotation, or another site that took them over would give the same result."
)


def _compared(seal: Seal, model: str) -> tuple[str, ...]:
    made = {
        "columns": "were written by the owner of the texts",
        "texts": "were written by the owner of the texts",
        "rewriter": "were written by a model that rewrote the text",
        "words": "differ in a few words",
        "canary": "differ in the last word of one added sentence",
    }[seal.source]
    return (
        f"Before publication there were several variants of each text. They {made}. A lot decided which of them was "
        "published, and the choice was sealed in a file.",
        f"Now it was measured how likely {model} finds every variant. A model that was trained on the published "
        "variants finds them more likely than the ones that nobody has seen.",
    )


def _figures(seal: Seal, values: Values) -> dict[str, Any]:
    effects = values.effects
    sizes = [len(values.rows[i]) for i in values.usable]
    return {
        "marked texts": len(seal.documents),
        "texts without variants": len(seal.unmarked),
        "variants a text": f"{min(sizes)}" if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}",
        "texts whose published variant lies above the others' mean": int(np.count_nonzero(effects > 0)),
    }


def _cut_note(values: Values) -> tuple[str, ...]:
    if not values.cut:
        return ()
    return (f"{values.cut:,} texts are longer than the model reads; what differs beyond that takes no part.",)
