"""Which sequences make up each step of a training, and how far the learning rate has come."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pretrace.tuning.plan import TrainingPlan

# Sequences are sorted by length within buckets of so many batches: wide enough that little is padded,
# narrow enough that the batches of an epoch stay a random draw.
BUCKET_BATCHES = 16


def epoch_batches(lengths: npt.NDArray[np.int64], plan: TrainingPlan, *, epoch: int) -> list[list[int]]:
    """The batches of one epoch as lists of row numbers: every row once, rows of like length together.

    Depends on the seed, the epoch and the lengths alone, so a training that was interrupted finds its
    place again without any saved state.
    """
    generator = np.random.default_rng([plan.seed, epoch])
    order = generator.permutation(len(lengths))
    batches: list[list[int]] = []
    for start in range(0, len(order), plan.batch * BUCKET_BATCHES):
        bucket = order[start : start + plan.batch * BUCKET_BATCHES]
        bucket = bucket[np.argsort(lengths[bucket], kind="stable")]
        batches += [bucket[i : i + plan.batch].tolist() for i in range(0, len(bucket), plan.batch)]
    return [batches[i] for i in generator.permutation(len(batches))]


def pieces(batch: Sequence[int], lengths: npt.NDArray[np.int64], *, at_once: int) -> list[list[int]]:
    """The rows of a batch in runs of at most `at_once` padded tokens, one row at least in each."""
    runs: list[list[int]] = []
    longest = 0
    for row in batch:
        longest = max(longest, int(lengths[row]))
        if not runs or longest * (len(runs[-1]) + 1) > at_once:
            runs.append([])
            longest = int(lengths[row])
        runs[-1].append(row)
    return runs


def padded(sequences: Sequence[Sequence[int]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Token ids padded on the right with 0, and the mask that is 1 on tokens; int64 [rows, longest]."""
    width = max(map(len, sequences))
    tokens = np.zeros((len(sequences), width), dtype=np.int64)
    mask = np.zeros_like(tokens)
    for row, sequence in enumerate(sequences):
        tokens[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = 1
    return tokens, mask


def rate(plan: TrainingPlan, *, step: int, steps: int) -> float:
    """The learning rate of a step counted from 0: a linear rise over the warm-up, then the schedule."""
    warmup = min(steps - 1, round(plan.warmup * steps) if plan.warmup < 1 else int(plan.warmup))
    if step < warmup:
        return plan.learning_rate * (step + 1) / (warmup + 1)
    if plan.schedule == "constant":
        return plan.learning_rate
    gone = (step - warmup) / (steps - warmup)
    return plan.learning_rate * (
        0.5 * (1 + math.cos(math.pi * gone)) if plan.schedule == "cosine" else 1 - gone
    )
