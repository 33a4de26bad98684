"""Generated texts are made once, a killed run goes on, and a tuned generator writes like what it was tuned on."""

import pytest
from tiny import SENTENCES, make_tokenizer, opened
from tokenizers import decoders

from pretrace.cache import Draw, cache_folder
from pretrace.testing import Memory
from pretrace.types import Sampling
from pretrace.verdicts.audit import snippets
from pretrace.verdicts.audit.snippets import complete, tuned_generator

GREEDY = Draw(8, Sampling(temperature=0), 0)


class Echo:
    """A generator that writes the prompt backwards and remembers what it was asked."""

    name, fingerprint = "echo", "echo"

    def __init__(self):
        self.facts = {}
        self.asked = []

    def spans(self, text):
        return Memory().spans(text)

    def complete(self, prompts, *, tokens, sampling, seed):
        self.asked.append(list(prompts))
        return [f" {prompt[::-1]} {tokens} {sampling.temperature} {seed}" for prompt in prompts]


def test_a_text_is_written_once_a_setting(monkeypatch):
    monkeypatch.setattr(snippets, "_CHUNK", 2)
    echo = Echo()
    prompts = ["one", "three", "one", "", "seven\ud800"]
    right = [f" {prompt[::-1]} 4 1.0 7" for prompt in prompts]
    assert complete(echo, prompts, Draw(4, Sampling(), 7)) == right
    assert echo.asked == [["seven\ud800", "three"], ["one", ""]]  # the longest first, each once
    again = Echo()
    assert complete(again, [*prompts, "eleven"], Draw(4, Sampling(), 7))[:5] == right
    assert again.asked == [["eleven"]]
    for draw in (Draw(4, Sampling(), 8), Draw(4, Sampling(0.5), 7), Draw(5, Sampling(), 7)):
        complete(again, ["one"], draw)
    assert again.asked[1:] == [["one"]] * 3
    assert complete(again, [], Draw()) == []


def test_without_a_cache_nothing_is_kept(model):
    echo = Echo()
    for _ in range(2):
        complete(echo, ["one"], Draw(), cache=False)
    assert echo.asked == [["one"]] * 2
    generator = tuned_generator(model, SENTENCES, "lora(epochs=1)", cache=False)
    assert complete(generator, ["The cat"], GREEDY, cache=False)
    assert not [*cache_folder().glob("adapters/*"), *cache_folder().glob("continuations/*")]


@pytest.fixture
def model():
    tokenizer = make_tokenizer()
    tokenizer.backend_tokenizer.decoder = decoders.ByteLevel()
    return opened("llama", tokenizer)


def test_a_tuned_generator_writes_like_its_texts_and_is_tuned_once(model):
    steps = []
    method = "lora(rank=16, epochs=100, learning_rate=3e-2, dropout=0.0)"
    text = "one two three four five six seven eight nine ten eleven twelve"
    generator, again = (
        tuned_generator(model, [text] * 8, method, seed=1, on_step=steps.append) for _ in range(2)
    )
    assert len(steps) == 100
    prompt = "one two three four five six seven"
    [made] = complete(generator, [prompt], GREEDY)
    assert made.startswith(" eight nine ten")
    assert again.fingerprint == generator.fingerprint
    plain = tuned_generator(model, [], method)
    assert plain.fingerprint == tuned_generator(model, [text], " none ").fingerprint != generator.fingerprint
    assert complete(plain, [prompt], GREEDY) != [made]
