"""Flagging on a back end whose familiar texts are known: who is flagged, and when the answer is refused."""

import re
from dataclasses import replace

import numpy as np
import pytest
from net.api import (
    Check,
    Corpus,
    FlagSettings,
    Memory,
    Models,
    ScoredRows,
    Text,
    concluding,
    detect,
    flag,
    flagging,
    p_values,
    plan,
    row_checks,
    set_test,
)
from net.api import checks_placebo_check as placebo_check
from net.api import rounding_p_value as p_value

WORDS = [
    "the", "cat", "sat", "on", "a", "mat", "one", "two", "railway", "nothing", "so", "again", "and", "left",
]  # fmt: skip


def corpus(name, number, *, seed, words=WORDS, length=30, pieces=1):
    """Texts of random words; `pieces` of them are of one document."""
    rng = np.random.default_rng(seed)
    groups = [f"{name}{i // pieces}" if pieces > 1 else "" for i in range(number)]
    texts = (Text(str(i), " ".join(rng.choice(words, length)), group=group) for i, group in enumerate(groups))
    return Corpus(name, tuple(texts))


def edited(corpus, change):
    return replace(corpus, texts=tuple(replace(text, text=change(text.text)) for text in corpus.texts))


def few(corpus, number):
    return replace(corpus, texts=corpus.texts[:number])


MINE, KNOWN = corpus("mine", 40, seed=1), corpus("known", 100, seed=2)
SEEN = [text.text for text in MINE.texts[:12]]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Fewer resamples for the intervals of the controls, and no second model unless a test names one."""
    monkeypatch.setattr("pretrace.verdicts.flag.concluding.RESAMPLES", 400)
    monkeypatch.setattr(flagging, "with_second", lambda models, **_: models)


LOSS = FlagSettings(score="loss", cache=False)


def flagged_ids(found):
    """The ids of the flagged texts, in their order; none where the answer is refused."""
    texts = found.table("flags")
    return [name for name, chosen in zip(texts["id"], texts["flagged"].tolist(), strict=True) if chosen]


def named(found, name):
    return next(check for check in found.checks if check.name == name)


def target(seen=SEEN, name="target"):
    return Memory(seen, name=name)


def test_the_texts_that_were_seen_are_flagged():
    found = flag(MINE, KNOWN, target(), LOSS)
    assert (found.outcome, found.figures["method"]) == ("flagged", "bh")
    assert flagged_ids(found) == [str(i) for i in range(12)]
    assert found.statement.startswith("12 of the 40 texts of “mine” flagged (12 texts)")
    texts, known = found.tables
    assert texts["p"] == pytest.approx(p_values(texts["score"], known["score"]))
    passed = dict.fromkeys(("words", "form", "length", "spread", "runs", "drift"), "passed")
    assert {check.name: check.status for check in found.checks} == {**passed, "placebo": "not run"}
    assert set_test(found).explained > set_test(found).unseen > 0.33


def test_nothing_where_nothing_was_seen_and_the_same_again():
    renamed = replace(MINE, texts=tuple(replace(text, id=f"x{text.id}") for text in MINE.texts[::-1]))
    one, two = (flag(mine, KNOWN, target(), replace(LOSS, randomised=True)) for mine in (MINE, renamed))
    values = [sorted(found.tables[0]["p"].tolist()) for found in (one, two)]
    assert values[0] == values[1]  # ids and places enter no draw
    nothing = flag(MINE, KNOWN, target([]), LOSS)
    assert (nothing.outcome, flagged_ids(nothing), nothing.p > 0.05) == ("missed", [], True)
    assert any("--power" in words for words in nothing.advice)


@pytest.mark.parametrize(
    ("other", "failing"),
    [
        (corpus("mine", 40, seed=1, words=["quite", "other", *WORDS[:9]]), {"words"}),
        (corpus("mine", 40, seed=1, length=60), {"words", "form", "length"}),
        # Issue 21: the words of two editors' texts are the same, and a model finds one form likelier
        (edited(corpus("other", 60, seed=7), lambda text: text.replace(" ", "\u00a0", 3)), {"form"}),
    ],
    ids=["words", "length", "form"],
)
def test_sets_that_differ_as_texts_are_refused(other, failing):
    found = flag(other, KNOWN, target([text.text for text in other.texts[:12]]), LOSS)
    assert (found.outcome, flagged_ids(found)) == ("refused", [])
    assert all(np.isnan(found.tables[0][name]).all() for name in ("p", "q"))
    failed = {check.name for check in found.checks if check.status == "failed"}
    assert failed - {"spread"} == failing


def test_a_placebo_to_which_all_texts_look_familiar_refuses_though_it_flags_none():
    everything = target([text.text for text in MINE.texts[:30]], name="placebo")
    settings = replace(LOSS, fdr=0.02)  # too few known texts for so low a rate, unless 50 are flagged at once
    found = flag(MINE, few(KNOWN, 50), Models(target(), placebo=Models(everything)), settings)
    check = named(found, "placebo")
    assert (check.status, check.figures["flagged"]) == ("failed", 0)


def test_documents_are_flagged_with_all_their_texts_and_count_once():
    mine, known = corpus("mine", 40, seed=1, pieces=4), corpus("known", 400, seed=2, pieces=4)
    found = flag(mine, known, target(SEEN), LOSS)
    # all have four: the mean of all
    assert (found.tables[1]["drawn"].sum(), found.figures["counts"]["known_documents"]) == (400, 100)
    assert found.statement.startswith("3 of the 10 documents of “mine” flagged (12 texts)")
    assert flagged_ids(found) == [str(i) for i in range(12)]
    assert len(set(found.tables[0]["p"][:4].tolist())) == 1
    # one document has one text: one is drawn of each, on both sides
    short = Corpus("known", known.texts[:-3])
    one = flag(mine, short, target(SEEN), LOSS)
    texts, others = one.tables
    assert (texts["drawn"].sum(), others["drawn"].sum()) == (10, 100)
    values = texts["score"][texts["drawn"]]
    assert texts["p"][::4] == pytest.approx(p_values(values, others["score"][others["drawn"]]))
    assert "40 texts come from 10 documents" in found.notes[-1]
    # a known document that shares a text with another one is the same document
    copied = Corpus("known", (*known.texts[:-1], Text("copy", known.texts[0].text, group="elsewhere")))
    assert flag(mine, copied, target(SEEN), LOSS).figures["counts"]["known_documents"] == 100


def test_what_can_be_flagged_is_said_before_a_model_is_asked():
    (note,) = plan(MINE, KNOWN, LOSS).prospect.notes
    assert re.findall(r"[\d.]+\b", note) == ["100", "0.0099", "40", "5", "8", "19", "799"]
    assert plan(few(MINE, 1), KNOWN, LOSS).prospect.notes == ()
    # it is reckoned anew where texts could not be scored
    empty = tuple(Text(f"e{i}", "") for i in range(10))
    known = Corpus("known", (*KNOWN.texts[:95], *empty))
    found = flag(few(MINE, 1), known, target([]), replace(LOSS, fdr=0.01))  # 105 would have done
    assert re.match("With 95 known documents .* takes 99 known", found.notes[0])
    assert found.outcome == "missed"


def set_checks(texts, asked, names, *, seed):
    """The checks of texts in memory."""
    lengths = np.array([len(text) for text in texts], dtype=float)
    codes = np.unique(names, return_inverse=True)[1]
    return row_checks(lengths, asked, codes, lambda rows: [texts[i] for i in np.flatnonzero(rows)], seed=seed)


@pytest.mark.parametrize(("texts", "pieces"), [(1, 1), (2, 1), (3, 1), (2, 8), (4, 8)])
def test_few_documents_are_no_reason_to_refuse_by_chance(texts, pieces):
    """Where every document is drawn from one law; an interval of so few alone would refuse up to every third time."""
    rng, failed = np.random.default_rng(4), 0
    group = np.repeat(np.arange(texts + 30), pieces)
    names, asked = [f"d{g}" for g in group], group < texts
    for draw in range(12):
        values = rng.normal(size=texts + 30)[group] + rng.normal(size=len(group))
        words = ["x" * int(length) for length in 40 + 5 * values]
        found = [placebo_check(values, asked, names, flagged=0, rate=0.05, seed=draw)]
        found += set_checks(words, asked, names, seed=draw)[1:]
        failed += any(check.status == "failed" for check in found)
    assert failed <= 1


def test_few_documents_that_all_stand_out_are_refused_and_fewer_are_left_on_trust():
    known = corpus("known", 60, seed=2)
    longer = corpus("o", 20, seed=1, length=60).texts
    other = [Text(f"o{i}", text.text, group=f"o{i // 4}") for i, text in enumerate(longer)]
    settings = replace(LOSS, fdr=0.3)
    found = flag(Corpus("five books", tuple(other)), known, target(), settings)
    assert [check.name for check in found.checks if check.status == "failed"] == ["form", "length"]
    three = flag(few(MINE, 3), KNOWN, target(), LOSS)
    assert len(flagged_ids(three)) == 3
    assert "too few to see whether the two sets differ" in " ".join(three.reasons)
    one = tuple(replace(text, group="one") for text in other)
    alone = flag(Corpus("one book", one), known, target(), replace(settings, method="bh"))
    assert alone.outcome != "refused"
    assert "Number of texts in question: 20, from 1 document: too few" in " ".join(alone.reasons)


MANY, HELD = corpus("test set", 2000, seed=13), corpus("private", 400, seed=14)


def a_tenth(shift=2.087, share=0.1, seed=0):
    """Scores of the back end by text: of the asked ones a share stands out with an AUC of 0.93."""
    rng = np.random.default_rng(seed)
    both = np.random.default_rng(5)  # what all models see alike
    found = {
        text.text: float(0.8 * both.normal() + 0.6 * rng.normal()) for text in (*MANY.texts, *HELD.texts)
    }
    for text in MANY.texts[: round(share * len(MANY))]:
        found[text.text] += shift
    return found


@pytest.fixture
def scored(monkeypatch):
    """Makes `flag` see the scores it is given, by text, in place of a model's; the placebo's are others."""

    def as_if(target, placebo=None):
        def scoring(both, models, score, how):
            run = detect(both, models, score, how)
            texts = {text.id: text.text for text in both.texts}

            def column(of):
                return np.array([[of[texts[name]]] for name in run.ids])

            controls = [replace(one, values=column(placebo)) for one in run.controls]
            run = replace(run, matrix=column(target), controls=tuple(controls))
            return ScoredRows.of_run(run, both.texts)

        monkeypatch.setattr(flagging, "score_rows", scoring)

    return as_if


def test_a_tenth_of_a_test_set_is_seen_though_no_text_is_flagged(scored):
    """Version 0.1 said of such a set that it "does not stand out" and ended with 0."""
    scored(a_tenth(), a_tenth(shift=0.0, seed=9))
    blank = Models(target([]), placebo=Models(target([], name="placebo")))
    found = flag(MANY, HELD, blank, LOSS)
    assert (found.outcome, flagged_ids(found), found.p < 0.002) == ("set", [], True)
    assert set_test(found).above > 1.5 * set_test(found).expected > 100
    assert f"(p = {p_value(found.p)})" in found.statement


def test_all_that_stand_out_a_little_are_seen_and_the_level_is_the_users(scored):
    """All seen a little looks like a drift: without a placebo up to a third of a standard deviation accuses nobody."""
    scored(a_tenth(shift=0.16, share=1.0))
    found = flag(MANY, HELD, target([]), LOSS)
    assert (found.outcome, found.p) == ("refused", None)
    assert 0 < set_test(found).explained < 0.2
    assert "would explain it, and the checks could not have excluded one of 0.33" in " ".join(found.reasons)
    assert np.isnan(found.tables[0]["p"]).all()
    scored(a_tenth(shift=0.6, share=1.0))
    assert flag(MANY, HELD, target([]), LOSS).outcome == "set"


def test_too_few_known_texts_are_too_coarse_to_clear(scored):
    scored(a_tenth(shift=0.0))
    found = flag(MANY, few(HELD, 21), target([]), replace(LOSS, fdr=0.02))  # none could be flagged
    assert found.outcome == "missed"
    assert "Take at least 499 known documents: then 200 of 2,000 texts could be flagged." in found.advice
    some = flag(MANY, few(HELD, 21), target([]), LOSS)  # 1,819 of the 2,000 could
    assert some.outcome == "missed"
    assert "before any is flagged, 1,819 texts must stand above all known ones" in " ".join(some.reasons)
    # and what the set shows is told even so
    scored(a_tenth(shift=3.0, share=1.0))
    assert flag(MANY, few(HELD, 21), target([]), replace(LOSS, fdr=0.02)).outcome == "set"


def test_a_small_difference_is_passed_over_for_flags_and_withholds_the_test_of_the_set(scored, monkeypatch):
    rng = np.random.default_rng(0)
    values, asked = rng.normal(size=4000), np.arange(4000) < 2000
    values[asked] += 0.13
    names = [str(i) for i in range(4000)]
    check = placebo_check(values, asked, names, flagged=0, rate=0.05, seed=0)
    assert (check.status, check.figures["beyond_chance"]) == ("passed", True)
    words = replace(check, name="words", words="AUC 0.53.")
    monkeypatch.setattr(concluding, "row_checks", lambda *_, **__: (words,))
    scored(a_tenth())
    found = flag(MANY, HELD, target([]), LOSS)
    assert (found.outcome, found.p) == ("refused", None)
    assert "the two sets also differ a little by their words" in " ".join(found.reasons)
    scored(a_tenth(shift=0.0))  # where there is nothing to withhold it is as it was
    assert flag(MANY, HELD, target([]), LOSS).outcome == "missed"


def test_a_placebo_whose_set_stands_out_withholds_that_of_the_target(scored):
    mine = few(MANY, 400)
    seen = a_tenth(share=1.0, shift=0.4)
    scored(seen, a_tenth(share=0.01, shift=3.5, seed=3))  # 20 of the 400
    blank = Models(target([]), placebo=Models(target([], name="placebo")))
    found = flag(mine, HELD, blank, LOSS)
    assert named(found, "placebo").status == "passed"
    assert named(found, "placebo").figures["set p"] <= 0.03
    assert found.outcome == "refused"
    assert "the score of the placebo" in " ".join(found.reasons)
    scored(seen, a_tenth(shift=0.0, seed=3))
    assert flag(mine, HELD, blank, LOSS).outcome == "set"  # a placebo excludes smaller drifts than words do
    assert flag(mine, HELD, target([]), LOSS).outcome == "refused"


def test_a_placebo_that_reads_otherwise_speaks_for_nobody(scored):
    rng = np.random.default_rng(8)
    scored(a_tenth(shift=0.6, share=1.0), {text.text: rng.normal() for text in (*MANY.texts, *HELD.texts)})
    found = flag(MANY, HELD, Models(target([]), placebo=Models(target([], name="placebo"))), LOSS)
    check = named(found, "placebo")
    assert (found.outcome, check.status, abs(check.figures["correlation"]) < 0.1) == ("set", "not run", True)
    assert "scores the known texts so differently" in check.words
    assert "no sign of training yet" in found.statement
    assert set_test(found).unseen == pytest.approx(concluding.FLOOR)  # it excludes no drift either
    # but what it finds itself withholds, as of any other
    lifted = {text.text: rng.normal() + (text in MANY.texts) for text in (*MANY.texts, *HELD.texts)}
    scored(a_tenth(shift=0.6, share=1.0), lifted)
    found = flag(MANY, HELD, Models(target([]), placebo=Models(target([], name="placebo"))), LOSS)
    assert (found.outcome, named(found, "placebo").status) == ("refused", "failed")


def test_how_alike_two_models_read_is_seen_in_known_documents_alone():
    rng = np.random.default_rng(4)
    scores, asked = rng.normal(size=60), np.arange(60) < 30
    placebo = np.where(asked, rng.normal(size=60), scores)  # those in question may have been read
    sides = concluding.Sides(asked, np.arange(60), scores, placebo, np.ones(60), LOSS, 0)
    assert (sides.alike, sides.compared) == (pytest.approx(1.0), True)


def test_a_model_alone_has_the_packaged_one_beside_it(monkeypatch):
    packaged = Models(target([], name="packaged"))
    monkeypatch.setattr(flagging, "with_second", lambda models, **_: replace(models, placebo=packaged))
    assert named(flag(MINE, KNOWN, target(), LOSS), "placebo").status == "passed"
    assert named(flag(MINE, KNOWN, Models(target()), LOSS), "placebo").status == "not run"


def test_a_drift_that_a_placebo_leaves_open_is_larger_the_less_alike_it_reads():
    seen = {"auc": [0.5, 0.46, 0.54]}
    one, half = (
        concluding.unseen_drift(
            [Check("placebo", "", "passed", "", "", {**seen, "correlation": by})], 900, 900
        )
        for by in (1.0, 0.5)
    )
    assert half == pytest.approx(2 * one)


def flag_values(scored, values, known):
    """The flagging of texts that are all alike and have these values."""
    asked, others = few(MANY, len(values)), few(HELD, len(known))
    both = zip((*asked.texts, *others.texts), (*values, *known), strict=True)
    scored({text.text: float(one) for text, one in both})
    return flag(asked, others, target([]), LOSS)


@pytest.mark.parametrize("kind", ["spread", "drift"])
def test_innocent_sets_that_vary_more_or_are_easier_are_not_accused(scored, kind):
    """Issue 21: 1.6 times the spread rejected 95% of nulls, and a drift of 0.18 standard deviations 46%."""
    rejected = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        values, known = rng.normal(size=200), rng.normal(size=200)
        values = values * 1.6 if kind == "spread" else values + 0.25
        found = flag_values(scored, values, known)
        assert found.outcome in ("refused", "missed")
        rejected += found.outcome == "refused"
        failed = {check.name for check in found.checks if check.status == "failed"}
        assert found.outcome == "missed" or failed & {"spread", "drift"}
        assert kind == "drift" or set_test(found).spread > 1.2
    assert rejected >= 2


def test_texts_of_a_few_sources_side_by_side_accuse_nobody(scored):
    rng = np.random.default_rng(3)
    known = np.repeat(rng.normal(size=20), 10) + 0.5 * rng.normal(size=200)
    found = flag_values(scored, rng.normal(size=200) + 2.0, known)
    assert (named(found, "runs").status, found.outcome) == ("failed", "refused")


def versions(name, sources, each, *, seed):
    """Versions of a few texts in any order: 2 of 60 words differ."""
    rng = np.random.default_rng(seed)
    words = [f"{name}{i}" for i in range(2000)]
    found = []
    for _ in range(sources):
        base = rng.choice(words, 60)
        for _ in range(each):
            one = base.copy()
            one[rng.choice(60, 2, replace=False)] = rng.choice(words, 2)
            found.append(" ".join(one))
    return Corpus(name, tuple(Text(f"t{i}", found[i]) for i in rng.permutation(len(found)).tolist()))


def test_near_copies_count_once_and_are_told():
    mine, known = versions("w", 20, 10, seed=1), versions("w", 30, 5, seed=2)
    made = plan(mine, known, LOSS)
    assert (made.prospect.asked, made.prospect.known) == (20, 30)
    assert (
        "Near copies: 300 of the documents count as one with others on their side" in made.prospect.notes[-1]
    )
    across = replace(known, texts=(*known.texts, Text("same", mine.texts[0].text + " more")))
    note = plan(mine, across, LOSS).prospect.notes[-1]
    assert "Texts in question that say mostly the same as a known non-member: 10" in note


def test_a_group_for_each_text_changes_nothing():
    """Issue 40: the same texts ended with 3 where a column of groups was named, and with 4 without."""
    mine, known = versions("w", 40, 3, seed=1), versions("w", 60, 2, seed=2)
    grouped = replace(mine, texts=tuple(replace(text, group=f"g{text.id}") for text in mine.texts))
    seen = target([text.text for text in mine.texts[:30]])
    plain, named = (flag(one, known, seen, LOSS) for one in (mine, grouped))
    assert plan(grouped, known, LOSS).prospect.asked == plan(mine, known, LOSS).prospect.asked < 60
    assert (plain.outcome, plain.p) == (named.outcome, named.p)
    assert plain.table("flags")["p"].tolist() == named.table("flags")["p"].tolist()
