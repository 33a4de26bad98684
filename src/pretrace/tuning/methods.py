"""How a model can be tuned with an adapter: `lora(rank=8)`, `adalora`, `ia3(epochs=1)`. Nothing here needs torch.

Defaults are those of FSD (section 4.1 of its paper): LoRA of rank 16, 3 epochs in batches of 8, a learning
rate of 1e-3 that falls along a cosine.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Literal

from pretrace.registry import Registry, require
from pretrace.settings import shared
from pretrace.tuning.plan import AT_ONCE, Precision, Schedule, TrainingPlan

On = Literal["nonmembers", "members", "all"]

_HIGHEST_RANK = 4096
"""Beyond this an adapter is larger than the layers of most models."""


@dataclass(frozen=True, kw_only=True)
class TuningMethod:
    """What every method has in common: the training, and which texts of a corpus it is given.

    `epochs`, `batch`, `learning_rate`, `schedule`, `warmup`, `weight_decay` and `recompute` are those of
    `TrainingPlan`.
    `precision` "auto" computes in the format that is fastest on the device (`tuning.number_format`), whatever
    that of the model's own weights.
    `on` says which texts of a labelled corpus are tuned on; without labels it is all of them. `limit` draws
    so many of those at random, a larger number with the same seed the same texts and more; 0 leaves the
    adapter as it begins, changing nothing. Texts are cut to `max_tokens`, None: to what the model reads.
    ExpressionError for a value out of its range.
    """

    epochs: int = 3
    batch: int = 8
    learning_rate: float = 1e-3
    schedule: Schedule = "cosine"
    warmup: float = 10
    weight_decay: float = 5e-4
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    recompute: bool = False
    on: On = "nonmembers"
    limit: int | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        require(self.precision in ("auto", "float32", "bfloat16"), _PRECISIONS.format(self.precision))
        require(self.on in ("nonmembers", "members", "all"), _SIDES.format(self.on))
        require(
            self.limit is None or self.limit >= 0,
            f"tuning: limit must be 0 or more texts, found {self.limit}.",
        )
        require(
            self.max_tokens is None or self.max_tokens >= 2,
            f"tuning: max_tokens must be at least 2, found {self.max_tokens}.",
        )
        _ = self.plan(seed=0, precision="float32")  # whose own checks are of the other fields

    def plan(self, *, seed: int, precision: Precision, save_minutes: float = 10.0) -> TrainingPlan:
        """The training this asks for, by AdamW with torch's own betas."""
        own = {
            "precision": precision,
            "seed": seed,
            "save_minutes": save_minutes,
            "subject": expression(self),
        }
        return shared(TrainingPlan, self, betas=(0.9, 0.999), at_once=AT_ONCE, **own)


methods: Registry[TuningMethod] = Registry("tuning method")


@methods.add("lora")
@dataclass(frozen=True)
class Lora(TuningMethod):
    """Two thin matrices of `rank` added to each attention projection (Hu et al. 2022).

    W x becomes W x + alpha/rank · B A x, where B begins as zeros; `dropout` is that of x on the way to A.
    """

    rank: int = 16
    alpha: float = 32
    dropout: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_matrices("lora", self.rank, self.alpha, self.dropout)


@methods.add("adalora")
@dataclass(frozen=True)
class AdaLora(TuningMethod):
    """LoRA that begins wider and gives its rank to the layers that use it (Zhang et al. 2023).

    Each layer begins with `initial_rank` (None: half as much again as `rank`). After a tenth of the steps
    the least important directions of all layers are dropped one by one, until `rank` remain a layer on
    average; the last three tenths train those. `penalty` weighs ‖PᵀP − I‖ + ‖QQᵀ − I‖ in the loss.
    """

    rank: int = 16
    initial_rank: int | None = None
    alpha: float = 32
    dropout: float = 0.05
    penalty: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_matrices("adalora", self.rank, self.alpha, self.dropout)
        require(
            self.first_rank > self.rank,
            f"adalora: initial_rank must be above rank={self.rank}, found {self.initial_rank}.",
        )
        require(self.penalty >= 0, f"adalora: penalty must be 0 or more, found {self.penalty}.")

    @property
    def first_rank(self) -> int:
        """The rank every layer begins with."""
        return self.rank + (self.rank + 1) // 2 if self.initial_rank is None else self.initial_rank


@methods.add("ia3")
@dataclass(frozen=True)
class Ia3(TuningMethod):
    """A learned factor on each key, value and feed-forward activation (IA3, Liu et al. 2022)."""


def name_of(method: TuningMethod) -> str:
    """The name a method is registered under: "lora", "adalora", "ia3"."""
    return next(name for name in methods if methods.factory(name) is type(method))


def expression(method: TuningMethod) -> str:
    """The call expression that makes the method, with every parameter: `methods.make` gives it back.

    >>> expression(Lora(rank=8))[:20]
    'lora(rank=8, alpha=3'
    """
    settings = (f"{name}={getattr(method, name)!r}" for name in inspect.signature(type(method)).parameters)
    return f"{name_of(method)}({', '.join(settings)})"


_PRECISIONS = "tuning: precision must be 'auto', 'float32' or 'bfloat16', found {!r}."
_SIDES = "tuning: on must be 'nonmembers', 'members' or 'all', found {!r}."


def _check_matrices(name: str, rank: int, alpha: float, dropout: float) -> None:
    require(rank >= 1, f"{name}: rank must be at least 1, found {rank}.")
    require(rank <= _HIGHEST_RANK, f"{name}: rank must be at most {_HIGHEST_RANK:,}, found {rank:,}.")
    require(alpha > 0, f"{name}: alpha must be above 0, found {alpha}.")
    require(0 <= dropout < 1, f"{name}: dropout must be at least 0 and below 1, found {dropout}.")
