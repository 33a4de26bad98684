"""`pretrace plant` and `pretrace tune`: models that are trained here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from rich.console import Console
from rich.text import Text as Plain

from pretrace.cli.job import Opening, Planting, Source
from pretrace.cli.progress import trained
from pretrace.corpora import open_corpus
from pretrace.errors import ExpressionError
from pretrace.results.atomic import check_writable

if TYPE_CHECKING:
    from pretrace.tuning.plan import Precision
    from pretrace.tuning.planting import PlantMethod, PlantSettings


def tune_texts(source: Source, opening: Opening, out: Path, *, method: str, seed: int) -> None:
    """An adapter of the model tuned on the texts, in `out`."""
    from pretrace.backends.huggingface import HuggingFace, open_huggingface
    from pretrace.backends.loading import ModelSettings
    from pretrace.tuning.adapters import tune
    from pretrace.tuning.methods import methods

    how = methods.make(method)
    check_writable(out)
    corpus = open_corpus(source.texts, source.columns)
    model: HuggingFace = open_huggingface(opening.model, ModelSettings(**opening.settings))
    with trained() as on_step:
        adapter = tune(model, corpus, how, folder=out, seed=seed, on_step=on_step)
    card = adapter.card
    losses = " → ".join(f"{loss:.3f}" for loss in card["losses"])
    _say(
        f"Tuned on {card['texts']} texts, {card['tokens']:,} tokens an epoch; loss by epoch in nats a token: {losses}",
        f"Adapter: {out}",
        f"Try: pretrace evaluate TEXTS --model {opening.model} --tuned {out} --scores 'ppl,fsd(ppl)' --out RUN",
    )


def plant_texts(source: Source, planting: Planting, out: Path, *, seed: int) -> None:
    """A model trained on a random part of the texts, in `out` with labels and card."""
    from pretrace.tuning.planting import plant

    new = planting.model == "new"
    if new and planting.method != "full":
        raise ExpressionError(
            "a new model has nothing to adapt: --method lora needs --model with an existing one."
        )
    settings = _settings(planting, seed)
    check_writable(out)
    corpus = open_corpus(source.texts, source.columns)
    with trained() as on_step:
        made = plant(
            corpus, settings=settings, folder=out, start=None if new else planting.model, on_step=on_step
        )
    card = made.card
    members, others = card["members"], card["nonmembers"]
    losses = " → ".join(f"{loss:.3f}" for loss in card["losses"])
    _say(
        f"Members: {members['texts']:,} texts of {members['groups']:,} documents; "
        f"non-members: {others['texts']:,} of {others['groups']:,}.",
        f"Loss by epoch in nats a token: {losses}",
        f"Model, labels and card: {out}",
        f"Try: pretrace evaluate {out / 'texts.jsonl'} --model {out} --out RUN",
    )


def _settings(planting: Planting, seed: int) -> PlantSettings:
    """The options as planting takes them; ExpressionError for a value out of its range."""
    from pretrace.tuning.architectures import Architecture
    from pretrace.tuning.planting import PlantSettings

    architecture = Architecture(
        family=planting.family,
        layers=planting.layers,
        width=planting.width,
        heads=planting.heads,
        vocabulary=planting.vocabulary,
        max_tokens=planting.max_tokens or 512,
    )
    return PlantSettings(
        share=planting.share,
        epochs=planting.epochs,
        seed=seed,
        max_tokens=planting.max_tokens,
        method=cast("PlantMethod", planting.method),
        learning_rate=planting.learning_rate,
        batch=planting.batch,
        precision=cast("Precision", planting.precision),
        recompute=planting.recompute,
        architecture=architecture,
    )


def _say(*lines: str) -> None:
    console = Console(highlight=False)
    for line in lines:
        console.print(Plain(line), soft_wrap=True)
