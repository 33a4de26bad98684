"""Time stamps found by rule: what goes, what moves to 2023, and what must stay."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pretrace.corpora.benchmarks.wikimia import with_year, without_timestamps

# text, without its time stamps, with its years moved to 2023
DATES = [
    ("Born on 4 July 2015 in Rome.", "Born in Rome.", "Born on 4 July 2023 in Rome."),
    ("On 4 July 2015, the team won.", "the team won.", "On 4 July 2023, the team won."),
    ("It opened July 4, 2015, in Rome.", "It opened, in Rome.", "It opened July 4, 2023, in Rome."),
    ("July 4, 2015 was a Saturday.", "was a Saturday.", "July 4, 2023 was a Saturday."),
    ("the 4th of July, 2015 fell", "the fell", "the 4th of July, 2023 fell"),
    ("Filed 2015-07-04 by hand", "Filed by hand", "Filed 2023-07-04 by hand"),
    ("Sent 2015-07-04T12:30:00Z twice", "Sent twice", "Sent 2023-07-04T12:30:00Z twice"),
    ("due 12/25/2015 or so", "due or so", "due 12/25/2023 or so"),
    ("due 25.12.2015.", "due.", "due 25.12.2023."),
    ("In 2014, a series of talks", "a series of talks", "In 2023, a series of talks"),
    ("talks in 2014 failed", "talks failed", "talks in 2023 failed"),
    ("talks failed in 2014.", "talks failed.", "talks failed in 2023."),
    ("the 2014-15 season", "the season", "the 2023-23 season"),
    ("the 2014–15 season", "the season", "the 2023–23 season"),
    ("the 2014/15 season", "the season", "the 2023/23 season"),
    ("ruled 1998–2001 alone", "ruled alone", "ruled 2023–2023 alone"),
    ("ruled 2014–present alone", "ruled alone", "ruled 2023–present alone"),
    ("served from 2014 to 2016 there", "served there", "served from 2023 to 2023 there"),
    ("between 2014 and 2016 it grew", "it grew", "between 2023 and 2023 it grew"),
    ("popular in the 2010s there", "popular there", "popular in the 2020s there"),
    ("popular in the early 1990s.", "popular.", "popular in the early 2020s."),
    ("the 1960s–70s style", "style", "the 2020s–20s style"),
    ("starts at 12:30 sharp", "starts sharp", "starts at 12:30 sharp"),
    ("starts at 12:30 UTC, ends", "starts, ends", "starts at 12:30 UTC, ends"),
    ("starts at 7 p.m. sharp", "starts sharp", "starts at 7 p.m. sharp"),
    ("since May 2016 it", "it", "since May 2023 it"),
    ("released in May, 2016, by", "released, by", "released in May, 2023, by"),
    ("in late July and early August 2014.", ".", "in late July and early August 2023."),
    ("built c. 1850 in Rome", "built in Rome", "built c. 2023 in Rome"),
    ("built circa 1850 in Rome", "built in Rome", "built circa 2023 in Rome"),
    ("the 2015 FIFA World Cup", "the FIFA World Cup", "the 2023 FIFA World Cup"),
    ("2015 FIFA World Cup", "FIFA World Cup", "2023 FIFA World Cup"),
    ("in the 2015 FIFA World Cup", "in the FIFA World Cup", "in the 2023 FIFA World Cup"),
    ("2014's best film", "best film", "2023's best film"),
    ("in mid-2015 it", "it", "in mid-2023 it"),
    ("the pre-2014 rules", "the rules", "the pre-2023 rules"),
    ("As of 2014, the town", "the town", "As of 2023, the town"),
    ("the summer of 2014 was", "the summer was", "the summer of 2023 was"),
    ("On 30 June or 2 July 2014, the", "the", "On 30 June or 2 July 2023, the"),
    ("held from 13 to 24 August 2014 in", "held in", "held from 13 to 24 August 2023 in"),
    ("on Sunday, 5 March 2023.", "on Sunday.", "on Sunday, 5 March 2023."),
    ("A film (2014) by her", "A film by her", "A film (2023) by her"),
    ("A king (4 July 1960 – 5 May 2001) of", "A king of", "A king (4 July 2023 – 5 May 2023) of"),
    ("A king (born 4 July 1960) of", "A king (born) of", "A king (born 4 July 2023) of"),
    ("(in 2014, it won)", "(it won)", "(in 2023, it won)"),
    ("one\nIn 2014, two", "one\ntwo", "one\nIn 2023, two"),
    ("the Sept. 11, 2001 attacks", "the attacks", "the Sept. 11, 2023 attacks"),
    ("on 4 July they", "they", "on 4 July they"),
    ("2015", "", "2023"),
]
UNTOUCHED = [
    "",
    " ",
    "1,999 people",
    "2000 people and 1850 soldiers",
    "US$2015",
    "$2015 and €2015 and £1999",
    "costs 2015 US dollars",
    "1999 km away, 2015 m high",
    "won 2015 votes",
    "model A2015, part X-2015-12, 2015b",
    "http://example.org/2015/07/page",
    "version 2015.1 and 1.2015",
    "ISBN 978-2015-33",
    "120155 or 20150",
    "No. 2015",
    "#2015 and @2015",
    "in 1066 and 3015",
    "the 19th century",
    "a ratio of 16:9, a time of 2:45.31",
    "You may march 2 miles in May",
    "March 2 miles, then rest",
    "She may.  Two  spaces ( stay ) , as they are",
]


@pytest.mark.parametrize(("text", "deleted", "moved"), DATES)
def test_dates_go_or_move(text: str, deleted: str, moved: str) -> None:
    assert without_timestamps(text) == deleted
    assert with_year(text) == moved


@pytest.mark.parametrize("text", UNTOUCHED)
def test_other_numbers_stay_to_the_last_space(text: str) -> None:
    assert without_timestamps(text) == text
    assert with_year(text) == text


def test_another_year() -> None:
    assert with_year("May 1999, the 1990s, 1998-99", 2017) == "May 2017, the 2010s, 2017-17"


@given(st.text(alphabet=st.sampled_from("0129 -/:.,()MayJul\nin the"), max_size=60))
def test_any_text_loses_nothing_but_its_stamps(text: str) -> None:
    letters = re.sub(r"\s", "", without_timestamps(text))
    left = iter(text)
    assert all(letter in left for letter in letters)  # what is left stands in the text, in this order
    assert with_year(with_year(text)) == with_year(text)


@pytest.mark.parametrize(
    "text", ["In 2014, it won. " * 6000, "1 " * 50_000, " " * 100_000, "May " * 25_000, "2014-" * 20_000]
)
def test_long_texts_take_no_longer_for_their_length(text: str) -> None:
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
def test_any_number_of_signs_around_a_gap(text: str, expected: str) -> None:
    assert without_timestamps(text) == expected
