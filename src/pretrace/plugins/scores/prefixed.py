"""Scores of a text behind others that are known to be seen, or that are of its collection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pretrace.registry import require, scores
from pretrace.rewrites import After
from pretrace.scores.forms import Behind, Recall
from pretrace.scores.likelihood import FLOOR, mean_of
from pretrace.types import Evidence, Needs, Quantity, Reference, Score, View


@scores.add("con_recall")
@dataclass(frozen=True)
class ConRecall(Recall):
    """How much less likely a text is behind known non-members than behind members (Con-ReCall, Wang et al. 2025).

    con_recall(x) = (mean logp(x | P) − gamma · mean logp(x | M)) / mean logp(x), where P are `shots` known non-members
    and M as many known members, each one a document, drawn at random and joined by blanks. Both are drawn from
    reference texts (`--reference`), which are never scored.

    >>> from pretrace.testing import make_evidence, make_trace
    >>> text, score = make_evidence(logp=[-1.0, -3.0]), BehindBoth(After("Other words."), After("These words."), 0.5)
    >>> views = {View(rewrite=score.first.name): (make_trace([-3.0]),)}
    >>> views[View(rewrite=score.second.name)] = (make_trace([-1.0]),)
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
        facts = {"prefix": {"nonmembers": ids, "members": others}}
        return BehindBoth(nonmembers, members, float(self.gamma), facts=facts)


@dataclass(frozen=True)
class BehindBoth(Behind):
    """A score with two prefixes, and the weight of the second."""

    second: After
    gamma: float

    @property
    def needs(self) -> Needs:
        return super().needs | Needs(Quantity.LOGP, View(rewrite=self.second.name))

    def __call__(self, evidence: Evidence, /) -> float:
        behind, seen = (mean_of(evidence.trace(one.name).logp) for one in (self.first, self.second))
        return (behind - self.gamma * seen) / min(mean_of(evidence.plain.logp), -FLOOR)


@scores.add("codec")
@dataclass(frozen=True)
class CollectionContext(Recall):
    """How much less likely a text is behind others of its collection than alone (CoDeC, Zawalski et al. 2025).

    codec(x) = mean logp(x) − mean logp(x | C), where C are `shots` texts of the collection in question, one per
    document, drawn at random from the members among the reference texts (`--reference`), which are never scored, and
    joined by blanks. The paper's figure of a collection is the share of its texts with codec(x) > 0. It has no valid
    null: what context helps depends on the kind of text. Compare the share with that of control documents of the same
    kind, read behind the same C, and with a model that never saw the texts.

    >>> from pretrace.testing import make_evidence, make_trace
    >>> text, score = make_evidence(logp=[-1.0, -2.0]), LostBehind(After("Other words."))
    >>> view = {View(rewrite=score.first.name): (make_trace([-2.0, -1.0, -3.0]),)}
    >>> score(Evidence(text.text, {**text.views, **view}))  # −1.5 + 2
    0.5
    """

    shots: int = 1
    called = "codec"

    def fit(self, reference: Reference, /) -> Score:
        """The score with its context; TextsError where there are too few texts of the collection."""
        before, ids = self.draw(reference, True)
        return LostBehind(before, facts={"prefix": {"members": ids}})


class LostBehind(Behind):
    """How much likelier a text is alone than behind the prefix."""

    def __call__(self, evidence: Evidence, /) -> float:
        return mean_of(evidence.plain.logp) - mean_of(evidence.trace(self.first.name).logp)
