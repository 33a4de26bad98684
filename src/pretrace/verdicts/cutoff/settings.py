"""What is asked of a test at a training cut-off."""

from __future__ import annotations

from dataclasses import dataclass

from pretrace.settings import option
from pretrace.verdicts.settings import TEST, TestSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class CutoffSettings(TestSettings):
    """How dated texts are compared around a cut-off; ExpressionError for a value out of its range."""

    date: str = option(
        "date", "Column of the date: 2024-03-01, or 2024-03.", name="date-column", panel=TEST, essential=True
    )
    cutoff: str = option(
        help="The model's training cut-off, as its makers state it: 2024-03-01, or 2024-03 for its first day.",
        panel=TEST,
        essential=True,
    )
    months: int = option(
        3,
        "Months before and after a cut-off that are compared.",
        panel=TEST,
        least=1,
        most=120,
        essential=True,
    )
    fewest: int = option(5, "Documents that each half of a window must have to count.", panel=TEST, least=2)
    components: int = option(
        2,
        "Directions of the words of all texts that are watched for a change at the cut-off.",
        panel=TEST,
        least=0,
        most=20,
    )
    skip_undated: bool = option(
        False, "Leave texts without a usable date out, and count them.", panel=TEST, essential=True
    )
    score: str = option(
        "loss",
        "The score that reads every text, chosen before any result is seen; one expression, see `pretrace list`.",
        panel=TEST,
    )
