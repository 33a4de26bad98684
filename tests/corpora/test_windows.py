"""Long texts in windows: nothing lost, nothing too long, nothing torn."""

import numpy as np
import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers, trainers

from pretrace.corpora import windows
from pretrace.errors import ExpressionError, TextsError
from pretrace.types import Corpus, Encoded, Text

PROSE = "The quick brown fox jumps over the lazy dog, and the dog does not mind at all. "


def trained():
    """A byte-level BPE of 400 tokens, as GPT-2's is made; an emoji takes four of them."""
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator([PROSE] * 3, trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet))
    return made


class Asked:
    """The part of a back end that windows ask: encode and spans, with a start token or without.

    `spans_style` is one of the ways in which tokenizers report characters: "raw" (tokens of one character
    overlap), "first" (the character belongs to its first token) or "trimmed" (without leading spaces).
    """

    def __init__(self, max_tokens, *, start=True, spans_style="raw"):
        self.tokenizer = TOKENIZER
        self.max_tokens = max_tokens
        self.prefix = np.zeros(int(start), dtype=np.int32)
        self.spans_style = spans_style
        self.characters = 0

    def encode(self, texts, /):
        self.characters += sum(map(len, texts))
        room = self.max_tokens - len(self.prefix)
        ids = [np.array(self.tokenizer.encode(text).ids, dtype=np.int32) for text in texts]
        return [Encoded(self.prefix, i[:room], max(0, len(i) - room)) for i in ids]

    def spans(self, text, /):
        self.characters += len(text)
        spans = np.array(self.tokenizer.encode(text).offsets, dtype=np.int64).reshape(-1, 2)
        if self.spans_style == "first":
            spans[1:, 0] = np.maximum.accumulate(spans[:, 1])[:-1]
        if self.spans_style == "trimmed":
            for span in spans:
                span[0] += len(text[span[0] : span[1]]) - len(text[span[0] : span[1]].lstrip())
        return spans


TOKENIZER = trained()


def corpus_of(*texts, group=""):
    made = (Text(f"t{i}", text, member=True, group=group) for i, text in enumerate(texts))
    return Corpus("c", tuple(made), "source", ("a note.",))


def length(backend, text):
    return len(backend.tokenizer.encode(text).ids) + len(backend.prefix)


def test_a_corpus_that_fits_is_the_same_corpus():
    corpus = corpus_of(PROSE, "")
    assert windows(corpus, Asked(200)) is corpus


def test_long_texts_become_windows_of_their_document():
    backend = Asked(20)
    corpus = corpus_of("short", PROSE * 5, group="book")
    made = windows(corpus, backend)
    assert made.texts[0] is corpus.texts[0]
    cut = made.texts[1:]
    assert [text.id for text in cut] == [f"t1#{place}" for place in range(len(cut))]
    assert {(text.group, text.member) for text in cut} == {("book", True)}
    assert "".join(text.text for text in cut) == PROSE * 5
    assert made.notes == ("a note.", f"1 text of more than 20 tokens cut into {len(cut)} windows.")
    assert (made.name, made.source) == ("c", "source")
    lengths = [length(backend, text.text) for text in cut]
    assert min(lengths[:-2]) >= 18
    assert max(lengths) <= 20


def test_spaces_stay_with_their_words():
    """Else a window ends in a token that the text never had."""
    for style in ("raw", "first", "trimmed"):
        made = windows(corpus_of(PROSE * 20), Asked(30, spans_style=style))
        assert not any(text.text.endswith(" ") for text in made.texts[:-1]), style


def test_a_short_last_window_is_evened_out():
    backend = Asked(40, start=False)
    text = PROSE * 9
    while len(TOKENIZER.encode(text).ids) % 40 != 1:
        text = text[:-1]
    made = windows(corpus_of(text), backend)
    counts = [length(backend, piece.text) for piece in made.texts]
    assert min(counts) > 15
    assert max(counts) <= 40
    assert "".join(piece.text for piece in made.texts) == text


def test_white_space_stays_and_is_counted():
    text = "a word" + "\n" * 300 + "another word"
    made = windows(corpus_of(text), Asked(20))
    blank = sum(not piece.text.strip() for piece in made.texts)
    assert blank > 5
    assert "".join(piece.text for piece in made.texts) == text
    assert made.notes[-1] == f"{blank} windows of only white space or fewer than 2 tokens kept."


def test_what_is_refused():
    with pytest.raises(TextsError, match=r"'t0'.*more than 3 tokens"):
        windows(corpus_of("😀😀"), Asked(3))
    for limit in (1, 0, -5):
        with pytest.raises(ExpressionError, match="max_tokens of at least 2"):
            windows(corpus_of("a"), Asked(20), limit)
    with pytest.raises(TextsError, match=r"'a#1' \(2 times\)"):
        windows(Corpus("c", (Text("a", PROSE * 9), Text("a#1", "b"))), Asked(20))


@pytest.mark.parametrize("part", [PROSE, "漢字仮名", "a" * 80 + " "])
def test_work_grows_with_the_text_and_not_with_its_square(part):
    backend = Asked(20)
    text = part * 400
    windows(corpus_of(text), backend)
    assert backend.characters < 8 * len(text)


@pytest.mark.parametrize("style", ["raw", "first", "trimmed"])
@given(
    text=st.text(
        st.one_of(st.sampled_from(" \n\x00aeé漢😀👩🏽‍🚀\u0301"), st.characters(codec="utf-8")), max_size=300
    ),
    limit=st.integers(5, 30),
    start=st.booleans(),
)
@example(text="😀" * 100, limit=7, start=True)
@example(text="a" * 5000, limit=9, start=False)
@example(text=" " * 500 + "x", limit=6, start=True)
@settings(max_examples=80, deadline=None)
def test_nothing_is_lost_and_all_fit(style, text, limit, start):
    backend = Asked(limit, start=start, spans_style=style)
    made = windows(corpus_of(text), backend)
    assert "".join(piece.text for piece in made.texts) == text
    assert all(length(backend, piece.text) <= limit for piece in made.texts)
    assert all(piece.text for piece in made.texts) or not text
    assert len({piece.id for piece in made.texts}) == len(made)
