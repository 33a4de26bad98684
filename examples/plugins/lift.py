"""A score that is fitted on token counts first."""

from dataclasses import dataclass

import numpy as np

from pretrace.errors import TableError
from pretrace.registry import scores
from pretrace.types import Doubles, Evidence, Needs, Quantity, Reference, Score


@scores.add("lift")
@dataclass(frozen=True)
class Lift:
    """Mean gain of the model over the token frequencies of a corpus (an example, 2026).

    lift(x) = 1/n Σ (logp_i − log f(t_i))
    """

    needs = Needs(Quantity.LOGP)
    reference = Needs()

    def fit(self, reference: Reference, /) -> Score:
        if reference.counts is None:
            raise TableError("lift needs token counts: make them with `pretrace count`, pass --counts.")
        return FittedLift(reference.counts.log_frequency(reference.vocabulary))


@dataclass(frozen=True)
class FittedLift:
    log_frequency: Doubles
    needs = Needs(Quantity.LOGP)

    def __call__(self, evidence: Evidence, /) -> float:
        trace = evidence.plain
        return float(np.mean(trace.logp - self.log_frequency[trace.tokens]))
