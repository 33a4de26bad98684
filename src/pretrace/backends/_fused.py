"""The sums of `_logits` on a GPU in one pass over the logits, by a Triton kernel.

With plain tensor operations every step of a sum reads and writes the whole table of float32 logits again:
some fifty bytes for each logit, against the two that the output layer wrote. The kernel reads each logit once,
in the dtype it has, and keeps the sums in registers. Triton comes with torch where torch has CUDA, and it needs
a C compiler once; where either is missing, or a probe gives other numbers than plain operations, `usable`
says no and the plain operations are used.
"""

from __future__ import annotations

import functools
import subprocess
from typing import Any

import torch

try:
    import triton
    import triton.language as tl
    from triton.errors import TritonError
except ImportError:
    triton, TritonError = None, RuntimeError

_BLOCK = 4096
_CLOSE = 1e-4


def _kernel() -> Any:
    """Row by row: with m the largest logit so far and y = x - m, the sums of exp(y), exp(y)·y and exp(y)·y².

    When a larger m' is found, with d = m - m': s2 becomes exp(d)·(s2 + 2·d·s1 + d²·s0), s1 becomes
    exp(d)·(s1 + d·s0), s0 becomes exp(d)·s0. The first block has no m before it, hence no d either.
    """

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def swept(  # type: ignore[no-untyped-def]  # noqa: PLR0913
        logits,
        stride,
        targets,
        sums,
        across,
        WIDTH: tl.constexpr,  # noqa: N803
        BLOCK: tl.constexpr,  # noqa: N803
        MOMENTS: tl.constexpr,  # noqa: N803
    ):
        row = tl.program_id(0).to(tl.int64)
        start = logits + row * stride
        lanes = tl.arange(0, BLOCK)
        x = tl.load(start + lanes, mask=lanes < WIDTH, other=-float("inf")).to(tl.float32)
        most = tl.maximum(tl.max(x, axis=0), -1e6)  # a number also where all of them are -inf
        y = x - most
        y = tl.where(y < -1e4, -1e4, y)  # so that e·y is 0 and no NaN where e is; what is NaN stays NaN
        e = tl.exp(y)
        s0 = tl.sum(e, axis=0)
        s1 = tl.sum(e * y, axis=0)
        s2 = tl.sum(e * y * y, axis=0)
        for begin in range(BLOCK, WIDTH, BLOCK):
            at = begin + lanes
            x = tl.load(start + at, mask=at < WIDTH, other=-float("inf")).to(tl.float32)
            larger = tl.maximum(most, tl.max(x, axis=0))
            d = most - larger
            shrunk = tl.exp(d)
            y = x - larger
            y = tl.where(y < -1e4, -1e4, y)
            e = tl.exp(y)
            if MOMENTS:
                s2 = shrunk * (s2 + 2 * d * s1 + d * d * s0) + tl.sum(e * y * y, axis=0)
                s1 = shrunk * (s1 + d * s0) + tl.sum(e * y, axis=0)
            s0 = shrunk * s0 + tl.sum(e, axis=0)
            most = larger
        token = tl.load(targets + row)
        tl.store(sums + row, tl.load(start + token).to(tl.float32) - most)
        tl.store(sums + across + row, s0)
        if MOMENTS:
            tl.store(sums + 2 * across + row, s1)
            tl.store(sums + 3 * across + row, s2)

    return swept


@functools.cache
def _compiled() -> Any:
    return _kernel()


def sweep(logits: torch.Tensor, targets: torch.Tensor, sums: torch.Tensor, *, moments: bool) -> None:
    """Write y[target], Σ e and where wanted Σ e·y and Σ e·y² of each row of logits into `sums`, float32
    [4 or 2, rows]. `logits` is [rows, vocabulary] with its last dimension contiguous, `targets` int64 [rows]."""
    with torch.cuda.device_of(logits):
        _compiled()[(len(logits),)](
            logits,
            logits.stride(0),
            targets,
            sums,
            sums.stride(0),
            WIDTH=logits.shape[1],
            BLOCK=_BLOCK,
            MOMENTS=moments,
            num_warps=8,
        )


def fits(logits: torch.Tensor, targets: torch.Tensor, sums: torch.Tensor) -> bool:
    """Whether `sweep` takes these tensors: all on one GPU where it runs, each row of logits in one piece."""
    together = logits.device == targets.device == sums.device
    dense = logits.stride(-1) == targets.stride(-1) == sums.stride(-1) == 1
    return together and dense and usable(logits.device, logits.dtype)


@functools.cache
def usable(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether the kernel runs on this device and gives the numbers of plain operations in float64."""
    if triton is None or device.type != "cuda":
        return False
    generator = torch.Generator().manual_seed(0)
    logits = (torch.randn(5, 2 * _BLOCK + 77, generator=generator) * 4).to(device, dtype)
    targets = torch.arange(5, device=device) * 1000
    try:
        return all(_apart(logits, targets, moments) <= _CLOSE for moments in (False, True))
    except (TritonError, RuntimeError, OSError, AttributeError, subprocess.CalledProcessError):
        return False  # no compiler, or a GPU that this Triton does not know


def _apart(logits: torch.Tensor, targets: torch.Tensor, moments: bool) -> float:
    """The largest relative difference of the kernel's sums from those in float64."""
    sums = torch.full((4 if moments else 2, len(logits)), torch.nan, device=logits.device)
    sweep(logits, targets, sums, moments=moments)
    y = logits.double()
    y = y - y.amax(dim=-1, keepdim=True)
    e = y.exp()
    expected = [y.gather(1, targets[:, None])[:, 0], e.sum(-1), (e * y).sum(-1), (e * y * y).sum(-1)]
    exact = torch.stack(expected[: len(sums)])
    gap = (sums.double() - exact).abs() / exact.abs().clamp_min(1e-3)
    return float(torch.nan_to_num(gap, nan=torch.inf).max())
