"""The score that learns from planted texts how a text that was read differs, token by token."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from pretrace.errors import LeakError, TextsError
from pretrace.registry import require, scores
from pretrace.results.wording import say
from pretrace.scores.likelihood import TINY_STD, window_sums
from pretrace.scores.probe import fit_linear, known
from pretrace.scores.reference import PAIRED, gains
from pretrace.types import Doubles, Evidence, FittedScore, Needs, Peak, Quantity, Reference, Score

WINDOWS = (1, 4, 16)
"""Lengths in tokens over which each statistic is averaged; a longer one than the text counts as the text."""
FARTHEST = 10.0
"""Standard deviations from the mean beyond which a token counts as this far: near-certain tokens have none."""
_NEEDS = PAIRED | Needs(Quantity.LOGP | Quantity.MOMENTS, states=(Peak(),))


def _features(evidence: Evidence) -> Doubles:
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
            return _carried(Path(self.run))
        members = known(reference, "learned", self.reference)
        seen = np.stack([_features(one) for one in reference.evidence])
        weights, bias = fit_linear(seen, members, C=self.c, tol=1e-10, max_iter=10_000)
        return _classifier(weights, bias, _keys(*(one.text.text for one in reference.evidence)))


def _classifier(weights: Doubles, bias: float, seen: frozenset[str], source: str = "") -> Score:
    """The classifier: `weights` float64 [54] and `bias` on the features as they are. `seen` names the texts that it was
    fitted on, `source` the run that it was carried over from. Its facts are all of it, in plain values, which another
    run carries over; weights stand three a statistic and window."""
    table = [{"text": key} for key in sorted(seen)]
    classifier = {"weights": weights.reshape(-1, 3).tolist(), "bias": bias, "seen": table}
    facts = {"classifier": classifier, "carried_from": source or None}
    return FittedScore(_NEEDS, partial(_log_odds, weights, bias, seen, source), facts)


def _log_odds(weights: Doubles, bias: float, seen: frozenset[str], source: str, evidence: Evidence) -> float:
    if source and _keys(evidence.text.text) <= seen:
        raise LeakError(say("learned.fitted_on", text=evidence.text.id, source=source))
    return float(_features(evidence) @ weights) + bias


def _keys(*texts: str) -> frozenset[str]:
    """What names each text."""
    return frozenset(hashlib.sha256(one.encode("utf-8", "surrogatepass")).hexdigest()[:24] for one in texts)


def _carried(folder: Path) -> Score:
    """The classifier that a run recorded; TextsError where it recorded none."""
    try:
        written = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        fitted = written["settings"]["fitted"]
        of = {name.partition("(")[0]: found for name, found in reversed(fitted.items())}
        one = of["learned"]["classifier"]
        weights, bias = np.array(one["weights"], dtype=np.float64).ravel(), float(one["bias"])
        seen = frozenset(str(text["text"]) for text in one["seen"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError, StopIteration):
        raise TextsError(say("learned.no_classifier", folder=folder)) from None
    if weights.shape != (6 * 3 * len(WINDOWS),) or not np.isfinite([*weights, bias]).all():
        raise TextsError(say("learned.other_features", folder=folder))
    return _classifier(weights, bias, seen, str(folder))
