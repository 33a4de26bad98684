"""Time stamps found by rule: what goes, what moves to 2023, and what must stay."""

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pretrace.corpora.benchmarks.wikimia import with_year, without_timestamps

TABLE = Path(__file__).with_name("timestamps.tsv").read_text(encoding="utf-8").splitlines()
DATES = [row.replace("\\n", "\n").split("\t") for row in TABLE]
"""Texts, without their time stamps, and with their years moved to 2023; what is no time stamp stays."""


@pytest.mark.parametrize(("text", "deleted", "moved"), DATES)
def test_dates_go_or_move(text, deleted, moved):
    assert without_timestamps(text) == deleted
    assert with_year(text) == moved


def test_another_year():
    assert with_year("May 1999, the 1990s, 1998-99", 2017) == "May 2017, the 2010s, 2017-17"


@given(st.text(alphabet=st.sampled_from("0129 -/:.,()MayJul\nin the"), max_size=60))
def test_any_text_loses_nothing_but_its_stamps(text):
    letters = re.sub(r"\s", "", without_timestamps(text))
    left = iter(text)
    assert all(letter in left for letter in letters)  # what is left stands in the text, in this order
    assert with_year(with_year(text)) == with_year(text)


@pytest.mark.parametrize(
    "text", ["In 2014, it won. " * 6000, "1 " * 50_000, " " * 100_000, "May " * 25_000, "2014-" * 20_000]
)
def test_long_texts_take_no_longer_for_their_length(text):
    start = time.perf_counter()
    without_timestamps(text)
    with_year(text)
    assert time.perf_counter() - start < 8


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(" * 2000 + "2015" + ")" * 2000, ""),
        ("In 2015" + ", " * 3000 + "x", "x"),
        ("ran ((May 2015)), far", "ran, far"),
    ],
)
def test_any_number_of_signs_around_a_gap(text, expected):
    assert without_timestamps(text) == expected
