"""The test of twins: read both versions, take off what is predicted, test the signs, hold them against placebos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pretrace.auditing.watch import Timed, Unwatched, Watch
from pretrace.scoring.plan import Models
from pretrace.statistics.antisymmetric import origin_prediction
from pretrace.statistics.intervals import mean_interval, standardised
from pretrace.statistics.permutation import PermutationTest
from pretrace.types import Backend, Check, Corpus, Doubles, Estimate, Null, Power, Situation, Table, Verdict
from pretrace.verdicts.outcome import Found, conclude, null_of
from pretrace.verdicts.planting import Shift, paired_power, planted_shift
from pretrace.verdicts.reading import Reader, chosen_score
from pretrace.verdicts.record import record
from pretrace.verdicts.references import check_references
from pretrace.verdicts.settings import ALONE
from pretrace.verdicts.twins import words
from pretrace.verdicts.twins.differences import Differences, Signs, again, read
from pretrace.verdicts.twins.pairs import paired
from pretrace.verdicts.twins.settings import TwinSettings

CERTAIN = 0.02
"""A chance closer than this to 0 or 1 leaves nothing to test in a pair."""
CURVE = 25
"""Values of Γ at which p is recorded."""


def twins(
    published: Corpus,
    drafts: Corpus,
    models: Models | Backend,
    settings: TwinSettings | None = None,
    *,
    references: Sequence[Backend] = (),
    watch: Watch | None = None,
) -> Verdict:
    """Whether the target finds published texts likelier than their drafts by more than the versions explain.

    `drafts` has the ids of `published` (`drafts_in` takes them from a column). `references` are models whose scores
    predict the target's; the placebos are those of `models`, and an accusation takes at least one. TextsError for ids
    without a partner, an empty version or fewer than 6 documents; ModelError for a reference that is the target or a
    placebo, and otherwise as for reading and planting.
    """
    settings = settings or TwinSettings()
    models = models if isinstance(models, Models) else Models(models)
    references = (*((models.reference,) if models.reference else ()), *references)
    check_references(models, references)
    score = chosen_score(settings.score or ALONE, models)
    timed = Timed(watch or Unwatched())
    reader = Reader(models, score, timed, settings.cache)
    pairs, scores, beside = read(paired(published, drafts), reader, models, references)
    found = Differences.of(pairs, scores, beside, settings)
    power = _power(found, reader, settings, timed) if settings.power else None
    verdict = _concluded(found, models, settings, power)
    more = {"drafts": drafts.name, "references": {one.name: dict(one.facts) for one in references}}
    corpora = {"corpus": published, "drafts corpus": drafts}
    settled = record(corpora, models, settings, score=score, seconds=timed.seconds, more=more)
    return replace(verdict, corpus=published.name, settings=settled)


def _concluded(found: Differences, models: Models, settings: TwinSettings, power: Power | None) -> Verdict:
    """The verdict, without what names the texts and how it was made."""
    own = found.tested(found.target, settings)
    beside = {
        one.name: found.tested(values, settings)
        for one, values in zip(models.placebos, found.placebos, strict=True)
    }
    checks = (information(found, own), *controls(own, beside))
    name, effect = models.target.name, _effect(found)
    told = words.Told(name, found.pairs, own, beside, settings)
    said = conclude(
        Found(
            model=name,
            of="the published versions of these texts",
            level=settings.level,
            p=own.p,
            effect=effect,
            effect_unit=_unit(settings.score),
            planted=power,
            accusing=("negative controls",),
        ),
        checks,
    )
    written = _written(told, found, models)
    return replace(
        written,
        outcome=said.outcome,
        statement=said.statement,
        effect=effect,
        planted=power,
        checks=checks,
        reasons=(*written.reasons, *said.reasons),
        advice=said.advice,
    )


def _written(told: words.Told, found: Differences, models: Models) -> Verdict:
    """All that does not depend on the outcome: what was tested, the figures and the tables."""
    own, beside, settings = told.own, told.beside, told.settings
    number = len(found.pairs)
    return Verdict(
        test="twins",
        corpus="",
        model=told.model,
        outcome="inconclusive",
        statement="",
        level=settings.level,
        exact=False,
        assumption=words.ASSUMPTION,
        hypothesis=words.HYPOTHESIS,
        statistic=words.STATISTIC,
        p=own.p,
        units=len(found.target),
        unit=found.pairs.unit,
        question=f"Was {told.model} trained on the published versions of these texts?",
        compared=words.compared(told),
        trust=words.trust(told),
        null=_null(own, settings.level),
        effect_unit=_unit(settings.score),
        standardised=standardised(own.left),
        reasons=(words.withstood(told),),
        notes=words.notes(found, models),
        figures=_figures(found, own, beside),
        tables=(_rows(found, own), _curves(own, beside)),
        skipped=found.pairs.skipped,
        situation=Situation(documents=number, drafts=number, checkpoint=bool(models.placebos)),
    )


def _unit(score: str) -> str:
    return "nats a token" if score == ALONE else f"of the score {score}"


def information(found: Differences, own: Signs) -> Check:
    """Whether the texts alone leave it open, for most pairs, which version has the higher score."""
    chances = found.chances(own.left)
    open_ = float(np.mean(np.abs(chances - 0.5) <= 0.5 - CERTAIN))
    return Check(
        "information",
        "Do the texts alone leave open which version is the published one?",
        "passed" if open_ > 0.5 else "failed",
        words.left_open(open_, found.telling),
        words.NO_INFORMATION,
        {"auc": found.telling, "open": open_},
    )


def controls(own: Signs, beside: Mapping[str, Signs]) -> tuple[Check, ...]:
    """Whether there is a placebo, and whether the target's Γ* exceeds that of every placebo."""
    there = Check(
        "placebo",
        "Is there a model that cannot have seen the texts?",
        "passed" if beside else "failed",
        words.THERE if beside else words.NO_PLACEBO,
        "" if beside else words.NAME_A_PLACEBO,
    )
    if not beside:
        return (there,)
    highest = max((one.gamma or 0.0) for one in beside.values())
    exceeded = (own.gamma or 0.0) > highest
    held = exceeded or (own.gamma is None and highest == 0)
    check = Check(
        "negative controls",
        "Does the result withstand more hidden bias than that of every model that cannot have seen the texts?",
        "passed" if held else "failed",
        words.against(own, beside),
        words.LIKER_PLACEBO,
        {"target": own.gamma, **{name: one.gamma for name, one in beside.items()}},
    )
    return there, check


def _effect(found: Differences) -> Estimate:
    """The mean difference of the target, less that of the placebo that makes the most of it.

    The lean of every model towards a polished text falls out with a placebo. The one with the lowest mean is the
    cautious one for "nothing shown", where the upper bound has to be small. No prediction is taken off, since that
    could take off training too.
    """
    lowest = min(found.placebos, key=lambda one: float(one.mean()), default=np.zeros(len(found.target)))
    return mean_interval(found.target - lowest)


def _power(found: Differences, reader: Reader, settings: TwinSettings, watch: Timed) -> Power:
    """The power for the shift that planting brings, less what the regression would take off a shift of all pairs."""
    by_unit: dict[str, list[str]] = {}
    for document, text in zip(found.pairs.documents, found.pairs.published, strict=True):
        by_unit.setdefault(document, []).append(text)
    texts = ["\n\n".join(by_unit[name]) for name in found.pairs.units]
    target = reader.models.target
    shift = planted_shift(target, texts, found.target, again(found, reader), settings, watch)
    share = _remaining(found, float(np.nanmean(shift.moved)))
    return paired_power(found.left(found.target), Shift(shift.units, shift.moved * share), settings)


def _remaining(found: Differences, moved: float) -> float:
    """The share of a shift of every pair that the regression leaves, between 0 and 1."""
    if moved == 0:
        return 1.0

    def taken(values: Doubles) -> Doubles:
        return origin_prediction(values, found.predictors, found.folds)

    lost = float((taken(found.target + moved) - taken(found.target)).mean()) / moved
    return min(1.0, max(0.0, 1 - lost))


def _null(own: Signs, level: float) -> Null:
    """The sum of ranks if the texts were not used, in its standard deviations from its mean."""
    drawn = own.ranks.drawn()
    middle, spread = float(drawn.mean()), float(drawn.std()) or 1.0
    test = PermutationTest(own.p, (own.ranks.observed - middle) / spread, (drawn - middle) / spread)
    return null_of(test, level, words.STATISTIC)


def _figures(found: Differences, own: Signs, beside: Mapping[str, Signs]) -> dict[str, object]:
    return {
        "gamma": own.gamma,
        "p at gamma 1": own.p,
        "gamma of placebos": {name: one.gamma for name, one in beside.items()},
        "p of placebos": {name: one.p for name, one in beside.items()},
        "AUC of the texts alone": found.telling,
        "pairs": len(found.pairs),
        "pairs left out": len(found.pairs.skipped),
    }


def _rows(found: Differences, own: Signs) -> Table:
    columns: dict[str, tuple[str, ...] | Doubles] = {
        found.pairs.unit: found.pairs.units,
        "difference": found.target,
        "left": own.left,
        "chance": found.chances(own.left),
    }
    return Table("pairs", columns)


def _curves(own: Signs, beside: Mapping[str, Signs]) -> Table:
    """p at rising Γ for the target and every placebo."""
    highest = max((one.gamma or 1.0) for one in (own, *beside.values()))
    grid = np.geomspace(1.0, max(4.0, 2 * highest), CURVE)
    models = {"target": own, **{f"placebo {name}": one for name, one in beside.items()}}
    rows = [(label, gamma, one.ranks.p(gamma)) for label, one in models.items() for gamma in grid.tolist()]
    names, gammas, p = zip(*rows, strict=True)
    return Table("sensitivity", {"model": names, "gamma": np.array(gammas), "p": np.array(p)})
