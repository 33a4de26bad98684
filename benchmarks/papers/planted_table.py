"""The table of the planted domains: which detectors survive when members differ in nothing but exposure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def survives(row: Row) -> bool:
    """Whether a score tells members apart and does so better than on the placebo: both intervals, of its AUC
    and of its lead over the placebo, end above chance; one that is fitted also beats its shuffled labels."""
    above = row["auc"][1] > 0.5 and row["lead"][1] > 0
    return bool(above and ("shuffled" not in row or row["auc"][0] > row["shuffled"]["auc"][2]))


def table(found: Mapping[str, Any]) -> str:
    """The table in Markdown, with what its cells mean and what it was measured on."""
    rows = found["rows"]
    pieces = list(dict.fromkeys((row["domain"], row["epochs"]) for row in rows))
    scores = list(dict.fromkeys(row["score"] for row in rows if row["kind"] == "score"))
    blind = list(dict.fromkeys(row["score"] for row in rows if row["kind"] == "blind"))
    cells = {(row["score"], row["domain"], row["epochs"]): row for row in rows}
    heads = [f"{domain}, {_epochs(epochs)}" for domain, epochs in pieces]
    lines = [
        "# Which detectors survive when there is no distribution gap?",
        "",
        _size(found),
        "",
        _meaning(len(scores) * len(pieces)),
        "",
        _line(["score", *heads, "survives"]),
        _line(["---", *["---:"] * (len(pieces) + 1)]),
    ]
    for score in scores:
        some = [cells.get((score, *piece)) for piece in pieces]
        kept = sum(row is not None and survives(row) for row in some)
        counted = sum(row is not None for row in some)
        lines.append(_line([f"`{score}`", *map(_cell, some), f"{kept} of {counted}"]))
    for score in blind:
        some = [cells.get((score, *piece)) for piece in pieces]
        lines.append(_line([f"{score} (blind)", *map(_bare, some), ""]))
    lines += ["", *(f"- `{score}`: {note}." for score, note in found["notes"].items() if score in scores)]
    return "\n".join(lines) + "\n"


def _size(found: Mapping[str, Any]) -> str:
    settings, runs = found["settings"], found["runs"]
    scored = sorted({run["members"] + run["nonmembers"] for run in runs})
    between = f"{scored[0]}" if len(scored) == 1 else f"{scored[0]} to {scored[-1]}"
    return (
        f"{settings['model']} in {settings['dtype']}, trained further on half of {settings['texts']} documents of "
        f"{settings['tokens']} tokens a domain at a learning rate of {settings['learning_rate']:g}; {between} of "
        f"them scored, the others set aside for tuning and as reference. Commit {found['commit']}."
    )


def _meaning(cells: int) -> str:
    return (
        "Each cell is the AUC on the planted model and, in brackets, on the model before planting, which saw "
        "none of the texts. **Bold** where it survives its controls: the 95% intervals of the AUC and of its lead "
        "over the placebo (from the same resamples) both end above chance, and a score that is fitted on labels is "
        "above every fit on shuffled ones. A score without any power would be bold in one cell in forty at most, "
        f"and there are {cells}. The bag of words never sees a model: its AUC is the distribution gap."
    )


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    both = f"{row['auc'][0]:.2f} ({row['placebo']['auc'][0]:.2f})"
    return f"**{both}**" if survives(row) else both


def _bare(row: Row | None) -> str:
    return "" if row is None else f"{row['auc'][0]:.2f}"


def _epochs(number: int) -> str:
    return "1 epoch" if number == 1 else f"{number} epochs"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
