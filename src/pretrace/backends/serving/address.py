"""Where a model is served: kind of server, address and name (`--model vllm:http://host:8000`), and the key."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from pretrace.errors import ModelError
from pretrace.results.wording import say

Kind = Literal["vllm", "completions", "chat"]
KEYS = ("PRETRACE_API_KEY", "OPENAI_API_KEY")
"""Environment variables that may hold a server's key, the first that is set counts."""
KEY_HOSTS = "PRETRACE_KEY_HOSTS"
"""Environment variable with the hosts, separated by commas, that alone are given the key; where it is not set, whoever
names an address gives the key to it."""
_GENERATED_ONLY = (
    *("openai.com", "openai.azure.com", "deepinfra.com", "ollama.com", "anthropic.com", "mistral.ai"),
    *("generativelanguage.googleapis.com", "groq.com", "perplexity.ai"),
)
"""Hosts of APIs that give log-probabilities of generated tokens only, or none."""


_HUB_ID = re.compile(r"\w[\w.-]*/[\w.-]+")
_SAYS_LITTLE = re.compile(
    r"(model|base|final|best|last|latest|merged|output|weights|hf|checkpoint|step|epoch)?[-_]?\w?\d*|[0-9a-f]{40}"
)


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """One server. `url` is what routes are appended to, `model` the name behind a `#`, "" where none was
    written."""

    kind: Kind
    url: str
    model: str = ""


def text_kind(model: str) -> Kind | None:
    """How the model of a `--model` value is asked for text; None for a model with weights here."""
    return _kind(model, "chat", "completions")


def served_kind(model: str) -> Kind | None:
    """The kind of server with log-probabilities of prompts that a `--model` value names; None for weights here."""
    return _kind(model, "vllm", "completions")


def _kind(model: str, *known: Kind) -> Kind | None:
    kind, colon, _ = model.partition(":")
    return next((one for one in known if colon and one == kind), None)


def parse_address(model: str, *, text: bool = False) -> ServerAddress:
    """The address in `vllm:http://host:8000#model-name`, or with `text` in `chat:https://api.host/v1#model-name`;
    ModelError where it is written otherwise, may hold a secret, or is of an API without what is asked for."""
    kind, (parts, url, name) = (text_kind if text else served_kind)(model), _split(model)
    if kind is None or parts is None:
        usual = "chat" if text else "vllm"
        raise ModelError(say("servers.text_address" if text else "servers.address", kind=kind or usual))
    if _holds_secret(parts):
        raise ModelError(say("servers.secret", key=KEYS[0]))
    if not text:
        _refuse_generating(parts)
    # OpenAI's routes begin below /v1
    return ServerAddress(kind, url.rstrip("/") if parts.path.strip("/") else f"{url.rstrip('/')}/v1", name)


def _split(model: str) -> tuple[SplitResult | None, str, str]:
    """The parts of an address, the address itself, and the name behind its `#`."""
    url, _, name = model.partition(":")[2].partition("#")
    return split_url(url), url, name


def refuse_bare_url(model: str) -> None:
    """ModelError for an address without the kind of its server, with what can be asked there and how it is written."""
    parts = split_url(model.strip())
    if parts is None:
        return
    _refuse_generating(parts)
    if _is(parts, "huggingface.co", "hf.co"):
        raise ModelError(say("servers.hub", host=parts.hostname))
    if _holds_secret(parts):
        raise ModelError(say("servers.bare_secret", key=KEYS[0]))
    raise ModelError(say("servers.bare", scheme=parts.scheme, host=parts.netloc))


def _is(parts: SplitResult, *domains: str) -> bool:
    return f".{parts.hostname or ''}".endswith(tuple(f".{one}" for one in domains))


def _refuse_generating(parts: SplitResult) -> None:
    if _is(parts, *_GENERATED_ONLY):
        raise ModelError(say("servers.generated_only", host=parts.hostname))


def split_url(url: str) -> SplitResult | None:
    """The parts of an http address with a host, None for anything else."""
    try:
        parts = urlsplit(url)
        named = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if named and url.isprintable() else None


def _holds_secret(parts: SplitResult) -> bool:
    """Whether an address has a user, a password or a query, any of which may be secret."""
    return parts.username is not None or parts.password is not None or bool(parts.query)


def served_as(name: str) -> tuple[str, str]:
    """What a server calls a model, "" where that was not recorded, and the server's address, "" for a model that stands
    on none: then the first is its own name.

    >>> served_as("chat:https://api.example.org/v1#writer-2"), served_as("smollm2")
    (('writer-2', 'https://api.example.org/v1'), ('smollm2', ''))
    """
    parts, url, model = _split(name)
    return (model, url) if parts is not None and (served_kind(name) or text_kind(name)) else (name, "")


def called(name: str) -> str:
    """A model's name in a sentence: one on a server by its name and the host, a folder by its last name, or its last
    two where the last alone says little.

    >>> called("chat:https://api.example.org/v1#writer-2"), called("vllm:http://127.0.0.1:8000"), called("smollm2")
    ('writer-2 at api.example.org', 'the model at 127.0.0.1:8000', 'smollm2')
    >>> called("/home/ann/runs/poems-70m"), called("runs/7/checkpoint-500/"), called("EleutherAI/pythia-70m")
    ('poems-70m', '7/checkpoint-500', 'EleutherAI/pythia-70m')
    """
    model, url = served_as(name)
    if url:
        return f"{model or 'the model'} at {urlsplit(url).netloc}"
    parts = [part for part in re.split(r"[/\\]", model) if part not in ("", ".", "..", "~")]
    if not parts or _HUB_ID.fullmatch(model):
        return model
    return "/".join(parts[-2:] if _SAYS_LITTLE.fullmatch(parts[-1]) else parts[-1:])


def called_apart(names: Sequence[str]) -> dict[str, str]:
    """By each of several models' names what it is called in a sentence: whole, where two would be called the same."""
    short = {name: called(name) for name in names}
    return short if len({*short.values()}) == len(short) else {name: name for name in short}


def api_key(url: str) -> str:
    """The environment's key for a server; "" for a host (or host:port) that PRETRACE_KEY_HOSTS does not name."""
    key = next((os.environ[name] for name in KEYS if os.environ.get(name)), "")
    return key if _may_have_key(url) else ""


def wants_key(url: str) -> str:
    """What to do where the server at an address wants a key, in half a sentence."""
    own = f"set {KEYS[0]} (or {KEYS[1]}) to one"
    return own if _may_have_key(url) else say("servers.no_key", hosts=KEY_HOSTS)


def _may_have_key(url: str) -> bool:
    hosts, parts = os.environ.get(KEY_HOSTS), split_url(url)
    if hosts is None:
        return True
    if parts is None:
        return False
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return any(host_of(one) in ((parts.hostname, None), (parts.hostname, port)) for one in hosts.split(","))


def host_of(written: str) -> tuple[str, int | None] | None:
    """Host and port of `host`, `host:port` or `[::1]:port`, the port None without one; None for anything else."""
    written = written.strip()
    try:
        parts = urlsplit(f"//{written}")
        plain = parts.hostname and parts.netloc == written and len(written.split()) == 1
        return (parts.hostname or "", parts.port) if plain and not _holds_secret(parts) else None
    except ValueError:
        return None
