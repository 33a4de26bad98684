"""The checks of the order test that ask no text: what was stated, what placebos say, and whether there is enough."""

from __future__ import annotations

from collections.abc import Mapping

from pretrace.errors import TextsError
from pretrace.types import Check
from pretrace.verdicts.order.settings import OrderSettings
from pretrace.verdicts.order.values import Asked
from pretrace.verdicts.order.words import Words

CURE = "Name a model that cannot have seen the set, such as an older one, with --placebo."
RESULTS = 2.0
"""How many results the orders must give together, as a multiple of 1 / level, for a test to be made."""


def check_enough(chosen: Asked, settings: OrderSettings, words: Words) -> None:
    """TextsError unless the orders give so many results that one in 1 / level is a small part of them."""
    results, wanted = 1.0, RESULTS / settings.level
    for texts in chosen.texts:
        results = min(results * len(texts), wanted)
    if not chosen.units or results < wanted:
        cure = "give more items" if settings.options else "give more rows, --shard-rows 4, or more --shuffles"
        raise TextsError(
            f"{len(chosen.units):,} {words.unit}s whose {words.parts} may change places give {results:,.0f} results in "
            f"all, and a test at the level of {settings.level:g} needs {wanted:,.0f}: {cure}."
            if chosen.units
            else f"there is no {words.unit} whose {words.parts} may change places: {cure}."
        )


def stated_check(settings: OrderSettings) -> Check:
    """Whether it was stated how the published order came about."""
    title = "It is stated how the published order came about"
    if settings.stated.strip():
        return Check("stated", title, "passed", f"It was stated: “{settings.stated.strip()}”.")
    words = "Nothing was stated. Only an order that was drawn by lot has the known chances that the test rests on."
    cure = "Find out how the order came about, and state it with --stated."
    return Check("stated", title, "failed", words, cure)


def placebo_check(tests: Mapping[str, float], level: float) -> Check:
    """Whether the same test finds nothing on models that cannot have seen the set."""
    title = "The same test finds nothing on a model that cannot have seen the set"
    if not tests:
        return Check("placebo", title, "not run", "No such model was named.", CURE)
    out = [name for name, p in tests.items() if p <= level]
    words = "The test gave " + ", ".join(f"p = {p:.3g} for {name}" for name, p in tests.items()) + "."
    cure = (
        "The order means something to a model that never saw it, or that model did see it: name another one."
    )
    return Check("placebo", title, "failed" if out else "passed", words, cure if out else "", dict(tests))
