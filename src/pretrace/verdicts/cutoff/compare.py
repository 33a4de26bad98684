"""The test at a training cut-off: read dated texts, take off what is predicted, rank the jump at the cut-off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

import numpy as np

from pretrace.auditing.watch import Timed, Unwatched, Watch
from pretrace.scoring.plan import Models
from pretrace.statistics.permutation import critical
from pretrace.statistics.ranks import fewest_others
from pretrace.types import Backend, Check, Corpus, Doubles, Estimate, Null, Power, Situation, Table, Verdict
from pretrace.verdicts.cutoff import words
from pretrace.verdicts.cutoff.checks import ACCUSING, all_checks
from pretrace.verdicts.cutoff.dates import cutoff_day, dated
from pretrace.verdicts.cutoff.jumps import Jumps, interval, jumps, left
from pretrace.verdicts.cutoff.series import Series, read
from pretrace.verdicts.cutoff.settings import CutoffSettings
from pretrace.verdicts.cutoff.windows import Windows, most_months, windows
from pretrace.verdicts.outcome import Found, conclude, null_histogram
from pretrace.verdicts.planting import planted_shift, rank_power
from pretrace.verdicts.reading import Reader, chosen_score
from pretrace.verdicts.record import record
from pretrace.verdicts.references import check_references
from pretrace.verdicts.settings import ALONE

MONTH = 30.44
MONTHLY = 730
"""Days of a series from which on its means are taken by the month, and not by the week."""


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """The series with its windows, what is `left` of the target's scores [documents] in the fit of the stated cut-off,
    the jumps of the target and of each placebo by name, and the `effect`."""

    series: Series
    windows: Windows
    left: Doubles
    own: Jumps
    beside: dict[str, Jumps]
    effect: Estimate


def cutoff(
    corpus: Corpus,
    models: Models | Backend,
    settings: CutoffSettings,
    *,
    references: Sequence[Backend] = (),
    watch: Watch | None = None,
) -> Verdict:
    """Whether what the model knows of dated texts drops at its stated training cut-off as at no other date.

    `corpus` is read with `settings.date` among its further columns (`Columns.more`). `references` are models with
    other cut-offs, whose scores predict the target's. p is None with too few placebo cut-offs. TextsError for texts
    without a date and a cut-off outside the series, ModelError for a reference that is the target or a placebo, and
    otherwise as for reading and planting.
    """
    models = models if isinstance(models, Models) else Models(models)
    references = (*((models.reference,) if models.reference else ()), *references)
    check_references(models, references)
    score = chosen_score(settings.score or ALONE, models)
    day = cutoff_day(settings.cutoff)
    usable = dated(corpus, settings.date, day, skip_undated=settings.skip_undated)
    windows(usable.days, day, settings.months, settings.fewest)  # before anything is read
    timed = Timed(watch or Unwatched())
    reader = Reader(models, score, timed, settings.cache)
    found = _measured(read(usable, reader, models, references, settings), models, day, settings)
    power = _power(found, reader, settings, timed) if settings.power and found.own.p is not None else None
    verdict = _concluded(found, models, settings, day, power)
    more = {"references": {one.name: dict(one.facts) for one in references}}
    settled = record({"corpus": corpus}, models, settings, score=score, seconds=timed.seconds, more=more)
    return replace(verdict, corpus=corpus.name, settings=settled)


def _measured(series: Series, models: Models, day: date, settings: CutoffSettings) -> Measured:
    found = windows(series.days, day, settings.months, settings.fewest)
    wanted = fewest_others(settings.level)
    if min(found.own.sizes) < settings.fewest:
        found = replace(found, placebos=())
    own = jumps(series.target, series.predictors, found, wanted)
    beside = {
        one.name: jumps(values, series.predictors, found, wanted)
        for one, values in zip(models.placebos, series.placebos, strict=True)
    }
    rest = left(series.target, series.predictors, found.own)
    jump = interval(rest, series.days, found.own, seed=settings.seed)
    usual = float(own.others.mean()) if len(own.others) else 0.0
    effect = Estimate(jump.value - usual, jump.low - usual, jump.high - usual)
    return Measured(series, found, rest, own, beside, effect)


def _concluded(
    found: Measured, models: Models, settings: CutoffSettings, day: date, power: Power | None
) -> Verdict:
    """The verdict, without the names of the texts and how it was made."""
    name = models.target.name
    checks = _checks(found, settings, day)
    said = conclude(
        Found(
            model=name,
            of=f"the texts dated before {day}",
            level=settings.level,
            p=found.own.p,
            effect=found.effect,
            effect_unit=words.unit_of(settings.score),
            planted=power,
            accusing=ACCUSING,
        ),
        checks,
    )
    written = _written(found, models, settings, day, checks)
    noted = (
        ("The power was not measured, as no test could be made.",) if settings.power and power is None else ()
    )
    return replace(
        written,
        outcome=said.outcome,
        statement=said.statement,
        planted=power,
        reasons=(*written.reasons, *said.reasons),
        advice=said.advice,
        notes=(*written.notes, *noted),
    )


def _written(
    found: Measured, models: Models, settings: CutoffSettings, day: date, checks: tuple[Check, ...]
) -> Verdict:
    """All that does not depend on the outcome: what was tested, the figures and the tables."""
    name, inside = models.target.name, int(found.windows.own.inside.sum())
    return Verdict(
        test="cutoff",
        corpus="",
        model=name,
        outcome="inconclusive",
        statement="",
        level=settings.level,
        exact=False,
        assumption=words.ASSUMPTION,
        hypothesis=words.hypothesis(day),
        statistic=words.statistic(settings.months),
        p=found.own.p,
        units=inside,
        unit="document",
        question=f"Was {name} trained on these texts until {day}?",
        compared=words.compared(name, day, settings, inside, len(found.windows.placebos)),
        trust=words.trust(found.own, checks, settings.level),
        null=_null(found.own, settings),
        effect=found.effect,
        effect_unit=words.unit_of(settings.score),
        checks=checks,
        reasons=words.ranked(found.own),
        notes=words.notes(found.series.skipped, len(found.series)),
        figures=_figures(found),
        tables=(_cutoffs(found), _over_time(found), _documents(found)),
        skipped=found.series.skipped,
        situation=_situation(found.series, bool(models.placebos)),
    )


def _checks(found: Measured, settings: CutoffSettings, day: date) -> tuple[Check, ...]:
    wanted = fewest_others(settings.level)
    months = None
    if len(found.windows.placebos) < wanted:
        months = most_months(found.series.days, day, wanted, settings.fewest, settings.months)
    return all_checks(found.windows, found.own, found.beside, found.series.features, settings, months=months)


def _power(found: Measured, reader: Reader, settings: CutoffSettings, watch: Timed) -> Power:
    """The power of the rank, with the shift that training on half of the documents before the cut-off brings."""
    before = np.flatnonzero(found.windows.own.before)
    texts = [found.series.texts[i] for i in before.tolist()]
    predicted = (found.series.target - found.left)[before]

    def scored(model: Backend, stage: str) -> Doubles:
        return reader.read(texts, under=model, stage=stage).values - predicted

    values = scored(reader.models.target, "the target reads the texts before the cut-off")
    shift = planted_shift(
        reader.models.target,
        texts,
        values,
        lambda copy: scored(copy, "the trained copy reads the texts"),
        settings,
        watch,
    )
    return rank_power(found.own.others, shift, settings)


def _null(own: Jumps, settings: CutoffSettings) -> Null | None:
    """The jumps at placebo cut-offs, in their standard deviations from their mean."""
    if own.p is None:
        return None
    middle, spread = float(own.others.mean()), float(own.others.std()) or 1.0
    drawn = (own.others - middle) / spread
    line = critical(drawn, settings.level)
    return null_histogram(drawn, (own.own - middle) / spread, line, words.statistic(settings.months))


def _figures(found: Measured) -> dict[str, object]:
    own = found.own
    return {
        "M": own.breakdown,
        "jump at the cut-off": own.own,
        "largest jump elsewhere": float(np.abs(own.others).max()) if len(own.others) else None,
        "mean jump elsewhere": float(own.others.mean()) if len(own.others) else None,
        "placebo cut-offs": len(own.others),
        "p of placebos": {name: one.p for name, one in found.beside.items()},
        "cut-off": str(found.windows.own.day),
    }


def _cutoffs(found: Measured) -> Table:
    jumped = [found.own.own, *found.own.others.tolist()]
    rows = sorted(zip(found.windows.all, jumped, strict=True), key=lambda row: row[0].k)
    return Table(
        "cutoffs",
        {
            "cut-off": tuple(str(one.day) for one, _ in rows),
            "kind": tuple("stated" if one.k == 0 else "placebo" for one, _ in rows),
            "jump": np.array([jump for _, jump in rows]),
            "before": np.array([float(one.sizes[0]) for one, _ in rows]),
            "after": np.array([float(one.sizes[1]) for one, _ in rows]),
        },
    )


def _documents(found: Measured) -> Table:
    series = found.series
    days = tuple(str(date.fromordinal(day)) for day in series.days.tolist())
    columns: dict[str, tuple[str, ...] | Doubles] = {
        "document": series.names,
        "date": days,
        "score": series.target,
        "left": found.left,
    }
    return Table("documents", columns)


def _over_time(found: Measured) -> Table:
    """Means of what is left by the month, or by the week for a series of less than two years, for the figure."""
    days = [date.fromordinal(day) for day in found.series.days.tolist()]
    monthly = np.ptp(found.series.days) >= MONTHLY
    gathered: dict[date, list[float]] = {}
    for day, value in zip(days, found.left.tolist(), strict=True):
        begin = day.replace(day=1) if monthly else day - timedelta(days=day.weekday())
        gathered.setdefault(begin, []).append(value)
    begins = sorted(gathered)
    return Table(
        "series",
        {
            "from": tuple(map(str, begins)),
            "mean": np.array([float(np.mean(gathered[one])) for one in begins]),
            "documents": np.array([float(len(gathered[one])) for one in begins]),
        },
    )


def _situation(series: Series, checkpoint: bool) -> Situation:
    months = float(np.ptp(series.days)) / MONTH
    return Situation(documents=len(series), dated=len(series), months=round(months, 1), checkpoint=checkpoint)
