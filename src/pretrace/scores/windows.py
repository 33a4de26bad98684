"""The score in which every stretch of a text has a vote: was it likelier for the target than for a reference model?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pretrace.registry import scores
from pretrace.scores.reference import PAIRED, gains
from pretrace.types import Doubles, Evidence

WINDOWS = (2, 3, 4, 6, 9, 13, 18, 25, 32, 40)
"""Lengths in tokens; that they are the authors' is second-hand (docs/scores.md)."""


def window_sums(values: Doubles, length: int) -> Doubles:
    """The sum of every `length` values in a row: float64 [n − length + 1].

    >>> window_sums(np.array([1.0, 2.0, 4.0]), 2).tolist()
    [3.0, 6.0]
    """
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    return np.asarray(sums[length:] - sums[:-length])


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
