"""Does an audit find what its `--power` foresees? `python -m benchmarks.audits.foreseen --work FOLDER`.

For each domain and seed of `benchmarks.audits.worlds` a model that has read other documents of the domain is audited on
50 documents against 50 that it has not read, and its power is measured as `--power` does it: two copies read half of
the 50 suspect documents, lightly and heavily. Then two further copies read all 50 by the same exposures, and are
audited themselves, on the same documents, with the command's own functions: the share of these audits that reject, and
the share that no check withholds, are held against the mean of what was foreseen. The copy's own start is the placebo,
or there is none. Audits of one target share documents; a model reads one set once.

A set is noted when it is done; a killed run goes on. `--summary` writes benchmarks/results/audit_foreseen.json and the
table in docs/audit.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.audits.command import LEVEL, PLACEBOS, ROOT, Bench, Case, Row
from benchmarks.audits.innocents import read
from benchmarks.audits.worlds import DOMAINS
from benchmarks.experiments import DATA, RESULTS
from benchmarks.machine import commit, machine
from pretrace import Models, open_model
from pretrace.results.atomic import atomic_text
from pretrace.tuning.planting import split_members
from pretrace.types import Backend, Corpus
from pretrace.verdicts.audit.data import AuditData
from pretrace.verdicts.audit.generation import compared
from pretrace.verdicts.audit.power import measured, planted_copy
from pretrace.verdicts.audit.settings import HEAVY, LIGHT, PRETRACE, AuditSettings, exposures

DRAWS, SIZE = 3, 50
"""Sets of a target, and documents a side."""
OUT = RESULTS / "audit_foreseen.json"
NAMES = {LIGHT: "light", HEAVY: "heavy"}
BEGIN, END = "<!-- foreseen: written by benchmarks.audits.foreseen -->\n", "<!-- end of foreseen -->"


class Foreseen:
    """Sets of documents, audited before and after they are read."""

    def __init__(self, work: Path, data: Path) -> None:
        self.bench, self.rows = Bench(work, data), work / "foreseen.jsonl"

    def done(self) -> set[tuple[str, int, int]]:
        """The sets that are on file."""
        return {(row["domain"], row["seed"], row["draw"]) for row in read(self.rows)}

    def target(self, domain: str, seed: int) -> None:
        """The sets of one target that are not on file."""
        worlds, ready = self.bench.worlds, self.done()
        _, others = worlds.members(domain, seed)
        if all((domain, seed, draw) in ready for draw in range(DRAWS)) or len(others) < 2 * SIZE:
            return
        target, base = open_model(str(worlds.target(domain, seed))), open_model(str(worlds.base()))
        for draw in range(DRAWS):
            if (domain, seed, draw) in ready:
                continue
            start = time.monotonic()
            rng = np.random.default_rng([seed, DOMAINS.index(domain), draw, 13])
            some = [others[i] for i in rng.permutation(len(others))[: 2 * SIZE]]
            found = self.set(worlds.corpus(domain, some, called="set"), target, base, draw)
            with self.rows.open("a", encoding="utf-8") as file:
                file.write(
                    "".join(
                        json.dumps({"domain": domain, "seed": seed, "draw": draw} | row) + "\n"
                        for row in found
                    )
                )
            print(f"{domain} {seed} {draw}: {time.monotonic() - start:.0f} s", flush=True)
        worlds.forget(domain, seed)

    def set(self, corpus: Corpus, target: Backend, base: Backend, draw: int) -> list[Row]:
        """What is foreseen and what is found for one set, a row an exposure and placebo."""
        tried = tuple(replace(one, seed=draw, threads=1) for one in exposures())
        labelled = split_members(corpus, tried[0].share, draw)
        sides = [
            replace(corpus, name=name, texts=tuple(t for t in labelled.texts if t.member is member))
            for name, member in (("suspect", True), ("controls", False))
        ]
        case = Case("member", SIZE, sides[0], sides[1])
        foreseen = {
            placebos: measured(*self._data(case, target, placebos), tried, PRETRACE)
            for placebos in ((base,), ())
        }
        rows = []
        for number, one in enumerate(tried):
            with planted_copy(target, corpus, one, cache=True, training=_unwatched) as copy:
                for placebos, powers in foreseen.items():
                    audited = self.bench._audited(case, copy, placebos)
                    power = powers[number].probability
                    rows.append(
                        {
                            "exposure": NAMES[one.rate(existing=True)],
                            "placebo": audited["placebo"],
                            "documents": [len({t.document for t in side.texts}) for side in sides],
                            "foreseen": [round(v, 3) for v in (power.value, power.low, power.high)],
                            "brought": round(powers[number].effect.value, 4),
                            **{name: audited[name] for name in ("p", "accused", "failed")},
                        }
                    )
        return rows

    def _data(self, case: Case, target: Backend, placebos: tuple[Backend, ...]) -> tuple[AuditData, Corpus]:
        """What the audit tests, and the suspect documents by the names that it gives them."""
        settings = AuditSettings()
        asked, seed, cuts = self.bench._cut(case, ())
        made = compared(cuts, settings, seed=seed)
        data = AuditData(made.samples, Models(target), settings, placebos=placebos, seed=seed)
        return data, asked.named.corpus


def _unwatched(stage: str) -> Any:
    return contextlib.nullcontext(None)


def summary(work: Path) -> dict[str, Any]:
    """What all sets gave, a row an exposure and placebo."""
    made, rows = read(work / "foreseen.jsonl"), []
    for exposure in NAMES.values():
        for placebo in PLACEBOS:
            some = [row for row in made if (row["exposure"], row["placebo"]) == (exposure, placebo)]
            rows.append({"exposure": exposure, "placebo": placebo, **counts(some)})
    targets = {(row["domain"], row["seed"]) for row in made}
    content = {
        "machine": machine(),
        "commit": commit(),
        "level": LEVEL,
        "documents": SIZE,
        "targets": len(targets),
        "domains": sorted({domain for domain, _ in targets}),
        "rows": rows,
        "sets": made,
    }
    atomic_text(OUT, json.dumps(content, indent=1) + "\n")
    return content


def counts(some: Sequence[Row]) -> Row:
    """Of these sets the mean that was foreseen and what was found, with how both fall on the sets foreseen at 0.8."""
    sure = [row for row in some if row["foreseen"][0] >= 0.8]
    return {
        "sets": len(some),
        "foreseen": round(float(np.mean([row["foreseen"][0] for row in some])), 3),
        "rejected": sum(row["p"] <= LEVEL for row in some),
        "accused": sum(row["accused"] for row in some),
        "foreseen_enough": len(sure),
        "of_these_rejected": sum(row["p"] <= LEVEL for row in sure),
    }


def table(content: dict[str, Any]) -> str:
    """The table of docs/audit.md."""
    lines = [
        "| exposure | placebo | sets | foreseen, mean | rejected | found (no check withheld) | rejected of those "
        "foreseen at 80% or more |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['exposure']} | {PLACEBOS[row['placebo']]} | {row['sets']} | {row['foreseen']:.0%} | "
        f"{row['rejected']} ({row['rejected'] / row['sets']:.0%}) | {row['accused']} "
        f"({row['accused'] / row['sets']:.0%}) | {row['of_these_rejected']} of {row['foreseen_enough']} |"
        for row in content["rows"]
    ]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--summary", action="store_true", help="write the results and the page, and stop")
    given = parser.parse_args()
    if given.summary:
        page = ROOT / "docs/audit.md"
        head, rest = page.read_text(encoding="utf-8").split(BEGIN)
        atomic_text(page, head + BEGIN + table(summary(given.work)) + END + rest.split(END, 1)[1])
        raise SystemExit
    foreseen = Foreseen(given.work, given.data)
    for seed in range(given.seeds):
        for domain in DOMAINS:
            foreseen.target(domain, seed)
