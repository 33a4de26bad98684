"""The gap is 0.5 where there is none, and no text helps to judge its own document or its own copy."""

from functools import partial
from itertools import compress

import numpy as np
import pytest

from pretrace import baselines as module
from pretrace.baselines import bag_of_words, gap, pair_gap
from pretrace.errors import TextsError
from pretrace.statistics.roc import auc
from pretrace.types import Corpus, Pair, Text

WORDS = np.array([f"w{k}" for k in range(500)])
ZIPF = 1 / np.arange(1, 501) / (1 / np.arange(1, 501)).sum()


def noise(rng, texts, length=30):
    return [" ".join(words) for words in WORDS[rng.choice(500, (texts, length), p=ZIPF)]]


def corpus(name, texts, groups=None):
    groups = groups or [""] * len(texts)
    made = (Text(str(i), text, group=of) for i, (text, of) in enumerate(zip(texts, groups, strict=True)))
    return Corpus(name, tuple(made))


def pairs(true, generated, each=2):
    found = zip(true, generated, strict=True)
    return [Pair(str(i), f"d{i // each}", "", mine, made) for i, (mine, made) in enumerate(found)]


def test_without_a_difference_the_interval_holds_one_half():
    held, found, lengths = 0, [], 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        texts = noise(rng, 80)
        # Documents of unequal size, as they are.
        groups = [f"d{rng.integers(0, 25)}" for _ in range(80)]
        mine = np.array([int(group[1:]) < 12 for group in groups])
        sides = (("a", mine), ("b", ~mine))
        a, b = (corpus(name, [*compress(texts, side)], [*compress(groups, side)]) for name, side in sides)
        words, length = gap(a, b, seed=seed, resamples=200)
        held += words.auc.low <= 0.5 <= words.auc.high
        lengths += length.auc.low <= 0.5 <= length.auc.high
        found.append(words.auc.value)
    assert held >= 34, "38 of 40 are expected"
    assert lengths >= 34
    assert abs(np.mean(found) - 0.5) < 0.035, "standard error 0.011"


def test_each_text_is_counted_once_and_folds_are_as_if_counted_apart(monkeypatch):
    rng = np.random.default_rng(3)
    a = corpus("a", noise(rng, 30), [f"a{i // 2}" for i in range(30)])
    b = corpus("b", [f"{text.title()}  w{i % 3}!" for i, text in enumerate(noise(rng, 40))])
    read, plain = [], module._read
    monkeypatch.setattr(module, "_read", lambda text: read.append(text) or plain(text))
    once = gap(a, b, "words,form", resamples=50)
    # for words, and for the form
    assert sorted(read) == sorted(2 * [text.text for text in (*a.texts, *b.texts)])
    monkeypatch.setattr(
        module, "_share_texts", lambda texts: lambda rows: [texts[row] for row in np.flatnonzero(rows)]
    )
    assert gap(a, b, "words,form", resamples=50) == once
    assert len(read) == 2 * (1 + 5) * 70, "each in the four folds that learn from it, and in its own"


def test_a_difference_in_words_is_found_and_the_rows_are_named_as_written():
    rng = np.random.default_rng(0)
    a = corpus("a", [f"in May 2014 {text}" for text in noise(rng, 40)])
    b = corpus("b", [f"in May 2023 {text} and more" for text in noise(rng, 50)])
    words, length = gap(a, b, "words()")
    assert (words.classifier, length.classifier) == ("words()", "length")
    assert words.auc.low > 0.9
    assert words.texts == length.texts == 90
    assert length.auc.high < 0.5
    assert "shorter" in length.note
    assert gap(b, a, "words()")[0].auc.low > 0.9, "the order of the sets does not matter to a classifier"
    assert "longer" in gap(b, a)[1].note


MET = []


def watching(texts, labels, seed):
    """Notes the documents that it judges and has learnt from; the first word of a text names one."""
    learnt = {text.split()[0] for text in texts}

    def judge(some):
        MET.append(learnt & {text.split()[0] for text in some})
        return np.full(len(some), 0.5)

    return judge


def test_no_text_is_judged_by_what_was_learnt_from_its_document_or_a_copy():
    rng, watched = np.random.default_rng(1), {"watching": watching}
    named = [f"d{i // 4} {text}" for i, text in enumerate(noise(rng, 160))]
    groups = [text.split()[0] for text in named]
    gap(corpus("a", named[:80], groups[:80]), corpus("b", named[80:], groups[80:]), watched)
    # copies join the documents that they stand in, also on both sides
    single = [f"d{i} {text}" for i, text in enumerate(noise(rng, 60))]
    copies = [f" {text}\n" for text in single]
    gap(corpus("a", single[:30] + copies[:35]), corpus("b", single[30:] + copies[35:]), watched)
    pair_gap(pairs(named[:80], [f"{text} now" for text in named[:80]], each=4), watched)
    assert len(MET) == 15
    assert not any(MET)


def test_what_makes_an_auc_weak_is_told(monkeypatch):
    texts = noise(np.random.default_rng(0), 80)
    (row, length) = gap(corpus("a", texts[:45]), corpus("b", [*texts[40:], f"{texts[0]} "]))
    assert "6 texts of A and 6 of B are the same on both sides" in row.note
    assert "6 texts of A and 6 of B" in length.note
    together = [f"author {i % 2}" for i in range(20)]  # a document on both sides is one document
    (row, _) = gap(corpus("a", texts[:20], together), corpus("b", texts[20:40], together))
    assert "fewer: 2 only" in row.note
    (row, _) = gap(*(corpus("ab"[k], [chr((0x1F600, 0x1F400)[k] + i) for i in range(20)]) for k in range(2)))
    assert (row.auc.value, row.auc.low, row.auc.high) == (0.5, 0.5, 0.5)
    assert "nothing to learn from" in row.note
    monkeypatch.setattr(module, "LEARNT_TEXTS", 40)
    assert "learnt from 40 of the 80 texts" in gap(corpus("a", texts[:40]), corpus("b", texts[40:]))[0].note


def test_copies_of_the_true_suffix_are_counted_and_copies_alone_are_refused():
    texts = noise(np.random.default_rng(0), 60)
    rows = pair_gap(pairs(texts[:30], texts[:4] + texts[30:56]))
    assert all("4 of the 30 generated suffixes are the same" in row.note for row in rows)
    with pytest.raises(TextsError, match="all 30 generated suffixes are the same as the true ones"):
        pair_gap(pairs(texts[:30], [f"{text} " for text in texts[:30]]))


# The blind baseline sees words where there are any to see, and nothing where there is nothing.


long_noise = partial(noise, length=40)


def test_folds_with_unlike_shares_of_members_do_not_push_the_auc_below_one_half():
    # Three documents hold all members, so the folds have 30, 10 and 5 of them beside 15 non-members each.
    groups = ["a"] * 30 + ["b"] * 10 + ["c"] * 5 + [f"n{i}" for i in range(45)]
    members = np.arange(90) < 45
    texts = [long_noise(np.random.default_rng(seed), 90) for seed in range(40)]
    found = [auc(bag_of_words(one, members, groups, seed=i)[0], members) for i, one in enumerate(texts)]
    assert abs(np.mean(found) - 0.5) < 0.035, "standard error 0.012; scores that are not centred give 0.32"


NOISE, APART = long_noise(np.random.default_rng(0), 40), [str(i) for i in range(40)]


def dated(rng, year, texts):
    dated = zip(rng.integers(1, 31, texts), long_noise(rng, texts), strict=True)
    return [f"On {day} May {year} {text}" for day, text in dated]


def test_words_of_a_script_without_spaces_are_seen():
    rng = np.random.default_rng(0)
    common = list("的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生")
    texts = ["".join(rng.choice(common, 40)) for _ in range(120)]
    members = np.arange(120) < 60
    texts = [f"{text[:20]}{'专利' if i < 60 else '发明'}{text[20:]}" for i, text in enumerate(texts)]
    scores, _ = bag_of_words(texts, members, [str(i) for i in range(120)], seed=0)
    assert auc(scores, members) > 0.95


def test_many_texts_are_all_judged_by_what_was_learnt_from_some(monkeypatch):
    monkeypatch.setattr(module, "LEARNT_TEXTS", 150)
    monkeypatch.setattr(module, "CHUNK", 64)
    rng = np.random.default_rng(0)
    texts = dated(rng, 2014, 200) + dated(rng, 2023, 200)
    members = np.arange(400) < 200
    scores, note = bag_of_words(texts, members, [f"d{i // 2}" for i in range(400)], seed=0)
    assert "learnt from 148 of the 400 texts, by whole documents. It judged all of them" in note
    assert np.isfinite(scores).all()
    assert auc(scores, members) > 0.95


@pytest.mark.parametrize(
    ("texts", "members", "groups", "reason"),
    [
        (NOISE, 4, APART, "10 texts on either side, and there are 4 of the members"),
        (NOISE, 20, ["a"] * 20 + APART[20:], "all of the members are from one"),
        ([""] * 40, 20, APART, "no word"),
    ],
)
def test_too_little_to_learn_from_is_said(texts, members, groups, reason):
    scores, note = bag_of_words(texts, np.arange(40) < members, groups, seed=0)
    assert scores is None
    assert reason in note
