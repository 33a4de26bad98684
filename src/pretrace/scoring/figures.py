"""Figures as the findings print them, and which score counts as the best."""

from __future__ import annotations

from collections.abc import Sequence

from pretrace.types import Estimate, Measured


def best_of(rows: Sequence[Measured]) -> Measured | None:
    """The score with the highest AUC, the first of them in a tie; None without scores."""
    return max((row for row in rows if row.kind == "score"), key=lambda row: row.auc.value, default=None)


def above(row: Measured) -> bool:
    """Whether the AUC is shown to be better than chance."""
    return row.auc.low > 0.5


def long(figure: Estimate) -> str:
    """An AUC in a sentence that explains its interval."""
    value, low, high = shown(figure, edges=(0.5, 1.0))
    return f"{value} (95% interval {low} to {high})"


def short(figure: Estimate) -> str:
    """An AUC with its interval."""
    return "{}, {} to {}".format(*shown(figure, edges=(0.5, 1.0)))


def ahead(figure: Estimate) -> str:
    """A difference with its interval."""
    return "{}, {} to {}".format(*shown(figure, edges=(0.0,)))


def shown(figure: Estimate, *, edges: Sequence[float]) -> list[str]:
    """Two decimals, and up to two more where rounding would put a number on an edge it only comes near."""
    shown = []
    for number in (figure.value, figure.low, figure.high):
        places = 2
        while places < 4 and any(round(number, places) == edge != number for edge in edges):
            places += 1
        shown.append(f"{round(number, places) + 0.0:.{places}f}".replace("-", "−"))  # + 0.0: no minus zero
    return shown


def percent(figure: Estimate) -> str:
    """A rate with its interval, in whole percent."""
    return f"{figure.value:.0%} ({figure.low:.0%} to {figure.high:.0%})"


def counted(documents: int) -> str:
    """A number of documents."""
    return "1 document" if documents == 1 else f"{documents:,} documents"


def listed(names: Sequence[str]) -> str:
    """Names as an enumeration; at least one."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
