"""Where variants come from, and which are refused or dropped."""

import itertools
import random

import numpy as np
import pytest
from made import read_lines, written
from scipy.stats import binom

from pretrace.corpora import Columns, open_corpus
from pretrace.errors import TextsError
from pretrace.plugins import marks
from pretrace.plugins.marks import MarkSettings, Trigger, VariantCandidates, mark
from pretrace.plugins.marks.checking import CheckSettings, check_triggers, write_prompts
from pretrace.statistics.permutation import chance_of_hits
from pretrace.types import Corpus, Text, Written

LONG = "The old man went home and sat by the fire. In 1869 the Railway reached the valley, and it was cold."
TEXTS = Corpus("letters", (Text("a", LONG), Text("b", "42, 43 and B.")))


def test_columns_and_files_of_the_users_own(tmp_path):
    rows = [{"id": f"t{i}", "text": f"One {i}.", "b": f"Two {i}.", "c": f"Three {i}."} for i in range(3)]
    corpus = open_corpus(written(tmp_path / "a.jsonl", rows), Columns(more=("b", "c")))
    found = marks.own_candidates(corpus, MarkSettings(variant_column=("b", "c")))
    assert found.variants["t1"] == ("One 1.", "Two 1.", "Three 1.")
    others = [{"id": row["id"], "text": row["b"]} for row in rows]
    files = MarkSettings(variant_texts=(str(written(tmp_path / "b.jsonl", others[::-1])),))
    assert marks.own_candidates(corpus, files).variants["t0"] == ("One 0.", "Two 0.")
    for some, odd in ((others[:1], "'t1', 't2'"), ([*others, {"id": "x", "text": "y"}], "'x'")):
        written(tmp_path / "b.jsonl", some)
        with pytest.raises(TextsError, match=rf"different ids \({odd}\)"):
            marks.own_candidates(corpus, files)


def test_canary_sentences_differ_in_one_word_alone_and_no_name_comes_twice():
    corpus = Corpus("c", tuple(Text(str(i), f"Text {i}.\nLine.") for i in range(300)))
    settings = MarkSettings(canary=True, choices=5)
    found = marks.own_candidates(corpus, settings, draw=random.Random(0).randrange)
    prompts = [trigger.prompt for trigger in found.triggers.values()]
    assert len(set(prompts)) == 300
    for text in corpus.texts:
        trigger = found.triggers[text.id]
        assert len(set(trigger.words)) == 5
        made = (f"{text.text}\n\n{trigger.prompt} {word}." for word in trigger.words)
        assert found.variants[text.id] == tuple(made)
        assert not any(word in trigger.prompt.replace("-", " ").split() for word in trigger.words)


class Proposer:
    def __init__(self, made):
        self.made, self.facts = made, {"name": "proposer"}

    def propose(self, texts, /, *, number, share, seed):
        return [self.made[text][:number] for text in texts]


def test_small_words_change_and_what_is_not_alike_is_dropped():
    changed = LONG.replace("old", "young").replace("1869", "1870").replace("Railway", "Highway")
    made = {
        LONG: (
            changed.replace(", and", "; and"),
            LONG.replace("1869", "1870"),  # the number is put back: equal to the text
            LONG.replace("cold", "antidisestablishmentarianistically"),  # too long
            LONG.replace("fire", "lake"),
        ),
        "42, 43 and B.": ("41, 43 and C.",),
    }
    settings = MarkSettings(words="causal:x", variants=2)
    found = marks.model_candidates(TEXTS, settings, Proposer(made))
    assert found.variants == {"a": (LONG, LONG.replace("old", "young"), LONG.replace("fire", "lake"))}
    assert "b" in found.reasons
    assert "1 of 5 proposed variants were dropped" in found.notes[0]
    seal = mark(TEXTS, found, settings, draw=lambda n: n - 1)
    assert seal.unmarked[0].id == "b"
    assert "1 of 2 texts have no variants" in " ".join(seal.notes)
    assert [text.text for text in seal.published] == [LONG.replace("fire", "lake"), "42, 43 and B."]
    without = MarkSettings(words="causal:x", variants=2, original=False)
    left = marks.model_candidates(TEXTS, without, Proposer(made))
    assert left.variants == {"a": (LONG.replace("old", "young"), LONG.replace("fire", "lake"))}


def test_a_rewriter_is_asked_as_often_as_variants_are_wanted():
    class Rewriter:
        def __init__(self):
            self.facts, self.seeds = {"name": "rewriter"}, []

        def answers(self, instructions, /, *, tokens, sampling, seed):
            self.seeds.append(seed)
            assert all(one.endswith(text.text) for one, text in zip(instructions, TEXTS.texts, strict=True))
            first = Written(LONG.replace("old", f"old{len(self.seeds)}"))
            return [first, Written("42, 43 or C.", ended=False)]

    rewriter = Rewriter()
    settings = MarkSettings(rewriter="x", variants=2, seed=7)
    found = marks.model_candidates(TEXTS, settings, rewriter)
    assert len(found.variants["a"]) == 3
    assert set(found.reasons) == {"b"}  # its answers broke off
    assert rewriter.seeds == [7, 8, 9]


# Trigger sentences: hits are counted as written, and their chance is exact.


SETTINGS = CheckSettings(cache=False)


def sealed(number=20, choices=8, seed=0):
    corpus = Corpus("letters", tuple(Text(f"t{i}", f"Letter {i}.") for i in range(number)))
    lot, settings = random.Random(seed).randrange, MarkSettings(canary=True, choices=choices)
    return mark(corpus, marks.own_candidates(corpus, settings, draw=lot), settings, draw=lot)


def answers(**said):
    return Corpus("answers", tuple(Text(name, text) for name, text in said.items()))


def words(seal, place=0):
    """The published word of each text, or one `place` further."""
    return {one.id: one.trigger.words[(one.drawn + place) % len(one.trigger.words)] for one in seal.documents}


def said_of(seal, **said):
    """The word that the answer to the first trigger says."""
    return check_triggers(seal, answers(**said), SETTINGS, model="m").table("sentences")["said"][0]


def test_the_law_of_hits_is_binomial_and_for_differing_chances_the_sum_over_all_outcomes():
    assert chance_of_hits([1 / 8] * 30) == pytest.approx(binom.pmf(np.arange(31), 30, 1 / 8))
    chances = [0.5, 0.25, 0.1, 0.9]
    naive = np.zeros(5)
    for some in itertools.product([0, 1], repeat=4):
        naive[sum(some)] += np.prod([c if hit else 1 - c for c, hit in zip(chances, some, strict=True)])
    assert chance_of_hits(chances) == pytest.approx(naive)


@pytest.mark.parametrize(("hits", "outcome"), [(6, "consistent"), (4, "inconclusive")])
def test_p_is_the_upper_tail_at_the_hits_and_no_answer_is_a_miss(hits, outcome):
    seal = sealed()
    said = {**(words(seal, 3) if hits == 6 else {}), **dict(itertools.islice(words(seal).items(), hits))}
    found = check_triggers(seal, answers(**said), SETTINGS, model="served")
    assert found.p == pytest.approx(binom.sf(hits - 1, 20, 1 / 8))
    assert [found.figures[name] for name in ("hits", "hits from which on the test rejects")] == [hits, 6]
    assert binom.sf(5, 20, 1 / 8) <= 0.05 < binom.sf(4, 20, 1 / 8)
    assert (found.outcome, found.model, found.units) == (outcome, "served", 20)
    assert found.effect.value == pytest.approx(hits / 20 - 1 / 8)
    assert ("16 sentences have no answer" in " ".join(found.notes)) == (hits == 4)
    assert not any("--power" in one for one in found.advice)


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        ("Amber.", "amber"), ("it is either lantern or amber", "lantern"), ("ambergris, lanterns", ""), ("", ""),
        ("**LANTERN**", "lantern"),
    ],
)  # fmt: skip
def test_the_first_of_the_words_counts(answer, word):
    some = VariantCandidates({"t": ("A.", "B.")}, triggers={"t": Trigger("It is", ("amber", "lantern"))})
    seal = mark(Corpus("c", (Text("t", "A."),)), some, MarkSettings(canary=True))
    assert said_of(seal, t=answer) == word


def test_a_repeated_prompt_does_not_count():
    seal = sealed(4)
    one = seal.documents[0]
    assert said_of(seal, **{one.id: f"{one.trigger.prompt} {words(seal)[one.id]}"}) == words(seal)[one.id]


def test_prompts_hold_no_word_to_choose_from(tmp_path):
    seal = sealed(5)
    assert write_prompts(seal, tmp_path / "p.jsonl") == 5
    for row, one in zip(read_lines(tmp_path / "p.jsonl"), seal.documents, strict=True):
        assert set(row) == {"id", "prompt"}
        assert row["prompt"] in one.published
        assert not set(row["prompt"].replace("-", " ").split()) & set(one.trigger.words)


def test_other_answers_to_the_same_seal_are_a_second_try():
    seal, settings = sealed(), CheckSettings()
    assert check_triggers(seal, answers(**words(seal, 1)), settings, model="served").outcome == "inconclusive"
    second = check_triggers(seal, answers(**words(seal)), settings, model="served")
    assert second.outcome == "inconclusive"
    assert "other answers" in " ".join(second.reasons)
    assert check_triggers(seal, answers(**words(seal)), settings, model="another").outcome == "consistent"
