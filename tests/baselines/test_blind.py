"""The blind baseline sees words where there are any to see, and nothing where there is nothing."""

import numpy as np
import pytest

from pretrace.baselines import blind, classifiers
from pretrace.baselines.blind import bag_of_words
from pretrace.baselines.classifiers import WIDENING
from pretrace.statistics.resampling import group_bootstrap
from pretrace.statistics.roc import auc

WORDS = np.array([f"w{k}" for k in range(500)])
ZIPF = 1 / np.arange(1, 501) / (1 / np.arange(1, 501)).sum()


def noise(rng, texts, length=40):
    return [" ".join(words) for words in WORDS[rng.choice(500, (texts, length), p=ZIPF)]]


def test_on_noise_the_mean_auc_is_one_half_and_the_widened_interval_keeps_its_promise():
    found, alarms, narrow = [], 0, 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        # Documents of unequal size: folds differ in their share of members, which is the trap.
        groups = [f"d{rng.integers(0, 45)}" for _ in range(80)]
        members = np.array([int(group[1:]) < 20 for group in groups])
        judged = bag_of_words(noise(rng, 80), members, groups, seed=seed)
        spread = group_bootstrap([judged.scores], members, groups=groups, resamples=150).auc
        found.append(spread.value[0])
        narrow += spread.estimate(0).excludes > 0
        alarms += spread.widened(0, WIDENING).estimate(0).excludes > 0
    assert abs(np.mean(found) - 0.5) < 0.03, "standard error 0.011"
    assert alarms / 80 < 0.12
    assert narrow > alarms
    assert narrow / 80 > 0.12, "without widening the baseline would cry wolf"


def test_folds_with_unlike_shares_of_members_do_not_push_the_auc_below_one_half():
    # Three documents hold all members, so the folds have 30, 10 and 5 of them beside 15 non-members each.
    groups = ["a"] * 30 + ["b"] * 10 + ["c"] * 5 + [f"n{i}" for i in range(45)]
    members = np.arange(90) < 45
    texts = [noise(np.random.default_rng(seed), 90) for seed in range(40)]
    found = [auc(bag_of_words(one, members, groups, seed=i).scores, members) for i, one in enumerate(texts)]
    assert abs(np.mean(found) - 0.5) < 0.035, "standard error 0.012; scores that are not centred give 0.32"


def dated(rng, year, texts):
    dated = zip(rng.integers(1, 31, texts), noise(rng, texts), strict=True)
    return [f"On {day} May {year} {text}" for day, text in dated]


def test_words_of_a_script_without_spaces_are_seen():
    rng = np.random.default_rng(0)
    common = list("的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生")
    texts = ["".join(rng.choice(common, 40)) for _ in range(120)]
    members = np.arange(120) < 60
    texts = [
        text[:20] + ("专利" if seen else "发明") + text[20:]
        for text, seen in zip(texts, members, strict=True)
    ]
    judged = bag_of_words(texts, members, [str(i) for i in range(120)], seed=0)
    assert auc(judged.scores, members) > 0.95


def test_a_text_is_not_judged_by_what_was_learnt_from_its_own_document():
    # Every document has words of its own and a random label: known documents would be recognised.
    rng = np.random.default_rng(1)
    groups = [f"d{i // 4}" for i in range(160)]
    texts = [f"{name}a {name}b {name}c {text}" for name, text in zip(groups, noise(rng, 160), strict=True)]
    members = (rng.permutation(40) < 20)[np.arange(160) // 4]
    apart = bag_of_words(texts, members, groups, seed=0)
    leaking = bag_of_words(texts, members, [str(i) for i in range(160)], seed=0)
    assert auc(leaking.scores, members) > 0.9
    assert auc(apart.scores, members) < 0.7


def test_many_texts_are_all_judged_by_what_was_learnt_from_some(monkeypatch):
    monkeypatch.setattr(classifiers, "LEARNT_TEXTS", 150)
    monkeypatch.setattr(blind, "CHUNK", 64)
    rng = np.random.default_rng(0)
    texts = dated(rng, 2014, 200) + dated(rng, 2023, 200)
    members = np.arange(400) < 200
    judged = bag_of_words(texts, members, [f"d{i // 2}" for i in range(400)], seed=0)
    assert "learnt from 148 of the 400 texts, by whole documents, and judged all of them" in judged.note
    assert np.isfinite(judged.scores).all()
    assert auc(judged.scores, members) > 0.95


@pytest.mark.parametrize(
    ("members", "groups", "reason"),
    [
        (np.arange(40) < 4, [str(i) for i in range(40)], "10 texts of either class, and there are 4 members"),
        (np.arange(40) < 20, ["a"] * 20 + [str(i) for i in range(20)], "all members are from one"),
        (np.arange(40) < 20, ["a"] * 20 + ["b"] * 20, "two documents of either class"),
    ],
)
def test_too_little_to_learn_from_is_said(members, groups, reason):
    judged = bag_of_words(noise(np.random.default_rng(0), 40), members, groups, seed=0)
    assert judged.scores is None
    assert reason in judged.note


def test_odd_texts_do_no_harm():
    rng = np.random.default_rng(0)
    assert "no word" in bag_of_words([""] * 40, np.arange(40) < 20, [str(i) for i in range(40)], seed=0).note
    odd = ["", "\x00", "🙂 🙂", "\ud800 lone", "a" * 100_000, "\u202e\u0301", "   \n"]
    texts = [*odd, *noise(rng, 40)]
    judged = bag_of_words(texts, np.arange(47) % 2 == 0, [str(i) for i in range(47)], seed=0)
    assert judged.scores is not None
    assert np.isfinite(judged.scores).all()
