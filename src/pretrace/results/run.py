"""Runs on disk: scores as parquet and csv, controls, metrics, coloured texts, and `run.json` with the settings.

Columns of the scores: `id`, `label` (1 member, 0 non-member, empty where unknown; left out where no label is known),
`group`, `n_tokens`, `copies` where a scan gave the labels, then one a score, named exactly as its expression is
written. How many tokens each text lost to the length limit is no column, lest it be taken for a score: people find it
in cut.csv, and `load_run` in the metadata of scores.parquet. Controls have a table of their own: `id`, then `placebo:
EXPRESSION` and `shuffled 1: EXPRESSION`, `shuffled 2: EXPRESSION`, … for the repeats, rows in the same order. A text
that has no value of a score has an empty cell there, and missing.csv says why.

The run of more texts than a shard (`Run.whole`) holds a sample of them in these tables. All of its rows are in
`scores/part-00000.parquet`, …, with the columns above, `n_cut`, `n_chars` and those of the controls; skipped.csv,
missing.csv and cut.csv name all texts.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.results.atomic import RUN as RUN
from pretrace.results.folder import (
    Column,
    OpenFolder,
    Pages,
    Write,
    expect,
    from_json,
    from_plain,
    read_folder,
    read_parquet,
    texts_of,
    to_json,
    to_plain,
    write_csv,
    write_folder,
    write_parquet,
)
from pretrace.types import Bools, Control, Doubles, Evaluation, Heat, Missing, Run, Skipped, Whole


def counts(run: Run) -> dict[str, int]:
    """How many texts of each kind a run holds: scored ones, their labels, and what fell away. `tokens` are those the
    scores rest on, `cut_tokens` those dropped by the limit. Of a large run they are those of all texts."""
    if (whole := run.whole) is not None:
        names = "texts members nonmembers unlabelled documents skipped tokens cut_texts cut_tokens"
        return {name.replace("documents", "groups"): getattr(whole, name) for name in names.split()}
    return {
        "texts": len(run.ids),
        "members": sum(member is True for member in run.members),
        "nonmembers": sum(member is False for member in run.members),
        "unlabelled": sum(member is None for member in run.members),
        "groups": len({group or name for group, name in zip(run.groups, run.ids, strict=True)}),
        "skipped": len(run.skipped),
        "tokens": int(run.tokens.sum(dtype="int64")),
        "cut_texts": int((run.cut > 0).sum()),
        "cut_tokens": int(run.cut.sum(dtype="int64")),
    }


SCORES, METRICS, HEAT, CONTROLS = "scores.parquet", "metrics.json", "heat.json", "controls.parquet"
_FIXED = ("id", "label", "group", "n_tokens", "copies")
SKIPPED_COLUMNS = ("id", "reason", "n_tokens")
MISSING_COLUMNS = ("id", "score", "reason")
CUT_COLUMNS = ("id", "n_cut")
_CUT = b"pretrace_cut"  # zlib of little-endian int32, in base64


def save_run(
    run: Run, folder: Path, *, beside: Write | None = None, pages: Pages | None = None
) -> dict[str, Any]:
    """Write a run to `folder`, in place of an earlier run there, and return its JSON part. `beside` may add files,
    `pages` are made from it (a report). TypeError, ValueError or OutputError where it cannot be written."""
    settings = to_plain(run.settings, "settings")
    _check(run)
    skipped = [(text.id, text.reason, int(text.tokens)) for text in run.skipped]
    missing = [(one.id, one.score, one.reason) for one in run.missing]
    cut = [(run.ids[i], int(run.cut[i])) for i in np.flatnonzero(run.cut).tolist()]
    facts = {_CUT: base64.b64encode(zlib.compress(np.asarray(run.cut, "<i4").tobytes()))}
    columns = score_columns(run)
    cells = (one.tolist() if isinstance(one, np.ndarray) else one for one in columns.values())  # masked: None
    parts: dict[str, Write] = {
        SCORES: lambda path: write_parquet(path, columns, facts),
        "scores.csv": lambda path: write_csv(path, tuple(columns), zip(*cells, strict=True)),
        "skipped.csv": lambda path: write_csv(path, SKIPPED_COLUMNS, skipped),
        "cut.csv": lambda path: write_csv(path, CUT_COLUMNS, cut),
    }
    if missing:
        parts["missing.csv"] = lambda path: write_csv(path, MISSING_COLUMNS, missing)
    if run.controls:
        parts[CONTROLS] = lambda path: write_parquet(path, _controls(run))
    if run.evaluation is not None:
        metrics = to_json(to_plain(run.evaluation, "evaluation"))
        parts[METRICS] = lambda path: path.write_bytes(metrics)
    if run.heat:
        heat = to_json(to_plain({"texts": run.heat}, "heat"))
        parts[HEAT] = lambda path: path.write_bytes(heat)
    outlines = [{"kind": c.kind, "score": c.score, "repeats": c.values.shape[1]} for c in run.controls]
    content = {
        "corpus": run.corpus,
        "scores": list(run.scores),
        **({"controls": outlines} if outlines else {}),
        "counts": counts(run),
        "settings": settings,
        "skipped": [dict(zip(SKIPPED_COLUMNS, row, strict=True)) for row in skipped],
        **({"missing": [dict(zip(MISSING_COLUMNS, row, strict=True)) for row in missing]} if missing else {}),
        **({"whole": to_plain(run.whole, "whole")} if run.whole else {}),
    }
    return write_folder(RUN, folder, content, parts=parts, extra=beside, pages=pages)


def load_run(folder: str | Path) -> Run:
    """The run that `save_run` wrote, to the last bit; OutputError where it is none, damaged, or of a newer pretrace."""
    return read_folder(RUN, Path(folder), _load)


def _check(run: Run) -> None:
    """ValueError unless a run's parts agree in length and its figures are finite, but for those in `Run.missing`."""
    rows = {len(run.ids), len(run.groups), len(run.members), len(run.tokens), len(run.cut)}
    if rows != {len(run.matrix)} or run.matrix.shape != (len(run.ids), len(run.scores)):
        raise ValueError("the rows of a run differ in number from array to array")
    if len({*run.scores, *_FIXED}) != len(run.scores) + len(_FIXED):
        raise ValueError(f"scores of a run share a name, or are called {' or '.join(_FIXED)}")
    every = [(name, column[:, None], "score") for name, column in zip(run.scores, run.matrix.T, strict=True)]
    for score, values, what in (*every, *((one.score, one.values, "control") for one in run.controls)):
        if values.ndim != 2 or len(values) != len(run.ids):
            raise ValueError(f"a {what} of a run has another number of rows than its scores")
        if not (np.isfinite(values) | np.isnan(values) & run.lacks(score)[:, None]).all():
            raise ValueError(f"a {what} of a run is NaN or infinite")
    names = [name for c in run.controls for name in control_columns(c.kind, c.score, c.values.shape[1])]
    if len(set(names)) != len(names):
        raise ValueError("controls of a run share a name")


def score_columns(run: Run, *, controls: bool = False) -> dict[str, Column]:
    """The columns of the scores as arrays, a missing value masked; with `controls` those of the controls too."""
    labelled = any(member is not None for member in run.members)
    columns: dict[str, Column] = {
        "id": run.ids,
        **({"label": label_column(run.members)} if labelled else {}),
        "group": run.groups,
        "n_tokens": np.asarray(run.tokens, np.int32),
        **({} if run.copies is None else {"copies": np.asarray(run.copies, np.int32)}),
    }
    columns |= zip(run.scores, map(masked, np.asarray(run.matrix, np.float64).T), strict=True)
    return columns | _controls(run) if controls else columns


def label_column(members: Sequence[bool | None]) -> Any:
    """Labels as int8, masked where there is none."""
    unknown = [member is None for member in members]
    return np.ma.array([bool(member) for member in members], mask=unknown, dtype=np.int8)


def masked(column: Doubles) -> Doubles:
    """Mask the missing values of a column, so that a table has empty cells there."""
    lost = np.isnan(column)
    return np.ma.masked_where(lost, column) if lost.any() else column


def _controls(run: Run) -> dict[str, Column]:
    columns: dict[str, Column] = {"id": run.ids}
    for control in run.controls:
        values = list(map(masked, np.asarray(control.values, np.float64).T))
        columns |= zip(control_columns(control.kind, control.score, len(values)), values, strict=True)
    return columns


def control_columns(kind: str, score: str, repeats: int) -> list[str]:
    """The names of the columns of a control in a table."""
    if kind == "placebo" and repeats == 1:
        return [f"{kind}: {score}"]
    return [f"{kind} {number}: {score}" for number in range(1, repeats + 1)]


def _load(opened: OpenFolder) -> Run:
    facts = opened.content
    scores = from_plain(tuple[str, ...], facts["scores"], "scores")
    outlines = expect(facts.get("controls", []), list)  # absent where a run has none

    def rows(content: bytes) -> dict[str, Any]:
        table = read_parquet(content)
        try:
            cut = np.frombuffer(zlib.decompress(base64.b64decode((table.schema.metadata or {})[_CUT])), "<i4")
        except zlib.error as error:
            raise ValueError(str(error)) from error
        return {**run_rows(table, scores), "cut": cut.astype(np.int32)}

    def controls(content: bytes) -> tuple[Control, ...]:
        table = read_parquet(content)
        for one in outlines:
            _, _, repeats = expect(one["kind"], str), expect(one["score"], str), expect(one["repeats"], int)
            if not 0 <= repeats < table.num_columns:
                raise ValueError(f"{repeats} repeats of a control do not fit into its table")
        return run_controls(table, outlines)

    def evaluation(content: bytes) -> Evaluation:
        return from_plain(Evaluation, from_json(content), "evaluation")

    def heat(content: bytes) -> tuple[Heat, ...]:
        return from_plain(tuple[Heat, ...], from_json(content)["texts"], "texts")

    run = Run(
        **opened.part(SCORES, rows),
        corpus=expect(facts["corpus"], str),
        skipped=tuple(
            Skipped(expect(one["id"], str), expect(one["reason"], str), expect(one["n_tokens"], int))
            for one in expect(facts["skipped"], list)
        ),
        heat=opened.part(HEAT, heat) if HEAT in opened else (),
        evaluation=opened.part(METRICS, evaluation) if METRICS in opened else None,
        controls=opened.part(CONTROLS, controls) if "controls" in facts else (),
        missing=from_plain(tuple[Missing, ...], facts.get("missing", []), "missing"),
        settings=expect(facts["settings"], dict),
        whole=from_plain(Whole, facts["whole"], "whole") if "whole" in facts else None,
    )
    _check(run)
    return run


def run_rows(table: Any, scores: tuple[str, ...]) -> dict[str, Any]:
    """The fields of a run that a table of its rows has."""
    has = set(table.column_names) - set(scores)
    labels = table.column("label").to_pylist() if "label" in has else [None] * table.num_rows
    return {
        "ids": texts_of(table, "id"),
        "groups": texts_of(table, "group"),
        "members": tuple(None if label is None else bool(label) for label in labels),
        "tokens": table.column("n_tokens").to_numpy().astype(np.int32),
        "copies": table.column("copies").to_numpy().astype(np.int32) if "copies" in has else None,
        "scores": scores,
        "matrix": _matrix(table, scores),
    }


def _matrix(table: Any, names: Sequence[str]) -> Doubles:
    columns = np.array([table.column(name).to_numpy() for name in names], np.float64)
    return columns.reshape(len(names), table.num_rows).T.copy()


def run_controls(table: Any, outlines: Sequence[Mapping[str, Any]]) -> tuple[Control, ...]:
    """The controls of a run in a table of them, by kind, score and number of repeats."""
    return tuple(
        Control(one["score"], one["kind"], _matrix(table, control_columns(**one))) for one in outlines
    )


LARGEST = 1e100
"""Values beyond it are drawn at it."""
_FEWEST, _MOST = 12, 40
_P_BARS = 20


def axis_range(values: Doubles) -> tuple[float, float]:
    """Start and end of an axis: all values, at most three quartile ranges beyond the middle half."""
    values = np.clip(values, -LARGEST, LARGEST)
    # The line between drawing and statistics: these quartiles place an axis and are printed nowhere.
    first, third = np.percentile(values, [25, 75])
    low, high = float(values.min()), float(values.max())
    if third > first:
        low = max(low, float(first - 3 * (third - first)))
        high = min(high, float(third + 3 * (third - first)))
    size = max(abs(low), abs(high))
    if high - low > max(1e-9 * size, 1e-12):
        return low, high
    # Narrower than this, floats run out of room for the bars' edges.
    pad = 1e-3 * size if size > 1e-9 else 0.5
    return low - pad, high + pad


def score_bars(scores: Doubles, chosen: Bools, known: Doubles) -> dict[str, Any]:
    """A histogram from `low` to `high`, whose outermost bins count those beyond: the scores of the texts in question
    (`every`), of the flagged ones among them, and of the known ones."""
    low, high = axis_range(np.concatenate((scores, known)))
    if chosen.any():  # which lie far out by their nature, and are what the figure is about
        high = max(high, float(np.quantile(scores[chosen], 0.9)))
    number = int(np.clip(2 * np.sqrt(min(len(scores), len(known))), _FEWEST, _MOST))
    edges = np.linspace(low, high, number + 1)
    return _bars(edges, scores, scores[chosen], known)


def p_bars(p: Doubles, chosen: Bools) -> dict[str, Any]:
    """The same of the p-values of the documents in question."""
    return {**_bars(np.linspace(0, 1, _P_BARS + 1), p, p[chosen], p), "known": []}


def _bars(edges: Doubles, *sides: Doubles) -> dict[str, Any]:
    counts = (np.histogram(np.clip(side, edges[0], edges[-1]), edges)[0].tolist() for side in sides)
    low, high = float(edges[0]), float(edges[-1])
    return {"low": low, "high": high, **dict(zip(("every", "flagged", "known"), counts, strict=True))}
