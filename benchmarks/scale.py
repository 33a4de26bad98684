"""Memory and time of a run over very many short texts, on a model of one thin layer: what is not the model shows.

`python -m benchmarks.scale [--texts 20000 200000 1000000] [--name today]` runs `pretrace score` in a process of its own
for each number of texts, in one thread, and writes benchmarks/results/scale.json and scale.png: peak memory, and
microseconds a text by part. `--name` adds the rows under a name beside those that are there, to compare two states.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.machine import commit, machine
from benchmarks.memory import status

RESULTS = Path(__file__).parent / "results"
WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "mat",
    "dog",
    "looked",
    "railway",
    "valley",
    "nothing",
    "same",
    "one",
    "two",
    "parse",
]
SCORES = "loss,zlib,min_k,min_k_plus_plus"
PARTS = {
    "reading": ["corpora.reading:Reading.corpus", "corpora.reading:Reading.stream"],
    "tokenising": ["backends.tokens:Tokens.encode"],
    "packing": ["backends.huggingface:HuggingFace.pack"],
    "storing": ["cache.traces:Traces.get", "cache.traces:Traces.put"],
    "forward pass": ["backends.huggingface:HuggingFace._read"],
    "batches": ["backends.huggingface:HuggingFace.run"],
    "evidence": ["scoring.evidence:EvidenceReader._chunk"],
    "scoring": ["scoring.detect:_Pass.add", "scoring.scored:Scored.add"],
    "writing": ["results.run:save_run", "jobs.worker:write_part", "jobs.merge:merge"],
}
"""The functions whose own time, less that of those below them in this table, belongs to a part."""


class Clock:
    """The own time of parts: that of a part that is called from another is not counted twice."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self.stack: list[str] = []
        self.since = time.process_time()

    def _tick(self) -> None:
        now = time.process_time()
        self.spent[self.stack[-1] if self.stack else "other"] += now - self.since  # type: ignore[assignment]
        self.since = now

    def enter(self, part: str) -> None:
        """From here on the time is this part's."""
        self._tick()
        self.stack.append(part)

    def leave(self) -> None:
        """From here on it is that of whoever called."""
        self._tick()
        self.stack.pop()

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, its own time counted; where it returns an iterator, each of its steps."""

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            self.enter(part)
            try:
                found = function(*args, **kwargs)
            finally:
                self.leave()
            return self._steps(part, found) if isinstance(found, Iterator) else found

        return run

    def _steps(self, part: str, steps: Iterator[Any]) -> Iterator[Any]:
        while True:
            self.enter(part)
            try:
                one = next(steps)
            except StopIteration:
                return
            finally:
                self.leave()
            yield one


def watch(clock: Clock) -> None:
    """Count the time of all functions of `PARTS` that this state of the package has."""
    for part, places in PARTS.items():
        for place in places:
            module, _, name = place.partition(":")
            try:
                owner: Any = importlib.import_module(f"pretrace.{module}")
            except ModuleNotFoundError:
                continue
            *inner, last = name.split(".")
            owner = functools.reduce(lambda found, one: getattr(found, one, None), inner, owner)
            if hasattr(owner, last):
                setattr(owner, last, clock.timed(part, getattr(owner, last)))


def run(arguments: list[str]) -> None:
    """The command of the package, in this process."""
    from pretrace.cli import main

    sys.argv = ["pretrace", *arguments]
    try:
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
            main()
    except SystemExit as left:
        if left.code:
            raise


def one(arguments: list[str], texts: int) -> dict[str, Any]:
    """Run the command here; peak megabytes, and microseconds of processor time a text by part. It is run on ten texts
    first, so that what is imported and measured once is there."""
    first = Path(arguments[1]).with_name("first.jsonl")
    make_texts(first, 10)
    run([arguments[0], str(first), *arguments[2:]])
    clock = Clock()
    watch(clock)
    begin, used = time.perf_counter(), time.process_time()
    run(arguments)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - used
    clock._tick()
    parts = {part: round(1e6 * spent / texts, 2) for part, spent in sorted(clock.spent.items())}
    return {
        "texts": texts,
        "peak_mb": round(status("VmHWM") / 1024, 1),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "microseconds_a_text": parts,
        "outside_the_forward_pass": round(sum(parts.values()) - parts.get("forward pass", 0.0), 2),
    }


def make_texts(path: Path, number: int, seed: int = 1) -> None:
    """A file of short texts, four a document, every other one a member."""
    generator = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        for i in range(number):
            text = " ".join(generator.choices(WORDS, k=generator.randint(4, 10)))
            row = {"id": f"t{i}", "text": text, "label": i % 2, "group": f"g{i // 4}"}
            file.write(json.dumps(row) + "\n")


def make_model(folder: Path) -> None:
    """A Llama of one layer, 32 wide, with a tokenizer of 400 tokens."""
    import torch
    import transformers

    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
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


def measured(texts: int, work: Path, *more: str) -> dict[str, Any]:
    """The figures of `pretrace score` over so many texts, from a process of its own with an empty cache."""
    path = work / f"texts-{texts}.jsonl"
    if not path.exists():
        make_texts(path, texts)
    with tempfile.TemporaryDirectory(dir=work) as own:
        out, cache = Path(own) / "RUN", Path(own) / "cache"
        command = ["score", str(path), "--model", str(work / "model"), "--scores", SCORES, "--out", str(out)]
        environment = {**os.environ, "PRETRACE_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
        environment |= {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.scale", "--one", str(texts), "--", *command, *more],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        report = (out / "report.html").stat().st_size
    return {**json.loads(done.stdout.splitlines()[-1]), "report_bytes": report}


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--texts", type=int, nargs="+", default=[20_000, 200_000, 1_000_000])
    parser.add_argument("--name", default="now", help="the state that is measured (default: %(default)s)")
    parser.add_argument("--work", type=Path, help="folder that keeps model and texts")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("command", nargs="*", help="more options of `pretrace score`, behind --")
    return parser.parse_args()


def main() -> None:
    """Measure, write scale.json and draw it."""
    asked = parsed()
    if asked.one:
        print(json.dumps(one(asked.command, asked.one)))
        return
    with tempfile.TemporaryDirectory() as own:
        work = asked.work or Path(own)
        work.mkdir(parents=True, exist_ok=True)
        if not (work / "model").exists():
            make_model(work / "model")
        rows = [measured(number, work, *asked.command) for number in asked.texts]
    path = RESULTS / "scale.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found[asked.name] = {"machine": machine(), "commit": commit(), "options": asked.command, "rows": rows}
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    from benchmarks.scale_plots import draw

    draw(found, path.with_suffix(".png"))
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
