"""Scores from the likelihood of the whole text."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.registry import require, scores
from pretrace.types import Doubles, Evidence, Floats, Needs, Quantity, Stack, Text, Trace, View

FLOOR = 1e-6
"""What a denominator is kept away from 0 by."""
_PERPLEXITY_CEILING = 700.0  # exp() of more than this is no float64


def mean_logp(logp: Floats) -> float:
    """Mean log-probability a token, in nats, summed in float64.

    >>> mean_logp(np.array([-0.5, -1.0, -3.0], dtype=np.float32))
    -1.5
    """
    return mean_of(logp)


def mean_of(values: npt.NDArray[np.floating[Any]]) -> float:
    """The mean, summed in float64."""
    return float(means(values))


def means(values: npt.NDArray[np.floating[Any]]) -> Doubles:
    """The means of the last axis, summed in float64: `values.mean(-1, dtype=np.float64)` in half its time, which counts
    for short texts."""
    found: Doubles = np.add.reduce(values, axis=-1, dtype=np.float64) / values.shape[-1]
    return found


def ppl_ratio(own: float, other: float) -> float:
    """The perplexity of mean log-probability `own` over that of `other`.

    >>> ppl_ratio(-1.5, -1.5)
    1.0
    """
    return float(np.exp(min(other - own, _PERPLEXITY_CEILING)))


def ppl_difference(own: float, other: float) -> float:
    """The perplexity of mean log-probability `own` minus that of `other`.

    >>> ppl_difference(-1.5, -1.5)
    0.0
    """
    return float(np.exp(min(-own, _PERPLEXITY_CEILING)) - np.exp(min(-other, _PERPLEXITY_CEILING)))


@scores.add("loss")
@dataclass(frozen=True)
class Loss:
    """Mean log-probability a token: minus the loss (Yeom et al. 2018).

    loss(x) = 1/n Σ logp_i

    >>> from pretrace.testing import make_evidence
    >>> Loss()(make_evidence(logp=[-1.0, -2.0, -6.0]))
    -3.0
    """

    needs = Needs(Quantity.LOGP)

    def __call__(self, evidence: Evidence, /) -> float:
        return self.over(evidence.plain, (evidence.text,)).item()

    def over(self, traces: Trace | Stack, texts: Sequence[Text], /) -> Doubles:
        """The score of each text."""
        return means(traces.logp)


@scores.add("ppl")
@dataclass(frozen=True)
class Perplexity:
    """Minus the perplexity (Carlini et al. 2021; FSD eq. 2).

    ppl(x) = −exp(−1/n Σ logp_i)

    >>> from pretrace.testing import make_evidence
    >>> round(Perplexity()(make_evidence(logp=[-1.0, -2.0, -6.0])), 4)
    -20.0855
    """

    needs = Needs(Quantity.LOGP)

    def __call__(self, evidence: Evidence, /) -> float:
        return -float(np.exp(min(-mean_logp(evidence.plain.logp), _PERPLEXITY_CEILING)))


@scores.add("zlib")
@dataclass(frozen=True)
class Zlib:
    """Mean log-probability over the length of the compressed text in bytes (Carlini et al. 2021).

    zlib(x) = (1/n Σ logp_i) / len(zlib.compress(utf-8 of x, level))

    >>> from pretrace.testing import make_evidence
    >>> Zlib()(make_evidence("abc", logp=[-1.0, -2.0, -6.0])) == -3.0 / len(zlib.compress(b"abc", 6))
    True
    """

    level: int = 6
    needs = Needs(Quantity.LOGP)

    def __post_init__(self) -> None:
        require(0 <= self.level <= 9, f"zlib: level must be from 0 to 9, found {self.level}.")

    def __call__(self, evidence: Evidence, /) -> float:
        return self.over(evidence.plain, (evidence.text,)).item()

    def over(self, traces: Trace | Stack, texts: Sequence[Text], /) -> Doubles:
        """The score of each text."""
        sizes = [len(zlib.compress(text.text.encode("utf-8", "replace"), self.level)) for text in texts]
        return means(traces.logp) / np.array(sizes, np.float64)


@scores.add("lowercase")
@dataclass(frozen=True)
class Lowercase:
    """Minus the ratio of the log-perplexities of the text and of its lower-cased form (Carlini et al. 2021).

    lowercase(x) = −(mean logp(x) / mean logp(lower(x)))

    A text without a letter that has two cases, as in Chinese, is skipped, and a corpus in which lower-casing
    changes next to nothing is refused: the score would be −1 whatever the model had read.

    >>> from pretrace.testing import make_evidence
    >>> Lowercase()(make_evidence("Abc", logp=[-1.0, -2.0, -6.0], lower=[-4.0, -4.0, -4.0]))
    -0.75
    """

    needs = Needs(Quantity.LOGP, View(), View(rewrite="lower"))

    def __call__(self, evidence: Evidence, /) -> float:
        lower = mean_logp(evidence.trace("lower").logp)
        return -(mean_logp(evidence.plain.logp) / min(lower, -FLOOR))
