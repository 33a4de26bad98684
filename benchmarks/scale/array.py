"""An array of four jobs over one source, of which one is killed and started again: are the rows those of one run?

`python -m benchmarks.scale.array [--texts 200000]` (three minutes on two cores) writes
benchmarks/results/scale_array.json. Four commands `score --shard N/4` run at once with one thread each, on a model of
one thin layer; the second gets SIGKILL as soon as any of them has written a part. The merge then names what is missing,
the same command scores it, and the merged table is compared with that of one command, to the bit.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import RESULTS
from benchmarks.machine import commit, machine
from benchmarks.scale.texts import ENVIRONMENT, SCORES, make_model, make_texts
from pretrace.results.atomic import atomic_text
from pretrace.runs import scan

TASKS, KILLED = 4, 2


def started(command: list[str]) -> subprocess.Popen[bytes]:
    """A command of the package in a process of its own, without a cache."""
    return subprocess.Popen(
        [sys.executable, "-m", "pretrace", *command],
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def done(process: subprocess.Popen[bytes]) -> str:
    """What it said on standard error; SystemExit where it failed."""
    _, said = process.communicate()
    if process.returncode:
        raise SystemExit(said.decode())
    return said.decode()


def disturbed(score: list[str], out: Path) -> dict[str, Any]:
    """The array with its kill: the signal, what a merge says before the task ran again, and all seconds."""
    began = time.monotonic()
    parts = out.with_name(f".{out.name}.parts")
    tasks = [started([*score, "--out", str(out), "--shard", f"{one}/{TASKS}"]) for one in range(1, TASKS + 1)]
    killed = tasks[KILLED - 1]
    while killed.poll() is None and not list(parts.rglob("*.parquet")):
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    code = killed.wait()
    for number, task in enumerate(tasks, 1):
        if number != KILLED:
            done(task)
    early = started(["runs", "merge", str(out)])
    _, refused = early.communicate()
    done(started([*score, "--out", str(out), "--shard", f"{KILLED}/{TASKS}"]))
    done(started(["runs", "merge", str(out)]))
    return {
        "killed_by": -code,
        "merge_before": {"code": early.returncode, "said": refused.decode().strip()},
        "seconds": round(time.monotonic() - began, 1),
    }


def main() -> None:
    """Run one command and the array, and compare their tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=200_000)
    texts = parser.parse_args().texts
    with tempfile.TemporaryDirectory() as own:
        work = Path(own)
        make_model(work / "model")
        make_texts(work / "texts.jsonl", texts)
        score = ["score", str(work / "texts.jsonl"), "--model", str(work / "model"), "--scores", SCORES]
        score.append("--no-cache")
        began = time.monotonic()
        done(started([*score, "--out", str(work / "ONE")]))
        alone = round(time.monotonic() - began, 1)
        found = disturbed(score, work / "ARRAY")
        one, many = (scan(work / name).to_table() for name in ("ONE", "ARRAY"))
        found |= {
            "texts": texts,
            "tasks": TASKS,
            "seconds_of_one_command": alone,
            "rows": many.num_rows,
            "columns": many.column_names,
            "equal_to_the_bit": bool(one.equals(many)),
            "machine": machine(),
            "commit": commit(),
        }
    atomic_text(RESULTS / "scale_array.json", json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
