"""Runs side by side on disk: `comparison.json`, which holds everything, and `table.csv`, a row a run and score."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pretrace.results.folder import Kind, Opened, Rendered, Write, read_folder, write_folder
from pretrace.results.output_checks import COMPARISON, COMPARISON_KEY
from pretrace.results.serialization import from_plain, to_plain
from pretrace.results.tables import write_csv
from pretrace.types import Estimate, SideBySide

COMPARISONS = Kind(
    "comparison", COMPARISON, COMPARISON_KEY, 1, "pretrace runs compare", "make the comparison again"
)
TABLE = "table.csv"
_COLUMNS = (
    "run", "folder", "model", "corpus", "score", "texts", "median", "auc", "auc_low", "auc_high", "tpr", "tpr_low",
    "tpr_high", "blind", "blind_auc", "blind_auc_low", "blind_auc_high", "placebo_auc", "placebo_auc_low",
    "placebo_auc_high", "lead", "lead_low", "lead_high", "survives", "shuffled_auc", "shuffled_auc_low",
    "shuffled_auc_high",
)  # fmt: skip
_FIELDS = ("runs", "scores", "differences")


def save_side_by_side(found: SideBySide, folder: Path, *, rendered: Rendered | None = None) -> None:
    """Write runs side by side to `folder`, in place of an earlier comparison there; on failure nothing has changed.

    `rendered` is what is made from it (a report). OutputError where `folder` cannot be written.
    """
    content = {name: to_plain(getattr(found, name), name) for name in _FIELDS}
    parts: dict[str, Write] = {
        TABLE: lambda path: write_csv(path, _COLUMNS, _rows(found), quoted=True),
    }
    write_folder(COMPARISONS, folder, content, parts=parts, rendered=rendered)


def load_side_by_side(folder: Path) -> SideBySide:
    """What `save_side_by_side` wrote to `folder`, to the last bit.

    OutputError, naming the file, where there is none, or where it is damaged or was changed.
    """
    return read_folder(COMPARISONS, folder, _load)


def _load(opened: Opened) -> SideBySide:
    opened.part(TABLE, len)
    plain = {name: opened.content[name] for name in _FIELDS}
    return from_plain(SideBySide, plain, "comparison")


def _rows(found: SideBySide) -> Iterator[tuple[Any, ...]]:
    for run in found.runs:
        for one in run.scores:
            yield (
                run.number, run.folder, run.model, run.corpus, one.score, one.texts, one.median, *_cells(one.auc),
                *_cells(one.tpr), run.blind_name or None, *_cells(run.blind), *_cells(one.placebo), *_cells(one.lead),
                one.survives, *_cells(one.shuffled),
            )  # fmt: skip


def _cells(found: Estimate | None) -> tuple[float | None, ...]:
    return (None, None, None) if found is None else (found.value, found.low, found.high)
