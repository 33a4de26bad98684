"""Whom does `pretrace flag` accuse? Simulated sets of which nothing was seen, and sets of which some was.

`python -m benchmarks.designs.flag` simulates the score of each text, its length and what a classifier of words makes
of it, and lets `verdicts.flag.concluding` conclude, with all checks. Nothing is downloaded and no model is asked.
"rejected": the test of the set is at or below its level, or a document is flagged at its rate, before drift and spread
are taken off. "accused": exit code 3. Near copies are found in texts that are made for it, by the code that finds them.

Fewer resamples (200) are drawn for intervals than by the command (2,000), and the law of the statistic at two numbers
of documents is drawn once (9,999 permutations) and not for each set. A killed run goes on where it was. Writes
evidence/innocents_flag.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import RESULTS, read_results, write_results
from benchmarks.machine import commit, machine
from pretrace.statistics.conformal import SetShift, compare_below, set_shift
from pretrace.statistics.documents import Sketches
from pretrace.types import Check, Doubles
from pretrace.verdicts.flag import concluding
from pretrace.verdicts.flag.concluding import Sides
from pretrace.verdicts.flag.planning import FlagSettings, near_copies, prospect

Rng = np.random.Generator
RESAMPLES, PERMUTATIONS = 200, 9_999
AUC_93 = 2.087
"""Standard deviations between two normal laws with an AUC of 0.93."""
SETTINGS = FlagSettings(score="loss", cache=False)


@dataclass(slots=True)
class Made:
    """What is simulated of the texts of a flagging, [texts], those in question first: score, log of the length, what
    the classifier of words says, the document, and the score of a placebo."""

    score: Doubles
    length: Doubles
    words: Doubles
    documents: Any
    asked: int
    placebo: Doubles | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of sets: `change` makes it of sets that are alike, of so many asked and known texts."""

    name: str
    change: Callable[[Made, Rng], None]
    asked: int = 200
    known: int = 200
    members: bool = False
    tails: str = "normal"
    placebo: bool = False
    slow: bool = False
    """Whether texts are made and compared, or documents are many: then there are fewer runs."""

    @property
    def key(self) -> str:
        """Its name in the file."""
        more = " (with a placebo)" if self.placebo else ""
        return f"{self.name}; {self.asked} asked, {self.known} known{more}"


def nothing(made: Made, rng: Rng) -> None:
    """Both sets are alike."""


def spread(times: float) -> Callable[[Made, Rng], None]:
    """The asked texts vary so many times as much, around the same middle."""

    def change(made: Made, rng: Rng) -> None:
        made.score[: made.asked] *= times

    return change


def drift(by: float) -> Callable[[Made, Rng], None]:
    """The asked texts are easier by so many standard deviations, for every model."""

    def change(made: Made, rng: Rng) -> None:
        deviation = float(made.score[made.asked :].std())
        made.score[: made.asked] += by * deviation
        if made.placebo is not None:
            made.placebo[: made.asked] += by

    return change


def tens(made: Made, rng: Rng) -> None:
    """Ten texts each come from one source, one after the other, and half of the variance is the source's."""
    source = np.repeat(rng.normal(size=len(made.score) // 10), 10)
    made.score = np.sqrt(0.5) * made.score + np.sqrt(0.5) * source


def copied(made: Made, rng: Rng) -> None:
    """The same, and the ten are versions of one text, in any order: 6 of 80 words differ."""
    tens(made, rng)
    names = [f"word{number}" for number in range(3000)]
    texts: list[str] = []
    for _ in range(len(made.score) // 10):
        base = rng.choice(names, 80)
        for _ in range(10):
            one = base.copy()
            one[rng.choice(80, 6, replace=False)] = rng.choice(names, 6)
            texts.append(" ".join(one))
    known = len(texts) - made.asked
    order = np.concatenate((rng.permutation(made.asked), made.asked + rng.permutation(known)))
    made.score = made.score[order]
    made.documents = linked([texts[i] for i in order.tolist()], made.asked)


def alike(made: Made, rng: Rng) -> None:
    """A fifth of the asked texts are versions of one text, which scores as it happens to."""
    names = [f"word{number}" for number in range(3000)]
    texts = [" ".join(rng.choice(names, 80)) for _ in made.score]
    many = made.asked // 5
    base = np.array(texts[0].split())
    for i in range(many):
        one = base.copy()
        one[rng.choice(80, 6, replace=False)] = rng.choice(names, 6)
        texts[i] = " ".join(one)
    made.score[:many] = rng.normal() + 0.1 * rng.normal(size=many)
    made.documents = linked(texts, made.asked)


def linked(texts: list[str], asked: int) -> Any:
    """The documents of texts without groups, as `flag` finds them."""
    sketches = Sketches()
    for text in texts:
        sketches.add(text, alone=True)
    own = np.arange(len(texts))
    return near_copies(sketches, own, own, asked)[0]


def longer(made: Made, rng: Rng) -> None:
    """The asked texts are a third of a standard deviation longer, and longer texts score higher."""
    made.length[: made.asked] += 0.33
    made.score = 0.5 * made.length + np.sqrt(0.75) * made.score


def two_kinds(made: Made, rng: Rng) -> None:
    """15% of the asked texts are of a kind that scores one standard deviation higher, and that words tell."""
    other = np.flatnonzero(rng.random(made.asked) < 0.15)
    made.score[other] += 1.0
    made.words[other] += 1.5


def seen(share: float, by: float) -> Callable[[Made, Rng], None]:
    """A share of the asked texts was read, and scores so many standard deviations higher."""

    def change(made: Made, rng: Rng) -> None:
        read = rng.permutation(made.asked)[: max(1, round(share * made.asked))]
        made.score[read] += by

    return change


CELLS = (
    Cell("the same law", nothing),
    Cell("1.6 times the spread", spread(1.6)),
    Cell("1.2 times the spread", spread(1.2)),
    Cell("drift of 0.05 sd", drift(0.05)),
    Cell("drift of 0.18 sd", drift(0.18)),
    Cell("drift of 0.3 sd", drift(0.3)),
    Cell("alike in tens, side by side, no group", tens),
    Cell("alike in tens, near copies in any order, no group", copied, slow=True),
    Cell("a fifth are near copies of one text", alike, slow=True),
    Cell("heavy tails (Student, 3)", nothing, tails="student 3"),
    Cell("heavy tails (Student, 3), 1.6 times the spread", spread(1.6), tails="student 3"),
    Cell("long tail above (exponential), drift of 0.18 sd", drift(0.18), tails="exponential"),
    Cell("known ones fewer", nothing, known=60),
    Cell("known ones fewer, 1.6 times the spread", spread(1.6), known=60),
    Cell("lengths differ", longer),
    Cell("mixture of two kinds", two_kinds),
    Cell("few in question, 1.6 times the spread", spread(1.6), asked=20, known=2000),
    Cell("few in question, drift of 0.3 sd", drift(0.3), asked=20, known=2000),
    Cell("drift of 0.18 sd", drift(0.18), placebo=True),
    Cell("drift of 0.3 sd", drift(0.3), placebo=True),
    Cell("1.6 times the spread", spread(1.6), placebo=True),
    Cell("many, drift of 0.3 sd", drift(0.3), asked=1000, known=1000, slow=True),
    Cell("many, 1.2 times the spread", spread(1.2), asked=1000, known=1000, slow=True),
    Cell("a tenth seen, AUC 0.93", seen(0.1, AUC_93), members=True),
    Cell("a tenth seen, by 3 sd", seen(0.1, 3.0), members=True),
    Cell("a third seen, by 1 sd", seen(1 / 3, 1.0), members=True),
    Cell("a third seen, AUC 0.93", seen(1 / 3, AUC_93), members=True),
    Cell("all seen, by 0.25 sd", seen(1.0, 0.25), members=True),
    Cell("all seen, by 0.5 sd", seen(1.0, 0.5), members=True),
    Cell("all seen, by 1 sd", seen(1.0, 1.0), members=True),
    Cell("a tenth seen, AUC 0.93", seen(0.1, AUC_93), members=True, placebo=True),
    Cell("all seen, by 0.5 sd", seen(1.0, 0.5), members=True, placebo=True),
    *(
        Cell("a tenth seen, AUC 0.93", seen(0.1, AUC_93), asked, known, members=True, placebo=beside)
        for beside in (False, True)
        for asked, known in ((400, 400), (200, 2000))
    ),
    Cell("a tenth seen, AUC 0.93", seen(0.1, AUC_93), asked=1000, known=1000, members=True),
    Cell("a tenth seen, AUC 0.93", seen(0.1, AUC_93), asked=1000, known=1000, members=True, placebo=True),
    Cell("all seen, by 0.25 sd", seen(1.0, 0.25), asked=1000, known=1000, members=True, placebo=True),
    Cell("all seen, by 0.5 sd", seen(1.0, 0.5), asked=1000, known=1000, members=True),
)  # fmt: skip


def simulated(cell: Cell, rng: Rng) -> Made:
    """The texts of one flagging."""
    number = cell.asked + cell.known
    score = {
        "normal": rng.normal(size=number),
        "student 3": rng.standard_t(3, number),
        "exponential": rng.exponential(size=number) - np.log(2),
    }[cell.tails]
    placebo = 0.8 * score + 0.6 * rng.normal(size=number) if cell.placebo else None
    made = Made(
        score, rng.normal(size=number), rng.normal(size=number), np.arange(number), cell.asked, placebo
    )
    cell.change(made, rng)
    return made


def concluded(made: Made, seed: int) -> tuple[bool, bool]:
    """Whether the set or a document stands out, and whether that is an accusation.

    Nothing is accused that does not stand out beyond the least drift that can be taken off, so the checks, which take
    long, are made for the others alone.
    """
    asked = np.arange(len(made.score)) < made.asked
    lengths = np.exp(6 + 0.5 * made.length)
    sides = Sides(asked, np.asarray(made.documents), made.score, made.placebo, lengths, SETTINGS, seed)
    sizes = [np.unique(sides.documents[side], return_counts=True)[1] for side in (asked, ~asked)]
    plan = prospect(sizes, SETTINGS, "known")
    seen = {
        "words": made.words,
        "form": np.random.default_rng(seed).permutation(made.words),
    }  # their form says nothing
    concluding.bag_of_words = lambda texts, members, groups, *, seed, unit: (seen[unit], "")  # type: ignore[attr-defined]
    asked_values, known_values = sides.by_document(made.score)
    shift = dealt(asked_values, known_values, level=SETTINGS.level, seed=0)
    spread = compare_below(asked_values, known_values).allowed(concluding.WIDE)
    first = concluding.outliers_at(shift, sides, _least(made, sides), spread)
    if not (first.withstands or first.chosen.any()):
        return first.rejects, False
    found = concluding.run_checks(sides, plan, lambda rows: [""] * int(rows.sum()))
    outcome = concluding.conclude_outliers(found.outliers, found.checks, None, None)
    return found.outliers.rejects, outcome in ("flagged", "set")


def _least(made: Made, sides: Sides) -> float:
    """The least drift that is taken off at these numbers of documents, whatever the checks say."""
    quiet = {"auc": [0.5, 0.5, 0.5], concluding.ALIKE: sides.alike}
    nothing = [Check("placebo", "", "passed", "", "", quiet)] if made.placebo is not None else []
    return concluding.unseen_drift(nothing, sides.number, sides.known)


def dealt(asked: Doubles, known: Doubles, *, level: float, seed: int) -> SetShift:
    """The test of the set, with a law of the statistic that is drawn once for these numbers of documents."""
    shift = replace(_law(len(asked), len(known), level), asked=asked, known=known)
    return replace(shift, p=shift.p_after())


@cache
def _law(asked: int, known: int, level: float) -> SetShift:
    values = np.arange(asked + known, dtype=float)
    return set_shift(values[:asked], values[asked:], level=level, permutations=PERMUTATIONS)


def row(cell: Cell, runs: int) -> dict[str, Any]:
    """The counts of a cell."""
    begin = time.perf_counter()
    counts = np.zeros(2, dtype=int)
    for run in range(runs):
        rng = np.random.default_rng([run, *cell.key.encode()])
        counts += concluded(simulated(cell, rng), run)
    rejected, accused = counts.tolist()
    found = {"test": "flag", "kind": cell.key, "how": "simulated", "runs": runs, "rejected": rejected}
    found |= {"accused": accused, "members": None, "before": None}
    if cell.members:  # no innocents
        found |= {"members": {"kind": cell.key, "runs": runs, "found": accused}}
        found |= dict.fromkeys(("runs", "rejected", "accused"), 0)
    return found | {"seconds": round(time.perf_counter() - begin, 1)}


def main() -> None:
    """Simulate what is not on file, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--member-runs", type=int, default=200)
    parser.add_argument("--only", default="", help="cells with this in their name")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS / "innocents_flag.json")
    given = parser.parse_args()
    concluding.RESAMPLES = RESAMPLES
    concluding.set_shift = dealt  # type: ignore[attr-defined]
    kept = read_results(given.out) if given.out.exists() and not given.fresh else {}
    rows = {one["kind"]: one for one in kept.get("rows", []) if one["how"] == "simulated"}
    settings = {
        "resamples": RESAMPLES,
        "permutations": PERMUTATIONS,
        "level": SETTINGS.level,
        "fdr": SETTINGS.fdr,
    }
    head = {"machine": machine(), "commit": commit(), "settings": settings}
    for cell in (one for one in CELLS if given.only in one.key):
        runs = given.member_runs if cell.members or cell.slow else given.runs
        known = rows.get(cell.key, {})
        if (known.get("members") or known).get("runs") != runs:
            rows[cell.key] = row(cell, runs)
            print(json.dumps(rows[cell.key]), flush=True)
            write_results(given.out, {**head, "rows": list(rows.values())})


if __name__ == "__main__":
    main()
