"""Audits that an earlier pretrace wrote, in the fields of today."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pretrace.results.encoding import expect

Plain = dict[str, Any]

_DESIGNS = {"synthetic": "placebos", "heldout": "controls"}


def upgraded(answer: Mapping[str, Any], verdict: Mapping[str, Any], placebo: object) -> tuple[Plain, Plain]:
    """The answer and the other entries of a verdict of format 1, as format 2 has them; KeyError or TypeError where
    they are not of format 1.

    It had two designs, at most one placebo, and a tolerance where there is a margin now.
    """
    facts = dict(expect(answer.get("facts", {}), dict))
    if "tolerance" in facts:
        facts["margin"] = facts.pop("tolerance")
    found = [] if placebo is None else [expect(placebo, dict)]
    if found:
        facts["placebo"] = expect(found[0]["name"], str)
    design = _DESIGNS[expect(verdict["design"], str)]
    return {**answer, "facts": facts}, {**verdict, "design": design, "placebos": found}
