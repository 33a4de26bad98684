"""What it costs to read texts that begin alike, as a ratio to whole passes over the same texts.

`python -m benchmarks.speed.beginnings [--items 6] [--repeats 3] [--parts options rows after]` writes
benchmarks/results/beginnings.json: medians of interleaved repeats in one process, whole, shared, whole, shared, …

- `options`: all 24 orders of the four options of items whose question is an abstract of 40 words;
- `rows`: shards of eight rows, each in 20 orders, the first row in its place;
- `after`: texts of about 128 tokens behind one and the same text of about 512. `over_plain` is the ratio to a
  pass over the texts alone: what a score costs that puts a text before others.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.machine import commit, machine
from benchmarks.speed.passes import RESULTS, save, timed
from benchmarks.texts import some_texts
from pretrace import open_model
from pretrace.backends.huggingface import HuggingFace
from pretrace.scoring.evidence import Want, encoded_for, open_store, trace
from pretrace.types import Quantity, Trace

PARTS = ["options", "rows", "after"]


def options(number: int) -> list[str]:
    """Items with a question of 40 words and four options of 8, in all orders."""
    _, texts = some_texts(number)
    found = []
    for text in texts:
        words = text.split()
        parts = [" ".join(words[40 + 8 * i : 48 + 8 * i]) for i in range(4)]
        found += [
            "\n".join(
                [
                    " ".join(words[:40]),
                    *(f"{letter}. {part}" for letter, part in zip("ABCD", order, strict=True)),
                ]
            )
            for order in itertools.permutations(parts)
        ]
    return sorted(found)


def rows(number: int) -> list[str]:
    """Shards of eight rows of 25 words in 20 orders that leave the first row in its place."""
    _, texts = some_texts(8 * number)
    rng = np.random.default_rng(0)
    found = []
    for start in range(0, 8 * number, 8):
        parts = [" ".join(text.split()[:25]) for text in texts[start : start + 8]]
        orders = [[0, *(1 + rng.permutation(7)).tolist()] for _ in range(20)]
        found += ["\n\n".join(parts[i] for i in order) for order in orders]
    return sorted(set(found))


def behind(number: int) -> tuple[str, list[str]]:
    """A text, and texts to read behind it."""
    _, texts = some_texts(number + 4)
    return " ".join(" ".join(texts[-4:]).split()[:380]), [
        " ".join(text.split()[:95]) for text in texts[:number]
    ]


def compared(model: HuggingFace, texts: Sequence[str], repeats: int, after: str = "") -> dict[str, Any]:
    """Seconds of whole passes and of shared ones in turn, and how far their numbers differ."""
    seconds: dict[str, list[float]] = {"whole": [], "shared": []}
    if after:
        seconds["plain"] = []
    made: dict[str, list[Trace]] = {}
    for repeat in range(repeats):
        for how in seconds:
            model.begins_once = how == "shared"
            work: Callable[[], list[Trace]] = lambda: trace(  # noqa: E731
                model,
                texts,
                Quantity.LOGP,
                store=open_store(None),
                after="" if how == "plain" else after,  # noqa: B023
            )
            took, made[how] = timed(work)
            seconds[how].append(took)
        print(
            f"repeat {repeat + 1}: " + ", ".join(f"{k} {v[-1]:.1f} s" for k, v in seconds.items()), flush=True
        )
    encoded = encoded_for(model, texts, Want(), after)
    whole = sum(e.length for e in encoded)
    firsts = {(e.shared, np.concatenate([e.prefix, e.tokens])[: e.shared].tobytes()) for e in encoded}
    computed = sum(e.length - e.shared for e in encoded) + sum(shared for shared, _ in firsts)
    apart = max(
        float(np.abs(a.logp - b.logp).max()) for a, b in zip(made["whole"], made["shared"], strict=True)
    )
    ratios = {
        f"over_{other}": round(
            statistics.median(s / o for s, o in zip(seconds["shared"], seconds[other], strict=True)), 3
        )
        for other in seconds
        if other != "shared"
    }
    return {
        **ratios,
        "seconds": {how: [round(one, 2) for one in found] for how, found in seconds.items()},
        "texts": len(texts),
        "tokens": whole,
        "tokens_computed": computed,
        "largest_difference": float(f"{apart:.2g}"),
        "commit": commit(),
    }


def main() -> None:
    """Measure and write; parts that were not asked for are kept from the file on disk."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    arguments = parser.parse_args()
    path: Path = RESULTS / "beginnings.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found |= {"machine": machine(), "threads": torch.get_num_threads(), "model": "SmolLM2-135M-Instruct"}
    model = open_model("smollm2")
    assert isinstance(model, HuggingFace)
    assert model.begins_once
    trace(model, ["the first pass sets up what later ones use"], Quantity.LOGP, store=open_store(None))
    for part in arguments.parts:
        if part == "after":
            context, texts = behind(8 * arguments.items)
            found[part] = compared(model, texts, arguments.repeats, context)
        else:
            texts = options(arguments.items) if part == "options" else rows(max(1, arguments.items // 3))
            found[part] = compared(model, texts, arguments.repeats)
        save(path, found)


if __name__ == "__main__":
    main()
