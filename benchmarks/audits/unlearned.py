"""Innocent models that `evaluate --unlearned` may accuse: they never saw the members, nor did those beside them.

Six models of 1.3 million parameters read 4,000 windows each of the same other text, drawn anew, from other first
weights. Each pair of them is a model that was to forget the members and one that was retrained without them; neither
saw any. Members and non-members are excerpts of PubMed abstracts that no model read, the members changed by kind as
people really have them. `python -m benchmarks.audits.unlearned --work FOLDER` trains what is not there yet, notes each
set of texts when it is done, and writes benchmarks/results/unlearned.json: by kind, size and score how often
a model was called one that still knows the members or is over-unlearned, with and without the look at the texts.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from transformers import AutoTokenizer

from benchmarks.audits.dilution import SHAPES, Experiment
from benchmarks.experiments import DATA, RESULTS, Ledger, Spoken
from pretrace import Models, Options, detect, evaluate, open_model
from pretrace.tuning.architectures import new_model
from pretrace.tuning.plan import TrainingPlan
from pretrace.tuning.training import train
from pretrace.types import Corpus, Text

MODELS, WINDOWS, MARGIN = 6, 4000, 0.05
SCORES = ("loss", "min_k_plus_plus")
NOTICE = (
    "Copyright 2019 The Authors. This article is distributed under the terms of a licence that permits use. "
)
PATTERNS = (
    "The {} of {} in {} patients was {} with {}.", "Methods: {} and {} were {} in {} groups ({}).",
    "We report {} {} for the {} of {} by {}.", "In conclusion, {} may {} the {} of {} and {}.",
    "Results: {} {} were {} than {} ({}).",
)  # fmt: skip
Change = Callable[[list[str], list[str], list[str], np.random.Generator], list[str]]


def _share(made: Callable[[list[str], list[str]], list[str]], share: float) -> Change:
    def some(members: list[str], others: list[str], _: list[str], __: np.random.Generator) -> list[str]:
        number = int(share * len(members))
        return [*made(members[:number], others[:number]), *members[number:]]

    return some


def _templated(members: list[str], _: list[str], beside: list[str], rng: np.random.Generator) -> list[str]:
    words = [word for text in beside for word in text.split()]
    return [
        " ".join(PATTERNS[rng.integers(5)].format(*rng.choice(words, 5)) for _ in range(4)) for _ in members
    ]


def _shared(members: list[str], *_: Any) -> list[str]:
    first = members[0][: len(members[0]) // 2]
    return [f"{first} {text[len(text) // 2 :]}" for text in members]


def _other(_: list[str], others: list[str]) -> list[str]:
    return others


def _lower(members: list[str], _: list[str]) -> list[str]:
    return [text.lower() for text in members]


def _halved(members: list[str], _: list[str]) -> list[str]:
    return [text[: len(text) // 2] for text in members]


KINDS: dict[str, Change] = {
    "one source, by lot": _share(_other, 0.0),
    **{
        f"{share:.0%} of members from another domain": _share(_other, share)
        for share in (0.05, 0.1, 0.2, 0.4, 1.0)
    },
    **{f"{share:.0%} of members in lower case": _share(_lower, share) for share in (0.2, 1.0)},
    **{f"{share:.0%} of members half as long": _share(_halved, share) for share in (0.2, 1.0)},
    "one notice before every member": lambda members, *_: [NOTICE + text for text in members],
    "members from five templates": _templated,
    "members share their first half": _shared,
}
SORTED = "members and non-members divided by the alphabet"


def sets(
    experiment: Experiment, read: set[int], decode: Callable[[list[int]], str], key: dict[str, Any]
) -> Corpus:
    """Labelled texts of a kind that no model read."""
    rng = np.random.default_rng([key["seed"], key["documents"]])
    own = [text.text for text in experiment.found.labelled.texts]
    drawn, size = [own[i] for i in rng.permutation(len(own))], key["documents"]
    members, nonmembers = drawn[:size], drawn[size : 2 * size]
    windows = experiment.ready.other
    elsewhere = [i for i in range(int(0.35 * len(windows)), int(0.6 * len(windows))) if i not in read]
    others = [decode(windows[i]) for i in rng.choice(elsewhere, size, replace=False)]
    if key["kind"] == SORTED:
        both = sorted(drawn[: 2 * size])
        members, nonmembers = both[:size], both[size:]
    else:
        members = KINDS[key["kind"]](members, others, nonmembers, rng)
    return Corpus(
        key["kind"],
        tuple(
            Text(f"{label}{i}", text, member=label == "m")
            for label, some in (("m", members), ("n", nonmembers))
            for i, text in enumerate(some)
        ),
    )


def models(work: Path, experiment: Experiment) -> tuple[list[Path], set[int]]:
    """The folders of the models, and the windows that any of them read."""
    folders, read = [], set[int]()
    for number in range(MODELS):
        order = np.random.default_rng(number).permutation(len(experiment.ready.other))[:WINDOWS].tolist()
        read |= set(order)
        folders.append(work / f"m{number}")
        if (folders[-1] / "config.json").is_file():
            continue
        model, tokenizer = new_model(experiment.spelled, architecture=SHAPES[1], seed=100 + number)
        plan = TrainingPlan(
            batch=16, learning_rate=2e-3, warmup=0.05, seed=number, shuffled=False, save_minutes=3.0
        )
        windows = [experiment.ready.other[i] for i in order]
        train(model, windows, plan, on_step=Spoken().on_step, checkpoint=work / f".m{number}.training")
        tokenizer.save_pretrained(folders[-1])
        model.save_pretrained(folders[-1])  # the configuration is written with the weights
    return folders, read


def summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """By kind, number of documents and score: pairs of models, and how many were accused or cleared."""
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        cells.setdefault((row["kind"], row["documents"], row["score"]), []).append(row)
    accusing = ("still known", "over-unlearned")
    return [
        {
            "kind": kind, "documents": documents, "score": score, "pairs": len(some),
            "withheld": sum(row["withheld"] for row in some),
            "accused": sum(row["reading"] in accusing for row in some),
            "accused_without_texts": sum(row["without"] in accusing for row in some),
            "as_retrained": sum(row["reading"] == "as retrained" for row in some),
        }
        for (kind, documents, score), some in cells.items()
    ]  # fmt: skip


def main() -> None:
    """Do what is not on file yet."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--documents", type=int, nargs="+", default=[100, 400])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3])
    parser.add_argument("--out", type=Path, default=RESULTS / "unlearned.json")
    given = parser.parse_args()
    experiment = Experiment(given.work, given.data)
    experiment.prepare(0)
    folders, read = models(given.work, experiment)
    opened = [open_model(str(folder), dtype="float32") for folder in folders]
    tokenizer = AutoTokenizer.from_pretrained(folders[0])
    ledger = Ledger(given.out, {"models": MODELS, "windows": WINDOWS, "margin": MARGIN})
    keys = [
        {"documents": documents, "seed": seed, "kind": kind}
        for documents, seed, kind in itertools.product(given.documents, given.seeds, (*KINDS, SORTED))
    ]
    for key in ledger.todo(keys):
        corpus = sets(experiment, read, partial(tokenizer.decode, skip_special_tokens=True), key)
        rows = []
        for target, retrained in itertools.combinations(opened, 2):
            run = detect(corpus, Models(target, placebo=Models(retrained)), ",".join(SCORES), Options(seed=0))
            found = evaluate(run, corpus, unlearned=MARGIN, seed=0).evaluation
            assert found is not None
            rows += [
                {
                    "score": one.score, "reading": one.reading, "withheld": bool(one.withheld),
                    "without": replace(one, withheld="").reading, "difference": round(one.difference.value, 4),
                }
                for one in found.unlearned
            ]  # fmt: skip
        ledger.add(key, rows, {"withheld": found.unlearned[0].withheld})
        ledger.save(summary=summary(ledger.content["rows"]))


if __name__ == "__main__":
    main()
