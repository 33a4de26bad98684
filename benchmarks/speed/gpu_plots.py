"""The plot beside gpu.json: tokens a second by part, and the memory of the statistics over the vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

INK, OURS, OTHER = "#333333", "#1f5f8b", "#b9b9b9"
NAMES = {
    "smollm2_bfloat16": "SmolLM2-135M, bfloat16",
    "smollm2_float32": "SmolLM2-135M, float32",
    "smollm2_float16": "SmolLM2-135M, float16",
    "llama_bfloat16": "random Llama of 1.7B, bfloat16",
}


def draw(found: Mapping[str, Any], path: Path) -> bool:
    """One panel a model and one for memory; False, and no file, where no part was measured."""
    parts = found["parts"]
    timed = [name for name in NAMES if "tokens_per_s" in parts.get(name, {})]
    rows = [row for row in parts.get("memory", {}).get("cases", []) if "positions" in row]
    count = len(timed) + bool(rows)
    if not count:
        return False
    figure = Figure(figsize=(3.4 * count, 3.0), layout="constrained")
    panels = figure.subplots(1, count, squeeze=False)[0]
    for axes, name in zip(panels, timed, strict=False):
        _speed(axes, NAMES[name], parts[name])
    if rows:
        _memory(panels[-1], rows)
    machine = found["machine"]
    figure.suptitle(
        f"{machine['gpu'] or machine['cpu']}, docstrings of the standard library, thousand tokens a second",
        fontsize=8,
    )
    figure.savefig(path, dpi=150)
    return True


def _speed(axes: Any, title: str, part: Mapping[str, Any]) -> None:
    names = ["naive loop", "pretrace", "bare forward"]
    values = [part[key] / 1000 for key in ("naive_tokens_per_s", "tokens_per_s", "bare_tokens_per_s")]
    axes.barh(names, values, color=[OTHER, OURS, OTHER], height=0.6)
    for place, value in enumerate(values):
        axes.text(value, place, f" {value:,.3g}", va="center", fontsize=8, color=INK)
    axes.set_xlim(0, max(values) * 1.25)
    axes.set_title(
        f"{title}\n{part['naive_over_ours']:.1f}× the loop, {part['over_bare']:.2f}× bare", fontsize=8
    )
    _plain(axes)


def _memory(axes: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    labels = [f"{row['vocabulary'] // 1000}k · {row['positions']}" for row in rows]
    places = range(len(rows))
    axes.plot([row["whole_logits_mb"] for row in rows], places, "o", color=OTHER, label="whole logits")
    axes.plot([max(row["peak_mb"], 1) for row in rows], places, "o", color=OURS, label="pretrace, peak")
    axes.set_yticks(list(places), labels)
    axes.set_xscale("log")
    axes.set_title("GPU memory (MB)\nvocabulary · positions", fontsize=8)
    axes.legend(fontsize=7, frameon=False)
    _plain(axes)


def _plain(axes: Any) -> None:
    axes.tick_params(labelsize=7, length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
