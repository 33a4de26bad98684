"""The score that takes another model's opinion of the text into account."""

from __future__ import annotations

from dataclasses import dataclass

from pretrace.registry import scores
from pretrace.scores.likelihood import FLOOR, mean_logp, ppl_difference, ppl_ratio
from pretrace.types import Evidence, Needs, Quantity, View


@scores.add("ref")
@dataclass(frozen=True)
class Ref:
    """Minus the ratio of log-perplexities under the target and under a reference model (Carlini et al. 2021).

    ref(x) = −(mean logp(x) / mean logp_ref(x)); with difference=True: mean logp(x) − mean logp_ref(x). With
    perplexity=True minus the ratio, or the difference, of perplexities.
    The reference (`--reference-model`) has its own tokenizer; the difference then compares tokens of
    different lengths, so it is meant for two models that share a tokenizer.

    >>> from pretrace.testing import make_evidence
    >>> Ref()(make_evidence(logp=[-1.0, -2.0, -6.0], reference=[-4.0, -4.0]))
    -0.75
    """

    difference: bool = False
    perplexity: bool = False
    needs = Needs(Quantity.LOGP, View(), View(model="reference"))

    def __call__(self, evidence: Evidence, /) -> float:
        own = mean_logp(evidence.plain.logp)
        reference = mean_logp(evidence.through("reference").plain.logp)
        if self.perplexity:
            return -(ppl_difference if self.difference else ppl_ratio)(own, reference)
        return own - reference if self.difference else -(own / min(reference, -FLOOR))
