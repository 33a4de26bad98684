"""What must hold besides the rank: enough placebo cut-offs, texts that do not change, no drift, silent placebos."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pretrace.statistics.ranks import fewest_others, joint_extremeness
from pretrace.types import Check, Doubles
from pretrace.verdicts.cutoff.jumps import Jumps, trend
from pretrace.verdicts.cutoff.settings import CutoffSettings
from pretrace.verdicts.cutoff.windows import Windows

ACCUSING = ("breakdown", "drift", "sizes")
"""Checks that withhold only "consistent with training"."""
SMALLEST = 0.5
"""The documents at the cut-off that a difference rests on, over the median at placebo cut-offs; below it, the jump at
the cut-off varies by chance clearly more than they do."""


def all_checks(
    found: Windows,
    own: Jumps,
    beside: Mapping[str, Jumps],
    features: Doubles,
    settings: CutoffSettings,
    *,
    months: int | None,
) -> tuple[Check, ...]:
    """The checks; `months` is the largest half of a window with which the series would have enough placebo cut-offs."""
    first = enough(found, settings, months)
    if first.status == "failed":
        return (first,)
    return (
        first,
        blind(found, features, settings.level),
        breakdown(own),
        drift(found, own, settings.level),
        sizes(found),
        placebos(beside, settings.level),
    )


def enough(found: Windows, settings: CutoffSettings, months: int | None) -> Check:
    """Whether the cut-off has documents enough, and there are as many placebo cut-offs as the level takes."""
    wanted, there = fewest_others(settings.level), len(found.placebos)
    title = "Are there enough other dates to compare the cut-off with?"
    figures = {"placebo cut-offs": there, "wanted": wanted, "months": settings.months}
    before, after = found.own.sizes
    if min(before, after) < settings.fewest:
        words = (
            f"Around the cut-off lie {before:,} documents before and {after:,} after it, and --fewest asks for "
            f"{settings.fewest} on each side."
        )
        return Check(
            "dates", title, "failed", words, "Give more documents of that time, or more --months.", figures
        )
    words = (
        f"A level of {settings.level:g} takes {wanted} placebo cut-offs, dates at which nothing happened, with "
        f"{settings.fewest} documents in the {settings.months} months on each side; the series has {there}."
    )
    if there >= wanted:
        return Check("dates", title, "passed", words, "", figures)
    cure = (
        f"With --months {months} this series has {wanted} of them."
        if months
        else f"No number of months gives {wanted} with this series: give {wanted - there} more spans of "
        f"{settings.months} months."
    )
    return Check("dates", title, "failed", f"{words} {wanted - there} are missing.", cure, figures)


def blind(found: Windows, features: Doubles, level: float) -> Check:
    """Whether the texts themselves change at the cut-off more than at other dates."""
    ranked = joint_extremeness(np.array([one.jump(features) for one in found.all]))
    return Check(
        "texts",
        "Do the texts stay as they are at the cut-off?",
        "failed" if ranked.p <= level else "passed",
        "The length of the texts, how well they compress and their main subjects were compared before and after every "
        f"date. The largest change at the cut-off has rank p = {ranked.p:.3g} among all dates"
        + ("; the texts themselves change at the cut-off." if ranked.p <= level else "."),
        "Use texts of one source and kind, whose length, layout and subjects did not change around the cut-off.",
        {"p": ranked.p},
    )


def breakdown(own: Jumps) -> Check:
    """Whether the jump at the cut-off is larger than the largest, up or down, at any other date."""
    value = own.breakdown
    return Check(
        "breakdown",
        "Is the change at the cut-off larger than every change at another date, in either direction?",
        "passed" if value is not None and value > 1 else "failed",
        f"The change at the cut-off is {value or 0:.2f} times the largest change at another date (M*). A trend that "
        "bends by that much more than it ever did elsewhere could explain it.",
        "Add reference models with other cut-offs (--reference-model): they take off what makes texts of one "
        "time easier.",
        {"M": value},
    )


def drift(found: Windows, own: Jumps, level: float) -> Check:
    """Whether the jumps at placebo cut-offs have a trend in time, which the rank does not allow for."""
    slope, p = trend(found, own.others)
    return Check(
        "drift",
        "Are changes at other dates alike over the years?",
        "failed" if p <= level else "passed",
        f"Changes at other dates move by {slope:.4f} from one date to the next (p = {p:.3g} for no trend).",
        "Use a shorter series around the cut-off, or reference models with other cut-offs (--reference-model).",
        {"slope": slope, "p": p},
    )


def sizes(found: Windows) -> Check:
    """Whether the jump at the cut-off rests on about as many documents as the others."""
    usual = float(np.median([one.weight for one in found.placebos]))
    before, after = found.own.sizes
    return Check(
        "sizes",
        "Are there about as many documents around the cut-off as around other dates?",
        "passed" if found.own.weight >= SMALLEST * usual else "failed",
        f"{before:,} documents lie before and {after:,} after the cut-off; with fewer than elsewhere, a large change "
        "comes by chance more easily.",
        "Give more documents of the time around the cut-off.",
        {"cut-off": found.own.weight, "median": usual},
    )


def placebos(beside: Mapping[str, Jumps], level: float) -> Check:
    """Whether the same rank is silent for models with another cut-off."""
    title = "Is there no such change for models with another cut-off?"
    if not beside:
        return Check(
            "placebos",
            title,
            "not run",
            "No placebo was named.",
            "Name a model with another cut-off with --placebo.",
        )
    ranks = {name: one.p for name, one in beside.items()}
    loud = [name for name, p in ranks.items() if p is not None and p <= level]
    shown = ", ".join(f"{name} p = {p:.3g}" for name, p in ranks.items() if p is not None)
    return Check(
        "placebos",
        title,
        "failed" if loud else "passed",
        f"The same test with models that have another cut-off gave: {shown}.",
        "The texts change at the cut-off for models that were not trained until then, too: name reference models "
        "(--reference-model), or use texts of another source.",
        ranks,
    )
