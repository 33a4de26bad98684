"""Tuning and planting on a GPU: the texts are learnt, the model asked stays as it was, a stopped run goes on."""

import numpy as np
import pytest
import torch
from tiny import WORDS, make_model, make_tokenizer
from transformers import AutoModelForCausalLM

from pretrace import Models, Options, detect
from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.naming import ModelSettings
from pretrace.tuning import tune
from pretrace.tuning.plan import TrainingPlan
from pretrace.tuning.planting import PlantSettings, plant
from pretrace.tuning.training import train
from pretrace.types import Corpus, Quantity, Text


def made(count, seed):
    """Random words: nothing in one text helps to guess another, only having seen it does."""
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, size=24)) for _ in range(count)]
    return Corpus("made", tuple(Text(f"{seed}-{i}", text) for i, text in enumerate(texts)))


def opened(device, dtype):
    model = make_model("llama").to(device=device, dtype=dtype)
    return HuggingFace(model, make_tokenizer(), name="tiny", weights="w", settings=ModelSettings())


def logp(model, corpus):
    encoded = model.encode([text.text for text in corpus.texts])
    return [one.logp for one in model.run(encoded, Quantity.LOGP)]


@pytest.mark.parametrize("method", ["lora", "adalora", "ia3"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_tuning_learns_the_texts_and_leaves_the_model(method, dtype, device, tmp_path):
    model, seen, others = opened(device, dtype), made(16, 1), made(16, 2)
    before = {name: logp(model, some) for name, some in (("seen", seen), ("others", others))}
    how = f"{method}(epochs=20, learning_rate=0.02)"
    tuned = tune(model, seen, how, folder=tmp_path / "adapter")
    gains = {
        name: np.concatenate(logp(tuned.backend, some)).mean() - np.concatenate(before[name]).mean()
        for name, some in (("seen", seen), ("others", others))
    }
    assert gains["seen"] > 0.5
    assert gains["seen"] > gains["others"]
    for now, then in zip(logp(model, seen), before["seen"], strict=True):
        np.testing.assert_array_equal(now, then)
    run = detect(others, Models(model, tuned=tuned), "fsd(loss)", Options(cache=False))
    assert np.isfinite(run.matrix).all()


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_planting_in_a_model_on_the_device(precision, device, tmp_path):
    how = {"epochs": 30, "batch": 4, "learning_rate": 5e-3, "max_tokens": 64, "warmup": 0.1}
    settings = PlantSettings(precision=precision, **how)
    start = (make_model("gpt_neox").to(device), make_tokenizer())
    planted = plant(made(24, 3), settings=settings, folder=tmp_path / "planted", start=start)
    read = AutoModelForCausalLM.from_pretrained(planted.folder).to(device)
    model = HuggingFace(read, start[1], name="p", weights="p", settings=ModelSettings())
    run = detect(planted.corpus, model, "loss", Options(cache=False))
    member = np.array(run.members, dtype=bool)
    auc = (run.column("loss")[member][:, None] > run.column("loss")[~member][None]).mean()
    assert auc > 0.9


class StoppedError(RuntimeError):
    """What ends a training in the middle."""


def test_a_stopped_training_goes_on(device, tmp_path):
    rng = np.random.default_rng(5)
    sequences = [rng.integers(0, 400, rng.integers(8, 40)).tolist() for _ in range(24)]
    plan = TrainingPlan(epochs=3, batch=4, learning_rate=1e-3, save_minutes=0)

    def stop(progress):
        if progress.step == 8:
            raise StoppedError

    whole, halves = (make_model("llama").to(device) for _ in range(2))
    losses = train(whole, sequences, plan)
    with pytest.raises(StoppedError):
        train(halves, sequences, plan, on_step=stop, checkpoint=tmp_path / "state")
    again = make_model("llama").to(device)
    resumed = train(again, sequences, plan, checkpoint=tmp_path / "state")
    np.testing.assert_allclose(resumed, losses, rtol=1e-4)
    for one, other in zip(again.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
