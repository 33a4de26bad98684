"""Placebos, models like the target that never saw the texts: their grade, and the bias measured on such models.

A target that knows a domain better than its placebo finds true text likelier than generated text even where it never
saw the texts. How far differs from domain to domain and grows with exposure, so no number fits all. The margin of an
audit without control documents is the largest bias, "lean", that was measured on any domain, exposure and size
(`leans.json`); docs/audit.md says how often it holds on a domain that was left
out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Literal

import numpy as np

from pretrace.types import Backend, Check, Design, Lean, Placebo
from pretrace.verdicts.audit.data import SampleLogprobs
from pretrace.verdicts.audit.designs import PLACEBO

_SAME_ORIGIN = 0.2
"""The likeness of weights above which two models have a common past: trained apart they are at 0.00."""

WORDS = {
    "own": "the target in an earlier state (its base, or an earlier checkpoint). That is the best placebo there is, if "
    "it is the last state before the texts can have come in",
    "sibling": "of the target's family, with the same tokens, but trained apart from it",
    "other": "of another family than the target",
}


@cache
def leans() -> tuple[Lean, ...]:
    """The measured leans, one a domain and exposure, in the unit of the audit's values."""
    text = files("pretrace.verdicts.audit").joinpath("leans.json").read_text(encoding="utf-8")
    return tuple(Lean(**row) for row in json.loads(text)["leans"])


def margin(found: tuple[Lean, ...]) -> float:
    """The largest of the leans, 0 without any."""
    return max((lean.value for lean in found), default=0.0)


def graded(target: Backend, placebo: Backend) -> Placebo:
    """The placebo with its grade, found from weights and tokens; no text is read."""
    from pretrace.backends.huggingface import likeness

    alike = likeness(target, placebo)
    grade = _grade(target, placebo, alike)
    facts = {
        "likeness": alike,
        **{key: placebo.facts.get(key) for key in ("family", "parameters", "revision", "weights")},
    }
    return Placebo(placebo.name, grade, None, WORDS[grade], facts)


def closeness(target: SampleLogprobs, placebo: SampleLogprobs, *, by_byte: bool) -> float:
    """The correlation of both models' mean log-probabilities on text that neither was trained on."""
    one, other = (
        found.heldout.per_byte if by_byte else found.heldout.per_token for found in (target, placebo)
    )
    if len(one) < 2 or not one.std() or not other.std():
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def placebo_check(placebos: Sequence[Placebo], design: Design) -> Check:
    """Whether what the target is compared with is enough for a verdict of this design."""
    title = "The target is compared with a model that never saw the texts"
    family = [one for one in placebos if one.grade != "other"]
    if design == "controls" and not family:
        words = (
            "No model of the target's family took part: the target was looked at alone. Control documents that are "
            "like the suspect ones make the test valid without one; a placebo would let it see more."
        )
        return Check("placebo", title, "not run", words, PLACEBO)
    if not family:
        words = (
            "There is no placebo of the target's family. Whatever makes these texts special for the target may make "
            "them special for every model."
        )
        return Check("placebo", title, "failed", words, PLACEBO)
    words = " ".join(_sentence(one) for one in family)
    words += " That it never saw the texts is the statement of the one who asks; no test can show it."
    figures = {one.name: {"grade": one.grade, "closeness": one.closeness, **one.facts} for one in placebos}
    return Check("placebo", title, "passed", words, figures=figures)


def _sentence(placebo: Placebo) -> str:
    words = f"{placebo.name} is {placebo.words}."
    if placebo.closeness is None:
        return words
    return f"{words} On texts that neither was trained on the two agree to a correlation of {placebo.closeness:.3f}."


def _grade(target: Backend, placebo: Backend, alike: float | None) -> Literal["own", "sibling", "other"]:
    if placebo.tokenizer_hash != target.tokenizer_hash:
        return "other"
    if alike is not None and alike >= _SAME_ORIGIN:
        return "own"
    if "server" in placebo.facts or "server" in target.facts:
        return "sibling"  # the family is not known there; the same tokens speak for it
    return "sibling" if placebo.facts.get("family") == target.facts.get("family") else "other"
