"""Where a model is served: kind of server, address and name (`--model vllm:http://host:8000`), and the key."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, get_args
from urllib.parse import SplitResult, urlsplit

from pretrace.errors import ModelError

Kind = Literal["vllm", "sglang", "tgi", "completions"]
KINDS: tuple[Kind, ...] = get_args(Kind)
DESCRIBED = {
    "vllm:URL": "a model behind a vLLM server (extra: server; --served-model, --tokenizer): log-probabilities only",
    "sglang:URL": "the same behind an SGLang server, asked by its own route /generate",
    "tgi:URL": "the same behind Text Generation Inference, started with --enable-prefill-logprobs",
    "completions:URL": "the same behind /v1/completions with echo: Together, Fireworks, llama-cpp-python, vLLM",
}
"""What `--model` takes for servers, with one line each."""

KEYS = ("PRETRACE_API_KEY", "OPENAI_API_KEY")
"""Environment variables that may hold a server's key, the first that is set counts."""
_GENERATED_ONLY = ("openai.com", "openai.azure.com", "deepinfra.com", "ollama.com")


@dataclass(frozen=True, slots=True)
class Address:
    """One server. `url` is what routes are appended to, `model` the name behind a `#`, "" where none was written."""

    kind: Kind
    url: str
    model: str = ""


def served_kind(model: str) -> Kind | None:
    """The kind of server that a `--model` value names; None for a model with weights here."""
    kind, colon, _ = model.partition(":")
    return kind if colon and kind in KINDS else None


def parse_address(model: str) -> Address:
    """The address in `vllm:http://host:8000` or `vllm:http://host:8000#model-name`.

    ModelError where it is written otherwise, may hold a secret, or names an API that gives no log-probabilities of
    prompts.
    """
    kind = served_kind(model)
    url, _, name = model.partition(":")[2].partition("#")
    parts = split_url(url)
    if kind is None or parts is None:
        raise ModelError(
            f"a model on a server is written {kind or 'vllm'}:http://host:port, with --served-model NAME where the "
            "server holds several; what was given is no address of that form."
        )
    if holds_secret(parts):
        raise ModelError(
            f"an address is recorded with the results, and this one may hold a secret: put the key in {KEYS[0]} and "
            "leave user, password and query out of the address."
        )
    host = parts.hostname or ""
    if any(host == one or host.endswith(f".{one}") for one in _GENERATED_ONLY):
        raise ModelError(
            f"{host} gives log-probabilities of generated tokens only, and pretrace needs those of your text. Serve "
            "the weights yourself (vLLM, SGLang), or open them here."
        )
    return Address(kind, _root(url, parts, kind), name)


def split_url(url: str) -> SplitResult | None:
    """The parts of an http address with a host, None for anything else."""
    try:
        parts = urlsplit(url)
        reachable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if reachable else None


def holds_secret(parts: SplitResult) -> bool:
    """Whether an address has a user, a password or a query, any of which may be secret."""
    return parts.username is not None or parts.password is not None or bool(parts.query)


def api_key() -> str:
    """The key from the environment, "" without one."""
    return next((os.environ[name] for name in KEYS if os.environ.get(name)), "")


def _root(url: str, parts: SplitResult, kind: Kind) -> str:
    """The address that routes are appended to: OpenAI's begin below /v1, the native ones beside it."""
    url = url.rstrip("/")
    if kind in ("vllm", "completions"):
        return url if parts.path.strip("/") else f"{url}/v1"
    return url.removesuffix("/v1")
