"""In which number format a training computes: the fastest on the device at hand, found by a probe.

A training forgives rounding that a score would not. Bfloat16 is several times as fast where a processor has
matrix units for it and several times as slow where it has none, so "auto" is settled by running both. The
format is settled before an adapter is trained; it is in the adapter's card and in the name it is kept under.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import torch

from pretrace.backends.precision import machine
from pretrace.cache.measured import Choice, Round, interleaved, measured_once
from pretrace.tuning.plan import Precision

KIND = "training-format"
"""The folder of the cache that holds the choices."""
ROUNDS, REPEATS = 2, 3
FASTER = 0.8
"""Times float32's seconds, in every round, below which bfloat16 is taken: float32 is the exact one."""
_ROWS, _WIDTH, _INNER = 128, 576, 1536  # the feed-forward blocks of SmolLM2-135M, over 128 tokens


def settled(wanted: Literal["auto"] | Precision, device: torch.device) -> Precision:
    """The format a training on this device computes in: `wanted`, or for "auto" the fastest one."""
    return fastest_format(device.type) if wanted == "auto" else wanted


@functools.cache
def fastest_format(device: str = "cpu") -> Precision:
    """The fastest format for training on a kind of device, such as "cpu" or "cuda".

    A GPU that computes in bfloat16 does so. A CPU is measured once and the figures are kept in the cache; it
    takes about a second. Any other device gets float32.
    """
    if device == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    if device != "cpu":
        return "float32"
    choice = measured_once(KIND, machine(f"rows {_ROWS} width {_WIDTH}"), lambda: decided(_measured()))
    return "bfloat16" if choice.chosen == "bfloat16" else "float32"


def decided(rounds: Sequence[Round]) -> Choice:
    """The format these seconds (float32, bfloat16) speak for: bfloat16 only if clearly faster in every round."""
    ratios = [narrow / wide for wide, narrow in rounds]
    figures = {
        "seconds_by_round": [list(pair) for pair in rounds],
        "bfloat16_over_float32": [round(ratio, 3) for ratio in ratios],
    }
    chosen = "bfloat16" if len(ratios) >= 2 and max(ratios) < FASTER else "float32"
    told = " and ".join(f"{ratio:.2f}" for ratio in ratios)
    return Choice(chosen, f"a step in bfloat16 took {told} times as long as one in float32", figures)


def _measured() -> tuple[Round, ...]:
    """Seconds of a step forward and backward through a stand-in, in float32 and in bfloat16."""
    wide, narrow = _step(torch.float32), _step(torch.bfloat16)
    return interleaved(wide, narrow, rounds=ROUNDS, repeats=REPEATS, clock=time.perf_counter)


def _step(dtype: torch.dtype) -> Callable[[], None]:
    """A forward and backward pass through two frozen blocks, whose input alone has a gradient: as under LoRA."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randn(_ROWS, _WIDTH, generator=generator).to(dtype).requires_grad_()
    up = torch.randn(_INNER, _WIDTH, generator=generator).to(dtype)
    down = torch.randn(_WIDTH, _INNER, generator=generator).to(dtype)

    def step() -> None:
        with torch.enable_grad():
            hidden = tokens
            for _ in range(2):
                inner = torch.nn.functional.silu(torch.nn.functional.linear(hidden, up))
                hidden = torch.nn.functional.linear(inner, down) / _INNER
            hidden.sum().backward()
        tokens.grad = None

    return step


@contextmanager
def computing(model: torch.nn.Module, precision: Precision) -> Iterator[None]:
    """The model ready to compute in `precision`: narrower weights as float32 while the context lasts.

    Bfloat16 itself comes from autocast and needs nothing done. Afterwards each frozen weight is its former
    tensor again, to the last bit; weights that learn stay as they are, wide enough already.
    """
    narrow = (torch.bfloat16, torch.float16)
    weights = [w for w in model.parameters() if w.dtype in narrow and not w.requires_grad]
    if precision != "float32" or not weights:
        yield
        return
    before = [weight.data for weight in weights]
    try:
        for weight in weights:
            weight.data = weight.data.float()
        yield
    finally:
        for weight, own in zip(weights, before, strict=True):
            weight.data = own
