"""Scores of what a model says behind a prefix: of a text behind others that are known to be seen, or that are of its
collection, and of a text's end behind its beginning."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from operator import sub

import numpy as np
import numpy.typing as npt

from pretrace.registry import require, require_least, scores
from pretrace.scores.forms import Recall, score_behind
from pretrace.scores.likelihood import FLOOR
from pretrace.statistics.words import in_runs
from pretrace.types import Continued, Evidence, Needs, Reference, Score


@scores.add("con_recall")
@dataclass(frozen=True)
class ConRecall(Recall):
    """How much less likely a text is behind known non-members than behind members (Con-ReCall, Wang et al. 2025).

    con_recall(x) = (mean logp(x | P) − gamma · mean logp(x | M)) / mean logp(x), where P are `shots` known non-members
    and M as many known members, each one a document, drawn at random and joined by blanks. Both are drawn from
    reference texts (`--reference`), which are never scored.

    >>> from pretrace.rewrites import After
    >>> from pretrace.testing import make_evidence, make_trace
    >>> from pretrace.types import View
    >>> text, first, second = make_evidence(logp=[-1.0, -3.0]), After("Other words."), After("These words.")
    >>> views = {View(rewrite=first.name): (make_trace([-3.0]),), View(rewrite=second.name): (make_trace([-1.0]),)}
    >>> score = score_behind(partial(_contrast, 0.5), first, second)
    >>> score(Evidence(text.text, {**text.views, **views}))  # (−3 + 0.5) / −2
    1.25
    """

    gamma: float = 0.5
    called = "con_recall"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.gamma < np.inf, f"con_recall: gamma is a weight, 0 or more; found {self.gamma}.")

    def fit(self, reference: Reference, /) -> Score:
        """The score with its two prefixes; TextsError where there are too few members or non-members."""
        nonmembers, ids = self.draw(reference, False)
        members, others = self.draw(reference, True)
        contrast = partial(_contrast, float(self.gamma))
        return score_behind(contrast, nonmembers, members, nonmembers=ids, members=others)


def _contrast(gamma: float, alone: float, behind: float, seen: float) -> float:
    return (behind - gamma * seen) / min(alone, -FLOOR)


@scores.add("codec")
@dataclass(frozen=True)
class CollectionContext(Recall):
    """How much less likely a text is behind others of its collection than alone (CoDeC, Zawalski et al. 2025).

    codec(x) = mean logp(x) − mean logp(x | C), where C are `shots` texts of the collection in question, one per
    document, drawn at random from the members among the reference texts (`--reference`), which are never scored, and
    joined by blanks. The paper's figure of a collection is the share of its texts with codec(x) > 0. It has no valid
    null: what context helps depends on the kind of text. Compare the share with that of control documents of the same
    kind, read behind the same C, and with a model that never saw the texts.

    >>> from pretrace.rewrites import After
    >>> from pretrace.testing import make_evidence, make_trace
    >>> from pretrace.types import View
    >>> text, before = make_evidence(logp=[-1.0, -2.0]), After("Other words.")
    >>> view = {View(rewrite=before.name): (make_trace([-2.0, -1.0, -3.0]),)}
    >>> score_behind(sub, before)(Evidence(text.text, {**text.views, **view}))  # −1.5 + 2
    0.5
    """

    shots: int = 1
    called = "codec"

    def fit(self, reference: Reference, /) -> Score:
        """The score with its context; TextsError where there are too few texts of the collection."""
        before, ids = self.draw(reference, True)
        return score_behind(sub, before, members=ids)


def _covered(end: npt.NDArray[np.int32], written: npt.NDArray[np.int32], n: int) -> float:
    """The share of the tokens of `end` that stand in a run of `n` or more that stands in `written` as well; 0 for an
    end shorter than a run.

    >>> _covered(np.array([1, 2, 3, 4, 5]), np.array([9, 2, 3, 4, 9]), 3)
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
        return max(_covered(end, written, self.n) for written in trace.states[self._continued])

    @property
    def _continued(self) -> Continued:
        return Continued(int(self.samples), float(self.share), float(self.temperature), int(self.seed))
