"""How a model is opened, and which model it then is; without torch."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any

from pretrace.errors import ModelError
from pretrace.settings import MODEL, Option, flag_of, given_for, option

MODEL_ARGS = Option(
    "How models are opened, as in dtype=bfloat16,device=cuda.", name="model-args", panel=MODEL
)


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a model is opened, as each option says; opening it raises ModelError for a value that cannot be."""

    revision: str | None = option(
        None, "Branch, tag or commit of a hub model.", of=MODEL_ARGS, only="weights"
    )
    dtype: str = option(
        "auto", "auto (float32 on a CPU), float32, bfloat16 or float16.", of=MODEL_ARGS, only="weights"
    )
    device: str = option("auto", "auto, cpu, cuda, cuda:1, mps, …", of=MODEL_ARGS, only="weights")
    device_map: str | None = option(
        None, "Spread the weights over several GPUs: auto (needs accelerate).", of=MODEL_ARGS, only="weights"
    )
    start: str = option(
        "tokenizer",
        "Start token before each text: tokenizer (as the tokenizer does), always or never.",
        of=MODEL_ARGS,
    )
    max_tokens: int | None = option(
        None,
        "Read at most this many tokens of a text; the model's context unless given.",
        of=MODEL_ARGS,
        least=2,
    )
    token_budget: int | None = option(
        None,
        "Tokens that go through the model at once, or into one request; 2048 on a CPU and to a server unless given.",
        of=MODEL_ARGS,
        least=1,
    )
    trust_remote_code: bool = option(
        False, "Run Python code that comes with the model. It can do anything you can.", of=MODEL_ARGS
    )
    allow_pickle: bool = option(
        False, "Open weights stored as a pickle. Opening one can run any code.", of=MODEL_ARGS, only="weights"
    )
    served_model: str | None = option(
        None, "Server: the model's name there, where it holds several.", of=MODEL_ARGS, only="server"
    )
    tokenizer: str | None = option(
        None,
        "Server: the model's tokenizer, a hub id or a folder; the one the server names unless given.",
        of=MODEL_ARGS,
        path="in",
        only="server",
    )
    requests: int | None = option(
        None,
        "Server: number of parallel requests; 8 unless given.",
        of=MODEL_ARGS,
        least=1,
        most=1024,
        only="server",
    )
    request_timeout: float | None = option(
        None, "Server: seconds for a whole answer; 120 unless given.", of=MODEL_ARGS, least=0.1, only="server"
    )

    def for_another(self, **own: Any) -> ModelSettings:
        """The settings for a model beside this one: how any is opened here, but not which one this is."""
        return ModelSettings(**{**{name: getattr(self, name) for name in _ANY}, **own})

    def refuse(self, names: Collection[str], why: str) -> None:
        """ModelError where one of these options was given."""
        for one in fields(self):
            if one.name in names and getattr(self, one.name) != one.default:
                raise ModelError(f"{flag_of(one)} is {why}: leave it out.")

    def without(self, whom: str, but: str = "") -> ModelSettings:
        """The settings with the options that are for `whom` alone ("weights" or "server") as they are by themselves."""
        usual = ModelSettings()
        return replace(self, **{name: getattr(usual, name) for name in given_for(self, whom) if name != but})


def split_revision(model: str) -> tuple[str, str | None]:
    """The name and the revision of NAME@REVISION. A path that exists and an address are names as they are.

    >>> split_revision("EleutherAI/pythia-70m@step1000")
    ('EleutherAI/pythia-70m', 'step1000')
    """
    name, at, revision = model.rpartition("@")
    is_place = "://" in model or os.path.exists(model)  # noqa: PTH110 - False for what can be no path
    return (name, revision) if at and not is_place else (model, None)


_ANY = ("dtype", "device", "trust_remote_code", "allow_pickle")
"""What holds for every model that a command opens, by the machine and by whom the one who asks trusts."""
