"""Scores from the least, or the most, likely tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.registry import require, scores
from pretrace.scores.likelihood import means
from pretrace.types import Doubles, Evidence, Needs, Quantity, Stack, Text, Trace

Numbers = npt.NDArray[np.floating[Any]]

TINY_STD = 1e-6
"""The least standard deviation a token is divided by: a near-certain prediction has almost none."""


def lowest(values: Numbers, k: float) -> Numbers:
    """The lowest max(1, int(k·n)) values of the last axis, in no particular order.

    >>> sorted(lowest(np.array([-1.0, -9.0, -3.0, -4.0], dtype=np.float32), 0.5).tolist())
    [-9.0, -4.0]
    """
    count = max(1, int(k * values.shape[-1]))
    if count >= values.shape[-1]:
        return values
    found = values.copy()
    found.partition(count - 1)
    return found[..., :count]


def highest(values: Numbers, k: float) -> Numbers:
    """The highest max(1, int(k·n)) values of the last axis, in no particular order.

    >>> sorted(highest(np.array([-1.0, -9.0, -3.0, -4.0], dtype=np.float32), 0.5).tolist())
    [-3.0, -1.0]
    """
    return -lowest(-values, k)


@scores.add("min_k")
@dataclass(frozen=True)
class MinK:
    """Mean log-probability of the share k of tokens that are least likely (Shi et al. 2024; FSD eq. 3).

    min_k(x) = mean of the lowest max(1, int(k·n)) logp_i

    >>> from pretrace.testing import make_evidence
    >>> MinK(k=0.7)(make_evidence(logp=[-1.0, -2.0, -6.0]))
    -4.0
    """

    k: float = 0.2
    needs = Needs(Quantity.LOGP)

    def __post_init__(self) -> None:
        require(0 < self.k <= 1, f"min_k: k is a share of the tokens, above 0 and at most 1; found {self.k}.")

    def __call__(self, evidence: Evidence, /) -> float:
        return self.over(evidence.plain, (evidence.text,)).item()

    def over(self, traces: Trace | Stack, texts: Sequence[Text], /) -> Doubles:
        """The score of each text."""
        return means(lowest(traces.logp, self.k))


@scores.add("max_k")
@dataclass(frozen=True)
class MaxK:
    """Mean log-probability of the share k of tokens that are most likely (Maini et al. 2024).

    max_k(x) = mean of the highest max(1, int(k·n)) logp_i

    >>> from pretrace.testing import make_evidence
    >>> MaxK(k=0.7)(make_evidence(logp=[-1.0, -2.0, -6.0]))
    -1.5
    """

    k: float = 0.2
    needs = Needs(Quantity.LOGP)

    def __post_init__(self) -> None:
        require(0 < self.k <= 1, f"max_k: k is a share of the tokens, above 0 and at most 1; found {self.k}.")

    def __call__(self, evidence: Evidence, /) -> float:
        return self.over(evidence.plain, (evidence.text,)).item()

    def over(self, traces: Trace | Stack, texts: Sequence[Text], /) -> Doubles:
        """The score of each text."""
        return means(highest(traces.logp, self.k))


@scores.add("min_k_plus_plus")
@dataclass(frozen=True)
class MinKPlusPlus:
    """Mean of the lowest standardised log-probabilities (Min-K%++, Zhang et al. 2024b).

    z_i = (logp_i − mean_i) / max(std_i, 1e-6), where mean and std are those of log p(v) when v is drawn
    from the model's own distribution; min_k_plus_plus(x) = mean of the lowest max(1, int(k·n)) z_i

    >>> from pretrace.testing import make_evidence
    >>> e = make_evidence(logp=[-1.0, -2.0, -6.0], mean=[-2.0, -2.0, -2.0], std=[1.0, 1.0, 2.0])
    >>> MinKPlusPlus(k=0.7)(e)
    -1.0
    """

    k: float = 0.2
    needs = Needs(Quantity.LOGP | Quantity.MOMENTS)

    def __post_init__(self) -> None:
        require(
            0 < self.k <= 1,
            f"min_k_plus_plus: k is a share of the tokens, above 0 and at most 1; found {self.k}.",
        )

    def __call__(self, evidence: Evidence, /) -> float:
        return self.over(evidence.plain, (evidence.text,)).item()

    def over(self, traces: Trace | Stack, texts: Sequence[Text], /) -> Doubles:
        """The score of each text."""
        assert traces.mean is not None  # `needs` asked for both
        assert traces.std is not None
        z = (traces.logp - traces.mean) / np.maximum(traces.std, TINY_STD)
        return means(lowest(z, self.k))
