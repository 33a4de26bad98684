"""Cut anywhere a seam is said to be, a text has the tokens it has whole."""

import functools
import itertools
import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models
from tokenizers import pre_tokenizers as pre

from pretrace.frequencies import counting
from pretrace.frequencies.counting import START, _TokenCounter
from pretrace.frequencies.seams import GPT2, Seams, find_seams

FRAGMENTS = [
    "the", " return", "Self", "camelCase", "HTTP", "x", "12", "2024", " 7", "it's", "they'LL", "'tis", "ſ", " ",
    "  ", "   ", "\n", "\n\n", "\t", "\r\n", " \n", "\n    ", "\x0b", "\x0c", "\x1c", "\x85", "\x00", ".", ",",
    "...", "'", "''", "/", "_", "__init__", "://", "<", "|>", "=", ">", "(", ")", "-", "*", "é", "e\u0301",
    "=\u0338", ">\u0338", "\u212a", "\u037e", "naïve", "слово", "с", " т", "中文", "，", "。", "\xa0", "\u2003",
    "\u2028", "\u3000", "\u200b", "\ufeff", "\u200d", "…", "😀", "👩‍👩‍👧", "٣", "½", "Ⅻ", "ǅ", "ʰ", "▁", "▁▁",
    "\ufdd0", "\uffff", "<|endoftext|>", "<filename>", "<|endof", "<mask>", " <mask> ", "<eat>  ", "ab", "<s>",
    "</s>", "<unk>", "<0x41>", "K x", "\u212a x", "e\u0301 x", "(x", "y)", "'' ", "\t\t", ".foo", "(y",
]  # fmt: skip
TEXTS = st.one_of(
    st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join),
    st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=3)), max_size=10).map("".join),
    st.text(alphabet="ab1 \n\t'./é", max_size=12),
)


@pytest.fixture(scope="session")
def counter(built):
    return functools.cache(lambda kind: _TokenCounter(built(kind).to_str(), False, seams_of(built(kind))))


def joined(texts):
    return b"".join(START + text.encode() for text in texts)


def cut_at_seams(raw, seams):
    blocks = counting._blocks(raw, seams)
    pieces = [bytes(block[a:b]) for block, ends in blocks for a, b in itertools.pairwise(ends)]
    assert b"".join(pieces) == raw
    return pieces


def cut(texts, seams):
    """The pieces of each text, all of them cut at once."""
    pieces = cut_at_seams(joined(texts), seams)
    found = []
    for piece in pieces:
        if piece.startswith(START):
            found.append([])
        if piece != START:
            found[-1].append(piece.removeprefix(START).decode())
    return found


def pieces_of(text, seams):
    return cut([text], seams)[0]


def found_of(tokenizer):
    return find_seams(json.loads(tokenizer.to_str()))


def seams_of(tokenizer):
    seams = found_of(tokenizer)
    assert isinstance(seams, Seams), seams
    return seams


def assert_counted(counter, tokenizer, text):
    tokens, pieces, _ = counter.part([text])
    expected = Counter(tokenizer.encode(text, add_special_tokens=False).ids)
    assert Counter(dict(enumerate((tokens + counter.tokens(pieces)).tolist()))) == expected, text


@settings(max_examples=60, deadline=None)
@given(text=TEXTS)
def test_pieces_have_the_tokens_of_the_text(cuttable, text, built, counter):
    assert_counted(counter(cuttable), built(cuttable), text)


TRAPS = [
    *("▁ x", "a▁  b", "don't 'tis it'S", "a \n b\n\nc", "1234 5", "...\n/x", "x\u3000 y", "  a", "a  ", "\n"),
    *("a  <|endoftext|>b", "a\n\n<|endoftext|>\n\nb", "a  @b", "a  (x", "y).join", "@.join", "a\n\n\nb"),
    *("12 1212<12>", "x 35 > 3", "12121 1 21", "aB aBbA ABa bAbAbA AAbb BBBB", "then (the)"),
]


def test_traps(cuttable, built, counter):
    for text in TRAPS:
        assert_counted(counter(cuttable), built(cuttable), text)


# Short strings of one character a class are enough to break every rule there is; the longer, the fewer classes.
STRINGS = [(3, "sT1./' \né…\u3000"), (4, "sT1.' \n"), (5, "s1. \n")]


@pytest.mark.parametrize(("length", "alphabet"), STRINGS, ids=lambda value: str(value)[:1])
def test_every_short_string_splits_at_its_seams(patterned, length, alphabet, built):
    """Looks at the pre-tokenizer's words, so that no vocabulary can hide a wrong seam."""
    stage = built(patterned).pre_tokenizer
    seams = seams_of(built(patterned))
    inner = pre.ByteLevel(add_prefix_space=False) if seams.prefixed else stage
    words = functools.cache(lambda text: [word for word, _ in stage.pre_tokenize_str(text)])
    inner_words = functools.cache(lambda text: [word for word, _ in inner.pre_tokenize_str(text)])
    texts = ["".join(chars) for chars in itertools.product(alphabet, repeat=length)]
    for text, (first, *rest) in zip(texts, cut(texts, seams), strict=True):
        parts = words(first) + [word for piece in rest for word in inner_words(piece)]
        assert parts == words(text), text


def test_ordinary_text_falls_into_words(cuttable, built, documents):
    text = "\n".join(documents[:20])
    assert len(pieces_of(text, seams_of(built(cuttable)))) > 0.9 * len(text.split())


def test_words_beyond_ascii_are_cut_at_their_spaces_and_added_tokens_nowhere(built):
    assert pieces_of("они идут домой", seams_of(built("gpt2"))) == ["они", " идут", " домой"]
    pieces = pieces_of("x > 35 < 3, it (x\n  y's", seams_of(built("smollm")))  # which has the token "> 3"
    assert pieces == ["x", " > 35", " <", " 3", ",", " it", " (x", "\n  y's"]


def test_other_tokenizers_have_no_seams(seamless, built):
    assert isinstance(found_of(built(seamless)), str)


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
def test_what_is_not_understood_has_no_seams(stage, model):
    tokenizer = Tokenizer(models.BPE(**model))
    last = pre.ByteLevel(add_prefix_space=False, use_regex=stage is None)
    tokenizer.pre_tokenizer = pre.Sequence([stage, last]) if stage else last
    assert isinstance(found_of(tokenizer), str)


def test_a_merge_across_a_space_is_no_seam():
    vocabulary = {char: index for index, char in enumerate(["a", "b", "▁", "a▁", "▁b"])}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("a", "▁"), ("▁", "b")]))
    tokenizer.pre_tokenizer = pre.Metaspace(split=False)
    assert pieces_of("b a b b a", seams_of(tokenizer)) == ["b", " ", "a b", " b", " ", "a"]


def test_blocks_end_at_seams(monkeypatch, built, documents):
    seams = seams_of(built("llama3"))
    raw = joined([*documents[:30], "中文" * 50, "", "end"])
    whole = cut_at_seams(raw, seams)
    monkeypatch.setattr(counting, "_BLOCK", 7)
    small = cut_at_seams(raw, seams)
    boundaries = set(np.cumsum([len(piece) for piece in whole]).tolist())
    assert set(np.cumsum([len(piece) for piece in small]).tolist()) <= boundaries


def test_distinct_counts_every_piece(built, documents):
    seams = seams_of(built("gpt2"))
    raw = joined(documents)
    pieces = cut_at_seams(raw, seams)
    table = counting._merge_pieces([counting._count_pieces(some, seams) for some in (raw, b"")])
    counted = dict(zip(table["piece"].to_pylist(), table["count"].to_pylist(), strict=True))
    assert counted == Counter(pieces)
    assert len(table) == len(counted)
