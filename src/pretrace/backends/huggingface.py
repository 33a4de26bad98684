"""Weights through transformers (a hub id, a folder or a GGUF file, any causal language model), and what a pass through
them tells of each token: the one place where logits meet tokens."""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import json
import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from pretrace.backends._inside import Read, firings, last_tokens
from pretrace.backends.generation import write_ends
from pretrace.backends.libraries import inference, nn, torch
from pretrace.backends.loading import (
    LoadedModel,
    cache_of,
    context_in,
    context_of,
    going_on,
    load,
    look_inside,
)
from pretrace.backends.naming import ModelSettings
from pretrace.backends.tokens import Tokens, pack, pack_alike, padded
from pretrace.errors import ModelError, one_error
from pretrace.results.wording import say
from pretrace.types import (
    Backend,
    Continued,
    Drawn,
    Encoded,
    Firing,
    Hidden,
    Peak,
    Quantity,
    State,
    States,
    Trace,
)

_TRACE_FORMAT = 1  # part of the fingerprint: raised whenever the numbers of a trace change
_TIMED = 2.0e10  # parameters times tokens that are computed to time a model: a quarter of a second
_NAMING = frozenset({"_name_or_path", "transformers_version", "architectures", "dtype", "torch_dtype"})
"""What in a configuration names the model or its format, and changes no number."""
_FEWEST_TIMED, _MOST_TIMED = 16, 256  # tokens of that


class HuggingFace:
    """A `Backend` over a transformers model and tokenizer, by `open_huggingface`. `weights` names the weights for the
    cache. It offers HIDDEN and NEURONS where blocks and feed-forward activation are found by structure."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str,
        weights: str,
        settings: ModelSettings,
        loaded: LoadedModel | None = None,
    ) -> None:
        self.name, self.model, self.tokenizer, self.settings = name, model.eval(), tokenizer, settings
        first = next(model.parameters())
        self.device, self.dtype, self.head = first.device, first.dtype, model.get_output_embeddings()
        # a GPU does the work of many tokens while a pass is begun: short beginnings read apart cost more than they save
        self.least_shared = usual_budget(self.device) // 256
        if self.head is None:
            raise ModelError(f"{name} has no output layer over a vocabulary: it is not a language model.")
        size = model.config.get_text_config().vocab_size
        ten = torch.arange(size // 2, size // 2 + 10, device=self.device)  # special tokens stand at the ends
        self._ten = (ten % size).reshape(2, 5)
        with self._one_error():
            context = context_in(model, self._look)
            # Some models scale or cap the logits that output layer ∘ body give.
            self.vocabulary = self._whole.shape[-1]
            self.split = is_head_alone(model, self.head, self._ten, self._whole)
            del self._whole
            self.alone = self._probe_order()
        self.turn = _turning_length(model)
        self.window = getattr(model.config.get_text_config(), "sliding_window", None) or 1 << 30
        limit = min((n for n in (settings.max_tokens, context) if n), default=None)
        self.tokens = Tokens(self.tokenizer, start=settings.start, max_tokens=limit, model=model)
        self.encode, self.spans = self.tokens.encode, self.tokens.spans
        self.tokenizer_hash = self.tokens.hash
        self.max_tokens = self.tokens.max_tokens or 1 << 30
        self.offers = Quantity.LOGP | Quantity.MOMENTS | Quantity.DRAWN | Quantity.PEAK | Quantity.CONTINUED
        self.offers |= Quantity.HIDDEN if self.blocks else Quantity.NONE
        self.offers |= Quantity.NEURONS if self.layers else Quantity.NONE
        self._sweeps: dict[tuple[bool, tuple[Drawn, ...]], Sweep] = {}
        dtype = str(self.dtype).removeprefix("torch.")
        known = {name: value for name, value in model.config.to_dict().items() if name not in _NAMING}
        shown = json.dumps([known, loaded.code if loaded else None], sort_keys=True, default=str)
        company = "texts of similar length"
        if self.alone:
            company = "a text each: beside others this model reads it differently"
        elif self.turn is not None:
            apart = f"texts of more than {self.turn:,} tokens apart from shorter ones"
            company = f"{apart}: positions are computed differently"
        self.facts: Mapping[str, Any] = {
            "name": name,
            "revision": settings.revision,
            "weights": weights,
            "unread_weights": list(loaded.unread if loaded else ()),
            "configuration": hashlib.sha256(shown.encode()).hexdigest(),
            "family": model.config.model_type,
            "parameters": sum(p.numel() for p in model.parameters()),
            "dtype": dtype,
            "device": str(self.device),
            "batches": company,
            "tokenizer": self.tokenizer_hash,
            "tokenizer_read_by": self.tokens.read_by,
            "start": settings.start,
            "prefix": [int(t) for t in self.tokens.prefix],
            "max_tokens": self.max_tokens,
            "vocabulary": self.vocabulary,
        }
        keyed = ("weights", "configuration", "dtype", "tokenizer", "prefix", "max_tokens")
        self.fingerprint = json.dumps({"format": _TRACE_FORMAT, **{key: self.facts[key] for key in keyed}})

    def pack(self, encoded: Sequence[Encoded], /) -> list[tuple[int, ...]]:
        """Batches of similar length within the token budget; texts that share a beginning read once together."""
        budget = self.settings.token_budget or usual_budget(self.device)
        if any(e.shared for e in encoded) and self._begins_once:
            return pack_alike(encoded, budget)
        return self.batches([e.length if e.predicted else 0 for e in encoded], budget)

    def batches(self, lengths: Sequence[int], budget: int) -> list[tuple[int, ...]]:
        """Batches of texts of these lengths in which each gives what it gives alone; those of length 0 are in none."""
        if self.alone:
            return [(i,) for i, length in enumerate(lengths) if length]
        if self.turn is None:
            return pack(lengths, budget)
        short, long = ([n if (n > self.turn) == above else 0 for n in lengths] for above in (False, True))
        return pack(short, budget) + pack(long, budget)

    def in_place(self) -> contextlib.AbstractContextManager[HuggingFace]:
        """This back end, as `adapters.Adapted` gives its base with the adapter in place."""
        return contextlib.nullcontext(self)

    def _one_error(self) -> contextlib.AbstractContextManager[None]:
        """Whatever the model's own code raises while the context lasts, as a ModelError."""
        return one_error(
            f"{self.name} failed while it read a text",
            "Check that its files belong together, or try --model-args max_tokens, token_budget or another dtype.",
        )

    def run(self, batch: Sequence[Encoded], want: Quantity, states: States = frozenset(), /) -> list[Trace]:
        """One forward pass over the batch, as `stream` makes it."""
        ((_, traces),) = self.stream([batch], want, states)
        return traces

    def stream(
        self, batches: Sequence[Sequence[Encoded]], want: Quantity, states: States = frozenset(), /
    ) -> Generator[tuple[int, list[Trace]]]:
        """The traces of each batch, with its number, as soon as they are there: one forward pass a batch. Meanwhile the
        model must not be changed; states are read by hooks. ModelError where the model has no such states."""
        alike = any(e.shared for batch in batches for e in batch) and self._begins_once
        begun: Begun | None = {} if alike else None
        for i, batch in enumerate(batches):
            with self._one_error():
                traces = self._traces(batch, want, states, begun)
            yield i, traces

    def work(self, lengths: Sequence[int], /) -> float:
        """How much work a batch of rows of so many tokens is, in tokens of a short text. A token is 2 operations a
        parameter, and those of attention, to half of its row on average: 2 for each layer, width and token of the row.
        """
        text = self.model.config.get_text_config()
        wide = int(getattr(text, "num_hidden_layers", 0)) * int(getattr(text, "hidden_size", 0))
        back = wide / max(1, int(self.facts["parameters"]))
        return sum(n + back * n * n for n in lengths)

    def seconds_a_token(self) -> float:
        """Seconds that a made-up token takes on this machine now; read twice, since the first time sets things up."""
        parameters = max(1, int(self.facts["parameters"]))
        length = min(max(int(_TIMED / parameters), _FEWEST_TIMED), _MOST_TIMED, self.max_tokens)
        made_up = Encoded(np.zeros(0, np.int32), (np.arange(length, dtype=np.int32) + 1) % self.vocabulary)
        took = 0.0
        for _ in range(2):
            began = time.perf_counter()
            self.run([made_up], Quantity.LOGP)
            took = time.perf_counter() - began
        return took / length

    @inference
    def _traces(
        self, batch: Sequence[Encoded], want: Quantity, states: States, begun: Begun | None
    ) -> list[Trace]:
        """One forward pass over the batch, padded on the right under the causal mask; a second one over what all rows
        begin with, where that is shared and nothing inside the model is looked at."""
        rows = [np.concatenate([e.prefix, e.tokens]) if len(e.prefix) else e.tokens for e in batch]
        starts = [max(1, len(e.prefix)) for e in batch]
        draws = sorted({s for s in states if isinstance(s, Drawn)}, key=lambda one: (one.k, one.temperature))
        moments = Quantity.MOMENTS in want
        if (key := (moments, tuple(draws))) not in self._sweeps:
            self._sweeps[key] = Sweep(self.vocabulary, self.device, moments=moments, draws=key[1])
        sweep = self._sweeps[key]
        # A window that slides over a beginning is not taken up again alike by all families.
        looked = any(isinstance(state, Hidden | Firing) for state in states)
        whole = begun is None or looked or max(map(len, rows)) > self.window
        shared = 0 if whole else min(e.shared for e in batch)
        inside: list[Read] = [{} for _ in batch]
        parts: Sequence[slice | npt.NDArray[np.int64]]
        if begun is not None and shared:
            shared = min(shared, *(len(row) - 1 for row in rows))
            reading, parts = self._read_alike(rows, starts, shared, sweep, begun)
        else:
            lengths = [len(row) for row in rows]
            predicted = np.stack([starts, lengths], axis=1).astype(np.int64)
            reading, inside = self._read(torch.from_numpy(padded(rows)[0]), predicted, sweep, states)
            ends = np.cumsum(predicted[:, 1] - predicted[:, 0]).tolist()
            # parts of the batch's arrays: all traces of a batch are in memory at once anyway
            parts = [slice(a, b) for a, b in zip([0, *ends], ends, strict=False)]
        logp = reading.logp.numpy()
        mean, std = (None if t is None else t.numpy() for t in (reading.mean, reading.std))
        for array in (logp, mean, std):
            if array is not None:
                array.flags.writeable = False  # and so are its parts
        if not np.isfinite(logp).all():
            raise ModelError(say("models.infinite", name=self.name, dtype=self.facts["dtype"]))
        written = {one: write_ends(self, rows, starts, one) for one in states if isinstance(one, Continued)}
        over: dict[State, npt.NDArray[Any]] = {one: values.numpy() for one, values in reading.drawn.items()}
        if Peak() in states:
            over[Peak()] = reading.peak.numpy()
        traces = []
        each = zip(batch, starts, rows, inside, parts, strict=True)
        for i, (e, start, row, found, part) in enumerate(each):
            more = found | {state: values[part] for state, values in over.items()}
            more |= {state: ends[i] for state, ends in written.items()}
            centre, spread = (None if one is None else one[part] for one in (mean, std))
            traces.append(Trace(row[start:], logp[part], centre, spread, e.cut, more))
        return traces

    def _read_alike(
        self,
        rows: Sequence[npt.NDArray[np.int32]],
        starts: Sequence[int],
        shared: int,
        sweep: Sweep,
        begun: Begun,
    ) -> tuple[_VocabularyReading, list[npt.NDArray[np.int64]]]:
        """Statistics of the positions from `starts` on of rows that take their first `shared` tokens from a few
        beginnings, and where those of each row are: those in a beginning stand there once."""
        numbers: dict[tuple[bytes, int], int] = {}
        which = [
            numbers.setdefault((r[:shared].tobytes(), s), len(numbers))
            for r, s in zip(rows, starts, strict=True)
        ]
        first = [which.index(number) for number in range(len(numbers))]
        heads = torch.from_numpy(np.stack([rows[i][:shared] for i in first]).astype(np.int64)).to(self.device)
        rest = torch.from_numpy(padded([row[shared:] for row in rows])[0])
        body, of = self.model.base_model, torch.tensor(which, device=self.device)
        hidden, cache = _read_beginnings(body, heads, begun)
        after = _go_on(body, cache, of, rest.to(self.device))
        width = after.shape[-1]
        # One list of hidden states: those of the beginnings, then those of the rows.
        states = torch.cat([hidden.reshape(-1, width), after.reshape(-1, width)])
        own, ahead = len(heads) * shared, rest.shape[1]
        at, targets, parts, taken = [], [], [], 0
        in_heads = []
        for head, i in enumerate(first):
            places = np.arange(starts[i], max(starts[i], shared))
            at.append(head * shared + places - 1)
            targets.append(rows[i][places])
            in_heads.append(np.arange(taken, taken := taken + len(places)))
        for i, row in enumerate(rows):
            places = np.arange(max(starts[i], shared), len(row))
            here = own + i * ahead + places - 1 - shared
            at.append(np.where(places == shared, which[i] * shared + shared - 1, here))
            targets.append(row[places])
            parts.append(np.concatenate([in_heads[which[i]], np.arange(taken, taken := taken + len(places))]))
        chosen = torch.from_numpy(np.concatenate(at)).to(self.device)
        tokens = torch.from_numpy(np.concatenate(targets).astype(np.int64)).to(self.device)
        return sweep.read(states.index_select(0, chosen), tokens, self.head), parts

    def _read(
        self, ids: torch.Tensor, predicted: npt.NDArray[np.int64], sweep: Sweep, states: States
    ) -> tuple[_VocabularyReading, list[Read]]:
        """Statistics of the positions [start, stop) of each row, int64 [rows, 2], and each row's states."""
        if self.split:
            with self._watched(states, predicted[:, 1].tolist()) as inside:
                hidden = self._body(ids.to(self.device))
            places = np.arange(ids.shape[1])
            chosen = np.flatnonzero((places >= predicted[:, :1]) & (places < predicted[:, 1:]))
            at = torch.from_numpy(chosen).to(self.device)
            before = hidden.reshape(-1, hidden.shape[-1]).index_select(0, at - 1)
            return sweep.read(before, ids.to(self.device).reshape(-1).index_select(0, at), self.head), inside
        # An architecture that does more to its logits than the output layer: take them from the model
        # itself, a text at a time, and sweep those.
        parts: list[_VocabularyReading] = []
        rows: list[Read] = []
        for i, (start, stop) in enumerate(predicted.tolist()):
            with self._watched(states, [stop]) as inside:
                logits = self._logits(ids[i : i + 1, :stop].to(self.device))[0, start - 1 : stop - 1]
            parts.append(sweep.read(logits, ids[i, start:stop].to(self.device), lambda rows: rows))
            rows += inside
        columns = zip(*((p.mean, p.std) for p in parts), strict=True)
        mean, std = (None if c[0] is None else torch.cat(c) for c in columns)
        logp, peak = torch.cat([part.logp for part in parts]), torch.cat([part.peak for part in parts])
        drawn = {one: torch.cat([part.drawn[one] for part in parts]) for one in sweep.draws}
        return _VocabularyReading(logp, peak, mean, std, drawn), rows

    @contextlib.contextmanager
    def _watched(self, states: States, lengths: Sequence[int]) -> Iterator[list[Read]]:
        """One pass over rows of so many tokens while the context lasts; after it the list holds the states of each row.
        ModelError where they cannot be found inside the model."""
        firing = {state for state in states if isinstance(state, Firing)}
        hidden = {state for state in states if isinstance(state, Hidden)}
        if hidden and Quantity.HIDDEN not in self.offers:
            raise ModelError(say("models.no_blocks", name=self.name, family=self.facts["family"]))
        if firing and not self.layers:
            why = {"family": self.facts["family"], "why": self.no_neurons}
            raise ModelError(say("models.no_neurons", name=self.name, **why))
        found: list[list[Read]] = []
        rows: list[Read] = []
        with contextlib.ExitStack() as stack:
            if hidden:
                body = self.model.base_model
                found.append(stack.enter_context(last_tokens(self.blocks, body, lengths, hidden)))
            if firing:
                how = {"device": self.device, "masked": self.device.type != "cpu"}
                found.append(stack.enter_context(firings(self.blocks, self.layers, lengths, firing, **how)))
            yield rows
        rows.extend({s: a for part in found for s, a in part[i].items()} for i in range(len(lengths)))

    @functools.cached_property
    def _begins_once(self) -> bool:
        """Whether texts that begin alike are read from the keys and values of their beginning."""
        tolerance = 1e-4 if self.dtype == torch.float32 else 2e-2
        steady = self.split and not self.alone and self.turn is None
        return steady and _can_go_on(self.model, self._ten, tolerance=tolerance)

    def _body(self, ids: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.model.base_model(input_ids=ids, use_cache=False)[0]
        return hidden

    def _logits(self, ids: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.model(input_ids=ids, use_cache=False).logits
        return logits

    @inference
    def _look(self) -> None:
        """Read ten tokens, and look at what is called meanwhile."""

        def ask() -> None:
            self._whole = self._logits(self._ten).float()

        found = look_inside(self.model, ask, shape=self._ten.shape)
        self.blocks, self.layers, self.no_neurons = found

    @inference
    def _probe_order(self) -> bool:
        """Whether a text has to be read alone; ModelError unless the model predicts each token from those before it.
        Read are ten tokens, also with another last token, and the first five of them alone and beside all ten."""
        ids = self._ten.reshape(1, -1)
        other = ids.clone()
        other[0, -1] = (other[0, -1] + 1) % self.vocabulary

        def apart(one: torch.Tensor, other: torch.Tensor) -> float:
            found = float((one - other).abs().max())
            return found if math.isfinite(found) else math.inf

        first, changed = (self._all_logp(row)[0, :-1] for row in (ids, other))
        half = self.dtype != torch.float32
        scale = float(first.abs().max()) + 1.0
        early = apart(first, changed) > (5e-3 if half else 2e-5) * scale
        if early and apart(first, self._all_logp(ids)[0, :-1]) > (5e-3 if half else 2e-5) * scale:
            raise ModelError(say("models.random", name=self.name))
        short = ids[:, :5]
        alone = self._all_logp(short)[0]
        if early or apart(first[:5], alone) > (2e-2 if half else 2e-5) * scale:
            raise ModelError(say("models.sees_later", name=self.name, family=self.model.config.model_type))
        if apart(first, first[:1]) <= 1e-6 * scale:
            raise ModelError(say("models.constant", name=self.name))
        if not self.split:
            return False  # such a model is asked a text at a time
        mates = torch.cat([torch.nn.functional.pad(short, (0, 5)), ids])
        beside = self._all_logp(mates)[0, :5]
        return apart(alone, beside) > (2e-2 if half else 2e-5) * scale

    def _all_logp(self, ids: torch.Tensor) -> torch.Tensor:
        """Log-probabilities of all tokens after each position, float32 [rows, tokens, vocabulary]."""
        logits = self.head(self._body(ids)) if self.split else self._logits(ids)
        return logits.float().log_softmax(dim=-1)


def _turning_length(model: Any) -> int | None:
    """The number of tokens above which positions are computed otherwise for a whole batch (`longrope`), or None."""
    if "longrope" not in _rope_kinds(model):
        return None
    config, field = model.config.get_text_config(), "original_max_position_embeddings"
    said = [getattr(config, field, None)]
    for rope in (getattr(config, name, None) or {} for name in ("rope_parameters", "rope_scaling")):
        said += [one.get(field) for one in (rope, *rope.values()) if isinstance(one, dict)]
    return min((int(one) for one in said if one), default=context_of(config))


def _rope_kinds(model: Any) -> set[str]:
    """The ways in which the parts of a model compute positions by rotation."""
    found = [getattr(module, "rope_type", None) for module in model.modules()]
    return {str(one) for kind in found for one in (kind.values() if isinstance(kind, dict) else [kind])}


@inference
def is_head_alone(model: Any, head: Any, ids: torch.Tensor, whole: torch.Tensor) -> bool:
    """Whether output layer ∘ body give the logits that the whole model gives of the ids, float32 `whole`."""
    try:
        apart = head(model.base_model(input_ids=ids, use_cache=False)[0]).float()
    except (RuntimeError, TypeError, AttributeError, LookupError):
        return False
    tolerance = 1e-3 if next(model.parameters()).dtype == torch.float32 else 2e-2
    scale = float(whole.abs().max()) + 1.0
    return apart.shape == whole.shape and float((apart - whole).abs().max()) <= tolerance * scale


def usual_budget(device: torch.device) -> int:
    """Tokens that go through a model at once unless told otherwise."""
    return 2048 if device.type == "cpu" else 32_768


def open_huggingface(model: str, settings: ModelSettings | None = None) -> HuggingFace:
    """The back end for a hub id, a folder, a `.gguf` file, or `smollm2`; ModelError where there is none."""
    settings = settings or ModelSettings()
    one = load(model, settings)
    name, weights = one.name, one.weights
    return HuggingFace(one.model, one.tokenizer, name=name, weights=weights, settings=settings, loaded=one)


@inference
def likeness(one: Backend, other: Backend) -> float | None:
    """The cosine between the weight matrices of two models of the same names and shapes, None without any: an earlier
    state of a model stays far above 0, two models trained from different random weights are at 0."""
    if not isinstance(one, HuggingFace) or not isinstance(other, HuggingFace):
        return None
    theirs = dict(other.model.named_parameters())
    product = mine = yours = 0.0
    for name, weight in one.model.named_parameters():
        match = theirs.get(name)
        if weight.ndim < 2 or match is None or match.shape != weight.shape:
            continue
        a, b = weight.float(), match.to(weight.device).float()
        product += float((a * b).sum(dtype=torch.float64))
        mine += float(a.square().sum(dtype=torch.float64))
        yours += float(b.square().sum(dtype=torch.float64))
    if not mine or not yours:
        return None
    return product / math.sqrt(mine * yours)


_LAYERS = frozenset(["DynamicLayer", "DynamicSlidingWindowLayer"])
"""What transformers calls the keys and values of a layer that may be taken up again, row by row."""
_MOST = 4  # beginnings that are kept
_PROBED = 3  # of five tokens


Begun: TypeAlias = "dict[bytes, tuple[torch.Tensor, Any]]"
"""The beginnings that one stream of batches has read and keeps, by their token ids: hidden states and cache."""


def _read_beginnings(body: Any, ids: torch.Tensor, kept: Begun) -> tuple[torch.Tensor, Any]:
    """Hidden states [beginnings, tokens, width] of the beginnings `ids`, int64 [beginnings, tokens], and the cache of
    the model; one that is read alone is kept for the next batches."""
    key = ids.cpu().numpy().tobytes() if len(ids) == 1 else b""
    found = kept.pop(key, None)
    if found is None:
        made = body(input_ids=ids, use_cache=True)
        found = made[0], cache_of(made)
    if key:
        kept[key] = found  # the last one used stands last
    if len(kept) > _MOST:
        kept.pop(next(iter(kept)))
    return found


def _go_on(body: Any, begun: Any, which: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Hidden states [rows, tokens, width] of `ids`, int64 [rows, tokens], padded on the right, each row after the
    beginning with its number in `which`, int64 [rows], of which the model has the cache `begun`."""
    cache = copy.copy(begun)
    cache.layers = [copy.copy(layer) for layer in begun.layers]
    cache.batch_select_indices(which)
    hidden: torch.Tensor = body(input_ids=ids, use_cache=True, **going_on(body, cache))[0]
    return hidden


@inference
def _can_go_on(model: Any, ids: torch.Tensor, *, tolerance: float) -> bool:
    """Whether a model, asked in two parts, gives the hidden states of one pass over `ids`, int64 [texts, 5]."""
    # A pass may change what another one reads: positions that are computed anew for each length, weights that are moved
    # or unpacked as they are used, and code that came with the model, of which nothing is known.
    if type(model).__module__.startswith("transformers_modules"):
        return False
    if getattr(model, "hf_device_map", None) or getattr(model, "is_quantized", False):
        return False
    if any("dynamic" in kind or kind == "longrope" for kind in _rope_kinds(model)):
        return False
    body = model.base_model
    try:
        whole = body(input_ids=ids, use_cache=False)[0]
        hidden, cache = _read_beginnings(body, ids[:, :_PROBED], {})
        layers = getattr(cache, "layers", [])
        if not layers or any(type(layer).__name__ not in _LAYERS for layer in layers):
            return False
        back = torch.arange(len(ids) - 1, -1, -1, device=ids.device)  # another order: each row keeps its own
        rest = _go_on(body, cache, back, ids[back, _PROBED:])
    except (RuntimeError, TypeError, AttributeError, ValueError, LookupError, NotImplementedError):
        return False
    scale = float(whole.abs().max()) + 1.0
    apart = torch.cat([hidden, rest[back]], dim=1)
    return apart.shape == whole.shape and float((apart - whole).abs().max()) <= tolerance * scale


Head: TypeAlias = "Callable[[torch.Tensor], torch.Tensor]"
"""Hidden states [positions, width] → logits [positions, vocabulary]."""

_CACHE_BYTES = 1_600_000  # what two buffers of a core may take so that they stay in its second-level cache
_CPU_SLICE = 256  # rows for which the output layer's product already runs at full speed
_CPU_SLICE_BYTES = 128 << 20
_GPU_SLICE_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class _VocabularyReading:
    """Float32 tensors on the CPU, one entry a position; `peak` is the largest log-probability over the vocabulary."""

    logp: torch.Tensor
    peak: torch.Tensor
    mean: torch.Tensor | None
    std: torch.Tensor | None
    drawn: Mapping[Drawn, torch.Tensor]


class Sweep:
    """Sums over the vocabulary, from which all follows that a pass yields of it, in float32 whatever the model's dtype.

    The output layer is applied to a slice of positions at a time and the vocabulary is swept a few rows at a time, so
    memory depends on neither the number of texts nor their lengths, and on a CPU the rows being swept stay in its
    cache. Buffers are used again and again: new memory for every block would cost more than the arithmetic, and a fifth
    of the output layer's time. With y = logits - max and e = exp(y), one sweep gives every sum that is needed:

        s0 = Σ e      s1 = Σ e·y      s2 = Σ e·y²
        log p(token) = y[token] - log s0
        mean         = Σ p log p          = s1/s0 - log s0
        var          = Σ p (log p)² - mean² = s2/s0 - (s1/s0)²

    Shifting by the maximum keeps the variance of a near-certain prediction from cancelling: there y is 0 where p is 1.
    Where a token is drawn among the k likeliest at temperature T, with K their set:

        log p(token) = y[token] / T - log Σ_K exp(y / T), and -inf outside K

    The likeliest token has y = 0: its log-probability is -log s0, at no cost.
    """

    def __init__(
        self, vocabulary: int, device: torch.device, *, moments: bool, draws: tuple[Drawn, ...] = ()
    ) -> None:
        self.moments, self.draws = moments, draws
        self.sums = 4 if moments else 2
        if device.type == "cpu":
            self.slice = max(16, min(_CPU_SLICE, _CPU_SLICE_BYTES // (4 * vocabulary)))
            rows = max(1, _CACHE_BYTES // (8 * vocabulary)) * torch.get_num_threads()
        else:
            self.slice = max(16, _GPU_SLICE_BYTES // (4 * vocabulary))
            rows = max(16, _GPU_SLICE_BYTES // (12 * vocabulary))
        self.rows = min(rows, self.slice)
        self.vocabulary, self.device = vocabulary, device
        self._product: torch.Tensor | None = None

    @inference
    def read(self, hidden: torch.Tensor, targets: torch.Tensor, head: Head) -> _VocabularyReading:
        """Log-probability (natural) of each target, and mean and std of log p under the model (Zhang et al. 2024b)
        where wanted. `hidden` is [positions, width], `targets` int64 [positions]: the token after each position."""
        first = self.sums
        shape = first + len(self.draws), len(hidden)
        sums = torch.zeros(shape, dtype=torch.float32, device=hidden.device)
        for start in range(0, len(hidden), self.slice):
            part = slice(start, start + self.slice)
            self(self._logits(head, hidden[part]), targets[part], sums[:, part])
        y, s0 = sums[0], sums[1]
        log_s0 = s0.log()
        logp, peak = (y - log_s0).cpu(), (-log_s0).cpu()
        drawn = {one: sums[first + i].cpu() for i, one in enumerate(self.draws)}
        if not self.moments:
            return _VocabularyReading(logp, peak, None, None, drawn)
        centre = sums[2] / s0
        variance = (sums[3] / s0 - centre * centre).clamp_min_(0)
        return _VocabularyReading(logp, peak, (centre - log_s0).cpu(), variance.sqrt().cpu(), drawn)

    def _logits(self, head: Head, hidden: torch.Tensor) -> torch.Tensor:
        """The output layer's product for a slice of positions, which on a CPU the next slice overwrites, if plain."""
        if self.device.type != "cpu" or not _plain(head):
            return head(hidden)
        if self._product is None or self._product.dtype != hidden.dtype:
            self._product = torch.empty((self.slice, self.vocabulary), dtype=hidden.dtype)
        return torch.mm(hidden, head.weight.t(), out=self._product[: len(hidden)])

    @functools.cached_property
    def _buffers(self) -> torch.Tensor:
        size = (1 + self.moments, self.rows, self.vocabulary)
        return torch.empty(size, dtype=torch.float32, device=self.device)

    def __call__(self, logits: torch.Tensor, targets: torch.Tensor, sums: torch.Tensor) -> None:
        for start in range(0, len(logits), self.rows):
            block = slice(start, min(start + self.rows, len(logits)))
            self._block(logits[block], targets[block], sums[:, block])

    def _block(self, logits: torch.Tensor, targets: torch.Tensor, sums: torch.Tensor) -> None:
        y = self._buffers[0, : len(logits)]
        y.copy_(logits)
        y.sub_(y.amax(dim=-1, keepdim=True))
        sums[0] = own = y.gather(1, targets[:, None])[:, 0]
        for i, how in enumerate(self.draws, self.sums):
            likeliest = y.topk(min(how.k, y.shape[1]), dim=-1, sorted=True).values
            found = own / how.temperature - (likeliest / how.temperature).logsumexp(dim=-1)
            sums[i] = found.where(own >= likeliest[:, -1], -torch.inf)
        if not self.moments:
            sums[1] = y.exp_().sum(dim=-1)
            return
        e = self._buffers[1, : len(logits)]
        torch.exp(y, out=e)
        sums[1] = e.sum(dim=-1)
        sums[2] = e.mul_(y).sum(dim=-1)
        sums[3] = e.mul_(y).sum(dim=-1)


def _plain(head: Head) -> TypeGuard[nn.Linear]:
    """Whether a layer is nothing but a product with its weights, which nobody listens to or replaced."""
    return (
        type(head) is nn.Linear
        and head.bias is None
        and not head._forward_hooks
        and not head._forward_pre_hooks
        and "forward" not in vars(head)
    )
