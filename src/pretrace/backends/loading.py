"""A model that was found, opened so that it can be asked: weights and tokenizer, nothing unsafe among them, what it can
read, and where its blocks and feed-forward neurons are. Torch is imported only then."""

from __future__ import annotations

import inspect
import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import tokenizers

from pretrace.backends.libraries import nn, torch, transformers
from pretrace.backends.naming import (
    SAFE_FILES,
    SERVED,
    WRAPPERS,
    ModelFiles,
    ModelSettings,
    from_hub,
    locate,
    parse_address,
    read_header,
    refuse_bare_url,
    served_kind,
    text_kind,
    weights_hash,
)
from pretrace.backends.serving.client import check_answers
from pretrace.backends.tokens import (
    KEPT_READER,
    Tokens,
    follow_file,
    open_gguf_tokenizer,
    reader_of,
)
from pretrace.cache import cache_folder
from pretrace.errors import ModelError, OutputError, one_error
from pretrace.registry import backends
from pretrace.results.atomic import check_writable, new_folder
from pretrace.results.wording import say


def check_model(model: str) -> None:
    """ModelError where it can be seen, without opening it or sending it a text, that a model could not be opened: a
    folder without weights, a server that does not answer, a hub id that is neither here nor to be had.
    MissingPackageError where its reader is not installed. What a plug-in opens is not looked at."""
    if served_kind(model) or text_kind(model):
        check_answers(parse_address(model, text=not served_kind(model)).url)
    elif model.partition(":")[0] not in backends:
        path = Path(model).expanduser()
        if path.exists() or path.suffix == ".gguf" or model == "smollm2":
            locate(model).weight_files(allow_pickle=False)
        else:
            refuse_bare_url(model)
            from_hub(model, None, SAFE_FILES, download=False)


def open_tokenizer(model: str, **settings: Any) -> Tokens:
    """The tokenizer of a model without its weights, for counting; settings as for `open_model`. Raises ModelError."""
    if served_kind(model) or (":" in model and model.partition(":")[0] in backends):
        raise ModelError(
            f"{model} brings no tokenizer: to count tokens, name one here, a hub id or a folder."
        )
    chosen = ModelSettings(**settings)
    located = locate(model, revision=chosen.revision, weights=False)
    if located.gguf:
        file = located.folder / located.gguf
        if file.stat().st_size <= _SMALL_GGUF:
            located = _unpacked(located, weights_hash([file], cache_folder() / "hashes"), chosen)
    return Tokens(_load_tokenizer(located, chosen))


_DTYPES = ("float32", "bfloat16", "float16")
_SMALL_GGUF = 300 << 20  # bytes
_UNPACKED = 2  # part of the name of an unpacked copy: raised whenever it would be written otherwise
_KINDS = {
    "AutoModelForCausalLM": "causal language model",
    "AutoModelForMaskedLM": "masked language model",
    "AutoTokenizer": "tokenizer",
}
_READERS = ("AutoModelForCausalLM", "AutoModelForImageTextToText", "AutoModelForMultimodalLM")
"""What transformers opens models that predict a next token with; the later ones those that read pictures, too."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A transformers model and its tokenizer. `weights` is the hash that names it, `unread` the names in the files that
    it does not use, `code` the hash of the Python files that came with it and were run."""

    model: Any
    tokenizer: Any
    name: str
    weights: str
    unread: tuple[str, ...] = ()
    code: str | None = None


def load(model: str, settings: ModelSettings, *, kind: Any = None, without: str = "") -> LoadedModel:
    """The weights and tokenizer of what `locate` finds; ModelError where there is none that may be opened safely.
    `kind` is the class of transformers for a model that predicts no next token, which has no use for some weights."""
    if served_kind(model):
        raise ModelError(say("models.behind_server", model=model))
    settings.refuse(SERVED, f"for models on servers (vllm:URL, completions:URL), and {model} is opened here")
    _dtype_of(
        settings.dtype, device_of(settings.device)
    )  # which tells of a wrong one before anything is read
    located = locate(model, revision=settings.revision, allow_pickle=settings.allow_pickle)
    files = located.weight_files(allow_pickle=settings.allow_pickle)
    digest = weights_hash(files, cache_folder() / "hashes")
    if located.gguf and files[0].stat().st_size <= _SMALL_GGUF:
        located = _unpacked(located, digest, settings)
    chosen = kind or _reader(located, settings)
    opened, unread = open_weights(chosen, located, settings, without=without)
    if unread and kind is None:
        facts = {"label": located.label, "unread": unread[0], "number": len(unread)}
        warnings.warn(say("models.unused_weights", **facts), stacklevel=2)
    code = sorted(located.folder.glob("*.py")) if settings.trust_remote_code else []
    tokenizer, run = _load_tokenizer(located, settings), weights_hash(code) if code else None
    return LoadedModel(opened, tokenizer, located.label, digest, unread, run)


def tokenizer_of(model: str, settings: ModelSettings) -> tuple[Any, int | None, int | None]:
    """The transformers tokenizer of a hub id or a folder, which need hold nothing else, with the context and the
    vocabulary of its model where a configuration is there. Raises ModelError."""
    folder = Path(model).expanduser()
    if not (folder / "tokenizer.json").is_file() or (folder / "config.json").is_file():
        located = locate(model, weights=False)
        if not located.gguf:
            config = from_pretrained(transformers.AutoConfig, located, settings, {}).get_text_config()
            return _load_tokenizer(located, settings), context_of(config), config.vocab_size
    else:
        located = ModelFiles(model, folder)
    return _load_tokenizer(located, settings), None, None


def context_of(config: Any) -> int | None:
    """The length a model was built for, None where its configuration does not say."""
    text = config.get_text_config()
    for field in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"):
        value = getattr(text, field, None)
        if isinstance(value, int) and value > 0:
            return value
    return None


_POSITIONS = re.compile(r"pos[a-z]*_?emb|emb[a-z]*_pos|(^|\.)wpe$")  # names of tables of positions in models


def context_in(model: Any, ask: Callable[[], object]) -> int | None:
    """How many tokens an opened model can read: what its configuration says, and no more than its table of positions
    holds, None where neither bounds it. `ask` lets the model read something, which shows the tables that texts use."""
    limits = [found for found in (context_of(model.config),) if found]

    def note(table: Any, *_: Any) -> None:
        # RoBERTa and its kin count positions from the one behind the padding's, OPT and BART from the third row.
        padding = getattr(table, "padding_idx", None)
        limits.append(table.num_embeddings - getattr(table, "offset", 0 if padding is None else padding + 1))

    named = [part for name, part in model.named_modules() if _POSITIONS.search(name)]
    handles = [part.register_forward_hook(note) for part in named if hasattr(part, "num_embeddings")]
    with hooked(handles):
        ask()
    return min(limits, default=None)


@contextmanager
def hooked(handles: Sequence[torch.utils.hooks.RemovableHandle]) -> Iterator[None]:
    """Hooks that are in place while the context lasts."""
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def cache_of(output: Any) -> Any:
    """What a model kept of what it read, None where it kept nothing: `cache` since transformers 5.24."""
    named = "cache" if "cache" in getattr(output, "__dataclass_fields__", ()) else "past_key_values"
    return getattr(output, named, None)


def going_on(model: Any, cache: Any) -> dict[str, Any]:
    """The argument of a forward pass that takes a cache up again; older code calls it `past_key_values`."""
    known = inspect.signature(model.forward).parameters
    return {"cache" if "cache" in known else "past_key_values": cache}


def _read_file(folder: Path) -> tokenizers.Tokenizer | None:
    """Return the tokenizer of the folder's tokenizer.json, without truncation and padding; None without that file."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        return None
    rust = tokenizers.Tokenizer.from_file(str(path))
    rust.no_truncation()
    rust.no_padding()
    return rust


def _load_tokenizer(located: ModelFiles, settings: ModelSettings) -> Any:
    """The tokenizer beside the weights, or in the GGUF file, as transformers'; ModelError where it cannot be opened."""
    what = f"{located.label} could not be opened as a tokenizer"
    versions = f"tokenizers {tokenizers.__version__} and transformers {transformers.__version__}"
    cure = say("models.no_tokenizer", versions=versions)
    with one_error(what, cure), quiet():
        if located.gguf:
            return open_gguf_tokenizer(located.folder / located.gguf, located.label)
        rust = _read_file(located.folder)
        auto = from_pretrained(transformers.AutoTokenizer, located, settings, {}, cure)
        return follow_file(rust, auto, located.folder)


def open_weights(
    kind: Any, located: ModelFiles, settings: ModelSettings, *, without: str = ""
) -> tuple[Any, tuple[str, ...]]:
    """The model of the class `kind` with all its weights out of its files, and the names there that it does not use;
    ModelError where one is missing, or has another shape there. Weights whose name begins with `without` may be."""
    device, files = device_of(settings.device), located.weight_files(allow_pickle=settings.allow_pickle)
    options: dict[str, Any] = {"dtype": _dtype_of(settings.dtype, device), "output_loading_info": True}
    options["ignore_mismatched_sizes"] = True
    if settings.device_map:
        options["device_map"] = settings.device_map
    if not settings.allow_pickle and not located.gguf:
        options["use_safetensors"] = True
    if (state := _unwrapped_state(files)) is not None:
        config = from_pretrained(transformers.AutoConfig, located, settings, {})
        if type(config) in getattr(kind, "_model_mapping", {}):  # the automatic one wants a folder
            kind = kind._model_mapping[type(config)]
            options |= {"config": config, "state_dict": state, "pretrained_model_name_or_path": None}
    try:
        model, told = from_pretrained(kind, located, settings, options)
        missing = {name for name in told["missing_keys"] if not (without and name.startswith(without))}
        own = dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers())
        read = {id(tensor) for name, tensor in own.items() if name not in missing}
        missing = {
            name for name in missing if id(own.get(name)) not in read
        }  # but one tied to another is there
        if missing:
            facts = {"label": located.label, "first": min(missing), "number": len(missing)}
            raise ModelError(say("models.lacks_weight", **facts))
        wrong = sorted(one if isinstance(one, str) else one[0] for one in told.get("mismatched_keys") or ())
        if wrong:
            facts = {"label": located.label, "first": wrong[0], "shape": list(own[wrong[0]].shape)}
            raise ModelError(say("models.other_shape", **facts))
        return model if settings.device_map else model.to(device), tuple(sorted(told["unexpected_keys"]))
    except torch.OutOfMemoryError:
        cure = "try --model-args dtype=bfloat16"
        raise ModelError(f"{located.label} does not fit on {device}; {cure}.") from None


def _reader(located: ModelFiles, settings: ModelSettings) -> Any:
    """The class of transformers that opens this model as one that predicts a next token: for one that reads pictures,
    too, its whole, which is then asked with texts alone. ModelError where there is none."""
    if located.gguf:
        return transformers.AutoModelForCausalLM
    config = from_pretrained(transformers.AutoConfig, located, settings, {})
    mapped = getattr(config, "auto_map", None) or {}
    kinds = [kind for name in _READERS if (kind := getattr(transformers, name, None)) is not None]
    for kind in kinds:
        if kind.__name__ in mapped or type(config) in kind._model_mapping:
            return kind
    built = (getattr(config, "architectures", None) or [config.model_type])[0]
    raise ModelError(say("models.no_reader", label=located.label, built=built))


def _unpacked(located: ModelFiles, digest: str, settings: ModelSettings) -> ModelFiles:
    """The same weights as float32 safetensors in the cache, written on first use: reading a GGUF file takes half a
    minute on a small processor. Large files are read as they are. Each generation of transformers has its copy: an
    older one cannot open the tokenizer that a newer one wrote. The copies of another `_UNPACKED` are left alone."""
    folder = cache_folder() / "gguf" / f"{digest[:32]}-{transformers.__version__.split('.')[0]}-{_UNPACKED}"
    unpacked = replace(located, folder=folder, gguf=None)
    if (folder / "config.json").is_file():
        return unpacked
    try:
        check_writable(folder)
    except OutputError:
        return located  # no right to keep a copy: the file itself is read every time
    tokenizer = _load_tokenizer(located, settings)
    plain = replace(settings, dtype="float32", device="cpu")
    model, _ = open_weights(_reader(located, settings), located, plain)
    unquantise(model)
    try:
        with new_folder(folder) as partial, quiet():
            model.save_pretrained(partial)
            tokenizer.save_pretrained(partial)
            (partial / KEPT_READER).write_text(reader_of(tokenizer), encoding="utf-8")
    except (OutputError, OSError):
        if (folder / "config.json").is_file():
            return unpacked  # another process was faster
        return located  # no room or no right to keep a copy: read the file itself
    return unpacked


def unquantise(model: Any) -> None:
    """Let a model whose weights were read from a GGUF file, plain numbers since, be saved by transformers."""
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.hf_quantizer, model.is_quantized = None, False


def from_pretrained(
    kind: Any, located: ModelFiles, settings: ModelSettings, options: dict[str, Any], cure: str = ""
) -> Any:
    """`from_pretrained` with its many ways to fail turned into one that says what to do."""
    if located.gguf:
        options = {**options, "gguf_file": located.gguf}
    options = {"pretrained_model_name_or_path": str(located.folder), **options}
    what = _KINDS.get(kind.__name__, "model")
    with one_error(f"{located.label} could not be opened as a {what}", cure), quiet():
        try:
            return kind.from_pretrained(trust_remote_code=settings.trust_remote_code, **options)
        except (OSError, ValueError) as error:
            if "trust_remote_code" not in str(error):
                raise
            raise ModelError(say("models.own_code", label=located.label)) from None


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars or advice of other libraries between our own lines."""
    logging = transformers.logging
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
        torch.zeros(1, device=device).cpu()  # on "meta" there are no numbers
    except (RuntimeError, AssertionError, ImportError) as error:
        reason = str(error).partition("\n")[0]
        raise ModelError(f"--model-args device={wanted} cannot be used here: {reason}") from None
    return device


@cache
def fastest_format(device: str = "cpu") -> Literal["bfloat16", "float32"]:
    """Bfloat16 for a GPU that computes in it and a processor with matrix units (AMX): elsewhere it is slower."""
    if device == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    has_matrix_units = getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    return "bfloat16" if device == "cpu" and has_matrix_units() else "float32"


def _dtype_of(wanted: str, device: torch.device) -> Any:
    """The torch dtype a setting names, or "auto"; ModelError for another word."""
    if wanted == "auto":
        return torch.float32 if device.type == "cpu" else "auto"
    if wanted not in _DTYPES:
        raise ModelError(f"--model-args dtype must be auto or one of {', '.join(_DTYPES)}, found {wanted!r}.")
    return getattr(torch, wanted)


def _unwrapped_state(files: Sequence[Path]) -> dict[str, Any] | None:
    """The tensors under the model's own names, where a wrapper of the training was saved, too; None without one."""
    if any(path.suffix != ".safetensors" for path in files):
        return None
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        if not any(WRAPPERS.search(name) for path in files for name in read_header(path)[0]):
            return None
        return {WRAPPERS.sub("", name): tensor for path in files for name, tensor in load_file(path).items()}
    except (OSError, ValueError, TypeError, LookupError, SafetensorError):
        return None  # opening it says what is wrong with the file


def stream_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> torch.Tensor | None:
    """The hidden states a block is called with, by position or by name."""
    found = args[0] if args else kwargs.get("hidden_states")
    return found if isinstance(found, torch.Tensor) else None


class FeedForward(NamedTuple):
    """Where a block's `neurons` are read: what leaves `activation`, or with the gate what enters `down`."""

    activation: nn.Module
    down: nn.Module
    neurons: int


class _Call(NamedTuple):
    """A call inside a block: last dimension of what went in and came out, and positions."""

    module: nn.Module
    activation: bool
    inward: int
    outward: int
    positions: int


_Entered: TypeAlias = "tuple[nn.Module, torch.Size, list[_Call]]"
"""A block that is entered, the shape of its hidden states, and what is called thereafter."""


def look_inside(
    model: Any, ask: Callable[[], object], *, shape: tuple[int, ...]
) -> tuple[list[nn.Module], tuple[FeedForward, ...], str]:
    """The transformer blocks in the order they are passed, the feed-forward layer of each, and why there is none.

    Found from one look at what is called while the model reads ids of a shape. The blocks are the outermost list of as
    many modules as the model has layers, each called with [texts, tokens, width]. The *down projection* is the linear
    map from the widest activation back to the width of the block, the *activation* the last module before it that maps
    every neuron by itself: a function that is no module cannot be listened to."""
    count = getattr(model.config.get_text_config(), "num_hidden_layers", None)
    lists = [list(m) for m in model.modules() if isinstance(m, nn.ModuleList) and len(m) == count]
    seen: list[_Entered] = []

    def enter(block: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        hidden = stream_of(args, kwargs)
        seen.append((block, torch.Size() if hidden is None else hidden.shape, []))

    def call(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if seen and (made := _called(module, args[0] if args else None, output)):
            seen[-1][2].append(made)

    entered = dict.fromkeys(module for some in lists for module in some)
    handles = [module.register_forward_pre_hook(enter, with_kwargs=True) for module in entered]
    handles += [leaf.register_forward_hook(call) for leaf in _leaves(m for m in entered if not _stacked(m))]
    with hooked(handles):
        ask()
    called = [block for block, size, _ in seen if len(size) == 3 and size[:2] == shape]
    blocks = next((some for some in lists if [module for module in called if module in some] == some), [])
    return blocks, *_feed_forwards(blocks, seen)


def _feed_forwards(
    blocks: Sequence[nn.Module], seen: Sequence[_Entered]
) -> tuple[tuple[FeedForward, ...], str]:
    if not blocks:
        return (), "its blocks could not be found"
    if any(map(_stacked, blocks)):
        if any("expert" in name for block in blocks for name, _ in block.named_parameters()):
            return (), "it is a mixture of experts, where a token passes through some of the neurons only"
        why = "its blocks hold several networks or stacks of matrices, of which none is known to be the feed-forward"
        return (), why
    own, found = set(_leaves(blocks)), list[FeedForward]()
    passed: list[tuple[torch.Size, list[_Call]]] = []  # by block, with what smaller lists inside it called
    for block, size, calls in seen:
        if block in blocks:
            passed.append((size, []))
        if passed:
            passed[-1][1].extend(call for call in calls if call.module in own)
    for number, (size, calls) in enumerate(passed, start=1):
        layer = _feed_forward(size[-1] if size else 0, size[:-1].numel(), calls)
        if isinstance(layer, str):
            return (), f"in block {number} {layer}"
        found.append(layer)
    return tuple(found), ""


def _stacked(block: nn.Module) -> bool:
    """Whether a block has a stack of matrices, or a list of modules: experts, or the heads of a recurrence."""
    return any(
        (isinstance(module, nn.ModuleList) and len(module) > 1)
        or any(sum(n > 1 for n in p.shape) > 2 for p in module.parameters(recurse=False))
        for module in block.modules()
        if not isinstance(module, nn.modules.conv._ConvNd)
    )


def _leaves(blocks: Iterable[nn.Module]) -> dict[nn.Module, None]:
    return dict.fromkeys(m for block in blocks for m in block.modules() if not list(m.children()))


def _called(module: nn.Module, entered: Any, left: Any) -> _Call | None:
    """A call of a linear map or of something that maps neuron by neuron; None for any other."""
    if not (isinstance(entered, torch.Tensor) and isinstance(left, torch.Tensor)):
        return None
    if not entered.is_floating_point() or min(entered.dim(), left.dim()) < 2:
        return None
    # quantised weights are buffers in some formats
    linear = any(t.dim() == 2 for t in (*module.parameters(), *module.buffers()))
    if not linear:  # then it changes what passes through it, each number by itself: no norm, no dropout
        if entered.shape != left.shape or any(p.numel() > 1 for p in module.parameters()):
            return None
        if torch.equal(entered, left):
            return None
        try:
            alone = module.forward(entered[..., :1].clone())
        except (RuntimeError, ValueError, TypeError, IndexError):
            return None
        if not isinstance(alone, torch.Tensor) or not _close(alone, left[..., :1]):
            return None
    return _Call(module, not linear, entered.shape[-1], left.shape[-1], left[..., 0].numel())


def _feed_forward(width: int, positions: int, calls: Sequence[_Call]) -> FeedForward | str:
    """The feed-forward layer of one block, or what is wrong with it, as a clause."""
    downs = [(i, c) for i, c in enumerate(calls) if not c.activation and c.outward == width]
    pairs = []
    for i, c in enumerate(calls):
        after = [down for j, down in downs if j > i and down.inward == c.outward]
        if c.activation and after:
            pairs.append((c, after[-1]))
    widest = max((c.outward for c, _ in pairs), default=0)
    pairs = [(c, down) for c, down in pairs if c.outward == widest]
    if not pairs:
        return "no module with its activation function was found"
    if len(pairs) > 1:
        return f"{len(pairs)} activation functions were applied"
    activation, down = pairs[0]
    if activation.positions != positions:
        return "the activation function was not applied to every token"
    return FeedForward(activation.module, down.module, down.inward)


def _close(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal up to the rounding of bfloat16, measured by the largest number."""
    return a.shape == b.shape and float((a.float() - b.float()).abs().max()) <= 0.01 * float(b.abs().max())
