"""The plots that stand beside the results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from pretrace.report.plots import save_png

INK, OURS, OTHER = "#333333", "#1f5f8b", "#b9b9b9"


def draw_speed(found: dict[str, Any], path: Path) -> None:
    """Seconds by dtype, and memory against the size of the whole logits."""
    dtypes = [dtype for dtype in ("float32", "bfloat16") if dtype in found]
    rows = found.get("memory", [])
    figure = Figure(figsize=(3.2 * (len(dtypes) + bool(rows)), 3.2), layout="constrained")
    panels = figure.subplots(1, len(dtypes) + bool(rows), squeeze=False)[0]
    for axes, dtype in zip(panels, dtypes, strict=False):
        _seconds(axes, dtype, found[dtype])
    if rows:
        _memory(panels[-1], rows)
    texts = found["texts"]
    figure.suptitle(
        f"{texts['number']} {texts['corpus']}, {texts['model']}, {found['machine']['cpu']}", fontsize=9
    )
    save_png(figure, path, dpi=150)


def _seconds(axes: Any, dtype: str, figures: dict[str, Any]) -> None:
    names = ["naive loop", "pretrace", "bare forward"]
    values = [sorted(figures["seconds"][key]) for key in ("naive", "ours", "bare")]
    middle = [value[len(value) // 2] for value in values]
    axes.barh(names, middle, color=[OTHER, OURS, OTHER], height=0.6)
    for place, value in enumerate(middle):
        axes.text(value, place, f" {value:.0f} s", va="center", fontsize=8, color=INK)
    axes.set_xlim(0, max(middle) * 1.25)
    axes.set_title(
        f"{dtype}: {figures['over_bare']:.2f}× bare, naive {figures['naive_over_ours']:.2f}× ours", fontsize=8
    )
    _plain(axes)


def _memory(axes: Any, rows: list[dict[str, float]]) -> None:
    labels = [f"{r['vocabulary'] // 1000:.0f}k · {r['length']:.0f} · {r['texts']:.0f}" for r in rows]
    places = range(len(rows))
    axes.plot([r["whole_logits_mb"] for r in rows], places, "o", color=OTHER, label="whole logits would take")
    axes.plot([max(r["peak_mb"], 1) for r in rows], places, "o", color=OURS, label="pretrace, peak")
    axes.set_yticks(list(places), labels, fontsize=7)
    axes.set_xscale("log")
    axes.set_title("memory (MB): vocabulary · length · texts", fontsize=8)
    axes.legend(fontsize=7, frameon=False, loc="upper center", bbox_to_anchor=(0.4, -0.1), ncol=2)
    _plain(axes)


def _plain(axes: Any) -> None:
    axes.tick_params(labelsize=8, length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def draw_servers(found: dict[str, Any], path: Path) -> None:
    """Tokens a second of the weights here and of the server, each repeat a point."""
    figure = Figure(figsize=(4.6, 2.0), layout="constrained")
    axes = figure.subplots()
    names = {"server": f"vLLM {found['vllm']} server", "here": "weights opened here"}
    rates = [found["tokens_a_second"][name] for name in names]
    middle = [sorted(rate)[len(rate) // 2] for rate in rates]
    axes.barh(list(names.values()), middle, color=[OTHER, OURS], height=0.6)
    for place, (value, rate) in enumerate(zip(middle, rates, strict=True)):
        axes.plot(rate, [place] * len(rate), "|", color=INK, markersize=7)
        axes.text(max(rate), place, f"  {value:,.0f}", va="center", fontsize=8, color=INK)
    axes.set_xlim(0, max(max(rate) for rate in rates) * 1.25)
    axes.set_title(f"tokens a second; largest difference {found['largest_difference']:.1e} nats", fontsize=8)
    _plain(axes)
    figure.suptitle(f"{found['texts']['number']} {found['texts']['corpus']}, {found['model']}", fontsize=8)
    save_png(figure, path, dpi=150)
