"""The score of tokens that the model was sure of, and wrong."""

from __future__ import annotations

from dataclasses import dataclass

from pretrace.registry import require, scores
from pretrace.scores.likelihood import mean_of
from pretrace.scores.min_k import lowest
from pretrace.types import Evidence, Needs, Quantity


@scores.add("surp")
@dataclass(frozen=True)
class Surprising:
    """Mean log-probability of tokens that are unlikely where the model is sure (SURP, Zhang and Wu 2024).

    Of the lowest max(1, int(k·n)) logp_i, surp(x) = mean of those where the entropy of the model's distribution, in
    nats, is below `entropy`. Where none of them is, the one of lowest entropy counts alone; the paper leaves this
    open.

    >>> from pretrace.testing import make_evidence
    >>> e = make_evidence(logp=[-1.0, -5.0, -6.0], mean=[-1.0, -1.5, -4.0], std=[1.0, 1.0, 2.0])
    >>> Surprising(k=0.7)(e)  # entropy = −mean
    -5.0
    """

    k: float = 0.2
    entropy: float = 2.0
    needs = Needs(Quantity.LOGP | Quantity.MOMENTS)

    def __post_init__(self) -> None:
        require(0 < self.k <= 1, f"surp: k is a share of the tokens, above 0 and at most 1; found {self.k}.")
        require(self.entropy > 0, f"surp: entropy is a bound in nats, above 0; found {self.entropy}.")

    def __call__(self, evidence: Evidence, /) -> float:
        trace = evidence.plain
        assert trace.mean is not None  # `needs` asked for it
        unlikely = trace.logp <= lowest(trace.logp, self.k).max()
        entropy = -trace.mean
        sure = unlikely & (entropy < self.entropy)
        if not sure.any():
            sure = unlikely & (entropy == entropy[unlikely].min())
        return mean_of(trace.logp[sure])
