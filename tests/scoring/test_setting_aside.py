"""What is tuned or fitted on is never scored, nor a cut of the same document."""

from itertools import product

import pytest
from net.api import Corpus, ExpressionError, LeakError, Text, TextsError, check_disjoint, set_aside, text_key


def corpus(documents=60, cuts=3):
    cut = [(d, f"{d}-{c}", f"document {d}, cut {c}") for d, c in product(range(documents), range(cuts))]
    return Corpus("c", tuple(Text(name, text, d % 3 == 0, f"d{d}") for d, name, text in cut))


@pytest.mark.parametrize("seed", range(5))
def test_the_parts_share_no_document_and_lose_no_text(seed):
    parts = set_aside(corpus(), tuning=0.3, reference=0.2, seed=seed)
    sides = [parts.tuning.texts, parts.reference.texts, parts.test.texts]
    assert sum(map(len, sides)) == 180
    documents = [{t.group for t in side} for side in sides]
    assert sum(map(len, documents)) == len(set.union(*documents)) == 60
    for side, share in zip(sides, (0.3, 0.2, 0.5), strict=True):
        assert len(side) / 180 == pytest.approx(share, abs=0.04)
        assert sum(t.member is True for t in side) / len(side) == pytest.approx(1 / 3, abs=0.08)


def test_the_same_seed_draws_the_same_and_without_shares_the_corpus_is_as_it_was():
    assert set_aside(corpus(), tuning=0.3, seed=1) == set_aside(corpus(), tuning=0.3, seed=1)
    assert set_aside(corpus(), tuning=0.3, seed=1) != set_aside(corpus(), tuning=0.3, seed=2)
    parts = set_aside(corpus())
    assert (parts.tuning, parts.reference, parts.test) == (None, None, corpus())


@pytest.mark.parametrize("seed", range(8))
def test_documents_with_a_text_in_common_go_together(seed):
    texts = [Text(f"{i}", f"text {i}", i % 2 == 0, f"d{i}") for i in range(20)]
    texts += [Text("again", "text 4 ", True, "elsewhere")]
    parts = set_aside(Corpus("c", tuple(texts)), tuning=0.4, seed=seed)
    drawn = {t.id for t in parts.tuning.texts}
    assert ("4" in drawn) == ("again" in drawn)


def test_shares_that_leave_nothing_are_refused():
    with pytest.raises(ExpressionError, match="leave no text"):
        set_aside(corpus(), tuning=0.6, reference=0.4)
    with pytest.raises(TextsError, match="too few documents"):
        set_aside(corpus(1), tuning=0.3)


def test_a_text_that_was_fitted_on_is_named():
    seen = frozenset({text_key("document 4, cut 1")})
    with pytest.raises(LeakError, match=r"1 of the 180 .*'4-1'.* were tuned on"):
        check_disjoint(corpus(), seen, "were tuned on", "Take it out.")
    check_disjoint(corpus(), frozenset(), "were tuned on", "")
