"""Tuning with an adapter: the same again, the same after a kill, and nothing left behind when it fails."""

import json
import math
import resource
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from tiny import SENTENCES, make_model, make_tokenizer, opened, read, stop_at

from pretrace import tuning
from pretrace.backends.adapters import WEIGHTS, attach, inserted
from pretrace.cache import cache_folder, text_key
from pretrace.corpora import open_corpus
from pretrace.errors import ModelError, OutputError, TextsError
from pretrace.tuning import _Allocation, make_adapter, new_adapter
from pretrace.tuning import tune as tuned_by
from pretrace.tuning.artifacts import read_adapter, write_planted
from pretrace.tuning.plan import AdaLora, Ia3, Lora, TrainingPlan, methods
from pretrace.tuning.training import train
from pretrace.types import Corpus, Text

PAIRS = [(i, j) for i in range(4) for j in range(4)]
TEXTS = (Text(f"{i}{j}", f"{SENTENCES[i]} {SENTENCES[j]}", i % 2 == 0, f"g{i}") for i, j in PAIRS)
LABELLED = Corpus("made", tuple(TEXTS), "a test", ("a note",))
METHOD = Lora(rank=4, epochs=2, batch=2, learning_rate=1e-2)


def mean_logp(backend, texts=SENTENCES):
    return np.array([trace.logp.mean() for trace in read(backend, texts)])


def equal(left, right):
    left, right = (load_file(one.folder / WEIGHTS) for one in (left, right))
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize("name", ["lora", "adalora", "ia3"])
def test_the_same_seed_gives_the_same_bits_and_another_does_not(name, tmp_path):
    method = methods.make(f"{name}(epochs=2, batch=2)")
    first = make_adapter(opened(), LABELLED, method, folder=tmp_path / "first", seed=3)
    torch.seed()  # what the global state happens to be must not matter
    again = make_adapter(opened(), LABELLED, method, folder=tmp_path / "again", seed=3)
    assert first.card["files"] == again.card["files"]
    other = make_adapter(opened(), LABELLED, method, folder=tmp_path / "other", seed=4)
    assert not equal(first, other)


def test_the_card_says_what_was_done_and_the_texts_lie_beside_it(tmp_path):
    base = opened()
    odd = Text("odd", "half \ud800 pair\u2028and more", False, "")
    corpus = Corpus("made", (*LABELLED.texts, odd, Text("nothing", "", False)), "a test", ("a note",))
    seen = []
    made = make_adapter(base, corpus, METHOD, folder=tmp_path / "adapter", on_step=seen.append)
    card = json.loads((made.folder / "adapter_card.json").read_text())
    assert card == made.card
    assert (card["texts"], card["members"], card["nonmembers"], card["groups"]) == (9, 0, 9, 3)
    assert card["left_out"] == ["nothing"]
    assert (card["steps"], len(card["losses"])) == (10, 2)
    assert len(seen) == 10
    assert card["tokens"] == sum(len(e.tokens) - 1 for e in base.encode([t.text for t in made.corpus.texts]))
    assert card["base"]["weights"] == "w" * 64
    assert card["layers"] == ["query_key_value"]
    assert card["versions"].keys() >= {"torch", "peft", "transformers"}
    wanted = {text.id: text for text in corpus.texts if text.member is False and text.text}
    assert card["hashes"] == sorted({text_key(text.text).hex() for text in wanted.values()})
    kept = read_adapter(made.folder).corpus
    facts = {i: (t.text, t.member) for i, t in wanted.items()}
    assert {t.id: (t.text, t.member) for t in kept.texts} == facts
    others = open_corpus(made.folder / "texts.jsonl")  # as `pretrace tune` would read them
    assert {text.member for text in others.texts} == {False}
    assert {path.name for path in tmp_path.iterdir()} == {"adapter"}


@pytest.mark.parametrize(("labels", "limit"), [(True, 5), (False, 5), (True, 0)])
def test_a_saved_adapter_tells_how_to_do_it_again(labels, limit, tmp_path):
    """The placebo: the same texts, method and seed on another model; on the same one the same adapter."""
    corpus = LABELLED
    if not labels:
        corpus = Corpus("made", tuple(Text(t.id, t.text) for t in LABELLED.texts))
    method = Lora(rank=4, epochs=1, batch=2, on="members", limit=limit)
    first = make_adapter(opened(), corpus, method, folder=tmp_path / "first", seed=2)
    kept = read_adapter(first.folder)
    assert len(kept.corpus) == len(first.corpus) == limit
    assert bool(first.card["steps"]) == bool(first.card["losses"]) == bool(limit)
    again = make_adapter(
        opened(), kept.corpus, kept.method, folder=tmp_path / "again", seed=kept.card["seed"]
    )
    assert equal(first, again)
    other = make_adapter(
        opened("llama"), kept.corpus, kept.method, folder=tmp_path / "other", seed=kept.card["seed"]
    )
    assert other.card["hashes"] == first.card["hashes"]


@pytest.mark.parametrize("step", [1, 5])
def test_an_interrupted_tuning_goes_on_and_the_model_is_as_it_was(step, tmp_path, monkeypatch):
    monkeypatch.setattr(tuning, "SAVE_MINUTES", 0.0)
    whole = make_adapter(opened(), LABELLED, METHOD, folder=tmp_path / "whole")
    base = opened()
    before, modules = mean_logp(base), [id(module) for module in base.model.modules()]
    with pytest.raises(KeyboardInterrupt):
        make_adapter(base, LABELLED, METHOD, folder=tmp_path / "adapter", on_step=stop_at(step))
    assert [id(module) for module in base.model.modules()] == modules
    assert (mean_logp(base) == before).all()
    assert not base.model.training
    assert all(weight.requires_grad and weight.grad is None for weight in base.model.parameters())
    assert {path.name for path in tmp_path.iterdir()} == {".adapter.training", "whole"}

    seen = []
    done = make_adapter(base, LABELLED, METHOD, folder=tmp_path / "adapter", on_step=seen.append)
    assert seen[0].step == step + 1
    assert equal(done, whole)
    assert {path.name for path in tmp_path.iterdir()} == {"adapter", "whole"}


@pytest.mark.parametrize("other", ["alpha=16", "dropout=0.2"])
def test_what_another_adapter_left_is_not_gone_on_with_and_adalora_leaves_nothing(
    other, tmp_path, monkeypatch
):
    """All begin with the same weights, texts and plan."""
    monkeypatch.setattr(tuning, "SAVE_MINUTES", 0.0)
    for method in (METHOD, AdaLora(rank=2, epochs=2, batch=2)):
        with pytest.raises(KeyboardInterrupt):
            make_adapter(
                opened(), LABELLED, method, folder=tmp_path / type(method).__name__, on_step=stop_at(3)
            )
    assert {path.name for path in tmp_path.iterdir()} == {".Lora.training"}
    changed, seen = methods.make(f"lora(rank=4, epochs=2, batch=2, learning_rate=1e-2, {other})"), []
    make_adapter(opened(), LABELLED, changed, folder=tmp_path / "Lora", on_step=seen.append)
    assert seen[0].step == 1


@pytest.mark.parametrize("expression", ["lora(", "adalora(rank=2, ", "ia3("])
def test_what_is_saved_is_what_was_trained(expression, tmp_path):
    """AdaLoRA prunes by a mask while it trains and by shape when it is saved."""
    base, last = opened(), []

    def on_step(progress):
        if progress.step == progress.steps:
            base.model.eval()
            last.append(mean_logp(base))

    method = methods.make(f"{expression}epochs=4, batch=2, learning_rate=2e-2)")
    made = make_adapter(base, LABELLED, method, folder=tmp_path / "adapter", on_step=on_step)
    got = mean_logp(attach(base, made.folder).backend)
    assert np.abs(got - last[0]).max() < 1e-5
    assert np.abs(got - mean_logp(base)).max() > 1e-3


def test_adalora_ends_with_the_rank_it_was_given(tmp_path):
    """Of 2 layers with 4 directions each, 4 remain: 2 a layer on average."""
    for name, method in (
        ("adapter", AdaLora(rank=2, initial_rank=4, epochs=3, batch=2, learning_rate=1e-2)),
        ("one step", AdaLora(rank=2, limit=1, epochs=1)),
    ):
        made = make_adapter(opened(), LABELLED, method, folder=tmp_path / name)
        ranks = [len(t) for key, t in load_file(made.folder / WEIGHTS).items() if key.endswith("lora_A")]
        assert (len(ranks), sum(ranks)) == (2, 4)


def test_the_penalty_of_adalora_is_peft_s_own():
    from peft import AdaLoraModel

    model = make_model("gpt_neox")
    ids = torch.arange(2, 14)[None]
    with inserted(model, new_adapter(AdaLora(rank=3), steps=10, seed=0)) as made:
        tuner = made.model.base_model
        assert isinstance(tuner, AdaLoraModel)
        with torch.no_grad():
            plain = model(input_ids=ids, labels=ids).loss
            penalised = tuner(input_ids=ids, labels=ids).loss
        companion = _Allocation(tuner, weight=0.5, steps=10)
        assert float(companion.penalty().detach()) == pytest.approx(float(penalised - plain), rel=1e-4)
        assert companion.penalty().requires_grad


def test_layers_go_by_the_usual_names_or_are_all_linear_ones_where_peft_knows_none(tmp_path):
    layers = {
        name: make_adapter(
            opened("granite"), LABELLED, methods.make(f"{name}(epochs=1)"), folder=tmp_path / name
        ).card["layers"]
        for name in ("ia3", "lora")
    }
    assert layers["ia3"] == ["down_proj", "k_proj", "v_proj"]
    assert "lm_head" not in layers["lora"]
    assert set(layers["lora"]) >= {"q_proj", "o_proj", "up_proj", "down_proj"}
    odd = torch.nn.ModuleDict({name: torch.nn.Linear(4, 4) for name in ("k_proj", "v_proj", "outwards")})
    odd.config = SimpleNamespace(model_type="odd")
    with pytest.raises(ModelError, match=r"'odd' and found no feed-forward layers.*choose lora"):
        new_adapter(Ia3(), steps=1, seed=0)(odd)


def test_nothing_is_left_when_it_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(tuning, "SAVE_MINUTES", 0.0)
    base = opened()
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"thesis\.txt"):
        make_adapter(base, LABELLED, METHOD, folder=tmp_path / "taken", on_step=stop_at(1))
    members = Corpus("made", tuple(text for text in LABELLED.texts if text.member))
    with pytest.raises(TextsError, match="made has 8 members"):
        make_adapter(base, members, METHOD, folder=tmp_path / "adapter")

    def spoil(progress):
        if progress.step == 2:
            with torch.no_grad():
                next(w for w in base.model.parameters() if w.requires_grad).fill_(math.nan)

    before = mean_logp(base)
    with pytest.raises(ModelError, match="diverged"):
        make_adapter(base, LABELLED, METHOD, folder=tmp_path / "adapter", on_step=spoil)
    assert (mean_logp(base) == before).all()
    assert {path.name for path in tmp_path.iterdir()} == {"taken"}


PLAIN = Corpus("sentences", tuple(Text(str(i), text, False) for i, text in enumerate(SENTENCES)))


def kept():
    return sorted((cache_folder() / "adapters").glob("*/adapter_model.safetensors"))


def test_a_tuning_is_kept_until_something_it_depends_on_changes_and_a_damaged_one_made_anew(tmp_path):
    steps, fewer = [], Corpus("fewer", PLAIN.texts[:4])
    more = {"on_step": steps.append}
    model = opened("llama")
    first = tuned_by(model, PLAIN, "lora(epochs=1)", **more)
    [weights] = kept()
    again = tuned_by(model, PLAIN, "lora(epochs=1)", **more)
    assert len(steps) == 1
    assert again.backend.fingerprint == first.backend.fingerprint
    weights.write_bytes(weights.read_bytes()[:-7])
    anew = tuned_by(model, PLAIN, "lora(epochs=1)", **more)
    assert (len(steps), anew.seen) == (2, first.seen)
    tuned_by(model, PLAIN, "lora(epochs=1, rank=2)", **more)
    tuned_by(model, PLAIN, "lora(epochs=1)", seed=1, **more)
    tuned_by(model, fewer, "lora(epochs=1)", **more)
    assert (len(steps), len(kept())) == (5, 4)
    tuned = tuned_by(model, PLAIN, "lora(epochs=1, rank=3)", folder=tmp_path / "adapter")
    assert (tmp_path / "adapter" / "adapter_card.json").is_file()
    assert (len(tuned.seen), len(kept())) == (len(SENTENCES), 4)  # a folder in place of the cache


@pytest.fixture
def little_room():
    """Files may not grow beyond 3,000 bytes, as on a disk that is nearly full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def adapter(folder):
    make_adapter(opened("llama"), LABELLED, methods.make("lora(epochs=1)"), folder=folder)


def planted(folder):
    write_planted(folder, make_model("llama"), make_tokenizer(), corpus=LABELLED, card={})


def checkpoint(folder):
    train(make_model("llama"), [[1, 2]], TrainingPlan(save_minutes=0), checkpoint=folder)


@pytest.mark.parametrize("write", [adapter, planted, checkpoint])
def test_no_room_for_what_a_library_writes(tmp_path, little_room, write):
    with pytest.raises(OutputError, match=r"out cannot be written: File too large; choose a place"):
        write(tmp_path / "out")
    assert not [path for path in tmp_path.iterdir() if path.name != ".out.training"]


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    def full(*_, **__):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(OutputError, match=r"out cannot be written: the disk is full") as caught:
        adapter(tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())
