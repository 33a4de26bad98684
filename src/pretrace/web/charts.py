"""Charts of the pages: marks on one axis, row by row. A pointer, a finger or the arrow keys bring up what a mark says.

The templates write them as SVG, and page.js adds the words and the coming closer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator

from pretrace.report import wording
from pretrace.types import Doubles, Estimate, Run, Table, Verdict
from pretrace.verdicts.audit.built import DOCUMENTS, SUSPECT
from pretrace.verdicts.flag.built import FLAGS, KNOWN

_MOST_DRAWN = 400
"""Marks of a row; of more, evenly many of the sorted ones."""
_MarkKind = Literal["own", "known", "interval"]


class ChartMark(NamedTuple):
    """Something with a value, what is said of it, and for an interval its ends."""

    value: float
    said: str
    kind: _MarkKind
    low: float
    high: float


class ChartRow(NamedTuple):
    """Marks that stand on one line, and what they are."""

    label: str
    marks: tuple[ChartMark, ...]


class Chart(NamedTuple):
    """Rows over one axis from the first to the last of its `ends`, with a line at 0 where `zero`."""

    title: str
    rows: tuple[ChartRow, ...]
    ends: tuple[float, float]
    ticks: tuple[float, ...]
    zero: bool


def mark(value: float, said: str, kind: _MarkKind) -> ChartMark:
    """A mark of a value, which has no interval."""
    return ChartMark(value, f"{said}: {wording.significant(value)}", kind, value, value)


def chart_of(title: str, rows: Sequence[ChartRow], *, zero: bool = False) -> Chart:
    """The chart of some rows, whose axis is as long as their marks reach, and to 0 where that is drawn."""
    reaches = [end for row in rows for one in row.marks for end in (one.low, one.high)] + [0.0] * zero
    low, high = min(reaches), max(reaches)
    ticks = MaxNLocator(nbins=6, steps=[1, 2, 5, 10]).tick_values(low, high)
    return Chart(title, tuple(rows), (low, high), tuple(float(t) for t in ticks if low <= t <= high), zero)


def thinned(
    values: Sequence[float] | Doubles, names: Sequence[str], kind: _MarkKind = "known"
) -> tuple[ChartMark, ...]:
    """A mark for each value that is a number, sorted; of more than `_MOST_DRAWN` evenly many."""
    order = [i for i in np.argsort(values, kind="stable") if not np.isnan(values[i])]
    step = max(1, -(-len(order) // _MOST_DRAWN))
    return tuple(mark(float(values[i]), names[i], kind) for i in order[::step])


def of_documents(found: object) -> Chart | None:
    """The documents of an audit, or the texts of a flagging, above those that they are compared with; None for other
    results, and where one side is missing."""
    if not isinstance(found, Verdict):
        return None
    tables = {table.name: table for table in found.tables}
    rows: list[ChartRow] = []
    if found.test == "audit" and DOCUMENTS in tables:
        table = tables[DOCUMENTS]
        for words, wanted in (("suspect documents", True), ("control documents", False)):
            chosen = [i for i, side in enumerate(table["side"]) if (side == SUSPECT) == wanted]
            rows.append(_row(words, table, "document", "value", chosen, "own" if wanted else "known"))
        title = f"What the model makes of each document ({found.effect_unit})"
    elif found.test == "flag" and {FLAGS, KNOWN} <= tables.keys():
        asked, known = tables[FLAGS], tables[KNOWN]
        rows.append(_row("texts in question", asked, "id", "score", range(len(asked)), "own"))
        rows.append(_row("known non-members", known, "id", "score", range(len(known)), "known"))
        title = f"The score {found.figures['score']} of each text"
    shown = [row for row in rows if row.marks]
    return chart_of(title, shown, zero=found.test == "audit") if len(shown) > 1 else None


def _row(
    words: str, table: Table, names: str, values: str, chosen: Sequence[int], kind: _MarkKind
) -> ChartRow:
    marks = thinned([table[values][i] for i in chosen], [table[names][i] for i in chosen], kind)
    return ChartRow(f"{wording.count(len(chosen))} {words}", marks)


def side_by_side(sides: Sequence[tuple[str, object]]) -> tuple[Chart, ...]:
    """What two results have measured alike, with its intervals on one axis: effects of one unit, AUCs of one score."""
    found = [(name, dict(_measured(one))) for name, one in sides]
    shared = [label for label in found[0][1] if all(label in measured for _, measured in found)]
    charts = []
    for axis in dict.fromkeys(label[0] for label in shared):
        rows = [
            ChartRow(" · ".join(filter(None, (score, name))), (_interval(measured[measure, score]),))
            for measure, score in shared
            if measure == axis
            for name, measured in found
        ]
        charts.append(chart_of(axis, rows, zero=axis.startswith("Effect")))
    return tuple(charts)


def _measured(found: object) -> Iterator[tuple[tuple[str, str], Estimate]]:
    if isinstance(found, Verdict) and found.effect is not None:
        yield (f"Effect: {found.effect_unit}" if found.effect_unit else "Effect", ""), found.effect
    if isinstance(found, Run) and found.evaluation is not None:
        yield from ((("AUC, where 0.5 is chance", row.name), row.auc) for row in found.evaluation.rows)


def _interval(found: Estimate) -> ChartMark:
    said = " ".join(wording.effect(found)).strip()
    return ChartMark(found.value, said, "interval", found.low, found.high)
