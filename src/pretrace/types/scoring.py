"""What turns evidence into a number, and what it may have to be fitted on first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pretrace.types.arrays import Doubles
from pretrace.types.traces import Evidence, Needs


class Score(Protocol):
    """A number a text, from its evidence. Higher always means "more likely a member"."""

    @property
    def needs(self) -> Needs: ...

    def __call__(self, evidence: Evidence, /) -> float: ...


class TokenTable(Protocol):
    """How often each token of one tokenizer occurs in a reference corpus."""

    @property
    def tokenizer_hash(self) -> str: ...

    def log_frequency(self, vocabulary: int) -> Doubles:
        """Laplace-smoothed log f(v) for every id below `vocabulary`."""
        ...


@dataclass(frozen=True, slots=True)
class Reference:
    """What a recipe is fitted on; none of these texts may be scored afterwards."""

    counts: TokenTable | None = None
    vocabulary: int = 0
    """Size of the target's logits table, |V| of the smoothing."""


@runtime_checkable
class Recipe(Protocol):
    """A score that must be fitted first. It is not callable, so forgetting to fit is a type error."""

    @property
    def needs(self) -> Needs: ...

    def fit(self, reference: Reference, /) -> Score: ...
