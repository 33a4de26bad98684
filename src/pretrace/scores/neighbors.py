"""The score that compares a text with copies of it in which some words were replaced."""

from __future__ import annotations

from dataclasses import dataclass

from pretrace.registry import scores
from pretrace.rewrites import Neighbors
from pretrace.scores.likelihood import mean_logp
from pretrace.types import Evidence, Needs, Quantity, View


@scores.add("neighbor")
@dataclass(frozen=True)
class Neighbor:
    """Mean log-probability of the text above that of its neighbours (Mattern et al. 2023).

    neighbor(x) = mean logp(x) − 1/m Σ_j mean logp(x_j), each mean over the tokens of its own text. In the
    neighbour x_j a share of the tokens, at positions drawn at random, is replaced by words that another
    model (`--neighbors`) finds likely there: drawn from its 50 likeliest words for the place, never the
    word itself. A causal model is given the text before the place, a masked model the text around all
    places of the draw. The rest of the text is unchanged. Neighbours with nothing to predict are left out;
    where none is left the score is 0, as it is where every neighbour equals the text.

    >>> from pretrace.testing import make_evidence, make_trace
    >>> near = {View(rewrite="neighbors(m=2, share=0.15, seed=0)"): (make_trace([-4.0]), make_trace([-5.0, -7.0]))}
    >>> text = make_evidence(logp=[-1.0, -2.0, -6.0])
    >>> Neighbor(m=2)(Evidence(text.text, {**text.views, **near}))
    2.0
    """

    m: int = 25
    share: float = 0.15
    seed: int = 0

    def __post_init__(self) -> None:
        _ = self.rewrite  # which looks at the values

    @property
    def rewrite(self) -> Neighbors:
        """What makes the neighbours."""
        return Neighbors(self.m, float(self.share), self.seed)

    @property
    def needs(self) -> Needs:
        """Log-probabilities of the text and of its neighbours."""
        return Needs(Quantity.LOGP, View(), View(rewrite=self.rewrite.name))

    def __call__(self, evidence: Evidence, /) -> float:
        traces = evidence.views[View(evidence.model, self.rewrite.name)]
        near = [mean_logp(trace.logp) for trace in traces if len(trace)]
        return mean_logp(evidence.plain.logp) - sum(near) / len(near) if near else 0.0
