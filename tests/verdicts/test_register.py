"""The register of verdicts on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from pretrace.errors import OutputError
from pretrace.verdicts.register import FILE, Entry, earlier_tests, known, kth, note, note_test, ordinal


def test_earlier_tests_of_the_same_texts_and_weights_come_back_in_order(tmp_path: Path) -> None:
    for i, (texts, weights) in enumerate([("t", "w"), ("t", "other"), ("u", "w"), ("t", "w")]):
        note_test({"texts": texts, "weights": weights, "p": i / 10}, tmp_path)
    assert [entry["p"] for entry in earlier_tests("t", "w", tmp_path)] == [0.0, 0.3]
    assert earlier_tests("t", "w", tmp_path / "nowhere") == ()


def test_a_damaged_line_is_passed_over(tmp_path: Path) -> None:
    note_test({"texts": "t", "weights": "w"}, tmp_path)
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"texts": "t", "wei\n[1]\n\xff\xfe\n')
    note_test({"texts": "t", "weights": "w", "name": "\ud800"}, tmp_path)
    assert len(earlier_tests("t", "w", tmp_path)) == 2


def test_no_place_to_write_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        note_test({"texts": "t"}, tmp_path / "file")


def entry(test: str = "order", weights: str = "w", **settings: object) -> Entry:
    return Entry.of(test, ["one text", "another"], weights, settings, "model")


def test_different_tests_of_the_same_texts_are_counted_and_the_same_one_only_once(tmp_path: Path) -> None:
    assert kth(entry(), 0.05, tmp_path).number == 1
    for one, p in (
        (entry(), 0.2),
        (entry(score="zlib"), 0.03),
        (entry(weights="other"), 0.5),
        (entry(), 0.2),
    ):
        note(one, p, "inconclusive", tmp_path)
    new = kth(entry("canaries"), 0.05, tmp_path)
    assert (new.number, new.each, new.again) == (4, 0.0125, False)
    assert [line.partition(": ")[2] for line in new.others] == [
        "order of model, p = 0.2, inconclusive",
        "order of model, p = 0.03, inconclusive",
        "order of model, p = 0.5, inconclusive",
    ]
    again = kth(entry(), 0.05, tmp_path)
    assert (again.number, again.again, len(again.others)) == (3, True, 2)
    assert len(known(["another", "one  text\n"], tmp_path)) == 3  # a multiset, whatever white space
    other = Entry.of("order", ["other texts"], "w", {})
    assert kth(other, 0.05, tmp_path).number == 1


def test_an_audit_of_an_earlier_version_counts_as_well(tmp_path: Path) -> None:
    note_test({"texts": entry().texts, "weights": "w", "procedure": "pretrace", "p": 0.01}, tmp_path)
    assert kth(entry(), 0.05, tmp_path).number == 2


@pytest.mark.parametrize(
    ("p", "said"),
    [
        (None, "for 3 tests the level is 0.0167 each, and for one it is 0.05."),
        (0.01, "at or below both"),
        (0.03, "at or below the level of one test, and above that of 3"),
        (0.3, "above both"),
    ],
)
def test_the_words_give_both_levels(tmp_path: Path, p: float | None, said: str) -> None:
    for weights in "ab":
        note(entry(weights=weights), 0.5, "inconclusive", tmp_path)
    words = kth(entry(), 0.05, tmp_path).words(p)
    assert words.startswith(
        "This is the 3rd test of these texts on this machine; for 3 tests the level is 0.0167 each"
    )
    assert said in words
    assert "known" in kth(entry(), 0.05, tmp_path / "empty").words(p)
    assert kth(entry(weights="a"), 0.05, tmp_path).words().startswith("This test was made before")


def test_ordinals() -> None:
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 21, 113, 1002)] == [
        *("1st", "2nd", "3rd", "4th", "11th", "12th", "21st", "113th", "1,002nd")
    ]
