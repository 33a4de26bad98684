"""The tests of `pretrace flag` on simulated scores: `python -m benchmarks.designs.flagging_sets`.

"power": which statistic for the test of the whole set? Eight are compared at a level of 5% that is exact for each
(its critical value is taken from as many sets without members). "level": the p-value of the chosen one without
members, where documents have many texts, their number differs and goes with their score. "dependence": how often
anything is flagged without members by the rule that came first (known documents drawn once, asked ones with every
text) and by one value a document on both sides. "exits": how often the command would end with 3, and by which test.

Writes benchmarks/results/flagging_sets.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.experiments import RESULTS
from pretrace.results.atomic import atomic_text
from pretrace.statistics.conformal import Method, adjusted, drawn_pieces, flagged, p_values
from pretrace.statistics.documents import by_document
from pretrace.statistics.shift import set_shift
from pretrace.types import Doubles

Row = dict[str, Any]
Rng = np.random.Generator
LEVEL = 0.05
SIZES = ((2000, 2000), (2000, 400), (200, 200), (40, 200))
"""Asked and known documents."""
AUC_93 = 2.087
"""Standard deviations between two normal laws with an AUC of 0.93."""
CHOSEN = "rank sum or log squared"
LAWS: Mapping[str, Callable[[Rng, tuple[int, int]], Doubles]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "student 3": lambda rng, shape: rng.standard_t(3, shape),
}
NOTES = {
    "power": "share of sets in which each statistic passes its own exact critical value at 5%",
    "case": "share of the asked documents that were seen, and by how many standard deviations they score higher",
    "dependence": "share of sets without members in which anything is flagged; must not be above the rate",
    "exits": "share of sets in which documents are flagged (rate 5%), the test of the set rejects (5%), either does",
}


def statistics(values: Doubles, asked: int) -> dict[str, Doubles]:
    """Every candidate for sets [sets, documents] of which the first `asked` documents are in question; [sets] each."""
    total = values.shape[1]
    place = values.argsort(axis=1).argsort(axis=1)
    share = (total - place) / (total + 1)
    mine, others = values[:, :asked], values[:, asked:]
    error = np.sqrt(mine.var(axis=1) / asked + others.var(axis=1) / (total - asked))
    rank, squared = (_standardised(score, asked) for score in (1 - share, np.log(share) ** 2))
    p = _conformal(place, asked)
    return {
        "mean (Welch)": (mine.mean(axis=1) - others.mean(axis=1)) / error,
        "rank sum": rank,
        "log of the rank": _standardised(-np.log(share), asked),
        "log squared": squared,
        "Fisher": -np.log(p).sum(axis=1),
        "higher criticism": _higher_criticism(p),
        "Berk-Jones": _berk_jones(p),
        CHOSEN: np.maximum(rank, squared),
    }


def _standardised(scores: Doubles, asked: int) -> Doubles:
    total = scores.shape[1]
    spread = np.sqrt(scores[0].var() * asked * (total - asked) / (total - 1))
    return np.asarray((scores[:, :asked].sum(axis=1) - asked * scores[0].mean()) / spread)


def _conformal(place: Any, asked: int) -> Doubles:
    """Conformal p-values [sets, asked], sorted."""
    total = place.shape[1]
    known = np.ones(place.shape)
    np.put_along_axis(known, place[:, :asked], 0.0, axis=1)
    above = known[:, ::-1].cumsum(axis=1)[:, ::-1]
    found = (1 + np.take_along_axis(above, place[:, :asked], axis=1)) / (total - asked + 1)
    return np.asarray(np.sort(found, axis=1))


def _higher_criticism(p: Doubles) -> Doubles:
    """Donoho and Jin 2004, over the lower half of the p-values."""
    number = p.shape[1]
    share, safe = np.arange(1, number + 1) / number, np.minimum(p, 1 - 1e-9)
    found = np.sqrt(number) * (share - safe) / np.sqrt(safe * (1 - safe))
    return np.asarray(found[:, : max(1, number // 2)].max(axis=1))


def _berk_jones(p: Doubles) -> Doubles:
    """Berk and Jones 1979, one-sided, over the lower half of the p-values."""
    number = p.shape[1]
    share = np.minimum(np.arange(1, number + 1) / number, 1 - 1e-12)
    safe = np.minimum(p, 1 - 1e-9)
    found = share * np.log(share / safe) + (1 - share) * np.log((1 - share) / (1 - safe))
    return np.asarray(np.where(share > safe, number * found, 0.0)[:, : max(1, number // 2)].max(axis=1))


def power(runs: int, seed: int) -> Iterator[Row]:
    """The power of every candidate, case by case."""
    rng = np.random.default_rng(seed)
    for asked, known in SIZES:
        times = runs if asked + known < 1000 else max(1, runs // 4)
        slight = np.sqrt(1 / asked + 1 / known)
        cases = ((0.1, AUC_93), (0.1, 1.0), (0.02, 3.3), (0.5, 0.3), (1.0, 2.5 * slight))
        for law, draw in LAWS.items():
            null = statistics(draw(rng, (2 * times, asked + known)), asked)
            critical = {name: np.quantile(found, 1 - LEVEL) for name, found in null.items()}
            for share, shift in cases:
                values = draw(rng, (times, asked + known))
                values[:, : max(1, round(share * asked))] += shift
                found = statistics(values, asked)
                rates = {name: round(float((found[name] > critical[name]).mean()), 3) for name in found}
                case = {"seen": share, "shift": round(float(shift), 3)}
                yield {
                    "asked": asked,
                    "known": known,
                    "law": law,
                    "case": case,
                    "runs": times,
                    "power": rates,
                }


def documents(rng: Rng, number: int, *, long: float, pieces: int) -> tuple[Doubles, list[str]]:
    """Scores of texts and their documents: a share of long documents, whose texts score 2 to 3.5 standard deviations
    higher, all others of one text; nobody saw any."""
    lengthy = rng.random(number) < long
    sizes = np.where(lengthy, pieces, 1)
    centre = np.where(lengthy, rng.uniform(2, 3.5, number), 0.0) + rng.normal(size=number) * ~lengthy
    rows = np.repeat(np.arange(number), sizes)
    noise = np.where(lengthy, 0.5, 0.0)[rows] * rng.normal(size=len(rows))
    return centre[rows] + noise, [f"d{row:05}" for row in rows]


def by_text(rng: Rng, asked: int, known: int, seed: int, every: bool, **law: Any) -> Doubles:
    """p-values of texts against known documents drawn once: of every asked text, or of one a document."""
    (mine, names), (others, groups) = (documents(rng, number, **law) for number in (asked, known))
    if not every:
        mine = mine[drawn_pieces(names, seed, each=1)]
    return p_values(mine, others[drawn_pieces(groups, seed, each=1)])


def by_value(rng: Rng, asked: int, known: int, seed: int, **law: Any) -> tuple[Doubles, Doubles]:
    """One value a document on both sides, as `pretrace flag` has it."""
    (mine, names), (others, groups) = (documents(rng, number, **law) for number in (asked, known))
    both = [*(f"a{name}" for name in names), *(f"k{name}" for name in groups)]
    drawn = drawn_pieces(both, seed)
    kept = [name for name, taken in zip(both, drawn, strict=True) if taken]
    found, values = by_document(np.concatenate((mine, others))[drawn], kept)
    first = np.array([name.startswith("a") for name in found])
    return values[first], values[~first]


def dependence(runs: int, seed: int) -> Iterator[Row]:
    """How often anything is flagged where nothing was seen."""
    for asked, known in ((20, 100), (50, 100), (50, 200), (100, 400)):
        rng = np.random.default_rng([seed, asked, known])
        law = {"long": 0.03, "pieces": 80}
        hits: dict[str, list[bool]] = {}
        for run in range(runs):
            for every, name in ((True, "every text, by"), (False, "one text a document, by")):
                p = by_text(rng, asked, known, run, every, **law)
                hits.setdefault(name, []).append(_any(p, "by"))
            p = p_values(*by_value(rng, asked, known, run, **law))
            for method in ("bh", "by"):
                hits.setdefault(f"one value a document, {method}", []).append(_any(p, method))
        found = {name: round(float(np.mean(some)), 4) for name, some in hits.items()}
        yield {"asked": asked, "known": known, **law, "rate": 0.2, "runs": runs, "any": found}


def _any(p: Doubles, method: Method, rate: float = 0.2) -> bool:
    return bool(flagged(adjusted(p, method), rate).any())


def level(runs: int, seed: int) -> Iterator[Row]:
    """The p-value of the set without members, from 399 permutations: its shares at or below levels."""
    for asked, known, pieces in ((60, 150, 80), (200, 200, 1), (5, 30, 10)):
        rng = np.random.default_rng([seed, asked])
        p = np.array(
            [
                set_shift(
                    *by_value(rng, asked, known, run, long=0.2, pieces=pieces), seed=run, permutations=399
                ).p
                for run in range(runs)
            ]
        )
        at = {str(one): round(float((p <= one).mean()), 4) for one in (0.01, 0.05, 0.2, 0.5, 0.9)}
        yield {"asked": asked, "known": known, "pieces": pieces, "runs": runs, "p_at_most": at}


def exits(runs: int, seed: int) -> Iterator[Row]:
    """How often flags, the test of the set, or either make the exit code 3; a share of the texts was seen."""
    for asked, known in ((2000, 2000), (2000, 400), (200, 400), (40, 200)):
        rng = np.random.default_rng([seed, asked, known])
        times = runs if asked < 1000 else max(1, runs // 4)
        critical = np.quantile(
            statistics(rng.normal(size=(2 * times, asked + known)), asked)[CHOSEN], 1 - LEVEL
        )
        for seen, shift in ((0.0, 0.0), (0.1, AUC_93), (1.0, 0.2)):
            values = rng.normal(size=(times, asked + known))
            values[:, : round(seen * asked)] += shift
            whole = statistics(values, asked)[CHOSEN] > critical
            p = (p_values(row[:asked], row[asked:]) for row in values)
            flags = np.array([_any(found, "bh", 0.05) for found in p])
            shares = {"flags": flags.mean(), "set": whole.mean(), "either": (flags | whole).mean()}
            rates = {name: round(float(share), 4) for name, share in shares.items()}
            case = {"seen": seen, "shift": shift}
            yield {"asked": asked, "known": known, "case": case, "runs": times, "exit_3": rates}


def main() -> None:
    """Simulate and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--part", choices=("dependence", "power", "exits", "level"), help="only this one anew"
    )
    parser.add_argument("--out", type=Path, default=RESULTS / "flagging_sets.json")
    given = parser.parse_args()
    parts = {part.__name__: part for part in (dependence, power, exits, level)}
    found: dict[str, Any] = {"settings": {"runs": given.runs, "seed": given.seed}, "notes": NOTES}
    if given.part and given.out.exists():
        before = json.loads(given.out.read_text(encoding="utf-8"))
        found |= {name: rows for name, rows in before.items() if before["settings"] == found["settings"]}
    for part in [parts[given.part]] if given.part else parts.values():
        found[part.__name__] = list(part(given.runs, given.seed))
        print(part.__name__, "done", flush=True)
        atomic_text(given.out, json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
