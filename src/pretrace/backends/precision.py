"""How float32 matrix products are computed on this processor: by the route that is exact, unless it is slow.

By default torch hands float32 products on a CPU to a library that on many processors reaches half the
speed of the other one it carries, oneDNN. `torch.backends.mkldnn.matmul.fp32_precision = "bf16"` sends
them to oneDNN, and on a processor without bfloat16 matrix units those products are still computed in
float32. On a processor that has the units (AMX) the same switch would really round to bfloat16. So products
of the model's shapes are compared with float64, and oneDNN is taken where it is as exact as the default.
Time only refuses it: where it is clearly slower in every one of several rounds, in which the two take turns.
A busy moment may change one round; it does not change the exactness.
"""

from __future__ import annotations

import contextlib
import functools
import platform
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pretrace.cache.measured import Choice, Round, interleaved, measured_once

DEFAULT = "default"
ONEDNN = "onednn"
KIND = "products"
"""The folder of the cache that holds the choices."""
ROUNDS, REPEATS = 2, 3
EXACT = 4.0
"""Times the default route's error; rounding to bfloat16 is about a thousand times it."""
SLOWER = 1.25
"""Times the default route's seconds, in every round, from which oneDNN is refused."""
_PRODUCTS = 2.0e9  # operations of one product that is timed: some hundredths of a second
_LEAST = 5.0e7  # and fewer operations than these take too short a time to be measured, or to matter
_ROWS, _OUTPUTS, _SHAPES = 256, 8192, 4

Shape = tuple[int, int]
"""Inputs and outputs of a linear layer."""

_TYPICAL: tuple[Shape, ...] = ((576, 1536), (1536, 576), (576, 576), (576, 8192))
"""Shapes of a small language model (SmolLM2-135M), for where no model is at hand."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One shape of product: largest errors against float64, and the fewest seconds in each round, both as
    default route and oneDNN. No rounds where a product is too small to be timed."""

    rows: int
    shape: Shape
    errors: tuple[float, float]
    rounds: tuple[Round, ...]


def _switch() -> Any | None:
    """torch's switch for float32 products, None in versions that have none."""
    matmul = getattr(torch.backends.mkldnn, "matmul", None)
    usable = torch.backends.mkldnn.is_available() and hasattr(matmul, "fp32_precision")
    return matmul if usable else None


@contextlib.contextmanager
def products(route: str) -> Iterator[None]:
    """Float32 products by `route` while the context lasts; the switch is put back afterwards."""
    switch = _switch()
    if route != ONEDNN or switch is None:
        yield
        return
    before = switch.fp32_precision
    switch.fp32_precision = "bf16"
    try:
        yield
    finally:
        switch.fp32_precision = before


def best_route(model: torch.nn.Module | None = None) -> str:
    """The route of float32 products on this CPU for a model's shapes: "default" or "onednn".

    Measured once for a machine, a version of torch, a number of threads and the shapes, and then kept in the
    cache with its figures. Without a model the shapes are those of a small language model.
    """
    return route_of((shapes_of(model) if model is not None else ()) or _TYPICAL)


@functools.cache
def route_of(shapes: tuple[Shape, ...]) -> str:
    """The route for products of these shapes, as `best_route`."""
    if _switch() is None:
        return DEFAULT
    return measured_once(KIND, machine(f"shapes {shapes}"), lambda: decided(_measured(shapes))).chosen


def machine(what: str) -> str:
    """The name of this machine, its processor and torch, and of what is measured on it."""
    capability = torch.backends.cpu.get_cpu_capability()
    state = (platform.node(), platform.processor(), capability, f"torch {torch.__version__}")
    return " ".join((*state, f"threads {torch.get_num_threads()}", what))


def shapes_of(model: torch.nn.Module) -> tuple[Shape, ...]:
    """The shapes of the model's linear layers that take most of its arithmetic, at most four, the largest first.

    Outputs are bounded at 8,192: a vocabulary is swept in slices.
    """
    layers = [layer for layer in model.modules() if isinstance(layer, torch.nn.Linear)]
    counts = Counter((layer.in_features, min(layer.out_features, _OUTPUTS)) for layer in layers)
    return tuple(sorted(counts, key=lambda s: (-s[0] * s[1] * counts[s], s))[:_SHAPES])


def decided(measured: Sequence[Measured]) -> Choice:
    """The route these figures speak for, with the reason; exactness first, time only to refuse."""
    figures = {
        "rows": [one.rows for one in measured],
        "shapes": [list(one.shape) for one in measured],
        "largest_errors": [list(one.errors) for one in measured],
        "seconds_by_round": [[list(pair) for pair in one.rounds] for one in measured],
    }
    inexact = [one.shape for one in measured if not one.errors[1] <= EXACT * one.errors[0]]
    if inexact:
        return Choice(DEFAULT, f"oneDNN is not exact for the shape {inexact[0]}", figures)
    timed = [one.rounds for one in measured if one.rounds]
    if not timed:
        return Choice(ONEDNN, "oneDNN is as exact as the default; products this small are not timed", figures)
    ratios = [
        sum(pair[1] for pair in pairs) / sum(pair[0] for pair in pairs) for pairs in zip(*timed, strict=True)
    ]
    figures["onednn_over_default"] = [round(ratio, 3) for ratio in ratios]
    told = " and ".join(f"{ratio:.2f}" for ratio in ratios)
    if len(ratios) >= 2 and min(ratios) > SLOWER:
        return Choice(DEFAULT, f"oneDNN is exact but took {told} times as long", figures)
    return Choice(ONEDNN, f"oneDNN is as exact as the default and took {told} times as long", figures)


def _measured(shapes: Sequence[Shape]) -> list[Measured]:
    return [_measure(shape) for shape in shapes]


@torch.inference_mode()
def _measure(shape: Shape) -> Measured:
    inputs, outputs = shape
    rows = int(min(_ROWS, max(32, _PRODUCTS // (2 * inputs * outputs))))
    generator = torch.Generator().manual_seed(0)
    left = torch.randn(rows, inputs, generator=generator)
    right = torch.randn(outputs, inputs, generator=generator)
    truth = left.double() @ right.double().T

    def product(route: str) -> torch.Tensor:
        with products(route):
            return torch.nn.functional.linear(left, right)

    errors = [float((product(route).double() - truth).abs().max()) for route in (DEFAULT, ONEDNN)]
    rounds: tuple[Round, ...] = ()
    if 2 * rows * inputs * outputs >= _LEAST:
        rounds = interleaved(
            lambda: product(DEFAULT),
            lambda: product(ONEDNN),
            rounds=ROUNDS,
            repeats=REPEATS,
            clock=time.perf_counter,
        )
    return Measured(rows, shape, (errors[0], errors[1]), rounds)
