"""How well the time left is foretold: `python -m benchmarks.speed.estimates` writes benchmarks/results/estimates.json
and draws estimates.png.

Each job is a command in a process of its own, which writes the seconds left that it shows (PRETRACE_PROGRESS). They are
read twice a second and compared with the seconds that it then still took, with its start and its report. A job holds
where nine of ten looks from 20 to 90% of its time are within 1.5 of that; a look that finds no estimate is none of
them. All jobs are run alone and with two busy loops beside them. What pretrace measures of a machine once, and the
unpacked weights, are there before the first job. Every job is written with its commit when it is done; those of this
commit are not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import RESULTS
from benchmarks.machine import commit, machine
from benchmarks.texts import some_texts
from pretrace.report.plots import save_png

FROM, TO, WITHIN, ENOUGH = 0.2, 0.9, 1.5, 0.9
EVERY = 0.5
"""Seconds between two looks."""
JOBS: dict[str, tuple[int, list[str]]] = {
    "score": (320, ["score", "TEXTS", "--scores", "loss"]),
    "flag": (600, ["flag", "SHORT", "--nonmembers", "KNOWN"]),
    "audit": (240, ["audit", "TEXTS", "--heldout", "KNOWN"]),
    "evaluate": (320, ["evaluate", "TEXTS", "--scores", "loss,zlib,min_k"]),
    "audit, short texts": (600, ["audit", "SHORT", "--heldout", "KNOWN", "--tokens", "24"]),
    "score, moments and two views": (160, ["score", "TEXTS", "--scores", "loss,min_k_plus_plus,lowercase"]),
    "score, many forms": (48, ["score", "TEXTS", "--scores", "loss,perturbed"]),
    "score, one long text": (320, ["score", "UNEVEN", "--scores", "loss"]),
}
"""Number of texts and command of each job. SHORT are the first 30 words of each text, of UNEVEN texts one is twenty
times as long as the others; KNOWN are as many other texts of the same length."""
ANSWERS = (0, 3, 4)
SHUFFLE = 11
"""Its halves are not told apart by a classifier of texts, or the audit ends before a model reads."""


def write_texts(path: Path, texts: list[str], kind: str, *, labelled: bool) -> None:
    """The texts as a kind of job wants them, one a line."""
    rows = []
    for i, text in enumerate(texts):
        words = text.split()
        if kind == "SHORT" or (kind == "UNEVEN" and i):
            words = words[:30]
        if kind == "UNEVEN" and not i:
            words = (words * 20)[:600]
        row: dict[str, Any] = {"id": f"{path.stem}{i}", "text": " ".join(words), "group": f"{path.stem}{i}"}
        rows.append(row | ({"label": i % 2} if labelled else {}))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def opened_before(model: str, work: Path) -> Path:
    """A cache as it is on a machine where pretrace read something before."""
    texts, cache = work / "first.jsonl", work / "cache"
    write_texts(texts, ["Something to read before anything is timed."], "SHORT", labelled=False)
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pretrace",
            "score",
            str(texts),
            "--model",
            model,
            "--out",
            str(work / "FIRST"),
        ],
        env={**os.environ, "PRETRACE_CACHE": str(cache)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return cache


def job(name: str, model: str, work: Path, cache: Path) -> dict[str, Any]:
    """One job: its seconds, and its estimates beside what was really left."""
    kept = shutil.ignore_patterns("traces")  # a linked file of traces would be every job's
    shutil.copytree(cache, work / "cache", copy_function=os.link, ignore=kept)
    number, command = JOBS[name]
    kind = next(one for one in ("TEXTS", "SHORT", "UNEVEN") if one in command)
    _, texts = some_texts(2 * number)
    random.Random(SHUFFLE).shuffle(texts)
    asked, known, said = work / "asked.jsonl", work / "known.jsonl", work / "progress.json"
    write_texts(asked, texts[:number], kind, labelled=command[0] == "evaluate")
    write_texts(known, texts[number:], kind, labelled=False)
    places = {kind: str(asked), "KNOWN": str(known)}
    arguments = [places.get(one, one) for one in command]
    begin = time.monotonic()
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "pretrace",
            *arguments,
            "--model",
            model,
            "--out",
            str(work / "RUN"),
            "--quiet",
        ],
        env={**os.environ, "PRETRACE_PROGRESS": str(said), "PRETRACE_CACHE": str(work / "cache")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    looks: list[tuple[float, float | None]] = []
    while process.poll() is None:
        time.sleep(EVERY)
        found = json.loads(said.read_text(encoding="utf-8")) if said.exists() else {}
        if "ended" not in found:
            left = found.get("left")
            looks.append((time.monotonic() - begin, None if left is None else float(left)))
    seconds = time.monotonic() - begin
    if process.returncode not in ANSWERS:
        assert process.stderr is not None
        raise SystemExit(f"{name}: {process.stderr.read().decode()}")
    return {"seconds": round(seconds, 1), **judged(looks, seconds)}


def judged(looks: list[tuple[float, float | None]], seconds: float) -> dict[str, Any]:
    """The looks from `FROM` to `TO` of a job of so many seconds: how many there are, how many found no estimate, the
    share of all within `WITHIN`, the worst ratio, and whether the job holds; and all looks, as shares of the time and
    seconds left."""
    some = [(at, left) for at, left in looks if FROM * seconds <= at <= TO * seconds]
    ratios = [max(left, 1e-3) / (seconds - at) for at, left in some if left is not None]
    wrong = [max(one, 1 / one) for one in ratios]
    within = sum(one <= WITHIN for one in wrong) / len(some) if some else 0.0
    return {
        "looks": len(some),
        "without": len(some) - len(wrong),
        "within": round(within, 3),
        "worst": round(max(wrong), 2) if wrong else None,
        "holds": within >= ENOUGH,
        "shares": [[round(at / seconds, 3), None if left is None else round(left, 1)] for at, left in looks],
    }


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """So many programs that do nothing, as long as it lasts."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def main() -> None:
    """Measure what is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--jobs", nargs="+", choices=list(JOBS), default=list(JOBS))
    parser.add_argument("--beside", type=int, nargs="+", default=[0, 2], help="busy loops beside the jobs")
    parser.add_argument("--out", type=Path, default=RESULTS / "estimates.json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        measure(given, opened_before(given.model, Path(work)))


def measure(given: argparse.Namespace, cache: Path) -> None:
    """Run the jobs that are missing, and draw them."""
    found = json.loads(given.out.read_text(encoding="utf-8")) if given.out.exists() else {}
    if found.get("model") != given.model:
        found = {"model": given.model, "machine": machine(), "jobs": {}}
    for loops in given.beside:
        rows = found["jobs"].setdefault(str(loops), {})
        for name in given.jobs:
            if rows.get(name, {}).get("commit") == commit():
                continue
            with tempfile.TemporaryDirectory() as work, busy(loops):
                load = round(os.getloadavg()[0], 1)
                rows[name] = {"commit": commit(), "load": load, **job(name, given.model, Path(work), cache)}
            given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            print(
                loops,
                name,
                {key: rows[name][key] for key in ("seconds", "within", "worst", "without", "load")},
                flush=True,
            )
    draw(found, given.out.with_suffix(".png"))


def draw(found: dict[str, Any], path: Path) -> None:
    """The seconds foretold over the seconds that were left, along the time of each job."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    sides = figure.subplots(1, len(found["jobs"]), sharey=True, squeeze=False)[0]
    for side, (loops, rows) in zip(sides, found["jobs"].items(), strict=True):
        side.axhspan(1 / WITHIN, WITHIN, color="0.9")
        for name, row in rows.items():
            known = [
                (at, left / (row["seconds"] * (1 - at))) for at, left in row["shares"] if left and at < TO
            ]
            side.plot(*zip(*known, strict=True), label=name, linewidth=1)
        side.set(yscale="log", ylim=(0.2, 5), xlim=(0, 1), xlabel="share of the job's time")
        side.set_title("alone" if loops == "0" else f"{loops} busy loops beside it", fontsize=10)
        side.set_yticks([0.25, 0.5, 1, 2, 4], ["1/4", "1/2", "1", "2", "4"], minor=False)
        side.set_yticks([], minor=True)
        side.axvline(FROM, color="0.7", linewidth=0.8)
    sides[0].set_ylabel("foretold over true seconds left")
    sides[-1].legend(fontsize=7, loc="lower right", ncol=2)
    save_png(figure, path, dpi=150)


if __name__ == "__main__":
    main()
