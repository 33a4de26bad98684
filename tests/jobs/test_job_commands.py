"""The commands over many shards: killed and started again, by several workers, with records that cannot be read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.dataset as ds
import pytest

SMALL = """
from pretrace.scoring import evidence
evidence.CHUNK = 16
from pretrace.jobs import shards
shards.SHARD = 32
from pretrace.cli import main
main()
"""


@pytest.fixture
def texts(tmp_path: Path, sentences: list[str]) -> Path:
    """640 texts in 20 shards, and one record that cannot be read."""
    lines = [
        json.dumps({"id": f"t{i}", "text": f"{sentences[i % 6]} {i}", "label": i % 2, "group": f"g{i // 2}"})
        for i in range(640)
    ]
    path = tmp_path / "texts.jsonl"
    path.write_text("\n".join([*lines[:100], "{not json", *lines[100:]]) + "\n", encoding="utf-8")
    return path


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-c", SMALL, *map(str, arguments)]


def score(texts: Path, model: Path, out: Path, *more: str) -> list[str]:
    tail = [
        "--model",
        model,
        "--scores",
        "loss,min_k",
        "--no-cache",
        "--skip-unreadable",
        "--out",
        out,
        *more,
    ]
    return command("score", texts, *tail)


def counted(parts: Path) -> list[str]:
    """The files of the parts that have a manifest."""
    manifests = [path for path in parts.glob("[!.]*.json") if not path.name.startswith("job-")]
    return [json.loads(path.read_bytes())["file"] for path in manifests]


def rows(out: Path) -> list[dict[str, object]]:
    files = sorted(str(path) for path in (out / "scores").iterdir())
    return ds.dataset(files, format="parquet").to_table().to_pylist()


def test_killed_and_started_again_and_by_two_workers(texts: Path, model_folder: Path, tmp_path: Path) -> None:
    parts = tmp_path / ".RUN.parts"
    started = subprocess.Popen(score(texts, model_folder, tmp_path / "RUN"))
    deadline = time.monotonic() + 200
    while len(counted(parts)) < 2 and time.monotonic() < deadline and started.poll() is None:
        time.sleep(0.005)
    os.kill(started.pid, signal.SIGKILL)
    started.wait()
    kept = {name: (parts / name).stat().st_mtime_ns for name in counted(parts)}
    assert 2 <= len(kept) < 20
    assert not (tmp_path / "RUN").exists()

    subprocess.run(score(texts, model_folder, tmp_path / "RUN", "--shard", "1/2"), check=True)
    refused = subprocess.run(command("merge", tmp_path / "RUN"), capture_output=True, text=True)
    assert refused.returncode == 2
    assert "shards have no part in" in refused.stderr
    assert refused.stderr.count("\n") == 1
    subprocess.run(score(texts, model_folder, tmp_path / "RUN", "--shard", "2/2"), check=True)
    assert {name: (parts / name).stat().st_mtime_ns for name in kept} == kept
    subprocess.run(command("merge", tmp_path / "RUN"), check=True)
    assert not parts.exists()

    subprocess.run(score(texts, model_folder, tmp_path / "STRAIGHT"), check=True)
    assert rows(tmp_path / "RUN") == rows(tmp_path / "STRAIGHT")
    assert len(rows(tmp_path / "RUN")) == 640
    [unread] = (tmp_path / "RUN" / "unreadable.jsonl").read_text(encoding="utf-8").splitlines()
    assert (json.loads(unread)["row"], json.loads(unread)["line"]) == (100, 101)
    report = " ".join((tmp_path / "RUN" / "report.html").read_text(encoding="utf-8").split())
    assert "1 record of the source could not be read and is left out" in report


def test_shards_and_what_needs_all_texts_do_not_go_together(texts: Path, tmp_path: Path) -> None:
    tail = ["--model", "none", "--scores", "loss", "--windows", "--shard", "1/2", "--out", tmp_path / "RUN"]
    refused = subprocess.run(command("score", texts, *tail), capture_output=True, text=True)
    assert refused.returncode == 2
    assert "--shard does not go with --windows" in refused.stderr
    nothing = subprocess.run(command("merge", tmp_path / "RUN"), capture_output=True, text=True)
    assert nothing.returncode == 2
    assert "holds no parts of a run" in nothing.stderr
