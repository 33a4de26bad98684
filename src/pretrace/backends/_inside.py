"""What is kept of the inside of a model, its hidden states and feed-forward neurons, while it reads texts.

Activations are reduced to a few numbers a text as soon as they appear: nothing of shape texts × positions × neurons
outlives the layer that made it. Hidden state l is what enters block l, and the last is what leaves the body of the
model, after its final norm: as transformers numbers them, but caught as they pass, one vector a text of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.backends.libraries import nn, torch
from pretrace.backends.loading import FeedForward, hooked, stream_of
from pretrace.errors import ModelError
from pretrace.results.wording import say
from pretrace.types import Firing, Hidden, Pool, State

_PLACES = (128, 64, 32, 16, 8, 4, 2, 1)  # numpy.packbits: the first of eight is the highest bit
_STRETCH = 255  # positions whose firings can be counted in a byte


def _bits(part: torch.Tensor, pool: Pool, thresholds: Sequence[float]) -> torch.Tensor:
    """[texts, positions, neurons] → which neurons exceed each threshold, packed: uint8 [texts, rules, bytes]."""
    pooled = part.amax(dim=1).float() if pool == "any" else part.mean(dim=1, dtype=torch.float32)
    limits = torch.tensor(thresholds, dtype=torch.float32, device=part.device)
    fires = pooled[:, None] > limits[:, None]
    padded = nn.functional.pad(fires.to(torch.uint8), (0, -fires.shape[-1] % 8))
    places = torch.tensor(_PLACES, dtype=torch.uint8, device=part.device)
    return (padded.reshape(*fires.shape[:2], -1, 8) * places).sum(-1, dtype=torch.uint8)


def _count(part: torch.Tensor, thresholds: Sequence[float]) -> torch.Tensor:
    """[texts, positions, neurons] → at how many positions each exceeds: int32 [texts, rules, neurons]."""
    total = torch.zeros((len(part), len(thresholds), part.shape[2]), dtype=torch.int32, device=part.device)
    for number, threshold in enumerate(thresholds):
        # A comparison rounds to the tensor's type, and a threshold rounded up would leave out what lies just above.
        limit = torch.tensor(threshold, dtype=torch.float32).to(part.dtype)
        if limit.float() > torch.tensor(threshold, dtype=torch.float32):
            limit = torch.nextafter(limit, torch.tensor(-torch.inf, dtype=part.dtype))
        for start in range(0, part.shape[1], _STRETCH):
            fires = (part[:, start : start + _STRETCH] > float(limit)).view(torch.uint8)
            total[:, number] += fires.sum(dim=1, dtype=torch.uint8)
    return total


Read = dict[State, npt.NDArray[Any]]


@contextmanager
def last_tokens(
    blocks: Sequence[nn.Module], body: nn.Module, lengths: Sequence[int], states: set[Hidden]
) -> Iterator[list[Read]]:
    """One pass over rows of so many tokens while the context lasts; after it the list holds each row's hidden states at
    its last token, float32. A layer narrower than the widest (OPT's last, in some sizes) is padded with zeros.
    ModelError for a layer that there is not, that was passed by, or whose states have another form."""
    count, every = len(blocks) + 1, Hidden() in states
    wanted = frozenset(range(count) if every else (s.layer for s in states if s.layer is not None))
    beyond = sorted(layer for layer in wanted if not 0 <= layer < count)
    if beyond:
        raise ModelError(f"hidden state {beyond[0]} was wanted; this model has 0 to {count - 1}.")
    found: dict[int, torch.Tensor] = {}
    widths: list[int] = []

    def keep(layer: int, hidden: torch.Tensor | None) -> None:
        widths.append(0 if hidden is None else hidden.shape[-1])
        if layer not in wanted:
            return
        if hidden is None or hidden.dim() != 3 or len(hidden) != len(lengths):
            raise ModelError(say("models.hidden_form", layer=layer))
        rows = torch.arange(len(lengths), device=hidden.device)
        found[layer] = hidden[rows, torch.tensor(lengths, device=hidden.device) - 1].float()

    def before(block: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        keep(len(widths), stream_of(args, kwargs))

    def after(body: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        keep(
            count - 1, output[0] if isinstance(output, tuple) else getattr(output, "last_hidden_state", None)
        )

    handles = [b.register_forward_pre_hook(before, with_kwargs=True) for b in dict.fromkeys(blocks)]
    made: list[Read] = []
    with hooked([*handles, body.register_forward_hook(after)]):
        yield made
    if missing := wanted - found.keys():
        raise ModelError(say("models.no_hidden", missing=min(missing)))
    arrays = {
        layer: nn.functional.pad(one, (0, max(widths) - one.shape[1])).cpu().numpy()
        for layer, one in sorted(found.items())
    }
    for row in range(len(lengths)):
        own = {layer: array[row] for layer, array in arrays.items()}
        made.append(
            {s: np.stack([*own.values()]) if s.layer is None else own[s.layer].copy() for s in states}
        )


@contextmanager
def firings(
    blocks: Sequence[nn.Module],
    layers: Sequence[FeedForward],
    lengths: Sequence[int],
    states: set[Firing],
    *,
    device: torch.device,
    masked: bool,
) -> Iterator[list[Read]]:
    """One pass over rows of so many tokens while the context lasts; after it the list says which neurons each row
    activates. `masked`: all rows at once, their padding masked. ModelError where a layer was passed by."""
    kinds: dict[tuple[bool, Pool], list[Firing]] = {}
    for state in sorted(states, key=lambda s: s.threshold):
        kinds.setdefault((state.gated, state.pool), []).append(state)
    widest = max(layer.neurons for layer in layers)
    found: dict[tuple[bool, Pool], torch.Tensor] = {}
    for kind, rules in kinds.items():
        width, dtype = (widest, torch.int32) if kind[1] == "count" else (-(-widest // 8), torch.uint8)
        found[kind] = torch.zeros((len(lengths), len(rules), len(layers), width), dtype=dtype, device=device)
    here, seen = [-1], set[tuple[int, bool]]()  # the layer whose block was entered last

    def enter(block: nn.Module, args: tuple[Any, ...]) -> None:
        here[0] += 1

    def reduce(gated: bool, activations: torch.Tensor) -> None:
        """One layer's activations, [texts, positions, neurons] or flattened to [positions, neurons]."""
        layer = here[0]
        if layer >= len(layers) or (layer, gated) in seen:
            raise ModelError(say("models.unsteady_neurons"))
        seen.add((layer, gated))
        rows = activations.reshape(len(lengths), -1, layers[layer].neurons)
        for kind, rules in kinds.items():
            pool, thresholds = kind[1], [rule.threshold for rule in rules]
            parts = [_whole(rows, lengths, pool)] if masked else _runs(rows, lengths)
            for some, part in parts if kind[0] == gated else ():
                fired = _count(part, thresholds) if pool == "count" else _bits(part, pool, thresholds)
                found[kind][some, :, layer, : fired.shape[-1]] = fired

    handles = [b.register_forward_pre_hook(enter) for b in dict.fromkeys(blocks)]
    gatings = {gated for gated, _ in kinds}
    for gated in gatings:
        handles += _neuron_hooks(layers, gated, partial(reduce, gated))
    made: list[Read] = []
    with hooked(handles):
        yield made
    if seen != set(product(range(len(layers)), gatings)):
        raise ModelError(say("models.unsteady_neurons"))
    arrays = {kind: one.cpu().numpy() for kind, one in found.items()}
    made += [
        {
            rule: arrays[kind][row, number].astype(np.uint32 if kind[1] == "count" else np.uint8)
            for kind, rules in kinds.items()
            for number, rule in enumerate(rules)
        }
        for row in range(len(lengths))
    ]


def _neuron_hooks(
    layers: Sequence[FeedForward], gated: bool, reduce: Callable[[torch.Tensor], None]
) -> list[torch.utils.hooks.RemovableHandle]:
    """Hooks at what is read of each layer, once a module."""
    if gated:
        downs = dict.fromkeys(layer.down for layer in layers)
        return [one.register_forward_pre_hook(lambda _, args: reduce(args[0])) for one in downs]
    activations = dict.fromkeys(layer.activation for layer in layers)
    return [one.register_forward_hook(lambda _, args, output: reduce(output)) for one in activations]


def _whole(rows: torch.Tensor, lengths: Sequence[int], pool: Pool) -> tuple[slice, torch.Tensor]:
    """All rows, changed where they are padded so that pooling over every position leaves it out."""
    sizes = torch.tensor(lengths, device=rows.device)
    padding = (torch.arange(rows.shape[1], device=rows.device) >= sizes[:, None])[:, :, None]
    if pool == "mean":
        share = rows.shape[1] / sizes.float()
        return slice(0, len(rows)), rows.float().masked_fill(padding, 0) * share[:, None, None]
    return slice(0, len(rows)), rows.masked_fill(padding, -torch.inf)


def _runs(rows: torch.Tensor, lengths: Sequence[int]) -> Iterator[tuple[slice, torch.Tensor]]:
    """Neighbouring rows of one length together, cut to their length: what pads them is left out."""
    start = 0
    for stop in range(1, len(lengths) + 1):
        if stop == len(lengths) or lengths[stop] != lengths[start]:
            yield slice(start, stop), rows[start:stop, : lengths[start]]
            start = stop
