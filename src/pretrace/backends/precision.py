"""How float32 matrix products are computed on this processor, chosen by a probe.

By default torch hands float32 products on a CPU to a library that on many processors reaches half the
speed of the other one it carries, oneDNN. `torch.backends.mkldnn.matmul.fp32_precision = "bf16"` sends
them to oneDNN, and on a processor without bfloat16 matrix units those products are still computed in
float32. On a processor that has the units (AMX) the same switch would really round to bfloat16. So one
product is compared with float64, and the switch is kept only where it is both as exact and faster.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import platform
import time
from collections.abc import Iterator
from typing import Any

import torch

from pretrace.errors import OutputError
from pretrace.store.atomic import atomic_text
from pretrace.store.traces import cache_folder

DEFAULT = "default"
ONEDNN = "onednn"
_FASTER = 0.95
_EXACT = 4.0  # times the default route's error; rounding to bfloat16 is about a thousand times it


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


@functools.cache
def best_route() -> str:
    """The name of the faster exact route for float32 products on this CPU: "default" or "onednn".

    Probed once for a machine and a version of torch and then remembered in the cache: a probe measures
    time, and the same command should not take another route the second time.
    """
    if _switch() is None:
        return DEFAULT
    state = f"{platform.node()} {platform.processor()} {torch.backends.cpu.get_cpu_capability()} {torch.__version__}"
    kept = cache_folder() / "products" / hashlib.sha256(state.encode()).hexdigest()[:16]
    if kept.is_file() and (known := kept.read_text(encoding="ascii", errors="replace")) in (DEFAULT, ONEDNN):
        return known
    route = _probed()
    with contextlib.suppress(OSError, OutputError):  # where nothing can be kept it is probed again
        kept.parent.mkdir(parents=True, exist_ok=True)
        atomic_text(kept, route)
    return route


def _probed() -> str:
    generator = torch.Generator().manual_seed(0)
    left = torch.randn(512, 512, generator=generator)
    right = torch.randn(1024, 512, generator=generator)
    truth = left.double() @ right.double().T
    plain_error, plain_time = _probe(DEFAULT, left, right, truth)
    error, seconds = _probe(ONEDNN, left, right, truth)
    return ONEDNN if error <= _EXACT * plain_error and seconds < _FASTER * plain_time else DEFAULT


@torch.inference_mode()
def _probe(route: str, left: torch.Tensor, right: torch.Tensor, truth: torch.Tensor) -> tuple[float, float]:
    """Largest error against float64, and the fastest of several runs in seconds."""
    fastest = float("inf")
    with products(route):
        for _ in range(7):
            begin = time.perf_counter()
            product = torch.nn.functional.linear(left, right)
            fastest = min(fastest, time.perf_counter() - begin)
    return float((product.double() - truth).abs().max()), fastest
