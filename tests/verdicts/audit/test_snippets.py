"""Documents cut into snippets: what stands in them, who is judged, what is left out."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import MORE_WORDS, make_model, make_tokenizer

from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.naming import ModelSettings
from pretrace.backends.tokens import Tokens
from pretrace.scoring.plan import Models
from pretrace.types import Corpus, Text
from pretrace.verdicts.audit.data import expressions, features
from pretrace.verdicts.audit.snippets import (
    Sample,
    SnippetSettings,
    cut_pieces,
    divide,
    draw_snippets,
)

TOKENS = Tokens(make_tokenizer())


def cut(corpus, spans, settings, *, seed=0):
    return draw_snippets(cut_pieces(corpus, spans, settings.tokens), settings, seed=seed)


def documents(number, words, *, seed=0):
    rng = np.random.default_rng(seed)
    texts = [Text(f"d{i}", " ".join(rng.choice(MORE_WORDS, words))) for i in range(number)]
    return Corpus("made", tuple(texts))


def test_a_snippet_stands_in_its_document_and_has_its_tokens():
    corpus = documents(6, 120)
    made = cut(corpus, TOKENS.spans, SnippetSettings(tokens=16, most=4))
    by_id = {text.id: text.text for text in corpus.texts}
    assert len(made.snippets) == 24
    for snippet in made.snippets:
        assert snippet.whole in by_id[snippet.document]
        spans = TOKENS.spans(by_id[snippet.document])
        start = by_id[snippet.document].index(snippet.whole)
        inside = [(a, b) for a, b in spans.tolist() if start <= a and b <= start + len(snippet.whole)]
        assert len(inside) == 16
        assert sum(b <= start + len(snippet.prefix) for _, b in inside) == 8


def test_the_draw_depends_on_names_and_seed_and_not_on_order():
    corpus = documents(8, 120)
    turned = Corpus("made", corpus.texts[::-1])
    how = SnippetSettings(tokens=16, most=2)
    first, second = (cut(c, TOKENS.spans, how, seed=3).snippets for c in (corpus, turned))
    assert {s.id for s in first} == {s.id for s in second}
    assert {s.id for s in cut(corpus, TOKENS.spans, how, seed=4).snippets} != {s.id for s in first}
    judged, learnt = divide(first, how, seed=5)
    assert divide(second, how, seed=5) == (judged, learnt)


def test_every_document_is_judged_before_any_is_judged_twice():
    made = cut(documents(30, 120), TOKENS.spans, SnippetSettings(tokens=16, most=4))
    judged, learnt = divide(made.snippets, SnippetSettings(tokens=16, pairs=40))
    times = Counter(snippet.document for snippet in judged)
    assert len(judged) == 40
    assert len(times) == 30
    assert max(times.values()) == 2
    assert not {s.id for s in judged} & {s.id for s in learnt}
    assert len(judged) + len(learnt) == len(made.snippets)
    assert len(divide(made.snippets, SnippetSettings(tokens=16))[0]) == len(made.snippets) // 2
    assert divide(made.snippets, SnippetSettings(tokens=16, pairs=40, learnt=7)) == (judged, learnt[:7])


def test_long_documents_do_not_outweigh_others():
    short, long = documents(9, 60, seed=1), documents(1, 4000, seed=2)
    corpus = Corpus("both", (*short.texts, Text("long", long.texts[0].text)))
    made = cut(corpus, TOKENS.spans, SnippetSettings(tokens=16))
    counts = Counter(snippet.document for snippet in made.snippets)
    assert counts["long"] <= 1 + max(counts[f"d{i}"] for i in range(9))
    assert any("so that long documents do not outweigh" in note for note in made.notes)


def test_groups_and_shared_texts_make_one_document():
    a, b, c = documents(3, 60).texts
    grouped = Text("1", a.text, group="g"), Text("2", b.text, group="g")
    corpus = Corpus("x", (*grouped, Text("3", c.text), Text("4", c.text)))
    made = cut(corpus, TOKENS.spans, SnippetSettings(tokens=16, most=100))
    assert made.documents == 2
    assert any("several places" in note for note in made.notes)
    assert len({snippet.whole for snippet in made.snippets}) == len(made.snippets)


def test_short_texts_are_named():
    corpus = Corpus("tiny", (Text("a", "one two"), Text("b", ""), Text("c", "x" * 5)))
    made = cut(corpus, TOKENS.spans, SnippetSettings(tokens=64))
    assert [one.id for one in made.short] == ["a", "b", "c"]


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=400))
def test_any_text_is_cut_at_whole_characters(text):
    made = cut(Corpus("any", (Text("t", text),)), TOKENS.spans, SnippetSettings(tokens=8, most=1000))
    at = 0
    for snippet in made.snippets:
        at = text.index(snippet.whole, at) + len(snippet.whole)
        assert snippet.prefix.strip()
        assert snippet.text.strip()


def test_a_character_of_several_tokens_is_never_divided():
    text = "".join(f"{chr(0x4E00 + 7 * i)}🙂" for i in range(90))
    made = cut(Corpus("wide", (Text("t", text),)), TOKENS.spans, SnippetSettings(tokens=10, most=1000))
    assert len(made.snippets) > 5
    assert "".join(s.whole for s in made.snippets) == text[: len("".join(s.whole for s in made.snippets))]


# An audit's features of pieces without upper and lower case: all there, unless lower-casing itself is asked for.


CHINESE = [Sample(f"c{i}", "检测水质的装置" * (i + 2)) for i in range(4)]
ENGLISH = [Sample(f"e{i}", f"The River was High in March {1900 + i}.") for i in range(3)]


@pytest.fixture(scope="module")
def models():
    opened = make_model("gpt_neox"), make_tokenizer()
    return Models(HuggingFace(*opened, name="neox", weights="neox", settings=ModelSettings()))


def test_chinese_pieces_and_numbers_have_every_feature(models):
    sides = tuple(CHINESE), (*ENGLISH, Sample("n", "12 345 6789, 10"))
    found = features(sides, models, expressions(False), paired=False, cache=False)
    assert found.suspect.shape == (4, 21)
    assert found.heldout.shape == (4, 21)
    assert np.isfinite(found.suspect).all()
    # nothing to disturb gives -1
    column = found.names.index("perturbed(kind='case', share=0.25)")
    assert found.suspect[:, column].tolist() == [-1.0] * 4
