"""Scores: a number a text, higher where the text looks more like a member.

A new score is one new file in this folder: a frozen dataclass under `@scores.add(name)`, whose fields are
its parameters. A score is a plain callable (`types.Score`); one that has to be fitted first is a
`types.Recipe`.
"""

from __future__ import annotations

from pretrace.registry import scores

__all__ = ["parse", "scores"]


parse = scores.several
"""Scores by the expressions that name them, as written: "loss,min_k(k=0.1)" → {"loss": …, …}."""
