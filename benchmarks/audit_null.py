"""The audit's tests where nothing is to be found, ten thousand times over: `python -m benchmarks.audit_null`.

Audits are simulated, without any model: snippets draw their values from a null law in which those of one
document are alike, documents have from 1 to 40 snippets, and each audit is tested by the permutation tests of
documents that pretrace makes and by t-tests of snippets. Where a test keeps its word its p-values are uniform:
the row gives the distance of Kolmogorov and Smirnov with its p-value, and how often a true null was rejected at
5% and at 1%. Two-sample tests have half as many held-out documents. Some laws break what the permutation
tests rest on: a long tail on one side for the sign-flip test, held-out texts that are shorter (and so
noisier) for the other.

Writes benchmarks/results/audit_null.json and .png; killed at any time it goes on where it was.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from benchmarks.audit_null_plots import draw
from benchmarks.experiments import RESULTS, Ledger, interval
from pretrace.statistics.permutation import satterthwaite, share_interval, sign_flip, two_sample
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
    """Measure what is not on file yet, and draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--audits", type=int, default=10_000, help="simulated audits a cell (default 10000)")
    parser.add_argument("--documents", type=int, nargs="+", default=list(DOCUMENTS))
    parser.add_argument("--flips", type=int, default=299, help="flips of signs a test (default 299)")
    parser.add_argument("--permutations", type=int, default=99, help="permutations a test (default 99)")
    parser.add_argument("--limit", type=int, help="finish at most so many cells in this call")
    parser.add_argument("--out", type=Path, default=RESULTS / "audit_null.json")
    parser.add_argument("--fresh", action="store_true", help="begin anew, whatever the file holds")
    arguments = parser.parse_args()
    size = {name: getattr(arguments, name) for name in ("audits", "flips", "permutations")}
    ledger = Ledger(arguments.out, size, fresh=arguments.fresh)
    for key in ledger.todo(list(_keys(arguments.documents)), arguments.limit):
        begin = time.perf_counter()
        rows = measure(key, **size)
        ledger.add(key, rows, {"seconds": round(time.perf_counter() - begin, 1)})
    found = ledger.save()
    if found["rows"]:
        draw(found, arguments.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
