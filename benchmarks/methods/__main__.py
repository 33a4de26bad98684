"""One table of methods: scores and tests of collections, by copies, dilution, size of model and kind of text.

`python -m benchmarks.methods` puts it together from the results on file (dilution, planted domains, designs, audits,
published figures) and from the JSON files in evidence/methods, one a model, and writes
evidence/methods.json. `python docs/generate.py` then writes docs/methods.md.

`python -m benchmarks.methods add RUN --name NAME --kind "legal texts" --copies 4 [--dilution 1000] [--place late]
[--source "…"]` adds a model of yours: RUN is the folder of `pretrace evaluate TEXTS --model TARGET --placebo TWIN
[--reference-model TWIN] --scores …`, with texts that TARGET read so often and others of the same kind, and a TWIN that
read none of them. The folder is verified first (`pretrace runs verify`: every file as it was written, the report what
the tables give); without a TWIN it is refused. The hash of its run.json goes into the file, so that who has the folder
can check it.

A row: `method` as it is written for --scores, or a test; `value`, an AUC of documents or a share of tests that reject
at 5%, with its 95% interval; `never_saw`, the same of a model that read none of the texts (None where nobody measured
it); `units`, the documents (strings, rows, …) of a test; `passes`, how often the models read a text or a form of it.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import RESULTS, read_results
from benchmarks.experiments import explained, figures
from pretrace import PretraceError, runs
from pretrace.errors import OutputError
from pretrace.results.atomic import atomic_text
from pretrace.results.folder import file_hash
from pretrace.scoring.plan import ScorePlan
from pretrace.statistics.documents import share_interval
from pretrace.types import Run
from pretrace.verdicts.advise import studies
from pretrace.verification import verify_folder

Row = dict[str, Any]
MERGED, SUBMITTED = RESULTS / "methods.json", RESULTS / "methods"
FIELDS = (
    "method", "what", "kind", "copies", "dilution", "place", "parameters", "units", "value", "never_saw", "passes",
    "source",
)  # fmt: skip
RIVALS, LEAD, ROOM = ("ez", "wbc", "learned"), 0.03, 0.97
"""Scores that are held against `ref`; by how much they are to beat it; an AUC of `ref` above which none can."""
PLANTED_PARAMETERS = {"smollm2": 134_515_008}


def row(**given: Any) -> Row:
    """A row with all fields."""
    return {name: given.get(name) for name in FIELDS}


def passes(expression: str) -> int:
    """How often the models read a text, or a form of it, for a score."""
    return ScorePlan.parse(expression).passes


def dilution(found: Mapping[str, Any]) -> Iterator[Row]:
    """Scores and audits of benchmarks.audits.dilution."""
    for run in found["runs"]:
        cell = {name: run[name] for name in ("copies", "dilution", "place", "parameters")}
        own = {"kind": "abstracts", **cell, "source": f"dilution.json, seed {run['seed']}"}
        key = ("size", "dilution", "copies", "place", "seed")
        for one in found["rows"]:
            if all(one[name] == run[name] for name in key):
                yield row(
                    method=one["score"], what="AUC", value=one["auc"], never_saw=one["placebo"]["auc"],
                    passes=passes(one["score"]), **own,
                )  # fmt: skip
        for how, title in (("without_placebo", "audit"), ("with_placebo", "audit --placebo")):
            units = 50
            share = run["audit"][how][str(units)]
            twin = run["audit"].get(f"twin_{how}", {}).get(str(units))
            yield row(
                method=title, what="share that reject", units=units, value=_share(share, 200),
                never_saw=None if twin is None else _share(twin, 200), passes=1 if title == "audit" else 2, **own,
            )  # fmt: skip


def planted(found: Mapping[str, Any]) -> Iterator[Row]:
    """Scores of benchmarks.papers.planted_domains: a model trained further on the texts, and on nothing besides."""
    parameters = PLANTED_PARAMETERS[found["settings"]["model"]]
    for one in found["rows"]:
        if one["kind"] == "score":
            yield row(
                method=one["score"], what="AUC", kind=one["domain"], copies=one["epochs"], dilution=0, place="end",
                parameters=parameters, value=one["auc"], never_saw=one["placebo"]["auc"], passes=passes(one["score"]),
                source="planted_domains.json",
            )  # fmt: skip


def collections(found: Mapping[str, Any]) -> Iterator[Row]:
    """Tests of collections on models that were trained for them (benchmarks.designs)."""
    models = [one for one in found["rows"] if one["how"] in ("models", "tiny models")]
    for one in models:
        members = one["members"]
        if not members or not members.get("copies"):
            continue
        nulls = [other for other in models if other["test"] == one["test"] and other["runs"]]
        fitting = [other for other in nulls if _never_read(other, one)]
        unseen = max(fitting, key=lambda other: other["runs"], default=None)
        yield row(
            method=one["test"], what="share that reject", kind="units of the design", copies=members["copies"],
            parameters=1.1e6 if one["how"] == "models" else None, place="end", units=members["units"],
            value=_counted(members["found"], members["runs"]),
            never_saw=_counted(unseen["rejected"], unseen["runs"]) if unseen else None, source=one["file"],
        )  # fmt: skip


def audits(found: Mapping[str, Any]) -> Iterator[Row]:
    """The audit by the command's defaults (benchmarks.audits.command), of collections read once, last of all."""
    counted = {(one["kind"], one["placebo"], one["documents"]): one for one in found["rows"]}
    for (kind, placebo, documents), one in counted.items():
        null = counted.get(("null", placebo, documents))
        if kind == "member" and null is not None:
            yield row(
                method="audit" if placebo == "none" else "audit --placebo", what="share that reject", copies=1,
                kind="eight kinds", place="end", parameters=found["parameters"], units=documents,
                value=_counted(one["rejected"], one["runs"]), never_saw=_counted(null["rejected"], null["runs"]),
                passes=1 if placebo == "none" else 2, source="audit_command.json",
            )  # fmt: skip


def _never_read(null: Mapping[str, Any], read: Mapping[str, Any]) -> bool:
    """Whether a row of innocents is the one to hold beside a row of members: the same units, which no model read."""
    if null["how"] != read["how"] or null["file"] != read["file"]:
        return False
    return "no model read" in null["kind"] or null["kind"].startswith("never read, weights")


def published() -> Iterator[Row]:
    """Figures of others: the middle of the kinds of text, lowest and highest for an interval."""
    for study in studies():
        for copies, (low, high) in study.auc.items():
            yield row(
                method="min_k_plus_plus", what="AUC", kind="three kinds", copies=copies, place="throughout",
                parameters=study.parameters, value=[round((low + high) / 2, 4), low, high],
                never_saw=[round(sum(study.unseen) / 2, 4), *study.unseen], passes=1,
                source=f"{study.name}, {study.tokens / 1e9:.0f} billion tokens (published; range over kinds of text)",
            )  # fmt: skip


def submitted(folder: Path) -> Iterator[Row]:
    """Rows that were added; SystemExit where a file is not one that `add` wrote."""
    for path in sorted(folder.glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        rows = found.get("rows", [])
        if not rows or "run" not in found or any(set(one) != set(FIELDS) for one in rows):
            raise SystemExit(f"{path} is not a file that `python -m benchmarks.methods add` wrote.")
        if any(one["never_saw"] is None for one in rows):
            raise SystemExit(f"{path} has a row without a model that never saw the texts.")
        yield from rows


def _share(share: float, trials: int) -> list[float]:
    return _counted(round(share * trials), trials)


def _counted(hits: int, trials: int) -> list[float]:
    found = share_interval(hits, trials)
    return [round(one, 4) for one in (found.value, found.low, found.high)]


def against_ref(rows: Sequence[Row]) -> dict[str, Any]:
    """In how many cells each rival lies 0.03 or more above `ref`, of those in which `ref` leaves room for it."""
    cells: dict[tuple[Any, ...], dict[str, float]] = {}
    for one in rows:
        if one["what"] == "AUC":
            key = tuple(one[name] for name in ("kind", "copies", "dilution", "place", "parameters", "source"))
            cells.setdefault(key, {})[one["method"]] = one["value"][0]
    made: dict[str, Any] = {}
    for rival in RIVALS:
        both = [cell[rival] - cell["ref"] for cell in cells.values() if {rival, "ref"} <= set(cell)]
        open_ = [
            cell[rival] - cell["ref"]
            for cell in cells.values()
            if {rival, "ref"} <= set(cell) and cell["ref"] <= ROOM
        ]
        ahead = sum(one >= LEAD for one in open_)
        made[rival] = {
            "cells": len(both),
            "cells_with_room": len(open_),
            "ahead_by_0.03": ahead,
            "behind_by_0.03": sum(one <= -LEAD for one in open_),
            "mean_lead": round(sum(open_) / len(open_), 4) if open_ else None,
            "wins": bool(open_) and ahead >= 5 / 8 * len(open_),
        }
    return made


def written() -> str:
    """The table, from all results on file."""
    loaded = {
        name: read_results(RESULTS / name)
        for name in ("dilution.json", "planted_domains.json", "designs.json", "audit_command.json")
    }
    rows = [
        *dilution(loaded["dilution.json"]), *planted(loaded["planted_domains.json"]),
        *collections(loaded["designs.json"]), *audits(loaded["audit_command.json"]), *published(),
        *submitted(SUBMITTED),
    ]  # fmt: skip
    lines = ",\n  ".join(json.dumps(one, ensure_ascii=False) for one in rows)
    return f'{{\n "against_ref": {json.dumps(against_ref(rows))},\n "rows": [\n  {lines}\n ]\n}}\n'


def merge() -> None:
    """Write the table."""
    text = written()
    atomic_text(MERGED, text)
    made = json.loads(text)
    print(f"{len(made['rows'])} rows: {MERGED}")
    print(json.dumps(made["against_ref"], indent=1))


def add(given: argparse.Namespace) -> None:
    """Write the rows of a run that holds."""
    if not re.fullmatch(r"[\w.-]{1,80}", given.name):
        raise SystemExit("--name is letters, digits, dots, dashes and underscores, 80 at most.")
    held = verify_folder(given.run)
    if not held.holds:
        wrong = "; ".join(one.words for one in held.checks if one.state == "no")
        raise OutputError(f"{given.run} is not as it was written ({wrong}): evaluate again.")
    run = runs.load(given.run)
    if not isinstance(run, Run) or run.evaluation is None:
        raise OutputError(f"{given.run} is no run of `pretrace evaluate`.")
    facts = run.settings["models"]
    rows = []
    for one in figures(run):
        if one["kind"] != "score":
            continue
        if "placebo" not in one:
            raise OutputError(
                f"{given.run} has no model that never saw the texts: evaluate with --placebo TWIN."
            )
        rows.append(
            row(
                method=one["score"], what="AUC", kind=given.kind, copies=given.copies, dilution=given.dilution,
                place=given.place, parameters=facts["target"].get("parameters"), value=one["auc"],
                never_saw=one["placebo"]["auc"], passes=passes(one["score"]), source=given.source or given.name,
            )
        )  # fmt: skip
    models = {
        name: {key: one.get(key) for key in ("name", "weights", "parameters")} for name, one in facts.items()
    }
    about = {
        "run.json": file_hash(given.run / "run.json"),
        "models": models,
        "texts": run.settings["texts"].get("hash"),
    }
    lines = ",\n  ".join(json.dumps(one, ensure_ascii=False) for one in rows)
    SUBMITTED.mkdir(exist_ok=True)
    text = f'{{\n "run": {json.dumps(about)},\n "rows": [\n  {lines}\n ]\n}}\n'
    atomic_text(SUBMITTED / f"{given.name}.json", text)
    print(f"{len(rows)} rows: {SUBMITTED / given.name}.json")


def main() -> None:
    """Put together, or add and put together."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    more = parser.add_subparsers(dest="what")
    one = more.add_parser("add", help="add the run of a model of yours")
    one.add_argument("run", type=Path, metavar="RUN")
    one.add_argument("--name", required=True, help="of the file, and of the source unless --source says more")
    one.add_argument("--kind", required=True, help="of text, in two or three words")
    one.add_argument("--copies", type=int, required=True, help="how often the model read each text")
    one.add_argument("--dilution", type=float, help="how many times as much other text it read")
    one.add_argument("--place", help="where in the training: throughout, early, middle, late or end")
    one.add_argument("--source", help="where the model comes from")
    given = parser.parse_args()
    if given.what == "add":
        add(given)
    merge()


if __name__ == "__main__":
    try:
        main()
    except PretraceError as error:
        raise explained(error) from None
