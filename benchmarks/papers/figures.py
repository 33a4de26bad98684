"""The figures the papers print, read from `published/`: one CSV a table, one TOML a paper that says what each is."""

from __future__ import annotations

import ast
import csv
import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pretrace.errors import TextsError

PUBLISHED = Path(__file__).parent / "published"
COLUMNS = ["corpus", "score", "setting", "model", "metric", "value"]
KINDS = ("detection", "inference", "gap", "quality", "other")
Figures = tuple["Figure", ...]
_NAME = re.compile(r"(table|figure)([A-Z]?)(\d+)([a-z]?)|reference")  # "reference": rows that a paper lacks
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
_PARTS = (ast.Name, ast.Load, ast.Call, ast.keyword, ast.Constant, ast.Tuple, ast.UnaryOp, ast.USub)


@dataclass(frozen=True)
class Figure:
    """One printed figure: of a score (empty where it is of the texts alone) on a corpus, `setting` being what
    differs from the paper's usual settings; `value` is a share where the paper prints percent, None where it
    draws the figure without printing it."""

    corpus: str
    score: str
    setting: Mapping[str, object]
    model: str
    metric: str
    value: float | None


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table or figure of a paper, `name` being "fsd.table1": what it shows, what one needs to run it, and
    whether that is `here` ("yes" or "no: why"). `figures` are those printed as numbers, `drawn` the others that a
    picture shows; both are empty where nothing was measured. `by` names the command that runs a table which the
    usual one does not."""

    name: str
    paper: str
    what: str
    kind: str
    here: str
    runs: str
    by: str = ""
    notes: str = ""
    percent: bool = False
    digits: int | None = None
    figures: Figures = ()
    drawn: Figures = ()


def tables(folder: Path = PUBLISHED) -> dict[str, Table]:
    """Every table of every paper by name: tables before figures, 2 before 10, the appendix's after the rest.

    Raises TextsError that names the file, and the line where it is one's, for whatever is not as it should be.
    """
    made = (table for path in folder.glob("*.toml") for table in _paper(path))
    return {table.name: table for table in sorted(made, key=lambda table: _place(table.name))}


def setting_of(text: str) -> dict[str, object]:
    """What a setting says: "counts='C4', size='1Gb'" → {"counts": "C4", "size": "1Gb"}; empty → {}.

    Raises ValueError for anything but names with literal values.
    """
    call = _parsed(f"_({text})")
    try:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.args:
            return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except ValueError:
        pass  # a value that is a name or a call
    raise ValueError(f"{text!r} is no setting: write names with values, as in counts='C4', length=64.")


def _paper(path: Path) -> Iterator[Table]:
    try:
        about = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TextsError(f"{path} is not TOML in UTF-8: {error}.") from None
    entries = {name: entry for name, entry in about.items() if isinstance(entry, dict) and "what" in entry}
    files = {file.stem: file for file in path.with_suffix("").glob("*.csv")}
    for name in sorted(files.keys() - entries.keys()):
        raise TextsError(f"{path} says nothing of {files[name]}: add [{name}] with what, kind, runs, here.")
    for name, entry in entries.items():
        figures = _figures(files[name]) if name in files else ()
        yield _table(path, name, entry, paper=str(about.get("title", path.stem)), figures=figures)


def _table(path: Path, name: str, entry: dict[str, Any], *, paper: str, figures: Figures) -> Table:
    where = f"{path} [{name}]"
    if not _NAME.fullmatch(name):
        raise TextsError(f"{where}: name it as table1, tableA3, figure4, figure3b or reference.")
    for field in ("what", "kind", "here", "runs"):
        if not isinstance(entry.get(field), str):
            raise TextsError(f"{where} wants a text for {field}, found {entry.get(field)!r}.")
    if entry["kind"] not in KINDS:
        raise TextsError(f"{where}: kind must be one of {', '.join(KINDS)}, found {entry['kind']!r}.")
    drawn = _drawn(entry.get("drawn"), figures, where)
    if not figures and not drawn and entry["kind"] != "other":
        raise TextsError(f"{where} has no figures: write {name}.csv, or kind = 'other' if none are printed.")
    given = {field.name: entry[field.name] for field in fields(Table) if field.name in entry}
    given |= {"name": f"{path.stem}.{name}", "paper": paper, "figures": figures, "drawn": drawn}
    return Table(**given)


def _drawn(entry: dict[str, list[str]] | None, printed: Figures, where: str) -> Figures:
    """Every corpus with every score, setting and metric of a picture, but for what is printed as a number."""
    if entry is None:
        return ()
    parts = ("corpora", "scores", "settings", "metrics")
    if unknown := entry.keys() ^ set(parts):
        raise TextsError(
            f"{where}: drawn wants the lists {', '.join(parts)}; see to {', '.join(sorted(unknown))}."
        )
    known = {(one.corpus, one.score, repr(one.setting), one.metric) for one in printed}
    try:
        made = [
            Figure(corpus, score, setting_of(setting), "", metric, None)
            for corpus, score, setting, metric in itertools.product(*(entry[part] for part in parts))
        ]
    except ValueError as error:
        raise TextsError(f"{where}: {error}") from None
    return tuple(one for one in made if (one.corpus, one.score, repr(one.setting), one.metric) not in known)


def _figures(path: Path) -> Figures:
    made: dict[str, tuple[Figure, int]] = {}  # with the line it stands on
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        try:
            if (found := next(rows, [])) != COLUMNS:
                raise ValueError(f"the columns must be {', '.join(COLUMNS)}; found {', '.join(found)}.")
            for row in rows:
                figure = _figure(row)
                key = repr((*row[:2], sorted(figure.setting.items()), *row[3:5]))
                if key in made:
                    raise ValueError(f"the same figure as on line {made[key][1]}; keep one of the two.")
                made[key] = figure, rows.line_num
        except (ValueError, csv.Error) as error:
            raise TextsError(f"{path} line {rows.line_num}: {error}") from None
    return tuple(figure for figure, _ in made.values())


def _figure(row: list[str]) -> Figure:
    if len(row) != len(COLUMNS):
        raise ValueError(f"wanted {len(COLUMNS)} cells, found {len(row)}; quote a cell with a comma in it.")
    corpus, score, setting, model, metric, value = row
    for text in (corpus, score):
        if text and not isinstance(_parsed(text), ast.Name | ast.Call):
            raise ValueError(f"{text!r} is no expression: write a name or a call, such as min_k(k=0.1).")
    if not metric.isidentifier() or not _NUMBER.fullmatch(value):
        raise ValueError(f"wanted a metric and a number, such as auc,0.572; found {metric!r} and {value!r}.")
    return Figure(corpus, score, setting_of(setting), model, metric, float(value))


def _parsed(expression: str) -> ast.expr | None:
    """What was written, if it is made of names, calls and literals; else None."""
    try:
        parsed = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return parsed if all(isinstance(part, _PARTS) for part in ast.walk(parsed)) else None


def _place(name: str) -> tuple[object, ...]:
    paper, _, table = name.partition(".")
    ((kind, appendix, number, part),) = _NAME.findall(table)
    return paper, appendix, kind != "table", int(number or 0), part
