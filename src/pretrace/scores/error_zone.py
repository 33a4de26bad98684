"""The score that looks where the target errs: at tokens that it does not expect most."""

from __future__ import annotations

from dataclasses import dataclass

from pretrace.registry import scores
from pretrace.scores.likelihood import FLOOR
from pretrace.scores.reference import PAIRED, gains
from pretrace.types import Evidence, Needs, Peak


@scores.add("ez")
@dataclass(frozen=True)
class ErrorZone:
    """Rise over fall, against a reference model, of tokens that the target does not expect most (Ilić et al. 2026a).

    With Δ_i = logp_i − logp_ref,i over the tokens that are not the target's likeliest: P = Σ max(Δ_i, 0),
    N = Σ max(−Δ_i, 0); ez(x) = (P + 1e-6) / (N + 1e-6), which puts a text without a fall at the top, where the authors'
    code gives it 0, the bottom. A text of which the target expects every token most has no such token: there all its
    tokens count. The reference model (`--reference-model`) must have the target's tokenizer; the paper takes the model
    before fine-tuning.

    >>> import numpy as np
    >>> from dataclasses import replace
    >>> from pretrace.testing import make_evidence
    >>> from pretrace.types import View
    >>> e = make_evidence(logp=[-1.0, -2.0, -6.0], reference=[-4.0, -4.0, -4.0])
    >>> peak = {Peak(): np.array([-1.0, -0.5, -0.5], dtype=np.float32)}
    >>> seen = {View(): (replace(e.plain, states=peak),)}
    >>> round(ErrorZone()(Evidence(e.text, {**e.views, **seen})), 4)  # the second rose by 2, the third fell by 2
    1.0
    """

    needs = PAIRED | Needs(states=(Peak(),))

    def __call__(self, evidence: Evidence, /) -> float:
        delta, part = gains(evidence)
        errs = (evidence.plain.logp < evidence.plain.states[Peak()])[part]
        delta = delta[errs] if errs.any() else delta
        rose, fell = float(delta.clip(min=0).sum()), float((-delta).clip(min=0).sum())
        return (rose + FLOOR) / (fell + FLOOR)
