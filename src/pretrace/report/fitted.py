"""What a run's detectors were fitted on, and what was found there: FSD's tuning, neurons, probes.

The facts are read with care: those of another's recipe may be anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from pretrace.report.facts import elsewhere, flattened, mapping, rounded, without_tables
from pretrace.report.frame import section
from pretrace.report.plots import CHANCE, CONTROL, KINDS
from pretrace.report.svg import canvas, styled, to_svg
from pretrace.types import Run

Entry = Mapping[str, float]
"""Figures by name; a yes or no is 1.0 or 0.0."""

NEURONS = ("layer", "members", "nonmembers", "difference", "chosen")
PARAMETERS = {"threshold": "threshold τ", "alpha": "ratio α", "k": "layers used K"}
_MEMBER = KINDS["member"]
_PALE = 0.32
"""Opacity of the layers that were not chosen."""


def neurons(layers: Sequence[Entry]) -> Figure:
    """Member neurons of each layer upwards, others downwards, a dot at the difference S; layers not chosen are pale."""
    with canvas(8.6, 2.7) as (figure, axes):
        for entry in layers:
            place, alpha = entry["layer"], 1.0 if entry["chosen"] else _PALE
            axes.bar(place, entry["members"], 0.72, color=_MEMBER, alpha=alpha)
            axes.bar(place, -entry["nonmembers"], 0.72, fc="white", ec=CONTROL, alpha=alpha, lw=1.0)
        axes.axhline(0, color=CHANCE, linewidth=0.8)
        places, differences = ([entry[name] for entry in layers] for name in ("layer", "difference"))
        axes.plot(places, differences, "D", ms=4.2, mfc="#e9b44c", mec=CONTROL, mew=0.9)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{abs(value):,.0f}"))
        axes.grid(axis="y")
        axes.set_ylabel("neurons")
        _whole_numbers(axes, "layer")
    return figure


def probe(layers: Sequence[Entry], chosen: float | None) -> Figure:
    """The AUC of the probe of each layer where the layer was chosen; the chosen one is filled."""
    with canvas(8.6, 2.3) as (figure, axes):
        _auc_line(axes, layers, "layer", chosen)
        axes.set_ylabel("AUC")
        _whole_numbers(axes, "layer")
    return figure


def sensitivity(points: Sequence[Entry], used: Mapping[str, float]) -> Figure:
    """AUC against threshold, ratio and number of layers, one panel each: a line through the points that agree
    with `used` in the other two, and a filled dot at the setting used."""
    with styled():
        figure = Figure(figsize=(8.6, 2.3), layout="constrained")
        panels = figure.subplots(1, len(PARAMETERS), sharey=True)
        for axes, (name, words) in zip(panels, PARAMETERS.items(), strict=True):
            same = [one for one in PARAMETERS if one != name]
            along = [point for point in points if all(point[one] == used.get(one) for one in same)]
            along.sort(key=lambda point: point[name])
            _auc_line(axes, along, name, used.get(name), every=points)
            axes.set_xlabel(words)
            axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=name == "k"))
        panels[0].set_ylabel("AUC")
    return figure


def _auc_line(
    axes: Axes, points: Sequence[Entry], name: str, used: float | None, *, every: Sequence[Entry] = ()
) -> None:
    """Draw the AUCs of `points` by a parameter, that of the value used filled, on an axis with room for `every` one."""
    places, values = [one[name] for one in points], [one["auc"] for one in points]
    axes.axhline(0.5, color=CHANCE, linewidth=0.9)
    axes.plot(places, values, color=_MEMBER, linewidth=1.2)
    for x, y in zip(places, values, strict=True):
        face, size = (_MEMBER, 6.0) if x == used else ("white", 4.2)
        axes.plot([x], [y], marker="o", ms=size, mec=_MEMBER, mfc=face, mew=1.2)
    drawn = [0.5, *(one["auc"] for one in every or points)]
    axes.set_ylim(max(-0.02, min(drawn) - 0.06), min(1.02, max(drawn) + 0.06))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5]))
    axes.grid(axis="y")


def _whole_numbers(axes: Axes, label: str) -> None:
    axes.set_xlabel(label)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=16, integer=True, min_n_ticks=1))


_ADAPTER = {
    "method: expression": "Method", "corpus": "Corpus", "texts": "Texts", "groups": "Documents",
    "nonmembers": "Non-members", "members": "Members", "tokens": "Tokens", "steps": "Steps",
    "parameters": "Weights trained", "seed": "Seed",
}  # fmt: skip
"""What is told of an adapter, and how; the settings have the rest."""
_PREFIX = re.compile(r"^(settings|reference)\.")


@section("What the detectors were fitted on", "fitted", "run/fitted.html", appendix=True)
def fitted(run: Run) -> dict[str, Any] | None:
    """FSD's tuning and one part a fitted score; nothing where nothing was fitted."""
    adapter, found = run.settings.get("adapter"), mapping(run.settings.get("fitted"))
    told = {str(name): facts for name, facts in found.items() if isinstance(facts, Mapping)}
    scores = [_score(name, facts, number) for number, (name, facts) in enumerate(told.items())]
    tuned = _adapter(adapter) if isinstance(adapter, Mapping) else None
    return {"scores": scores, "adapter": tuned, "controlled": elsewhere(run)} if scores or tuned else None


def _score(name: str, facts: Mapping[str, Any], number: int) -> dict[str, Any]:
    """What one fitted score tells of itself, with a figure of each table that it has."""
    layers, used, figures = facts.get("layers"), used_settings(facts), dict[str, tuple[Figure, str]]()
    if by_layer := entries(layers, NEURONS):
        words = f"Member and non-member neurons of {len(by_layer)} layers for {name}"
        figures["neurons"] = neurons(by_layer), words
    if probed := entries(layers, ("layer", "auc")):
        chosen = [entry["layer"] for entry in entries(layers, ("layer", "chosen")) if entry["chosen"]]
        (only,) = chosen if len(chosen) == 1 else _numbers([facts.get("chosen")]) or (None,)
        figures["probe"] = probe(probed, only), f"AUC of the probe of {len(probed)} layers for {name}"
    if tried := entries(facts.get("sensitivity"), (*PARAMETERS, "auc")):
        figures["sensitivity"] = sensitivity(tried, used), f"AUC under {len(tried)} settings of {name}"
    sizes, others = entries([facts.get("reference")], ("members", "nonmembers")), without_tables(facts)
    if sizes:  # a sentence says them
        others["reference"] = {key: n for key, n in others["reference"].items() if key not in sizes[0]}
    return {
        "name": name,
        "reference": tuple(sizes[0].values()) if sizes else (),
        "others": [(_PREFIX.sub("", k).replace("_", " "), v) for k, v in flattened(others) if v != "none"],
        **{
            kind: to_svg(figure, name=f"{kind}-{number}", label=label)
            for kind, (figure, label) in figures.items()
        },
    }


def used_settings(facts: Mapping[str, Any]) -> dict[str, float]:
    """The settings that `sensitivity` varies, as they were used."""
    layers, settings = entries(facts.get("layers"), NEURONS), mapping(facts.get("settings"))
    used = {key: value for key in PARAMETERS for value in _numbers([settings.get(key)])}
    if layers and "k" in used:  # more layers than there are come to the same as all of them
        used["k"] = min(used["k"], float(len(layers)))
    return used


def entries(found: Any, names: tuple[str, ...]) -> tuple[Entry, ...]:
    """Read a table of figures from a list of mappings; empty unless every entry has a number for every name."""
    rows = found if isinstance(found, list | tuple) else ()
    values = [_numbers([mapping(row).get(name) for name in names]) for row in rows]
    return tuple(dict(zip(names, row, strict=True)) for row in values) if all(values) else ()


def _numbers(found: Any) -> tuple[float, ...]:
    """Read a list of finite numbers; empty for anything else."""
    values = found if isinstance(found, list | tuple) else ()
    sound = all(isinstance(one, int | float) and -1e12 < one < 1e12 for one in values)
    return tuple(map(float, values)) if sound else ()


def _adapter(card: Mapping[str, Any]) -> dict[str, object]:
    known = dict(rounded(without_tables(card)))
    told = [(words, known[name]) for name, words in _ADAPTER.items() if name in known]
    return {"facts": told, "losses": _numbers(card.get("losses"))}
