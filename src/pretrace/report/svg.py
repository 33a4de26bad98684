"""A matplotlib figure as an SVG that can stand in a page: clean, reproducible, with identifiers of its own.

Text stays text (`svg.fonttype = "none"`): it can be searched and read aloud, takes the page's typeface, prints sharp
at any size, and needs no glyph outlines, whose shared identifiers would clash between plots.
"""

from __future__ import annotations

import io
import os
import re
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from pretrace.errors import shown

_STYLE: dict[str, Any] = {
    "svg.fonttype": "none", "svg.hashsalt": "pretrace",
    "font.sans-serif": ["DejaVu Sans"], "font.size": 9.0, "text.color": "#1c1c1c",
    "axes.labelsize": 9.0, "axes.edgecolor": "#8a8a8a", "axes.labelcolor": "#333333", "axes.linewidth": 0.6,
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "xtick.labelsize": 8.5, "xtick.color": "#8a8a8a", "xtick.labelcolor": "#333333",
    "ytick.labelsize": 8.5, "ytick.color": "#8a8a8a", "ytick.labelcolor": "#333333",
    "xtick.major.width": 0.6, "xtick.major.size": 3.0, "ytick.major.width": 0.6, "ytick.major.size": 3.0,
    "grid.color": "#e6e6e6", "grid.linewidth": 0.6, "figure.facecolor": "none", "axes.facecolor": "none",
    "lines.solid_capstyle": "round", "lines.dash_capstyle": "butt",
}  # fmt: skip
_REFERENCE = re.compile(r"^(?:url\()?#([^)]+)")
# matplotlib's settings belong to the process; two pages drawn at once must not mix them.
_LOCK = threading.RLock()


@contextmanager
def styled() -> Iterator[None]:
    """Within: matplotlib's defaults with our style on top, whatever the user's own settings are."""
    with _LOCK, style.context(["default", _STYLE]):
        yield


@contextmanager
def canvas(width: float, height: float, *, constrained: bool = True) -> Iterator[tuple[Figure, Axes]]:
    """Within: a new figure of so many inches and its axes, in our style."""
    with styled():
        figure = Figure(figsize=(width, height), layout="constrained" if constrained else None)
        yield figure, figure.add_subplot()


def hide_height(axes: Axes) -> None:
    """Leave the vertical axis out, where heights are counts that nobody reads off."""
    axes.yaxis.set_major_locator(NullLocator())
    axes.spines["left"].set_visible(False)


@contextmanager
def _undated() -> Iterator[None]:
    """No SOURCE_DATE_EPOCH meanwhile: a figure bears no date, and matplotlib reads that variable for its layout."""
    held = os.environ.pop("SOURCE_DATE_EPOCH", None)
    try:
        yield
    finally:
        if held is not None:
            os.environ["SOURCE_DATE_EPOCH"] = held


def to_svg(
    figure: Figure, *, name: str, label: str, titles: Mapping[str, Sequence[str]] | None = None
) -> Markup:
    """The figure as an `<svg>` element for an HTML page; the same figure gives the same bytes. Identifiers
    depend on `name`, so it must be unique in the page; `label` is read to those who cannot see the plot. `titles` are
    those of single marks, which a browser shows beside the pointer, by the `gid` of their line."""
    raw = io.BytesIO()
    with styled(), _undated(), style.context({"svg.hashsalt": name}), warnings.catch_warnings():
        # Only the width of a label is guessed without the glyph; the browser has the letters.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        drawn: Any = FigureCanvasSVG(figure)
        figure.set_dpi(72)  # an SVG's point
        # the layout is settled here: `savefig` draws the whole figure once for that, and throws it away
        if (layout := figure.get_layout_engine()) is not None:
            layout.execute(figure)
            figure.set_layout_engine("none")
        drawn.print_svg(raw, metadata={"Date": None})
    root = ElementTree.fromstring(raw.getvalue())
    used: set[str] = set()
    for element in list(root.iter()):
        element.tag = _local(element.tag)
        element.attrib = {_local(key): value for key, value in element.attrib.items()}
        # as attributes: a page's policy may forbid styles
        styles = [one.partition(":") for one in element.attrib.pop("style", "").split(";")]
        element.attrib |= {key.strip(): value.strip() for key, colon, value in styles if colon}
        used.update(target for value in element.attrib.values() for target in _REFERENCE.findall(value))
        for child in list(element):
            if _local(child.tag) in ("metadata", "style"):
                element.remove(child)
    for line, words in (titles or {}).items():
        group = next(one for one in root.iter() if one.get("id") == line)
        for mark, word in zip([one for one in group.iter() if one.tag == "use"], words, strict=True):
            ElementTree.SubElement(mark, "title").text = shown(word)
    for element in root.iter():
        if element.get("id") not in used:
            element.attrib.pop("id", None)
    width, height = root.get("width", ""), root.get("height", "")
    root.attrib.clear()
    size = f"0 0 {width.removesuffix('pt')} {height.removesuffix('pt')}"
    root.attrib.update({"class": "plot", "width": width, "height": height, "viewBox": size})
    root.attrib.update({"role": "img", "aria-label": shown(label), "stroke-linejoin": "round"})
    return Markup(ElementTree.tostring(root, encoding="unicode"))  # escaped by ElementTree


def _local(name: str) -> str:
    return name.rpartition("}")[2]
