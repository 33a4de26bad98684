"""Plots of the error rates: the procedures side by side, and what placebo, sampling, size and exposure do."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks.fitted_plots import CHANCE, OTHER, PALE
from benchmarks.plots import INK, OURS
from pretrace.report.plots import save_png
from pretrace.report.svg import styled

Row = Mapping[str, Any]
COLOURS = {"null": OTHER, "member": OURS}
GOALS = {"null": 0.05, "member": 0.8}
TITLES = {"null": "rejected although never trained on", "member": "rejected after training on the texts"}
LEGEND = {"null": "never trained on", "member": "trained on"}
PROCEDURES = {
    ("pretrace", "own"): "pretrace",
    ("pretrace", "none"): "its statistic without a placebo",
    ("calibrated", "none"): "calibrated, without a placebo",
    ("calibrated", "own"): "calibrated, base as reference",
    ("paper", "none"): "paper",
    ("paper", "own"): "paper, base as reference",
    ("original", "none"): "original",
    ("original", "own"): "original, base as reference",
}
PLACEBOS = {
    "own": "own base",
    "tuned": "own base, tuned",
    "earlier": "earlier checkpoint",
    "sibling": "sibling",
    "other": "another family",
    "none": "none",
}


class Rate(NamedTuple):
    """Rejections of so many audits, with the exact 95% interval (Clopper and Pearson 1934)."""

    value: float
    low: float
    high: float
    audits: int

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Rate:
        """The rate over all audits of the rows.

        >>> Rate.of([{"audits": 10, "rejections": 0}]).high
        0.3085
        """
        from scipy.special import betaincinv

        n, k = (sum(row[name] for row in rows) for name in ("audits", "rejections"))
        low = float(betaincinv(k, n - k + 1, 0.025)) if k else 0.0
        high = float(betaincinv(k + 1, n - k, 0.975)) if k < n else 1.0
        return cls(k / n, round(low, 4), round(high, 4), n)


def draw_rates(found: Mapping[str, Any], path: Path) -> None:
    """Both rates of every procedure, on models from scratch and on SmolLM2, and the nulls' p-values."""
    rows = alike(found)
    groups = {
        "models from scratch": [row for row in rows if not row["smollm2"]],
        "SmolLM2-135M": [row for row in rows if row["smollm2"]],
    }
    groups = {name: some for name, some in groups.items() if some}
    names = [key for key in PROCEDURES if any(_is(row, key) for row in rows)]
    with styled():
        figure = Figure(figsize=(11.4, 1.9 + 0.42 * len(names)), layout="constrained")
        null, member, ps = figure.subplots(1, 3, width_ratios=[1, 1, 0.8])
        for axes, kind in ((null, "null"), (member, "member")):
            _frame(axes, kind, [PROCEDURES[key] for key in names] if kind == "null" else [""] * len(names))
            for lane, some in enumerate(groups.values()):
                for place, key in enumerate(names):
                    chosen = [row for row in some if _is(row, key) and row["kind"] == kind]
                    at = place + (lane - (len(groups) - 1) / 2) * 0.32
                    _rate(axes, at, chosen, kind, filled=lane == 0)
        _p_values(ps, next(iter(groups.values())))
        marks = [
            Line2D([], [], color=INK, marker="o", linestyle="none", label=name, markerfacecolor=fill)
            for name, fill in zip(groups, (INK, "white"), strict=False)
        ]
        figure.legend(handles=marks, loc="outside lower center", ncol=2, frameon=False, fontsize=8)
        size, most = found["settings"]["audit"], found["settings"]["snippets"]
        figure.suptitle(
            f"Audits of {size} documents, at most {most} snippet{'s' * (most != 1)} of each, one epoch of exposure, "
            "level 5%; exact 95% intervals",
            fontsize=9,
        )
    save_png(figure, path, dpi=150)


def draw_variants(found: Mapping[str, Any], path: Path) -> None:
    """The default procedure on models from scratch as one thing is varied at a time."""
    panels = _panels(found)
    columns = min(4, len(panels))
    lines = -(-len(panels) // columns)
    with styled():
        figure = Figure(figsize=(3.4 * columns, 3.2 * lines), layout="constrained")
        grid = figure.subplots(lines, columns, squeeze=False).ravel()
        for axes, panel in zip(grid, panels, strict=False):
            panel(axes)
        for axes in grid[len(panels) :]:
            axes.set_axis_off()
        size = found["settings"]["audit"]
        figure.suptitle(
            f"The default procedure on models from scratch, {size} documents unless said otherwise:\n"
            "share of audits that reject at 5%, exact 95% intervals",
            fontsize=9,
        )
    save_png(figure, path, dpi=150)


def _panels(found: Mapping[str, Any]) -> list[Callable[[Any], None]]:
    """What can be drawn: of the things that can be varied, those that were."""
    rows = [r for r in alike(found, "placebo") if r["procedure"] == "pretrace" and not r["smollm2"]]
    home = rows[0]["domain"] if rows else ""
    rows.sort(key=lambda row: list(PLACEBOS).index(row["placebo"]))
    panels: list[Callable[[Any], None]] = [
        functools.partial(_levels, title="placebo, all domains", rows=rows, name="placebo")
    ]
    for name, shown, title in (
        ("sampling", "sampling", "sampling"),
        ("epochs", "epochs", "epochs"),
        ("rate", "rate", "learning rate, relative"),
        ("scale", "model", "model"),
        ("stream", "stream", "trained on"),
    ):
        some = [row for row in _default(alike(found, name)) if row["domain"] == home]
        some.sort(key=lambda row: (row[name] != "plain", row[name]))
        if len({row[name] for row in some}) > 1:  # one value alone compares nothing
            panels.append(functools.partial(_levels, title=f"{title}, {home}", rows=some, name=shown))
    sized = _default(alike(found, "documents", "snippets"))
    panels += [functools.partial(_documents, rows=sized), functools.partial(_snippets, rows=sized)]
    return panels


def alike(found: Mapping[str, Any], *free: str) -> list[Row]:
    """The rows that are usual in everything but the names given; the placebo belongs to the procedure."""
    settings = found["settings"]
    usual = {"scale": 1, "epochs": 1, "rate": 1, "stream": False, "sampling": "plain"}
    usual |= {"documents": settings["audit"], "snippets": settings["snippets"]}
    fixed = {name: value for name, value in usual.items() if name not in free}
    rows = (*found["rows"], *found["variants"])
    return [row for row in rows if all(row[name] == value for name, value in fixed.items())]


def _default(rows: Sequence[Row]) -> list[Row]:
    """Those of the default procedure against the base, on models from scratch."""
    return [r for r in rows if _is(r, ("pretrace", "own")) and not r["smollm2"]]


def _is(row: Row, key: tuple[str, str]) -> bool:
    return (row["procedure"], row["placebo"]) == key


def _label(value: object) -> str:
    if isinstance(value, bool):
        return "four domains" if value else "the members"
    return f"{value:g}" if isinstance(value, float | int) else PLACEBOS.get(str(value), str(value))


def _frame(axes: Any, kind: str, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(-0.02, 1.02)
    axes.axvline(GOALS[kind], color=CHANCE, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.grid(axis="x")
    axes.set_title(TITLES[kind], fontsize=9)
    axes.spines["left"].set_visible(False)


def _rate(axes: Any, place: float, rows: Sequence[Row], kind: str, *, filled: bool = True) -> None:
    """A point and its interval, with the counts behind it."""
    if not rows:
        return
    rate, colour = Rate.of(rows), COLOURS[kind]
    axes.plot([rate.low, rate.high], [place, place], color=colour, linewidth=1.2)
    fill = colour if filled else "white"
    axes.plot([rate.value], [place], "o", markersize=5, markeredgecolor=colour, markerfacecolor=fill)
    left = rate.high > 0.8
    counts = f"{round(rate.value * rate.audits)} of {rate.audits}"
    axes.annotate(
        counts,
        (rate.low if left else rate.high, place),
        xytext=(-4 if left else 4, 0),
        textcoords="offset points",
        va="center",
        ha="right" if left else "left",
        fontsize=6.5,
        color=INK,
    )


def _p_values(axes: Any, rows: Sequence[Row]) -> None:
    """Histograms of the nulls' p-values: level where a test holds what it promises."""
    bins = np.linspace(0, 1, 11)
    for key, colour in (
        (("paper", "none"), OTHER),
        (("original", "none"), PALE),
        (("pretrace", "own"), OURS),
    ):
        values = [p for row in rows if _is(row, key) and row["kind"] == "null" for p in row["p"]]
        if values:
            weights = np.full(len(values), 1 / len(values))
            axes.hist(
                values, bins, weights=weights, histtype="step", color=colour, linewidth=1.6, label=key[0]
            )
    axes.axhline(0.1, color=CHANCE, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.set_xlim(0, 1)
    axes.set_xlabel("p")
    axes.set_title("p-values of the nulls, from scratch", fontsize=9)
    axes.legend(frameon=False, fontsize=7)


def _levels(axes: Any, title: str, rows: Sequence[Row], name: str) -> None:
    """A line a value of the field called `name`, both kinds on it."""
    levels = list(dict.fromkeys(row[name] for row in rows))
    _frame(axes, "member", [_label(level) for level in levels])
    axes.axvline(GOALS["null"], color=CHANCE, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.set_title(title, fontsize=9)
    for place, level in enumerate(levels):
        for kind, at in (("member", place - 0.15), ("null", place + 0.15)):
            _rate(axes, at, [row for row in rows if row[name] == level and row["kind"] == kind], kind)


def _documents(axes: Any, rows: Sequence[Row]) -> None:
    """Rates against the number of documents, a line a number of snippets of each."""
    most = max((row["snippets"] for row in rows), default=1)
    for kind, goal in GOALS.items():
        axes.axhline(goal, color=CHANCE, linewidth=0.9, linestyle=(0, (4, 3)))
        for few in sorted({row["snippets"] for row in rows}):
            some = [row for row in rows if row["kind"] == kind and row["snippets"] == few]
            sizes = sorted({row["documents"] for row in some})
            rates = [Rate.of([row for row in some if row["documents"] == size]) for size in sizes]
            shade = 0.35 + 0.65 * few / most
            axes.plot(
                sizes, [rate.value for rate in rates], "o-", markersize=4, color=COLOURS[kind], alpha=shade
            )
            if few == most:
                ends = [rate.low for rate in rates], [rate.high for rate in rates]
                axes.fill_between(sizes, *ends, color=COLOURS[kind], alpha=0.12, linewidth=0)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("documents of an audit")
    axes.set_title("share that rejects" + ", darker: more snippets of each" * (most > 1), fontsize=9)
    axes.grid(axis="y")


def _snippets(axes: Any, rows: Sequence[Row]) -> None:
    """Median p and the middle half against the snippets of an audit, as in figure 5 of the paper."""
    for kind, colour in COLOURS.items():
        some = [row for row in rows if row["kind"] == kind]
        sizes = sorted({row["documents"] * row["snippets"] for row in some})
        every = [
            [p for r in some if r["documents"] * r["snippets"] == size for p in r["p"]] for size in sizes
        ]
        if every:
            low, middle, high = np.array([np.quantile(ps, [0.25, 0.5, 0.75]) for ps in every]).T
            axes.plot(sizes, middle, "o-", markersize=4, color=colour, label=LEGEND[kind])
            axes.fill_between(sizes, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.axhline(0.05, color=CHANCE, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.set_yscale("log")
    axes.set_xlabel("snippets of an audit")
    axes.set_title("median p and middle half", fontsize=9)
    axes.legend(frameon=False, fontsize=7)
