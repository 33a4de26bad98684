"""How a model is opened, and which model it then is; without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pretrace.settings import MODEL, TEXTS, check_ranges, option


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a model is opened; ExpressionError for a number out of its range.

    `dtype` is "auto" (float32 on a CPU, the checkpoint's own elsewhere) or a key of `loading.DTYPES`; `device` is
    "auto" or a torch device; `device_map` spreads weights over several GPUs ("auto", needs accelerate).
    `max_tokens` None means the model's own context. `trust_remote_code` runs Python code that comes with
    the model, `allow_pickle` opens weights whose format can run code: both only for origins you trust.
    """

    revision: str | None = option(None, "Branch, tag or commit of a hub model.", panel=MODEL)
    dtype: str = option("auto", "auto (float32 on a CPU), float32, bfloat16 or float16.", panel=MODEL)
    device: str = option("auto", "auto, cpu, cuda, cuda:1, mps, …", panel=MODEL)
    device_map: str | None = option(
        None, "Spread the weights over several GPUs: auto (needs accelerate).", panel=MODEL
    )
    start: str = option(
        "tokenizer",
        "Start token before each text: tokenizer (as the tokenizer does), always or never.",
        panel=MODEL,
    )
    max_tokens: int | None = option(
        None,
        "Read at most this many tokens of a text; the model's context unless given.",
        panel=TEXTS,
        least=2,
    )
    token_budget: int | None = option(
        None, "Tokens that go through the model at once; 2048 on a CPU unless given.", panel=MODEL, least=1
    )
    trust_remote_code: bool = option(
        False, "Run Python code that comes with the model. It can do anything you can.", panel=MODEL
    )
    allow_pickle: bool = option(
        False, "Open weights stored as a pickle. Opening one can run any code.", panel=MODEL
    )

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Which model was asked: what a score depends on besides the text.

    `weights` and `tokenizer` are SHA-256 hashes; `revision` is that of the hub, None for another place or where
    none was named. `dtype` is what it computes in.
    """

    name: str
    weights: str
    tokenizer: str
    dtype: str
    revision: str | None = None

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> ModelIdentity:
        """The identity in what a model records of itself (`Backend.facts`); "" for what it does not say."""
        known = {name: str(facts.get(name, "")) for name in ("name", "weights", "tokenizer", "dtype")}
        return cls(**known, revision=facts.get("revision"))
