"""How fast, and how well, it is chosen how cores share batches (`pretrace.backends.cores`).

`python -m benchmarks.speed.sharing [--choices 10]` writes benchmarks/results/sharing.json. With the shapes of
SmolLM2-135M, alone and with two busy loops beside it, the choice is made so many times: its seconds, and how often it
is the way that is faster, or within a fifth of it. What is faster is told by `LONG` batches for each core, ten times
over. The same is done as if a batch a core took 1.5 and 3 times as long as it does here: a machine on which it may be
the slower way.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from typing import Any
from unittest import mock

import torch

from benchmarks import RESULTS
from benchmarks.machine import commit, machine
from benchmarks.speed.estimates import busy
from pretrace.backends import cores
from pretrace.results.atomic import atomic_text

SHAPES = ((576, 8192), (576, 1536), (1536, 576), (576, 576))
LONG, TRUTHS = 24, 10
SLOWED = (1.0, 1.5, 3.0)


def ratio(batches: int) -> float:
    """Seconds of a batch a core over those of all cores on each, by so many batches for each core."""
    threads = torch.get_num_threads()
    with mock.patch.object(cores, "_TIMED", batches), mock.patch.object(cores, "ROUNDS", 1):
        ((together, apart),) = cores._measured(SHAPES, torch.float32, threads)
    return apart / together


def chosen(slowed: float) -> tuple[str, int, float]:
    """What is chosen where a batch a core takes so many times as long, in how many rounds and seconds."""
    threads, before = torch.get_num_threads(), cores._apart
    began = time.perf_counter()
    with mock.patch.object(cores, "_apart", lambda *given: slowed * before(*given)):
        rounds = cores._measured(SHAPES, torch.float32, threads)
    return cores.decided(rounds, threads).chosen, len(rounds), time.perf_counter() - began


def measured(choices: int) -> dict[str, Any]:
    """The figures of one state of the machine; truths and choices take turns."""
    truths = [ratio(LONG)]
    made: dict[float, list[tuple[str, int, float]]] = {one: [] for one in SLOWED}
    for number in range(choices):
        if number * TRUTHS // choices > len(truths):
            truths.append(ratio(LONG))
        for slowed, some in made.items():
            some.append(chosen(slowed))
    truth = statistics.median(truths)
    rows = []
    for slowed, some in made.items():
        apart = slowed * truth  # over all cores on a batch
        cost = {cores.APART: apart / min(apart, 1.0), cores.TOGETHER: 1.0 / min(apart, 1.0)}
        rows.append(
            {
                "slowed": slowed,
                "apart_over_together": round(apart, 3),
                "chose_apart": sum(one == cores.APART for one, _, _ in some),
                "within_a_fifth": sum(cost[one] <= cores.SLOWER for one, _, _ in some),
                "choices": len(some),
                "rounds": [rounds for _, rounds, _ in some],
                "seconds": [round(took, 3) for _, _, took in some],
            }
        )
    return {"truths": [round(one, 3) for one in truths], "rows": rows}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--choices", type=int, default=10)
    given = parser.parse_args()
    torch.set_num_threads(max(2, len(os.sched_getaffinity(0))))
    found: dict[str, Any] = {"machine": machine(), "commit": commit(), "threads": torch.get_num_threads()}
    for loops in (0, 2):
        with busy(loops):
            found[f"beside {loops}"] = measured(given.choices)
        print(json.dumps(found[f"beside {loops}"]), flush=True)
    atomic_text(RESULTS / "sharing.json", json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
