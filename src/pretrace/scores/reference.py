"""The score that takes another model's opinion of the text into account."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pretrace.errors import ModelError
from pretrace.registry import scores
from pretrace.scores.likelihood import FLOOR, mean_logp, ppl_difference, ppl_ratio
from pretrace.types import Doubles, Evidence, Needs, Quantity, View

PAIRED = Needs(Quantity.LOGP, View(), View(model="reference"), paired=True)
"""Log-probabilities of the same tokens under the target and under the reference model."""


def gains(evidence: Evidence) -> tuple[Doubles, slice]:
    """How much likelier the target finds each token than the reference model does, logp − logp_ref, in nats, and the
    part of the target's trace that this is: one model may predict a token before the first of the other.

    ModelError where the two read other tokens.

    >>> from pretrace.testing import make_evidence
    >>> gains(make_evidence(logp=[-1.0, -2.0, -6.0], reference=[-4.0, -4.0, -4.0]))[0].tolist()
    [3.0, 2.0, -2.0]
    """
    own, other = evidence.plain, evidence.through("reference").plain
    for mine, its in ((0, 0), (1, 0), (0, 1)):
        length = min(len(own) - mine, len(other) - its)
        part = slice(mine, mine + length)
        if length > 0 and np.array_equal(own.tokens[part], other.tokens[its : its + length]):
            return own.logp[part].astype(np.float64) - other.logp[its : its + length], part
    raise ModelError(
        f"text {evidence.text.id!r} has other tokens for the reference model than for the target: name a "
        "--reference-model with the same tokenizer."
    )


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
