"""How often 95% intervals hold the truth where documents are few or one is a giant.

Run it as `python -m benchmarks.audits.interval_coverage`.
Scores are drawn, without any model: non-members around 0, members around 1. The intervals are those of an
evaluation (`group_bootstrap`).

- `tpr`: non-members in documents of one text each, 200 members likewise; the true positive rate at 5% false positives
  against its true value, and the true rate of false positives at the threshold that was found.
- `giant`: 50 documents a class, 4 texts each but for one of the members, which holds a share of the members' texts;
  the AUC against its true value, and what the 50 documents weigh as documents of equal size.

Writes benchmarks/results/interval_coverage.json; killed at any time it goes on where it was.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.experiments import RESULTS, Ledger, interval
from pretrace.scoring.findings import effective_documents
from pretrace.statistics.intervals import share_interval
from pretrace.statistics.resampling import group_bootstrap
from pretrace.types import Doubles

NONMEMBERS = (20, 30, 60, 100, 200)
GIANTS = (0.02, 0.3, 0.5, 0.8)
"""Share of the members' texts in one document: 2% is a document like the others."""
ALIKE = (0.7, 0.3)
"""Correlation of the texts of one document."""
MEMBERS, DOCUMENTS, TEXTS, AHEAD = 200, 50, 4, 1.0


def tpr(key: Mapping[str, Any], *, audits: int, resamples: int) -> dict[str, Any]:
    """Coverage of the true positive rate, and the mean of the true false positive rate."""
    rng = np.random.default_rng([1, key["nonmembers"]])
    truth = 1 - NormalDist(AHEAD).cdf(NormalDist().inv_cdf(0.95))
    members = np.arange(MEMBERS + key["nonmembers"]) < MEMBERS
    names = [str(i) for i in range(len(members))]
    held, rates = 0, []
    for seed in range(audits):
        scores = rng.standard_normal(len(members)) + AHEAD * members
        found = group_bootstrap(scores[:, None], members, groups=names, seed=seed, resamples=resamples)
        estimate = found.tpr.estimate(0)
        held += estimate.low <= truth <= estimate.high
        allowed = int(0.05 * key["nonmembers"])
        threshold = np.sort(scores[~members])[-1 - allowed]
        rates.append(1 - NormalDist().cdf(float(threshold)))
    return {
        "coverage": interval(share_interval(held, audits)),
        "false_positives": round(float(np.mean(rates)), 4),
    }


def giant(key: Mapping[str, Any], *, audits: int, resamples: int) -> dict[str, Any]:
    """Coverage of the AUC."""
    rng = np.random.default_rng([2, round(100 * key["share"]), round(10 * key["alike"])])
    others = (DOCUMENTS - 1) * TEXTS
    sizes = np.full(2 * DOCUMENTS, TEXTS)
    sizes[0] = round(others * key["share"] / (1 - key["share"]))
    codes = np.repeat(np.arange(2 * DOCUMENTS), sizes)
    members = codes < DOCUMENTS
    names = [str(code) for code in codes]
    truth = NormalDist().cdf(AHEAD / np.sqrt(2))
    held = 0
    for seed in range(audits):
        scores = _alike(rng, codes, key["alike"]) + AHEAD * members
        found = group_bootstrap(scores[:, None], members, groups=names, seed=seed, resamples=resamples)
        estimate = found.auc.estimate(0)
        held += estimate.low <= truth <= estimate.high
    weight, _ = effective_documents(codes, members)
    return {"coverage": interval(share_interval(held, audits)), "effective": round(weight, 1)}


def _alike(rng: np.random.Generator, codes: npt.NDArray[np.int64], part: float) -> Doubles:
    """Values of mean 0 and variance 1, of which this part is the document's."""
    shared = rng.standard_normal(int(codes.max()) + 1)[codes]
    return np.asarray(np.sqrt(part) * shared + np.sqrt(1 - part) * rng.standard_normal(len(codes)))


def main() -> None:
    """Measure what is not on file yet."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--audits", type=int, default=250, help="simulated evaluations a cell (default 250)")
    parser.add_argument("--resamples", type=int, default=200, help="resamples an interval (default 200)")
    parser.add_argument("--out", type=Path, default=RESULTS / "interval_coverage.json")
    parser.add_argument("--fresh", action="store_true", help="begin anew, whatever the file holds")
    arguments = parser.parse_args()
    size = {name: getattr(arguments, name) for name in ("audits", "resamples")}
    ledger = Ledger(arguments.out, size, fresh=arguments.fresh)
    keys: list[dict[str, Any]] = [{"part": "tpr", "nonmembers": number} for number in NONMEMBERS]
    keys += [{"part": "giant", "alike": alike, "share": share} for alike in ALIKE for share in GIANTS]
    for key in ledger.todo(keys):
        begin = time.perf_counter()
        row = tpr(key, **size) if key["part"] == "tpr" else giant(key, **size)
        ledger.add(
            key,
            [{"evaluations": arguments.audits, **row}],
            {"seconds": round(time.perf_counter() - begin, 1)},
        )
    ledger.save()


if __name__ == "__main__":
    main()
