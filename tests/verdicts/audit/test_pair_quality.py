"""Measures of generated texts against counts by hand."""

import pytest

from pretrace.types import Pair
from pretrace.verdicts.audit.checks import pair_quality


def pairs(*texts):
    return [Pair(f"p{i}", f"d{i // 2}", "before", *both) for i, both in enumerate(texts)]


def measured(made, training=()):
    found = pair_quality(made, training)
    assert all(one.words.endswith(".") for one in found)
    return {one.measure: one for one in found}


TWO = pairs((" the cat sat on the mat.", " the cat sat, the cat sat"), ("\n One two three!", " \n\t"))


def test_by_hand():
    found = measured(TWO)
    counts = ["characters", "words", "repetition", "distinct pairs", "distinct words"]
    assert list(found) == [*counts, "overlap", "identical", "copies", "empty"]

    def both(name):
        return found[name].true, found[name].generated

    assert both("characters") == ((24 + 16) / 2, (25 + 3) / 2)
    assert both("words") == ((6 + 3) / 2, 6 / 2)
    assert both("repetition") == (0, 1 / 4)  # "the cat sat" twice among four runs
    assert both("distinct pairs") == (1, 3 / 5)  # the second pair has no words on one side, so none on both
    assert both("distinct words") == (5 / 6, 3 / 6)
    assert both("overlap") == (None, (3 / 5 + 0) / 2)
    assert both("identical") == (None, 0)
    assert both("copies") == (None, None)
    assert both("empty") == (0, 1 / 2)


def test_copies_are_runs_of_eight_words():
    eight = "one two three four five six seven eight"
    training = ("nothing", f"zero ONE, {eight[4:]} nine")
    found = measured(
        pairs(
            ("x " + eight, "one two three four five six seven eigh"),
            ("y", eight + " ten"),
            ("two three four five six seven eight nine", "nine " + eight[4:]),
            ("z", "seven words: two three four five six seven"),
        ),
        training,
    )
    assert (found["copies"].true, found["copies"].generated) == (2 / 4, 1 / 4)
    assert "8 words" in found["copies"].words


def test_a_script_without_spaces_is_counted_in_characters():
    text = "吾輩は猫である。名前はまだ無い。どこで生れたか頓と見当がつかぬ。"
    found = measured(pairs((text, text[:-2] + "ない。"), (text, "猫" * 30)), (text[3:28],))
    assert "words" not in found
    assert found["characters"].true == len(text)
    assert 0.8 < 2 * found["overlap"].generated - 1 / len({*text}) < 1
    assert found["repetition"].generated == pytest.approx(27 / (27 + len(text) - 1), abs=0.02)
    assert (found["copies"].true, found["copies"].generated) == (1, 1 / 2)
    assert "24 characters" in found["copies"].words


def test_nothing_to_measure():
    assert all(one.true is None and one.generated is None for one in pair_quality([], ["some text"]))
    found = measured(pairs(("", ""), ("", "?!")), ("",))
    assert found["identical"].generated == found["empty"].generated == 1 / 2
    assert found["overlap"].generated is None
    assert found["repetition"].true is None
