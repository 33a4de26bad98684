"""Scores: a number a text, higher where the text looks more like a member.

A new score is one new file in this folder: a frozen dataclass under `@scores.add(name)`, whose fields are
its parameters. A score is a plain callable (`types.Score`); one that has to be fitted first is a
`types.Recipe`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pretrace.registry import scores
from pretrace.types import Recipe, Score

__all__ = ["parse", "scores"]


def parse(expressions: str | Sequence[str]) -> dict[str, Score | Recipe]:
    """Scores by the expressions that name them, as written: "loss,min_k(k=0.1)" → {"loss": …, …}.

    Raises ExpressionError for an unknown name, an unknown parameter or a value out of range.
    """
    written = expressions if isinstance(expressions, str) else ",".join(expressions)
    return {expression: scores.make(expression) for expression in scores.split(written)}
