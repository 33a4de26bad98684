"""The score of a text behind others that are known to be unseen, and what such scores share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pretrace.errors import TextsError
from pretrace.registry import require_least, scores
from pretrace.results.wording import say
from pretrace.rewrites import After
from pretrace.scores.likelihood import FLOOR, mean_of
from pretrace.types import Evidence, Needs, Quantity, Reference, Score, View


@scores.add("recall")
@dataclass(frozen=True)
class Recall:
    """How much less likely a text is behind known non-members than alone (ReCaLL, Xie et al. 2024).

    recall(x) = mean logp(x | P) / mean logp(x), where P are `shots` known non-members, one a document, drawn at random
    and joined by blanks. P is drawn from reference texts (`--reference`), which are never scored; published code draws
    it from the texts that it scores. P and a text must fit into what the model reads at once.

    >>> from pretrace.testing import make_evidence, make_trace
    >>> text, score = make_evidence(logp=[-1.0, -2.0]), Behind(After("Other words."))
    >>> view = {View(rewrite=score.first.name): (make_trace([-2.0, -1.0, -3.0]),)}
    >>> round(score(Evidence(text.text, {**text.views, **view})), 4)  # −2 / −1.5
    1.3333
    """

    shots: int = 7
    needs = Needs(Quantity.LOGP, View(), View(rewrite=After().name))  # a pass, before the prefix is known
    reference = Needs(Quantity.NONE, View())  # no model reads the texts of the prefix by themselves
    called = "recall"

    def __post_init__(self) -> None:
        require_least(self.called, self, shots=1)

    def draw(self, reference: Reference, member: bool) -> tuple[After, list[str]]:
        """The prefix and the ids of its texts, all of them members or not; TextsError where there are too few."""
        kind = "members" if member else "non-members"
        known = [one.text for one in reference.evidence if one.text.member is member]
        order = np.random.default_rng([reference.seed, int(member)]).permutation(len(known))
        drawn = list({known[i].document: known[i] for i in order}.values())[: self.shots]
        if len(drawn) < self.shots:
            numbers = {"shots": self.shots, "found": len(drawn), "fewer": max(1, len(drawn))}
            raise TextsError(say("scores.few_shots", score=self.called, kind=kind, **numbers))
        return After(" ".join(text.text for text in drawn)), [text.id for text in drawn]

    def fit(self, reference: Reference, /) -> Score:
        """The score with its prefix; TextsError where there are too few non-members."""
        before, ids = self.draw(reference, False)
        return Behind(before, facts={"prefix": {"nonmembers": ids}})


@dataclass(frozen=True)
class Behind:
    """A score with its prefix."""

    first: After
    facts: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    @property
    def needs(self) -> Needs:
        return Needs(Quantity.LOGP, View(), View(rewrite=self.first.name))

    def __call__(self, evidence: Evidence, /) -> float:
        alone, behind = mean_of(evidence.plain.logp), mean_of(evidence.trace(self.first.name).logp)
        return behind / min(alone, -FLOOR)
