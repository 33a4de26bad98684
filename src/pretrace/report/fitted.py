"""What a run's detectors were fitted on, and what was found there: FSD's tuning, neurons, probes.

The facts are read with care: those of another's recipe may be anything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from pretrace.report import wording
from pretrace.report.facts import elsewhere, flattened, mapping, without_tables
from pretrace.report.frame import section
from pretrace.report.plots import CHANCE, CONTROL, KINDS, REST
from pretrace.report.svg import canvas, styled, to_svg
from pretrace.types import Run

Entry = Mapping[str, float]
"""Figures by name; a yes or no is 1.0 or 0.0."""

PARAMETERS = {"threshold": "threshold τ", "alpha": "ratio α", "k": "layers used K"}
_MEMBER = KINDS["member"]
_PALE = 0.32
"""Opacity of the layers that were not chosen."""


def neurons(layers: Sequence[Entry]) -> Figure:
    """Member neurons of each layer upwards, non-member neurons downwards, a dot at their difference S;
    layers that were not chosen are pale."""
    places = [entry["layer"] for entry in layers]
    opacity = [1.0 if entry["chosen"] else _PALE for entry in layers]
    with canvas(8.6, 2.7) as (figure, axes):
        for place, entry, alpha in zip(places, layers, opacity, strict=True):
            axes.bar(place, entry["members"], 0.72, color=_MEMBER, alpha=alpha)
            axes.bar(place, -entry["nonmembers"], 0.72, fc="white", ec=CONTROL, alpha=alpha, lw=1.0)
        axes.axhline(0, color=CHANCE, linewidth=0.8)
        differences = [entry["difference"] for entry in layers]
        axes.plot(places, differences, "D", ms=4.2, mfc="#e9b44c", mec=CONTROL, mew=0.9)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{abs(value):,.0f}"))
        axes.grid(axis="y")
        axes.set_ylabel("neurons")
        _layers(axes, places)
    return figure


def probe(layers: Sequence[Entry], chosen: float | None) -> Figure:
    """The AUC of the probe of each layer where the layer was chosen; the chosen one is filled."""
    with canvas(8.6, 2.3) as (figure, axes):
        places, values = [e["layer"] for e in layers], [e["auc"] for e in layers]
        axes.axhline(0.5, color=CHANCE, linewidth=0.9)
        axes.plot(places, values, color=_MEMBER, linewidth=1.2)
        for place, value in zip(places, values, strict=True):
            _point(axes, place, value, filled=place == chosen)
        axes.set_ylabel("AUC")
        _auc_range(axes, values)
        axes.grid(axis="y")
        _layers(axes, places)
    return figure


def sensitivity(points: Sequence[Entry], used: Mapping[str, float]) -> Figure:
    """AUC against threshold, ratio and number of layers, one panel each: a line through the points that agree
    with `used` in the other two, a filled dot at the setting used, and grey dots for all other combinations
    where more than one parameter was varied at a time."""
    grid = _is_grid(points, used)
    with styled():
        figure = Figure(figsize=(8.6, 2.3), layout="constrained")
        panels = figure.subplots(1, len(PARAMETERS), sharey=True)
        for axes, (name, words) in zip(panels, PARAMETERS.items(), strict=True):
            axes.axhline(0.5, color=CHANCE, linewidth=0.9)
            along = [point for point in points if _agrees(point, used, but=name)]
            along.sort(key=lambda point: point[name])
            rest = [point for point in points if grid and point not in along]
            axes.plot(*_columns(rest, name), ".", color=REST, ms=3.5, linestyle="none")
            axes.plot(*_columns(along, name), color=_MEMBER, linewidth=1.2)
            for point in along:
                _point(axes, point[name], point["auc"], filled=point[name] == used.get(name))
            axes.set_xlabel(words)
            axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=name == "k"))
            axes.grid(axis="y")
        panels[0].set_ylabel("AUC")
        _auc_range(panels[0], [point["auc"] for point in points])
    return figure


def _is_grid(points: Sequence[Entry], used: Mapping[str, float]) -> bool:
    """Whether some settings differ from those used in more than one parameter."""
    return not all(any(_agrees(point, used, but=name) for name in PARAMETERS) for point in points)


def losses(values: Sequence[float]) -> Figure:
    """The mean loss of each epoch of a tuning, in nats a token."""
    with canvas(8.6, 1.9) as (figure, axes):
        axes.plot(
            range(1, len(values) + 1), values, color=_MEMBER, linewidth=1.2, marker="" if values[1:] else "o"
        )
        axes.set_xlabel("epoch")
        axes.set_ylabel("loss")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
        axes.grid(axis="y")
    return figure


def _columns(points: Sequence[Entry], name: str) -> tuple[list[float], list[float]]:
    return [point[name] for point in points], [point["auc"] for point in points]


def _agrees(point: Entry, used: Mapping[str, float], *, but: str) -> bool:
    return all(point[name] == used.get(name) for name in PARAMETERS if name != but)


def _point(axes: Axes, x: float, y: float, *, filled: bool) -> None:
    face = _MEMBER if filled else "white"
    axes.plot([x], [y], marker="o", ms=6.0 if filled else 4.2, mec=_MEMBER, mfc=face, mew=1.2)


def _auc_range(axes: Axes, values: Sequence[float]) -> None:
    low, high = min(0.5, *values, 0.5), max(0.5, *values, 0.5)
    axes.set_ylim(max(-0.02, low - 0.06), min(1.02, high + 0.06))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5]))


def _layers(axes: Axes, places: Sequence[float]) -> None:
    axes.set_xlabel("layer")
    axes.set_xlim(min(places) - 0.7, max(places) + 0.7)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=16, integer=True, min_n_ticks=1))


_NEURONS = ("layer", "members", "nonmembers", "difference", "chosen")
_PROBE = ("layer", "auc")
_SIDES = ("members", "nonmembers")
_SENSITIVITY = ("threshold", "alpha", "k", "auc")
_ADAPTER = {
    "method.expression": "Method", "corpus": "Corpus", "texts": "Texts", "groups": "Documents",
    "nonmembers": "Non-members", "members": "Members", "tokens": "Tokens", "steps": "Steps",
    "parameters": "Weights trained", "seed": "Seed",
}  # fmt: skip
"""What is told of an adapter, and how; the settings have the rest."""
_PREFIX = re.compile(r"^(settings|reference)\.")
_FIGURES = ("neurons", "probe", "sensitivity")


@dataclass(frozen=True, slots=True)
class FittedFacts:
    """What one fitted score tells of itself.

    `neurons` and `probe` are figures by layer, `sensitivity` one entry a setting that was tried, each empty
    where the score has none; `chosen` is the probe's layer; `used` the settings that `sensitivity` varies;
    `reference` the numbers of members and of non-members it was fitted on; `others` whatever else is told.
    """

    name: str
    neurons: tuple[Entry, ...]
    probe: tuple[Entry, ...]
    sensitivity: tuple[Entry, ...]
    chosen: float | None
    used: Entry
    reference: tuple[int, int] | None
    others: Mapping[str, Any]


@section("What the detectors were fitted on", "fitted", "run/fitted.html", appendix=True)
def fitted(run: Run) -> dict[str, Any] | None:
    """FSD's tuning and one part a fitted score; nothing where nothing was fitted."""
    adapter = run.settings.get("adapter")
    scores = [_score(facts, number) for number, facts in enumerate(fitted_facts(run))]
    tuned = _adapter(adapter) if isinstance(adapter, Mapping) else None
    return {"scores": scores, "adapter": tuned, "controlled": elsewhere(run)} if scores or tuned else None


def fitted_facts(run: Run) -> tuple[FittedFacts, ...]:
    """The facts of every fitted score, in the order they were recorded."""
    found = mapping(run.settings.get("fitted"))
    return tuple(_facts(str(name), facts) for name, facts in found.items() if isinstance(facts, Mapping))


def _facts(name: str, facts: Mapping[str, Any]) -> FittedFacts:
    layers, settings = facts.get("layers"), mapping(facts.get("settings"))
    sizes, neurons = entries([facts.get("reference")], _SIDES), entries(layers, _NEURONS)
    used = {key: value for key in PARAMETERS if (value := _number(settings.get(key))) is not None}
    if neurons and "k" in used:  # more layers than there are come to the same as all of them
        used["k"] = min(used["k"], float(len(neurons)))
    chosen = [entry["layer"] for entry in entries(layers, ("layer", "chosen")) if entry["chosen"]]
    others = without_tables(facts)
    if sizes:  # a sentence says them
        others["reference"] = {key: n for key, n in others["reference"].items() if key not in _SIDES}
    return FittedFacts(
        name=name,
        neurons=neurons,
        probe=entries(layers, _PROBE),
        sensitivity=entries(facts.get("sensitivity"), _SENSITIVITY),
        chosen=chosen[0] if len(chosen) == 1 else _number(facts.get("chosen")),
        used=used,
        reference=(int(sizes[0]["members"]), int(sizes[0]["nonmembers"])) if sizes else None,
        others=others,
    )


def entries(found: Any, names: tuple[str, ...]) -> tuple[Entry, ...]:
    """Read a table of figures from a list of mappings; empty unless every entry has a number for every name."""
    rows = found if isinstance(found, list | tuple) else ()
    values = [numbers([mapping(row).get(name) for name in names]) for row in rows]
    return tuple(dict(zip(names, row, strict=True)) for row in values) if all(values) else ()


def numbers(found: Any) -> tuple[float, ...]:
    """Read a list of finite numbers; empty for anything else."""
    values = list(map(_number, found)) if isinstance(found, list | tuple) else []
    known = tuple(value for value in values if value is not None)
    return known if len(known) == len(values) else ()


def _number(value: Any) -> float | None:
    if not isinstance(value, bool | int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and abs(number) < 1e12 else None


def _adapter(card: Mapping[str, Any]) -> dict[str, object]:
    known = dict(flattened(without_tables(card)))
    method = card.get("method")
    if "method.expression" not in known and method:
        parts = [f"{name} {value}" for name, value in flattened(without_tables(mapping(method)))]
        known["method.expression"] = ", ".join(parts) if isinstance(method, Mapping) else str(method)
    known_losses = numbers(card.get("losses"))
    spaced = {
        name: wording.count(int(value)) if re.fullmatch(r"[0-9]{4,18}", value) else value
        for name, value in known.items()
    }
    return {
        "facts": [(words, spaced[name]) for name, words in _ADAPTER.items() if name in spaced],
        "losses": known_losses,
        "plot": to_svg(losses(known_losses), name="losses", label="Loss by epoch") if known_losses else None,
    }


def _score(facts: FittedFacts, number: int) -> dict[str, object]:
    pairs = flattened(facts.others)
    return {
        "facts": facts,
        "grid": _is_grid(facts.sensitivity, facts.used),
        "others": [(_PREFIX.sub("", k).replace("_", " "), value) for k, value in pairs if value != "none"],
        "figures": dict.fromkeys(_FIGURES) | dict(_figures(facts, number)),
    }


def _figures(facts: FittedFacts, number: int) -> Iterator[tuple[str, Markup]]:
    if facts.neurons:
        label = f"Member and non-member neurons of {len(facts.neurons)} layers for {facts.name}"
        yield "neurons", to_svg(neurons(facts.neurons), name=f"neurons-{number}", label=label)
    if facts.probe:
        label = f"AUC of the probe of {len(facts.probe)} layers for {facts.name}"
        yield "probe", to_svg(probe(facts.probe, facts.chosen), name=f"probe-{number}", label=label)
    if facts.sensitivity:
        label = f"AUC under {len(facts.sensitivity)} settings of {facts.name}"
        figure = sensitivity(facts.sensitivity, facts.used)
        yield "sensitivity", to_svg(figure, name=f"sensitivity-{number}", label=label)
