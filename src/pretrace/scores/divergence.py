"""DC-PDD: the divergence between a text's token probabilities and their frequencies in a corpus."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np

from pretrace.errors import TableError
from pretrace.registry import require, scores
from pretrace.types import Doubles, Evidence, FittedScore, Needs, Quantity, Reference, Score

_Variant = Literal["full", "lup", "cld"]
NO_COUNTS = (
    "dc_pdd needs token counts: make them with `pretrace count CORPUS --model MODEL --out counts.npz` "
    "and pass --counts counts.npz."
)


@scores.add("dc_pdd")
@dataclass(frozen=True)
class DCPDD:
    """Mean cross-entropy of token probabilities and corpus frequencies (Zhang et al. 2024d, eq. 5-8).

    α_i = −p_i · log f(t_i), with p_i = exp(logp_i) and f(v) = (count(v) + 1) / (N + |V|), clipped from
    above at `a`; dc_pdd(x) = mean of α_i over the first occurrence of each token in x. Variants of
    figure 2: "cld" neither clips nor selects, "lup" clips and takes all positions, "full" does both.
    "First" counts predicted positions only. Needs token counts (`pretrace count`, `--counts`).

    >>> from pretrace.testing import make_evidence
    >>> log_f = np.log(np.array([0.5, 0.25, 0.25]))
    >>> e = make_evidence(tokens=[0, 1, 1], logp=np.log([0.5, 0.5, 0.25]))
    >>> round(DCPDD(a=10)._divergence(log_f, e), 4)  # (0.5 log 2 + 0.5 log 4) / 2
    0.5199
    """

    a: float = 0.01
    variant: _Variant = "full"
    needs = Needs(Quantity.LOGP, counts=True)
    reference = Needs()

    def __post_init__(self) -> None:
        require(self.a > 0, f"dc_pdd: a is an upper bound above 0; found {self.a}.")
        known = ", ".join(get_args(_Variant))
        good = self.variant in get_args(_Variant)
        require(good, f"dc_pdd: variant must be one of {known}, found {self.variant!r}.")

    def fit(self, reference: Reference, /) -> Score:
        """The score with the corpus frequencies bound to it; TableError where there are none."""
        if reference.counts is None:
            raise TableError(NO_COUNTS)
        log_frequency = reference.counts.log_frequency(reference.vocabulary)
        return FittedScore(self.needs, partial(self._divergence, log_frequency))

    def _divergence(self, log_frequency: Doubles, evidence: Evidence) -> float:
        """Compute the score; `log_frequency` is float64 [vocabulary], natural logarithms."""
        trace = evidence.plain
        alpha = -np.exp(trace.logp.astype(np.float64)) * log_frequency[trace.tokens]
        if self.variant != "cld":
            alpha = np.minimum(alpha, self.a)
        if self.variant == "full":
            _, first = np.unique(trace.tokens, return_index=True)
            alpha = alpha[first]
        return float(alpha.mean())
