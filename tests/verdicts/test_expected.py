"""What a test is expected to find before it runs: read off measured figures, with words where none were measured."""

import math
from pathlib import Path
from statistics import NormalDist

import pytest

from pretrace.types import Situation
from pretrace.verdicts.advise import CHOICES
from pretrace.verdicts.expected import (
    chance,
    comparison,
    enough,
    expected,
    expected_for,
    own_studies,
    picture,
    studies,
)


def test_every_study_names_its_source_and_its_aucs_are_probabilities():
    assert {one.name for one in studies()} >= {"Hubble"}
    for one in (*studies(), *own_studies()):
        assert one.source
        assert one.parameters > 1e5
        for aucs in one.auc.values():
            assert 0 < aucs[0] <= sorted(aucs)[-1] == aucs[-1] <= 1


def test_at_a_measured_size_the_measured_figures_stand():
    found = expected(50, 50, parameters=1e9)
    assert [row.copies for row in found.rows] == [1, 4, 16, 64]
    assert (found.rows[0].auc.low, found.rows[0].auc.high) == pytest.approx((0.509, 0.522))
    assert comparison(found) == (
        "With 50 documents a single reading by a model of this size would be found in about 9 of 100 cases (7 to 10, "
        "by kind of text)."
    )
    assert "No model of" not in found.basis


def test_between_two_sizes_the_effect_is_halfway_in_the_logarithm():
    small, large, between = (expected(50, 50, parameters=one) for one in (1e9, 8e9, math.sqrt(8) * 1e9))
    effects = [NormalDist().inv_cdf(one.rows[1].auc.low) for one in (small, large, between)]
    assert effects[2] == pytest.approx((effects[0] + effects[1]) / 2)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        (1.35e8, "No model of 135 million parameters was measured"),
        (5e7, "No model of 50 million parameters was measured"),
        (7e10, "No model of 70 billion parameters was measured"),
        (None, "How large this model is was not said"),
    ],
)
def test_beyond_what_was_measured_it_says_so_and_the_nearest_figures_stand(parameters, said):
    found = expected(50, 50, parameters=parameters)
    assert said in found.basis
    assert "this size" not in comparison(found)
    assert found.rows == expected(50, 50, parameters=8e9 if parameters == 7e10 else 1e9).rows


def test_other_tokens_than_those_measured_are_named():
    assert (
        "none on 15 trillion: more tokens leave less of a text"
        in expected(50, 50, parameters=8e9, tokens=1.5e13).basis
    )
    assert "trained on" not in expected(50, 50, parameters=8e9, tokens=5e11).basis


def test_more_documents_copies_and_parameters_find_more():
    few, many = (expected(number, number, parameters=1e9).rows for number in (50, 400))
    large = expected(50, 50, parameters=8e9).rows
    for less, more in (*zip(few, many, strict=True), *zip(few, large, strict=True)):
        assert more.chance.value > less.chance.value - 1e-9
        assert less.chance.low <= less.chance.value <= less.chance.high
    needed = [row.needed or math.inf for row in few]
    assert needed == sorted(needed, reverse=True)
    assert needed[-1] == 20  # with fewer no test is made


def test_the_picture_has_a_bar_for_each_number_of_copies_and_longer_ones_for_more():
    first, second, *bars = picture(expected(50, 50, parameters=1e9))
    assert first == "Documents needed on each side, for 8 of 10 cases;"
    assert second == "behind them, in how many of 100 cases yours find it:"
    lengths = [bar.count("█") for bar in bars]
    assert lengths == sorted(lengths, reverse=True)
    assert "read  1 time " in bars[0]
    assert bars[0].endswith(" 4,094; 9 (7 to 10)")
    assert bars[3].endswith(" 20; more than 99")


def test_a_small_model_has_figures_of_ours_with_the_range_that_was_measured_on_cells_left_out():
    small = own_studies()[1]
    found = expected(50, 50, parameters=small.parameters)
    assert [(row.auc.low, row.auc.value, row.auc.high) for row in found.rows] == [
        pytest.approx(small.auc[row.copies]) for row in found.rows
    ]
    assert "Texts read 64 times were not measured." in found.basis
    inside, cases = small.held or (0, 1)
    assert inside >= 0.9 * cases
    assert comparison(found).endswith(f"a range that held in {inside} of {cases} cases left out).")
    assert ": a model that read more keeps less" in found.basis
    told = expected(50, 50, parameters=small.parameters, tokens=1e9).basis
    assert "none on 1 billion: more tokens leave less of a text" in told


@pytest.mark.parametrize("test", [choice.name for choice in CHOICES])
def test_every_test_has_a_sentence(test):
    said = chance(test, Situation(documents=60, unseen=40, parameters=8e9), 12)
    if test in ("controls", "controls-placebo", "flag"):
        assert said.startswith("With 60 documents and 40 controls a single reading by a model of this size")
    else:
        assert (
            "small model" in said or said == "How likely this test finds a single reading was not measured."
        )
        assert expected_for(test, Situation(documents=60, unseen=40)) is None
    assert expected_for(test, Situation(documents=50)) is None  # nothing without control documents


def test_what_is_enough_for_a_comparison_is_said_for_this_model_and_not_for_small_ones_that_read_the_texts_last():
    large, small = (Situation(documents=50, unseen=40, parameters=size) for size in (1e9, 1.3e6))
    for has in (large, small, Situation(parameters=1e9)):
        row = expected(50, 40, parameters=has.parameters).rows[0]
        assert enough("controls", has).startswith(f"about {row.needed:,} documents on each side if the model")
        assert enough("flag", has) == f"at least {enough('controls-placebo', has)}"
    assert "(Hubble: 1 billion parameters, without another model)" in enough("controls", large)
    assert "(our models: 1.3 million parameters" in enough("controls", small)
    page = " ".join((Path(__file__).parents[2] / "docs" / "audits.md").read_text(encoding="utf-8").split())
    assert (
        f"{expected(50, 40, parameters=1e9).rows[0].needed:,} documents a side for a single reading" in page
    )
    assert enough("marks", large).endswith("(small models that read the texts last)")
