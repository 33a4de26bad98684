"""What a training is to do and what it did. Nothing here needs torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pretrace.registry import require

AT_ONCE = 2048
"""Padded tokens a forward pass that suit a model of real size: their logits over 50,000 tokens take 0.4 GB, and
training holds several copies of them."""

Schedule = Literal["cosine", "linear", "constant"]
Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """How a model is trained on sequences of token ids; ExpressionError for a value out of its range.

    `batch` counts sequences a step. `at_once` bounds the padded tokens of one forward pass: a larger
    batch runs in pieces whose gradients add up, the same step up to rounding in less memory.
    `warmup` is in steps, or a share of all steps where it is below 1; the rate rises linearly through it
    and then follows `schedule` to 0. `clip` bounds the norm of the gradient, 0 leaves it alone.
    `precision` "bfloat16" computes under autocast, the weights stay as they are. `recompute` trades a
    third more time for the memory of the activations (gradient checkpointing). `save_minutes` is the
    time between checkpoints, where `train` is given a place for them. With `shuffled` False the sequences are read in
    the order that they are given in. `subject` tells trainings apart whose
    weights, texts and plan do not: the settings of an adapter, such as its dropout.
    """

    epochs: int = 1
    batch: int = 8
    learning_rate: float = 1e-3
    schedule: Schedule = "cosine"
    warmup: float = 10
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.95)
    clip: float = 1.0
    precision: Precision = "float32"
    at_once: int = 16_384
    recompute: bool = False
    save_minutes: float = 10.0
    seed: int = 0
    shuffled: bool = True
    subject: str = ""

    def __post_init__(self) -> None:
        _check(self.epochs >= 1, "epochs", "at least 1", self.epochs)
        _check(self.batch >= 1, "batch", "at least 1 sequence", self.batch)
        _check(0 < self.learning_rate < 1, "learning_rate", "above 0 and below 1", self.learning_rate)
        _check(self.schedule in ("cosine", "linear", "constant"), "schedule", _SCHEDULES, self.schedule)
        _check(self.warmup >= 0, "warmup", "0 or more", self.warmup)
        _check(self.weight_decay >= 0, "weight_decay", "0 or more", self.weight_decay)
        _check(all(0 <= beta < 1 for beta in self.betas), "betas", "at least 0 and below 1", self.betas)
        _check(self.clip >= 0, "clip", "0 or more", self.clip)
        _check(self.precision in ("float32", "bfloat16"), "precision", _PRECISIONS, self.precision)
        _check(self.at_once >= 2, "at_once", "at least 2 tokens", self.at_once)
        _check(self.save_minutes >= 0, "save_minutes", "0 or more", self.save_minutes)
        _check(self.seed >= 0, "seed", "0 or more", self.seed)


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """Where a training stands after a step: `step` of `steps`, `epoch` of `epochs`, both from 1.

    `loss` is the mean over the tokens of this step in nats, `tokens_per_second` the rate since the
    training began (or was taken up again).
    """

    step: int
    steps: int
    epoch: int
    epochs: int
    loss: float
    tokens_per_second: float


OnStep = Callable[[TrainingStep], None]
"""Called after every step."""


@dataclass(frozen=True, slots=True)
class History:
    """What a training did: the mean loss of each epoch in nats a token, measured while it learned,
    the tokens predicted in one epoch, the steps taken and the seconds spent (interruptions left out)."""

    losses: tuple[float, ...]
    tokens: int
    steps: int
    seconds: float


_SCHEDULES = "'cosine', 'linear' or 'constant'"
_PRECISIONS = "'float32' or 'bfloat16'"


def _check(good: bool, name: str, wanted: str, found: object) -> None:
    require(good, f"training: {name} must be {wanted}, found {found!r}.")
