"""Cut anywhere a seam is said to be, a text has the tokens it has whole."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models
from tokenizers import pre_tokenizers as pre

from pretrace.frequencies import pieces as pieces_module
from pretrace.frequencies.encoding import ByPieces
from pretrace.frequencies.patterns import GPT2, held_together
from pretrace.frequencies.pieces import START, cut, distinct, joined, merged
from pretrace.frequencies.seams import SEAM, Seamless, Seams, find_seams

Build = Callable[[str], Tokenizer]

FRAGMENTS = [
    *("the", " return", "Self", "camelCase", "HTTP", "x", "12", "2024", " 7", "it's", "they'LL", "'tis", "ſ"),
    *(" ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", " \n", "\n    ", "\x0b", "\x0c", "\x1c", "\x85", "\x00"),
    *(".", ",", "...", "'", "''", "/", "_", "__init__", "://", "<", "|>", "=", ">", "(", ")", "-", "*"),
    *(
        "é",
        "e\u0301",
        "=\u0338",
        ">\u0338",
        "\u212a",
        "\u037e",
        "naïve",
        "слово",
        "с",
        " т",
        "中文",
        "，",
        "。",
    ),
    *(
        "\xa0",
        "\u2003",
        "\u2028",
        "\u3000",
        "\u200b",
        "\ufeff",
        "\u200d",
        "…",
        "😀",
        "👩‍👩‍👧",
        "٣",
        "½",
        "Ⅻ",
        "ǅ",
        "ʰ",
    ),
    *(
        "▁",
        "▁▁",
        "\ufdd0",
        "\uffff",
        "<|endoftext|>",
        "<filename>",
        "<|endof",
        "<mask>",
        " <mask> ",
        "<eat>  ",
    ),
    *("ab", "<s>", "</s>", "<unk>", "<0x41>", "é x", "e\u0301 x"),
]
TEXTS = st.one_of(
    st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join),
    st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=3)), max_size=10).map("".join),
    st.text(alphabet="ab1 \n\t'./é", max_size=12),
)


@pytest.fixture(scope="session")
def by_pieces(built: Build) -> Callable[[str], ByPieces]:
    made: dict[str, ByPieces] = {}

    def make(kind: str) -> ByPieces:
        if kind not in made:
            tokenizer = built(kind)
            made[kind] = ByPieces(tokenizer, spec_of(tokenizer), seams_of(tokenizer))
        return made[kind]

    return make


def spec_of(tokenizer: Tokenizer) -> dict[str, Any]:
    spec: dict[str, Any] = json.loads(tokenizer.to_str())
    return spec


def seams_of(tokenizer: Tokenizer) -> Seams:
    seams = find_seams(spec_of(tokenizer))
    assert isinstance(seams, Seams), seams.reason
    return seams


@settings(max_examples=100, deadline=None)
@given(text=TEXTS)
def test_pieces_have_the_tokens_of_the_text(
    cuttable: str, text: str, built: Build, by_pieces: Callable[[str], ByPieces]
) -> None:
    expected = built(cuttable).encode(text, add_special_tokens=False).ids
    assert by_pieces(cuttable).encode(text) == expected


TRAPS = [
    "▁ x",
    "a▁  b",
    "don't 'tis it'S",
    "a \n b\n\nc",
    "1234 5",
    "...\n/x",
    "x\u3000 y",
    "  a",
    "a  ",
    "\n",
]


def test_traps(cuttable: str, built: Build, by_pieces: Callable[[str], ByPieces]) -> None:
    for text in TRAPS:
        assert by_pieces(cuttable).encode(text) == built(cuttable).encode(text, add_special_tokens=False).ids


def test_every_short_string_splits_at_its_seams(patterned: str, built: Build) -> None:
    """All strings of four from one character of each class: no vocabulary could hide a wrong seam."""
    tokenizer = built(patterned)
    seams = seams_of(tokenizer)
    alphabet = ["s", "T", "1", ".", "/", "'", " ", "\n", "é", "…", "\u3000"]

    def words(text: str, *, inner: bool) -> list[str]:
        stage = tokenizer.pre_tokenizer
        assert stage is not None
        if inner and seams.prefixed:
            return [word for word, _ in pre.ByteLevel(add_prefix_space=False).pre_tokenize_str(text)]
        return [word for word, _ in stage.pre_tokenize_str(text)]

    for chars in itertools.product(alphabet, repeat=4):
        text = "".join(chars)
        first, *rest = cut(joined([text.encode()]), seams.flags)
        if not seams.prefixed:
            assert first == START
        parts = words(first[1:].decode(), inner=False)
        parts += [word for piece in rest for word in words(piece.decode(), inner=True)]
        assert parts == words(text, inner=False), text


def test_ordinary_text_falls_into_words(cuttable: str, built: Build, documents: list[str]) -> None:
    text = "\n".join(documents[:20])
    pieces = cut(joined([text.encode()]), seams_of(built(cuttable)).flags)
    assert len(pieces) > 0.9 * len(text.split())
    assert b"".join(pieces) == START + text.encode()


def test_words_beyond_ascii_are_cut_at_their_spaces(built: Build) -> None:
    pieces = cut(joined(["они идут домой сейчас".encode()]), seams_of(built("gpt2")).flags)
    assert [piece.decode() for piece in pieces[1:]] == ["они", " идут", " домой", " сейчас"]


def test_added_tokens_are_never_cut(built: Build) -> None:
    pieces = cut(joined([b"one<|endoftext|>two <filename>"]), seams_of(built("gpt2")).flags)
    assert pieces[1:] == [b"one", b"<|endoftext|>", b"two", b" <filename>"]


def test_other_tokenizers_have_no_seams(seamless: str, built: Build) -> None:
    found = find_seams(spec_of(built(seamless)))
    assert isinstance(found, Seamless)
    assert len(found.reason) > 10


@pytest.mark.parametrize(
    ("stage", "model"),
    [
        (pre.Split(Regex(GPT2), "removed"), {}),
        (pre.Split(Regex(GPT2), "merged_with_next"), {}),
        (pre.Split(Regex(GPT2), "isolated", invert=True), {}),
        (pre.Punctuation(), {}),
        (None, {"dropout": 0.1}),
    ],
)
def test_what_is_not_understood_has_no_seams(stage: Any, model: dict[str, Any]) -> None:
    tokenizer = Tokenizer(models.BPE(**model))
    last = pre.ByteLevel(add_prefix_space=False, use_regex=stage is None)
    tokenizer.pre_tokenizer = pre.Sequence([stage, last]) if stage else last
    assert isinstance(find_seams(spec_of(tokenizer)), Seamless)


def test_a_merge_across_a_space_is_no_seam() -> None:
    vocabulary = {char: index for index, char in enumerate(["a", "b", "▁", "a▁", "▁b"])}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("a", "▁"), ("▁", "b")]))
    tokenizer.pre_tokenizer = pre.Metaspace(split=False)
    flags = seams_of(tokenizer).flags.reshape(256, 256)  # [right, left]
    assert not flags[ord(" "), ord("a")] & SEAM
    assert flags[ord(" "), ord("b")] & SEAM
    assert not flags[ord("b"), ord(" ")] & SEAM


def test_pattern_with_a_gap_is_not_understood() -> None:
    assert held_together(r" ?\p{L}+| ?\p{N}+|\s+") is None  # symbols are left over in runs
    assert held_together(GPT2 + r"|\d") is None


def test_blocks_end_at_seams(monkeypatch: pytest.MonkeyPatch, built: Build, documents: list[str]) -> None:
    flags = seams_of(built("llama3")).flags
    raw = joined([text.encode() for text in [*documents[:30], "中文" * 50, "", "end"]])
    whole = cut(raw, flags)
    monkeypatch.setattr(pieces_module, "_BLOCK", 7)
    small = cut(raw, flags)
    assert b"".join(small) == raw
    boundaries = set(np.cumsum([len(piece) for piece in whole]).tolist())
    assert set(np.cumsum([len(piece) for piece in small]).tolist()) <= boundaries


def test_distinct_counts_every_piece(built: Build, documents: list[str]) -> None:
    flags = seams_of(built("gpt2")).flags
    raw = joined([text.encode() for text in documents])
    pieces = cut(raw, flags)
    table = merged([distinct(raw, flags), distinct(b"", flags)])
    counted = dict(zip(table["piece"].to_pylist(), table["count"].to_pylist(), strict=True))
    assert counted == Counter(pieces)
    assert len(table) == len(counted)
