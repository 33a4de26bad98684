"""Scores of a text behind other texts: behind ones that are known to be seen or unseen, or others of its collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pretrace.errors import TextsError
from pretrace.registry import require, scores
from pretrace.rewrites import After
from pretrace.scores.likelihood import FLOOR, mean_logp
from pretrace.types import Evidence, Needs, Quantity, Reference, Score, View


@dataclass(frozen=True)
class _Shots:
    """Known texts, one a document, drawn at random and joined by blanks, that stand before each text."""

    shots: int = 7
    needs = Needs(Quantity.LOGP, View(), View(rewrite=After().name))  # a pass, before the prefix is known
    reference = Needs(Quantity.NONE, View())  # no model reads the texts of the prefix by themselves
    called = ""

    def __post_init__(self) -> None:
        require(self.shots >= 1, f"{self.called}: shots is a number of texts, 1 or more; found {self.shots}.")

    def draw(self, reference: Reference, member: bool) -> tuple[After, list[str]]:
        """The prefix and the ids of its texts, all of them members or not; TextsError where there are too few."""
        kind = "members" if member else "non-members"
        known = [one.text for one in reference.evidence if one.text.member is member]
        order = np.random.default_rng([reference.seed, int(member)]).permutation(len(known))
        drawn = list({known[i].document: known[i] for i in order}.values())[: self.shots]
        if len(drawn) < self.shots:
            raise TextsError(
                f"{self.called} puts {self.shots} known {kind} before each text: found {len(drawn)} documents of them "
                "among the reference texts; give more with --reference, or take fewer with "
                f"{self.called}(shots={max(1, len(drawn))})."
            )
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
    >>> view = {View(rewrite=score.nonmembers.name): (make_trace([-2.0, -1.0, -3.0]),)}
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
    >>> views = {View(rewrite=score.nonmembers.name): (make_trace([-3.0]),)}
    >>> views[View(rewrite=score.members.name)] = (make_trace([-1.0]),)
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
    """Either score with its prefixes: known `nonmembers`, and known `members` with their weight where there are any."""

    nonmembers: After
    members: After | None = None
    gamma: float = 0.0
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def needs(self) -> Needs:
        before = [one for one in (self.nonmembers, self.members) if one is not None]
        return Needs(Quantity.LOGP, View(), *(View(rewrite=one.name) for one in before))

    def __call__(self, evidence: Evidence, /) -> float:
        behind = mean_logp(evidence.trace(self.nonmembers.name).logp)
        if self.members is not None:
            behind -= self.gamma * mean_logp(evidence.trace(self.members.name).logp)
        return behind / min(mean_logp(evidence.plain.logp), -FLOOR)


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
    >>> text, score = make_evidence(logp=[-1.0, -2.0]), Disturbed(After("Other words."))
    >>> view = {View(rewrite=score.context.name): (make_trace([-2.0, -1.0, -3.0]),)}
    >>> score(Evidence(text.text, {**text.views, **view}))  # −1.5 + 2
    0.5
    """

    shots: int = 1
    called = "codec"

    def fit(self, reference: Reference, /) -> Score:
        """The score with its context; TextsError where there are too few texts of the collection."""
        before, ids = self.draw(reference, True)
        return Disturbed(before, facts={"prefix": {"members": ids}})


@dataclass(frozen=True)
class Disturbed:
    """The score with the texts that stand before each."""

    context: After
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def needs(self) -> Needs:
        return Needs(Quantity.LOGP, View(), View(rewrite=self.context.name))

    def __call__(self, evidence: Evidence, /) -> float:
        return mean_logp(evidence.plain.logp) - mean_logp(evidence.trace(self.context.name).logp)
