"""The one place where logits meet tokens.

Everything a pass yields of the vocabulary is computed here, from hidden states and the tokens that
really follow, in float32 whatever the model's dtype. The output layer is applied to a slice of
positions at a time and the vocabulary is swept a few rows at a time, so memory depends on neither the
number of texts nor their lengths, and on a CPU the rows being swept stay in its cache.

With y = logits - max and e = exp(y), one sweep gives every sum that is needed:

    s0 = Σ e      s1 = Σ e·y      s2 = Σ e·y²
    log p(token) = y[token] - log s0
    mean         = Σ p log p          = s1/s0 - log s0
    var          = Σ p (log p)² - mean² = s2/s0 - (s1/s0)²

Shifting by the maximum keeps the variance of a near-certain prediction from cancelling: there y is 0
where p is 1. Where a token is drawn among the k likeliest at temperature T, with K their set:

    log p(token) = y[token] / T - log Σ_K exp(y / T), and -inf outside K

The likeliest token has y = 0: its log-probability is -log s0, at no cost.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from pretrace.backends.libraries import inference, nn, torch
from pretrace.types import Drawn

Head: TypeAlias = "Callable[[torch.Tensor], torch.Tensor]"
"""Hidden states [positions, width] → logits [positions, vocabulary]."""

_CACHE_BYTES = 1_600_000  # what two buffers of a core may take so that they stay in its second-level cache
_CPU_SLICE = 256  # rows for which the output layer's product already runs at full speed
_CPU_SLICE_BYTES = 128 << 20
_GPU_SLICE_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class VocabularyReading:
    """Float32 tensors on the CPU, one entry a position; `peak` is the largest log-probability over the vocabulary."""

    logp: torch.Tensor
    peak: torch.Tensor
    mean: torch.Tensor | None
    std: torch.Tensor | None
    drawn: Mapping[Drawn, torch.Tensor]


@inference
def read(hidden: torch.Tensor, targets: torch.Tensor, head: Head, sweep: Sweep) -> VocabularyReading:
    """Log-probability (natural) of each target, and mean and std of log p under the model (Zhang et al. 2024b) where
    wanted. `hidden` is [positions, width], `targets` int64 [positions]: the token after each position."""
    first = sweep.sums
    sums = torch.zeros((first + len(sweep.draws), len(hidden)), dtype=torch.float32, device=hidden.device)
    for start in range(0, len(hidden), sweep.slice):
        part = slice(start, start + sweep.slice)
        sweep(sweep._logits(head, hidden[part]), targets[part], sums[:, part])
    y, s0 = sums[0], sums[1]
    log_s0 = s0.log()
    logp, peak = (y - log_s0).cpu(), (-log_s0).cpu()
    drawn = {one: sums[first + i].cpu() for i, one in enumerate(sweep.draws)}
    if not sweep.moments:
        return VocabularyReading(logp, peak, None, None, drawn)
    centre = sums[2] / s0
    variance = (sums[3] / s0 - centre * centre).clamp_min_(0)
    return VocabularyReading(logp, peak, (centre - log_s0).cpu(), variance.sqrt().cpu(), drawn)


class Sweep:
    """Sums over the vocabulary, a few rows at a time through buffers that are used again and again: new memory for
    every block would cost more than the arithmetic, and a fifth of the output layer's time."""

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
