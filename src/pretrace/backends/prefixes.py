"""Keys and values of a beginning that many texts share: computed once, then given to each batch that goes on."""

from __future__ import annotations

import copy
import inspect
from collections import OrderedDict
from typing import Any, NamedTuple

import torch

_LAYERS = frozenset(["DynamicLayer", "DynamicSlidingWindowLayer"])
"""What transformers calls the keys and values of a layer that may be taken up again, row by row."""
_MOST = 4
"""Beginnings that are kept."""
_PROBED = 3  # of five tokens


class Begun(NamedTuple):
    """Beginnings of equal length that a model has read: hidden states [beginnings, tokens, width], and its cache."""

    hidden: torch.Tensor
    cache: Any


class Prefixes:
    """Reads beginnings, for one stream of batches; one that stands alone in its batch is kept for the next ones."""

    def __init__(self, body: Any) -> None:
        self._body = body
        self._kept: OrderedDict[bytes, Begun] = OrderedDict()

    def read(self, ids: torch.Tensor) -> Begun:
        """What the model makes of the beginnings `ids`, int64 [beginnings, tokens]."""
        if len(ids) > 1:
            return begin(self._body, ids)
        key = ids.cpu().numpy().tobytes()
        if key not in self._kept:
            self._kept[key] = begin(self._body, ids)
        self._kept.move_to_end(key)
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)
        return self._kept[key]

    def go_on(self, begun: Begun, which: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """Hidden states [rows, tokens, width] of `ids`, int64 [rows, tokens], padded on the right, each row after the
        beginning with its number in `which`, int64 [rows]."""
        cache = copy.copy(begun.cache)
        cache.layers = [copy.copy(layer) for layer in begun.cache.layers]
        cache.batch_select_indices(which)
        hidden: torch.Tensor = self._body(input_ids=ids, use_cache=True, **going_on(self._body, cache))[0]
        return hidden


def cache_of(output: Any) -> Any:
    """What a model kept of what it read, None where it kept nothing: `cache` since transformers 5.24."""
    named = "cache" if "cache" in getattr(output, "__dataclass_fields__", ()) else "past_key_values"
    return getattr(output, named, None)


def going_on(model: Any, cache: Any) -> dict[str, Any]:
    """The argument of the model's forward pass that takes such a cache up again, under the name that the model has
    for it; code that came with a model, and an older transformers, have the older name."""
    known = inspect.signature(model.forward).parameters
    return {"cache" if "cache" in known else "past_key_values": cache}


def begin(body: Any, ids: torch.Tensor) -> Begun:
    """One pass over beginnings, int64 [beginnings, tokens]."""
    made = body(input_ids=ids, use_cache=True)
    return Begun(made[0], cache_of(made))


def keeps_state(model: Any) -> bool:
    """Whether a pass may change what another one reads: positions that are computed anew for each length, weights that
    are moved or unpacked as they are used, and code that came with the model, of which nothing is known."""
    if type(model).__module__.startswith("transformers_modules"):
        return True
    if getattr(model, "hf_device_map", None) or getattr(model, "is_quantized", False):
        return True
    for module in model.modules():
        kinds = getattr(module, "rope_type", None)
        if kinds is not None:
            kinds = kinds.values() if isinstance(kinds, dict) else [kinds]
            if any("dynamic" in str(kind) or kind == "longrope" for kind in kinds):
                return True
    return False


@torch.inference_mode()
def can_go_on(model: Any, ids: torch.Tensor, *, tolerance: float) -> bool:
    """Whether a model, asked in two parts, gives the hidden states of one pass over `ids`, int64 [texts, 5]: not
    where it keeps no list of keys and values, or its positions depend on the length."""
    if keeps_state(model):
        return False
    body = model.base_model
    try:
        whole = body(input_ids=ids, use_cache=False)[0]
        begun = begin(body, ids[:, :_PROBED])
        layers = getattr(begun.cache, "layers", [])
        if not layers or any(type(layer).__name__ not in _LAYERS for layer in layers):
            return False
        back = torch.arange(
            len(ids) - 1, -1, -1, device=ids.device
        )  # rows in another order: each keeps its own
        rest = Prefixes(body).go_on(begun, back, ids[back, _PROBED:])
    except (RuntimeError, TypeError, AttributeError, ValueError, LookupError, NotImplementedError):
        return False
    scale = float(whole.abs().max()) + 1.0
    apart = torch.cat([begun.hidden, rest[back]], dim=1)
    return apart.shape == whole.shape and float((apart - whole).abs().max()) <= tolerance * scale
