"""Unseen characters are spelled out, and nothing else is touched."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pretrace.errors import shown
from pretrace.report.wording import named, shortened

ANY = st.text(st.characters(codec=None))


@pytest.mark.parametrize(
    "character",
    ["\u202e", "\u2066", "\u200b", "\ufeff", "\x00", "\x1b", "\u2028", "\ud800", "\uffff", "\u00ad"],
)
def test_unseen_characters_are_spelled_out(character):
    escape = f"\\x{ord(character):02x}" if ord(character) < 256 else f"\\u{ord(character):04x}"
    assert shown(f"a{character}b") == f"a{escape}b"
    assert shown(shown(f"a{character}b")) == f"a{escape}b"


@pytest.mark.parametrize(
    "text", ["plain", "naïve café", "نموذج", "模型", "👩\u200d🔬", "a\u00a0b", "<b>&amp;"]
)
def test_what_can_be_seen_stays(text):
    assert shown(text) == text


@given(ANY)
def test_nothing_unseen_is_left(text):
    seen = shown(text)
    assert not {unicodedata.category(c) for c in seen} & {"Cc", "Cs", "Zl", "Zp"}
    seen.encode("utf-8")


@given(ANY, st.integers(2, 50))
def test_a_name_is_one_short_line_and_never_empty(text, limit):
    assert 1 <= len(named(text, limit)) <= max(limit, len("(empty)"))
    assert "\n" not in named(text, limit)


def test_kept_characters_stay():
    assert shown("a\n\tb\r", keep="\n\t") == "a\n\tb\\x0d"


def test_shortening_keeps_both_ends():
    short = shortened("begin" + "x" * 1000 + "end!!", 30)
    assert len(short) == 30
    assert short.startswith("begin")
    assert short.endswith("end!!")
