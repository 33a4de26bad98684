"""`evaluate` and `scan` on a real Ray: the tables of one process, though the command is killed."""

import os
import signal
import sys
import time
from contextlib import suppress

import psutil
import pytest
from made import drawn, written
from processes import counted

from pretrace.runs import load_run, load_verdict, scan
from pretrace.scoring import evidence

SHARDS = 8
PER_SHARD = 20


@pytest.fixture
def texts(lines):
    """160 texts, 80 documents."""
    return lines(SHARDS * PER_SHARD)


def rows(out, names):
    return scan(out).to_table(columns=names).to_pydict()


def test_nothing_is_lost_though_the_command_is_killed(  # noqa: PLR0913
    ray, texts, model_folder, tmp_path, monkeypatch, command, call
):
    parts, names = tmp_path / ".RAY.parts", ["id", "label", "group", "n_tokens", "loss", "min_k"]
    monkeypatch.chdir(model_folder.parent)  # workers find the model by its relative name too
    monkeypatch.setenv("PRETRACE_CACHE", "off")
    asked = ["evaluate", texts, "--model", model_folder.name, "--measuring", "resamples=100"]
    asked += ["--scores", "loss,min_k"]
    spread = [*asked, "--ray", "workers=1", "--out", tmp_path / "RAY"]

    killed = command(*spread, changes={"pretrace.plugins.ray.scoring.SMALL": SHARDS})
    wait(lambda: len(counted(parts)) >= 2 or killed.poll() is not None)
    below = {one: " ".join(one.cmdline()) for one in psutil.Process(killed.pid).children(recursive=True)}
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    kept = {name: (parts / name).stat().st_mtime_ns for name in counted(parts)}
    assert 2 <= len(kept) < SHARDS
    assert not (tmp_path / "RAY").exists()
    [worker] = [one for one, name in below.items() if name.startswith("ray::Actor")]
    assert wait(lambda: not worker.is_running()), "a worker outlives the command"
    for left in below:  # Ray's own agents take a minute or two to notice
        with suppress(psutil.NoSuchProcess):
            left.kill()

    monkeypatch.setattr("pretrace.plugins.ray.scoring.SMALL", SHARDS)
    assert call(*spread)[0] == 0
    files = [path.stat().st_mtime_ns for path in (tmp_path / "RAY" / "scores").iterdir()]
    assert len(files) == SHARDS
    assert set(kept.values()) <= set(files), "parts that were there are not made again"
    assert not parts.exists()

    monkeypatch.setattr(evidence, "CHUNK", PER_SHARD)  # batches as in shards of 20
    assert call(*asked, "--out", tmp_path / "HERE")[0] == 0
    assert rows(tmp_path / "RAY", names) == rows(tmp_path / "HERE", names)
    there, here = load_run(tmp_path / "RAY").evaluation, load_run(tmp_path / "HERE").evaluation
    assert there.rows == here.rows


def wait(until, seconds=400):
    """Whether it came true in time."""
    deadline = time.monotonic() + seconds
    while not (done := until()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return done


def test_scanned_on_ray(ray, sentences, tmp_path, call):
    # without controls, a text is found by 300 letters that stand in no other document
    mine = drawn(12, 160)
    written(tmp_path / "texts.jsonl", mine)
    for k in range(4):
        held = [row["text"] for row in mine[k : k + 3]] + [f"{i} {sentences[i % 6]} {i}" for i in range(50)]
        rows = [{"id": f"{k}-{i}", "text": text} for i, text in enumerate(held)]
        written(tmp_path / "corpus" / f"c{k}.jsonl", rows)
    (tmp_path / "corpus" / "c4.jsonl.gz").write_bytes(b"no gzip")
    how = ("scan", tmp_path / "texts.jsonl", "--corpus", tmp_path / "corpus", "--out")
    for name, more in (("HERE", []), ("RAY", ["--ray=workers=1"])):
        code, _, said = call(*how, tmp_path / name, *more)
        assert code == 3, said
    here, there = load_verdict(tmp_path / "HERE"), load_verdict(tmp_path / "RAY")
    assert (here.statement, here.reasons, here.figures) == (there.statement, there.reasons, there.figures)
    for name in ("texts", "hits", "marked"):
        file = f"{name}.csv"
        assert (tmp_path / "HERE" / file).read_bytes() == (tmp_path / "RAY" / file).read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("score --shard 1/2", "give one of the two"),
        ("score --ray=address=127.0.0.1:1", "no Ray cluster at --ray address=127.0.0.1:1"),
        ("scan --shard 1/2", "give one of the two"),
        ("scan --workers 2", "--workers counts threads here"),
    ],
)
def test_what_does_not_go_with_ray(words, said, texts, tmp_path, monkeypatch, call):
    package = pytest.importorskip("ray")
    monkeypatch.setattr(package, "is_initialized", lambda: False)
    name, *more = words.split()
    of = ["--model", tmp_path] if name == "score" else ["--corpus", texts]
    code, _, told = call(name, texts, *of, "--ray=workers=1", "--out", tmp_path / "RUN", *more)
    assert (code, said in told) == (2, True)
    assert told.count("\n") == 1
    assert not (tmp_path / "RUN").exists()


def test_without_the_package(texts, tmp_path, monkeypatch, call):
    monkeypatch.setitem(sys.modules, "ray", None)
    code, _, said = call("score", texts, "--model", "x", "--ray=address=local", "--out", tmp_path / "RUN")
    assert code == 2
    assert "needs the package ray, which is not installed: pip install 'pretrace[ray]'" in said
