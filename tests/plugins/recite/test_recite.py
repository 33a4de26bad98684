"""The test of recitation: what is asked, what is printed of it, what withholds it."""

from dataclasses import replace

import numpy as np
import pytest
from net.api import Corpus, Memory, ModelError, Models, Progress, Text, Watch, Written, save_verdict
from net.api import recite as room
from tiny import MORE_WORDS, WORDS

ALL = sorted({*WORDS, *MORE_WORDS, "house", "river", "seven", "blue", "green", "walk", "Stone", "letter"})
SETTINGS = room.ReciteSettings(cache=False, samples=1)


def corpus(name, number=8, words=92):
    rng = np.random.default_rng([1, *name.encode()])
    return Corpus(name, tuple(Text(f"{name}{i}", " ".join(rng.choice(ALL, words))) for i in range(number)))


TEXTS, CONTROLS = corpus("texts"), corpus("controls")
WINDOWS = room.windows_of(TEXTS, CONTROLS, SETTINGS)
KNOWS, OTHER = Memory([one.text for one in TEXTS.texts], name="learnt"), Memory(name="other")
MODELS = Models(KNOWS, placebos=(OTHER,))
"""A target that knows the texts by heart, and a second model that knows nothing."""


def check(verdict, name):
    return next(one.status for one in verdict.checks if one.name == name)


@pytest.mark.parametrize("text", [False, True])
def test_what_is_printed_is_shown(text, tmp_path):
    found = room.recite(TEXTS, MODELS, SETTINGS, controls=CONTROLS, text=text)
    rows = found.table("windows").columns
    own = [value for value, kind in zip(rows["printed"], rows["set"], strict=True) if kind == "texts"]
    assert (len(rows["id"]), len(own)) == (16, 8)
    assert np.mean(own) > (0.5 if text else 2.0)
    save_verdict(found, tmp_path / "RECITED")
    page = (tmp_path / "RECITED/report.html").read_text("utf-8")
    assert "What the model prints" in page
    assert "<mark>" in page


def test_the_chance_of_an_end_is_the_product_of_its_tokens():
    """The model gives each character of its texts 0.01 nats; that it draws as a softmax does: tests/scores."""
    before, after = zip(*((one.prefix, one.suffix) for one in WINDOWS.found[:3]), strict=True)
    found = room._end_logp(KNOWS, before, after, cache=False, progress=Progress())
    assert found == pytest.approx([-0.01 * len(end) for end in after], rel=1e-5)
    assert room._how_far(np.array([0.0, np.log(1e-9), -np.inf])).tolist() == [6.0, 0.0, 0.0]


@pytest.mark.parametrize("text", [False, True])
def test_a_second_model_is_asked_only_where_it_could_withhold(text):
    watch = Watch()
    found = room.recite(
        TEXTS, Models(OTHER, placebos=(KNOWS,)), SETTINGS, controls=CONTROLS, text=text, watch=watch
    )
    assert (found.outcome, check(found, "second")) == ("inconclusive", "not run")
    assert "reading with learnt" not in watch.seconds
    watch = Watch()
    found = room.recite(TEXTS, MODELS, SETTINGS, text=text, watch=watch)
    assert (found.p <= 0.05, check(found, "second")) == (True, "passed")
    assert "reading with other" in watch.seconds
    # without controls nobody is accused
    assert (found.outcome, check(found, "controls")) == ("inconclusive", "failed")
    with pytest.raises(ModelError, match="is the target, so nothing would be left"):
        room.recite(TEXTS, replace(MODELS, reference=MODELS.target), SETTINGS, text=text)


def test_text_that_can_be_copied_is_left_out():
    whole = corpus("whole", 6, words=200)
    first = whole.texts[0].text
    doubled = replace(whole, texts=(*whole.texts, Text("copy", first), Text("refrain", first[:250] * 8)))
    made = room.windows_of(doubled, None, SETTINGS)
    # neither the copy, its original nor the refrain
    assert set(made.documents(control=False)) == {f"whole{i}" for i in range(1, 6)}
    assert made.left["shared with another document"] > 0
    assert made.left["repeated from their beginning"] > 0


def test_a_window_is_held_against_another_document_of_its_set_and_of_its_place():
    made = room.windows_of(corpus("a", 6, words=300), corpus("b", 6, words=300), SETTINGS)
    ends = {(one.control, one.suffix): one for one in made.found}
    others = [(one, ends[one.control, one.other]) for one in made.found]
    assert all(one.document != other.document for one, other in others)
    assert np.mean([one.place == other.place for one, other in others]) > 0.8  # a last window may be alone
    spread = room._cut_windows({text.id: text.text for text in corpus("a", 6, words=300).texts}, {}, 2, 0)
    assert {one.place for one in spread.found} == {0, max(one.place for one in made.found) // 2}


def test_pieces_are_the_text_without_a_short_rest():
    for text in ("word " * 300, "春眠不觉晓处处闻啼鸟" * 40, "x" * 1000, ""):
        made = room._pieces(text)
        assert text.startswith("".join(made))
        assert len(text.encode()) - len("".join(made).encode()) < room.PIECE + 1
        assert all(len(one.encode()) >= room.PIECE and len(one) <= room.PIECE + 42 for one in made)
    some = replace(TEXTS, texts=(*TEXTS.texts, Text("tiny", "too short")))
    assert [one.id for one in room.windows_of(some, None, SETTINGS).short] == ["tiny"]


@pytest.mark.parametrize(
    ("target", "second", "found"),
    [
        ((2.0, 0.0), None, True),
        ((2.0, 2.0), None, False),  # it prints texts of this kind, whether it read them or not
        ((0.0, 0.0), None, False),
        ((4.0, 0.0), (0.0, 0.0), True),
        ((4.0, 0.0), (1.5, 0.0), True),
        ((4.0, 0.0), (2.5, 0.0), False),  # more than half as far
        ((4.0, 4.0), (0.0, 0.0), False),
    ],
)
def test_what_is_printed_of_controls_and_by_a_second_model_counts_against_an_accusation(
    target, second, found
):
    """Models that print the windows of texts and controls so far, and no other document's end."""
    own = {"controls": CONTROLS, "windows": WINDOWS}
    test = room._Recite(corpus=TEXTS, models=MODELS, settings=SETTINGS, **own)

    def values(texts, controls):
        own = np.array([controls if one.control else texts for one in test.windows.found])
        own = own + np.random.default_rng(round(10 * (texts + 7 * controls))).uniform(0, 0.1, len(own))
        return test.numbers(room._Recited(own, np.zeros(len(own))))

    how = {"draws": SETTINGS.draws, "seed": 0}
    if second is None:
        p = test.tested(values(*target), **how).p
    else:
        p = test.beyond(values(*target), values(*second), **how).p
    assert (p < 0.05) == found


def test_refusals_are_told_in_any_language_by_what_they_share():
    ends = ["uno dos tres cuatro cinco seis siete ocho nueve diez once doce"] * 2
    ends += ["one two three four five six seven eight nine ten eleven twelve"] * 2
    windows = [room._Window(f"d{i}", 0, f"beginning {i}", end, "other") for i, end in enumerate(ends)]
    no = Written("Lo siento, pero no puedo continuar ese texto porque es de otros y tiene derechos.")
    short = Written("Das darf ich nicht.")
    cut = Written("Das darf ich nicht.", ended=False)
    good = Written("uno dos tres cuatro cinco seis.")
    other = Written("and so the cat went on to sit on that other mat until the end of it came")
    written = [[no, good], [no, other], [no, short], [cut, Written("")]]
    assert room._refusing(windows, written) == [[True, False], [True, False], [True, True], [False, False]]
    assert room._refusing(windows[:2], written[:2]) == [[False, False]] * 2  # two alike may be chance


@pytest.mark.parametrize("refused", [True, False])
def test_a_model_that_refuses_in_another_language_is_told(refused, monkeypatch):
    if refused:
        no = Written("对不起，我不能继续这段文字。")
        said = lambda _, prompts, draws, __: [[no for _ in draws] for _ in prompts]  # noqa: E731
        monkeypatch.setattr(Memory, "continued", said)
    found = room.recite(
        TEXTS, replace(MODELS, target=Memory(name="innocent")), SETTINGS, controls=CONTROLS, text=True
    )
    assert (found.outcome, check(found, "answers")) == ("inconclusive", "failed" if refused else "passed")
    assert found.figures["look like a refusal for the texts"] == (16 if refused else 0)


@pytest.mark.parametrize("p", [1.0, 0.9, 0.5, 0.01, 1e-12])
def test_tries_are_the_fewest_with_an_even_chance(p):
    tries, missed = float(room._tries_for(np.log(p))), np.log1p(-p) if p < 1 else -np.inf
    assert -np.expm1(tries * missed) >= 0.5 * (1 - 1e-9)
    assert tries == 1 or -np.expm1((tries - 1) * missed) < 0.5
    assert np.isinf(room._tries_for(-np.inf))
