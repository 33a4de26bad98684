"""Which texts are tuned on: the side that was asked for, drawn by seed, read as the back end reads them."""

from collections import Counter
from dataclasses import replace

import pytest
from net.api import Corpus, Lora, Text, TextsError, select
from tiny import opened


def corpus_of(labels):
    texts = (Text(f"t{i}", f"text number {i} of a few", label) for i, label in enumerate(labels))
    return Corpus("made", tuple(texts))


MIXED = corpus_of([True, False] * 10 + [None] * 5)


@pytest.fixture(scope="module")
def backend():
    return opened(start=True, max_tokens=24)


@pytest.mark.parametrize(
    ("corpus", "on", "labels"),
    [
        (MIXED, "nonmembers", [False] * 10),
        (MIXED, "members", [True] * 10),
        (MIXED, "all", [True, False] * 10 + [None] * 5),
        (corpus_of([None] * 7), "nonmembers", [None] * 7),  # without labels all are taken
    ],
)
def test_the_side_that_was_asked_for_is_taken(backend, corpus, on, labels):
    chosen = select(corpus, backend, Lora(on=on), seed=0)
    assert Counter(text.member for text in chosen.texts) == Counter(labels)


def test_a_limit_draws_by_seed_and_a_larger_one_adds_whatever_the_order(backend):
    def ids(limit, seed=1):
        chosen = select(MIXED, backend, Lora(limit=limit), seed=seed)
        assert select(backwards, backend, Lora(limit=limit), seed=seed) == chosen
        return {text.id for text in chosen.texts}

    backwards = replace(MIXED, texts=MIXED.texts[::-1])
    drawn = [ids(n) for n in (0, 3, 6, 10)]
    assert [len(found) for found in drawn] == [0, 3, 6, 10]
    assert drawn[0] < drawn[1] < drawn[2] < drawn[3] == ids(None)
    assert any(ids(3, seed) != drawn[1] for seed in range(2, 6))


def test_texts_are_read_as_the_back_end_reads_them(backend):
    texts = ("short one", "a long text " * 20, "", "x")
    chosen = select(Corpus("c", tuple(Text(t[:5], t) for t in texts)), backend, Lora(), seed=0)
    expected = [[*e.prefix, *e.tokens] for e in backend.encode(sorted(t for t in texts if t))]
    assert [list(sequence) for sequence in chosen.sequences] == expected
    assert chosen.left_out == ("",)
    whole = len(backend.tokens.rust.encode(texts[1], add_special_tokens=False).ids)
    assert (chosen.cut_texts, chosen.cut_tokens) == (1, whole - 23)

    shorter = select(Corpus("c", (Text("a", texts[1]),)), backend, Lora(max_tokens=8), seed=0)
    assert [list(s) for s in shorter.sequences] == [expected[0][:8]]
    assert shorter.cut_tokens == whole - 7


def test_copies_of_a_text_are_kept_and_nothing_but_a_start_token_is_no_text(backend):
    corpus = Corpus("c", (Text("a", "the same words"), Text("b", "the same words"), Text("c", "")))
    chosen = select(corpus, backend, Lora(), seed=0)
    assert [text.id for text in chosen.texts] == ["a", "b"]


@pytest.mark.parametrize(
    ("labels", "settings", "message"),
    [
        ([True] * 4, {}, r"wants known non-members, and made has 4 members: .*on='members' or on='all'"),
        ([False, None], {"on": "members"}, "made has 1 non-members, 1 texts without a label"),
        ([], {}, "made has no texts: give it some"),
        ([False] * 4, {"limit": 5}, "limit=5 wants as many texts, and made has 4 .*a limit of 4 or less"),
    ],
)
def test_what_cannot_be_chosen_is_refused_with_the_cure(backend, labels, settings, message):
    with pytest.raises(TextsError, match=message):
        select(corpus_of(labels), backend, Lora(**settings), seed=0)
