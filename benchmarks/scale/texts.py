"""Memory and time of a run over very many short texts, on a model of one thin layer: what is not the model shows.

`python -m benchmarks.scale.texts [--commands score evaluate flag] [--texts 20000 200000] [--name today]`
runs each command on each number of texts, in one thread, and writes evidence/scale.json. Each row comes from
several processes: one runs the command as a user would and gives the peak memory, three others have run it on 40 texts
before and give microseconds of processor time a text beside the model's batches, of which the best is kept. Above
`--parts-to` texts (200,000) only the peak is measured. A row is written as soon as it is measured, and the same command
continues behind the rows of the same commit. `--name` keeps the rows under a name beside those that are there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import RESULTS, ROOT, read_results, write_results
from benchmarks.machine import commit, machine
from benchmarks.speed.memory import status

WORDS = (
    "the", "cat", "sat", "on", "mat", "dog", "looked", "railway", "valley", "nothing", "same", "one", "two", "parse",
)  # fmt: skip
SCORES = "loss,zlib,min_k,min_k_plus_plus"
KNOWN = 1_000
RUNS = 3
"""How often the parts are timed: the run that took least beside the forward pass is kept. A host with other guests is
slower by half for minutes at a time."""
OUTSIDE = "outside_the_forward_pass"
ANSWERS = (3, 4)
"""Exit codes of `flag` that are answers."""
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
FEW_SHAPES = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64", "LRU_CACHE_CAPACITY": "64"}
"""So that oneDNN keeps compiled products of few batch shapes: over many shards they add up to hundreds of megabytes."""
COMMANDS: dict[str, list[str]] = {
    "score": ["--scores", SCORES],
    "evaluate": ["--scores", SCORES, "--measuring", "resamples=200"],
    "flag": ["--controls", "KNOWN", "--placebo", "none"],
}
"""What is measured, with its options; KNOWN stands for a file of 1,000 known non-members."""


def run(arguments: list[str]) -> None:
    """The command of the package, in this process."""
    from pretrace.cli import main

    sys.argv = ["pretrace", *arguments]
    try:
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
            main()
    except SystemExit as left:
        if left.code not in (None, 0, *ANSWERS):
            raise


def peak(arguments: list[str]) -> dict[str, Any]:
    """Run the command here as a user would; peak megabytes and seconds."""
    begin = time.perf_counter()
    run(arguments)
    return {
        "peak_mb": round(status("VmHWM") / 1024, 1),
        "seconds": round(time.perf_counter() - begin, 1),
    }


def one(arguments: list[str], texts: int) -> dict[str, Any]:
    """Run the command here; microseconds of processor time a text beside what the model's batches take. It is run on 40
    texts first, so that what is imported and measured once is there."""
    from pretrace.backends.huggingface import HuggingFace

    first, read = Path(arguments[1]).with_name("first.jsonl"), HuggingFace.run
    make_texts(first, 40)
    run([arguments[0], str(first), *arguments[2:]])
    batches: list[float] = []

    def timed(*given: Any, **more: Any) -> Any:
        begin = time.process_time()
        found = read(*given, **more)
        batches.append(time.process_time() - begin)
        return found

    HuggingFace.run = timed  # type: ignore[method-assign]
    used = time.process_time()
    run(arguments)
    cpu = time.process_time() - used
    return {"cpu_seconds": round(cpu, 2), OUTSIDE: round(1e6 * (cpu - sum(batches)) / texts, 2)}


def make_texts(path: Path, number: int, seed: int = 1, *, known: bool = False) -> None:
    """A file of short texts, four a document, every other one a member; those that are `known` have no label."""
    generator = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        for i in range(number):
            text = " ".join(generator.choices(WORDS, k=generator.randint(4, 10)))
            row = {"id": f"t{i}", "text": f"{text} {seed}{i:07}", "group": f"{'k' if known else 'g'}{i // 4}"}
            row |= {} if known else {"label": i // 4 % 2}
            file.write(json.dumps(row) + "\n")


def make_model(folder: Path) -> None:
    """A Llama of one layer, 32 wide, with a tokenizer of 400 tokens."""
    import torch
    import transformers

    sys.path.insert(0, str(ROOT / "tests"))
    from tiny import make_tokenizer

    torch.manual_seed(7)
    configuration = transformers.LlamaConfig(
        vocab_size=416,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
    )
    transformers.LlamaForCausalLM(configuration).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)


def measured(command: str, texts: int, work: Path, *more: str, parts: bool = True) -> dict[str, Any]:
    """The figures of a command over so many texts, from processes of their own with empty caches; without `parts` the
    peak alone."""
    path, known = work / f"texts-{texts}.jsonl", work / "known.jsonl"
    if not path.exists():
        make_texts(path, texts)
    if not known.exists():
        make_texts(known, KNOWN, seed=2, known=True)
    found: dict[str, Any] = {"command": command, "texts": texts}
    options = [str(known) if one == "KNOWN" else one for one in COMMANDS[command]]
    for kind in ("--peak", *["--one"] * RUNS) if parts else ("--peak",):
        with tempfile.TemporaryDirectory(dir=work) as own:
            out = Path(own) / "RUN"
            tail = [command, str(path), "--model", str(work / "model"), *options, "--out", str(out), *more]
            environment = {**os.environ, **ENVIRONMENT, "PRETRACE_CACHE": str(Path(own) / "cache")}
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.scale.texts", kind, str(texts), "--", *tail],
                env=environment if kind == "--peak" else environment | FEW_SHAPES,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            row = json.loads(done.stdout.splitlines()[-1])
            if kind == "--one":
                row["of_runs"] = [*found.get("of_runs", []), row[OUTSIDE]]
            if row.get(OUTSIDE, 0.0) <= found.get(OUTSIDE, math.inf):
                found |= row
            found |= {"of_runs": row["of_runs"]} if kind == "--one" else {}
            found["report_bytes"] = (out / "report.html").stat().st_size
    return found


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale.texts", description=__doc__)
    parser.add_argument("--commands", nargs="+", choices=list(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--texts", type=int, nargs="+", default=[20_000, 200_000, 1_000_000])
    parser.add_argument("--parts-to", type=int, default=200_000, help="the most texts that are timed by part")
    parser.add_argument("--name", default="now", help="the state that is measured (default: %(default)s)")
    parser.add_argument("--work", type=Path, help="folder that keeps model and texts")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--peak", type=int, help=argparse.SUPPRESS)
    parser.add_argument("options", nargs="*", help="more options of the commands, behind --")
    return parser.parse_args()


def main() -> None:
    """Measure what is missing."""
    asked = parsed()
    if asked.peak or asked.one:
        print(json.dumps(peak(asked.options) if asked.peak else one(asked.options, asked.one)))
        return
    with tempfile.TemporaryDirectory() as own:
        work = asked.work or Path(own)
        work.mkdir(parents=True, exist_ok=True)
        if not (work / "model").exists():
            make_model(work / "model")
        for texts in asked.texts:
            for command in asked.commands:
                add(asked, command, texts, work)


def add(asked: argparse.Namespace, command: str, texts: int, work: Path) -> None:
    """Measure one row, write it beside the others; nothing where this commit has it."""
    path = RESULTS / "scale.json"
    found = read_results(path) if path.exists() else {}
    state = found.get(asked.name, {})
    if (state.get("commit"), state.get("options")) != (commit(), asked.options):
        state = {"machine": machine(), "commit": commit(), "options": asked.options, "rows": []}
    if any((row["command"], row["texts"]) == (command, texts) for row in state["rows"]):
        return
    row = measured(command, texts, work, *asked.options, parts=texts <= asked.parts_to)
    print(json.dumps(row), flush=True)
    state["rows"].append(row)
    found[asked.name] = state
    write_results(path, found)


if __name__ == "__main__":
    main()
