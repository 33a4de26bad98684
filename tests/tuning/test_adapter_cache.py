"""An adapter is taken from the cache while nothing it depends on has changed; a damaged one is made anew."""

import pytest
from tiny import SENTENCES, opened

from pretrace.cache.location import cache_folder
from pretrace.tuning import tune
from pretrace.tuning.plan import TrainingStep
from pretrace.types import Corpus, Text

CORPUS = Corpus("sentences", tuple(Text(str(i), text, False) for i, text in enumerate(SENTENCES)))


@pytest.fixture
def model():
    return opened("llama")


def kept():
    return sorted((cache_folder() / "adapters").glob("*/adapter_model.safetensors"))


def test_a_tuning_is_kept_until_something_it_depends_on_changes(model):
    steps: list[TrainingStep] = []
    first = tune(model, CORPUS, "lora(epochs=1)", on_step=steps.append)
    assert len(steps) == 1
    again = tune(model, CORPUS, "lora(epochs=1)", on_step=steps.append)
    assert len(steps) == 1
    assert again.backend.fingerprint == first.backend.fingerprint
    tune(model, CORPUS, "lora(epochs=1, rank=2)", on_step=steps.append)
    tune(model, CORPUS, "lora(epochs=1)", seed=1, on_step=steps.append)
    tune(model, Corpus("fewer", CORPUS.texts[:4]), "lora(epochs=1)", on_step=steps.append)
    assert len(steps) == 4
    assert len(kept()) == 4


def test_a_damaged_one_is_made_anew(model):
    steps: list[TrainingStep] = []
    first = tune(model, CORPUS, "lora(epochs=1)", on_step=steps.append)
    [weights] = kept()
    weights.write_bytes(weights.read_bytes()[:-7])
    again = tune(model, CORPUS, "lora(epochs=1)", on_step=steps.append)
    assert len(steps) == 2
    assert again.seen == first.seen


def test_into_a_folder_and_not_into_the_cache(model, tmp_path):
    tuned = tune(model, CORPUS, "lora(epochs=1)", folder=tmp_path / "adapter")
    assert (tmp_path / "adapter" / "adapter_card.json").is_file()
    assert len(tuned.seen) == len(SENTENCES)
    assert kept() == []
