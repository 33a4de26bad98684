"""Everything that only a GPU can show, in one call: `python -m benchmarks.speed.gpu`, or `scripts/check-gpu`.

Tests marked `gpu`, speed against the loop of published scripts, against the bare forward and against vLLM in the same
process, how far half precision is from float32, memory. Each
part runs in a process of its own with a time limit; one that fails is recorded with its error and the others
go on. Without a GPU it says so and measures nothing; `--device cpu --tiny` goes through the same steps with a
small random model, to see that they work. Writes gpu.json and gpu.png to `--out` (evidence).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from benchmarks import RESULTS, write_results
from benchmarks.machine import commit, machine
from benchmarks.speed.gpu_parts import PARTS, ROOT, Setting

LIMITS = {"tests": 150.0, "smollm2_bfloat16": 180.0, "llama_bfloat16": 240.0}
"""Seconds of a part; the others have `_LIMIT`."""
_LIMIT = 120.0
_LEAST = 10.0
"""Seconds below which a part is not begun."""
NAIVE_OVER_OURS, OVER_BARE = 5.0, 1.05
LOSS_APART = {"bfloat16": 1e-3, "float16": 1e-3, "float32": 1e-4}
"""What the parts are to reach: times as fast as the loop, times as slow as the bare forward, nats apart."""


def main() -> int:
    """Measure what can be measured here; 0 where no GPU is, and where every part came to its end, else 1."""
    given = _arguments()
    if given.device != "cpu" and not torch.cuda.is_available():
        print("No GPU here: nothing was measured (--device cpu --tiny goes through the steps without one).")
        return 0
    setting = Setting(
        device=given.device,
        tiny=given.tiny,
        smollm2=given.smollm2,
        texts=given.texts or (12 if given.tiny else 10_000),
        repeats=given.repeats or (1 if given.tiny else 5),
    )
    if given.part is not None:
        return _one(given.part, setting, given.out)
    return _all(given, setting)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--tiny", action="store_true", help="a small random model and a dozen texts")
    parser.add_argument(
        "--smollm2", default="smollm2", metavar="FILE.gguf", help="where the model's file lies"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of gpu.json and gpu.png")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--texts", type=int, help="how many docstrings (all)")
    parser.add_argument("--repeats", type=int, help="how often each is timed (5)")
    parser.add_argument("--minutes", type=float, default=7.5, help="for all parts together")
    parser.add_argument("--part", choices=list(PARTS), help=argparse.SUPPRESS)
    return parser.parse_args()


def _one(part: str, setting: Setting, file: Path) -> int:
    """Measure one part in this process and write its figures to `file`."""
    file.write_text(json.dumps(PARTS[part](setting)), encoding="utf-8")
    return 0


def _all(given: argparse.Namespace, setting: Setting) -> int:
    begin = time.monotonic()
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / "gpu.json"
    found: dict[str, Any] = {"machine": {**machine(), **_gpu(setting)}, "commit": commit(), "parts": {}}
    with tempfile.TemporaryDirectory() as folder:  # with the unpacked model, which all parts read
        for part in given.parts:
            left = 60 * given.minutes - (time.monotonic() - begin)
            print(f"{part} ({left:.0f} s are left) …", flush=True)
            found["parts"][part] = _in_a_process(part, setting, Path(folder), left)
            found["reached"] = {} if setting.tiny else reached(found["parts"])
            _save(path, found)
    failed = [part for part, one in found["parts"].items() if "error" in one]
    print(json.dumps(found["reached"], indent=1))
    print(f"{path}: {len(given.parts) - len(failed)} parts measured" + _named(failed), flush=True)
    return 1 if failed else 0


def _named(failed: list[str]) -> str:
    return f", {len(failed)} not: {', '.join(failed)}" if failed else ""


def _in_a_process(part: str, setting: Setting, folder: Path, left: float) -> dict[str, Any]:
    """The figures of a part, or its error; the seconds it took in either case."""
    limit = left if setting.tiny else min(LIMITS.get(part, _LIMIT), left)
    if limit < _LEAST:
        return {"error": "no time was left", "wall_s": 0.0}
    file = folder / f"{part}.json"
    begin = time.monotonic()
    process = subprocess.Popen(
        [*_command(setting), "--part", part, "--out", str(file)],
        cwd=ROOT,
        env=_environment(setting, folder),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    error = _wait(process, limit)
    took = {"wall_s": round(time.monotonic() - begin, 1)}
    if error:
        print(f"  failed: {error}", flush=True)
        return {"error": error, **took}
    return {**json.loads(file.read_text(encoding="utf-8")), **took}


def _wait(process: subprocess.Popen[str], limit: float) -> str:
    """What went wrong, as text; "" where nothing did. A process past its limit is ended, and what it started."""
    try:
        _, complaint = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        _, complaint = process.communicate()
        return f"stopped after {limit:.0f} s. {complaint[-3000:]}"
    return complaint[-8000:] or f"ended with {process.returncode}" if process.returncode else ""


def _command(setting: Setting) -> list[str]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.speed.gpu",
        "--device",
        setting.device,
        "--smollm2",
        setting.smollm2,
    ]
    command += ["--texts", str(setting.texts), "--repeats", str(setting.repeats)]
    return [*command, "--tiny"] if setting.tiny else command


def _environment(setting: Setting, folder: Path) -> dict[str, str]:
    threads = {"OMP_NUM_THREADS": "1"} if setting.tiny else {}  # a small model gains nothing from a second
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        **threads,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PRETRACE_CACHE": str(folder / "cache"),
        "PRETRACE_GPU_TESTS": setting.device,
        "HF_HUB_OFFLINE": "1",
        "PYTHONUNBUFFERED": "1",
    }


def _gpu(setting: Setting) -> dict[str, Any]:
    import transformers

    found = {"torch": torch.__version__, "transformers": transformers.__version__}
    if setting.device == "cpu":
        return {**found, "gpu": None}
    properties = torch.cuda.get_device_properties(0)
    return {**found, "gpu": properties.name, "gpu_gb": round(properties.total_memory / 2**30, 1)}


def reached(parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """For each part with timings: whether it reached each of the three goals."""
    found = {}
    for name, part in parts.items():
        if "naive_over_ours" not in part:
            continue
        found[name] = {
            "naive_over_ours": [part["naive_over_ours"], part["naive_over_ours"] >= NAIVE_OVER_OURS],
            "over_bare": [part["over_bare"], part["over_bare"] <= OVER_BARE],
            "loss_apart": [
                part["difference"]["loss_largest"],
                part["difference"]["loss_largest"] <= LOSS_APART[part["dtype"]],
            ],
        }
    return found


def _save(path: Path, found: Mapping[str, Any]) -> None:
    beside = path.with_suffix(".part")
    write_results(beside, found)
    beside.replace(path)


if __name__ == "__main__":
    sys.exit(main())
