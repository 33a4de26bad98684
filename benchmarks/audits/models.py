"""The models of the audits' experiments: bases from scratch, and targets whose members are known.

A base learns the background of all domains from scratch, with a vocabulary of its own. A target is a base
trained further on a random half of one domain's evaluation documents, so that members and non-members differ in
nothing but exposure, and the base itself is the model before it could have seen them. Two seeds of one scale are
siblings; a checkpoint is written halfway through each base's training.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.audits.documents import Setup
from pretrace.tuning.plan import TrainingPlan
from pretrace.types import Text

WINDOW = 257
"""Tokens of a window: 256 are predicted."""


def make_base(setup: Setup, background: Sequence[str], folder: Path) -> None:
    """Train the base on the background of all domains and write it to `folder`, unless it is there."""
    from pretrace.backends.loading import device_of
    from pretrace.tuning.architectures import Architecture, new_model

    if (folder / "config.json").is_file():
        return
    architecture = Architecture(
        family="llama", layers=setup.layers, width=setup.width, vocabulary=setup.vocabulary
    )
    model, tokenizer = new_model(background, architecture=architecture, seed=0)
    model = model.to(device_of("auto"))  # type: ignore[arg-type]
    _learn(model, tokenizer, background, _plan(setup, rate=setup.rate, seed=0))
    _write(model, tokenizer, folder)


def make_target(setup: Setup, seed: int, start: Path | str, texts: Sequence[Text], folder: Path) -> None:
    """Train a model from the weights at `start` on the texts and write it to `folder`, unless it is there."""
    from pretrace.backends.loading import load
    from pretrace.backends.naming import ModelSettings

    if (folder / "config.json").is_file():
        return
    loaded = load(str(start), ModelSettings(dtype="float32"))
    plan = _plan(setup, rate=setup.target_rate, seed=seed)
    _learn(loaded.model, loaded.tokenizer, [text.text for text in texts], plan)
    _write(loaded.model, loaded.tokenizer, folder)


def _plan(setup: Setup, *, rate: float, seed: int) -> TrainingPlan:
    precision: Any = setup.precision
    return TrainingPlan(
        epochs=setup.epochs,
        batch=setup.batch,
        learning_rate=rate,
        warmup=0.05,
        precision=precision,
        seed=seed,
    )


def _learn(model: Any, tokenizer: Any, texts: Sequence[str], plan: TrainingPlan) -> None:
    """Train the model on the texts, read as start, text, end."""
    from pretrace.backends.tokens import Tokens
    from pretrace.tuning.planting import windows
    from pretrace.tuning.training import train

    end = [int(tokenizer.eos_token_id)]
    encoded = Tokens(tokenizer, start="always").encode(texts)
    whole = [[*e.prefix.tolist(), *e.tokens.tolist(), *end] for e in encoded]
    train(model, [window for tokens in whole for window in windows(tokens, WINDOW)], plan)


def _write(model: Any, tokenizer: Any, folder: Path) -> None:
    """The weights first: a folder with a configuration is whole."""
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    assert json.loads((folder / "config.json").read_text(encoding="utf-8"))
