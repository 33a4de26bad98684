"""Measurements, in folders by question. Results are JSON with machine and commit, in `evidence/`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pretrace.results.atomic import atomic_text

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "evidence"
_BELOW = " > "


def write_results(path: Path, content: Mapping[str, Any]) -> None:
    """Write results as JSON, the file whole or not at all. Rows of one list are a table: the names of its columns once
    (`a > b` is `b` within `a`), then a line a row, with {} where a row has no such cell. Numbers have five digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = (f" {json.dumps(name)}: {_layout(_rounded(value))}" for name, value in content.items())
    atomic_text(path, "{\n" + ",\n".join(parts) + "\n}\n")


def read_results(path: Path) -> dict[str, Any]:
    """Read what `write_results` wrote, up to the order within a row."""
    return {name: _rows(value) for name, value in json.loads(path.read_text(encoding="utf-8")).items()}


def _layout(value: Any) -> str:
    def text(one: Any) -> str:
        return json.dumps(one, ensure_ascii=False, allow_nan=False)

    if not (isinstance(value, list) and value and all(isinstance(one, dict) for one in value)):
        return text(value)
    flat = [dict(_flat(one)) for one in value]
    columns = list(dict.fromkeys(name for one in flat for name in one))
    lines = (text([one.get(name, {}) for name in columns]) for one in flat)
    return f'{{"columns": {text(columns)}, "rows": [\n  ' + ",\n  ".join(lines) + "\n ]}"


def _flat(row: Mapping[str, Any], before: str = "") -> Any:
    for name, value in row.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{before}{name}{_BELOW}")
        elif value != {}:
            yield before + name, value


def _rows(value: Any) -> Any:
    if not (isinstance(value, dict) and value.keys() == {"columns", "rows"}):
        return value
    found = []
    for cells in value["rows"]:
        row: dict[str, Any] = {}
        for name, cell in zip(value["columns"], cells, strict=True):
            if cell != {}:
                *above, last = name.split(_BELOW)
                place = row
                for one in above:
                    place = place.setdefault(one, {})
                place[last] = cell
        found.append(row)
    return found


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {str(name): _rounded(one) for name, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list | tuple) else value
