"""vLLM in this process gives the numbers of the weights, and is checked as its own server is.

Here stands in for vLLM what the imitation servers ask, behind the two names of vLLM that are used; `scripts/try-vllm`
asks the real one.
"""

import importlib.machinery
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from model_servers import asked, same
from tiny import SENTENCES

from pretrace import open_model
from pretrace.backends.serving.address import parse_address
from pretrace.errors import MissingPackageError, ModelError


class Library(ModuleType):
    """The names of vLLM that are used, over a tiny model; `change` is what it does to what it says of a prompt."""

    __version__ = "0.0"

    def __init__(self, model):
        super().__init__("vllm")
        self.__spec__ = importlib.machinery.ModuleSpec("vllm", None)
        self.model, self.given = model, dict[str, Any]()
        self.calls = []
        self.change = lambda said: said

    def LLM(self, **given):
        self.given = given
        if not Path(given["model"]).is_dir():
            raise ValueError(f"no such model\n{given['model']}")
        core = SimpleNamespace(shutdown=lambda: None)
        config = SimpleNamespace(max_model_len=64)
        engine = SimpleNamespace(model_config=config, engine_core=core)
        return SimpleNamespace(llm_engine=engine, generate=self._generate)

    SamplingParams = SimpleNamespace

    def _generate(self, prompts, sampling, use_tqdm, tokenization_kwargs):
        self.calls.append(len(prompts))
        special = tokenization_kwargs["add_special_tokens"]
        return [self._output(one, special) for one in prompts]

    def _output(self, prompt, special):
        said = isinstance(prompt, str)
        ids = self.model.ids(prompt, special=special) if said else prompt["prompt_token_ids"]
        said = self.change(self.model.said(ids))
        places = [
            None if logp is None else {id_: SimpleNamespace(logprob=logp, rank=rank)}
            for id_, logp, rank in zip(said["ids"], said["logp"], said["ranks"], strict=True)
        ]
        last = {said["written"]: SimpleNamespace(logprob=said["written_logp"])}
        written = SimpleNamespace(text="", token_ids=[said["written"]], logprobs=[last])
        return SimpleNamespace(prompt_token_ids=ids, prompt_logprobs=places, outputs=[written])


@pytest.fixture
def library(plain, monkeypatch):
    made = Library(plain)
    monkeypatch.setitem(sys.modules, "vllm", made)
    for name in ("VLLM_ENABLE_V1_MULTIPROCESSING", "VLLM_NO_USAGE_STATS", "VLLM_LOGGING_LEVEL"):
        monkeypatch.setenv(name, "here")  # so that they are as before when the test is over
        monkeypatch.delenv(name)
    return made


def test_the_numbers_are_those_of_the_weights(library, model_folder):
    there = open_model(f"vllm:{model_folder}", token_budget=30)
    texts = [*SENTENCES, "a", "", "The cat sat. " * 9]
    before = len(library.calls)
    same(asked(open_model(str(model_folder), max_tokens=63), texts), asked(there, texts))
    assert library.calls[before] > len(SENTENCES)  # requests that wait are computed together
    assert library.given["enable_prefix_caching"] is False
    assert there.facts["server"] == "vLLM in this process"
    assert there.facts["batch_invariant"] is False
    assert "behind a server" not in there.facts["unseen"] + there.facts["weights"]
    assert not parse_address("vllm:http://host:8000").here
    there = parse_address("vllm:owner/name")
    assert (there.url, there.here) == ("owner/name", True)


def test_numbers_of_the_neighbouring_token_are_refused(library, model_folder, monkeypatch):
    monkeypatch.setenv("VLLM_BATCH_INVARIANT", "1")
    assert open_model(f"vllm:{model_folder}").facts["batch_invariant"] is True
    library.change = lambda said: {**said, "logp": [None, *said["logp"][2:], said["logp"][1]]}
    with pytest.raises(ModelError, match=r"neighbo|shifted"):
        open_model(f"vllm:{model_folder}")


def test_where_vllm_is_missing_the_cure_is_named(model_folder):
    with pytest.raises(MissingPackageError, match=r"pip install vllm$"):
        open_model(f"vllm:{model_folder}")


@pytest.mark.parametrize("setting", [{"device": "cpu"}, {"allow_pickle": True}, {"served_model": "tiny"}])
def test_settings_that_are_not_its_own_are_refused(setting, library, model_folder):
    with pytest.raises(ModelError, match="leave it out"):
        open_model(f"vllm:{model_folder}", **setting)


def test_a_model_that_vllm_cannot_open_is_said_in_one_line(library):
    with pytest.raises(ModelError, match="vLLM cannot open nobody/nothing: no such model nobody/nothing"):
        open_model("vllm:nobody/nothing")
