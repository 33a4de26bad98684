"""Dates in the forms texts bring them."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pretrace.corpora.dates import days
from pretrace.plugins.build.translating import cut_pieces, split_sentences


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2015-07-03", "2015-07-03"), (" 2015/7/3 ", "2015-07-03"), ("2015.07.03", "2015-07-03"),
        ("20150703", "2015-07-03"), ("201507032330", "2015-07-03"), ("20150703T233015Z", "2015-07-03"),
        ("2015-07-03 23:30:00", "2015-07-03"), ("2015-07-03T23:30:00.123-05:00", "2015-07-03"),
        ("Fri, 03 Jul 2015 23:30:00 -0500", "2015-07-03"), ("2015年7月3日", "2015-07-03"),
        ("July 3, 2015", "2015-07-03"), ("3 July 2015", "2015-07-03"), ("3rd Sept. 2015", "2015-09-03"),
        ("2015-07", "2015-07-01/2015-07-31"), ("2016/2", "2016-02-01/2016-02-29"),
        ("July 2015", "2015-07-01/2015-07-31"), ("2015年", "2015-01-01/2015-12-31"),
        ("2015", "2015-01-01/2015-12-31"), ("2015年12月", "2015-12-01/2015-12-31"),
    ],
)  # fmt: skip
def test_a_date_is_read(written, expected):
    assert str(days(written)) == expected


NO_DATES = ["", "yesterday", "2015-13-01", "2015-02-30", "2015-00", "03/04/2015", "1435966200", None, "12"]


@pytest.mark.parametrize("written", [*NO_DATES, "9" * 500])
def test_what_is_no_date(written):
    assert days(written) is None


@given(st.text())
def test_anything_is_a_date_or_none(written):
    found = days(written)
    assert found is None or found.first <= found.last


@given(st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2099, 1, 1)))
def test_the_same_day_in_every_form(moment):
    forms = ("%a, %d %b %Y %H:%M:%S +0000", "%Y-%m-%dT%H:%M:%SZ", "%Y%m%d", "%B %d, %Y", "%Y年%m月%d日")
    assert {str(days(moment.strftime(form))) for form in forms} == {moment.date().isoformat()}


def characters(texts):
    return [len(text) for text in texts]


@given(st.text(st.sampled_from("ab .!\n\t。”\ud83d🙂"), max_size=80), st.integers(1, 20))
def test_pieces_are_the_text(text, limit):
    assert "".join(split_sentences(text)) == text
    made = cut_pieces(text, limit, characters)
    assert "".join(made) == text
    assert all(0 < len(piece) <= limit for piece in made)


def test_cut_at_sentence_ends_and_else_between_words():
    text = "One two. Three four. Five six seven eight nine."
    assert cut_pieces(text, 22, characters) == ["One two. Three four. ", "Five six seven eight ", "nine."]
    assert split_sentences("At 3.5 km. 今日は。元気？") == ["At 3.5 km. ", "今日は。", "元気？"]


def test_long_texts_take_no_time():
    for text in ("a" * 100_000, "a b " * 25_000, "\n" * 100_000, ". " * 50_000):
        made = cut_pieces(text, 100, characters)
        assert "".join(made) == text
        assert max(map(len, made)) <= 100
