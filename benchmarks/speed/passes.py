"""How fast pretrace is, against a bare forward pass and against the loop of published scripts.

`python -m benchmarks.speed.passes [--texts 48] [--repeats 3] [--parts float32 bfloat16 busy memory count]` writes
evidence/speed.json and speed.png. All figures are medians of interleaved repeats in one
process: bare, ours, naive, bare, ours, naive, … `busy` measures float32 once more, with two
programs beside it that do nothing but count. `--server vllm:URL --folder FOLDER [--served NAME]` measures float32
log-probabilities from a server on this machine beside ours from the same weights, quiet and busy.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import RESULTS, read_results, write_results
from benchmarks.machine import commit, machine
from benchmarks.speed import memory, naive
from benchmarks.texts import some_texts
from pretrace import Models, Options, detect, open_model
from pretrace.backends.huggingface import HuggingFace, Sweep
from pretrace.scoring.evidence import Traces, trace
from pretrace.types import Corpus, Quantity, Run, Text

PARTS = ["float32", "bfloat16", "busy", "memory"]
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
    """The forward passes alone: same tokens, same batches, same threads and dtype, logits for all, no
    statistics."""
    tokens = 0
    for rewritten in (texts, [text.lower() for text in texts]):
        encoded = model.encode(rewritten)
        padded = []
        for batch in model.pack(encoded):
            ids = torch.zeros((len(batch), max(encoded[i].length for i in batch)), dtype=torch.long)
            for row, i in enumerate(batch):
                ids[row, : encoded[i].length] = torch.from_numpy(encoded[i].tokens.astype(np.int64))
            padded.append(ids)
            tokens += sum(encoded[i].length for i in batch)
        _passes(model, padded)
    return tokens


def _passes(model: HuggingFace, padded: Sequence[torch.Tensor]) -> None:
    @torch.inference_mode()
    def forward(i: int) -> None:
        model.model(input_ids=padded[i].to(model.device), use_cache=False)

    for i in range(len(padded)):
        forward(i)


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


@contextmanager
def beside(programs: int = 2) -> Iterator[None]:
    """So many programs that do nothing but count, while the context lasts."""
    counting = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(programs)]
    try:
        yield
    finally:
        for one in counting:
            one.kill()
            one.wait()


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
        "largest_difference_in_loss": float(f"{apart:.2g}"),
        "profile": profile(model, texts),
    }, run


def profile(model: HuggingFace, texts: list[str]) -> dict[str, float]:
    """Share of our time by part: transformer layers, output layer, sweep over the vocabulary, the rest.

    On one thread, so that parts do not overlap.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    spent = {"layers": 0.0, "output layer": 0.0, "sweep": 0.0}

    def watch(owner: Any, attribute: str, part: str) -> Callable[[], None]:
        original = getattr(owner, attribute)

        def wrapped(*given: Any) -> Any:
            seconds, result = timed(lambda: original(*given))
            spent[part] += seconds
            return result

        setattr(owner, attribute, wrapped)
        return lambda: setattr(owner, attribute, original)

    head = model.head
    undo = [watch(model, "_body", "layers"), watch(Sweep, "_block", "sweep")]

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
    torch.set_num_threads(threads)
    shares = {part: round(seconds / total, 3) for part, seconds in spent.items()}
    return {**shares, "tokenising, packing, scores": round(1 - sum(shares.values()), 3)}


def _read(backend: Any, texts: Sequence[str]) -> None:
    trace(backend, texts, Quantity.LOGP, store=Traces(None))


def against_server(arguments: argparse.Namespace) -> dict[str, Any]:
    """Tokens a second of log-probabilities from a server and from the same weights here, in turn; each repeat reads
    texts of its own, so that no server has seen one before."""
    local = open_model(arguments.folder)
    named = {"served_model": arguments.served} if arguments.served else {}
    remote = open_model(arguments.server, tokenizer=arguments.folder, **named)
    kind = arguments.server.partition(":")[0]
    name, texts = some_texts(2 * arguments.repeats * arguments.server_texts)
    rates: dict[str, list[float]] = {"ours": [], "server": []}
    for repeat in range(arguments.repeats):
        some = texts[repeat :: 2 * arguments.repeats]
        some = some if not arguments.beside else texts[arguments.repeats + repeat :: 2 * arguments.repeats]
        for who, backend in (("ours", local), ("server", remote)):
            tokens = sum(e.length for e in backend.encode(some))
            took, _ = timed(functools.partial(_read, backend, some))
            rates[who].append(round(tokens / took, 1))
        print(
            f"{kind} repeat {repeat + 1}: " + ", ".join(f"{k} {v[-1]:.0f} tokens/s" for k, v in rates.items())
        )
    ratios = [o / s for o, s in zip(rates["ours"], rates["server"], strict=True)]
    return {
        "kind": kind,
        "texts": {"corpus": name, "a_repeat": arguments.server_texts, "repeats": arguments.repeats},
        "tokens_per_s": rates,
        "ours_over_server": round(statistics.median(ratios), 3),
        "commit": commit(),
    }


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
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--server", help="a server on this machine, such as vllm:http://127.0.0.1:8000")
    parser.add_argument("--folder", help="the folder of its weights and tokenizer")
    parser.add_argument("--served", help="the model's name there")
    parser.add_argument("--server-texts", type=int, default=6)
    arguments = parser.parse_args()
    path = RESULTS / "speed.json"
    found: dict[str, Any] = read_results(path) if path.exists() else {}
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
    if "busy" in arguments.parts:
        name, texts = some_texts(max(4, arguments.texts // 4))
        with beside():
            figures, _ = measure("float32", texts, arguments.repeats)
        figures.pop("profile")
        found["busy"] = {"texts": len(texts), "beside": 2, "commit": commit(), "float32": figures}
        save(path, found)
    if arguments.server:
        arguments.beside = False
        found["server"] = against_server(arguments)
        arguments.beside = True
        with beside():
            found["server"]["busy"] = against_server(arguments)
        save(path, found)
    if "memory" in arguments.parts:
        found |= {"memory": memory.measure(), "memory_commit": commit()}
        save(path, found)
    save(path, found)


def save(path: Path, found: dict[str, Any]) -> None:
    """Written whole or not at all."""

    path.parent.mkdir(exist_ok=True)
    write_results(path, found)


if __name__ == "__main__":
    main()
