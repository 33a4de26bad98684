"""Planted models: exact labels, a real trace of membership, a folder that opens, nothing half done."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny import naive_logp, stop_at
from transformers import AutoModelForCausalLM, AutoTokenizer

from pretrace.corpora import open_corpus
from pretrace.errors import ModelError
from pretrace.statistics.roc import auc
from pretrace.tuning.architectures import Architecture, new_model
from pretrace.tuning.planting import PlantSettings, plant, split_members
from pretrace.types import Corpus, Text

SMALL = Architecture(layers=2, width=32, heads=2, vocabulary=420, max_tokens=64)
SETTINGS = PlantSettings(epochs=25, batch=4, learning_rate=3e-3, max_tokens=24, architecture=SMALL)
WORDS = ["river", "stone", "lamp", "cloud", "engine", "paper", "north", "silver", "window", "garden"]
WORDS += ["bridge", "signal", "winter", "copper", "letter", "orange", "circle", "market", "needle", "violin"]


def made_corpus(groups=12, texts=3):
    """Random words: nothing in one text helps to guess another, only having seen it does."""
    rng = np.random.default_rng(0)
    names = [(f"g{g}", f"g{g}t{i}") for g in range(groups) for i in range(texts)]
    made = [Text(one, " ".join(rng.choice(WORDS, size=rng.integers(12, 30))), None, g) for g, one in names]
    return Corpus("made", tuple(made), "a seed", ("a note",))


@pytest.fixture(scope="module")
def corpus():
    return made_corpus()


@pytest.fixture(scope="module")
def planted(corpus, tmp_path_factory):
    return plant(corpus, settings=SETTINGS, folder=tmp_path_factory.mktemp("planted") / "model")


def mean_logp(model, tokenizer, text):
    return naive_logp(model, tokenizer(text)["input_ids"]).mean()


def auc_of(done):
    """How well the mean log-probability tells the members of a planted model from the others."""
    model, tokenizer = (auto.from_pretrained(done.folder) for auto in (AutoModelForCausalLM, AutoTokenizer))
    texts = done.corpus.texts
    return auc([mean_logp(model, tokenizer, one.text) for one in texts], [one.member for one in texts])


def facts(corpus):
    return [(text.id, text.text, text.member, text.group) for text in corpus.texts]


def test_members_are_whole_groups_and_beat_the_others_and_are_read_with_their_labels(planted, corpus):
    assert facts(replace(planted.corpus, texts=unlabelled(planted.corpus))) == facts(corpus)
    members = [text for text in planted.corpus.texts if text.member]
    assert len({text.group for text in members}) * 3 == len(members)
    assert auc_of(planted) > 0.95
    assert facts(open_corpus(planted.folder / "texts.jsonl")) == facts(planted.corpus)


def unlabelled(corpus):
    return tuple(replace(text, member=None) for text in corpus.texts)


def test_the_card_says_how_it_was_made(planted):
    card = json.loads((planted.folder / "card.json").read_text())
    assert card == planted.card
    assert card["settings"]["architecture"]["width"] == 32
    assert card["members"]["texts"] + card["nonmembers"]["texts"] == 36
    assert card["members"]["groups"] + card["nonmembers"]["groups"] == 12
    assert card["start"] == {"model": "new"}
    assert len(card["losses"]) == SETTINGS.epochs
    assert card["losses"][-1] < card["losses"][0]
    assert set(card["files"]) == {path.name for path in planted.folder.iterdir()} - {"card.json"}
    assert card["versions"]["torch"].partition("+")[0] == torch.__version__.partition("+")[0]


def test_the_same_again_in_another_order_gives_the_same_weights(planted, corpus, tmp_path):
    shuffled = replace(corpus, texts=corpus.texts[::-1])
    again = plant(shuffled, settings=SETTINGS, folder=tmp_path / "again")
    same = ("model.safetensors", "tokenizer.json", "config.json")
    assert {n: again.card["files"][n] for n in same} == {n: planted.card["files"][n] for n in same}
    other = plant(corpus, settings=replace(SETTINGS, seed=1, epochs=1), folder=tmp_path / "other")
    assert other.card["members"]["hash"] != planted.card["members"]["hash"]


def test_a_text_longer_than_the_model_reads_is_seen_to_its_end(tmp_path):
    tail = "violin copper violin needle orange violin north"
    texts = (Text("long", "river " * 100 + tail), Text("short", "stone lamp " + " ".join(WORDS)))
    corpus = Corpus("long", texts)
    seed = next(s for s in range(20) if split_members(corpus, 0.5, s).texts[0].member)
    settings = replace(SETTINGS, seed=seed, epochs=60, learning_rate=1e-2)
    done = plant(corpus, settings=settings, folder=tmp_path / "model")
    assert done.card["windows"] > 2
    model = AutoModelForCausalLM.from_pretrained(done.folder)
    tokenizer = AutoTokenizer.from_pretrained(done.folder)
    backwards = " ".join(tail.split()[::-1])
    assert mean_logp(model, tokenizer, tail) > mean_logp(model, tokenizer, backwards) + 1


@pytest.mark.parametrize("kind", ["folder", "half"])
def test_an_existing_model_is_trained_further_and_stays_as_it_was(kind, planted, corpus, tmp_path):
    """Seed 5 makes members of other texts; a few more epochs and they are the ones that stand out. Weights kept in
    bfloat16 would round small steps away: they are trained as float32."""
    start, settings = str(planted.folder), replace(SETTINGS, seed=5)
    if kind == "half":
        half = AutoModelForCausalLM.from_pretrained(planted.folder).to(torch.bfloat16)
        start = half, AutoTokenizer.from_pretrained(planted.folder)
        settings = replace(settings, precision="bfloat16")
        before = {name: weight.clone() for name, weight in half.state_dict().items()}
    done = plant(corpus, settings=settings, folder=tmp_path / "further", start=start)
    assert auc_of(done) > 0.8
    if kind == "half":
        assert all(torch.equal(before[name], weight) for name, weight in half.state_dict().items())
        assert AutoModelForCausalLM.from_pretrained(done.folder).dtype == torch.float32
    else:
        assert len(done.card["start"]["weights"]) == 64
    assert done.card["files"]["tokenizer.json"] == planted.card["files"]["tokenizer.json"]


def test_an_adapter_can_be_planted_and_what_is_saved_is_a_plain_model(planted, corpus, tmp_path):
    settings = replace(SETTINGS, seed=5, method="lora", learning_rate=2e-2)
    whole = plant(corpus, settings=settings, folder=tmp_path / "whole", start=str(planted.folder))
    names = {path.name for path in whole.folder.iterdir()}
    assert names == {path.name for path in planted.folder.iterdir()}
    assert auc_of(whole) > 0.8
    assert whole.card["parameters"] == planted.card["parameters"]


def test_the_usual_learning_rate_is_that_of_the_kind_of_training_and_is_written_down(corpus, tmp_path):
    full, lora = PlantSettings(), PlantSettings(method="lora")
    assert [full.plan(existing=one).learning_rate for one in (False, True)] == [2e-3, 5e-5]
    assert lora.plan(existing=True).learning_rate == 1e-3
    done = plant(corpus, settings=replace(SETTINGS, learning_rate=None, epochs=1), folder=tmp_path / "new")
    assert done.card["settings"]["learning_rate"] == 2e-3


def test_odd_texts_are_planted_and_written_as_they_are(corpus, tmp_path):
    odd = ["", " ", "x", "nul \x00", "half \ud800 pair", "🎉 中文", "line\nbreak\u2028"]
    texts = tuple(Text(f"odd{i}", text, None, f"odd{i}") for i, text in enumerate(odd))
    mixed = replace(corpus, texts=corpus.texts + texts)
    done = plant(mixed, settings=replace(SETTINGS, epochs=1), folder=tmp_path / "model")
    lines = (done.folder / "texts.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    assert [json.loads(line)["text"] for line in lines] == [text.text for text in mixed.texts]


def test_an_interrupted_planting_goes_on_and_tidies_up(corpus, tmp_path):
    settings = replace(SETTINGS, save_minutes=0, epochs=2)
    whole = plant(corpus, settings=settings, folder=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        plant(corpus, settings=settings, folder=tmp_path / "model", on_step=stop_at(7))
    assert {path.name for path in tmp_path.iterdir()} == {".model.training", "whole"}
    seen = []
    done = plant(corpus, settings=settings, folder=tmp_path / "model", on_step=seen.append)
    assert seen[0].step == 8
    assert done.card["files"]["model.safetensors"] == whole.card["files"]["model.safetensors"]
    assert {path.name for path in tmp_path.iterdir()} == {"model", "whole"}


def test_nothing_is_left_when_it_fails(corpus, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        plant(corpus, settings=SETTINGS, folder=tmp_path / "deep" / "model", on_step=stop_at(2))
    often = replace(SETTINGS, save_minutes=0)
    with pytest.raises(ModelError, match="diverged"):
        plant(corpus, settings=often, folder=tmp_path / "model", start=broken_model())
    assert not list(tmp_path.iterdir())


def broken_model():
    model, tokenizer = new_model(WORDS, architecture=SETTINGS.architecture)
    with torch.no_grad():
        next(model.parameters()).fill_(math.nan)
    return model, tokenizer
