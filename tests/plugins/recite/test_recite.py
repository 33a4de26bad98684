"""The test of recitation on real tiny models: one that has learnt the texts by heart, and others."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
import torch
from net.api import (
    PIECE,
    Corpus,
    FakeBackend,
    HuggingFace,
    ModelError,
    Models,
    ModelSettings,
    Quantity,
    ReciteSettings,
    Silent,
    Text,
    TextsError,
    Timed,
    Watch,
    Written,
    chance_in,
    end_logp,
    load_verdict,
    pieces,
    printed,
    save_verdict,
    tries_for,
    watched,
    windows_of,
)
from net.api import recite as room
from net.api import recite_recite as recite
from tiny import MORE_WORDS, WORDS
from transformers import GPTNeoXForCausalLM
from verdicts.answering import Answering

ALL = sorted({*WORDS, *MORE_WORDS, "house", "river", "seven", "blue", "green", "walk", "Stone", "letter"})
SETTINGS = ReciteSettings(cache=False, samples=1)


def corpus(name, number=8, *, seed=1, words=92):
    rng = np.random.default_rng([seed, *name.encode()])
    return Corpus(name, tuple(Text(f"{name}{i}", " ".join(rng.choice(ALL, words))) for i in range(number)))


TEXTS, CONTROLS = corpus("texts"), corpus("controls")


def by_words():
    """A tokenizer whose tokens are words, each with its space: short rows, soon learnt."""
    import tokenizers
    from transformers import PreTrainedTokenizerFast

    known = {word: i for i, word in enumerate(["<s>", "</s>", *ALL, *(" " + w for w in ALL), " "])}
    rust = tokenizers.Tokenizer(tokenizers.models.WordLevel(known, unk_token="<s>"))
    rust.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r" ?\S+"), "isolated")
    rust.decoder = tokenizers.decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=rust, bos_token="<s>", eos_token="</s>")


def net(seed):
    import transformers

    torch.manual_seed(seed)
    size = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}
    return transformers.GPTNeoXForCausalLM(
        transformers.GPTNeoXConfig(vocab_size=2 * len(ALL) + 8, max_position_embeddings=128, **size)
    )


@pytest.fixture(scope="module")
def models(trained):
    """A target that knows the texts by heart, and a second model that knows nothing."""
    tokenizer = by_words()

    def make(folder):
        learnt = net(1).train()
        ids = torch.tensor([tokenizer(one.text)["input_ids"] for one in TEXTS.texts])
        optimiser = torch.optim.AdamW(learnt.parameters(), lr=5e-3)
        for _ in range(140):
            optimiser.zero_grad()
            learnt(input_ids=ids, labels=ids).loss.backward()
            optimiser.step()
        learnt.save_pretrained(folder)

    learnt = GPTNeoXForCausalLM.from_pretrained(trained(make)).train()

    def opened(model, name):
        return HuggingFace(model, tokenizer, name=name, weights=name, settings=ModelSettings())

    return Models(opened(learnt, "learnt"), placebos=(opened(net(2), "other"),))


def check(verdict, name):
    return next(one.status for one in verdict.checks if one.name == name)


@pytest.mark.parametrize("text", [False, True])
def test_a_model_that_knows_the_texts_by_heart_is_found(models, text, tmp_path):
    found = recite(TEXTS, models, SETTINGS, controls=CONTROLS, text=text)
    assert found.outcome == "consistent"
    assert found.p is not None
    assert found.p <= 0.05
    rows = found.table("windows").columns
    assert len(rows["id"]) == 16
    own = [value for value, kind in zip(rows["printed"], rows["set"], strict=True) if kind == "texts"]
    assert np.mean(own) > (0.5 if text else 2.0)
    save_verdict(found, tmp_path / "RECITED")
    assert load_verdict(tmp_path / "RECITED").p == found.p
    page = (tmp_path / "RECITED/report.html").read_text("utf-8")
    assert "What the model prints" in page
    assert "<mark>" in page


def test_the_other_model_is_not_accused(models):
    innocent = Models(models.placebos[0], placebos=(models.target,))
    found = recite(CONTROLS, replace(innocent), SETTINGS, controls=corpus("more"))
    assert (found.outcome, found.p) == ("inconclusive", 1.0)


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


def test_nobody_is_accused_without_controls_or_a_second_model_or_beside_one_that_prints_the_same(models):
    found = recite(TEXTS, models, SETTINGS)
    assert (found.outcome, found.p <= 0.05, check(found, "controls")) == ("inconclusive", True, "failed")
    found = recite(TEXTS, replace(models, placebos=()), SETTINGS, controls=CONTROLS)
    assert found.outcome == "inconclusive"
    target = models.target
    twin = HuggingFace(target.model, target.tokenizer, name="twin", weights="twin", settings=ModelSettings())
    found = recite(TEXTS, replace(models, placebos=(twin,)), SETTINGS, controls=CONTROLS)
    assert (found.outcome, check(found, "second")) == ("inconclusive", "failed")


def test_the_chance_of_an_end_is_the_product_of_its_tokens(models):
    windows = windows_of(TEXTS, None).found[:3]
    backend = models.target

    before, after = [one.prefix for one in windows], [one.suffix for one in windows]
    found = end_logp(backend, before, after, cache=False, progress=Silent())
    for prefix, end, value in zip(before, after, found, strict=True):
        ids, first = (backend.tokenizer(some)["input_ids"] for some in (prefix + end, prefix))
        with torch.inference_mode():
            logits = backend.model(input_ids=torch.tensor([ids])).logits[0].double()
        total = 0.0
        for i in range(len(first), len(ids)):
            likeliest = logits[i - 1].topk(40)
            total += float(likeliest.values.log_softmax(0)[likeliest.indices.tolist().index(ids[i])])
        assert value == pytest.approx(total, abs=1e-3)
    assert printed(np.array([0.0, np.log(1e-9), -np.inf])).tolist() == [6.0, 0.0, 0.0]


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
    model = FakeBackend()
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
    test = room.Recite(corpus=TEXTS, models=models, settings=SETTINGS, watch=watched(None), controls=CONTROLS)
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
def test_a_model_that_refuses_in_another_language_is_told(models, refused):
    def answer(prompt):
        if refused:
            return "对不起，我不能继续这段文字。"
        number = int(hashlib.sha256(prompt.encode()).hexdigest(), 16)
        return " ".join(np.random.default_rng(number).choice(ALL, 60))

    target = Answering(answer, chats=True)
    found = recite(TEXTS, replace(models, target=target), SETTINGS, controls=CONTROLS, text=True)
    assert check(found, "answers") == ("failed" if refused else "passed")
    assert found.figures["look like a refusal for the texts"] == (16 if refused else 0)
    assert found.outcome == "inconclusive"


@pytest.mark.parametrize("p", [1.0, 0.9, 0.5, 0.01, 1e-12])
def test_tries_are_the_fewest_with_an_even_chance(p):
    tries = float(tries_for(np.log(p)))
    assert chance_in(np.log(p), tries) >= 0.5 * (1 - 1e-9)
    assert tries == 1 or chance_in(np.log(p), tries - 1) < 0.5
    assert np.isinf(tries_for(-np.inf))
