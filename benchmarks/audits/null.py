"""The audit's tests where nothing is to be found, ten thousand times over: `python -m benchmarks.audits.null`.

Audits are simulated, without any model: snippets draw their values from a null law in which those of one
document are alike, documents have from 1 to 40 snippets, and each audit is tested by the permutation tests of
documents that pretrace makes and by t-tests of snippets. Where a test keeps its word its p-values are uniform:
the row gives the distance of Kolmogorov and Smirnov with its p-value, and how often a true null was rejected at
5% and at 1%. Two-sample tests have half as many held-out documents. Some laws break what the permutation
tests rest on: a long tail on one side for the sign-flip test, held-out texts that are shorter (and so
noisier) for the other.

`--tails` adds laws of the value of a document, most with a long tail below, and holds the sign-flip test
against the one that is guarded against such a tail; two laws are moved above 0, where rejecting is right.

Writes evidence/audit_null.json and .png; killed at any time it goes on where it was.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from benchmarks import RESULTS
from benchmarks.experiments import Ledger, interval
from pretrace.statistics.intervals import satterthwaite, share_interval
from pretrace.statistics.permutation import TIE, guard, sign_flip, skew_corrected, two_sample
from pretrace.types import Doubles

DOCUMENTS = (20, 50, 100, 200, 500)
LEVELS = (0.05, 0.01)
BINS = 20
BLOCK = 50
"""Audits simulated at once: they share the numbers of snippets of their documents."""
MOST = 40
Tail = Literal["none", "heavy", "above", "below"]


@dataclass(frozen=True, slots=True)
class Law:
    """Where the values of snippets come from: variance 1, of which `shared` lies between documents."""

    shared: float
    tail: Tail = "none"
    short: bool = False
    """Whether held-out documents have a fifth of the snippets."""

    def values(self, rng: np.random.Generator, shape: tuple[int, int]) -> Doubles:
        """Mean 0 and variance 1."""
        if self.tail == "none":
            return rng.standard_normal(shape)
        if self.tail == "heavy":
            return rng.standard_t(3, shape) / np.sqrt(3)
        sign = 1.0 if self.tail == "above" else -1.0
        return np.asarray(sign * (rng.standard_exponential(shape) - 1))


LAWS = {
    "normal, correlation 0": Law(0.0),
    "normal, correlation 0.1": Law(0.1),
    "normal, correlation 0.3": Law(0.3),
    "heavy tails, 0.1": Law(0.1, "heavy"),
    "long tail above, 0.1": Law(0.1, "above"),
    "long tail below, 0.1": Law(0.1, "below"),
    "held-out texts short, 0.1": Law(0.1, short=True),
}


Draw = Callable[[np.random.Generator, tuple[int, int]], Doubles]
TAILS: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "Student 3": lambda rng, shape: rng.standard_t(3, shape),
    "exponential below": lambda rng, shape: 1 - rng.standard_exponential(shape),
    "gamma 0.5 below": lambda rng, shape: 0.5 - rng.gamma(0.5, 1, shape),
    "log-normal 0.8 below": lambda rng, shape: np.exp(0.32) - rng.lognormal(0, 0.8, shape),
    "log-normal 1 below": lambda rng, shape: np.exp(0.5) - rng.lognormal(0, 1, shape),
    "Pareto 3 below": lambda rng, shape: 0.5 - rng.pareto(3, shape),
    "exponential above": lambda rng, shape: rng.standard_exponential(shape) - 1,
    "2% at -5": lambda rng, shape: np.where(
        rng.random(shape) < 0.02, -5.0, 0.1 / 0.98 + 0.3 * rng.standard_normal(shape)
    ),
    "normal, moved": lambda rng, shape: rng.standard_normal(shape) + MOVED / np.sqrt(shape[1]),
    "Student 3, moved": lambda rng, shape: rng.standard_t(3, shape) + MOVED * np.sqrt(3 / shape[1]),
}
"""Values of documents: of mean 0 unless moved, by so many standard errors."""
MOVED = 2.5
TAIL_DOCUMENTS = (20, 50, 100, 200)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Simulated audits: snippets [audits, snippets], and how many each document has."""

    snippets: Doubles
    sizes: npt.NDArray[np.int64]

    @classmethod
    def of(cls, law: Law, shape: tuple[int, int], rng: np.random.Generator, *, mean: float) -> Block:
        """So many audits of so many documents; `mean` is about the number of snippets a document."""
        audits, documents = shape
        sizes = np.minimum(rng.geometric(1 / mean, documents), MOST)
        effects = np.repeat(law.values(rng, shape), sizes, axis=1)
        noise = law.values(rng, (audits, int(sizes.sum())))
        return cls(np.sqrt(law.shared) * effects + np.sqrt(1 - law.shared) * noise, sizes)

    @property
    def documents(self) -> Doubles:
        """The mean of each document, [audits, documents]."""
        starts = np.concatenate(([0], np.cumsum(self.sizes)[:-1]))
        return np.asarray(np.add.reduceat(self.snippets, starts, axis=1) / self.sizes)

    @property
    def moments(self) -> tuple[Doubles, Doubles, int]:
        """Mean of the snippets of each audit, the variance of that mean were they independent, their number."""
        number = self.snippets.shape[1]
        return self.snippets.mean(axis=1), self.snippets.var(axis=1, ddof=1) / number, number


def measure(key: Mapping[str, Any], *, audits: int, flips: int, permutations: int) -> list[dict[str, Any]]:
    """A row a test: what its p-values look like over so many audits of one law and number of documents."""
    law, documents = LAWS[key["law"]], key["documents"]
    rng = np.random.default_rng([list(LAWS).index(key["law"]), documents])
    found: dict[str, list[float]] = {}
    for start in range(0, audits, BLOCK):
        size = min(BLOCK, audits - start)
        suspect = Block.of(law, (size, documents), rng, mean=10)
        heldout = Block.of(law, (size, max(2, documents // 2)), rng, mean=2 if law.short else 10)
        seeds, mine, theirs = range(start, start + size), suspect.documents, heldout.documents
        tests: dict[str, Sequence[float]] = {}
        if not law.short:
            tests["sign_flip"] = [
                sign_flip(one, flips=flips, seed=i) for i, one in zip(seeds, mine, strict=True)
            ]
            tests["t of snippets"] = _student(suspect)
        tests["two_sample"] = [
            two_sample(one, other, permutations=permutations, seed=i)
            for i, one, other in zip(seeds, mine, theirs, strict=True)
        ]
        tests["Welch of snippets"] = _welch(suspect, heldout)
        for name, values in tests.items():
            found.setdefault(name, []).extend(values)
    steps = {"sign_flip": flips + 1, "two_sample": permutations + 1}
    return [
        {"test": name, "audits": audits, **_described(np.array(values), steps.get(name), rng)}
        for name, values in found.items()
    ]


def measure_tails(key: Mapping[str, Any], *, audits: int, flips: int) -> list[dict[str, Any]]:
    """A row for the sign-flip test and one for the guarded test, over the same audits and flips."""
    rng = np.random.default_rng([100 + list(TAILS).index(key["law"]), key["documents"]])
    found: dict[str, list[Doubles]] = {}
    for start in range(0, audits, BLOCK):
        values = TAILS[key["law"]](rng, (min(BLOCK, audits - start), key["documents"]))
        signs = rng.choice((-1.0, 1.0), (flips, key["documents"]))
        for name, guarded in (("sign_flip", False), ("sign_flip, guarded", True)):
            found.setdefault(name, []).append(flipped(values, signs, guarded=guarded))
    return [
        {"test": name, "audits": audits, **_described(np.concatenate(values), flips + 1, rng)}
        for name, values in found.items()
    ]


def flipped(values: Doubles, signs: Doubles, *, guarded: bool) -> Doubles:
    """The p-values of a sign-flip test of each row of `values` [audits, documents], with the same flips for
    all, `signs` [flips, documents]: what `sign_flip_test` does, for many audits at once."""
    number = values.shape[1]
    unit = values / np.sqrt((values**2).mean(axis=1, keepdims=True))
    signs = np.concatenate((np.ones((1, number)), signs))
    mean, cube = signs @ unit.T / number, signs @ (unit**3).T / number
    third = (cube - 3 * mean + 2 * mean**3) / number**2
    statistic = skew_corrected(mean, (1 - mean**2) / (number - 1), guard(third, number) if guarded else third)
    return np.asarray((statistic >= statistic[0] - TIE).mean(axis=0))


def _student(block: Block) -> list[float]:
    from scipy.special import stdtr

    mean, variance, number = block.moments
    return [float(p) for p in stdtr(number - 1, -mean / np.sqrt(variance))]


def _welch(first: Block, second: Block) -> list[float]:
    from scipy.special import stdtr

    (mean, variance, number), (other, spread, count) = first.moments, second.moments
    freedom = satterthwaite(variance, spread, (number, count))
    return [float(p) for p in stdtr(freedom, (other - mean) / np.sqrt(variance + spread))]


def _described(values: Doubles, steps: int | None, rng: np.random.Generator) -> dict[str, Any]:
    """Distance from uniform, rejections and histogram. A permutation test's p stands for a step of
    1 / `steps` below it, and is spread over it where it is held against the uniform distribution."""
    from scipy.stats import kstest

    smooth = values - rng.random(len(values)) / steps if steps else values
    distance = kstest(smooth, "uniform")
    row: dict[str, Any] = {"ks": round(float(distance.statistic), 4), "ks_p": float(f"{distance.pvalue:.3g}")}
    for level in LEVELS:
        # 1e-12: k / steps is not always the level it should be.
        hits = int(np.count_nonzero(values <= level + 1e-12))
        row[f"rejected_{level}"] = interval(share_interval(hits, len(values)))
    counts, _ = np.histogram(smooth, bins=BINS, range=(0, 1))
    return {**row, "histogram": counts.tolist()}


def _keys(documents: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The small ones of every law first."""
    for number in documents:
        for law in LAWS:
            yield {"law": law, "documents": number}


def main() -> None:
    """Measure what is not on file yet."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--audits", type=int, default=10_000, help="simulated audits a cell (default 10000)")
    parser.add_argument("--documents", type=int, nargs="+", default=list(DOCUMENTS))
    parser.add_argument("--flips", type=int, default=299, help="flips of signs a test (default 299)")
    parser.add_argument("--permutations", type=int, default=99, help="permutations a test (default 99)")
    parser.add_argument("--tails", action="store_true", help="add the laws with long tails")
    parser.add_argument("--limit", type=int, help="finish at most so many cells in this call")
    parser.add_argument("--out", type=Path, default=RESULTS / "audit_null.json")
    parser.add_argument("--fresh", action="store_true", help="begin anew, whatever the file holds")
    arguments = parser.parse_args()
    size = {name: getattr(arguments, name) for name in ("audits", "flips", "permutations")}
    ledger = Ledger(arguments.out, size, fresh=arguments.fresh)
    keys = list(_keys(arguments.documents))
    if arguments.tails:
        keys += [{"part": "tails", "law": law, "documents": n} for n in TAIL_DOCUMENTS for law in TAILS]
    for key in ledger.todo(keys, arguments.limit):
        begin = time.perf_counter()
        if "part" in key:
            rows = measure_tails(key, audits=arguments.audits, flips=arguments.flips)
        else:
            rows = measure(key, **size)
        ledger.add(key, rows, {"seconds": round(time.perf_counter() - begin, 1)})
    ledger.save()


if __name__ == "__main__":
    main()
