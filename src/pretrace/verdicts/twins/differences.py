"""What every model says of published versions less what it says of their drafts, and what texts alone say.

A difference D_i = s(published) - s(draft) turns its sign when the two versions change places. What reference models
and the texts' own features predict of it is taken off by a regression through the origin, which is antisymmetric too:
the size of what is left is the same whichever version was published, so under the null hypothesis only its sign is
left to chance. Whether the sign is as likely + as - then depends on how well the texts tell which version is the
published one: a second regression, of "published" on the same antisymmetric features, gives the chance q_i. Both are
learnt on other documents than those they are used on. A bias that depends on the features has to escape both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pretrace.baselines.text_features import surface_features, topic_differences
from pretrace.scoring.plan import Models
from pretrace.statistics.antisymmetric import first_odds, origin_prediction
from pretrace.statistics.documents import Grouping, grouped_folds
from pretrace.statistics.roc import auc
from pretrace.statistics.signed_ranks import SignedRanks
from pretrace.types import Backend, Doubles
from pretrace.verdicts.reading import Read, Reader
from pretrace.verdicts.twins.pairs import Pairs
from pretrace.verdicts.twins.settings import TwinSettings

FOLDS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """Published less draft, one row a document: `target` [documents] and `placebos` [placebos][documents] of the score,
    `predictors` [documents, k] of the reference models' scores and the texts' features. `odds` [documents] are the
    log-odds, from the predictors, that the published version is the published one; `folds` are those of both fits."""

    pairs: Pairs
    target: Doubles
    placebos: tuple[Doubles, ...]
    predictors: Doubles
    odds: Doubles
    folds: npt.NDArray[np.int64]

    @classmethod
    def of(
        cls,
        pairs: Pairs,
        scores: Sequence[Doubles],
        references: Sequence[Doubles],
        settings: TwinSettings,
    ) -> Differences:
        """From differences of scores [pairs], those of the target first and the placebos behind it."""
        words = topic_differences(pairs.published, pairs.drafts, settings.components, seed=settings.seed)
        surface = surface_features(pairs.published) - surface_features(pairs.drafts)
        predictors = pairs.means(np.column_stack([*references, surface, words]))
        predictors = predictors[:, (predictors != 0).any(axis=0)]
        units = pairs.units
        folds = grouped_folds(Grouping.of(units), min(FOLDS, len(units)), settings.seed)
        odds = first_odds(predictors, folds, seed=settings.seed)
        target, *placebos = (pairs.means(one) for one in scores)
        return cls(pairs, target, tuple(placebos), predictors, odds, folds)

    def left(self, differences: Doubles) -> Doubles:
        """A model's differences [documents] less what the predictors say of them."""
        return differences - origin_prediction(differences, self.predictors, self.folds)

    def chances(self, left: Doubles) -> Doubles:
        """The chance of each document that its published version is the one with the higher score."""
        return np.asarray(1 / (1 + np.exp(-np.sign(left) * self.odds)))

    def tested(self, differences: Doubles, settings: TwinSettings) -> Signs:
        """The test of a model's differences."""
        left = self.left(differences)
        ranks = SignedRanks.of(left, self.chances(left), draws=settings.draws, seed=settings.seed)
        return Signs(left, ranks, ranks.p(), ranks.breakdown(settings.level))

    @property
    def telling(self) -> float:
        """The AUC with which texts alone tell published versions from drafts, 0.5 where they cannot."""
        both = np.concatenate([self.odds, -self.odds])
        return auc(both, np.repeat([True, False], len(self.odds)))


@dataclass(frozen=True, slots=True, eq=False)
class Signs:
    """The differences of a model that are `left` [documents], their test, p at Γ = 1 and Γ* (None where p is above the
    level)."""

    left: Doubles
    ranks: SignedRanks
    p: float
    gamma: float | None


def read(
    pairs: Pairs, reader: Reader, models: Models, references: Sequence[Backend]
) -> tuple[Pairs, list[Doubles], list[Doubles]]:
    """The pairs that every model could score, the differences of the target and of each placebo, and those of each
    reference model, [pairs]; the others are noted as skipped. PretraceError as for `Reader.read`."""
    asked = [("the target", models.target)]
    asked += [(f"the placebo {one.name}", one) for one in models.placebos]
    asked += [(f"the reference model {one.name}", one) for one in references]
    texts = [*pairs.published, *pairs.drafts]
    found = [reader.read(texts, under=model, stage=f"{name} reads the texts") for name, model in asked]
    missing: dict[int, str] = {}
    for (name, _), one in zip(asked, found, strict=True):
        for place in sorted(one.reasons | dict.fromkeys(np.flatnonzero(np.isnan(one.values)).tolist(), "")):
            why = one.reasons.get(place) or "it has no score"
            missing.setdefault(place % len(pairs), f"{name}: {why}")
    there = np.array([i not in missing for i in range(len(pairs))], dtype=bool)
    kept = pairs.without(missing)
    gained = [_gained(one, len(pairs))[there] for one in found]
    beside = 1 + len(models.placebos)
    return kept, gained[:beside], gained[beside:]


def again(found: Differences, reader: Reader) -> Callable[[Backend], Doubles]:
    """What takes the documents' differences under another model in the target's place."""

    def taken(model: Backend) -> Doubles:
        texts = [*found.pairs.published, *found.pairs.drafts]
        scored = reader.read(texts, under=model, stage="the trained copy reads the texts")
        return found.pairs.means(_gained(scored, len(found.pairs)))

    return taken


def _gained(one: Read, number: int) -> Doubles:
    return np.asarray(one.values[:number] - one.values[number:])
