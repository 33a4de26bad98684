"""Inside a model: where its blocks and feed-forward neurons are, and what is kept of them while it reads texts.

Activations are reduced to a few numbers a text as soon as they appear: nothing of shape texts × positions × neurons
outlives the layer that made it. Hidden state l is what enters block l, and the last is what leaves the body of the
model, after its final norm: as transformers numbers them, but caught as they pass, one vector a text of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from pretrace.errors import ModelError
from pretrace.types import Firing, Hidden, Pool, State

_PLACES = (128, 64, 32, 16, 8, 4, 2, 1)  # numpy.packbits: the first of eight is the highest bit
_STRETCH = 255  # positions whose firings can be counted in a byte


def bits(part: torch.Tensor, pool: Pool, thresholds: Sequence[float]) -> torch.Tensor:
    """[texts, positions, neurons] → which neurons exceed each threshold, packed: uint8 [texts, rules, bytes]."""
    pooled = part.amax(dim=1).float() if pool == "any" else part.mean(dim=1, dtype=torch.float32)
    limits = torch.tensor(thresholds, dtype=torch.float32, device=part.device)
    fires = pooled[:, None] > limits[:, None]
    padded = nn.functional.pad(fires.to(torch.uint8), (0, -fires.shape[-1] % 8))
    places = torch.tensor(_PLACES, dtype=torch.uint8, device=part.device)
    return (padded.reshape(*fires.shape[:2], -1, 8) * places).sum(-1, dtype=torch.uint8)


def count(part: torch.Tensor, thresholds: Sequence[float]) -> torch.Tensor:
    """[texts, positions, neurons] → at how many positions each exceeds: int32 [texts, rules, neurons]."""
    total = torch.zeros((len(part), len(thresholds), part.shape[2]), dtype=torch.int32, device=part.device)
    limits = [_limit(threshold, part.dtype) for threshold in thresholds]
    for start in range(0, part.shape[1], _STRETCH):
        stretch = part[:, start : start + _STRETCH]
        for number, limit in enumerate(limits):
            fires = (stretch > limit).view(torch.uint8)
            total[:, number] += fires.sum(dim=1, dtype=torch.uint8)
    return total


def _limit(threshold: float, dtype: torch.dtype) -> float:
    """The largest number of a type that is not above the threshold. A comparison rounds the threshold to the
    tensor's type, and one that was rounded up would leave out what lies just above it."""
    exact = torch.tensor(threshold, dtype=torch.float32)
    limit = exact.to(dtype)
    if limit.float() > exact:
        limit = torch.nextafter(limit, torch.tensor(-torch.inf, dtype=dtype))
    return float(limit)


Read = Mapping[State, npt.NDArray[Any]]


class LastToken:
    """Hidden states at the last token of each row of a pass: `attach` the hooks, `begin` before it with the rows'
    lengths in tokens, `read` after it. A layer narrower than the widest (OPT's last, in some sizes) is padded with
    zeros."""

    def __init__(self, blocks: Sequence[nn.Module], body: nn.Module, *, states: set[Hidden]) -> None:
        self.blocks, self.body = blocks, body
        self.states = states
        count = len(blocks) + 1
        chosen = range(count) if Hidden() in states else (s.layer for s in states if s.layer is not None)
        self.wanted = frozenset(chosen)
        beyond = sorted(layer for layer in self.wanted if not 0 <= layer < count)
        if beyond:
            raise ModelError(f"hidden state {beyond[0]} was wanted; this model has 0 to {count - 1}.")
        self.begin(())

    def begin(self, lengths: Sequence[int]) -> None:
        """A pass over rows of so many tokens."""
        self.lengths = lengths
        self._found: dict[int, torch.Tensor] = {}
        self._passed = self._widest = 0

    def attach(self) -> list[RemovableHandle]:
        """Hooks before each block, and after the whole body."""
        before: list[RemovableHandle] = [
            block.register_forward_pre_hook(self._before, with_kwargs=True)
            for block in dict.fromkeys(self.blocks)
        ]
        return [*before, self.body.register_forward_hook(self._after)]

    def read(self) -> list[Read]:
        """For each row its states, float32; ModelError where a block was passed by."""
        missing = self.wanted - self._found.keys()
        if missing:
            raise ModelError(
                f"hidden state {min(missing)} was wanted, and the model never computed it; use scores that "
                "need no hidden states."
            )
        arrays = {
            layer: nn.functional.pad(found, (0, self._widest - found.shape[1])).cpu().numpy()
            for layer, found in self._found.items()
        }
        made: list[Read] = []
        for row in range(len(self.lengths)):
            stack = [arrays[layer][row] for layer in sorted(arrays)]
            made.append(
                {s: np.stack(stack) if s.layer is None else arrays[s.layer][row].copy() for s in self.states}
            )
        return made

    def _before(self, block: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._keep(self._passed, stream(args, kwargs))
        self._passed += 1

    def _after(self, body: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        found = output[0] if isinstance(output, tuple) else getattr(output, "last_hidden_state", None)
        self._keep(len(self.blocks), found)

    def _keep(self, layer: int, hidden: torch.Tensor | None) -> None:
        self._widest = max(self._widest, 0 if hidden is None else hidden.shape[-1])
        if layer not in self.wanted:
            return
        if hidden is None or hidden.dim() != 3 or len(hidden) != len(self.lengths):
            raise ModelError(
                f"hidden state {layer} was wanted as [texts, tokens, width], and the model passes it on in "
                "another form; use scores that need no hidden states."
            )
        rows = torch.arange(len(self.lengths), device=hidden.device)
        last = torch.tensor(self.lengths, device=hidden.device) - 1
        self._found[layer] = hidden[rows, last].float()


@contextmanager
def hooked(handles: Sequence[RemovableHandle]) -> Iterator[None]:
    """Hooks that are in place while the context lasts."""
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def stream(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> torch.Tensor | None:
    """The hidden states a block is called with, by position or by name."""
    found = args[0] if args else kwargs.get("hidden_states")
    return found if isinstance(found, torch.Tensor) else None


def find_blocks(model: Any, ask: Callable[[], object], *, shape: tuple[int, ...]) -> list[nn.Module]:
    """The transformer blocks in the order they are passed, found by letting the model read ids of a shape.

    They are the outermost list of as many modules as the configuration counts layers, every one of which
    is called with [texts, tokens, width]. Empty where there is no such list.
    """
    count = getattr(model.config.get_text_config(), "num_hidden_layers", None)
    lists = [list(m) for m in model.modules() if isinstance(m, nn.ModuleList) and len(m) == count]
    called: list[nn.Module] = []

    def note(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        hidden = stream(args, kwargs)
        if hidden is not None and hidden.dim() == 3 and hidden.shape[:2] == shape:
            called.append(module)

    modules = dict.fromkeys(module for some in lists for module in some)
    with hooked([module.register_forward_pre_hook(note, with_kwargs=True) for module in modules]):
        ask()
    return next((some for some in lists if [module for module in called if module in some] == some), [])


_SEEN = 8  # neurons of a call that are kept to recognise a function by
_FUNCTIONS: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (  # GELU stands for its tanh form too
    nn.functional.gelu,
    nn.functional.relu,
    nn.functional.silu,
    torch.tanh,
    lambda x: torch.relu(x) ** 2,
    lambda x: x * torch.sigmoid(1.702 * x),
)


@dataclass(frozen=True, slots=True)
class _FeedForward:
    """Where one block's neurons are read: what leaves `activation`, or where that is None what enters
    `down`. What enters `down` is also the gated product of a gated layer. `neurons` wide."""

    activation: nn.Module | None
    down: nn.Module
    neurons: int


@dataclass(slots=True)
class _Call:
    """A call inside a block: last dimension of what went in and came out, positions, a few of the numbers."""

    module: nn.Module
    activation: bool
    inward: int
    outward: int
    positions: int
    entered: torch.Tensor
    left: torch.Tensor


@dataclass(slots=True)
class _BlockModules:
    width: int = 0
    positions: int = 0
    calls: list[_Call] = field(default_factory=list)


def find_feed_forward(
    blocks: Sequence[nn.Module], ask: Callable[[], object]
) -> tuple[tuple[_FeedForward, ...], str]:
    """The feed-forward layer of each block and "", or nothing and the reason why there is none.

    Found by structure, from one look at what is called when the model reads a few tokens: the *down projection* is the
    linear map from the widest activation back to the width of the block, the *activation* the last module before it
    that maps every neuron by itself, or a plain function, recognised at the entrance of the down projection.
    """
    if not blocks:
        return (), "its blocks could not be found"
    if any(_several(block) for block in blocks):
        if any("expert" in name for block in blocks for name, _ in block.named_parameters()):
            return (), "it is a mixture of experts, where a token passes through some of the neurons only"
        return (
            (),
            "its blocks hold several networks or stacks of matrices, of which none is known to be the feed-forward",
        )
    found = []
    for number, block in enumerate(_observed(blocks, ask), start=1):
        layer = _feed_forward(block)
        if isinstance(layer, str):
            return (), f"in block {number} {layer}"
        found.append(layer)
    return tuple(found), ""


def _several(block: nn.Module) -> bool:
    """Whether a block holds a stack of matrices, or a list of modules: experts, or the heads of a recurrence."""
    for module in block.modules():
        if isinstance(module, nn.modules.conv._ConvNd):
            continue
        if any(sum(n > 1 for n in p.shape) > 2 for p in module.parameters(recurse=False)):
            return True
        if isinstance(module, nn.ModuleList) and len(module) > 1:
            return True
    return False


def _observed(blocks: Sequence[nn.Module], ask: Callable[[], object]) -> list[_BlockModules]:
    """What is called inside each block, in order, while the model reads something."""
    seen: list[_BlockModules] = []

    def enter(block: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        hidden = stream(args, kwargs)
        seen.append(
            _BlockModules() if hidden is None else _BlockModules(hidden.shape[-1], hidden[..., 0].numel())
        )

    def call(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        made = _called(module, args[0] if args else None, output)
        if made is not None:
            seen[-1].calls.append(made)

    distinct = dict.fromkeys(blocks)
    leaves = dict.fromkeys(m for block in distinct for m in block.modules() if not list(m.children()))
    handles: list[RemovableHandle] = [b.register_forward_pre_hook(enter, with_kwargs=True) for b in distinct]
    handles += [leaf.register_forward_hook(call) for leaf in leaves]
    with hooked(handles):
        ask()
    return seen


def _called(module: nn.Module, entered: Any, left: Any) -> _Call | None:
    """A call of a linear map or of something that maps neuron by neuron; None for any other."""
    if not (isinstance(entered, torch.Tensor) and isinstance(left, torch.Tensor)):
        return None
    if not entered.is_floating_point() or min(entered.dim(), left.dim()) < 2:
        return None
    # quantised weights are buffers in some formats
    linear = any(t.dim() == 2 for t in (*module.parameters(), *module.buffers()))
    activation = not linear and _elementwise(module, entered, left)
    if not (linear or activation):
        return None
    size = left[..., 0].numel()
    return _Call(module, activation, entered.shape[-1], left.shape[-1], size, _few(entered), _few(left))


def _few(values: torch.Tensor) -> torch.Tensor:
    return values.reshape(-1, values.shape[-1])[:, :_SEEN].float().clone()


def _elementwise(module: nn.Module, entered: torch.Tensor, left: torch.Tensor) -> bool:
    """Whether a module changes what passes through it, each number by itself: no norm, no dropout."""
    if entered.shape != left.shape or any(p.numel() > 1 for p in module.parameters()):
        return False
    if torch.equal(entered, left):
        return False
    try:
        alone = module.forward(entered[..., :1].clone())
    except (RuntimeError, ValueError, TypeError, IndexError):
        return False
    return isinstance(alone, torch.Tensor) and _close(alone, left[..., :1])


def _feed_forward(block: _BlockModules) -> _FeedForward | str:
    """The feed-forward layer of one block, or what is wrong with it, as a clause."""
    calls = list(enumerate(block.calls))
    downs = [(i, c) for i, c in calls if not c.activation and c.outward == block.width]
    pairs = []
    for i, c in calls:
        after = [down for j, down in downs if j > i and down.inward == c.outward]
        if c.activation and after:
            pairs.append((c, after[-1]))
    widest = max((c.outward for c, _ in pairs), default=0)
    pairs = [(c, down) for c, down in pairs if c.outward == widest]
    if len(pairs) > 1:
        return f"{len(pairs)} activation functions were applied"
    if pairs:
        activation, down = pairs[0]
        if activation.positions != block.positions:
            return "the activation function was not applied to every token"
        return _FeedForward(activation.module, down.module, down.inward)
    for i, down in reversed(downs):
        ups = [c for j, c in calls if j < i and not c.activation and c.outward == down.inward > block.width]
        if ups and any(_close(function(ups[-1].left), down.entered) for function in _FUNCTIONS):
            return _FeedForward(None, down.module, down.inward)
    return "no activation function was found"


def _close(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal up to the rounding of bfloat16, measured by the largest number."""
    return a.shape == b.shape and float((a.float() - b.float()).abs().max()) <= 0.01 * float(b.abs().max())


class Firings:
    """Which neurons each row of a pass activates; methods as those of `LastToken`. Rules that differ in their
    thresholds alone share one reduction a layer."""

    def __init__(
        self,
        blocks: Sequence[nn.Module],
        layers: Sequence[_FeedForward],
        *,
        states: set[Firing],
        device: torch.device,
    ) -> None:
        self.blocks, self.layers, self.device = blocks, layers, device
        self.rules: dict[tuple[bool, Pool], list[Firing]] = {}
        for state in sorted(states, key=lambda s: s.threshold):
            self.rules.setdefault((state.gated, state.pool), []).append(state)
        # A GPU is given all rows at once with what pads them masked: a call for each length would take longer.
        self.masked = device.type != "cpu"
        self.begin(())

    def begin(self, lengths: Sequence[int]) -> None:
        """A pass over rows of so many tokens."""
        self.lengths = lengths
        widest = max(layer.neurons for layer in self.layers)
        self._found: dict[tuple[bool, Pool], torch.Tensor] = {}
        for kind, rules in self.rules.items():
            counted = kind[1] == "count"
            self._found[kind] = torch.zeros(
                (len(lengths), len(rules), len(self.layers), widest if counted else -(-widest // 8)),
                dtype=torch.int32 if counted else torch.uint8,
                device=self.device,
            )
        self._layer = -1
        self._seen: set[tuple[int, bool]] = set()

    def attach(self) -> list[RemovableHandle]:
        """Hooks before each block, to know the layer, and at the activations and down projections."""
        handles: list[RemovableHandle] = [
            b.register_forward_pre_hook(self._enter) for b in dict.fromkeys(self.blocks)
        ]
        for gated in {gated for gated, _ in self.rules}:
            sources = [None if gated else layer.activation for layer in self.layers]
            downs = [layer.down for layer, a in zip(self.layers, sources, strict=True) if a is None]
            reduce = partial(self._reduce, gated)
            handles += [
                down.register_forward_pre_hook(lambda _, args, reduce=reduce: reduce(args[0]))
                for down in dict.fromkeys(downs)
            ]
            handles += [
                a.register_forward_hook(lambda _, args, output, reduce=reduce: reduce(output))
                for a in dict.fromkeys(sources)
                if a is not None
            ]
        return handles

    def read(self) -> list[Read]:
        """For each row its states; ModelError where a layer was passed by."""
        wanted = {(layer, gated) for layer in range(len(self.layers)) for gated, _ in self.rules}
        if self._seen != wanted:
            raise _unsteady()
        made: list[dict[Any, Any]] = [{} for _ in self.lengths]
        for kind, rules in self.rules.items():
            whole = self._found[kind].cpu().numpy()
            for row, states in enumerate(made):
                for number, rule in enumerate(rules):
                    kept = whole[row, number]
                    states[rule] = kept.astype(np.uint32) if kind[1] == "count" else kept.copy()
        return list(made)

    def _enter(self, block: nn.Module, args: tuple[Any, ...]) -> None:
        self._layer += 1

    def _reduce(self, gated: bool, activations: torch.Tensor) -> None:
        """One layer's activations, [texts, positions, neurons] or flattened to [positions, neurons]."""
        if self._layer >= len(self.layers) or (self._layer, gated) in self._seen:
            raise _unsteady()
        self._seen.add((self._layer, gated))
        rows = activations.reshape(len(self.lengths), -1, self.layers[self._layer].neurons)
        for (also, pool), rules in self.rules.items():
            if also != gated:
                continue
            thresholds = [rule.threshold for rule in rules]
            for some, part in [self._whole(rows, pool)] if self.masked else self._runs(rows):
                fired = count(part, thresholds) if pool == "count" else bits(part, pool, thresholds)
                self._found[also, pool][some, :, self._layer, : fired.shape[-1]] = fired

    def _whole(self, rows: torch.Tensor, pool: Pool) -> tuple[slice, torch.Tensor]:
        """All rows, changed where they are padded so that pooling over every position leaves it out."""
        lengths = torch.tensor(self.lengths, device=rows.device)
        padding = (torch.arange(rows.shape[1], device=rows.device) >= lengths[:, None])[:, :, None]
        if pool == "mean":
            share = rows.shape[1] / lengths.float()
            return slice(0, len(rows)), rows.float().masked_fill(padding, 0) * share[:, None, None]
        return slice(0, len(rows)), rows.masked_fill(padding, -torch.inf)

    def _runs(self, rows: torch.Tensor) -> Iterator[tuple[slice, torch.Tensor]]:
        """Neighbouring rows of one length together, cut to their length: what pads them is left out."""
        start = 0
        for stop in range(1, len(self.lengths) + 1):
            if stop == len(self.lengths) or self.lengths[stop] != self.lengths[start]:
                yield slice(start, stop), rows[start:stop, : self.lengths[start]]
                start = stop


def _unsteady() -> ModelError:
    return ModelError(
        "neurons were wanted, and this model applied its activation functions otherwise than on the few tokens "
        "it was looked at with; use scores that need no neurons."
    )
