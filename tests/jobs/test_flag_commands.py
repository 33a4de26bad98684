"""flag over many shards as a user calls it: by two workers, and merged; the kill is in test_job_commands."""

import csv
import json

import pytest
from made import written

from pretrace.runs import load_verdict, scan
from pretrace.scoring import evidence


def unlike(number):
    """Words that no other text has: near copies would count once."""
    return " ".join(f"{(number * 7919 + k * 104729) % 999983:x}" for k in range(16))


@pytest.fixture
def sets(tmp_path, sentences):
    """400 texts in question and 60 known non-members, 15 shards together, and one record that cannot be read."""
    rows = [
        json.dumps({"id": f"t{i}", "text": f"{sentences[i % 6]} {unlike(i)}", "group": f"g{i // 2}"})
        for i in range(400)
    ]
    rows[100:100] = ["{not json"]
    mine = tmp_path / "mine.jsonl"
    mine.write_text("\n".join(rows) + "\n", encoding="utf-8")
    others = [f"{sentences[i % 6]} {unlike(1000 + i)}" for i in range(60)]
    return mine, written(tmp_path / "known.jsonl", others)


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Here too shards of 32 texts and batches planned over 16; few resamples and permutations."""
    monkeypatch.setattr(evidence, "CHUNK", 16)
    monkeypatch.setattr("pretrace.scoring.parts.SHARD", 32)
    monkeypatch.setattr("pretrace.verdicts.flag.concluding.RESAMPLES", 200)
    monkeypatch.setattr("pretrace.statistics.shift.LARGE", 0)


def flag(sets, model, out, *more):
    tail = ["--model", model, "--score", "loss", "--no-cache", "--skip-unreadable", "--out", out, *more]
    return ["flag", sets[0], "--controls", sets[1], *tail]


def test_two_workers_and_a_merge_give_what_one_piece_gives(sets, model_folder, tmp_path, monkeypatch, call):
    def ask(*arguments):
        return call(*arguments)[0]

    assert ask(*flag(sets, model_folder, tmp_path / "FLAGS", "--shard", "1/2")) == 0
    code, _, said = call("runs", "merge", tmp_path / "FLAGS")
    assert (code, "shards have no part in" in said) == (2, True)
    assert ask(*flag(sets, model_folder, tmp_path / "FLAGS", "--shard", "2/2")) == 0
    code = ask("runs", "merge", tmp_path / "FLAGS")
    assert not (tmp_path / ".FLAGS.parts").exists()
    monkeypatch.setattr("pretrace.scoring.parts.SHARD", 10_000)
    assert ask(*flag(sets, model_folder, tmp_path / "WHOLE")) == code
    one, many = load_verdict(tmp_path / "WHOLE"), load_verdict(tmp_path / "FLAGS")
    assert (one.statement, one.checks, one.p) == (many.statement, many.checks, many.p)
    assert {**one.settings, "command": 0, "time": 0} == {**many.settings, "command": 0, "time": 0}
    with (tmp_path / "WHOLE" / "flags.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    table = scan(tmp_path / "FLAGS").to_table().to_pylist()
    assert [(row["id"], float(row["score"])) for row in rows] == [(row["id"], row["score"]) for row in table]
    known = [(tmp_path / name / "known.csv").read_bytes() for name in ("WHOLE", "FLAGS")]
    assert known[0] == known[1]
    for name in ("WHOLE", "FLAGS"):
        assert json.loads((tmp_path / name / "unreadable.jsonl").read_text(encoding="utf-8"))["row"] == 100
