"""Scores of a text behind other texts: behind ones that are known to be seen or unseen, or others of its collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pretrace.errors import TextsError
from pretrace.registry import require, require_least, scores
from pretrace.results.wording import say
from pretrace.rewrites import After
from pretrace.scores.likelihood import FLOOR, mean_of
from pretrace.types import Evidence, Needs, Quantity, Reference, Score, View


@dataclass(frozen=True)
class _Shots:
    """Known texts, one a document, drawn at random and joined by blanks, that stand before each text."""

    shots: int = 7
    needs = Needs(Quantity.LOGP, View(), View(rewrite=After().name))  # a pass, before the prefix is known
    reference = Needs(Quantity.NONE, View())  # no model reads the texts of the prefix by themselves
    called = ""

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


@scores.add("recall")
@dataclass(frozen=True)
class Recall(_Shots):
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

    called = "recall"

    def fit(self, reference: Reference, /) -> Score:
        """The score with its prefix; TextsError where there are too few non-members."""
        before, ids = self.draw(reference, False)
        return Behind(before, facts={"prefix": {"nonmembers": ids}})


@scores.add("con_recall")
@dataclass(frozen=True)
class ConRecall(_Shots):
    """How much less likely a text is behind known non-members than behind members (Con-ReCall, Wang et al. 2025).

    con_recall(x) = (mean logp(x | P) − gamma · mean logp(x | M)) / mean logp(x), where P are `shots` known non-members
    and M as many known members, each one a document, drawn at random and joined by blanks. Both are drawn from
    reference texts (`--reference`), which are never scored.

    >>> from pretrace.testing import make_evidence, make_trace
    >>> text, score = make_evidence(logp=[-1.0, -3.0]), Behind(After("Other words."), After("These words."), 0.5)
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
        return Behind(nonmembers, members, float(self.gamma), facts=facts)


@dataclass(frozen=True)
class Behind:
    """A score with its prefixes: the `first`, and a `second` with its weight where there is one. With `difference` how
    much likelier a text is alone than behind the first."""

    first: After
    second: After | None = None
    gamma: float = 0.0
    difference: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def needs(self) -> Needs:
        before = [one for one in (self.first, self.second) if one is not None]
        return Needs(Quantity.LOGP, View(), *(View(rewrite=one.name) for one in before))

    def __call__(self, evidence: Evidence, /) -> float:
        alone, behind = mean_of(evidence.plain.logp), mean_of(evidence.trace(self.first.name).logp)
        if self.difference:
            return alone - behind
        if self.second is not None:
            behind -= self.gamma * mean_of(evidence.trace(self.second.name).logp)
        return behind / min(alone, -FLOOR)


@scores.add("codec")
@dataclass(frozen=True)
class CollectionContext(_Shots):
    """How much less likely a text is behind others of its collection than alone (CoDeC, Zawalski et al. 2025).

    codec(x) = mean logp(x) − mean logp(x | C), where C are `shots` texts of the collection in question, one per
    document, drawn at random from the members among the reference texts (`--reference`), which are never scored, and
    joined by blanks. The paper's figure of a collection is the share of its texts with codec(x) > 0. It has no valid
    null: what context helps depends on the kind of text. Compare the share with that of control documents of the same
    kind, read behind the same C, and with a model that never saw the texts.

    >>> from pretrace.testing import make_evidence, make_trace
    >>> text, score = make_evidence(logp=[-1.0, -2.0]), Behind(After("Other words."), difference=True)
    >>> view = {View(rewrite=score.first.name): (make_trace([-2.0, -1.0, -3.0]),)}
    >>> score(Evidence(text.text, {**text.views, **view}))  # −1.5 + 2
    0.5
    """

    shots: int = 1
    called = "codec"

    def fit(self, reference: Reference, /) -> Score:
        """The score with its context; TextsError where there are too few texts of the collection."""
        before, ids = self.draw(reference, True)
        return Behind(before, difference=True, facts={"prefix": {"members": ids}})
