"""The test of recitation: what is asked, what is printed of it, what withholds it."""

from dataclasses import replace

import numpy as np
import pytest
from net.api import (
    PIECE,
    Corpus,
    Memory,
    ModelError,
    Models,
    Progress,
    Quantity,
    ReciteSettings,
    Text,
    TextsError,
    Timed,
    Watch,
    Written,
    chance_in,
    end_logp,
    pieces,
    printed,
    save_verdict,
    tries_for,
    windows_of,
)
from net.api import recite as room
from net.api import recite_recite as recite
from tiny import MORE_WORDS, WORDS

ALL = sorted({*WORDS, *MORE_WORDS, "house", "river", "seven", "blue", "green", "walk", "Stone", "letter"})
SETTINGS = ReciteSettings(cache=False, samples=1)


def corpus(name, number=8, *, seed=1, words=92):
    rng = np.random.default_rng([seed, *name.encode()])
    return Corpus(name, tuple(Text(f"{name}{i}", " ".join(rng.choice(ALL, words))) for i in range(number)))


TEXTS, CONTROLS = corpus("texts"), corpus("controls")


@pytest.fixture(scope="module")
def models():
    """A target that knows the texts by heart, and a second model that knows nothing."""
    learnt = Memory([one.text for one in TEXTS.texts], name="learnt")
    return Models(learnt, placebos=(Memory(name="other"),))


def check(verdict, name):
    return next(one.status for one in verdict.checks if one.name == name)


@pytest.mark.parametrize("text", [False, True])
def test_what_is_printed_is_shown(models, text, tmp_path):
    found = recite(TEXTS, models, SETTINGS, controls=CONTROLS, text=text)
    rows = found.table("windows").columns
    assert len(rows["id"]) == 16
    own = [value for value, kind in zip(rows["printed"], rows["set"], strict=True) if kind == "texts"]
    assert np.mean(own) > (0.5 if text else 2.0)
    save_verdict(found, tmp_path / "RECITED")
    page = (tmp_path / "RECITED/report.html").read_text("utf-8")
    assert "What the model prints" in page
    assert "<mark>" in page


def test_nobody_is_accused_without_controls(models):
    found = recite(TEXTS, models, SETTINGS)
    assert (found.outcome, found.p <= 0.05, check(found, "controls")) == ("inconclusive", True, "failed")


def test_the_chance_of_an_end_is_the_product_of_its_tokens(models):
    """The model gives each character of its texts 0.01 nats; that it draws as a softmax does: tests/scores."""
    windows = windows_of(TEXTS, None).found[:3]
    before, after = [one.prefix for one in windows], [one.suffix for one in windows]
    found = end_logp(models.target, before, after, cache=False, progress=Progress())
    assert found == pytest.approx([-0.01 * len(end) for end in after], rel=1e-5)
    assert printed(np.array([0.0, np.log(1e-9), -np.inf])).tolist() == [6.0, 0.0, 0.0]


@pytest.mark.parametrize("text", [False, True])
def test_a_second_model_is_asked_only_where_it_could_withhold(models, text):
    innocent = replace(models, target=models.placebos[0], placebos=(models.target,))
    stages = [one.name for one in room.stages_of(windows_of(TEXTS, CONTROLS), innocent, SETTINGS, text=text)]
    assert stages[:2] == ["reading with the model in question", "reading with learnt"]
    watch = Timed(Watch())
    found = recite(TEXTS, innocent, SETTINGS, controls=CONTROLS, text=text, watch=watch)
    assert found.outcome == "inconclusive"
    assert check(found, "second") == "not run"
    assert "reading with learnt" not in watch.seconds
    watch = Timed(Watch())
    assert check(recite(TEXTS, models, SETTINGS, text=text, watch=watch), "second") == "passed"
    assert "reading with other" in watch.seconds


def test_text_that_can_be_copied_is_left_out():
    whole = corpus("whole", 6, words=200)
    first = whole.texts[0].text
    doubled = replace(whole, texts=(*whole.texts, Text("copy", first), Text("refrain", first[:250] * 8)))
    made = windows_of(doubled, None)
    # neither the copy, its original nor the refrain
    assert all("w" in one.document for one in made.found)
    assert "whole0" not in made.documents(control=False)
    assert made.left["shared with another document"] > 0
    assert made.left["repeated from their beginning"] > 0


def test_a_window_is_held_against_another_document_of_its_set():
    made = windows_of(corpus("a", 6, words=300), corpus("b", 6, words=300), seed=3)
    ends = {(one.control, one.suffix): one.document for one in made.found}
    assert all(ends[one.control, one.other] != one.document for one in made.found)
    assert made == windows_of(corpus("a", 6, words=300), corpus("b", 6, words=300), seed=3)


def test_pieces_are_the_text_without_a_short_rest():
    for text in ("word " * 300, "春眠不觉晓处处闻啼鸟" * 40, "x" * 1000, ""):
        made = pieces(text)
        assert text.startswith("".join(made))
        assert len(text.encode()) - len("".join(made).encode()) < PIECE + 1
        assert all(len(one.encode()) >= PIECE for one in made)


def test_texts_too_short_for_a_window_are_told():
    with pytest.raises(TextsError, match="0 of 8 documents of short have a window"):
        windows_of(corpus("short", words=20), None)
    some = replace(TEXTS, texts=(*TEXTS.texts, Text("tiny", "too short")))
    assert [one.id for one in windows_of(some, None).short] == ["tiny"]


def test_a_model_without_the_likeliest_tokens_is_refused():
    model = Memory()
    model.offers = Quantity.LOGP  # as behind a server
    with pytest.raises(ModelError, match="--access text"):
        recite(TEXTS, Models(model), SETTINGS, controls=CONTROLS)


HOW = {"draws": SETTINGS.draws, "seed": 0}


def values(test, texts, controls):
    """What a model would make of the windows that prints those of either set so far, and no other document's end."""
    own = np.array([controls if one.control else texts for one in test.windows.found])
    own = own + np.random.default_rng(round(10 * (texts + 7 * controls))).uniform(0, 0.1, len(own))
    return test.numbers(room.Recited(own, np.zeros(len(own))))


def test_what_is_printed_of_controls_and_by_a_second_model_counts_against_an_accusation(models):
    test = room.Recite(corpus=TEXTS, models=models, settings=SETTINGS, controls=CONTROLS)
    assert test.tested(values(test, 2.0, 0.0), **HOW).p < 0.05
    # it prints texts of this kind, whether it read them or not
    assert test.tested(values(test, 2.0, 2.0), **HOW).p > 0.05
    assert test.tested(values(test, 0.0, 0.0), **HOW).p > 0.05
    nothing = values(test, 0.0, 0.0)
    assert test.beyond(values(test, 4.0, 0.0), nothing, **HOW).p < 0.05
    assert test.beyond(values(test, 4.0, 0.0), values(test, 1.5, 0.0), **HOW).p < 0.05
    # more than half as far
    assert test.beyond(values(test, 4.0, 0.0), values(test, 2.5, 0.0), **HOW).p > 0.05
    assert test.beyond(values(test, 4.0, 4.0), nothing, **HOW).p > 0.05


def test_refusals_are_told_in_any_language_by_what_they_share():
    ends = ["uno dos tres cuatro cinco seis siete ocho nueve diez once doce"] * 2
    ends += ["one two three four five six seven eight nine ten eleven twelve"] * 2
    windows = [room.Window(f"d{i}", 0, f"beginning {i}", end, "other") for i, end in enumerate(ends)]
    no = Written("Lo siento, pero no puedo continuar ese texto porque es de otros y tiene derechos.")
    short = Written("Das darf ich nicht.")
    cut = Written("Das darf ich nicht.", ended=False)
    good = Written("uno dos tres cuatro cinco seis.")
    other = Written("and so the cat went on to sit on that other mat until the end of it came")
    written = [[no, good], [no, other], [no, short], [cut, Written("")]]
    assert room.refusing(windows, written) == [[True, False], [True, False], [True, True], [False, False]]
    assert room.refusing(windows[:2], written[:2]) == [[False, False]] * 2  # two alike may be chance


@pytest.mark.parametrize("refused", [True, False])
def test_a_model_that_refuses_in_another_language_is_told(models, refused, monkeypatch):
    innocent = replace(models, target=Memory(name="innocent"))
    if refused:
        no = Written("对不起，我不能继续这段文字。")
        monkeypatch.setattr(
            Memory, "continued", lambda _, prompts, draws, __: [[no for _ in draws] for _ in prompts]
        )
    found = recite(TEXTS, innocent, SETTINGS, controls=CONTROLS, text=True)
    assert check(found, "answers") == ("failed" if refused else "passed")
    assert found.figures["look like a refusal for the texts"] == (16 if refused else 0)
    assert found.outcome == "inconclusive"


@pytest.mark.parametrize("p", [1.0, 0.9, 0.5, 0.01, 1e-12])
def test_tries_are_the_fewest_with_an_even_chance(p):
    tries = float(tries_for(np.log(p)))
    assert chance_in(np.log(p), tries) >= 0.5 * (1 - 1e-9)
    assert tries == 1 or chance_in(np.log(p), tries - 1) < 0.5
    assert np.isinf(tries_for(-np.inf))
