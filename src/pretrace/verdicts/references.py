"""Reference models of a test: models beside the target whose scores predict its own."""

from __future__ import annotations

from collections.abc import Sequence

from pretrace.errors import ModelError
from pretrace.scoring.plan import Models, check_placebos, weights_of
from pretrace.types import Backend


def check_references(models: Models, references: Sequence[Backend]) -> None:
    """ModelError where a reference model is the target, a placebo, or named twice: it would take everything off."""
    known = {weights_of(models.target): "the target"}
    known |= {weights_of(one): f"the placebo {one.name}" for one in models.placebos}
    for one in references:
        found = known.get(weights_of(one))
        if found:
            raise ModelError(
                f"the reference model {one.name} is {found}, so nothing would be left of its scores: name another "
                "model, each once."
            )
        known[weights_of(one)] = f"the reference model {one.name}, given twice"
    check_placebos(models.target, models.placebos)
