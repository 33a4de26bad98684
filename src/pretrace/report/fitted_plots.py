"""What detectors found while they were fitted: neurons and probes by layer, sensitivity, losses of a tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from pretrace.report.plots import CHANCE, CONTROL, KINDS, REST
from pretrace.report.svg import canvas, styled

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
            axes.bar(
                place,
                -entry["nonmembers"],
                0.72,
                facecolor="white",
                edgecolor=CONTROL,
                alpha=alpha,
                linewidth=1.0,
            )
        axes.axhline(0, color=CHANCE, linewidth=0.8)
        axes.plot(
            places,
            [entry["difference"] for entry in layers],
            linestyle="none",
            marker="D",
            ms=4.2,
            mfc="#e9b44c",
            mec=CONTROL,
            mew=0.9,
        )
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
    grid = is_grid(points, used)
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


def is_grid(points: Sequence[Entry], used: Mapping[str, float]) -> bool:
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
    axes.plot(
        [x],
        [y],
        marker="o",
        ms=6.0 if filled else 4.2,
        mec=_MEMBER,
        mfc=_MEMBER if filled else "white",
        mew=1.2,
    )


def _auc_range(axes: Axes, values: Sequence[float]) -> None:
    low, high = min(0.5, *values, 0.5), max(0.5, *values, 0.5)
    axes.set_ylim(max(-0.02, low - 0.06), min(1.02, high + 0.06))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5]))


def _layers(axes: Axes, places: Sequence[float]) -> None:
    axes.set_xlabel("layer")
    axes.set_xlim(min(places) - 0.7, max(places) + 0.7)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=16, integer=True, min_n_ticks=1))
