"""A score in a file."""

from dataclasses import dataclass

import numpy as np

from pretrace.registry import require, scores
from pretrace.types import Evidence, Needs, Quantity


@scores.add("confident")
@dataclass(frozen=True)
class Confident:
    """Share of the tokens that the model held at least as likely as p (an example, 2026).

    confident(x) = 1/n · number of tokens with logp_i ≥ log p
    """

    p: float = 0.5
    needs = Needs(Quantity.LOGP)

    def __post_init__(self) -> None:
        require(0 < self.p < 1, f"confident: p is a probability between 0 and 1; found {self.p}.")

    def __call__(self, evidence: Evidence, /) -> float:
        return float(np.mean(evidence.plain.logp >= np.log(self.p)))
