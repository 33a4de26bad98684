"""The score of how far a text's tokens lie below the likeliest ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pretrace.registry import require, scores
from pretrace.scores.likelihood import mean_of
from pretrace.scores.min_k import TINY_STD, lowest
from pretrace.scores.windows import window_sums
from pretrace.types import Evidence, Needs, Peak, Quantity


@scores.add("gap_k")
@dataclass(frozen=True)
class GapK:
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

    k: float = 0.2
    window: int = 3
    needs = Needs(Quantity.LOGP | Quantity.MOMENTS, states=(Peak(),))

    def __post_init__(self) -> None:
        require(0 < self.k <= 1, f"gap_k: k is a share of the tokens, above 0 and at most 1; found {self.k}.")
        require(self.window >= 1, f"gap_k: window is a number of tokens, 1 or more; found {self.window}.")

    def __call__(self, evidence: Evidence, /) -> float:
        trace = evidence.plain
        assert trace.std is not None  # `needs` asked for it
        gaps = (trace.logp - trace.states[Peak()]) / np.maximum(trace.std.astype(np.float64), TINY_STD)
        width = min(self.window, len(gaps))
        return mean_of(lowest(window_sums(gaps, width) / width, self.k))
