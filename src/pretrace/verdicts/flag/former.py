"""Flaggings as an earlier pretrace wrote them, read as the verdicts that they are today.

`flags.json` held what `result.json` holds now. Its format 1 is that of version 0.1: no test of the set, and texts were
flagged one by one whatever their documents. Format 2 had no measured power, and said "none" where nothing stood out,
whatever could have been seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.results.folder import Opened, read_folder
from pretrace.results.serialization import expect, from_plain
from pretrace.results.tables import read_csv
from pretrace.results.verdicts import FORMER_FLAGGING, truth
from pretrace.types import Table, Verdict
from pretrace.verdicts.flag.built import counted, flag_verdict

_COLUMNS = {
    "flags": ("id", "group", "score", "p", "q", "flagged", "document", "drawn"),
    "known": ("id", "group", "score", "drawn", "document"),
}
_SHARED = (
    "outcome",
    "statement",
    "corpus",
    "model",
    "checks",
    "reasons",
    "advice",
    "notes",
    "skipped",
    "settings",
)
_NUMBERS, _TRUTHS = ("score", "p", "q"), ("flagged", "drawn")


def load_flags(folder: Path) -> Verdict:
    """The flagging in a folder with `flags.json`; OutputError, naming the file, where it is damaged or was changed."""
    return read_folder(FORMER_FLAGGING, folder, _load)


def _load(opened: Opened) -> Verdict:
    content = opened.content
    texts, known = (opened.part(f"{name}.csv", partial(_table, name=name)) for name in _COLUMNS)
    shared = {name: content[name] for name in _SHARED if name in content}
    test = content.get("set_test")
    power = content.get("power")
    whole = content.get("whole")
    counts = counted((texts, known), len(expect(content.get("skipped", []), list)))
    if whole is not None:
        counts = {name: expect(whole[name], int) for name in counts}
        whole = {name: value for name, value in whole.items() if name not in counts}
    unit = "document" if counts["documents"] < counts["texts"] else "text"
    plain = {
        **shared,
        "level": test["level"] if test else content["fdr"],
        "p": test["p"] if test else None,
        "planted": power,
        "register": [content["tests"]] if content.get("tests") else [],
    }
    read: Mapping[str, Any] = _fields(plain)
    figures = {
        "counts": counts,
        **{name: content[name] for name in ("nonmembers", "score", "fdr", "method")},
        "set_test": test,
        **({"whole": whole} if whole else {}),
    }
    return flag_verdict(figures=figures, unit=unit, tables=(texts, known), **read)


def _fields(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a verdict that are there, read as what they are."""
    lacking = {
        "test": "flag", "exact": False, "assumption": "", "hypothesis": "", "statistic": "", "units": 0, "unit": "",
        "question": "", "compared": [],
    }  # fmt: skip
    made = from_plain(Verdict, lacking | dict(plain), "flags")
    return {name: getattr(made, name) for name in plain}


def _table(content: bytes, *, name: str) -> Table:
    """A table; version 0.1 judged every text by itself, and did not name documents."""
    names, (found, rows) = _COLUMNS[name], read_csv(content)
    old = names[:6] if name == "flags" else names[:4]
    if found not in (names, old):
        raise ValueError(f"columns {', '.join(names)} expected")
    cells = {column: tuple(row[place] for row in rows) for place, column in enumerate(found)}
    if found == old:
        cells["document"] = cells["id" if name == "flags" else "group"]
        cells.setdefault("drawn", ("1",) * len(rows))
    return Table(name, {column: _column(column, cells[column]) for column in names})


def _column(name: str, cells: tuple[str, ...]) -> Any:
    if name in _NUMBERS:
        return np.array([float(cell) if cell else np.nan for cell in cells], dtype=np.float64)
    return truth([cell == "1" if cell else None for cell in cells]) if name in _TRUTHS else cells
