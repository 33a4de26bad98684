"""How much of a text's end a model writes by itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pretrace.registry import require, require_least, scores
from pretrace.statistics.words import in_runs
from pretrace.types import Continued, Evidence, Needs


def covered(end: npt.NDArray[np.int32], written: npt.NDArray[np.int32], n: int) -> float:
    """The share of the tokens of `end` that stand in a run of `n` or more that stands in `written` as well; 0 for an
    end shorter than a run.

    >>> covered(np.array([1, 2, 3, 4, 5]), np.array([9, 2, 3, 4, 9]), 3)
    0.6
    """
    known = set(zip(*(written[i:].tolist() for i in range(n)), strict=False))
    return float(in_runs(end.tolist(), known, n).mean()) if len(end) else 0.0


@scores.add("coverage")
@dataclass(frozen=True)
class Coverage:
    """Share of a text's end that the model writes by itself, in runs of n tokens (Hallinan et al. 2025).

    The model reads the first `share` of the text's predicted tokens and writes the rest `samples` times, at
    `temperature`. coverage(x) = max over samples s of the share of the end's tokens that are in a run of `n` or more
    which s also contains. The paper counts words and samples any chat model; here tokens of the model itself are
    counted. Needs a model with weights. A text whose end is shorter than a run has no value.

    >>> from dataclasses import replace
    >>> from pretrace.testing import make_trace
    >>> from pretrace.types import Text, View
    >>> score = Coverage(n=2, samples=2)
    >>> ends = {Continued(2): np.array([[7, 8, 9], [4, 5, 9]], dtype=np.int32)}
    >>> read = replace(make_trace([-1.0] * 6, tokens=[1, 2, 3, 4, 5, 6]), states=ends)
    >>> round(score(Evidence(Text("t", "abc"), {View(): (read,)})), 4)  # 4 and 5 of 4, 5, 6
    0.6667
    """

    n: int = 3
    samples: int = 8
    share: float = 0.5
    temperature: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        require_least("coverage", self, n=1, samples=1, temperature=0, seed=0)
        require(0 < self.share < 1, f"coverage: share lies between 0 and 1; found {self.share}.")
        require(
            self.temperature < float("inf"), f"coverage: temperature is finite; found {self.temperature}."
        )

    @cached_property
    def needs(self) -> Needs:
        return Needs(states=(self._continued,))

    @cached_property
    def fewest(self) -> int:
        length = self.n + 1
        while length - self._continued.read(length) < self.n:
            length += 1
        return length

    def __call__(self, evidence: Evidence, /) -> float:
        trace = evidence.plain
        end = trace.tokens[self._continued.read(len(trace)) :]
        return max(covered(end, written, self.n) for written in trace.states[self._continued])

    @property
    def _continued(self) -> Continued:
        return Continued(int(self.samples), float(self.share), float(self.temperature), int(self.seed))
