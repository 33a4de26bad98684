"""Weights through transformers: a hub id, a folder or a GGUF file, any causal language model."""

from __future__ import annotations

import io
import json
import pickle
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError

from pretrace.backends import packing, precision
from pretrace.backends._logits import Sweep, read
from pretrace.backends.tokens import Tokens
from pretrace.backends.weights import Located, locate, weights_hash
from pretrace.errors import ModelError
from pretrace.types import Encoded, Quantity, Trace

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
TRACE_FORMAT = 1  # part of the fingerprint: raised whenever the numbers of a trace change
_CPU_BUDGET = 4096
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
_GPU_BUDGET = 32768


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a model is opened.

    `dtype` is "auto" (float32 on a CPU, the checkpoint's own elsewhere) or a key of DTYPES; `device` is
    "auto" or a torch device; `device_map` spreads weights over several GPUs ("auto", needs accelerate).
    `max_tokens` None means the model's own context. `trust_remote_code` runs Python code that comes with
    the model, `allow_pickle` opens weights whose format can run code: both only for origins you trust.
    """

    revision: str | None = None
    dtype: str = "auto"
    device: str = "auto"
    device_map: str | None = None
    start: str = "tokenizer"
    max_tokens: int | None = None
    token_budget: int | None = None
    trust_remote_code: bool = False
    allow_pickle: bool = False


class HuggingFace:
    """A `Backend` over a loaded transformers model; `open_huggingface` makes one from a name.

    The model and tokenizer may also be given ready made. `weights` names the weights for the cache.
    """

    offers = Quantity.LOGP | Quantity.MOMENTS

    def __init__(
        self, model: Any, tokenizer: Any, *, name: str, weights: str, settings: ModelSettings
    ) -> None:
        self.name = name
        self.model = model.eval()
        self.device = next(model.parameters()).device
        self.dtype = next(model.parameters()).dtype
        context = _context(model.config)
        limits = [n for n in (settings.max_tokens, context) if n]
        self.tokens = Tokens(tokenizer, start=settings.start, max_tokens=min(limits, default=None))
        self.tokenizer_hash = self.tokens.hash
        self.max_tokens = self.tokens.max_tokens or 1 << 30
        self.budget = settings.token_budget or (_CPU_BUDGET if self.device.type == "cpu" else _GPU_BUDGET)
        on_cpu32 = self.device.type == "cpu" and self.dtype == torch.float32
        self.route = precision.best_route() if on_cpu32 else precision.DEFAULT
        self.head = model.get_output_embeddings()
        if self.head is None:
            raise ModelError(f"{name} has no output layer over a vocabulary: it is not a language model.")
        self.vocabulary, self.split = self._probe()
        self._sweeps: dict[bool, Sweep] = {}
        self.facts: Mapping[str, Any] = {
            "name": name,
            "revision": settings.revision,
            "weights": weights,
            "family": model.config.model_type,
            "parameters": sum(p.numel() for p in model.parameters()),
            "dtype": str(self.dtype).removeprefix("torch."),
            "device": str(self.device),
            "products": self.route,
            "tokenizer": self.tokenizer_hash,
            "start": settings.start,
            "prefix": [int(t) for t in self.tokens.prefix],
            "max_tokens": self.max_tokens,
            "vocabulary": self.vocabulary,
        }
        keyed = ("weights", "dtype", "tokenizer", "prefix", "max_tokens")
        self.fingerprint = json.dumps({"format": TRACE_FORMAT, **{key: self.facts[key] for key in keyed}})

    def encode(self, texts: Sequence[str], /) -> list[Encoded]:
        """Token ids of each text, in order."""
        return self.tokens.encode(texts)

    def spans(self, text: str, /) -> npt.NDArray[np.int64]:
        """Characters [start, end) of each token, shape [n, 2]."""
        return self.tokens.spans(text)

    def pack(self, encoded: Sequence[Encoded], /) -> list[tuple[int, ...]]:
        """Batches of similar length within the token budget."""
        return packing.pack([e.length if e.predicted else 0 for e in encoded], self.budget)

    @torch.inference_mode()
    def run(self, batch: Sequence[Encoded], want: Quantity, /) -> list[Trace]:
        """One forward pass over the batch, padded on the right under the causal mask.

        No attention mask is needed: a real token never attends to what stands after it.
        """
        rows = [np.concatenate([e.prefix, e.tokens]).astype(np.int64) for e in batch]
        ids = torch.zeros((len(rows), max(map(len, rows))), dtype=torch.long)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = torch.from_numpy(row)
        starts = [max(1, len(e.prefix)) for e in batch]
        with precision.products(self.route):
            reading = self._read(ids, [(s, len(row)) for s, row in zip(starts, rows, strict=True)], want)
        logp, mean, std = (None if t is None else t.numpy() for t in reading)
        assert logp is not None
        if not np.isfinite(logp).all():
            raise ModelError(
                f"{self.name} in {self.facts['dtype']} gave a log-probability that is not finite; try another "
                "--dtype (float32 or bfloat16). If it stays, the weights are damaged."
            )
        traces, at = [], 0
        for e, start, row in zip(batch, starts, rows, strict=True):
            part = slice(at, at := at + len(row) - start)
            traces.append(
                Trace(
                    tokens=row[start:].astype(np.int32),
                    logp=logp[part].copy(),
                    mean=None if mean is None else mean[part].copy(),
                    std=None if std is None else std[part].copy(),
                    cut=e.cut,
                )
            )
        return traces

    def _read(
        self, ids: torch.Tensor, predicted: Sequence[tuple[int, int]], want: Quantity
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Statistics of positions [start, stop) of each row, concatenated row after row."""
        sweep = self._sweep(Quantity.MOMENTS in want)
        targets = torch.cat([ids[i, start:stop] for i, (start, stop) in enumerate(predicted)]).to(self.device)
        if self.split:
            hidden = self._body(ids.to(self.device))
            before = [hidden[i, start - 1 : stop - 1] for i, (start, stop) in enumerate(predicted)]
            reading = read(torch.cat(before), targets, self.head, sweep)
            return reading.logp, reading.mean, reading.std
        # An architecture that does more to its logits than the output layer: take them from the model
        # itself, a text at a time, and sweep those.
        parts = []
        for i, (start, stop) in enumerate(predicted):
            logits = self._logits(ids[i : i + 1, :stop].to(self.device))[0, start - 1 : stop - 1]
            parts.append(read(logits, ids[i, start:stop].to(self.device), lambda rows: rows, sweep))
        columns = zip(*((p.logp, p.mean, p.std) for p in parts), strict=True)
        logp, mean, std = (None if c[0] is None else torch.cat(c) for c in columns)
        assert logp is not None
        return logp, mean, std

    def _sweep(self, moments: bool) -> Sweep:
        if moments not in self._sweeps:
            self._sweeps[moments] = Sweep(self.vocabulary, self.device, moments=moments)
        return self._sweeps[moments]

    def _body(self, ids: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.model.base_model(input_ids=ids, use_cache=False)[0]
        return hidden

    def _logits(self, ids: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.model(input_ids=ids, use_cache=False).logits
        return logits

    @torch.inference_mode()
    def _probe(self) -> tuple[int, bool]:
        """The size of the logits table, and whether output layer ∘ body really are the model's logits.

        They are for most families. Where a model scales or caps its logits the two differ, and the
        whole model is asked instead.
        """
        ids = (
            torch.arange(1, 11, device=self.device).reshape(2, 5)
            % self.model.config.get_text_config().vocab_size
        )
        whole = self._logits(ids).float()
        try:
            apart = self.head(self._body(ids)).float()
        except (RuntimeError, TypeError, AttributeError):
            return whole.shape[-1], False
        if apart.shape != whole.shape:
            return whole.shape[-1], False
        tolerance = 1e-3 if self.dtype == torch.float32 else 2e-2
        scale = float(whole.abs().max()) + 1.0
        return whole.shape[-1], float((apart - whole).abs().max()) <= tolerance * scale


def open_huggingface(model: str, settings: ModelSettings | None = None) -> HuggingFace:
    """The back end for a hub id, a folder, a `.gguf` file, or `smollm2` from its package.

    Raises ModelError where there is no model, or none that may be opened safely.
    """
    settings = settings or ModelSettings()
    located = locate(model, revision=settings.revision, allow_pickle=settings.allow_pickle)
    files = located.weight_files(allow_pickle=settings.allow_pickle)
    tokenizer = load_tokenizer(located, settings)
    weights = _load_weights(located, settings)
    from pretrace.store.traces import cache_folder

    digest = weights_hash(files, cache_folder() / "hashes")
    return HuggingFace(weights, tokenizer, name=located.label, weights=digest, settings=settings)


def load_tokenizer(located: Located, settings: ModelSettings) -> Any:
    """The transformers tokenizer that lies beside the weights (or inside the GGUF file)."""
    from transformers import AutoTokenizer

    return _load(AutoTokenizer, located, settings, {})


def _load_weights(located: Located, settings: ModelSettings) -> Any:
    from transformers import AutoModelForCausalLM

    device = _device(settings.device)
    options: dict[str, Any] = {"dtype": _dtype(settings.dtype, device)}
    if not settings.allow_pickle and not located.gguf:
        options["use_safetensors"] = True
    if settings.device_map:
        return _load(AutoModelForCausalLM, located, settings, {**options, "device_map": settings.device_map})
    try:
        return _load(AutoModelForCausalLM, located, settings, options).to(device)
    except torch.OutOfMemoryError:
        raise ModelError(f"{located.label} does not fit on {device}; try --dtype bfloat16.") from None


def _load(kind: Any, located: Located, settings: ModelSettings, options: dict[str, Any]) -> Any:
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
            f"{located.label} could not be opened as a causal language model: {reason}"
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


def _device(wanted: str) -> torch.device:
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(wanted)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise ModelError(f"--device {wanted} cannot be used here: {reason}") from None
    return device


def _dtype(wanted: str, device: torch.device) -> Any:
    if wanted == "auto":
        return torch.float32 if device.type == "cpu" else "auto"
    if wanted not in DTYPES:
        raise ModelError(f"--dtype must be auto or one of {', '.join(DTYPES)}, found {wanted!r}.")
    return DTYPES[wanted]


def _context(config: Any) -> int | None:
    """The length a model was built for, None where its configuration does not say."""
    text = config.get_text_config()
    for field in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"):
        value = getattr(text, field, None)
        if isinstance(value, int) and value > 0:
            return value
    return None
