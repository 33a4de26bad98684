"""The models of the audits' experiments: bases from scratch, and targets whose members are known.

A base learns the background of all domains from scratch, with a vocabulary of its own. A target is a base
trained further on a random half of one domain's evaluation documents, so that members and non-members differ in
nothing but exposure, and the base itself is the model before it could have seen them. Two seeds of one scale are
siblings; a checkpoint is written halfway through each base's training.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.audits.documents import Setup
from pretrace.tuning.plan import OnStep, TrainingPlan, TrainingStep
from pretrace.types import Text

SCALES = (0.5, 1.5)
"""Layers and width of the other sizes, over those of the usual one."""
WINDOW = 257
"""Tokens of a window: 256 are predicted."""
LARGE_RATE = 5e-5
"""The peak learning rate of a large target."""


@dataclass(frozen=True, slots=True)
class Base:
    """A model from scratch."""

    seed: int
    scale: float = 1.0

    @property
    def name(self) -> str:
        """Its folder's name."""
        return f"base-{self.seed}" + ("" if self.scale == 1 else f"-x{self.scale:g}")


@dataclass(frozen=True, slots=True)
class Target:
    """A base trained further on half of a domain's evaluation documents, which `seed` draws. A `stream` is trained
    on half of every domain's; `large` is SmolLM2 instead of a base from scratch."""

    seed: int
    epochs: int = 1
    scale: float = 1.0
    stream: bool = False
    large: bool = False

    @property
    def name(self) -> str:
        """Unique among the targets of a domain."""
        kind = "smollm2" if self.large else f"x{self.scale:g}"
        return f"{kind}-e{self.epochs}{'-stream' if self.stream else ''}-s{self.seed}"


def home(scale: float = 1.0) -> Base:
    """The base that targets begin with."""
    return Base(0, scale)


def make_base(setup: Setup, base: Base, background: Sequence[str], folder: Path) -> None:
    """Train the base and write it to `folder`, its checkpoint from halfway beside it, unless it is there."""
    from pretrace.backends.loading import device_of
    from pretrace.tuning.architectures import Architecture, new_model

    if (folder / base.name / "config.json").is_file():
        return
    architecture = Architecture(
        family="llama",
        layers=max(1, round(setup.layers * base.scale)),
        width=round(setup.width * base.scale),
        vocabulary=setup.vocabulary,
    )
    model, tokenizer = new_model(background, architecture=architecture, seed=base.seed)
    model = model.to(device_of("auto"))  # type: ignore[arg-type]

    def halfway(done: TrainingStep) -> None:
        if done.step == done.steps // 2:
            _write(model, tokenizer, folder / f"{base.name}-earlier")

    plan = _plan(setup, epochs=setup.epochs, rate=setup.rate, seed=base.seed)
    _learn(model, tokenizer, background, plan, halfway)
    _write(model, tokenizer, folder / base.name)


def make_target(setup: Setup, target: Target, start: Path | str, texts: Sequence[Text], folder: Path) -> None:
    """Train a model from the weights at `start` on the texts and write it to `folder`, unless it is there."""
    from pretrace.backends.loading import load
    from pretrace.backends.settings import ModelSettings

    if (folder / "config.json").is_file():
        return
    loaded = load(str(start), ModelSettings(dtype="float32"))
    if getattr(loaded.model, "hf_quantizer", None):  # plain numbers since it was read
        del loaded.model.config.quantization_config
        loaded.model.hf_quantizer, loaded.model.is_quantized = None, False
    rate = LARGE_RATE if target.large else setup.target_rate
    plan = _plan(setup, epochs=target.epochs, rate=rate, seed=target.seed)
    _learn(loaded.model, loaded.tokenizer, [text.text for text in texts], plan)
    _write(loaded.model, loaded.tokenizer, folder)


def _plan(setup: Setup, *, epochs: int, rate: float, seed: int) -> TrainingPlan:
    precision: Any = setup.precision
    return TrainingPlan(
        epochs=epochs, batch=setup.batch, learning_rate=rate, warmup=0.05, precision=precision, seed=seed
    )


def _learn(
    model: Any, tokenizer: Any, texts: Sequence[str], plan: TrainingPlan, tell: OnStep | None = None
) -> None:
    """Train the model on the texts, read as start, text, end."""
    from pretrace.backends.tokens import Tokens
    from pretrace.tuning.batches import windows
    from pretrace.tuning.training import train

    end = [int(tokenizer.eos_token_id)]
    encoded = Tokens(tokenizer, start="always").encode(texts)
    whole = [[*e.prefix.tolist(), *e.tokens.tolist(), *end] for e in encoded]
    train(model, [window for tokens in whole for window in windows(tokens, WINDOW)], plan, on_step=tell)


def _write(model: Any, tokenizer: Any, folder: Path) -> None:
    """The weights first: a folder with a configuration is whole."""
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    assert json.loads((folder / "config.json").read_text(encoding="utf-8"))
