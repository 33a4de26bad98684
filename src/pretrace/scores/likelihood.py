"""Scores from what the target itself makes of a text: all of its tokens, the least likely or the most likely ones."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.registry import require, require_least, scores
from pretrace.types import Doubles, Evidence, Needs, Peak, Quantity, Text, Trace

FLOOR = 1e-6
"""What a denominator is kept away from 0 by."""
_PERPLEXITY_CEILING = 700.0  # exp() of more than this is no float64


def mean_of(values: npt.NDArray[np.floating[Any]]) -> float:
    """The mean, summed in float64.

    >>> mean_of(np.array([-0.5, -1.0, -3.0], dtype=np.float32))
    -1.5
    """
    return float(_means(values))


def _means(values: npt.NDArray[np.floating[Any]]) -> Doubles:
    """The means of the last axis, summed in float64: `values.mean(-1, dtype=np.float64)` in half its time, which counts
    for short texts."""
    found: Doubles = np.add.reduce(values, axis=-1, dtype=np.float64) / values.shape[-1]
    return found


def window_sums(values: Doubles, length: int) -> Doubles:
    """The sum of every `length` values in a row: float64 [n − length + 1].

    >>> window_sums(np.array([1.0, 2.0, 4.0]), 2).tolist()
    [3.0, 6.0]
    """
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    return np.asarray(sums[length:] - sums[:-length])


def compare_perplexities(own: float, other: float, *, difference: bool) -> float:
    """The perplexity of mean log-probability `own` over that of `other`, or minus it.

    >>> compare_perplexities(-1.5, -1.5, difference=False), compare_perplexities(-1.5, -1.5, difference=True)
    (1.0, 0.0)
    """
    if difference:
        return float(np.exp(min(-own, _PERPLEXITY_CEILING)) - np.exp(min(-other, _PERPLEXITY_CEILING)))
    return float(np.exp(min(other - own, _PERPLEXITY_CEILING)))


class _OfStack:
    """A score of the text as it stands whose formula also takes many texts of one length at once."""

    def __call__(self, evidence: Evidence, /) -> float:
        return self.over(evidence.plain, (evidence.text,)).item()

    def over(self, traces: Trace, texts: Sequence[Text], /) -> Doubles:
        """Compute the score of each text."""
        raise NotImplementedError


@scores.add("loss")
@dataclass(frozen=True)
class Loss(_OfStack):
    """Mean log-probability a token: minus the loss (Yeom et al. 2018).

    loss(x) = 1/n Σ logp_i

    >>> from pretrace.testing import make_evidence
    >>> Loss()(make_evidence(logp=[-1.0, -2.0, -6.0]))
    -3.0
    """

    needs = Needs(Quantity.LOGP)

    def over(self, traces: Trace, texts: Sequence[Text], /) -> Doubles:
        return _means(traces.logp)


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
        return -float(np.exp(min(-mean_of(evidence.plain.logp), _PERPLEXITY_CEILING)))


@scores.add("zlib")
@dataclass(frozen=True)
class Zlib(_OfStack):
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

    def over(self, traces: Trace, texts: Sequence[Text], /) -> Doubles:
        sizes = [len(zlib.compress(text.text.encode("utf-8", "replace"), self.level)) for text in texts]
        return _means(traces.logp) / np.array(sizes, np.float64)


Numbers = npt.NDArray[np.floating[Any]]

TINY_STD = 1e-6
"""The least standard deviation a token is divided by: a near-certain prediction has almost none."""


def _lowest(values: Numbers, k: float) -> Numbers:
    """The lowest max(1, int(k·n)) values of the last axis, in no particular order.

    >>> sorted(_lowest(np.array([-1.0, -9.0, -3.0, -4.0], dtype=np.float32), 0.5).tolist())
    [-9.0, -4.0]
    """
    count = max(1, int(k * values.shape[-1]))
    if count >= values.shape[-1]:
        return values
    found = values.copy()
    found.partition(count - 1)
    return found[..., :count]


@dataclass(frozen=True)
class _ShareOfTokens:
    """What scores of a share k of the tokens have in common."""

    k: float = 0.2
    called = ""

    def __post_init__(self) -> None:
        wanted = "k is a share of the tokens, above 0 and at most 1"
        require(0 < self.k <= 1, f"{self.called}: {wanted}; found {self.k}.")


@scores.add("min_k")
@dataclass(frozen=True)
class MinK(_ShareOfTokens, _OfStack):
    """Mean log-probability of the share k of tokens that are least likely (Shi et al. 2024; FSD eq. 3).

    min_k(x) = mean of the lowest max(1, int(k·n)) logp_i

    >>> from pretrace.testing import make_evidence
    >>> MinK(k=0.7)(make_evidence(logp=[-1.0, -2.0, -6.0]))
    -4.0
    """

    called = "min_k"
    needs = Needs(Quantity.LOGP)

    def over(self, traces: Trace, texts: Sequence[Text], /) -> Doubles:
        return _means(_lowest(traces.logp, self.k))


@scores.add("max_k")
@dataclass(frozen=True)
class MaxK(_ShareOfTokens, _OfStack):
    """Mean log-probability of the share k of tokens that are most likely (Maini et al. 2024).

    max_k(x) = mean of the highest max(1, int(k·n)) logp_i

    >>> from pretrace.testing import make_evidence
    >>> MaxK(k=0.7)(make_evidence(logp=[-1.0, -2.0, -6.0]))
    -1.5
    """

    called = "max_k"
    needs = Needs(Quantity.LOGP)

    def over(self, traces: Trace, texts: Sequence[Text], /) -> Doubles:
        return _means(-_lowest(-traces.logp, self.k))


@scores.add("min_k_plus_plus")
@dataclass(frozen=True)
class MinKPlusPlus(_ShareOfTokens, _OfStack):
    """Mean of the lowest standardised log-probabilities (Min-K%++, Zhang et al. 2024b).

    z_i = (logp_i − mean_i) / max(std_i, 1e-6), where mean and std are those of log p(v) when v is drawn
    from the model's own distribution; min_k_plus_plus(x) = mean of the lowest max(1, int(k·n)) z_i

    >>> from pretrace.testing import make_evidence
    >>> e = make_evidence(logp=[-1.0, -2.0, -6.0], mean=[-2.0, -2.0, -2.0], std=[1.0, 1.0, 2.0])
    >>> MinKPlusPlus(k=0.7)(e)
    -1.0
    """

    called = "min_k_plus_plus"
    needs = Needs(Quantity.LOGP | Quantity.MOMENTS)

    def over(self, traces: Trace, texts: Sequence[Text], /) -> Doubles:
        assert traces.mean is not None  # `needs` asked for both
        assert traces.std is not None
        z = (traces.logp - traces.mean) / np.maximum(traces.std, TINY_STD)
        return _means(_lowest(z, self.k))


@scores.add("gap_k")
@dataclass(frozen=True)
class GapK(_ShareOfTokens):
    """Mean of the lowest smoothed gaps to the likeliest token (Gap-K%, Kwak and Kim 2026).

    g_i = (logp_i − max_v log p(v)) / max(std_i, 1e-6), where std is that of log p(v) when v is drawn from the model's
    own distribution; s_j = mean of `window` gaps in a row, all of them where there are fewer; gap_k(x) = mean of the
    lowest max(1, int(k·m)) of the m values s_j

    >>> import numpy as np
    >>> from dataclasses import replace
    >>> from pretrace.testing import make_trace
    >>> from pretrace.types import Text, View
    >>> trace = make_trace([-1.0, -2.0, -6.0], mean=[-2.0] * 3, std=[1.0, 1.0, 2.0])
    >>> trace = replace(trace, states={Peak(): np.array([-1.0, -1.0, -2.0], dtype=np.float32)})
    >>> GapK(window=2)(Evidence(Text("t", "abc"), {View(): (trace,)}))  # gaps 0, −1, −2
    -1.5
    """

    window: int = 3
    called = "gap_k"
    needs = Needs(Quantity.LOGP | Quantity.MOMENTS, states=(Peak(),))

    def __post_init__(self) -> None:
        super().__post_init__()
        require_least("gap_k", self, window=1)

    def __call__(self, evidence: Evidence, /) -> float:
        trace = evidence.plain
        assert trace.std is not None  # `needs` asked for it
        gaps = (trace.logp - trace.states[Peak()]) / np.maximum(trace.std.astype(np.float64), TINY_STD)
        width = min(self.window, len(gaps))
        return mean_of(_lowest(window_sums(gaps, width) / width, self.k))


@scores.add("surp")
@dataclass(frozen=True)
class Surprising(_ShareOfTokens):
    """Mean log-probability of tokens that are unlikely where the model is sure (SURP, Zhang and Wu 2024).

    Of the lowest max(1, int(k·n)) logp_i, surp(x) = mean of those where the entropy of the model's distribution, in
    nats, is below `entropy`. Where none of them is, the one of lowest entropy counts alone; the paper leaves this
    open.

    >>> from pretrace.testing import make_evidence
    >>> e = make_evidence(logp=[-1.0, -5.0, -6.0], mean=[-1.0, -1.5, -4.0], std=[1.0, 1.0, 2.0])
    >>> Surprising(k=0.7)(e)  # entropy = −mean
    -5.0
    """

    entropy: float = 2.0
    called = "surp"
    needs = Needs(Quantity.LOGP | Quantity.MOMENTS)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.entropy > 0, f"surp: entropy is a bound in nats, above 0; found {self.entropy}.")

    def __call__(self, evidence: Evidence, /) -> float:
        trace = evidence.plain
        assert trace.mean is not None  # `needs` asked for it
        unlikely = trace.logp <= _lowest(trace.logp, self.k).max()
        entropy = -trace.mean
        sure = unlikely & (entropy < self.entropy)
        if not sure.any():
            sure = unlikely & (entropy == entropy[unlikely].min())
        return mean_of(trace.logp[sure])
