"""Where a model's blocks are, and its hidden states at the last token of each text.

Hidden state l is what enters block l, and the last is what leaves the body of the model, after its final
norm: as transformers numbers them, but caught as they pass, so that one vector a text is kept of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from pretrace.errors import ModelError
from pretrace.types import Hidden, Pool, State

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
    """Hidden states at the last token of each row of a forward pass.

    `attach` puts the hooks in place. Then, for each pass: `begin` before it, with the rows' lengths in tokens, and
    `read` after it for each row's states. A layer narrower than the widest (OPT's last, in some sizes) is padded with
    zeros.
    """

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
    handles = [module.register_forward_pre_hook(note, with_kwargs=True) for module in modules]
    try:
        ask()
    finally:
        for handle in handles:
            handle.remove()
    return next((some for some in lists if [module for module in called if module in some] == some), [])
