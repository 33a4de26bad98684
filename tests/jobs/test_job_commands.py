"""The commands over many shards: killed and started again, by several workers, with records that cannot be read."""

import json

import pyarrow.dataset as ds
from processes import killed_half_way

SMALL = {"pretrace.scoring.evidence.CHUNK": 16, "pretrace.scoring.parts.SHARD": 32}


def score(texts, model, out, *more):
    tail = ("--model", model, "--scores", "loss,min_k", "--no-cache", "--skip-unreadable", "--out", out)
    return ("score", texts, *tail, *more)


def rows(out):
    files = sorted(str(path) for path in (out / "scores").iterdir())
    return ds.dataset(files, format="parquet").to_table().to_pylist()


def test_killed_and_started_again_and_by_two_workers(command, lines, model_folder, tmp_path):
    texts = lines(640, broken=True)  # 20 shards

    def done(*arguments):
        process = command(*arguments, changes=SMALL)
        return process.wait(), process.said.read_text(encoding="utf-8")

    parts = tmp_path / ".RUN.parts"
    started = command(*score(texts, model_folder, tmp_path / "RUN"), changes=SMALL)
    kept = killed_half_way(started, parts, 20)
    assert not (tmp_path / "RUN").exists()

    assert done(*score(texts, model_folder, tmp_path / "RUN", "--shard", "1/2"))[0] == 0
    code, said = done("runs", "merge", tmp_path / "RUN")
    assert code == 2
    assert "shards have no part in" in said
    assert said.count("\n") == 1
    assert done(*score(texts, model_folder, tmp_path / "RUN", "--shard", "2/2"))[0] == 0
    assert {name: (parts / name).stat().st_mtime_ns for name in kept} == kept
    assert done("runs", "merge", tmp_path / "RUN")[0] == 0
    assert not parts.exists()

    assert done(*score(texts, model_folder, tmp_path / "STRAIGHT"))[0] == 0
    assert rows(tmp_path / "RUN") == rows(tmp_path / "STRAIGHT")
    assert len(rows(tmp_path / "RUN")) == 640
    [unread] = (tmp_path / "RUN" / "unreadable.jsonl").read_text(encoding="utf-8").splitlines()
    assert (json.loads(unread)["row"], json.loads(unread)["line"]) == (100, 101)
    report = " ".join((tmp_path / "RUN" / "report.html").read_text(encoding="utf-8").split())
    assert "1 record of the source could not be read and is left out" in report
