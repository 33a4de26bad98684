"""How well the time left is foretold: `python -m benchmarks.speed.estimates` writes benchmarks/results/estimates.json.

Each job is a command in a process of its own, which writes the seconds left that it shows (PRETRACE_PROGRESS). They are
read twice a second and compared with the seconds that it then still took, with its start and its report. A job holds
where every estimate from 20 to 90% of its time is within 1.5 of that. All jobs are run alone and with two busy loops
beside them. Every job is written when it is done, and the same command goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import random
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

FROM, TO, WITHIN = 0.2, 0.9, 1.5
EVERY = 0.5
"""Seconds between two looks."""
JOBS: dict[str, tuple[int, list[str]]] = {
    "score": (48, ["score", "TEXTS", "--scores", "loss"]),
    "score, moments": (32, ["score", "TEXTS", "--scores", "loss,min_k_plus_plus"]),
    "score, two views": (32, ["score", "TEXTS", "--scores", "loss,lowercase"]),
    "score, many forms": (8, ["score", "TEXTS", "--scores", "loss,perturbed"]),
    "score, short texts": (400, ["score", "SHORT", "--scores", "loss"]),
    "score, one long text": (24, ["score", "UNEVEN", "--scores", "loss"]),
    "evaluate": (48, ["evaluate", "TEXTS", "--scores", "loss,zlib,min_k"]),
    "flag": (60, ["flag", "SHORT", "--nonmembers", "KNOWN"]),
    "audit": (40, ["audit", "SHORT", "--heldout", "KNOWN", "--tokens", "24"]),
    "audit, long texts": (24, ["audit", "TEXTS", "--heldout", "KNOWN"]),
}
"""Number of texts and command of each job. SHORT are the first 30 words of each text, of UNEVEN texts one is twenty
times as long as the others; KNOWN are as many other texts of the same length."""
ANSWERS = (0, 3, 4)


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


def job(name: str, model: str, work: Path) -> dict[str, Any]:
    """One job: its seconds, and its estimates beside what was really left."""
    number, command = JOBS[name]
    kind = next(one for one in ("TEXTS", "SHORT", "UNEVEN") if one in command)
    _, texts = some_texts(2 * number)
    random.Random(7).shuffle(texts)
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
    looks = []
    while process.poll() is None:
        time.sleep(EVERY)
        found = json.loads(said.read_text(encoding="utf-8")) if said.exists() else {}
        if found.get("left") is not None and "ended" not in found:
            looks.append((time.monotonic() - begin, float(found["left"])))
    seconds = time.monotonic() - begin
    if process.returncode not in ANSWERS:
        assert process.stderr is not None
        raise SystemExit(f"{name}: {process.stderr.read().decode()}")
    return {"seconds": round(seconds, 1), **judged(looks, seconds)}


def judged(looks: list[tuple[float, float]], seconds: float) -> dict[str, Any]:
    """The estimates from `FROM` to `TO` of a job of so many seconds: how many there are, the share within `WITHIN`, the
    worst ratio, and whether all hold; False where there is none."""
    ratios = []
    for at, left in looks:
        if FROM * seconds <= at <= TO * seconds:
            truth = seconds - at
            ratios.append(max(left, 1e-3) / truth)
    wrong = [max(one, 1 / one) for one in ratios]
    return {
        "estimates": len(ratios),
        "within": round(sum(one <= WITHIN for one in wrong) / len(wrong), 3) if wrong else 0.0,
        "worst": round(max(wrong), 2) if wrong else None,
        "holds": bool(wrong) and max(wrong) <= WITHIN,
        "shares": [[round(at / seconds, 3), round(left, 1)] for at, left in looks],
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
    found = json.loads(given.out.read_text(encoding="utf-8")) if given.out.exists() else {}
    if (found.get("commit"), found.get("model")) != (commit(), given.model):
        found = {"commit": commit(), "model": given.model, "machine": machine(), "jobs": {}}
    for loops in given.beside:
        rows = found["jobs"].setdefault(str(loops), {})
        for name in given.jobs:
            if name in rows:
                continue
            with tempfile.TemporaryDirectory() as work, busy(loops):
                load = round(os.getloadavg()[0], 1)
                rows[name] = {"load": load, **job(name, given.model, Path(work))}
            given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            print(
                loops,
                name,
                {key: rows[name][key] for key in ("seconds", "within", "worst", "load")},
                flush=True,
            )


if __name__ == "__main__":
    main()
