"""What a training is to do and what it did. Nothing here needs torch."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pretrace.errors import require, require_least
from pretrace.registry import Registry
from pretrace.settings import shared
from pretrace.tuning.architectures import SMALLEST

AT_ONCE = 2048
"""Padded tokens a forward pass that suit a model of real size: their logits over 50,000 tokens take 0.4 GB, and
training holds several copies of them."""

Schedule = Literal["cosine", "linear", "constant"]
Precision = Literal["float32", "bfloat16"]
AnyPrecision = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """How a model is trained on sequences of token ids; ExpressionError for a value out of its range.

    `batch` counts sequences a step. `at_once` bounds the padded tokens of one forward pass: a larger batch runs in
    pieces whose gradients add up. `warmup` is in steps, or a share of all steps where it is below 1; the rate rises
    linearly through it and then follows `schedule` to 0. `clip` bounds the norm of the gradient, 0 leaves it alone.
    `precision` "bfloat16" computes under autocast, the weights stay as they are. `recompute` trades a third more time
    for the memory of the activations. `save_minutes` is the time between checkpoints. `subject` tells trainings apart
    whose weights, texts and plan do not: the settings of an adapter.
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
    subject: str = ""

    def __post_init__(self) -> None:
        least = {"epochs": 1, "batch": 1, "at_once": 2, "warmup": 0, "weight_decay": 0, "clip": 0}
        require_least("training", self, **least, save_minutes=0, seed=0)
        _check(0 < self.learning_rate < 1, "learning_rate", "above 0 and below 1", self.learning_rate)
        _check(all(0 <= beta < 1 for beta in self.betas), "betas", "at least 0 and below 1", self.betas)
        check_choices("training", self, schedule=Schedule, precision=Precision)


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """Where a training stands: `step` of `steps`, from 1; `loss` the mean of this step in nats a token."""

    step: int
    steps: int
    loss: float
    tokens_per_second: float


OnStep = Callable[[TrainingStep], None]
"""Called after every step."""


def _check(good: bool, name: str, wanted: str, found: object, what: str = "training") -> None:
    require(good, f"{what}: {name} must be {wanted}, found {found!r}.")


def check_choices(what: str, settings: object, **kinds: Any) -> None:
    """ExpressionError for a field of settings, called `what`, that is none of the words of its Literal."""
    for name, kind in kinds.items():
        found, words = getattr(settings, name), get_args(kind)
        _check(found in words, name, f"one of {', '.join(map(repr, words))}", found, what)


# How a classifier of texts is trained: the small one from scratch, and models that were trained before.

SUREST = 30.0
"""Log-odds of a classifier are cut here, so that a probability is never 0 or 1."""

How = Literal["lora", "full"]

LORA_RATE, FULL_RATE = 2e-4, 5e-5
"""The learning rates of an adapter and of a whole model."""
_CLASSIFYING: Any = {"schedule": "linear", "warmup": 0.1, "betas": (0.9, 0.999), "at_once": 4096}
"""AdamW with torch's own betas, a tenth of the steps to warm up, then down along a line."""


@dataclass(frozen=True, slots=True)
class NewClassifier:
    """A GPT-2-style transformer with random weights, and how it is trained; ExpressionError for a bad value.
    `vocabulary` is the most tokens its tokenizer may learn, `max_tokens` how far it reads, `dropout` GPT-2's.
    Epochs are fixed beforehand: no text is looked at to stop. `threads` 0 leaves torch's own number; a small model
    gains little from a second one."""

    layers: int = 2
    width: int = 192
    heads: int = 4
    epochs: int = 3
    learning_rate: float = 5e-4
    batch: int = 16
    dropout: float = 0.1
    vocabulary: int = 8192
    max_tokens: int = 256
    threads: int = 1

    def __post_init__(self) -> None:
        whole = self.heads >= 1 and self.width >= 1 and self.width % self.heads == 0
        require_least("gpt2", self, layers=1, vocabulary=SMALLEST, max_tokens=2, threads=0)
        _check(whole, "width", f"a multiple of heads={self.heads}", self.width, "gpt2")
        _check(0 <= self.dropout < 1, "dropout", "at least 0 and below 1", self.dropout, "gpt2")
        _ = self.plan(0)  # whose own checks are of the other fields

    def plan(self, seed: int) -> TrainingPlan:
        """The training this asks for."""
        return shared(TrainingPlan, self, seed=seed, **_CLASSIFYING)


@dataclass(frozen=True, slots=True)
class TunedClassifier:
    """How a model that was trained before becomes a classifier of texts; ExpressionError for a bad value. `method`
    "lora" trains an adapter of `rank` over its attention, "full" all of its weights; a head is trained in either case.
    `learning_rate` None is 2e-4 for an adapter and 5e-5 for the whole model."""

    method: How = "lora"
    epochs: int = 3
    learning_rate: float | None = None
    batch: int = 16
    max_tokens: int = 256
    rank: int = 16

    def __post_init__(self) -> None:
        check_choices("pretrained", self, method=How)
        require_least("pretrained", self, rank=1, max_tokens=8)
        _ = self.plan(0)

    def plan(self, seed: int) -> TrainingPlan:
        """The training this asks for."""
        usual = LORA_RATE if self.method == "lora" else FULL_RATE
        rate = usual if self.learning_rate is None else self.learning_rate
        return shared(TrainingPlan, self, seed=seed, learning_rate=rate, **_CLASSIFYING)


SMALL = NewClassifier()
"""About 25 s of one core for 2,000 texts of 24 words. Chosen on continuations of Wikipedia by a small model and
on text of word trigrams: with 60 to 1,000 texts a side, more epochs did not tell them apart better.
"""
PAPER = NewClassifier(
    width=1600, heads=25, epochs=20, learning_rate=1e-4, vocabulary=50_257, max_tokens=1024, threads=0
)
"""Appendix D.2 of post-hoc dataset inference, which gives layers, width, heads and epochs; the rest is ours."""


On = Literal["nonmembers", "members", "all"]

_HIGHEST_RANK = 4096
"""Beyond this an adapter is larger than the layers of most models."""


@dataclass(frozen=True, kw_only=True)
class TuningMethod:
    """What every method has in common, ExpressionError for a value out of its range: the training, as in
    `TrainingPlan`, with `precision` "auto" for the fastest format of the device, and which texts of a corpus it is
    given. `on` is the side of a labelled corpus; `limit` draws so many of those, a larger number with the same seed
    the same texts and more, 0 leaves the adapter as it begins. Texts are cut to `max_tokens`, None: to what the model
    reads. Defaults are those of FSD (section 4.1 of its paper)."""

    epochs: int = 3
    batch: int = 8
    learning_rate: float = 1e-3
    schedule: Schedule = "cosine"
    warmup: float = 10
    weight_decay: float = 5e-4
    precision: AnyPrecision = "auto"
    recompute: bool = False
    on: On = "nonmembers"
    limit: int | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        check_choices("tuning", self, precision=AnyPrecision, on=On)
        require_least("tuning", self, limit=0, max_tokens=2)
        _ = self.plan(seed=0, precision="float32")  # whose own checks are of the other fields

    def plan(self, *, seed: int, precision: Precision, save_minutes: float = 10.0) -> TrainingPlan:
        """The training this asks for, by AdamW with torch's own betas."""
        own = {"precision": precision, "seed": seed, "save_minutes": save_minutes}
        usual = {"betas": (0.9, 0.999), "at_once": AT_ONCE, "subject": expression(self)}
        return shared(TrainingPlan, self, **own, **usual)


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
        _check_matrices("lora", self)


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
        _check_matrices("adalora", self)
        above = f"above rank={self.rank}"
        _check(self.first_rank > self.rank, "initial_rank", above, self.initial_rank, "adalora")
        require_least("adalora", self, penalty=0)

    @property
    def first_rank(self) -> int:
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


def _check_matrices(name: str, method: Lora | AdaLora) -> None:
    require_least(name, method, rank=1)
    _check(method.rank <= _HIGHEST_RANK, "rank", f"at most {_HIGHEST_RANK:,}", method.rank, name)
    _check(method.alpha > 0, "alpha", "above 0", method.alpha, name)
    _check(0 <= method.dropout < 1, "dropout", "at least 0 and below 1", method.dropout, name)
