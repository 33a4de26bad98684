"""Innocent sets that `audit` may accuse: simulated values here, models with known members in `audit_command`.

`python -m benchmarks.audits.innocents --work FOLDER` simulates the values of 50 suspect and 50 control documents, 2,000
audits a kind (`--runs`), and notes each kind when it is done. The test is the audit's own with 1,000 permutations in
place of 10,000; the checks are those that see values, of mixtures and of spreads. Kinds: documents of one law; one law
with heavy tails; suspect documents that vary half as much again; and control documents of which a share lies lower by
so many standard deviations, as documents of another kind do. Members: every suspect document lies higher by one.

`--fresh` is the set of seeds. `--summary` gathers these and the audits of models (`rows.jsonl` of the work folder, by
`benchmarks.audits.command`, else its results) into evidence/innocents_audit.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_ind

from benchmarks import RESULTS, read_results, write_results
from benchmarks.machine import commit, machine
from pretrace.statistics.permutation import two_sample_test
from pretrace.types import Doubles
from pretrace.verdicts.audit.checks import MIXED, STRICT

DOCUMENTS, DRAWS, LEVEL = 50, 1000, 0.05
OUT = RESULTS / "innocents_audit.json"
SHARES, LOWER = (0.05, 0.10, 0.15, 0.25, 0.35, 0.50), (1, 2, 4)
KINDS = (
    "one law",
    "one law, heavy tails",
    "suspects vary 1.5 times as much",
    *(f"{share:.0%} of controls lower by {lower} sd" for share in SHARES for lower in LOWER),
)
BEFORE = {
    ("15% of controls from another domain", "own"): (12, 6),
    ("15% of controls from another domain", "none"): (6, 1),
    ("suspects 30% longer", "own"): (8, 1),
    ("halves of the same documents", "own"): (18, 1),
}
"""Audits and those accused, as issue 21 counted them before the checks of mixtures and spreads."""
Row = dict[str, Any]


def drawn(kind: str, rng: np.random.Generator) -> tuple[Doubles, Doubles]:
    """The values of suspect and of control documents."""
    n = DOCUMENTS
    if kind == "one law, heavy tails":
        return rng.standard_t(3, n), rng.standard_t(3, n)
    suspect, controls = rng.normal(0, 1, n), rng.normal(0, 1, n)
    if kind == "suspects vary 1.5 times as much":
        suspect = 1.5 * suspect
    elif kind == "member":
        suspect = suspect + 1
    elif kind != "one law":
        share, lower = float(kind.partition("%")[0]) / 100, float(kind.split(" by ")[1].split()[0])
        controls[: round(share * n)] -= lower
    return suspect, controls


def rejects(suspect: Doubles, controls: Doubles, seed: int, level: float = LEVEL) -> bool:
    """Whether the permutation test rejects. Where Welch's t is far from the level no permutation is drawn: the two
    p-values of 50 documents a side never differ by so much."""
    near = float(ttest_ind(suspect, controls, equal_var=False, alternative="greater").pvalue)
    if near > 4 * level or near < level / 50:
        return near < level
    return two_sample_test(suspect, controls, permutations=DRAWS, seed=seed).p <= level


def audited(suspect: Doubles, controls: Doubles, seed: int) -> tuple[bool, bool]:
    """Whether the test rejects, and whether no check of values withholds the accusation."""
    if not rejects(suspect, controls, seed):
        return False, False
    lowest = np.sort(controls)
    wanted = int(np.ceil(MIXED * len(controls)))
    if not all(rejects(suspect, lowest[number:], seed) for number in range(wanted, 0, -1)):
        return True, False
    far, near = (np.abs(side - np.median(side)) for side in (controls, suspect))
    return True, not rejects(far, near, seed, STRICT)


def simulated(work: Path, runs: int, seeds: int) -> None:
    """Simulate every kind that is not on file, with this set of seeds."""
    path = work / f"simulated-{seeds}.jsonl"
    done = {json.loads(line)["kind"] for line in path.read_text().splitlines()} if path.is_file() else set()
    kinds = list(enumerate((*KINDS, "member")))
    for number, kind in sorted(kinds, key=lambda one: "sd" not in one[1]):
        if kind in done:
            continue
        rng = np.random.default_rng([seeds, number])
        found = np.array([audited(*drawn(kind, rng), seed) for seed in range(runs)])
        row = {
            "kind": kind,
            "runs": runs,
            "rejected": int(found[:, 0].sum()),
            "accused": int(found[:, 1].sum()),
        }
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(row, flush=True)


def read(path: Path) -> list[Row]:
    """The rows of a file of lines; none where there is none."""
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []
    )


def counted(rows: Sequence[Row]) -> Row:
    """How many audits there are, how many rejected, and how many were accused."""
    return {
        "runs": len(rows),
        "rejected": sum(row["p"] <= LEVEL for row in rows),
        "accused": sum(row["accused"] for row in rows),
    }


def summary(work: Path, seeds: int) -> None:
    """Write the rows of the contract: simulated kinds, and kinds with models, members beside."""
    known = {kind: i for i, kind in enumerate((*KINDS, "member"))}
    values = sorted(read(work / f"simulated-{seeds}.jsonl"), key=lambda row: known[row["kind"]])
    member = next((row for row in values if row["kind"] == "member"), None)
    beside = {"kind": "1 sd higher", "runs": member["runs"], "found": member["accused"]} if member else None
    rows: list[Row] = [
        {"test": "audit", "how": "simulated", **row, "members": beside, "before": None}
        for row in values
        if row["kind"] != "member"
    ]
    on_file = RESULTS / "audit_command.json"
    made = read(work / "rows.jsonl") or read_results(on_file)["audits"]
    for placebo in ("own", "none"):
        for kind, size in sorted({(row["kind"], row["size"]) for row in made if row["kind"] != "member"}):
            some = [r for r in made if (r["kind"], r["size"], r["placebo"]) == (kind, size, placebo)]
            members = [r for r in made if (r["kind"], r["size"], r["placebo"]) == ("member", size, placebo)]
            named = "same domain" if kind == "null" else kind
            before = BEFORE.get((kind, placebo))
            rows.append(
                {
                    "test": "audit",
                    "kind": f"{named}, {size} documents a side, "
                    + ("own base as placebo" if placebo == "own" else "no placebo"),
                    "how": "models",
                    **counted(some),
                    "members": {
                        "kind": "read once",
                        "runs": len(members),
                        "found": sum(row["accused"] for row in members),
                    },
                    "before": before
                    and {"runs": before[0], "rejected": None, "accused": before[1], "source": "issue 21"},
                }
            )
    content = {
        "machine": machine(),
        "commit": commit(),
        "level": LEVEL,
        "documents": DOCUMENTS,
        "seeds": seeds,
        "rows": rows,
    }
    write_results(OUT, content)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument(
        "--fresh", type=int, default=21, help="the set of seeds; the rule was chosen on set 21"
    )
    given = parser.parse_args()
    if given.summary:
        summary(given.work, given.fresh)
    else:
        simulated(given.work, given.runs, given.fresh)
