"""Generated texts are made once, a killed run goes on, and a tuned generator writes like what it was tuned on."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from processes import Start
from tiny import SENTENCES, make_model, make_tokenizer
from tokenizers import decoders

from pretrace.backends.generation import Completer
from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.settings import ModelSettings
from pretrace.cache.location import cache_folder
from pretrace.cache.store import Draw
from pretrace.errors import ExpressionError, ModelError
from pretrace.testing import FakeBackend
from pretrace.tuning.plan import TrainingStep
from pretrace.types import Progress, Quantity, Sampling
from pretrace.verdicts.audit import snippets
from pretrace.verdicts.audit.snippets import complete, tuned_generator

GREEDY = Draw(8, Sampling(temperature=0), 0)


class Echo:
    """A generator that writes the prompt backwards and remembers what it was asked."""

    name, fingerprint = "echo", "echo"

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self.asked: list[list[str]] = []

    def spans(self, text: str) -> npt.NDArray[np.int64]:
        return FakeBackend().spans(text)

    def complete(self, prompts: Sequence[str], *, tokens: int, sampling: Sampling, seed: int) -> list[str]:
        self.asked.append(list(prompts))
        return [f" {prompt[::-1]} {tokens} {sampling.temperature} {seed}" for prompt in prompts]


class Shown(Progress):
    """Progress that remembers."""

    def __init__(self) -> None:
        self.texts = 0
        self.done: list[tuple[int, int, bool]] = []

    def begin(self, texts: int) -> None:
        self.texts += texts

    def advance(self, texts: int, tokens: int, seconds: float, fresh: bool) -> None:
        self.done += [(texts, tokens, fresh)] if texts else []


def test_a_text_is_written_once_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snippets, "_CHUNK", 2)
    echo, shown = Echo(), Shown()
    prompts = ["one", "three", "one", "", "seven\ud800"]
    right = [f" {prompt[::-1]} 4 1.0 7" for prompt in prompts]
    assert complete(echo, prompts, Draw(4, Sampling(), 7), progress=shown) == right
    assert echo.asked == [["seven\ud800", "three"], ["one", ""]]  # the longest first, each once
    assert shown.texts == 4
    assert shown.done == [(2, 8, True), (2, 8, True)]
    again, shown = Echo(), Shown()
    more = [*prompts, "eleven"]
    assert complete(again, more, Draw(4, Sampling(), 7), progress=shown)[:5] == right
    assert again.asked == [["eleven"]]
    assert shown.done == [(4, 16, False), (1, 4, True)]
    complete(again, ["one"], Draw(4, Sampling(), 8))
    complete(again, ["one"], Draw(4, Sampling(0.5), 7))
    complete(again, ["one"], Draw(5, Sampling(), 7))
    assert again.asked[1:] == [["one"]] * 3
    assert complete(again, [], Draw()) == []


def test_without_a_cache_everything_is_written_again() -> None:
    echo = Echo()
    for _ in range(2):
        complete(echo, ["one"], Draw(), cache=False)
    assert echo.asked == [["one"]] * 2


KILLED = """
import os, signal, sys
sys.path[:0] = sys.argv[1:]
from test_synthesis import Draw, Echo, complete

class Dying(Echo):
    def complete(self, prompts, **named):
        if len(self.asked) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().complete(prompts, **named)

complete(Dying(), [f"text {i}" for i in range(1000)], Draw())
"""


def test_a_killed_run_goes_on(program: Start) -> None:
    here = Path(__file__).parent
    killed = program(KILLED, here, here.parent)
    _, complaints = killed.communicate()
    assert killed.returncode == -signal.SIGKILL, complaints
    straight, resumed = Echo(), Echo()
    prompts = [f"text {i}" for i in range(1000)]
    made = complete(resumed, prompts, Draw())
    assert made == complete(straight, prompts, Draw(), cache=False)
    assert resumed.asked == straight.asked[2:]
    assert len(straight.asked) == 4


@pytest.fixture
def model() -> HuggingFace:
    tokenizer = make_tokenizer()
    tokenizer.backend_tokenizer.decoder = decoders.ByteLevel()
    return HuggingFace(make_model("llama"), tokenizer, name="tiny", weights="w", settings=ModelSettings())


def test_a_tuned_generator_writes_like_its_texts_and_is_tuned_once(model: HuggingFace) -> None:
    steps: list[TrainingStep] = []
    method = "lora(rank=16, epochs=100, learning_rate=3e-2, dropout=0.0)"
    text = "one two three four five six seven eight nine ten eleven twelve"
    generator = tuned_generator(model, [text] * 8, method, seed=1, on_step=steps.append)
    assert len(steps) == 100
    prompt = "one two three four five six seven"
    [made] = complete(generator, [prompt], GREEDY)
    assert made.startswith(" eight nine ten")
    again = tuned_generator(model, [text] * 8, method, seed=1, on_step=steps.append)
    assert len(steps) == 100
    assert again.fingerprint == generator.fingerprint
    assert generator.facts["adapter"]["method"].startswith("lora(rank=16")
    plain = tuned_generator(model, [], method)
    assert plain.fingerprint == tuned_generator(model, [text], " none ").fingerprint != generator.fingerprint
    assert isinstance(plain, Completer)
    assert complete(plain, [prompt], GREEDY) != [made]
    assert plain.complete([prompt], tokens=8, sampling=GREEDY.sampling, seed=0) == complete(
        plain, [prompt], GREEDY
    )


def test_without_a_cache_no_adapter_is_kept(model: HuggingFace) -> None:
    generator = tuned_generator(model, SENTENCES, "lora(epochs=1)", cache=False)
    assert complete(generator, ["The cat"], GREEDY, cache=False)
    assert not list(cache_folder().glob("adapters/*"))
    assert not list(cache_folder().glob("continuations/*"))


def test_the_audited_model_is_as_it_was(model: HuggingFace) -> None:
    def logp() -> npt.NDArray[np.float32]:
        return model.run(model.encode(SENTENCES[:1]), Quantity.LOGP)[0].logp

    before = logp()
    generator = tuned_generator(model, SENTENCES, "lora(epochs=3)")
    complete(generator, SENTENCES, GREEDY)
    assert np.array_equal(logp(), before)


def test_wrong_generators(model: HuggingFace) -> None:
    with pytest.raises(ExpressionError, match="no tuning method is called 'lorra'"):
        tuned_generator(model, SENTENCES, "lorra")
    for method in ("none", "lora"):
        with pytest.raises(ModelError, match="weights"):
            tuned_generator(FakeBackend(), SENTENCES, method)
