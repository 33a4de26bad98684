"""Killed at any moment, started again: the same table, to the last bit, and little read twice."""

import os
import signal
import sqlite3
import time

import pyarrow.parquet as pq
from made import written

TEXTS = 240


def score(texts, model, out):
    tail = ["--model", model, "--scores", "loss,lowercase,min_k_plus_plus", "--model-args=token_budget=64"]
    return ["score", texts, *tail, "--out", out]


def rows(cache):
    total = 0
    for path in cache.glob("traces/*.sqlite"):
        try:
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5) as connection:
                total += connection.execute("SELECT count(*) FROM entries").fetchone()[0]
        except sqlite3.Error:
            continue
    return total


def texts_of(folder, sentences):
    texts = [f"{sentences[i % 6]} {i} {sentences[i % 5]}" for i in range(TEXTS)]
    return written(folder / "texts.jsonl", texts)


def begun(started, cache):
    """The process, once it has traces on disk."""
    deadline = time.monotonic() + 120
    while rows(cache) < 40 and time.monotonic() < deadline and started.poll() is None:
        time.sleep(0.01)
    return started


def test_kill_and_resume(command, call, tmp_path, model_folder, sentences, monkeypatch):
    texts = texts_of(tmp_path, sentences)
    monkeypatch.setenv("PRETRACE_CACHE", str(tmp_path / "cache"))
    started = begun(command(*score(texts, model_folder, tmp_path / "killed")), tmp_path / "cache")
    os.kill(started.pid, signal.SIGKILL)
    assert started.wait() == -signal.SIGKILL
    kept = rows(tmp_path / "cache")
    assert 40 <= kept < 2 * TEXTS
    assert not (tmp_path / "killed").exists()

    assert call(*score(texts, model_folder, tmp_path / "resumed"))[0] == 0
    monkeypatch.setenv("PRETRACE_CACHE", str(tmp_path / "other"))
    assert call(*score(texts, model_folder, tmp_path / "straight"))[0] == 0
    resumed = pq.read_table(tmp_path / "resumed" / "scores.parquet")
    straight = pq.read_table(tmp_path / "straight" / "scores.parquet")
    assert resumed.num_rows == TEXTS
    assert resumed.equals(straight)
    assert not list(tmp_path.glob(".*partial*"))
