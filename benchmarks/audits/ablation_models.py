"""The models of the ablations: bases from scratch, and targets whose members are known.

A base learns the background of all domains from scratch, with a vocabulary of its own. A target is a base trained
further on a random half of one domain's evaluation documents, so that members and non-members differ in nothing
but exposure, and the base itself is the model before it could have seen them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.audits.ablation_documents import DOMAINS, Setup, halved
from benchmarks.experiments import Spoken
from pretrace.errors import TextsError
from pretrace.tuning.architectures import Architecture, new_model
from pretrace.tuning.plan import TrainingPlan
from pretrace.types import Corpus

if TYPE_CHECKING:
    from pretrace.backends.loading import Loaded

FAMILY = "llama"
WINDOW = 257
"""Tokens of a window: 256 are predicted."""


def home(domain: str) -> int:
    """The seed of the base that the targets of a domain begin with, one of two."""
    return DOMAINS.index(domain) % 2


def base_folder(setup: Setup, domain: str) -> Path:
    """Where the base of a domain's targets lies."""
    return setup.work / f"base-{FAMILY}-{home(domain)}"


def make_base(setup: Setup, domain: str, background: Corpus) -> Path:
    """The folder of the base that a domain's targets begin with, trained now unless it is there."""
    folder, seed = base_folder(setup, domain), home(domain)
    known = replace(background, texts=tuple(replace(text, member=True) for text in background.texts))
    settings = {"base": seed, **setup.sizes}
    if _is_made(folder, known, settings):
        return folder
    architecture = Architecture(
        family=FAMILY, layers=setup.layers, width=setup.width, vocabulary=setup.vocabulary
    )
    model, tokenizer = new_model([text.text for text in known.texts], architecture=architecture, seed=seed)
    plan = _plan(setup, epochs=setup.epochs, rate=setup.rate, seed=seed)
    _learn(_Start(model, tokenizer), known, folder, plan, settings=settings)
    return folder


def make_target(setup: Setup, domain: str, seed: int, corpus: Corpus) -> tuple[Path, Corpus]:
    """The folder of a target, trained now unless it is there, and the evaluation documents with their labels, of
    which `seed` draws the members."""
    from pretrace.backends.loading import load
    from pretrace.backends.settings import ModelSettings

    labelled = halved(corpus, seed)
    base = base_folder(setup, domain)
    folder = setup.work / f"target-{domain}-{FAMILY}-{home(domain)}-{seed}"
    settings = {"domain": domain, "target": seed, "base": home(domain), **setup.sizes}
    if not _is_made(folder, labelled, settings):
        plan = _plan(setup, epochs=1, rate=setup.target_rate, seed=seed)
        start = load(str(base), ModelSettings(dtype="float32"))
        _learn(start, labelled, folder, plan, settings=settings)
    return folder, labelled


def _plan(setup: Setup, *, epochs: int, rate: float, seed: int) -> TrainingPlan:
    precision: Any = setup.precision
    return TrainingPlan(
        epochs=epochs, batch=setup.batch, learning_rate=rate, warmup=0.05, precision=precision, seed=seed
    )


def _is_made(folder: Path, corpus: Corpus, settings: Mapping[str, Any]) -> bool:
    """Whether the model is there; TextsError where another one is."""
    from pretrace.tuning.artifacts import texts_hash

    if not (folder / "card.json").is_file():
        return False
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    members = texts_hash([text for text in corpus.texts if text.member])
    if card["settings"] != json.loads(json.dumps(settings)) or card["members"]["hash"] != members:
        raise TextsError(
            f"{folder} holds a model of other texts or settings: delete it, or name another folder with --work."
        )
    return True


class _Start(NamedTuple):
    """What a training begins with."""

    model: Any
    tokenizer: Any


def _learn(
    start: _Start | Loaded, corpus: Corpus, folder: Path, plan: TrainingPlan, *, settings: Mapping[str, Any]
) -> None:
    """Train the model on the members of the corpus, read as start, text, end, and write it to the folder."""
    from pretrace.backends.tokens import Tokens
    from pretrace.tuning.artifacts import write_planted
    from pretrace.tuning.batches import windows
    from pretrace.tuning.training import train

    print(f"training {folder.name}", flush=True)
    texts = [text.text for text in corpus.texts if text.member]
    end = [int(start.tokenizer.eos_token_id)]
    encoded = Tokens(start.tokenizer, start="always").encode(texts)
    whole = [[*e.prefix.tolist(), *e.tokens.tolist(), *end] for e in encoded]
    sequences = [window for tokens in whole for window in windows(tokens, WINDOW)]
    history = train(start.model, sequences, plan, on_step=Spoken().on_step)
    card = {"settings": settings, "tokens": history.tokens, "losses": list(history.losses)}
    card |= {"steps": history.steps, "seconds": round(history.seconds, 1)}
    card["parameters"] = sum(weight.numel() for weight in start.model.parameters())
    write_planted(folder, start.model, start.tokenizer, corpus=corpus, card=card)
