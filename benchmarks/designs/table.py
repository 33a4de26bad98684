"""All that was measured of innocents and members, gathered: `python -m benchmarks.designs.table`.

Every `results/innocents_*.json` is made by a benchmark of its own (`innocents_flag`, …); `designs_models.json`
holds older rows, of models that were trained for them, that are still true of today's code. This puts their rows into
`results/designs.json`, each with its file and the commit it was measured on, and with `--needed`
writes the figures of `pretrace advise`. docs/generate.py makes the tables of docs/audits.md from these two files.

A row: a test, a kind of text that the model did not read, how it was made ("simulated" or "models"), how many tests
rejected (p at or below the level) and how many accused (exit code 3; null where that was not measured), the same under
the rule of before, and `members`: what was found of texts that the model did read.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import RESULTS, read_results, write_results
from pretrace.results.atomic import atomic_text

Row = dict[str, Any]
POWER = 0.8
OLDER = "designs_models.json"
FIELDS = ("test", "kind", "how", "runs", "rejected", "accused", "members", "before")


def gathered(folder: Path) -> tuple[list[Row], list[Row]]:
    """The files that were read, and their rows, each with its file and commit. SystemExit for a row that lacks a
    field: a table must not say less than its file."""
    sources, rows = [], []
    for path in (*sorted(folder.glob("innocents_*.json")), folder / OLDER):
        found = read_results(path)
        more = {"note": found["note"]} if "note" in found else {}
        machine, commit = found["machine"], str(found["commit"])[:8]
        cpu = machine["cpu"] if isinstance(machine, dict) else machine
        sources.append({"file": path.name, "commit": commit, "machine": cpu, **more})
        for row in found["rows"]:
            if missing := [name for name in FIELDS if name not in row]:
                raise SystemExit(f"{path.name}: a row has no {', '.join(missing)}: {row}")
            rows.append({**row, "file": path.name, "commit": row.get("commit", commit)})
    return sources, sorted(rows, key=lambda row: str(row["test"]))


def nulls(rows: Iterable[Row], test: str | None = None) -> list[Row]:
    """The rows of innocents."""
    return [row for row in rows if row["runs"] and test in (None, row["test"])]


def members(rows: Iterable[Row], test: str) -> list[Row]:
    """What was found of texts that the model did read."""
    return [row["members"] for row in rows if row["test"] == test and row["members"]]


def needed(rows: Sequence[Row], known: Mapping[str, Row]) -> dict[str, Row]:
    """What `pretrace advise` says, with the figures of the tests that have rows."""
    return {name: {**one, **_figures(rows, name), **_units(rows, name)} for name, one in known.items()}


def _figures(rows: Sequence[Row], test: str) -> Row:
    """Rejections and accusations of the first kind of innocents, and of the kind with the most accusations."""
    own = nulls(rows, test)
    if not own:
        return {}
    usual = own[0]
    counted = [row for row in own if row["accused"] is not None]
    worst = max(counted, key=lambda row: row["accused"] / row["runs"], default=None)
    accused = None if usual["accused"] is None else f"{usual['accused']}/{usual['runs']}"
    files = ", ".join(dict.fromkeys(f"evidence/{row['file']}" for row in own))
    return {
        "rejected": f"{usual['rejected']}/{usual['runs']}",
        "accused": accused,
        "worst": None if worst is None else f"{worst['accused']}/{worst['runs']} ({worst['kind']})",
        "measured_on": files,
    }


def _units(rows: Sequence[Row], test: str) -> Row:
    """Units for a power of 0.8 where the model read the texts once, and four times."""
    points = [one for one in members(rows, test) if "copies" in one]
    made: Row = {}
    for name, copies in (("one", 1), ("four", 4)):
        found = sorted(
            (one["units"], one["found"] / one["runs"]) for one in points if one["copies"] == copies
        )
        if found:
            number = between(found)
            made |= {name: number, f"more_than_{name}": found[-1][0] if number is None else None}
    return made


def between(points: Sequence[tuple[int, float]]) -> int | None:
    """Units for a power of 0.8, between two sizes on the logarithm of the size; None where the largest that was
    measured does not reach it, the smallest size where that does."""
    before: tuple[int, float] | None = None
    for units, power in points:
        if power >= POWER:
            if before is None:
                return units
            part = (POWER - before[1]) / (power - before[1])
            return math.ceil(math.exp(math.log(before[0]) + part * math.log(units / before[0])))
        before = units, power
    return None


def main() -> None:
    """Gather and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument(
        "--needed", type=Path, help="the figures of `pretrace advise`, to be brought up to date"
    )
    given = parser.parse_args()
    sources, rows = gathered(given.results)
    write_results(given.results / "designs.json", {"sources": sources, "rows": rows})
    if given.needed is not None:
        known = json.loads(given.needed.read_text(encoding="utf-8"))
        lines = (f" {json.dumps(name)}: {json.dumps(one)}" for name, one in needed(rows, known).items())
        atomic_text(given.needed, "{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
