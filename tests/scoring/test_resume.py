"""Killed at any moment, started again: the same table, to the last bit, and little read twice."""

import os
import signal
import sqlite3
import time
from contextlib import closing, suppress

import pyarrow.parquet as pq
from made import written

TEXTS = 240


def stored(cache):
    """How many traces are on disk."""
    total = 0
    for path in cache.glob("traces/*.sqlite"):
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            total += database.execute("SELECT count(*) FROM entries").fetchone()[0]
    return total


def test_kill_and_resume(command, call, tmp_path, model_folder, sentences, monkeypatch):
    said = [f"{sentences[i % 6]} {i} {sentences[i % 5]}" for i in range(TEXTS)]
    asked = ["score", written(tmp_path / "texts.jsonl", said), "--model", model_folder]
    asked += ["--scores", "loss,lowercase,min_k_plus_plus", "--model-args=token_budget=64", "--out"]
    monkeypatch.setenv("PRETRACE_CACHE", str(tmp_path / "cache"))
    started, deadline = command(*asked, tmp_path / "killed"), time.monotonic() + 120
    while stored(tmp_path / "cache") < 40 and time.monotonic() < deadline and started.poll() is None:
        time.sleep(0.01)
    os.kill(started.pid, signal.SIGKILL)
    assert started.wait() == -signal.SIGKILL
    assert 40 <= stored(tmp_path / "cache") < 2 * TEXTS
    assert not (tmp_path / "killed").exists()

    assert call(*asked, tmp_path / "resumed")[0] == 0
    monkeypatch.setenv("PRETRACE_CACHE", str(tmp_path / "other"))
    assert call(*asked, tmp_path / "straight")[0] == 0
    resumed, straight = (
        pq.read_table(tmp_path / name / "scores.parquet") for name in ("resumed", "straight")
    )
    assert resumed.num_rows == TEXTS
    assert resumed.equals(straight)
    assert not list(tmp_path.glob(".*partial*"))
