"""What is asked of a test of twins."""

from __future__ import annotations

from dataclasses import dataclass

from pretrace.settings import option
from pretrace.verdicts.settings import TEST, TestSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinSettings(TestSettings):
    """How twins are compared; ExpressionError for a value out of its range."""

    score: str = option(
        "loss",
        "The score that reads every version, chosen before any result is seen; one expression, see `pretrace list`.",
        panel=TEST,
    )
    components: int = option(
        3,
        "Directions of the words in which versions differ, among what the texts alone tell of a version.",
        panel=TEST,
        least=0,
        most=50,
    )
