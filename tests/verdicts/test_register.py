"""The register of verdicts on this machine."""

import pytest

from pretrace.verdicts.register import (
    FILE,
    RegisterEntry,
    TextsSketch,
    earlier_tests,
    known,
    note,
    read_tests,
)


def test_a_damaged_line_is_passed_over(tmp_path):
    note(entry(), 0.5, "inconclusive", tmp_path)
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"texts": "t", "wei\n[1]\n\xff\xfe\n')
    note(entry("\ud800"), 0.5, "inconclusive", tmp_path)
    assert [line["test"] for line in read_tests(tmp_path)] == ["order", "\ud800"]
    assert read_tests(tmp_path / "nowhere") == ()
    assert len(known(["one text", "another"], tmp_path)) == 2


def entry(test="order", weights="w", **settings):
    return RegisterEntry(test, TextsSketch.of(["one text", "another"]), weights, settings, "model")


def test_different_tests_of_the_same_texts_are_counted_and_the_same_one_only_once(tmp_path):
    (first,) = earlier_tests(entry(), 0.05, tmp_path)
    assert first.startswith("No other test of these texts is known")
    made = (entry(), 0.2), (entry(score="zlib"), 0.03), (entry(weights="other"), 0.5), (entry(), 0.2)
    for one, p in made:
        note(one, p, "inconclusive", tmp_path)
    words, *others = earlier_tests(entry("canaries"), 0.05, tmp_path)
    assert "4 different tests" in words
    assert "For 4 tests the level is 0.0125 each, and for one it is 0.05." in words
    told = [line.partition(": ")[2] for line in others]
    assert told == [f"order of model, p = {p}, inconclusive" for p in (0.2, 0.03, 0.5)]
    assert len(earlier_tests(entry(), 0.05, tmp_path)) == 3  # the same test made again is no new one
    assert len(known(["another", "one  text\n"], tmp_path)) == 3  # a multiset, whatever white space
    other = RegisterEntry("order", TextsSketch.of(["other texts"]), "w", {})
    assert len(earlier_tests(other, 0.05, tmp_path)) == 1


TEXTS = [f"text {number}" for number in range(1000)]


@pytest.mark.parametrize("number", [4, 50, 200, 1000])
@pytest.mark.parametrize(
    ("changed", "same"),
    [
        (lambda texts: texts[1:], True),
        (lambda texts: [*texts, "one more"], True),
        (lambda texts: texts[: len(texts) // 2], True),
        (lambda texts: [*texts, *(f"other {i}" for i in range(len(texts) // 2))], True),
        (lambda texts: [*texts[: len(texts) // 4], *(f"other {i}" for i in range(len(texts)))], False),
        (lambda texts: [f"{text}." for text in texts], False),
    ],
    ids=["one dropped", "one added", "half", "half as many added", "a quarter and others", "all changed"],
)
def test_collections_that_share_half_of_their_texts_are_one(tmp_path, number, changed, same):
    first = TEXTS[:number]
    note(RegisterEntry("audit", TextsSketch.of(first), "w", {}), 0.6, "inconclusive", tmp_path)
    again = RegisterEntry("audit", TextsSketch.of(changed(first)), "w", {})
    assert len(earlier_tests(again, 0.05, tmp_path)) == (2 if same else 1)
    assert (len(known(changed(first), tmp_path)) == 1) is same
