"""How a model is opened, and which model it then is; without torch."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from pretrace.errors import ModelError
from pretrace.settings import MODEL, Option

MODEL_ARGS = Option("How models are opened, as in dtype=float16,device=cuda.", name="model-args", panel=MODEL)


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a model is opened, as each option says; opening it raises ModelError for a value that cannot be."""

    revision: str | None = MODEL_ARGS.key(None, "Branch, tag or commit of a hub model.")
    dtype: str = MODEL_ARGS.key("auto", "auto (float32 on a CPU), float32, bfloat16 or float16.")
    device: str = MODEL_ARGS.key("auto", "auto, cpu, cuda, cuda:1, mps, …")
    device_map: str | None = MODEL_ARGS.key(
        None, "Spread the weights over several GPUs: auto (needs accelerate)."
    )
    start: str = MODEL_ARGS.key(
        "tokenizer", "Start token before each text: tokenizer (as the tokenizer does), always or never."
    )
    max_tokens: int | None = MODEL_ARGS.key(
        None, "Read at most this many tokens of a text; the model's context unless given.", least=2
    )
    token_budget: int | None = MODEL_ARGS.key(
        None,
        "Tokens that go through the model at once, or into one request; 2048 on a CPU and to a server unless given.",
        least=1,
    )
    trust_remote_code: bool = MODEL_ARGS.key(
        False, "Run Python code that comes with the model. It can do anything you can."
    )
    allow_pickle: bool = MODEL_ARGS.key(
        False, "Open weights stored as a pickle. Opening one can run any code."
    )
    served_model: str | None = MODEL_ARGS.key(None, "Server: the model's name there, where it holds several.")
    tokenizer: str | None = MODEL_ARGS.key(
        None,
        "Server: the model's tokenizer, a hub id or a folder; the one the server names unless given.",
        path="in",
    )
    requests: int | None = MODEL_ARGS.key(
        None, "Server: number of parallel requests; 8 unless given.", least=1, most=1024
    )
    request_timeout: float | None = MODEL_ARGS.key(
        None, "Server: seconds for a whole answer; 120 unless given.", least=0.1
    )

    def for_another(self, **own: Any) -> ModelSettings:
        """The settings for a model beside this one: how any is opened here, but not which one this is."""
        return ModelSettings(**{**{name: getattr(self, name) for name in _ANY}, **own})

    def refuse(self, names: Collection[str], why: str) -> None:
        """ModelError where one of these options was given."""
        for name in names:
            if getattr(self, name) != getattr(ModelSettings(), name):
                raise ModelError(f"--model-args {name} is {why}: leave it out.")

    def without(self, names: Collection[str]) -> ModelSettings:
        """The settings with these options as they are by themselves."""
        usual = ModelSettings()
        return replace(self, **{name: getattr(usual, name) for name in names})


def split_revision(model: str) -> tuple[str, str | None]:
    """The name and the revision of NAME@REVISION. A path that exists and an address are names as they are.

    >>> split_revision("EleutherAI/pythia-70m@step1000")
    ('EleutherAI/pythia-70m', 'step1000')
    """
    name, at, revision = model.rpartition("@")
    is_place = "://" in model or os.path.exists(model)  # noqa: PTH110 - False for what can be no path
    return (name, revision) if at and not is_place else (model, None)


SERVED = ("served_model", "tokenizer", "requests", "request_timeout")
"""What is for models behind a server alone."""
OPENED = ("dtype", "device", "device_map", "allow_pickle")
"""What, as a revision is, is for weights that are opened here alone."""
_ANY = ("dtype", "device", "trust_remote_code", "allow_pickle")
"""What holds for every model that a command opens, by the machine and by whom the one who asks trusts."""
