"""How likely a model prints the text: windows of it, by the chance that one sample is the text word for word."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pretrace.registry import require, require_least, scores
from pretrace.types import Doubles, Drawn, Evidence, Floats, Needs


def window_logp(drawn: Floats, prefix: int, suffix: int) -> Doubles:
    """The log-probability that one sample is the suffix, for every window: float64 [windows], −inf where a token is
    not among those drawn from.

    `drawn` [n] is `types.Drawn` of a text, a token each. A window is `suffix` tokens in a row with `prefix` or more
    predicted tokens before them, all of which the model has read: windows = max(0, n − prefix − suffix + 1).

    >>> window_logp(np.array([-9.0, -1.0, -2.0, -np.inf], dtype=np.float32), prefix=1, suffix=2).tolist()
    [-3.0, -inf]
    """
    if len(drawn) < prefix + suffix:
        return np.zeros(0)
    never = np.isneginf(drawn)
    # float32 may put a certain token a hair above probability 1
    sums = np.concatenate([[0.0], np.where(never, 0.0, drawn).clip(max=0).cumsum(dtype=np.float64)])
    misses = np.concatenate([[0], never.cumsum()])
    first = np.arange(prefix, len(drawn) - suffix + 1)
    found = sums[first + suffix] - sums[first]
    return np.where(misses[first + suffix] > misses[first], -np.inf, found.clip(max=0.0))


def chance_in(logp: npt.ArrayLike, tries: float) -> Doubles:
    """The chance that at least one of so many samples is the suffix, of log-probability `logp`: 1 − (1 − p)ⁿ."""
    p = np.exp(np.asarray(logp, dtype=np.float64))
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(tries * np.log1p(-p)))


@scores.add("extraction")
@dataclass(frozen=True)
class Extraction:
    """Share of windows that the model is expected to print in n tries (Hayes et al. 2024).

    A sample draws every token at `temperature` among the `k` likeliest. For a window of `suffix` tokens, with at least
    `prefix` tokens before them, p = Π p(token) is the chance that one sample prints it (their (n, p)-discoverable
    extraction); extraction(x) = mean over all windows of 1 − (1 − p)^n

    Everything before a window is read with it, in the pass that other scores need too (Cooper et al. 2025 read the
    prefix alone). A text with fewer than prefix + suffix predicted tokens has no window and no value. Common text is
    printed too: a high value alone shows no training.

    >>> from dataclasses import replace
    >>> from pretrace.testing import make_trace
    >>> from pretrace.types import Text, View
    >>> read = replace(make_trace([-1.0] * 3), states={Drawn(): np.log([0.9, 0.5, 0.5]).astype(np.float32)})
    >>> evidence = Evidence(Text("t", "abc"), {View(): (read,)})
    >>> round(Extraction(n=2, prefix=1, suffix=2)(evidence), 4)  # 1 − (1 − 0.25)²
    0.4375
    """

    n: int = 100
    k: int = 40
    temperature: float = 1.0
    prefix: int = 50
    suffix: int = 50

    def __post_init__(self) -> None:
        require_least("extraction", self, n=1, k=1, prefix=0, suffix=1)
        require(
            0 < self.temperature < float("inf"),
            f"extraction: temperature lies above 0 (k=1 draws the likeliest token), found {self.temperature}.",
        )

    @cached_property
    def needs(self) -> Needs:
        return Needs(states=(self._drawn,))

    @property
    def fewest(self) -> int:
        return self.prefix + self.suffix

    def __call__(self, evidence: Evidence, /) -> float:
        found = window_logp(evidence.plain.states[self._drawn], self.prefix, self.suffix)
        return float(chance_in(found, self.n).mean()) if len(found) else 0.0

    @property
    def _drawn(self) -> Drawn:
        return Drawn(int(self.k), float(self.temperature))
