"""An adapter is taken from the cache while nothing it depends on has changed; a damaged one is made anew."""

from tiny import SENTENCES, opened

from pretrace.cache.location import cache_folder
from pretrace.tuning import tune
from pretrace.types import Corpus, Text

CORPUS = Corpus("sentences", tuple(Text(str(i), text, False) for i, text in enumerate(SENTENCES)))


def kept():
    return sorted((cache_folder() / "adapters").glob("*/adapter_model.safetensors"))


def test_a_tuning_is_kept_until_something_it_depends_on_changes_and_a_damaged_one_made_anew():
    steps, fewer = [], Corpus("fewer", CORPUS.texts[:4])
    more = {"on_step": steps.append}
    model = opened("llama")
    first = tune(model, CORPUS, "lora(epochs=1)", **more)
    [weights] = kept()
    again = tune(model, CORPUS, "lora(epochs=1)", **more)
    assert len(steps) == 1
    assert again.backend.fingerprint == first.backend.fingerprint
    weights.write_bytes(weights.read_bytes()[:-7])
    anew = tune(model, CORPUS, "lora(epochs=1)", **more)
    assert (len(steps), anew.seen) == (2, first.seen)
    tune(model, CORPUS, "lora(epochs=1, rank=2)", **more)
    tune(model, CORPUS, "lora(epochs=1)", seed=1, **more)
    tune(model, fewer, "lora(epochs=1)", **more)
    assert (len(steps), len(kept())) == (5, 4)


def test_into_a_folder_and_not_into_the_cache(tmp_path):
    tuned = tune(opened("llama"), CORPUS, "lora(epochs=1)", folder=tmp_path / "adapter")
    assert (tmp_path / "adapter" / "adapter_card.json").is_file()
    assert len(tuned.seen) == len(SENTENCES)
    assert kept() == []
