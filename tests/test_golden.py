"""Each formula against a naive loop written from its paper, on evidence made at random."""

from __future__ import annotations

import math
import zlib as zlib_module
from collections.abc import Callable

import numpy as np
import pytest

from pretrace.scores import parse, scores
from pretrace.scores.divergence import DCPDD
from pretrace.testing import make_trace
from pretrace.types import Evidence, Recipe, Reference, Score, Text, View

VOCABULARY = 40


class Counts:
    """A token table made of plain counts."""

    tokenizer_hash = "made up"

    def __init__(self, counts: dict[int, int]) -> None:
        self.counts = counts

    def log_frequency(self, vocabulary: int) -> np.ndarray:
        total = sum(self.counts.values())
        return np.array(
            [math.log((self.counts.get(v, 0) + 1) / (total + vocabulary)) for v in range(vocabulary)]
        )


COUNTS = Counts({v: v * v for v in range(30)})


def evidence(seed: int) -> Evidence:
    generator = np.random.default_rng(seed)
    n, m = int(generator.integers(1, 60)), int(generator.integers(1, 60))
    logp = -generator.gamma(1.5, 1.5, n)
    plain = make_trace(
        logp,
        tokens=generator.integers(0, VOCABULARY, n).tolist(),
        mean=-generator.gamma(2.0, 1.0, n),
        std=generator.choice([0.0, 1e-9, 0.7, 1.9], n),
    )
    views = {
        View(): (plain,),
        View(rewrite="lower"): (make_trace(-generator.gamma(1.5, 1.5, m)),),
        View(model="reference"): (make_trace(-generator.gamma(1.5, 1.5, m)),),
    }
    return Evidence(Text("t", "Some Text of " + "🙂é" * seed), views)


def values(trace: object, name: str) -> list[float]:
    return [float(v) for v in getattr(trace, name)]


def average(numbers: list[float]) -> float:
    total = 0.0
    for number in numbers:
        total += number
    return total / len(numbers)


def mean_logp(e: Evidence, view: View = View()) -> float:  # noqa: B008 - View is frozen
    return average(values(e.views[view][0], "logp"))


def bottom(numbers: list[float], k: float) -> float:
    return average(sorted(numbers)[: max(1, int(k * len(numbers)))])


def naive_min_k_plus_plus(e: Evidence, k: float) -> float:
    logp, mean, std = (values(e.plain, name) for name in ("logp", "mean", "std"))
    return bottom([(a - b) / max(c, 1e-6) for a, b, c in zip(logp, mean, std, strict=True)], k)


def naive_dc_pdd(e: Evidence, a: float, *, clip: bool, first: bool) -> float:
    total = sum(COUNTS.counts.values())
    seen: set[int] = set()
    alphas = []
    for token, logp in zip(e.plain.tokens.tolist(), values(e.plain, "logp"), strict=True):
        if first and token in seen:
            continue
        seen.add(token)
        frequency = (COUNTS.counts.get(token, 0) + 1) / (total + VOCABULARY)
        alpha = -math.exp(logp) * math.log(frequency)
        alphas.append(min(alpha, a) if clip else alpha)
    return average(alphas)


NAIVE: dict[str, Callable[[Evidence], float]] = {
    "loss": mean_logp,
    "ppl": lambda e: -math.exp(-mean_logp(e)),
    "zlib": lambda e: mean_logp(e) / len(zlib_module.compress(e.text.text.encode(), 6)),
    "zlib(level=9)": lambda e: mean_logp(e) / len(zlib_module.compress(e.text.text.encode(), 9)),
    "lowercase": lambda e: -(mean_logp(e) / mean_logp(e, View(rewrite="lower"))),
    "ref": lambda e: -(mean_logp(e) / mean_logp(e, View(model="reference"))),
    "ref(difference=True)": lambda e: mean_logp(e) - mean_logp(e, View(model="reference")),
    "min_k": lambda e: bottom(values(e.plain, "logp"), 0.2),
    "min_k(k=0.05)": lambda e: bottom(values(e.plain, "logp"), 0.05),
    "min_k(k=1)": lambda e: bottom(values(e.plain, "logp"), 1.0),
    "min_k_plus_plus": lambda e: naive_min_k_plus_plus(e, 0.2),
    "min_k_plus_plus(k=0.5)": lambda e: naive_min_k_plus_plus(e, 0.5),
    "dc_pdd": lambda e: naive_dc_pdd(e, 0.01, clip=True, first=True),
    "dc_pdd(a=0.5)": lambda e: naive_dc_pdd(e, 0.5, clip=True, first=True),
    "dc_pdd(a=0.5, variant='lup')": lambda e: naive_dc_pdd(e, 0.5, clip=True, first=False),
    "dc_pdd(variant='cld')": lambda e: naive_dc_pdd(e, 0.01, clip=False, first=False),
}


def ready(expression: str) -> Score:
    score = parse(expression)[expression]
    return score.fit(Reference(COUNTS, VOCABULARY)) if isinstance(score, Recipe) else score


@pytest.mark.parametrize("expression", NAIVE)
@pytest.mark.parametrize("seed", range(12))
def test_a_score_equals_its_loop(expression: str, seed: int) -> None:
    e = evidence(seed)
    assert ready(expression)(e) == pytest.approx(NAIVE[expression](e), rel=1e-5)


def test_every_score_has_a_loop() -> None:
    assert set(scores) == {expression.partition("(")[0] for expression in NAIVE}


def test_a_near_certain_token_gives_a_finite_score() -> None:
    certain = make_trace([0.0, -1e-7], mean=[0.0, -1e-7], std=[0.0, 0.0])
    assert math.isfinite(ready("min_k_plus_plus")(Evidence(Text("t", "ab"), {View(): (certain,)})))


def test_dc_pdd_without_counts_says_how_to_get_them() -> None:
    with pytest.raises(Exception, match="pretrace count"):
        DCPDD().fit(Reference())
