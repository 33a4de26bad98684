"""Audits that an earlier pretrace wrote, with `verdict.json`: read as the verdicts they are.

`documents.parquet` (`documents.csv` is the same for people) has a row a document and `pairs.jsonl` a line a pair of
texts. Format 1 knew one placebo and two designs, and did not record the null distribution, the plan or the
sensitivity: such an audit is read with what it holds. It called the control side "heldout", and its pairs were all
suspect ones and did not say so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pretrace.results.folder import Opened, read_folder
from pretrace.results.output_checks import AUDIT_KEY
from pretrace.results.serialization import expect, from_plain
from pretrace.results.tables import read_lines, read_parquet, texts_of
from pretrace.results.verdicts import FORMER_AUDIT
from pretrace.types import Answer, AuditFigures, Pair, Verdict
from pretrace.verdicts.audit.built import CONTROL, SUSPECT, Side, audit_verdict

Plain = dict[str, Any]
_SHARED = (
    "outcome", "statement", "corpus", "model", "level", "checks", "reasons", "advice", "null", "statements",
    "register", "settings",
)  # fmt: skip
_FORMER_SIDES = {"heldout": CONTROL}
_FORMER_DESIGNS = {"synthetic": "placebos", "heldout": "controls"}


def load_audit(folder: Path) -> Verdict:
    """The audit in a folder with `verdict.json`; OutputError, naming the file, where it is damaged or was changed."""
    return read_folder(FORMER_AUDIT, folder, _load)


def _load(opened: Opened) -> Verdict:
    content = dict(opened.content)
    opened.part("documents.csv", len)
    sides, pairs = opened.part("documents.parquet", _documents), opened.part("pairs.jsonl", _pairs)
    if content[AUDIT_KEY] == 1:
        content = _upgraded(content)
    answer = from_plain(Answer, content, "verdict")
    figures = from_plain(AuditFigures, content, "verdict")
    shared = {name: content[name] for name in _SHARED if name in content}
    made = from_plain(Verdict, {**_LACKING, **shared, "planted": content.get("power")}, "verdict")
    fields = {name: getattr(made, name) for name in (*shared, "planted")}
    return audit_verdict(figures, answer, sides, pairs=pairs, **fields)


_LACKING: Plain = {
    "test": "audit", "exact": False, "assumption": "", "hypothesis": "", "statistic": "", "p": None, "units": 0,
    "unit": "", "question": "", "compared": [],
}  # fmt: skip


def _documents(content: bytes) -> tuple[Side, Side]:
    table = read_parquet(content)
    names, values = texts_of(table, "document"), table.column("value").to_numpy()
    sides = [_FORMER_SIDES.get(side, side) for side in texts_of(table, "side")]

    def of(wanted: str) -> Side:
        rows = [index for index, side in enumerate(sides) if side == wanted]
        return tuple(names[index] for index in rows), np.array(values[rows], np.float64)

    return of(SUSPECT), of(CONTROL)


def _pairs(content: bytes) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    found: dict[str, list[Pair]] = {SUSPECT: [], CONTROL: []}
    for number, row in enumerate(read_lines(content), 1):
        side = row.get("side", SUSPECT)
        if side not in found:
            raise ValueError(f"line {number}: no side is called {side!r}")
        found[side].append(from_plain(Pair, row, f"line {number}"))
    return tuple(found[SUSPECT]), tuple(found[CONTROL])


def _upgraded(content: Plain) -> Plain:
    """The entries of a verdict of format 1, as format 2 has them; KeyError or TypeError where they are not of format 1.

    It had two designs, at most one placebo, and a tolerance where there is a margin now.
    """
    facts, placebo = dict(expect(content.get("facts", {}), dict)), content.get("placebo")
    if "tolerance" in facts:
        facts["margin"] = facts.pop("tolerance")
    found = [] if placebo is None else [expect(placebo, dict)]
    if found:
        facts["placebo"] = expect(found[0]["name"], str)
    design = _FORMER_DESIGNS[expect(content["design"], str)]
    return {**content, "facts": facts, "design": design, "placebos": found}
