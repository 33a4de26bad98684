"""One value a document, and the test on those: pieces of one document are not independent, documents are.

The default test of an audit. For each place in the suspect texts: how much likelier the target finds what
stands there than the placebo does, token by token and bounded, less the same for what a generator wrote there
instead. What sets true from generated text apart works on both models; training on the texts works on one.

No generator is perfect: a target that only knows the domain better than the placebo does leans a little towards
the true text. So the difference must exceed `TOLERANCE`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pretrace.inference.reading import Leads
from pretrace.inference.sides import Sides
from pretrace.statistics.clustering import effective, intraclass
from pretrace.statistics.permutation import (
    by_document,
    difference_interval,
    mean_interval,
    sign_flip,
    standardised,
    two_sample,
)
from pretrace.types import Answer, Doubles

TOLERANCE = 0.04
"""The bounded difference that an imperfect generator may explain, of 1 at most. Models that were trained on
other documents of the domain leaned by 0.03 in the pilot that it was chosen on (docs/audit.md)."""
UNIT = "of a typical token's lead"


@dataclass(frozen=True, slots=True, eq=False)
class DocumentValues:
    """The value of each suspect document, and of each held-out one where the two sides are not paired.

    Values of pairs are what is left of the difference when `tolerance` is taken off.
    """

    documents: tuple[str, ...]
    values: Doubles
    heldout_documents: tuple[str, ...] = ()
    heldout_values: Doubles = field(default_factory=lambda: np.zeros(0))
    tolerance: float = 0.0

    @property
    def paired(self) -> bool:
        """Whether a value is a difference within its document already."""
        return not self.heldout_documents


def of_leads(sides: Sides, leads: Leads, *, tolerance: float = TOLERANCE) -> DocumentValues:
    """The values by document from the leads on the pieces; of pairs the difference is averaged, less `tolerance`."""
    mine = [piece.document for piece in sides.suspect]
    if sides.paired:
        documents, values = by_document(leads.suspect - leads.heldout - tolerance, mine)
        return DocumentValues(documents, values, tolerance=tolerance)
    theirs = [piece.document for piece in sides.heldout]
    return DocumentValues(*by_document(leads.suspect, mine), *by_document(leads.heldout, theirs))


def p_value(found: DocumentValues, *, seed: int = 0, draws: int = 10_000) -> float:
    """The one-sided p that the suspect documents' values lie above 0, or above those of the held-out ones."""
    if found.paired:
        return sign_flip(found.values, flips=draws, seed=seed)
    return two_sample(found.values, found.heldout_values, permutations=draws, seed=seed)


def reversed_p(found: DocumentValues, *, seed: int = 0, draws: int = 10_000) -> float:
    """The p of the opposite: that the values lie below, by more than the tolerance, which no training explains."""
    values = -found.values - 2 * found.tolerance
    turned = DocumentValues(found.documents, values, found.heldout_documents, -found.heldout_values)
    return p_value(turned, seed=seed, draws=draws)


def answer(sides: Sides, leads: Leads, *, seed: int, tolerance: float = TOLERANCE) -> Answer:
    """The default procedure on the leads of target over placebo."""
    found = of_leads(sides, leads, tolerance=tolerance)
    pieces = leads.suspect - leads.heldout if sides.paired else leads.suspect
    names = [piece.document for piece in sides.suspect]
    if found.paired:
        statistic = f"sign-flip permutation test of document means, less a tolerance of {tolerance:g}"
        effect, size = mean_interval(found.values), standardised(found.values)
    else:
        statistic = "two-sample permutation test of document means"
        effect = difference_interval(found.values, found.heldout_values)
        size = standardised(found.values, found.heldout_values)
    return Answer(
        procedure="pretrace",
        p=p_value(found, seed=seed),
        statistic=statistic,
        documents=len(found.documents),
        pieces=len(sides.suspect),
        effect=effect,
        unit=UNIT,
        standardised=size,
        facts={
            "permutations": 10_000,
            "tolerance": found.tolerance,
            "scale_nats": leads.scale,
            "lead_on_suspect": float(leads.suspect.mean()),
            "lead_on_heldout": float(leads.heldout.mean()),
            "intraclass_correlation": intraclass(pieces, names),
            "effective_pieces": effective(pieces, names),
            "heldout_documents": len(found.heldout_documents),
        },
    )
