"""Options and models of the tests that take what several reference models predict off the target's scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from pretrace.cli.verdicts import named, opened
from pretrace.scoring.plan import Models
from pretrace.scoring.settings import Target
from pretrace.settings import MODEL, like, option
from pretrace.types import Backend
from pretrace.verdicts.settings import Beside, TestSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideSeveral:
    """Models beside the target, any number of reference models among them, and where the result goes."""

    reference_model: tuple[str, ...] = option(
        (),
        "A model of another family or with another cut-off: what it predicts of a text's score is taken off. Name it "
        "before you look at a result; any --model value. May be given more than once.",
        panel=MODEL,
        path="in",
        essential=True,
    )
    placebo: tuple[str, ...] = like(Beside, "placebo")
    placebo_revision: str | None = like(Beside, "placebo_revision")
    placebo_note: str = like(Beside, "placebo_note")
    requested_by: str = like(Beside, "requested_by")
    out: Path = like(Beside, "out")

    @property
    def alone(self) -> Beside:
        """The same without the reference models."""
        return Beside(
            placebo=self.placebo,
            placebo_revision=self.placebo_revision,
            placebo_note=self.placebo_note,
            requested_by=self.requested_by,
            out=self.out,
        )


def opened_several(
    target: Target, beside: BesideSeveral, settings: TestSettings
) -> tuple[Models, tuple[Backend, ...]]:
    """The target with its placebos, the packaged model where none is named and it is no other of them, and the
    reference models in the order they were named; errors as in `named` and `opened`."""
    from pretrace.scoring.models import open_references
    from pretrace.scoring.placebos import weights_of
    from pretrace.verdicts.frame import with_second

    wanted = replace(named(target, beside.alone, settings), references=beside.reference_model)
    models, references = opened(wanted), open_references(wanted)
    beside_it = with_second(models, device=wanted.target.opening.device)
    known = [weights_of(one) for one in references]
    return (models if any(weights_of(one) in known for one in beside_it.placebos) else beside_it), references
