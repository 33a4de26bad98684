"""How fast pretrace is, against a bare forward pass and against the loop of published scripts.

`python -m benchmarks.speed [--texts 48] [--repeats 3] [--parts float32 bfloat16 memory count]` writes
benchmarks/results/speed.json and speed.png. All figures are medians of interleaved repeats in one
process: bare, ours, naive, bare, ours, naive, …
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import memory, naive
from benchmarks.machine import commit, machine
from benchmarks.plots import draw_speed
from benchmarks.texts import some_texts
from pretrace import Models, Options, detect, open_model
from pretrace.backends import precision
from pretrace.backends.huggingface import HuggingFace
from pretrace.types import Corpus, Run, Text

PARTS = ["float32", "bfloat16", "memory", "count"]
RESULTS = Path(__file__).parent / "results"
SCORES = ["loss", "zlib", "lowercase", "dc_pdd"] + [
    f"{name}(k={k})" for k in naive.KS for name in ("min_k", "min_k_plus_plus")
]


class Uniform:
    """Token counts for dc_pdd that cost nothing to make."""

    def __init__(self, model: HuggingFace) -> None:
        self.tokenizer_hash = model.tokenizer_hash

    def log_frequency(self, vocabulary: int) -> np.ndarray:
        return -np.log(np.arange(2, vocabulary + 2, dtype=np.float64) * np.log(vocabulary))


def bare(model: HuggingFace, texts: list[str]) -> int:
    """The forward passes alone: same tokens, same batches, same route and dtype, logits for all, no statistics."""
    tokens = 0
    for rewritten in (texts, [text.lower() for text in texts]):
        encoded = model.encode(rewritten)
        for batch in model.pack(encoded):
            ids = torch.zeros((len(batch), max(encoded[i].length for i in batch)), dtype=torch.long)
            for row, i in enumerate(batch):
                ids[row, : encoded[i].length] = torch.from_numpy(encoded[i].tokens.astype(np.int64))
            with torch.inference_mode(), precision.products(model.route):
                model.model(input_ids=ids.to(model.device), use_cache=False)
            tokens += sum(encoded[i].length for i in batch)
    return tokens


def ours(model: HuggingFace, texts: list[str], scores: Sequence[str] = SCORES) -> Run:
    """The whole of `detect`: tokenising, both views, all scores, and the heat maps at the end."""
    corpus = Corpus("benchmark", tuple(Text(str(i), text) for i, text in enumerate(texts)))
    return detect(corpus, Models(model, counts=Uniform(model)), scores, Options(cache=False))


def loop(model: HuggingFace, texts: list[str]) -> list[dict[str, float]]:
    """The naive loop on the same weights."""
    table = Uniform(model).log_frequency(model.vocabulary)
    return [naive.score_text(model.model, model.tokenizer, text, table) for text in texts]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result, with everything the GPU was asked for done."""
    _settle()
    begin = time.perf_counter()
    result = work()
    _settle()
    return time.perf_counter() - begin, result


def _settle() -> None:
    """Wait for the GPU: its work is only queued when a call returns."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def measure(dtype: str, texts: list[str], repeats: int) -> tuple[dict[str, Any], Run]:
    """The figures of one dtype, and the run whose scores are compared between dtypes."""
    model = open_model("smollm2", dtype=dtype)
    assert isinstance(model, HuggingFace)
    seconds: dict[str, list[float]] = {"bare": [], "ours": [], "naive": []}
    timed(lambda: bare(model, texts[:4]))  # warm up
    for repeat in range(repeats):
        took, tokens = timed(lambda: bare(model, texts))
        seconds["bare"].append(took)
        took, run = timed(lambda: ours(model, texts))
        seconds["ours"].append(took)
        took, rows = timed(lambda: loop(model, texts))
        seconds["naive"].append(took)
        print(f"{dtype} repeat {repeat + 1}: " + ", ".join(f"{k} {v[-1]:.1f} s" for k, v in seconds.items()))
    middle = {name: statistics.median(values) for name, values in seconds.items()}
    apart = max(abs(rows[i]["loss"] - run.column("loss")[i]) for i in range(len(texts)))
    over = [o / b for o, b in zip(seconds["ours"], seconds["bare"], strict=True)]
    against = [n / o for n, o in zip(seconds["naive"], seconds["ours"], strict=True)]
    return {
        "over_bare": round(statistics.median(over), 3),
        "naive_over_ours": round(statistics.median(against), 3),
        "tokens_per_s": round(tokens / middle["ours"], 1),
        "seconds": {name: [round(v, 2) for v in values] for name, values in seconds.items()},
        "tokens": tokens,
        "products": model.route,
        "largest_difference_in_loss": float(f"{apart:.2g}"),
        "profile": profile(model, texts),
    }, run


def profile(model: HuggingFace, texts: list[str]) -> dict[str, float]:
    """Share of our time by part: transformer layers, output layer, sweep over the vocabulary, the rest."""
    spent = {"layers": 0.0, "output layer": 0.0, "sweep": 0.0}

    def watch(owner: Any, attribute: str, part: str) -> Callable[[], None]:
        original = getattr(owner, attribute)

        def wrapped(*given: Any) -> Any:
            seconds, result = timed(lambda: original(*given))
            spent[part] += seconds
            return result

        setattr(owner, attribute, wrapped)
        return lambda: setattr(owner, attribute, original)

    sweeps = [model._sweep(moments) for moments in (False, True)]
    head = model.head
    undo = [watch(model, "_body", "layers"), *(watch(sweep, "_block", "sweep") for sweep in sweeps)]

    def watched_head(hidden: torch.Tensor) -> torch.Tensor:
        seconds, logits = timed(lambda: head(hidden))
        spent["output layer"] += seconds
        assert isinstance(logits, torch.Tensor)
        return logits

    model.head = watched_head
    total, _ = timed(lambda: ours(model, texts))
    model.head = head
    for restore in undo:
        restore()
    shares = {part: round(seconds / total, 3) for part, seconds in spent.items()}
    return {**shares, "tokenising, packing, scores": round(1 - sum(shares.values()), 3)}


def rank_correlation(first: Run, second: Run) -> dict[str, float]:
    """Spearman's correlation of each score between two runs over the same texts."""
    from scipy.stats import spearmanr

    return {
        name: round(float(spearmanr(first.column(name), second.column(name)).statistic), 5)
        for name in first.scores
    }


def main() -> None:
    """Measure and write; parts that were not asked for are kept from the file on disk."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    arguments = parser.parse_args()
    path = RESULTS / "speed.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found |= {"machine": machine(), "threads": torch.get_num_threads()}
    dtypes = [part for part in ("float32", "bfloat16") if part in arguments.parts]
    if dtypes:
        found["commit"] = commit()  # of the two dtypes; memory and count carry their own
        name, texts = some_texts(arguments.texts)
        size = {"corpus": name, "number": len(texts), "repeats": arguments.repeats}
        found["texts"] = {**size, "model": "SmolLM2-135M-Instruct"}
    runs = {}
    for dtype in dtypes:
        found[dtype], runs[dtype] = measure(dtype, texts, arguments.repeats)
        save(path, found)
    if len(runs) == 2:
        found["rank_correlation"] = rank_correlation(runs["float32"], runs["bfloat16"])
    if "memory" in arguments.parts:
        found |= {"memory": memory.measure(), "memory_commit": commit()}
        save(path, found)
    if "count" in arguments.parts:
        from benchmarks import counting

        found["count"] = counting.measure()
    save(path, found)
    draw_speed(found, RESULTS / "speed.png")


def save(path: Path, found: dict[str, Any]) -> None:
    """Written whole or not at all."""
    from pretrace.results.atomic import atomic_text

    path.parent.mkdir(exist_ok=True)
    atomic_text(path, json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
