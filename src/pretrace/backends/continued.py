"""The ends that a model writes in the place of a text's own (`types.Continued`), as token ids."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pretrace.backends.generation import (
    CPU_BUDGET,
    GPU_BUDGET,
    batches,
    distribution,
    draw,
    keeps_what_it_read,
    never_drawn,
    next_logits,
)
from pretrace.backends.huggingface import HuggingFace
from pretrace.types import Continued, Sampling

Ids = npt.NDArray[np.int32]


def ends(base: HuggingFace, rows: Sequence[Ids], starts: Sequence[int], state: Continued) -> list[Ids]:
    """Of each row of ids, whose predicted tokens begin at `starts`: int32 [samples, tokens of its end].

    A row stands `samples` times in a batch, beside others whose beginnings have as many tokens; the longest end in a
    batch says how far is written. Under inference mode, with the model's own products.
    """
    found = [np.zeros((state.samples, 0), dtype=np.int32) for _ in rows]
    cuts = [start + state.read(len(row) - start) for row, start in zip(rows, starts, strict=True)]
    some = [i for i, (row, cut) in enumerate(zip(rows, cuts, strict=True)) if cut < len(row)]
    if not some:
        return found
    banned = never_drawn(base.tokens.rust, base.vocabulary).to(base.device)
    keep, sampling = keeps_what_it_read(base), Sampling(temperature=state.temperature)
    budget = (CPU_BUDGET if base.device.type == "cpu" else GPU_BUDGET) // state.samples
    longest = max(len(rows[i]) - cuts[i] for i in some)
    for batch in batches([cuts[i] for i in some], tokens=longest, budget=budget):
        here = [some[i] for i in batch]
        tokens = max(len(rows[i]) - cuts[i] for i in here)
        read = [rows[i][: cuts[i]] for i in here for _ in range(state.samples)]
        ids = torch.from_numpy(np.stack(read).astype(np.int64)).to(base.device)
        drawn = [_numbers(one, tokens, state, i % state.samples) for i, one in enumerate(read)]
        uniform = torch.from_numpy(np.stack(drawn)).to(base.device)
        kept: Any = None
        for step in range(tokens):
            logits, kept = next_logits(base, ids, kept, keep=keep)
            p = distribution(logits, ids, banned, sampling)
            ids = torch.cat([ids, draw(p, uniform[:, step])[:, None]], dim=1)
        new = ids[:, -tokens:].cpu().numpy().astype(np.int32).reshape(len(here), state.samples, tokens)
        for i, written in zip(here, new, strict=True):
            found[i] = np.ascontiguousarray(written[:, : len(rows[i]) - cuts[i]])
    return found


def _numbers(before: Ids, tokens: int, state: Continued, sample: int) -> npt.NDArray[np.float64]:
    """The numbers that a sample is drawn with, float64 [tokens] in [0, 1): fewer are the first of more."""
    digest = hashlib.sha256(before.astype("<i4").tobytes()).digest()
    return np.random.default_rng([state.seed, sample, int.from_bytes(digest, "big")]).random(tokens)
