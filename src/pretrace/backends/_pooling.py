"""A layer's activations pooled over the positions of a text, as soon as they appear."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from pretrace.types.states import Pool

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
