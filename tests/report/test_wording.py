"""Numbers in words, one example of each kind a line; unseen characters are spelled out, and nothing else is touched."""

import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pretrace.errors import shown
from pretrace.report import audit, frame
from pretrace.report.verdict import identify_model
from pretrace.results import wording
from pretrace.types import Estimate

WIDE, NARROW, POINT = Estimate(0.7, 0.65, 0.75), Estimate(0.04123, 0.0262, 0.0563), Estimate(1.0, 1.0, 1.0)
LEANS = [{"value": 0.03}, {"value": 0.04}]
LEANT = "larger than any of the 2 leans that were measured on innocent models"
UNSEEN = {"models": {"target": {"unseen": "The model answered from afar."}, "reference": {}}}
SERVED = ("writer", (("served at", False), ("https://host/v1", True), ("its weights are not known", False)))
FIGURES = {"effective_pieces": 487.21931, "rejections": 12345, "found": {"whole": 3}, "p_of_sibling": 0.52571}


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (wording.fixed(-0.12345), "−0.123"),
        (wording.percent(0.1234), "12.3%"),
        (wording.count(12345), "12,345"),
        (wording.first_of(["a", "b"], 5), "a, b and 3 more"),
        (wording.first_of(["a"], 1), "a"),
        (wording.interval(WIDE), "[0.650, 0.750]"),
        (wording.interval(POINT), ""),
        (wording.bracketed(WIDE), "0.700 [0.65, 0.75]"),
        ([wording.one_in(p) for p in (0.004, 0.9, 0.0)], ["1 in 250", "", ""]),
        ([wording.perplexity(p) for p in (-2.0, -math.inf)], ["7.389", "beyond measure"]),
        ([wording.share(p) for p in (0.05, 0.001)], ["5%", "0.1%"]),
        ([wording.figure(NARROW), wording.figure(Estimate(12.345, 12.345, 12.345))], ["0.041", "12.3"]),
        ([wording.spread(NARROW), wording.spread(POINT)], ["[0.026, 0.056]", ""]),
        ([wording.effect(NARROW), wording.effect(None)], [("0.041", "[0.026, 0.056]"), ("–", "")]),
        (wording.cases(0.94), "about 94 of 100 cases"),
        (wording.cases(0.999), "more than 99 of 100 cases"),
        (wording.cases(0.001), "fewer than 1 of 100 cases"),
        (wording.case_spread(Estimate(0.94, 0.9, 0.97)), "95% interval 90 to 97 of 100"),
        (audit._beside_leans(LEANS, Estimate(0.02, 0.01, 0.03), 0.04), LEANT),
        ([*map(wording.duration, (1.44, 52.3, 412.4, 7384))], ["1.4 s", "52 s", "6 min 52 s", "2 h 3 min"]),
        (wording.plain("Measure what it would have seen. [--power]"), "Measure what it would have seen."),
        ([*map(wording.plain, ("Test it. [pretrace ask]", "Wait [1, 2]."))], ["Test it.", "Wait [1, 2]."]),
        (wording.shortened("abcdefghij", 5), "abc…j"),
        (wording.shortened("begin" + "x" * 90 + "end!!", 30), f"begin{'x' * 15}…xxxxend!!"),
        (frame.rounded(FIGURES)[:2], [("effective pieces", "487.2"), ("rejections", "12,345")]),
        (frame.rounded(FIGURES)[2:], [("found: whole", "3"), ("p of sibling", "0.53")]),
        ([*frame.flattened({"m": {"a": [1, 2]}, "t": 1.0})], [("m.a", "1, 2"), ("t", "1.0")]),
        (frame.line({"auc": 0.512345, "folds": 5}), "auc 0.5123 · folds 5"),
        (frame.served(UNSEEN), ["The model in question answered from afar."]),
        (identify_model("", "chat:https://host/v1#writer", {"weights": "unknown"})[1:], SERVED),
    ],
)
def test_a_number_in_words(made, said):
    assert made == said


ANY = st.text(st.characters(codec=None))
UNSEEN_CHARACTERS = "\u202e\u2066\u200b\ufeff\x00\x1b\u2028\ud800\uffff\u00ad"


@pytest.mark.parametrize("character", UNSEEN_CHARACTERS)
def test_unseen_characters_are_spelled_out(character):
    escape = f"\\x{ord(character):02x}" if ord(character) < 256 else f"\\u{ord(character):04x}"
    assert shown(f"a{character}b") == shown(shown(f"a{character}b")) == f"a{escape}b"


@pytest.mark.parametrize("text", ["naïve café", "نموذج", "模型", "👩\u200d🔬", "a\u00a0b", "<b>&amp;"])
def test_what_can_be_seen_or_is_kept_stays(text):
    assert shown(text) == text
    assert shown(f"{text}\n\tb\r", keep="\n\t") == f"{text}\n\tb\\x0d"


@given(ANY, st.integers(2, 50))
def test_nothing_unseen_is_left_and_a_name_is_one_short_line_and_never_empty(text, limit):
    seen = shown(text)
    assert not {unicodedata.category(c) for c in seen} & {"Cc", "Cs", "Zl", "Zp"}
    seen.encode("utf-8")
    assert 1 <= len(wording.named(text, limit)) <= max(limit, len("(empty)"))
    assert "\n" not in wording.named(text, limit)
