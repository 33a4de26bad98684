"""From a name to a loaded model: settings, safety, and the many ways a file can be wrong."""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError

from pretrace.backends.serving.address import served_kind
from pretrace.backends.settings import ModelSettings as ModelSettings
from pretrace.backends.tokens import Tokens
from pretrace.backends.weights import Located, locate, weights_hash
from pretrace.cache.location import cache_folder
from pretrace.errors import ModelError, OutputError
from pretrace.results.atomic import check_writable, new_folder

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_SMALL_GGUF = 300 << 20  # bytes
_KINDS = {
    "AutoModelForCausalLM": "causal language model",
    "AutoModelForMaskedLM": "masked language model",
    "AutoTokenizer": "tokenizer",
}
# What the readers of configurations, tokenizers, safetensors, GGUF and pickles raise for files they cannot make
# sense of.
_LOADING_FAILS = (
    OSError,
    ValueError,
    LookupError,
    ImportError,
    RuntimeError,
    TypeError,
    AttributeError,
    EOFError,
    struct.error,
    pickle.UnpicklingError,
    SafetensorError,
)


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


class FoundTokenizer(NamedTuple):
    """A transformers tokenizer, with the context and the vocabulary of its model where a configuration is there."""

    tokenizer: Any
    context: int | None
    vocabulary: int | None


def tokenizer_of(model: str, settings: ModelSettings) -> FoundTokenizer:
    """The tokenizer of a hub id or a folder, which need hold nothing else. Raises ModelError."""
    folder = Path(model).expanduser()
    if not (folder / "tokenizer.json").is_file() or (folder / "config.json").is_file():
        from transformers import AutoConfig

        located = locate(model, weights=False)
        if not located.gguf:
            config = from_pretrained(AutoConfig, located, settings, {}).get_text_config()
            return FoundTokenizer(load_tokenizer(located, settings), context_of(config), config.vocab_size)
    else:
        located = Located(model, folder)
    return FoundTokenizer(load_tokenizer(located, settings), None, None)


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
    try:
        with _quiet():
            return kind.from_pretrained(
                str(located.folder), trust_remote_code=settings.trust_remote_code, **options
            )
    except _LOADING_FAILS as error:
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
    if wanted == "auto":
        return torch.float32 if device.type == "cpu" else "auto"
    if wanted not in DTYPES:
        raise ModelError(f"--dtype must be auto or one of {', '.join(DTYPES)}, found {wanted!r}.")
    return DTYPES[wanted]
