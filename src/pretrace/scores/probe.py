"""The score that a linear probe reads off hidden states, and what scores share that learn from reference texts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.errors import TextsError
from pretrace.registry import require, scores
from pretrace.results.wording import say
from pretrace.statistics.documents import grouped_split
from pretrace.statistics.roc import auc
from pretrace.types import Bools, Doubles, Evidence, FittedScore, Hidden, Needs, Reference, Score


def known(reference: Reference, score: str, needs: Needs) -> Bools:
    """Which reference texts are members; TextsError where one is unlabelled or was not read, or where a
    side has fewer than 2."""
    for e in reference.evidence:
        if e.text.member is None:
            raise TextsError(say("scores.unlabelled", score=score, text=e.text.id))
        if any(state not in e.plain.states for states in needs.states.values() for state in states):
            raise TextsError(say("scores.unread", score=score, text=e.text.id))
    members = np.array([bool(e.text.member) for e in reference.evidence], dtype=bool)
    found = int(members.sum()), int((~members).sum())
    if min(found) < 2:
        raise TextsError(say("scores.few", score=score, members=found[0], nonmembers=found[1]))
    return members


def fit_linear(features: Doubles, members: Bools, **settings: Any) -> tuple[Doubles, float]:
    """Fit a logistic regression, with settings of scikit-learn's, on standardised features [texts, features]: weights
    and bias over the features as they are."""
    from sklearn.linear_model import LogisticRegression

    mean, std = features.mean(axis=0), features.std(axis=0)
    scale = np.where(std > 1e-12 * (1 + np.abs(mean)), std, 1.0)  # a constant feature says nothing
    fitted = LogisticRegression(**settings).fit((features - mean) / scale, members)
    weights = fitted.coef_[0] / scale
    return weights, float(fitted.intercept_[0] - mean @ weights)


_STEPS = 1000


@scores.add("probe")
@dataclass(frozen=True)
class Probe:
    """Probability of membership that a linear probe reads off a hidden state (Liu et al. 2024c).

    On the reference texts' hidden states h_l at the last token, one logistic regression per layer learns on
    standardised features z = (h_l − mean) / std, with inverse penalty `c`. About a `share` of the texts, whole
    documents drawn at random, is held back; the layer with the highest AUC on those is chosen (ties to the lower).
    probe(x) = 1 / (1 + exp(−w·z − b)), with the validated classifier, which is not fitted again. The paper fine-tunes a
    proxy of the model on known members; here the reference labels are taken as correct (`pretrace plant` makes such a
    model). Needs a model with weights.

    >>> from dataclasses import replace
    >>> from pretrace.testing import make_trace
    >>> from pretrace.types import Text, View
    >>> seen = replace(make_trace([-1.0] * 3), states={Hidden(2): np.array([3.0, 5.0], dtype=np.float32)})
    >>> text = Evidence(Text("t", "three little tokens"), {View(): (seen,)})
    >>> _probability(2, np.array([1.0, -1.0]), 2.0, text)  # 1 / (1 + exp(-(3 - 5) - 2))
    0.5
    """

    c: float = 1.0
    share: float = 0.33
    needs = reference = Needs(states=[Hidden()])  # all of them, before it is known which layer is chosen

    def __post_init__(self) -> None:
        require(0 < self.c < math.inf, f"probe: c is an inverse penalty above 0, found {self.c}.")
        require(0 < self.share < 1, f"probe: share lies between 0 and 1; found {self.share}.")

    def fit(self, reference: Reference, /) -> Score:
        """The probe of the best layer; TextsError where either side has too few texts or documents."""
        members = known(reference, "probe", self.reference)
        held = _held(self, reference, members)
        states = np.stack(
            [e.plain.states[Hidden()] for e in reference.evidence]
        )  # [texts, layers + 1, width]
        aucs, probes = [], []
        for layer in range(states.shape[1]):
            seen = states[~held, layer].astype(np.float64)
            weights, bias = fit_linear(seen, members[~held], C=self.c, max_iter=_STEPS)
            aucs.append(auc(states[held, layer] @ weights + bias, members[held]))
            probes.append((weights, bias))
        best = int(np.argmax(aucs))
        facts = {
            "layers": [{"layer": i, "auc": found, "chosen": i == best} for i, found in enumerate(aucs)],
            "layer": best,
            "settings": {"c": float(self.c), "share": self.share},
            "reference": {
                "members": int(members.sum()),
                "nonmembers": int((~members).sum()),
                "fitted_on": int((~held).sum()),
                "chosen_by": int(held.sum()),
            },
        }
        return FittedScore(Needs(states=[Hidden(best)]), partial(_probability, best, *probes[best]), facts)


def _probability(layer: int, weights: Doubles, bias: float, evidence: Evidence) -> float:
    """What a probe of one layer says: `weights` float64 [width] and `bias` on the hidden state as the model has it."""
    hidden: npt.NDArray[np.float32] = evidence.plain.states[Hidden(layer)]
    odds = float(hidden @ weights) + bias
    return 1 / (1 + math.exp(-odds)) if odds >= 0 else math.exp(odds) / (1 + math.exp(odds))


def _held(probe: Probe, reference: Reference, members: Bools) -> Bools:
    """Which texts the layer is chosen by; both parts have members and non-members, and share no document."""
    documents = [e.text.document for e in reference.evidence]
    held = grouped_split(documents, probe.share, reference.seed, members)
    if any(len(np.unique(members[part])) < 2 for part in (held, ~held)):
        raise TextsError(say("scores.few_documents"))
    return held
