"""Scores that hold a text's likelihood under the target against that under a reference model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pretrace.errors import ModelError
from pretrace.registry import scores
from pretrace.results.wording import say
from pretrace.scores.likelihood import FLOOR, compare_perplexities, mean_of, window_sums
from pretrace.types import Doubles, Evidence, Needs, Peak, Quantity, View

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
    raise ModelError(say("scores.other_tokens", text=evidence.text.id))


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
        own = mean_of(evidence.plain.logp)
        reference = mean_of(evidence.through("reference").plain.logp)
        if self.perplexity:
            return -compare_perplexities(own, reference, difference=self.difference)
        return own - reference if self.difference else -(own / min(reference, -FLOOR))


WINDOWS = (2, 3, 4, 6, 9, 13, 18, 25, 32, 40)
"""Lengths in tokens; that they are the authors' is second-hand (docs/generate.py)."""


@scores.add("wbc")
@dataclass(frozen=True)
class WindowComparison:
    """Share of windows that the target finds likelier than the reference model does (WBC, Chen et al. 2026).

    With Δ_i = logp_i − logp_ref,i and w the length of a window in tokens, 2, 3, 4, 6, 9, 13, 18, 25, 32 and 40:
    wbc(x) = mean over w of the share of the n − w + 1 windows whose Σ Δ_i is above 0. A w above n counts as n, as in
    the authors' code. The reference model (`--reference-model`) must have the target's tokenizer; the paper takes the
    model before fine-tuning.

    >>> from pretrace.testing import make_evidence
    >>> WindowComparison()(make_evidence(logp=[-1.0, -2.0, -6.0], reference=[-4.0, -4.0, -4.0]))  # (1 of 2) + 9
    0.95
    """

    needs = PAIRED

    def __call__(self, evidence: Evidence, /) -> float:
        delta, _ = gains(evidence)
        shares = [np.mean(window_sums(delta, min(w, len(delta))) > 0) for w in WINDOWS]
        return float(np.mean(shares))


@scores.add("ez")
@dataclass(frozen=True)
class ErrorZone:
    """Rise over fall, against a reference model, of tokens that the target does not expect most (Ilić et al. 2026a).

    With Δ_i = logp_i − logp_ref,i over the tokens that are not the target's likeliest: P = Σ max(Δ_i, 0),
    N = Σ max(−Δ_i, 0); ez(x) = (P + 1e-6) / (N + 1e-6). A text without a fall is at the top; the authors' code gives it
    0, the bottom. If the target expects every token most, all tokens count. The reference model (`--reference-model`)
    must have the target's tokenizer; the paper uses the model before fine-tuning.

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
