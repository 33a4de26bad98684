"""How a model is named, as weights here or on a server (`--model vllm:http://host:8000`), and how it is opened; without
torch."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

from pretrace.errors import ModelError
from pretrace.results.wording import say
from pretrace.settings import MODEL, Option

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
