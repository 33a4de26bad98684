"""Disturbed texts: the same every time, as much as was asked for, and never nothing."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pretrace.rewrites import BESIDE, disturbances, rewrites

KINDS = ["case", "deletion", "typos", "underscore", "whitespace"]
TEXT = "In 1869 the railway reached the valley; nothing was the same again, and THE DOG looked on. " * 3
SHARES = st.sampled_from([0.01, 0.1, 0.25, 0.9, 1])
ODD = st.text() | st.text(st.characters(categories=["Cs", "Zs", "Lu", "Mn"]), max_size=8)


def made(kind, share=0.25, seed=0):
    return disturbances.make(f"{kind}(share={share}, seed={seed})")


def disturbed(text, *how, **more):
    [(form,)] = made(*how, **more)([text], None)
    return form


def changed(before, after):
    return sum(a != b for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_is_disturbed_alike_in_any_company(kind):
    rewrite = rewrites.make(f"{kind}(share=0.25, seed=1)")
    alone = rewrite([TEXT], None)
    assert rewrite.count == 1
    assert rewrite(["another one", TEXT, TEXT], None)[1:] == [alone[0], alone[0]]
    assert alone[0] != (TEXT,)
    assert disturbed(TEXT, kind, seed=2) != alone[0][0]
    assert made(kind, share=0.25).name == f"{kind}(share=0.25, seed=0)"
    assert rewrites.make(made(kind).name)([TEXT], None) == [(disturbed(TEXT, kind),)]
    assert sorted(disturbances) == KINDS  # and no text at the places of another
    first, second = (disturbed(text, "case") for text in ("abcdefghij" * 5, "bcdefghijk" * 5))
    assert [i for i, c in enumerate(first) if c.isupper()] != [i for i, c in enumerate(second) if c.isupper()]


def test_a_text_is_disturbed_alike_in_another_process():
    code = "from pretrace.rewrites import disturbances as d"
    code += f"\nprint([d.make(k)([{TEXT[:60]!r}], None) for k in sorted(d)])"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == repr([disturbances.make(kind)([TEXT[:60]], None) for kind in KINDS])


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=80)
@given(text=ODD, share=SHARES, seed=st.integers(0, 2**70))
def test_no_text_breaks_it_or_is_lost(kind, text, share, seed):
    after = disturbed(text, kind, share, seed)
    assert bool(after) == bool(text)
    assert bool(after.strip()) == bool(text.strip())


@pytest.mark.parametrize("text", ["", " ", "\n\n", "🙂", "。", "..."])
@pytest.mark.parametrize("kind", KINDS)
def test_what_has_nothing_to_disturb_stays(kind, text):
    assert disturbed(text, kind, 1) == text


def test_typos_are_beside_the_letter_and_as_many_as_asked():
    letters = sum(character.isascii() and character.isalpha() for character in TEXT)
    for share in (0.1, 0.5, 1):
        after = disturbed(TEXT, "typos", share)
        assert changed(TEXT, after) == round(share * letters)
        for a, b in zip(TEXT, after, strict=True):
            assert a == b or (b.lower() in BESIDE[a.lower()] and a.isupper() == b.isupper())
    assert changed("dog", disturbed("dog", "typos", 0.001)) == 1


def test_the_keyboard_is_one():
    assert set(BESIDE) == set("abcdefghijklmnopqrstuvwxyz")
    assert set(BESIDE["g"]) == set("fhtyvb")
    assert set(BESIDE["q"]) == set("wa")
    assert all(key in BESIDE[other] for key, near in BESIDE.items() for other in near)


def test_words_are_dropped_and_the_rest_keeps_its_order_and_edges():
    text = "  one two\nthree  four five six seven eight \n"
    after = disturbed(text, "deletion", 0.25)
    words, left = text.split(), after.split()
    assert len(left) == 6
    assert left == [word for word in words if word in left]
    assert after.startswith("  ")
    assert after.endswith("t \n") or "eight" not in left
    assert len(disturbed(text, "deletion", 1).split()) == 1


@pytest.mark.parametrize(
    ("kind", "share", "text", "after"),
    [
        ("deletion", 1, "word", "word"),
        ("case", 1, "Straße ΑΒ", "sTRAßE αβ"),
        ("whitespace", 1, "ab cd", "a bc d"),
        ("whitespace", 1, "e\u0301e\u0301", "e\u0301e\u0301"),  # no accent loses its letter
        ("underscore", 1, "a b\nc d", "a_b\nc_d"),
        ("underscore", 0.01, "a b c", "a_b_c"),  # of the word in the middle
    ],
)
def test_what_becomes_of_a_few_letters(kind, share, text, after):
    assert disturbed(text, kind, share, seed=1) == after


def test_some_places_change_and_nothing_else():
    case, moved, joined = (disturbed(TEXT, kind) for kind in ("case", "whitespace", "underscore"))
    assert case.lower() == TEXT.lower()
    assert changed(TEXT, case) == round(0.25 * sum(map(str.isalpha, TEXT)))
    assert moved.replace(" ", "") == TEXT.replace(" ", "")
    assert set(moved.split()) != set(TEXT.split())
    assert joined.replace("_", " ") == TEXT
    assert 0 < joined.count("_") <= 2 * round(0.25 * len(TEXT.split()))
