"""Workers on Ray: efficiency with 1 and 2 of them measured here, and growth to many simulated with the measured times.

`python -m benchmarks.scale.ray [--texts 40960] [--repeats 3] [--busy]` scores short texts on a model of one thin layer
with 1 and 2 workers by turns, each with one thread, and writes benchmarks/results/scale_ray.json and .png; four
minutes on two cores that were busy with other work, which `--busy` records. `--again` simulates and draws anew with the
times on file.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.machine import commit, machine
from benchmarks.scale.ray_plots import draw
from benchmarks.scale.texts import RESULTS, SCORES, make_model, make_texts

WORKERS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
ASSUMED = [
    "One process hands out and writes, one shard after the other; its seconds a shard are those measured here.",
    "Every worker takes the seconds a shard measured with one worker, whatever the number of workers: each has its own "
    "core or GPU, and neither network nor disk is the limit. A shard and its part travel in no time besides what is "
    "measured here through the object store of one machine.",
    "All workers open their models at once, in the seconds measured with one worker.",
    "The two readings of the source before the first shard is handed out are left out, and so is the merging after the "
    "last part.",
    "No worker dies, and the machine of the process that hands out has nothing else to do.",
    "The second model is not measured here: the seconds a shard of its workers are tokens by the rate in speed.json.",
]


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of a run: to open the first worker and all of them, from the first shard to the last part, those that
    the process that hands out computed, and those of the workers on their shards, added up."""

    opened: float
    all_opened: float
    work: float
    driver_cpu: float
    workers: float
    shards: int
    load: float


def measured(ray: Any, folder: Path, texts: Path, workers: int) -> Times:
    """One run with so many workers, without the models' own store."""
    from pretrace.corpora import open_stream
    from pretrace.jobs.engine.pool import Pool
    from pretrace.jobs.engine.work import Scoring, counted, shard_size, work_on
    from pretrace.jobs.job import Job
    from pretrace.jobs.settings import EngineSettings
    from pretrace.jobs.worker import survey
    from pretrace.scoring.detect import Options
    from pretrace.scoring.holdout import Parts as Texts
    from pretrace.scoring.settings import ModelsSettings, Target
    from pretrace.types import Corpus

    wanted = ModelsSettings(target=Target(model=str(folder)), cache=False)
    task = Scoring(wanted, SCORES, Texts(None, None, Corpus("texts", ())), None, Options(cache=False))
    stream = open_stream(texts)
    size = shard_size(counted(stream))
    found = survey(stream, size)
    begin = time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as out,
        Pool(ray, task, EngineSettings(engine="ray", workers=workers)) as pool,
    ):
        opened = time.perf_counter() - begin
        while any(hand.opening is not None for hand in pool._hands):
            list(pool._arrived(1.0))
        all_opened = time.perf_counter() - begin
        ready = pool.told.opened
        job = Job(ready.fingerprint, found, "texts", tuple(SCORES.split(",")), (), ready.settings, {})
        spent = _Spent()
        begin, cpu = time.perf_counter(), time.process_time()
        made = work_on(pool, job, stream, job.parts(Path(out)), size=size, progress=spent)
        work, driver = time.perf_counter() - begin, time.process_time() - cpu
    return Times(opened, all_opened, work, driver, spent.seconds * workers, made, os.getloadavg()[0])


class _Spent:
    """Adds up the seconds of the workers, which are told divided by their number."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def begin(self, texts: int) -> None:
        """Nothing."""

    def advance(self, texts: int, tokens: int, seconds: float, fresh: bool) -> None:
        """So many seconds more."""
        self.seconds += seconds


@dataclass(frozen=True, slots=True)
class Model:
    """What is simulated: seconds a shard of a worker and of the process that hands out, and seconds to open."""

    name: str
    worker: float
    driver: float
    opening: float

    def makespan(self, workers: int, shards: int) -> float:
        """Seconds of so many shards: they are handed out and written one after the other, each time to the worker that
        is free first."""
        free, at = [self.opening] * workers, self.opening
        for _ in range(shards):
            at = max(at, free[0]) + self.driver
            heapq.heapreplace(free, at + self.worker)
        return max(free)

    def growth(self, shards: int) -> list[dict[str, float]]:
        """Speed-up over one worker, and the share of the workers' time that is used, by number of workers."""
        alone = self.makespan(1, shards)
        rows = []
        for workers in WORKERS:
            seconds = self.makespan(workers, shards)
            faster = alone / seconds
            rows.append(
                {
                    "workers": workers,
                    "seconds": round(seconds, 1),
                    "speed_up": round(faster, 2),
                    "efficiency": round(faster / workers, 3),
                }
            )
        return rows


def simulated(runs: dict[int, list[Times]], texts: int, tokens: int) -> dict[str, Any]:
    """Growth for 10^6 and 10^8 texts: of the thin model, and of a real one with the rate of speed.json."""
    from pretrace.jobs.engine.work import shard_size

    ones = runs[1]
    per_text = statistics.median(one.workers for one in ones) / texts
    driver = statistics.median(one.driver_cpu for one in [*ones, *runs[2]]) / texts
    opening = statistics.median(one.opened for one in ones)
    speed = json.loads((RESULTS / "speed.json").read_text(encoding="utf-8"))["bfloat16"]["tokens_per_s"]
    found: dict[str, Any] = {
        "microseconds_a_text": {"worker": round(1e6 * per_text, 1), "driver": round(1e6 * driver, 1)},
        "opening_seconds": round(opening, 2),
        "tokens_a_text_of_the_real_model": tokens,
        "tokens_a_second_of_the_real_model": speed,
        "assumed": ASSUMED,
    }
    thin = Model("one thin layer", per_text, driver, opening)
    real = Model("SmolLM2-135M, bfloat16", per_text + tokens / speed, driver, opening)
    for model in (thin, real):
        found[model.name] = {}
        for number in (10**6, 10**8):
            size = shard_size(number)
            shard = replace(model, worker=model.worker * size, driver=model.driver * size)
            found[model.name][f"{number:.0e}"] = shard.growth(-(-number // size))
    return found


def main() -> None:
    """Measure, simulate, write and draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale.ray", description=__doc__)
    parser.add_argument("--texts", type=int, default=40_960)
    parser.add_argument(
        "--tokens", type=int, default=500, help="tokens a text of the real model (default: 500)"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--again", action="store_true")
    asked = parser.parse_args()
    path = RESULTS / "scale_ray.json"
    found = json.loads(path.read_text(encoding="utf-8")) if asked.again else measure(asked)
    runs = {int(number): [Times(**run) for run in some] for number, some in found["runs"].items()}
    found["simulated"] = simulated(runs, found["texts"], asked.tokens)
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    draw(found, path.with_suffix(".png"))
    print(json.dumps({name: found[name] for name in ("texts_a_second", "efficiency_of_two")}))


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """Runs with 1 and 2 workers by turns, and what they were made on."""
    os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
    from pretrace.jobs.engine.pool import connected

    runs: dict[int, list[Times]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as own:
        folder, texts = Path(own) / "model", Path(own) / "texts.jsonl"
        make_model(folder)
        make_texts(texts, asked.texts)
        begin = time.perf_counter()
        with connected(None) as ray:
            started = time.perf_counter() - begin
            for number in [1, 2] * asked.repeats:
                runs[number].append(measured(ray, folder, texts, number))
    one, two = (statistics.median(run.work for run in runs[number]) for number in (1, 2))
    return {
        "machine": machine(),
        "commit": commit(),
        "busy": asked.busy,
        "texts": asked.texts,
        "scores": SCORES,
        "ray_started_in_seconds": round(started, 2),
        "runs": {str(number): [_rounded(run) for run in some] for number, some in runs.items()},
        "texts_a_second": {"1": round(asked.texts / one), "2": round(asked.texts / two)},
        "efficiency_of_two": round(one / two / 2, 3),
    }


def _rounded(run: Times) -> dict[str, float]:
    return {name: round(value, 3) for name, value in asdict(run).items()}


if __name__ == "__main__":
    main()
