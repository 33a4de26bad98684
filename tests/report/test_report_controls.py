"""Controls and fitted detectors in the report: their numbers, their plots, and that they stay in their place."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import EMPTY, row
from report.test_report_html import words

from pretrace.report import figures
from pretrace.report import run as report
from pretrace.report.figures import PARAMETERS, across, sensitivity
from pretrace.report.frame import speaking
from pretrace.types import Estimate


def bodies(run):
    return {section.anchor: str(section.body) for section in speaking(report.SECTIONS, run)}


def body_of(section, run):
    """One section alone: the plots of the others take a second."""
    [made] = speaking((section,), run)
    return str(made.body)


def cells(body, table):
    """The body rows of a table of a section, cell by cell."""
    found = re.findall(r"<tbody>(.*?)</tbody>", body, re.S)[table]
    rows = re.findall(r"<tr.*?>(.*?)</tr>", found, re.S)
    return [[words(cell) for cell in re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row, re.S)] for row in rows]


def with_rows(run, change):
    rows = tuple(row for row in map(change, run.evaluation.rows) if row is not None)
    return replace(run, evaluation=replace(run.evaluation, rows=rows))


def as_placebo(row, auc, lead, survives=None):
    plain = Estimate(auc, auc - 0.03, auc + 0.04)
    return replace(row, auc=plain, lead=lead, survives=survives)


@pytest.mark.parametrize(
    ("lead", "survives", "printed"),
    [
        (Estimate(0.1234, 0.0567, 0.2), "yes", "yes"),
        (Estimate(0.1234, -0.0567, 0.2), "not shown", "not shown"),
        (Estimate(-0.1234, -0.2, 0.0567), "no", "no"),
        (Estimate(0.1234, 0.0567, 0.2), "not above chance", "–"),
        (Estimate(0.1234, 0.0567, 0.2), None, "not computed"),
    ],
)
def test_target_placebo_difference_and_verdict_stand_in_one_row(controlled, lead, survives, printed):
    def change(row):
        if row.kind == "score":
            return replace(row, auc=Estimate(0.7654, 0.7, 0.8))
        return as_placebo(row, 0.6421, lead, survives) if row.kind == "placebo" else row

    body = body_of(report._controls, with_rows(controlled(), change))
    low, high = (f"{v:.3f}".replace("-", "−") for v in (lead.low, lead.high))
    expected = ["0.765", "0.642", "[0.612, 0.682]", f"{lead.value:.3f}".replace("-", "−"), f"[{low}, {high}]"]
    assert cells(body, 0) == [[name, *expected, printed] for name in ("loss", "na_pdd", "probe")]
    assert "never saw the members, here EleutherAI/pythia-160m ." in words(body)
    assert "What a placebo cannot do." in body


def test_shuffled_labels_are_told_by_their_range(controlled):
    def change(row):
        if row.kind == "shuffled":
            return replace(row, auc=Estimate(0.4871, 0.3219, 0.6 if row.name == "probe" else 0.7))
        return replace(row, auc=Estimate(0.7, 0.65, 0.75)) if row.kind == "score" else row

    body = body_of(report._controls, with_rows(controlled(), change))
    assert cells(body, 1) == [
        ["na_pdd", "0.700", "0.487", "0.322 to 0.700", "20", "no"],
        ["probe", "0.700", "0.487", "0.322 to 0.600", "20", "yes"],
    ]


def test_controls_do_not_leak_into_results_curves_and_the_strongest_control(controlled):
    def change(row):
        if row.kind in ("placebo", "shuffled"):
            return replace(row, auc=Estimate(0.9876, 0.98, 0.99), threshold=-7.654321)
        return row

    run = with_rows(controlled(), change)
    assert [row.kind for row in report._compared(run)] == ["score"] * 3 + ["blind"]
    strongest = report._control(run)
    assert strongest.name == "bag of words"
    made = bodies(run)
    for anchor in ("results", "roc", "limits"):
        assert "0.988" not in made[anchor]
        assert "7.654" not in made[anchor]
    assert made["results"].count('<tr class="row">') == 4
    assert 'href="#controls"' in made["results"]
    blindless = with_rows(run, lambda row: None if row.kind == "blind" else row)
    assert "No blind control was run" in words(bodies(blindless)["results"])


def line(value, spread, kind="score", name="a"):
    return row(name, Estimate(value, value - spread, value + spread), kind)


def test_the_plot_shows_target_placebo_and_shuffles_one_below_the_other():
    pairs = {
        "a": [line(0.7, 0.1), line(0.6, 0.05, "placebo"), line(0.5, 0.2, "shuffled")],
        "b": [line(0.65, 0.1), line(0.55, 0.05, "placebo")],
    }
    axes = across([(name, {row.kind: row.auc for row in rows}) for name, rows in pairs.items()]).axes[0]
    drawn = [[*map(float, line.get_xdata())] for line in axes.lines]
    assert all(
        pytest.approx([low, high]) in drawn
        for low, high in ((0.6, 0.8), (0.55, 0.65), (0.3, 0.7), (0.55, 0.75), (0.5, 0.6))
    )
    marks = sorted((one.get_ydata()[0], one) for one in axes.lines if one.get_marker() in ("o", "s", "|"))
    shown = [(one.get_marker(), one.get_xdata()[0], one.get_markerfacecolor() == "white") for _, one in marks]
    places, hollow = (0.7, 0.6, 0.5, 0.65, 0.55), (False, True, False, False, True)
    assert shown == [*zip("os|os", places, hollow, strict=True)]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["a", "b"]
    low, high = axes.get_xlim()
    assert low < 0.3 < 0.8 < high


def test_neurons_are_bars_and_the_chosen_layers_stand_out(controlled):
    neurons = report._entries(controlled().settings["fitted"]["na_pdd"]["layers"], report.NEURONS)
    axes = figures.neurons(neurons).axes[0]
    heights = [patch.get_height() for patch in axes.patches]
    assert heights[::2] == [entry["members"] for entry in neurons]
    assert heights[1::2] == [-entry["nonmembers"] for entry in neurons]
    assert [patch.get_alpha() == 1.0 for patch in axes.patches[::2]] == [False] * 4 + [True] * 2
    (dots,) = (drawn for drawn in axes.lines if drawn.get_marker() == "D")
    assert np.asarray(dots.get_ydata()).tolist() == [entry["difference"] for entry in neurons]


def test_a_panel_a_parameter_follows_the_settings_used(controlled):
    facts = controlled().settings["fitted"]["na_pdd"]
    used = report._used_settings(facts)
    panels = sensitivity(report._entries(facts["sensitivity"], (*PARAMETERS, "auc")), used).axes
    whole = max(panels[0].lines, key=lambda drawn: len(drawn.get_xdata()) * (drawn.get_linestyle() == "-"))
    assert np.asarray(whole.get_xdata()).tolist() == [0.5, 1.0, 1.5]
    assert np.asarray(whole.get_ydata()) == pytest.approx([0.59, 0.64, 0.69])
    for axes, value in zip(panels, (1.0, 1.5, 2.0), strict=True):
        filled = [one for one in axes.lines if one.get_markerfacecolor() == figures.MEMBER]
        assert [one.get_xdata()[0] for one in filled if one.get_marker() == "o"] == [value]
    many = facts | {"settings": facts["settings"] | {"k": 10}}
    assert report._used_settings(many)["k"] == 6.0, "a model of six layers has no ten to choose"


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ("layers", "layer", "auc", "chosen", "settings", "reference", "members", "nonmembers", "method", "losses",
         "threshold", "alpha", "k", "sensitivity", "difference", "<b>")), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(plain, plain)
def test_any_facts_can_be_told(fact, card):
    made = report._fitted(replace(EMPTY, settings={"fitted": {"s": fact}, "adapter": card}))
    assert (made is None) == (not isinstance(fact, dict) and not isinstance(card, dict))
    assert made is None or "<b>" not in made.body


@pytest.mark.parametrize("value", [None, "1", float("nan"), float("inf"), 10**400, [1]])
def test_a_table_with_a_hole_is_no_table(value):
    assert report._entries([{"layer": 1, "auc": 0.5}], ("layer", "auc")) == ({"layer": 1.0, "auc": 0.5},)
    assert report._entries([{"layer": 1, "auc": 0.5}, {"layer": 2, "auc": value}], ("layer", "auc")) == ()
    assert report._entries([{"layer": 1, "auc": 0.5}, value], ("layer", "auc")) == ()
    assert report._entries(value, ("layer",)) == ()
