"""Figures that show the numbers they were given, as clean and reproducible SVG."""

import re
import warnings

import made
import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pretrace.report import figures as plots
from pretrace.report.figures import to_svg
from pretrace.results.run import axis_range
from pretrace.types import Curve


def row(name, auc=0.7, kind="score"):
    return made.row(name, auc, kind, curve=Curve((0.0, 0.2, 1.0), (0.0, 0.6, 1.0)))


def ids(svg):
    return re.findall(r'\bid="([^"]*)"', svg)


@pytest.mark.parametrize(
    "name", ["$x^2$", "_hidden", "<script>alert(1)</script>", r"\frac{1}{2} $a$", "a & b"]
)
def test_names_are_printed_as_they_are(name):
    svg = str(to_svg(plots.forest([row(name)]), name="f", label=name))
    escaped = name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert f">{escaped}</text>" in svg


def test_the_strongest_control_is_a_line_and_what_includes_chance_is_hollow():
    lines = plots.forest([row("a", 0.7), row("b", 0.55), row("blind", 0.6, "blind")]).axes[0].lines
    assert (0.6, 0.6) in [tuple(line.get_xdata()) for line in lines]
    faces = {line.get_xdata()[0]: line.get_markerfacecolor() for line in lines if line.get_marker() == "o"}
    assert [faces[value] == "white" for value in (0.7, 0.55)] == [False, True]


def test_svg_identifiers_are_its_own_and_all_resolve():
    log = plots.roc([row("a")], floor=0.01)
    for line in log.axes[0].lines:  # a logarithmic axis never holds a zero
        assert min(np.min(line.get_xdata()), np.min(line.get_ydata())) >= 0.01
    figures = {"one": plots.roc([row("a")]), "two": log, "three": plots.forest([row("a")])}
    svgs = {name: str(to_svg(figure, name=name, label=name)) for name, figure in figures.items()}
    seen = [identifier for svg in svgs.values() for identifier in ids(svg)]
    assert len(seen) == len(set(seen)) > 0
    for svg in svgs.values():
        references = re.findall(r'url\(#([^)]*)\)|href="#([^"]*)"', svg)
        assert {a or b for a, b in references} == set(ids(svg))


def test_the_same_figure_has_the_same_bytes_whatever_the_users_settings():
    def svg():
        return str(to_svg(plots.roc([row("a"), row("b")], floor=0.01), name="roc", label=""))

    expected = svg()
    with mpl.rc_context(
        {"lines.linewidth": 9.0, "svg.fonttype": "path", "axes.grid": False, "font.size": 20}
    ):
        assert svg() == expected
        assert mpl.rcParams["font.size"] == 20, "the user's settings are left as they were"


FINITE = arrays(np.float64, st.integers(1, 40), elements=st.floats(allow_nan=False, allow_infinity=False))


@given(FINITE)
def test_axes_have_room_for_any_finite_values(values):
    low, high = axis_range(values)
    assert np.isfinite([low, high]).all()
    edges = np.linspace(low, high, 33)
    assert (np.diff(edges) > 0).all()


@pytest.mark.parametrize("values", [[0.0], [3.0] * 50, [1e-300, 2e-300], [1e300, -1e300], [1e15, 1e15 + 1]])
def test_odd_distributions_can_be_drawn(values):
    some = np.array(values)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = plots.distribution({"member": some, "nonmember": some, "unlabelled": np.zeros(0)})
        to_svg(figure, name="h", label="")


def test_every_text_is_counted_in_a_distribution():
    outliers = np.array([*np.linspace(0, 1, 98), -1e6, 1e6])
    patch = plots.distribution({"member": outliers}).axes[0].patches[0]
    assert patch.get_data().values.sum() == pytest.approx(1.0)
    low, high = axis_range(outliers)
    assert -10 < low < high < 10
