"""How a classifier of texts is trained: the small one from scratch, and models that were trained before.

Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from pretrace.errors import TextsError
from pretrace.registry import require
from pretrace.tuning.architectures import SMALLEST
from pretrace.tuning.plan import TrainingPlan

SUREST = 30.0
"""Log-odds of a classifier are cut here, so that a probability is never 0 or 1."""

How = Literal["lora", "full"]

LORA_RATE, FULL_RATE = 2e-4, 5e-5
"""The learning rates of an adapter and of a whole model."""


@dataclass(frozen=True, slots=True)
class NewClassifier:
    """A GPT-2-style transformer with random weights, and how it is trained; ExpressionError for a bad value.

    `vocabulary` is the most tokens its tokenizer may learn, `max_tokens` how far it reads a text, `dropout`
    that of GPT-2, after the embeddings, in the attention and after each layer. The number of epochs is
    fixed beforehand: no text is looked at to stop. `threads` 0 leaves torch's own number; a small model gains
    little from a second one, and on a busy machine two wait for each other.
    """

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
        require(self.layers >= 1, f"gpt2 has at least 1 layer, found layers={self.layers}.")
        require(
            self.heads >= 1 and self.width >= 1 and self.width % self.heads == 0,
            f"gpt2: width must be a multiple of heads, found width={self.width} and heads={self.heads}.",
        )
        require(0 <= self.dropout < 1, f"gpt2: dropout must be at least 0 and below 1, found {self.dropout}.")
        require(
            self.vocabulary >= SMALLEST,
            f"gpt2: a byte-level vocabulary holds at least {SMALLEST} tokens, found {self.vocabulary}.",
        )
        require(self.max_tokens >= 2, f"gpt2: max_tokens must be at least 2, found {self.max_tokens}.")
        require(self.threads >= 0, f"gpt2: threads must be 0 or more, found {self.threads}.")
        _ = self.plan(0)  # whose own checks are of the other fields

    def plan(self, seed: int) -> TrainingPlan:
        """The training this asks for."""
        return _plan(self.epochs, self.batch, self.learning_rate, seed)


@dataclass(frozen=True, slots=True)
class TunedClassifier:
    """How a model that was trained before becomes a classifier of texts; ExpressionError for a bad value.

    `method` "lora" trains an adapter of `rank` over its attention, "full" all of its weights; a head is
    trained in either case. `learning_rate` None is 2e-4 for an adapter and 5e-5 for the whole model.
    """

    method: How = "lora"
    epochs: int = 3
    learning_rate: float | None = None
    batch: int = 16
    max_tokens: int = 256
    rank: int = 16

    def __post_init__(self) -> None:
        require(
            self.method in ("lora", "full"),
            f"pretrained: method must be 'lora' or 'full', found {self.method!r}.",
        )
        require(self.rank >= 1, f"pretrained: rank must be at least 1, found {self.rank}.")
        require(self.max_tokens >= 8, f"pretrained: max_tokens must be at least 8, found {self.max_tokens}.")
        _ = self.plan(0)

    def plan(self, seed: int) -> TrainingPlan:
        """The training this asks for."""
        usual = LORA_RATE if self.method == "lora" else FULL_RATE
        rate = usual if self.learning_rate is None else self.learning_rate
        return _plan(self.epochs, self.batch, rate, seed)


def check_kinds(texts: Sequence[str], labels: npt.NDArray[np.bool_]) -> None:
    """Raise TextsError unless each text has a label and both labels occur."""
    if len(texts) != len(labels):
        raise TextsError(f"wanted one label for each of {len(texts)} texts, found {len(labels)}.")
    if labels.all() or not labels.any():
        raise TextsError(
            f"a classifier learns from two kinds of text, and all {len(texts)} are of one; give it both."
        )


def _plan(epochs: int, batch: int, rate: float, seed: int) -> TrainingPlan:
    """AdamW with torch's own betas, a tenth of the steps to warm up, then down along a line."""
    return TrainingPlan(
        epochs=epochs,
        batch=batch,
        learning_rate=rate,
        schedule="linear",
        warmup=0.1,
        betas=(0.9, 0.999),
        at_once=4096,
        seed=seed,
    )


SMALL = NewClassifier()
"""About 25 s of one core for 2,000 texts of 24 words. Chosen on continuations of Wikipedia by a small model and
on text of word trigrams: with 60 to 1,000 texts a side, more epochs did not tell them apart better.
"""
PAPER = NewClassifier(
    width=1600,
    heads=25,
    epochs=20,
    learning_rate=1e-4,
    vocabulary=50_257,
    max_tokens=1024,
    threads=0,
)
"""Appendix D.2 of post-hoc dataset inference, which gives layers, width, heads and epochs; the rest is ours."""
TUNED = TunedClassifier()
