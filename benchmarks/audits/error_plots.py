"""Plots of the error rates: designs and published procedures side by side, and by domain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from benchmarks.papers.fitted_plots import CHANCE, OTHER
from benchmarks.plots import INK, OURS
from pretrace.report.plots import save_png
from pretrace.report.svg import styled

Row = Mapping[str, Any]
Chosen = Callable[[Row], bool]
COLOURS = {"null": OTHER, "member": OURS}
GOALS = {"null": 0.05, "member": 0.95}
TITLES = {"null": "innocent, and accused", "member": "trained on the texts, and found"}
LARGE = "SmolLM2"
ALONE = "min_k_plus_plus(k=0.2)"


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

    def __str__(self) -> str:
        return f"{round(self.value * self.audits)} of {self.audits} ({self.low:.2f} to {self.high:.2f})"


def chosen(**wanted: Any) -> Chosen:
    """Whether a row has all these values."""
    return lambda row: all(row.get(name) == value for name, value in wanted.items())


def lanes() -> dict[str, Chosen]:
    """What is shown, from our recommended design to the published procedures."""
    own = {"design": "controls", "placebo": "own"}
    found = {
        f"control documents, own base, {n} and {m}, a snippet each": chosen(
            **own, text="a snippet", documents=n, controls=m
        )
        for n, m in ((50, 50), (200, 200))
    }
    found["control documents, own base, 50 and 50, 256 tokens each"] = chosen(
        **own, text="256 tokens", documents=50, controls=50
    )
    for n, m in ((50, 50), (200, 200)):
        found[f"control documents, no placebo, {n} and {m}"] = chosen(
            design="controls", placebo="none", score=ALONE, documents=n, controls=m
        )
    for n, m in ((50, 50), (100, 100), (200, 200)):
        found[f"differences, own base, {n} and {m}"] = chosen(
            design="differences", placebo="own", documents=n, controls=m
        )
    for margin, words in (("none", "no margin"), ("left out", "margin of the other domains")):
        found[f"own base alone, {words}, 200"] = chosen(
            design="placebos", placebo="own", margin=margin, documents=200
        )
    for name in ("paper", "release", "original"):
        found[f"{name}, 200"] = chosen(procedure=name, placebo="none")
        found[f"{name}, base as reference, 200"] = chosen(procedure=name, placebo="own")
    return found


def draw_rates(found: Mapping[str, Any], path: Path, *, apart: str) -> None:
    """Both rates of every design over the measured domains, at every exposure for nulls and one epoch for members."""
    rows = [row for row in found["rows"] if row["domain"] != apart]
    named = {name: [row for row in rows if test(row)] for name, test in lanes().items()}
    named = {name: some for name, some in named.items() if some}
    with styled():
        figure = Figure(figsize=(10.4, 1.3 + 0.32 * len(named)), layout="constrained")
        panels = figure.subplots(1, 2)
        for axes, kind in zip(panels, ("null", "member"), strict=True):
            _frame(axes, kind, list(named) if kind == "null" else [""] * len(named))
            for place, some in enumerate(named.values()):
                _rate(axes, place, [row for row in some if counts(row, kind)], kind)
        figure.suptitle(
            "Audits of models with known members, eight domains, level 5%, exact 95% intervals\n"
            "innocent: at 1, 2 and 4 epochs and in a stream; trained: one epoch",
            fontsize=9,
        )
    save_png(figure, path, dpi=150)


def draw_domains(found: Mapping[str, Any], path: Path) -> None:
    """False alarms by domain: with control documents, by differences, and without control documents."""
    shown = {
        "control documents, own base": chosen(design="controls", placebo="own", text="a snippet"),
        "differences, own base": chosen(design="differences", placebo="own"),
        "own base alone, margin of the other domains": chosen(
            design="placebos", placebo="own", margin="left out"
        ),
    }
    domains = list(dict.fromkeys(row["domain"] for row in found["rows"]))
    with styled():
        figure = Figure(figsize=(11, 1.2 + 0.3 * len(domains)), layout="constrained")
        for axes, (name, test) in zip(figure.subplots(1, 3), shown.items(), strict=True):
            _frame(axes, "null", domains if axes is figure.axes[0] else [""] * len(domains))
            axes.set_title(name, fontsize=9)
            for place, domain in enumerate(domains):
                some = [r for r in found["rows"] if test(r) and r["domain"] == domain and r["kind"] == "null"]
                _rate(axes, place, some, "null")
        figure.suptitle("Innocent, and accused, by domain: all sizes, models and exposures", fontsize=9)
    save_png(figure, path, dpi=150)


def counts(row: Row, kind: str) -> bool:
    """Of small models nulls of every exposure, and members of one epoch, not in a stream."""
    if row["kind"] != kind or row.get("model") == LARGE:
        return False
    return kind == "null" or (row["epochs"] == 1 and not row["stream"])


def _rate(axes: Any, place: float, rows: Sequence[Row], kind: str) -> None:
    if not sum(row["audits"] for row in rows):
        return
    rate = Rate.of(rows)
    axes.plot(
        [rate.low, rate.high], [place, place], color=COLOURS[kind], linewidth=2.4, solid_capstyle="butt"
    )
    axes.plot([rate.value], [place], "o", color=INK, markersize=4.5)
    side = "left" if rate.high < 0.75 else "right"
    at = rate.high + 0.015 if side == "left" else rate.low - 0.015
    words = f"{round(rate.value * rate.audits)} of {rate.audits}"
    axes.text(at, place, words, fontsize=7.5, ha=side, va="center", color=INK)


def _frame(axes: Any, kind: str, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(-0.02, 1.02)
    axes.axvline(GOALS[kind], color=CHANCE, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.grid(axis="x")
    axes.set_title(TITLES[kind], fontsize=9)
    axes.spines["left"].set_visible(False)
