"""Do a few documents of another kind show in the texts alone? `python -m benchmarks.audits.mixtures --work FOLDER`.

Suspect documents of one domain stand against as many control documents, of which a share is of another domain. Each
document gets its mean (or median) likeness to all others, by TF-IDF of words or of three characters; the statistic is
the mean of the lowest tenth or fifth of the control documents less that of the suspect ones, and its null comes from
dealing the documents out 500 times. Nothing is fitted to a domain, so every domain is one left out. What is seen is the
share of sets with p at or below 5% (and 1%); with no strangers it is how often a set is withheld for nothing.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.audits.worlds import DOMAINS, Worlds
from benchmarks.experiments import DATA, RESULTS
from benchmarks.machine import commit, machine
from pretrace.results.atomic import atomic_text
from pretrace.types import Bools, Doubles

SHARES = (0.0, 0.05, 0.10, 0.15, 0.25)
LOWEST = (0.1, 0.2)
DEALT = 500


def features(texts: list[str], kind: str) -> Any:
    """Sparse TF-IDF [documents, columns] of what stands in two documents or more."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    if kind == "words":
        return TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(texts)
    chars = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3), sublinear_tf=True, min_df=2)
    return chars.fit_transform([text[:1500] for text in texts])


def likeness(rows: Any, how: str) -> Doubles:
    """How like each document is to all others, [documents]."""
    all_pairs = np.asarray((rows @ rows.T).todense())
    np.fill_diagonal(all_pairs, np.nan)
    return np.asarray(np.nanmedian(all_pairs, 1) if how == "median" else np.nanmean(all_pairs, 1))


def p_value(values: Doubles, controls: Bools, lowest: float, rng: np.random.Generator) -> float:
    """How often dealing out makes the lowest control documents lie as far below the lowest suspect ones."""

    def statistic(these: Doubles, others: Doubles) -> Doubles:
        number, others_number = (max(2, round(lowest * side.shape[-1])) for side in (these, others))
        first = np.sort(these, -1)[..., :number].mean(-1)
        return np.asarray(first - np.sort(others, -1)[..., :others_number].mean(-1))

    observed, size = statistic(values[controls], values[~controls]), int(controls.sum())
    dealt = rng.permuted(np.broadcast_to(values, (DEALT, len(values))), axis=1)
    null = statistic(dealt[:, :size], dealt[:, size:])
    return float((1 + np.count_nonzero(null <= observed)) / (DEALT + 1))


def measured(worlds: Worlds, size: int, repeats: int) -> list[dict[str, Any]]:
    """A row for each kind of features, likeness and tail: the share of sets seen for each share of strangers."""
    rng = np.random.default_rng(size)
    texts = {name: [" ".join(some) for some in worlds.evaluation(name).values()] for name in DOMAINS}
    found: dict[tuple[str, str, float], dict[float, list[float]]] = {}
    for domain in DOMAINS:
        for _ in range(repeats):
            own = [texts[domain][i] for i in rng.permutation(len(texts[domain]))]
            if len(own) < 2 * size:
                continue
            other = [name for name in DOMAINS if name != domain][int(rng.integers(len(DOMAINS) - 1))]
            strangers = [texts[other][i] for i in rng.permutation(len(texts[other]))]
            for share in SHARES:
                number = round(share * size)
                both = own[:size] + own[size : 2 * size - number] + strangers[:number]
                controls = np.arange(2 * size) >= size
                for kind in ("words", "characters"):
                    rows = features(both, kind)
                    for how in ("mean", "median"):
                        values = likeness(rows, how)
                        for lowest in LOWEST:
                            p = p_value(values, controls, lowest, rng)
                            found.setdefault((kind, how, lowest), {}).setdefault(share, []).append(p)
    return [
        {
            "documents": size,
            "features": kind,
            "likeness": how,
            "lowest": lowest,
            "sets": len(by_share[0.0]),
            "seen": {
                f"{share:.0%}": {
                    f"{level:.0%}": round(float(np.mean([p <= level for p in ps])), 3)
                    for level in (0.05, 0.01)
                }
                for share, ps in by_share.items()
            },
        }
        for (kind, how, lowest), by_share in found.items()
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sizes", type=int, nargs="+", default=[25, 50, 100])
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    worlds, rows = Worlds(given.work, given.data), []
    for size in given.sizes:
        start = time.monotonic()
        rows += measured(worlds, size, given.repeats)
        print(f"{size} documents: {time.monotonic() - start:.0f} s", flush=True)
        content = {"machine": machine(), "commit": commit(), "dealt": DEALT, "rows": rows}
        atomic_text(RESULTS / "audit_mixtures.json", json.dumps(content, indent=1) + "\n")
