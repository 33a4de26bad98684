"""The commands over many shards: killed and started again, by several workers, with records that cannot be read."""

import json

import pyarrow.dataset as ds
import pytest
from made import written
from processes import killed_half_way

from pretrace.runs import load_verdict, scan

SMALL = {"pretrace.scoring.evidence.CHUNK": 16, "pretrace.scoring.parts.SHARD": 32}
"""Shards of 32 texts and batches planned over 16."""


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Without a cache, with few resamples and permutations."""
    monkeypatch.setenv("PRETRACE_CACHE", "off")
    for name, number in SMALL.items():
        monkeypatch.setattr(name, number)
    monkeypatch.setattr("pretrace.verdicts.flag.concluding.RESAMPLES", 200)
    monkeypatch.setattr("pretrace.statistics.conformal.LARGE", 0)


def score(texts, model, out, *more):
    tail = ("--model", model, "--scores", "loss,min_k", "--reading=skip_unreadable=true", "--out", out)
    return ("score", texts, *tail, *more)


def rows(out):
    files = sorted(str(path) for path in (out / "scores").iterdir())
    return ds.dataset(files, format="parquet").to_table().to_pylist()


def test_killed_and_started_again_and_by_two_workers(command, call, lines, model_folder, tmp_path):
    texts, parts = lines(320, broken=True), tmp_path / ".RUN.parts"  # 10 shards
    asked = score(texts, model_folder, tmp_path / "RUN")
    kept = killed_half_way(command(*asked, changes=SMALL), parts, 10)
    assert not (tmp_path / "RUN").exists()

    assert call(*asked, "--shard", "1/2")[0] == 0
    assert call(*asked, "--shard", "2/2")[0] == 0
    assert {name: (parts / name).stat().st_mtime_ns for name in kept} == kept
    assert call("runs", "merge", tmp_path / "RUN")[0] == 0
    assert not parts.exists()

    assert call(*score(texts, model_folder, tmp_path / "STRAIGHT"))[0] == 0
    assert rows(tmp_path / "RUN") == rows(tmp_path / "STRAIGHT")
    assert len(rows(tmp_path / "RUN")) == 320
    [unread] = (tmp_path / "RUN" / "unreadable.jsonl").read_text(encoding="utf-8").splitlines()
    assert (json.loads(unread)["row"], json.loads(unread)["line"]) == (100, 101)
    report = " ".join((tmp_path / "RUN" / "report.html").read_text(encoding="utf-8").split())
    assert "1 record of the source could not be read and is left out" in report


def unlike(number):
    """Words that no other text has: near copies would count once."""
    return " ".join(f"{(number * 7919 + k * 104729) % 999983:x}" for k in range(16))


@pytest.fixture
def sets(tmp_path, sentences):
    """400 texts in question and 60 known non-members, 15 shards together, and one record that cannot be read."""
    texts = (f"{sentences[i % 6]} {unlike(i)}" for i in range(400))
    rows = [json.dumps({"id": f"t{i}", "text": t, "group": f"g{i // 2}"}) for i, t in enumerate(texts)]
    rows[100:100] = ["{not json"]
    mine = tmp_path / "mine.jsonl"
    mine.write_text("\n".join(rows) + "\n", encoding="utf-8")
    others = [f"{sentences[i % 6]} {unlike(1000 + i)}" for i in range(60)]
    return mine, written(tmp_path / "known.jsonl", others)


def test_two_workers_and_a_merge_give_what_one_piece_gives(sets, model_folder, tmp_path, monkeypatch, call):
    def ask(name, *more):
        tail = ("--score", "loss", "--reading=skip_unreadable=true", "--out", tmp_path / name, *more)
        return call("flag", sets[0], "--controls", sets[1], "--model", model_folder, *tail)[0]

    assert ask("FLAGS", "--shard", "1/2") == 0
    code, _, said = call("runs", "merge", tmp_path / "FLAGS")
    assert (code, "shards have no part in" in said) == (2, True)
    assert ask("FLAGS", "--shard", "2/2") == 0
    code = call("runs", "merge", tmp_path / "FLAGS")[0]
    assert not (tmp_path / ".FLAGS.parts").exists()
    monkeypatch.setattr("pretrace.scoring.parts.SHARD", 10_000)
    assert ask("WHOLE") == code
    one, many = load_verdict(tmp_path / "WHOLE"), load_verdict(tmp_path / "FLAGS")
    assert (one.statement, one.checks, one.p) == (many.statement, many.checks, many.p)
    assert {**one.settings, "command": 0, "time": 0} == {**many.settings, "command": 0, "time": 0}
    table, whole = scan(tmp_path / "FLAGS").to_table().to_pydict(), one.table("flags")
    assert (table["id"], table["score"]) == ([*whole["id"]], whole["score"].tolist())
    for file in ("known.csv", "unreadable.jsonl"):
        assert (tmp_path / "WHOLE" / file).read_bytes() == (tmp_path / "FLAGS" / file).read_bytes()
