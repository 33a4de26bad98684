"""The score of a collection: does a text become less likely when others of its collection stand before it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pretrace.registry import require, scores
from pretrace.rewrites import After
from pretrace.scores.likelihood import mean_logp
from pretrace.scores.prefixed import drawn_prefix
from pretrace.types import Evidence, Needs, Quantity, Reference, Score, View


@scores.add("codec")
@dataclass(frozen=True)
class Codec:
    """How much less likely a text is behind others of its collection than alone (CoDeC, Zawalski et al. 2025).

    codec(x) = mean logp(x) − mean logp(x | C), where C are `shots` texts of the collection in question, one a document,
    drawn at random from the members among the reference texts (`--reference`), which are never scored, and joined by
    blanks. The paper's figure of a collection is the share of its texts with codec(x) > 0. It has no valid null by
    itself: what context helps depends on the kind of text, so the share means something only beside that of control
    documents of the same kind, read behind the same C, and a model that never saw the texts.

    >>> from pretrace.testing import make_evidence, make_trace
    >>> text, score = make_evidence(logp=[-1.0, -2.0]), Disturbed(After("Other words."))
    >>> view = {View(rewrite=score.context.name): (make_trace([-2.0, -1.0, -3.0]),)}
    >>> score(Evidence(text.text, {**text.views, **view}))  # −1.5 + 2
    0.5
    """

    shots: int = 1
    needs = Needs(Quantity.LOGP, View(), View(rewrite=After().name))
    reference = Needs(Quantity.LOGP)

    def __post_init__(self) -> None:
        require(self.shots >= 1, f"codec: shots is a number of texts, 1 or more; found {self.shots}.")

    def fit(self, reference: Reference, /) -> Score:
        """The score with its context; TextsError where there are too few texts of the collection."""
        before, ids = drawn_prefix(reference, True, self.shots, "codec")
        return Disturbed(before, facts={"prefix": {"members": list(ids)}})


@dataclass(frozen=True)
class Disturbed:
    """The score with the texts that stand before each."""

    context: After
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def needs(self) -> Needs:
        """Log-probabilities of the text alone and behind the context."""
        return Needs(Quantity.LOGP, View(), View(rewrite=self.context.name))

    def __call__(self, evidence: Evidence, /) -> float:
        return mean_logp(evidence.plain.logp) - mean_logp(evidence.trace(self.context.name).logp)
