"""The score that learns from planted texts how a text that was read differs, token by token."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.errors import LeakError, TextsError
from pretrace.registry import require, scores
from pretrace.results.wording import say
from pretrace.scores.likelihood import TINY_STD, window_sums
from pretrace.scores.reference import PAIRED, gains
from pretrace.statistics.documents import grouped_split
from pretrace.statistics.roc import auc
from pretrace.types import Bools, Doubles, Evidence, Hidden, Needs, Peak, Quantity, Reference, Score

WINDOWS = (1, 4, 16)
"""Lengths in tokens over which each statistic is averaged; a longer one than the text counts as the text."""
FARTHEST = 10.0
"""Standard deviations from the mean beyond which a token counts as this far: near-certain tokens have none."""
_NEEDS = PAIRED | Needs(Quantity.LOGP | Quantity.MOMENTS, states=(Peak(),))


def features(evidence: Evidence) -> Doubles:
    """What the classifier sees of a text, float64 [54]: of six statistics of each token, averaged over each of three
    windows, the mean and the means of the lowest and the highest fifth."""
    gain, part = gains(evidence)
    trace = evidence.plain
    assert trace.mean is not None  # `needs` asked for them
    assert trace.std is not None
    logp, mean, std = (one[part].astype(np.float64) for one in (trace.logp, trace.mean, trace.std))
    away = ((logp - mean) / np.maximum(std, TINY_STD)).clip(-FARTHEST, FARTHEST)
    below = logp - trace.states[Peak()][part]
    found = []
    for one in (gain, logp, away, below, mean, std):
        for window in WINDOWS:
            width = min(window, len(one))
            ordered = np.sort(window_sums(one, width) / width)
            fifth = max(1, len(ordered) // 5)
            found += [ordered.mean(), ordered[:fifth].mean(), ordered[-fifth:].mean()]
    return np.array(found)


@scores.add("learned")
@dataclass(frozen=True)
class Learned:
    """Log-odds of membership by a classifier that learned from texts with known labels (LT-MIA, Ilić et al. 2026b).

    For each token: the gain over the reference model logp_i − logp_ref,i; logp_i; (logp_i − mean_i) / max(std_i, 1e-6),
    limited to ±10; logp_i − max_v log p(v); mean_i; std_i. Each is averaged over every 1, 4 and 16 tokens in a row (all
    of them if there are fewer). The features are the mean of the m averages, the mean of the lowest max(1, int(m/5)),
    and that of as many highest. learned(x) = w·z + b over the 54 standardised features z: a logistic regression with
    inverse penalty `c`, fitted on reference texts (`--reference`), which are never scored.

    `run` names the folder of a run with `learned` on a model with known labels (`pretrace plant`): its classifier is
    used, and no reference texts are needed; texts it was fitted on are refused. The paper trains a transformer on 154
    statistics per token of many fine-tuned models; this is its idea for a few hundred texts. The reference model
    (`--reference-model`) must have the target's tokenizer.
    """

    c: float = 0.1
    run: str | None = None

    def __post_init__(self) -> None:
        require(0 < self.c < math.inf, f"learned: c is an inverse penalty above 0, found {self.c}.")

    @property
    def needs(self) -> Needs:
        return _NEEDS

    @property
    def reference(self) -> Needs:
        """The same of each reference text; nothing where the classifier comes from another run."""
        return _NEEDS if self.run is None else Needs()

    def fit(self, reference: Reference, /) -> Score:
        """The fitted classifier; TextsError where there are too few texts of either label, or no such run."""
        if self.run is not None:
            return carried(Path(self.run))
        members = known(reference, "learned", self.reference)
        seen = np.stack([features(one) for one in reference.evidence])
        weights, bias = fit_linear(seen, members, C=self.c, tol=1e-10, max_iter=10_000)
        return Classifier(weights, bias, keys(*(one.text.text for one in reference.evidence)))


@dataclass(frozen=True, eq=False)
class Classifier:
    """The classifier: `weights` float64 [54] and `bias` on the features as they are. `seen` names the texts that it was
    fitted on, `source` the run that it was carried over from."""

    weights: Doubles
    bias: float
    seen: frozenset[str] = frozenset()
    source: str = ""
    needs = _NEEDS

    @property
    def facts(self) -> Mapping[str, Any]:
        """All of it, in plain values: what another run carries over. Weights stand three a statistic and window."""
        table = [{"text": key} for key in sorted(self.seen)]
        classifier = {"weights": self.weights.reshape(-1, 3).tolist(), "bias": self.bias, "seen": table}
        return {"classifier": classifier, "carried_from": self.source or None}

    def __call__(self, evidence: Evidence, /) -> float:
        if self.source and keys(evidence.text.text) <= self.seen:
            raise LeakError(say("scores.fitted_on", text=evidence.text.id, source=self.source))
        return float(features(evidence) @ self.weights) + self.bias


def keys(*texts: str) -> frozenset[str]:
    """What names each text."""
    return frozenset(hashlib.sha256(one.encode("utf-8", "surrogatepass")).hexdigest()[:24] for one in texts)


def carried(folder: Path) -> Classifier:
    """The classifier that a run recorded; TextsError where it recorded none."""
    try:
        written = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        fitted = written["settings"]["fitted"]
        one = next(
            found["classifier"] for name, found in fitted.items() if name.partition("(")[0] == "learned"
        )
        weights, bias = np.array(one["weights"], dtype=np.float64).ravel(), float(one["bias"])
        seen = frozenset(str(text["text"]) for text in one["seen"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError, StopIteration):
        raise TextsError(say("scores.no_classifier", folder=folder)) from None
    if weights.shape != (6 * 3 * len(WINDOWS),) or not np.isfinite([*weights, bias]).all():
        raise TextsError(say("scores.other_features", folder=folder))
    return Classifier(weights, bias, seen, str(folder))


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
    >>> score = Linear(layer=2, weights=np.array([1.0, -1.0]), bias=2.0, facts={})
    >>> score(Evidence(Text("t", "three little tokens"), {View(): (seen,)}))  # 1 / (1 + exp(-(3 - 5) - 2))
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
        return Linear(best, *probes[best], facts)


@dataclass(frozen=True, eq=False)
class Linear:
    """A probe of one layer: `weights` float64 [width] and `bias` on the hidden state as the model has it."""

    layer: int
    weights: Doubles
    bias: float
    facts: Mapping[str, Any]

    @property
    def needs(self) -> Needs:
        return Needs(states=[Hidden(self.layer)])

    def __call__(self, evidence: Evidence, /) -> float:
        hidden: npt.NDArray[np.float32] = evidence.plain.states[Hidden(self.layer)]
        odds = float(hidden @ self.weights) + self.bias
        return 1 / (1 + math.exp(-odds)) if odds >= 0 else math.exp(odds) / (1 + math.exp(odds))


def _held(probe: Probe, reference: Reference, members: Bools) -> Bools:
    """Which texts the layer is chosen by; both parts have members and non-members, and share no document."""
    documents = [e.text.document for e in reference.evidence]
    held = grouped_split(documents, probe.share, reference.seed, members)
    if any(len(np.unique(members[part])) < 2 for part in (held, ~held)):
        raise TextsError(say("scores.few_documents"))
    return held
