"""NA-PDD: which feed-forward neurons a text activates, against those of known members and non-members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from pretrace.registry import require, scores
from pretrace.results.wording import say
from pretrace.scores.probe import known
from pretrace.statistics.documents import Grouping, Numbers, grouped_folds
from pretrace.statistics.roc import auc
from pretrace.types import Bools, Doubles, Evidence, Firing, Needs, Reference, Score, State

Pool = Literal["any", "mean", "notebook"]
Bits = npt.NDArray[np.uint8]

_PRESETS = {"paper": (1.0, 1.5, 10), "appendix": (1.5, 1.8, 5)}
"""Threshold, alpha and k: section 5 of the paper, and its appendix C.2."""
GRID = tuple(step / 4 for step in range(9))
"""Thresholds the sensitivity is measured at, the paper's range [0, 2]."""
_ALPHAS = (1.2, 1.4, 1.6, 1.8, 2.0)
_SMOOTH = 1e-6
KS = (1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 40, 60, 80)
_CHUNK = 64  # texts unpacked at a time
_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)


@scores.add("na_pdd")
@dataclass(frozen=True)
class NAPDD:
    """Overlap with the neurons of known members over that with non-members' (Tang et al. 2025, eq. 2-12).

    A text activates neuron n if its activation exceeds `threshold`. f(n) is the share of the reference members, or
    non-members, that activate n. Member neurons are {n: f_mem(n) > alpha · f_non(n)}, non-member neurons
    {n: f_non(n) > alpha · f_mem(n)}. Of the `k` layers with the largest |mem| − |non| (`by_absolute`: with the largest
    distance from 0; ties to the lower layer) na_pdd(x) = (mean share of the member neurons that x activates + 1e-6) /
    (the same of non-member neurons + 1e-6); an empty set counts as a share of 0.

    `pool` "any": active at one position or more; "mean": the mean over the positions exceeds the threshold; "notebook",
    as in the authors' code for Pythia and OPT: f(n) is the number of positions at which n is active, divided by the
    number of texts, and the scored text is pooled by "any". `preset` "paper" is threshold=1.0, alpha=1.5, k=10, the
    default; "appendix" is 1.5, 1.8, 5. `gated` uses the activation function's output times the gate's other branch,
    which is what the down projection reads. Needs a model with weights.

    >>> from dataclasses import replace
    >>> from pretrace.testing import make_trace
    >>> from pretrace.types import Text, View
    >>> seen = replace(make_trace([-1.0] * 3), states={Firing(): np.packbits([[1, 1, 1, 0]], axis=1)})
    >>> marked = _mark(np.array([[0.9, 0.8, 0.2, 0.1]]), np.array([[0.1, 0.2, 0.8, 0.9]]), alpha=1.5)
    >>> score = _Overlap(NAPDD(), marked, _best_layers(marked, 10, by_absolute=False), Reference())
    >>> round(score(Evidence(Text("t", "three little tokens"), {View(): (seen,)})), 3)  # (2/2) / (1/2)
    2.0
    """

    threshold: float | None = None
    alpha: float | None = None
    k: int | None = None
    pool: Pool = "any"
    preset: Literal["paper", "appendix"] | None = None
    by_absolute: bool = False
    gated: bool = False

    def __post_init__(self) -> None:
        for name, choices in (("preset", tuple(_PRESETS)), ("pool", get_args(Pool))):
            given, shown = getattr(self, name), " or ".join(map(repr, choices))
            known = given in choices or (given is None and name == "preset")
            require(known, f"na_pdd: {name} must be {shown}, found {given!r}.")
        for name, value in zip(("threshold", "alpha", "k"), _PRESETS[self.preset or "paper"], strict=True):
            given = getattr(self, name)
            wrong = say("scores.preset", preset=self.preset, name=name, value=value, given=given)
            require(self.preset is None or given is None or given == value, wrong)
        threshold, alpha, k = self.chosen
        require(np.isfinite(threshold), f"na_pdd: threshold must be a finite number, found {threshold}.")
        require(np.isfinite(alpha) and alpha >= 1, f"na_pdd: alpha must be 1 or more, found {alpha}.")
        require(k >= 1, f"na_pdd: k is a number of layers, at least 1; found {k}.")

    @property
    def chosen(self) -> tuple[float, float, int]:
        """Threshold, alpha and k: as given, else the preset's, else the paper's."""
        threshold, alpha, k = _PRESETS[self.preset or "paper"]
        return (
            threshold if self.threshold is None else float(self.threshold),
            alpha if self.alpha is None else float(self.alpha),
            k if self.k is None else self.k,
        )

    def _firing(self, threshold: float) -> Firing:
        """Which neurons a text activates, at a threshold."""
        return Firing("mean" if self.pool == "mean" else "any", threshold, self.gated)

    @property
    def needs(self) -> Needs:
        return Needs(states=[self._firing(self.chosen[0])])

    @property
    def _thresholds(self) -> tuple[float, ...]:
        """What the reference texts are looked at with, all in one pass: the grid and the one chosen. Counts
        are 32 times as large as bits, so the notebook's pooling looks at the chosen one alone."""
        own = self.chosen[0]
        return (own,) if self.pool == "notebook" else tuple(sorted({*GRID, own}))

    @property
    def _counting(self) -> Firing | None:
        """At how many positions the reference texts activate each neuron, where that is wanted."""
        return Firing("count", self.chosen[0], self.gated) if self.pool == "notebook" else None

    @property
    def reference(self) -> Needs:
        """Which neurons each reference text activates, at every threshold of the sensitivity."""
        states: list[State] = [self._firing(threshold) for threshold in self._thresholds]
        return Needs(states=[*states, self._counting] if self._counting else states)

    def fit(self, reference: Reference, /) -> Score:
        """The score with its member and non-member neurons; TextsError where a side has fewer than 2 texts."""
        threshold, alpha, k = self.chosen
        members = known(reference, "na_pdd", self.reference)
        marked = _marked(self, threshold, reference.evidence, members, alpha=alpha)
        return _Overlap(self, marked, _best_layers(marked, k, by_absolute=self.by_absolute), reference)


def _mark(member: Doubles, nonmember: Doubles, alpha: float) -> Bits:
    """Mark the member and the non-member neurons by how often each side activates each, [layers, neurons] (eq. 5 and
    6): bits packed along the neurons, uint8 [2, layers, bytes]."""
    return np.packbits([member > alpha * nonmember, nonmember > alpha * member], axis=2)


def _best_layers(marked: Bits, k: int, *, by_absolute: bool) -> Numbers:
    """The k layers of largest difference (eq. 9), counted from 0, ties to the lower; all, if there are fewer."""
    members, nonmembers = _ones(marked)
    difference = members - nonmembers
    return np.argsort(-(np.abs(difference) if by_absolute else difference), kind="stable")[:k]


def _shares(marked: Bits, active: Bits) -> list[Doubles]:
    """Shares of the member and of the non-member neurons (eq. 7 and 8) that are active: uint8 [..., layers, bytes] →
    float64 [..., layers], 0 where there is no such neuron."""
    return [_ones(active & one) / np.maximum(_ones(one), 1) for one in marked]


def _advantage(member: Doubles, nonmember: Doubles) -> Doubles:
    """Mean over the layers, the last axis, of one over that of the other, smoothed (eq. 10-12)."""
    return np.asarray((member.mean(axis=-1) + _SMOOTH) / (nonmember.mean(axis=-1) + _SMOOTH))


@dataclass(frozen=True, eq=False)
class _Overlap:
    """NA-PDD with its neurons: `layers` are those it looks at, counted from 0."""

    recipe: NAPDD
    marked: Bits
    layers: Numbers
    reference: Reference

    @property
    def needs(self) -> Needs:
        return self.recipe.needs

    @cached_property
    def _looked_at(self) -> tuple[Firing, Bits]:
        return self.recipe._firing(self.recipe.chosen[0]), self.marked[:, self.layers]

    def __call__(self, evidence: Evidence, /) -> float:
        state, marked = self._looked_at
        return float(_advantage(*_shares(marked, evidence.plain.states[state][self.layers])))

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """Neurons by layer (numbered from 1, as in the paper), the settings, and the sensitivity: AUC within the
        reference texts, a half judged by the neurons of the other, as one setting is varied at a time."""
        recipe, (marked, others) = self.recipe, _ones(self.marked)
        members = known(self.reference, "na_pdd", recipe.reference)
        layers = [
            {
                "layer": layer + 1,
                "members": int(marked[layer]),
                "nonmembers": int(others[layer]),
                "difference": int(marked[layer] - others[layer]),
                "chosen": layer in self.layers,
            }
            for layer in range(len(marked))
        ]
        return {
            "layers": layers,
            "settings": {
                **dict(zip(("threshold", "alpha", "k"), recipe.chosen, strict=True)),
                **{name: getattr(recipe, name) for name in ("pool", "by_absolute", "gated")},
            },
            "reference": {"members": int(members.sum()), "nonmembers": int((~members).sum())},
            "sensitivity": _sensitivity(recipe, self.reference, members, layers=len(layers)),
        }


def _sensitivity(
    recipe: NAPDD, reference: Reference, members: Bools, *, layers: int
) -> list[dict[str, float]]:
    """AUC at each setting, the mean of two halves; empty where a half would lack a side. No document is in both."""
    evidence = reference.evidence
    grouping = Grouping.of([e.text.document for e in evidence], members)
    half = grouped_folds(grouping, 2, reference.seed)
    if any(len(np.unique(members[half == side])) < 2 for side in (0, 1)):
        return []
    threshold, alpha, k = recipe.chosen
    own = min(k, layers)
    varied = {(t, alpha, own) for t in recipe._thresholds} | {(threshold, a, own) for a in _ALPHAS}
    varied |= {(threshold, alpha, few) for few in (*KS, own, layers) if few <= layers}
    found: dict[tuple[float, float, int], list[float]] = {setting: [] for setting in sorted(varied)}
    for t, a in sorted({setting[:2] for setting in varied}):
        for side in (0, 1):
            rows = np.flatnonzero(half != side), np.flatnonzero(half == side)
            learnt, judged = ([evidence[row] for row in part] for part in rows)
            marked = _marked(recipe, t, learnt, members[rows[0]], alpha=a)
            active = np.stack([e.plain.states[recipe._firing(t)] for e in judged])
            shares = _shares(marked, active)
            for setting in found:
                if setting[:2] == (t, a):
                    best = _best_layers(marked, setting[2], by_absolute=recipe.by_absolute)
                    values = _advantage(*(share[:, best] for share in shares))
                    found[setting].append(auc(values, members[rows[1]]))
    return [
        {"threshold": t, "alpha": a, "k": few, "auc": float(np.mean(aucs))}
        for (t, a, few), aucs in found.items()
    ]


def _marked(
    recipe: NAPDD, threshold: float, evidence: Sequence[Evidence], members: Bools, *, alpha: float
) -> Bits:
    member, nonmember = (
        _frequency(recipe, threshold, [e for e, m in zip(evidence, members, strict=True) if m == side])
        for side in (True, False)
    )
    return _mark(member, nonmember, alpha)


def _frequency(recipe: NAPDD, threshold: float, evidence: Sequence[Evidence]) -> Doubles:
    """How often each neuron is active a text, float64 [layers, neurons]: the share of the texts (eq. 3 and 4),
    or, where positions are counted, their mean number."""
    if recipe._counting is not None:
        return np.asarray(
            sum(e.plain.states[recipe._counting].astype(np.int64) for e in evidence) / len(evidence)
        )
    state = recipe._firing(threshold)
    chunks = (evidence[start : start + _CHUNK] for start in range(0, len(evidence), _CHUNK))
    bits = (np.unpackbits(np.stack([e.plain.states[state] for e in some]), axis=2) for some in chunks)
    return np.asarray(sum(one.sum(axis=0, dtype=np.int64) for one in bits) / len(evidence))


def _ones(bits: Bits) -> Numbers:
    return np.asarray(_ONES[bits].sum(axis=-1, dtype=np.int64))
