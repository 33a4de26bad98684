"""flag over many shards as a user calls it: by two workers, and merged; the kill is in test_job_commands."""

import csv
import json

import pyarrow.parquet as pq
import pytest

from pretrace.cli.commands import call as call_line
from pretrace.errors import OutputError
from pretrace.runs import load_verdict
from pretrace.scoring import evidence


def unlike(number):
    """Words that no other text has: near copies would count once."""
    return " ".join(f"{(number * 7919 + k * 104729) % 999983:x}" for k in range(16))


@pytest.fixture
def sets(tmp_path, sentences):
    """400 texts in question and 60 known non-members, 15 shards together, and one record that cannot be read."""
    lines = [
        json.dumps({"id": f"t{i}", "text": f"{sentences[i % 6]} {unlike(i)}", "group": f"g{i // 2}"})
        for i in range(400)
    ]
    mine, known = tmp_path / "mine.jsonl", tmp_path / "known.jsonl"
    mine.write_text("\n".join([*lines[:100], "{not json", *lines[100:]]) + "\n", encoding="utf-8")
    others = [
        json.dumps({"id": f"t{i}", "text": f"{sentences[i % 6]} {unlike(1000 + i)}", "group": f"k{i}"})
        for i in range(60)
    ]
    known.write_text("\n".join(others) + "\n", encoding="utf-8")
    return mine, known


def called(*arguments):
    """The exit code of a command that is run here."""
    return call_line([str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Here too shards of 32 texts and batches planned over 16; few resamples and permutations."""
    monkeypatch.setattr(evidence, "CHUNK", 16)
    monkeypatch.setattr("pretrace.scoring.parts.SHARD", 32)
    monkeypatch.setattr("pretrace.verdicts.flag.checks.RESAMPLES", 200)
    monkeypatch.setattr("pretrace.statistics.shift.LARGE", 0)


def flag(sets, model, out, *more):
    tail = ["--model", model, "--score", "loss", "--no-cache", "--skip-unreadable", "--out", out, *more]
    return ["flag", sets[0], "--controls", sets[1], *tail]


def test_two_workers_and_a_merge_give_what_one_piece_gives(sets, model_folder, tmp_path, monkeypatch):
    parts = tmp_path / ".FLAGS.parts"
    assert called(*flag(sets, model_folder, tmp_path / "FLAGS", "--shard", "1/2")) == 0
    with pytest.raises(OutputError, match="shards have no part in"):
        called("runs", "merge", tmp_path / "FLAGS")
    assert called(*flag(sets, model_folder, tmp_path / "FLAGS", "--shard", "2/2")) == 0
    code = called("runs", "merge", tmp_path / "FLAGS")
    assert not parts.exists()
    monkeypatch.setattr("pretrace.scoring.parts.SHARD", 10_000)
    assert called(*flag(sets, model_folder, tmp_path / "WHOLE")) == code
    _as_at_once(tmp_path)


def _as_at_once(folder):
    """FLAGS holds what a run in one piece wrote to WHOLE."""
    one, many = load_verdict(folder / "WHOLE"), load_verdict(folder / "FLAGS")
    assert (one.statement, one.checks, one.p) == (many.statement, many.checks, many.p)
    assert {**one.settings, "command": 0, "time": 0} == {**many.settings, "command": 0, "time": 0}
    with (folder / "WHOLE" / "flags.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = [pq.read_table(path) for path in sorted((folder / "FLAGS" / "flags").iterdir())]
    table = [row for part in found for row in part.to_pylist()]
    assert [row["id"] for row in rows] == [row["id"] for row in table]
    assert [float(row["score"]) for row in rows] == [row["score"] for row in table]
    assert [float(row["p"]) if row["p"] else None for row in rows] == [row["p"] for row in table]
    assert (folder / "WHOLE" / "known.csv").read_bytes() == (folder / "FLAGS" / "known.csv").read_bytes()
    for name in ("WHOLE", "FLAGS"):
        assert json.loads((folder / name / "unreadable.jsonl").read_text(encoding="utf-8"))["row"] == 100
