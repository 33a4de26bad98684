"""What each score costs as a ratio to the plain pass.

Run it as `python -m benchmarks.speed.score_costs --model smollm2 --out FILE`.

The same texts are read with `loss` alone and with each score, in turn and several times over, without a cache. The
reference model of ref, wbc, ez and learned is the target itself, so that their ratio is that of two equal models. For
recall and con_recall seven texts of each side, which are not scored, stand before each text, and one before it for
codec; learned is fitted on these fourteen. Coverage writes the second half of each text eight times.
Medians of the processor's seconds, which other programs hardly change; written once all are measured.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

from benchmarks import RESULTS, write_results
from benchmarks.machine import machine
from benchmarks.texts import some_texts
from pretrace import Models, Options, detect, open_model
from pretrace.types import Corpus, Text

SCORES = (
    "min_k", "min_k_plus_plus", "gap_k", "surp", "ref", "wbc", "ez", "recall", "con_recall", "codec", "learned",
    "coverage",
)  # fmt: skip
KNOWN = 14
"""Texts that may stand before others, half of them as if they were members."""
KNOWN_TOKENS = 64
"""What each of them has, at most."""


def measured(model: str, *, texts: int, repeats: int) -> dict[str, object]:
    """The processor's seconds for the plain pass, and of every score over it."""
    source, given = some_texts(texts + KNOWN)
    target: Any = open_model(model, dtype="float32")
    cut = [
        target.tokens.rust.decode(one.tokens[:KNOWN_TOKENS].tolist()) for one in target.encode(given[:KNOWN])
    ]
    known = tuple(Text(f"k{i}", text, member=i % 2 == 0) for i, text in enumerate(cut))
    corpus = Corpus(source, tuple(Text(str(i), text) for i, text in enumerate(given[KNOWN:])))
    models = Models(target, reference=target, labelled=Corpus("known", known))
    seconds: dict[str, list[float]] = {score: [] for score in ("loss", *SCORES)}
    for _ in range(repeats):
        for score, found in seconds.items():
            begin = time.process_time()
            detect(corpus, models, score, Options(cache=False, shuffles=0))
            found.append(time.process_time() - begin)
    plain = statistics.median(seconds["loss"])
    return {
        "model": model,
        "texts": {"source": source, "number": texts, "known_tokens": KNOWN_TOKENS},
        "repeats": repeats,
        "plain_seconds": round(plain, 3),
        "ratio": {score: round(statistics.median(seconds[score]) / plain, 3) for score in SCORES},
        "machine": machine(),
    }


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--texts", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS / "score_costs.json")
    given = parser.parse_args()
    found = measured(given.model, texts=given.texts, repeats=given.repeats)
    write_results(given.out, found)
    print(json.dumps(found["ratio"], indent=1))


if __name__ == "__main__":
    main()
