"""Models that can be asked. Torch is imported only when one is opened."""

from __future__ import annotations

from typing import Any

from pretrace.backends.adapters import attach as open_adapter
from pretrace.backends.huggingface import open_huggingface
from pretrace.backends.loading import check_model, open_tokenizer
from pretrace.backends.naming import ModelSettings, count_parameters, known_backends, served_kind, text_kind
from pretrace.backends.serving.backend import open_served
from pretrace.errors import ModelError
from pretrace.registry import backends
from pretrace.results.wording import say
from pretrace.types import Backend

__all__ = [
    "check_model",
    "count_parameters",
    "known_backends",
    "open_adapter",
    "open_model",
    "open_tokenizer",
]


def open_model(model: str, **settings: Any) -> Backend:
    """A back end for a hub id, a folder, a `.gguf` file, `smollm2`, a server (`vllm:URL`, `completions:URL`), or what
    a plug-in opens (`mine:NAME`). Keyword arguments are the fields of `backends.naming.ModelSettings`. Raises
    ModelError."""
    chosen = ModelSettings(**settings)
    if text_kind(model) == "chat":
        raise ModelError(say("models.text_alone"))
    if served_kind(model):
        return open_served(model, chosen)
    plugin, _, name = model.partition(":")
    if name and plugin in backends:
        opened: Backend = backends.checked(model, backends.factory(plugin)(name, chosen))
        return opened
    return open_huggingface(model, chosen)
