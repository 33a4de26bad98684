"""The placebo: a model like the target that never saw the texts, and how good a one it is."""

from __future__ import annotations

from typing import Literal

import numpy as np

from pretrace.errors import ModelError
from pretrace.inference.reading import Readings, bytewise, lead
from pretrace.types import Backend, Check, Doubles, Placebo

SAME_ORIGIN = 0.2
"""The likeness of weights above which two models have a common past: trained apart they are at 0.00."""

WORDS = {
    "own": "the target in an earlier state (its base, or an earlier checkpoint). That is the best placebo there is "
    "if it is the last state before the texts can have come in; one from long before knows the language less well, "
    "and leans",
    "sibling": "of the target's family, with the same tokens, but trained apart from it",
    "other": "of another family than the target",
}


def check_placebo(target: Backend, placebo: Backend) -> None:
    """ModelError where the placebo is the target itself."""
    if placebo.facts.get("weights") == target.facts.get("weights") is not None:
        raise ModelError(
            f"the placebo {placebo.name} has the very weights of the target: a placebo is a model that was not "
            "trained on the texts, such as an earlier checkpoint (--placebo-revision) or the base of a fine-tune."
        )


def graded(target: Backend, placebo: Backend, readings: tuple[Readings, Readings]) -> Placebo:
    """The placebo with its grade; `readings` are those of target and placebo."""
    from pretrace.backends.likeness import likeness

    alike = likeness(target, placebo)
    grade = _grade(target, placebo, alike)
    by_byte = bytewise(target, placebo)
    values = [lead(one.heldout, bytewise=by_byte) for one in readings]
    closeness = _correlation(*values)
    facts = {
        "likeness": alike,
        **{key: placebo.facts.get(key) for key in ("family", "parameters", "weights")},
    }
    return Placebo(placebo.name, grade, closeness, WORDS[grade], facts)


def placebo_check(placebo: Placebo | None) -> Check:
    """Whether what the target is held against can carry a verdict."""
    title = "The target is held against a model that never saw the texts"
    cure = (
        "Name the base the target was tuned from, its last checkpoint before the texts can have come in (--placebo, "
        "--placebo-revision), or a sibling trained as long without them."
    )
    if placebo is None:
        words = (
            "There is no placebo. What sets these texts apart in the target may set them apart in any model."
        )
        return Check("placebo", title, "failed", words, cure)
    words = f"{placebo.name} is {placebo.words}. On texts that neither was trained on the two agree to a correlation "
    words += (
        f"of {placebo.closeness:.3f}. That it never saw the texts is your statement; no test can show it."
    )
    figures = {"grade": placebo.grade, "closeness": placebo.closeness, **placebo.facts}
    if placebo.grade == "other":
        words += " Two families differ on any text, for reasons that have nothing to do with training on it."
        return Check("placebo", title, "failed", words, cure, figures)
    return Check("placebo", title, "passed", words, figures=figures)


def _grade(target: Backend, placebo: Backend, alike: float | None) -> Literal["own", "sibling", "other"]:
    if placebo.tokenizer_hash != target.tokenizer_hash:
        return "other"
    if alike is not None and alike >= SAME_ORIGIN:
        return "own"
    return "sibling" if placebo.facts.get("family") == target.facts.get("family") else "other"


def _correlation(one: Doubles, other: Doubles) -> float:
    if len(one) < 2 or not one.std() or not other.std():
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])
