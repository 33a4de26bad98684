"""What an evaluation found, in sentences that a lawyer and a researcher can both lean on.

Every sentence says only what the figures carry. "At chance" means that a 95% interval holds 0.5; "does
as well" that the interval of a paired difference does not lie above 0, and "survives the placebo" that it does.
"""

from __future__ import annotations

from pretrace.scoring.findings.baselines import BLIND, LENGTH, blind, blind_of, length
from pretrace.scoring.findings.controls import labels, survival
from pretrace.scoring.findings.figures import best_of
from pretrace.scoring.findings.scores import headline, looks, others, reach
from pretrace.scoring.findings.texts import Circumstances, accuracies, documents
from pretrace.types import Evaluation

__all__ = ["BLIND", "LENGTH", "Circumstances", "best_of", "blind_of", "sentences"]


def sentences(evaluation: Evaluation, circumstances: Circumstances) -> tuple[str, ...]:
    """The findings of an evaluation, the most important first."""
    rows = evaluation.rows
    scores = [row for row in rows if row.kind == "score"]
    bag = blind_of(rows)
    survived = survival(rows, circumstances.placebo)
    found = [
        *headline(scores),
        *survived,
        *reach(scores, named=bool(survived)),
        *(blind(bag, best_of(scores), circumstances.lead) if bag else ()),
        circumstances.blind_note,
        *length(rows),
        *labels(rows, circumstances.shuffles),
        *others(scores),
        *looks(scores),
        *circumstances.partial,
        *documents(evaluation, circumstances),
        *accuracies(evaluation),
    ]
    return tuple(sentence for sentence in found if sentence)
