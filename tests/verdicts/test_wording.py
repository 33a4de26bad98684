"""The sentences of tests and checks: what the code names is there, and numbers are filled in."""

import math
import re
from pathlib import Path
from statistics import NormalDist

import pytest

import pretrace.verdicts
from pretrace.results.wording import fill, say, sentences_of
from pretrace.types import Situation
from pretrace.verdicts.advise import chance, expected, own_studies, picture
from pretrace.verdicts.outcome import word_check

SOURCES = [path.read_text(encoding="utf-8") for path in Path(pretrace.verdicts.__path__[0]).rglob("*.py")]


CHECKS = sorted({kind for text in SOURCES for kind in re.findall(r'word_check\(\s*"([^"]+)"', text)})


@pytest.mark.parametrize("kind", CHECKS)
def test_every_check_has_a_title_and_words(kind):
    found = sentences_of(kind)
    assert found["title"]
    assert found.keys() - {"title", "cure", "cure_not_run"}


def test_numbers_are_filled_in_and_what_they_say_is_not_read_again():
    assert say("audit.reverse.words", p=0.0123).endswith("well: p = 0.012.")
    assert fill(("{a:,}", {"b": "{a} {closer}"}), a=1234)[0] == "1,234"
    assert fill("of {name}", name="{closer}") == "of {closer}"
    with pytest.raises(KeyError):
        fill("{nothing}")


def test_a_check_keeps_the_cure_that_its_status_takes():
    states = (True, False, None)
    good, bad, unmade = (word_check("flag.runs", one, words="few", documents=3) for one in states)
    assert (good.status, bad.status, unmade.status) == ("passed", "failed", "not run")
    assert (good.cure, bad.cure) == ("", unmade.cure)
    assert bad.cure.startswith("Give a group")
    assert word_check("audit.kinds", None, words="wordless").cure == ""


def fifty(parameters, tokens=0):
    return Situation(documents=50, unseen=50, parameters=parameters, training_tokens=tokens)


def test_at_a_measured_size_the_measured_figures_stand():
    found = expected(fifty(1e9))
    assert [row.copies for row in found.rows] == [1, 4, 16, 64]
    assert (found.rows[0].auc.low, found.rows[0].auc.high) == pytest.approx((0.509, 0.522))
    said = "is found in about 9 of 100 cases (7 to 10, by kind of text)."
    sides = "With 50 documents and 50 controls, one reading by a model of 1 billion parameters"
    assert chance("controls", fifty(1e9)) == f"{sides} {said} {say('expected.alone')} {found.basis}"
    assert chance("controls-placebo", fifty(1e9)) == f"{sides} {said} {found.basis}"
    assert "No model of" not in found.basis


def test_between_two_sizes_the_effect_is_halfway_in_the_logarithm():
    small, large, between = (expected(fifty(one)) for one in (1e9, 8e9, math.sqrt(8) * 1e9))
    effects = [NormalDist().inv_cdf(one.rows[1].auc.low) for one in (small, large, between)]
    assert effects[2] == pytest.approx((effects[0] + effects[1]) / 2)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        (1.35e8, "No model of 135 million parameters was measured"),
        (7e10, "No model of 70 billion parameters was measured"),
        (0, "How large this model is was not said"),
    ],
)
def test_beyond_what_was_measured_it_says_so_and_the_nearest_figures_stand(parameters, said):
    found = expected(fifty(parameters))
    assert said in found.basis
    assert found.rows == expected(fifty(8e9 if parameters == 7e10 else 1e9)).rows


def test_the_picture_has_a_bar_for_each_number_of_copies_and_longer_ones_for_more():
    _, _, *bars = picture(expected(fifty(1e9)))
    lengths = [bar.count("█") for bar in bars]
    assert lengths == sorted(lengths, reverse=True)
    assert "read  1 time " in bars[0]
    assert bars[0].endswith(" 4,094; 9 (7 to 10)")
    assert bars[3].endswith(" 20; more than 99")


def test_a_small_model_has_figures_of_ours_with_the_range_that_was_measured_on_cells_left_out():
    small = own_studies()[1]
    found = expected(fifty(small.parameters))
    for row in found.rows:
        assert (row.auc.low, row.auc.value, row.auc.high) == pytest.approx(small.auc[row.copies])
    assert "Texts read 64 times were not measured." in found.basis
    inside, cases = small.held or (0, 1)
    assert inside >= 0.9 * cases
    assert f"a range that held in {inside} of {cases} cases left out)." in chance(
        "controls", fifty(small.parameters)
    )
    told = expected(fifty(small.parameters, 1e9)).basis
    assert "none on 1 billion: more tokens leave less of a text" in told
