"""The tables of scores in evidence/papers.md, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.papers.comparing import signed

Found = Mapping[str, Any]
Row = Mapping[str, Any]
BLIND = "bag of words"


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """A table: so many columns to the left, the others to the right."""
    marks = ["---"] * left + ["---:"] * (len(heads) - left)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, marks, *rows))


def estimate(value: Sequence[float] | None) -> str:
    """A figure with its interval."""
    return "" if value is None else f"{value[0]:.2f} ({value[1]:.2f} to {value[2]:.2f})"


def how(found: Found) -> str:
    """What a table was run with, in a sentence or two."""
    given = found["settings"]
    parts = [f"at most {given['limit']} texts of a corpus" if given["limit"] else "all texts"]
    parts += [f"judged on `{given['on']}`" if given["on"] else "on the paper's own corpora"]
    parts += [f"set aside by {given['split']}", f"{given['model']} in {given['dtype']}"]
    notes = [f"`{name}` is here {Path(source).name}" for name, source in given["instead"].items()]
    notes += [
        f"`{name}` stands for {path}"
        for name, path in given["files"].items()
        if name not in ("arxivtection",)
    ]
    more = f" {'; '.join(notes)}." if notes else ""
    return f"{', '.join(parts)}.".capitalize().replace("smollm2", "SmolLM2") + more


def best(tables_run: Iterable[tuple[Path, Found]]) -> str:
    """A row a table that was run: its best score, ours and published, and the bag of words on the same texts."""
    made = []
    for path, found in tables_run:
        rows = [row for row in found["compared"] if isinstance(row["ours"], list) and row["score"]]
        if not rows:
            continue
        metric = rows[0]["metric"]
        top = max((row for row in rows if row["metric"] == metric), key=lambda row: float(row["ours"][0]))
        same = [
            row["published"]
            for row in rows
            if all(row[key] == top[key] for key in ("corpus", "setting", "score", "metric"))
            and row["published"] is not None
        ]
        if not same:
            continue
        blind = [row[metric] for row in found["rows"] if row["score"] == BLIND and metric in row]
        made.append([
            f"[{found['settings']['table']}](papers/{path.name})",
            found["settings"]["on"] or top["corpus"],
            f"`{top['score']}`" + (f", `{top['setting']}`" if top["setting"] else ""),
            f"{_WORDS.get(metric, metric)} {estimate(top['ours'])}",
            _range(sorted(same)) + (" \\*" if top["difference"] is None else ""),
            f"{max(one[0] for one in blind):.2f}" if blind else "",
        ])  # fmt: skip
    return grid(["table", "texts", "best score", "ours", "published", "bag of words"], made, left=3)


def table(found: Found) -> str:
    """Ours beside the paper's, a row a score and setting, with the blind baseline of each run last."""
    rows = [row for row in found["compared"] if row["ours"] is not None]
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    several = len({row["corpus"] for row in found["compared"]}) > 1 and not found["settings"]["on"]
    heads = [*(["corpus"] if several else []), "score", "setting"]
    heads += [
        head
        for metric in metrics
        for head in (f"{_WORDS.get(metric, metric)}, ours", "published", "difference")
    ]
    made: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        key = (row["corpus"] if several else "", row["setting"], row["score"])
        if key in made:
            continue
        first = [f"`{row['corpus']}`"] if several else []
        made[key] = [*first, f"`{row['score']}`", f"`{row['setting']}`" if row["setting"] else ""]
        for metric in metrics:
            made[key] += _three(rows, key, metric, several=several)
    known = list(made.values())
    known += _blind_rows(found, metrics, several=several)
    return grid(heads, known, left=3 if several else 2)


_WORDS = {"auc": "AUC", "tpr": "TPR at 5% FPR", "accuracy": "accuracy", "p": "p"}


def _three(rows: Sequence[Row], key: tuple[str, str, str], metric: str, *, several: bool) -> list[str]:
    """Ours, the published figures (a range where the paper has several models), the difference where there is one."""
    some = [
        row
        for row in rows
        if row["metric"] == metric and (row["corpus"] if several else "", row["setting"], row["score"]) == key
    ]
    if not some:
        return ["", "", ""]
    ours = some[0]["ours"]
    published = sorted(row["published"] for row in some if row["published"] is not None)
    apart = [row["difference"] for row in some if row["difference"] is not None]
    shown = estimate(ours) if isinstance(ours, list) else f"{ours:.3g}"
    return [shown, _range(published), _signed_range(apart)]


def _range(values: Sequence[float]) -> str:
    if not values:
        return "drawn only"
    return f"{values[0]:.2f}" if len(values) == 1 else f"{values[0]:.2f} to {values[-1]:.2f}"


def _signed_range(values: Sequence[float]) -> str:
    if not values:
        return ""
    low, high = min(values), max(values)
    return signed(low) if low == high else f"{signed(low)} to {signed(high)}"


def _blind_rows(found: Found, metrics: Sequence[str], *, several: bool) -> list[list[str]]:
    """The bag of words of each run that judged other texts."""
    made: dict[tuple[str, ...], list[str]] = {}
    for row in found["rows"]:
        if row["score"] != BLIND:
            continue
        cells = [cell for metric in metrics for cell in (estimate(row.get(metric)), "", "")]
        first = [f"`{row['corpus']}`"] if several else []
        made.setdefault((row["corpus"] if several else "", *cells), [*first, f"*{BLIND}, blind*", "", *cells])
    return list(made.values())
