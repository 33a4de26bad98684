"""A second model, which cannot have seen the texts: nobody is accused unless it finds nothing.

Its own p must lie above the level, and the model in question must show more than a multiple of what it shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pretrace.results.rounding import p_value
from pretrace.types import Check
from pretrace.verdicts.outcome import SECOND

DOSE, MOST_DOSE = 2.0, 3.0
"""How many times as clearly as the second model the target may see what stands in the texts, before it is accused: the
first where both read alike, up to the second where they do not."""
CARRIES = 0.1
"""The correlation of two models' values below which the second model cannot speak for the target."""


@dataclass(frozen=True, slots=True)
class ExcessOverSecondModel:
    """What the target shows beyond a multiple of what the second model shows, as a p-value; the multiple,
    `dose`, is infinite where the second model cannot speak for the target."""

    p: float
    dose: float


def second_model_multiple(correlation: float) -> float:
    """How many times what the second model shows is taken off: 1 / correlation of both models' values, but at least
    `DOSE` and at most `MOST_DOSE`; infinite where they hardly correlate. The less alike two models read, the less the
    one shows what the other would find."""
    if correlation < CARRIES:
        return float("inf")
    return float(np.clip(1 / correlation, DOSE, MOST_DOSE))


@dataclass(frozen=True, slots=True)
class SecondAnswer:
    """What a second model, `name`, gave for the same test: its p-value, and what the target shows beyond it; None where
    there is nothing to compare with it."""

    name: str
    p: float
    beyond: ExcessOverSecondModel | None = None


def second_check(
    answers: Sequence[SecondAnswer], level: float, *, does: str, preferred: str, role: str = SECOND
) -> Check:
    """Each model that cannot have seen the texts must find nothing, and the target must show more than a multiple of
    what it shows. `does` says what is asked of it: "prefers the published order"."""
    title = "A model that cannot have seen the texts does not find the same"
    cure = "Name a model that cannot have seen the texts: an older one, or one of another family. [--placebo]"
    if not answers:
        return Check(role, title, "not run", "No such model was asked.", cure)
    good, told, figures = True, [], {}
    for one in answers:
        verb = "does" if one.p <= level else "does not"
        told.append(f"{one.name} was asked whether it {does}, too: p = {p_value(one.p)}, so it {verb}.")
        figures[f"p of {one.name}"] = one.p
        good = good and one.p > level
        if one.beyond is not None:
            figures |= {f"p beyond {one.name}": one.beyond.p, f"multiple of {one.name}": one.beyond.dose}
            good = good and one.beyond.p <= level
            told.append(_beyond_words(one.name, one.beyond, level))
    cure = (
        f"Something in the texts may make {preferred} likelier for every model, or that model has seen the texts "
        "too. Name another second model, larger and more like the one in question."
    )
    plain = {name: value for name, value in figures.items() if np.isfinite(value)}
    return Check.of(role, title, good, " ".join(told), cure, plain)


def _beyond_words(name: str, rest: ExcessOverSecondModel, level: float) -> str:
    if not np.isfinite(rest.dose):
        return (
            f"But {name} reads these texts so differently from the model in question that it cannot show what every "
            "model would find in them."
        )
    verdict = "It does" if rest.p <= level else "It does not"
    return (
        f"We then tested whether the model in question shows more than {rest.dose:.1f} times what {name} shows: "
        f"p = {p_value(rest.p)}. {verdict}."
    )
