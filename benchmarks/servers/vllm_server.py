"""A model behind a real vLLM server against the same weights opened here: numbers and speed.

`benchmarks/servers/try-vllm` starts the server and calls this, which writes evidence/vllm.json and vllm.png. Both are
asked the same texts by `pretrace`, nothing comes from a cache, and the repeats are interleaved: here, server, here, …
With --start it writes instead what the check says of a server that was started in that way, by both kinds of address
that vLLM answers, into evidence/vllm_starts.json, beside what stands there.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import RESULTS, read_results, write_results
from benchmarks.machine import commit, machine
from benchmarks.texts import some_texts
from pretrace import open_model
from pretrace.errors import ModelError
from pretrace.scoring.evidence import Traces, trace
from pretrace.types import Backend, Quantity, Trace

LENGTH = 256  # tokens a text


def save(folder: Path) -> None:
    """The packaged SmolLM2 as a folder that a server can open: float32 weights and the tokenizer."""
    model = open_model("smollm2")
    model.model.save_pretrained(folder)  # type: ignore[attr-defined]
    model.tokenizer.save_pretrained(folder)  # type: ignore[attr-defined]


def read(model: Backend, texts: list[str]) -> tuple[list[Trace], float]:
    """The traces and the seconds they took."""
    begin = time.perf_counter()
    found = trace(model, texts, Quantity.LOGP, store=Traces(None))
    return found, time.perf_counter() - begin


def measured(here: Backend, there: Backend, texts: list[str], repeats: int) -> dict[str, Any]:
    """Differences of the two in nats, tokens a second of each repeat, and how often both were asked."""
    seconds: dict[str, list[float]] = {"here": [], "server": []}
    for _ in range(repeats):
        ours, took = read(here, texts)
        seconds["here"].append(took)
        theirs, took = read(there, texts)
        seconds["server"].append(took)
    made = differences(ours, theirs)
    tokens = made["tokens"]
    return {
        **made,
        "tokens_a_second": {name: [tokens / one for one in took] for name, took in seconds.items()},
        "server_over_here": statistics.median(seconds["here"]) / statistics.median(seconds["server"]),
    }


def started(folder: Path, url: str, texts: list[str], ended: Path | None) -> dict[str, Any]:
    """What the check says of the server by each kind of address, and how far its numbers are from the weights here;
    the last line of the log of one that `ended`."""
    if ended:
        lines = [one for one in ended.read_text(errors="replace").splitlines() if "Error" in one]
        return {"ended": lines[-1][-300:] if lines else "without a reason"}
    here = open_model(str(folder), max_tokens=LENGTH)
    ours = read(here, texts)[0]
    found: dict[str, Any] = {}
    for kind in ("vllm", "completions"):
        begin = time.perf_counter()
        try:
            there = open_model(f"{kind}:{url}", tokenizer=str(folder), max_tokens=LENGTH)
        except ModelError as error:
            found[kind] = {"refused": str(error).replace(url, "URL")}
            continue
        checked = time.perf_counter() - begin
        told = ("moved", "bit_identical")
        found[kind] = {
            "seconds_of_the_check": checked,
            **{name: there.facts[name] for name in told},
            **differences(ours, read(there, texts)[0]),
        }
    return found


def differences(ours: list[Trace], theirs: list[Trace]) -> dict[str, Any]:
    """How far log-probabilities of the same tokens lie apart, in nats."""
    for one, other in zip(ours, theirs, strict=True):
        assert np.array_equal(one.tokens, other.tokens)
    gaps = np.concatenate([np.abs(a.logp - b.logp) for a, b in zip(ours, theirs, strict=True)])
    means = [abs(float(a.logp.mean()) - float(b.logp.mean())) for a, b in zip(ours, theirs, strict=True)]
    return {
        "tokens": sum(map(len, ours)),
        "largest_difference": float(gaps.max()),
        "median_difference": float(np.median(gaps)),
        "largest_difference_of_a_mean": max(means),
    }


def main() -> None:
    """Parse, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--url", default="http://127.0.0.1:8123")
    parser.add_argument("--vllm", default="unknown")
    parser.add_argument("--texts", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--start")
    parser.add_argument("--ended", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.save:
        save(given.save)
        return
    corpus, texts = some_texts(given.texts)
    given.out.mkdir(parents=True, exist_ok=True)
    if given.start:
        path = given.out / "vllm_starts.json"
        known = read_results(path)["starts"] if path.exists() else {}
        known[given.start] = {
            "commit": commit(),
            "machine": machine(),
            "vllm": given.vllm,
            "texts": {"corpus": corpus, "number": len(texts), "longest": LENGTH},
            **started(given.folder, given.url, texts, given.ended),
        }
        write_results(path, {"starts": known})
        print(json.dumps(known[given.start], indent=1))
        return
    here = open_model(str(given.folder), max_tokens=LENGTH)
    begin = time.perf_counter()
    there = open_model(f"vllm:{given.url}", tokenizer=str(given.folder), max_tokens=LENGTH)
    checked = time.perf_counter() - begin
    found = {
        "commit": commit(),
        "machine": machine(),
        "vllm": given.vllm,
        "model": "SmolLM2-135M-Instruct, float32 from Q4_1",
        "texts": {"corpus": corpus, "number": len(texts), "longest": LENGTH},
        "self_check": {
            "seconds": checked,
            **{name: there.facts[name] for name in ("moved", "bit_identical")},
        },
        **measured(here, there, texts, given.repeats),
    }
    write_results(given.out / "vllm.json", found)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
