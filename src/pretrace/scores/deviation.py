"""FSD: what fine-tuning on a few non-members does to any score."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from pretrace.errors import ExpressionError
from pretrace.registry import require, scores
from pretrace.results.wording import say
from pretrace.types import Evidence, FittedScore, Needs, Recipe, Reference, Score

TUNED = "tuned"
"""The model that views of a fine-tuned target carry."""


@scores.add("fsd")
def fsd(of: Any) -> Score | Recipe:
    """How far a score falls when the target is tuned on a few non-members (FSD, Zhang et al. 2025, eq. 5).

    fsd(S)(x) = S(x; f) − S(x; f′), where f′ is the target f fine-tuned on non-members of the same domain
    (`pretrace tune`, `--tuned`, or `--set-aside tuning`). S is any score that is not itself fitted on labelled
    texts. Tuning raises S most for non-members, so their fsd is lowest. The paper uses fsd(ppl),
    fsd(lowercase), fsd(zlib) and fsd(min_k). Texts that were tuned on are never scored.

    >>> from pretrace.scores.likelihood import Loss
    >>> from pretrace.testing import make_evidence
    >>> fsd(Loss())(make_evidence(logp=[-1.0, -2.0, -6.0], tuned=[-1.0, -2.0, -3.0]))
    -1.0
    """
    if isinstance(of, Recipe):
        require(not of.reference, say("scores.of_fitted"))
        return _Unfitted(of)
    if not callable(of) or not isinstance(getattr(of, "needs", None), Needs):
        raise ExpressionError(f"fsd takes a score, such as fsd(ppl) or fsd(min_k(k=0.1)), found {of!r}.")
    tuned = any(view.model == TUNED for view in of.needs.views)
    require(not tuned, "fsd of fsd has no meaning: the tuned model is not tuned again.")
    return FittedScore(_needs_under_both(of), partial(_deviation, of))


def _needs_under_both(of: Score | Recipe) -> Needs:
    return of.needs | of.needs.through(TUNED)


def _deviation(of: Score, evidence: Evidence) -> float:
    """The value of a score under the target minus its value under the tuned target."""
    return of(evidence) - of(evidence.through(TUNED))


@dataclass(frozen=True)
class _Unfitted:
    """FSD of a score that needs token counts first; it must be fitted before it can score."""

    of: Recipe
    reference = Needs()

    @property
    def needs(self) -> Needs:
        return _needs_under_both(self.of)

    def fit(self, reference: Reference, /) -> Score:
        """FSD of the fitted score; both models are scored with the same counts."""
        return FittedScore(self.needs, partial(_deviation, self.of.fit(reference)))
