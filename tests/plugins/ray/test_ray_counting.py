"""`count` and `scan` on a real Ray give the results of this process."""

import numpy as np
from made import drawn, written

from pretrace.frequencies import Frequencies, counting
from pretrace.runs import load_verdict


def test_counted_on_ray(ray, model_folder, lines, tmp_path, monkeypatch, call):
    monkeypatch.setattr(counting, "CHARACTERS", 5000)
    how, tables = ("count", lines(2000), "--model", model_folder, "--out"), []
    for name, more in (("HERE", []), ("RAY", ["--engine", "ray", "--workers", "2"])):
        assert call(*how, tmp_path / f"{name}.npz", *more)[0] == 0
        tables.append(Frequencies.load(tmp_path / f"{name}.npz"))
    here, there = tables
    assert np.array_equal(here.counts, there.counts)
    assert (here.texts, here.source, here.method) == (there.texts, there.source, there.method)


def test_scanned_on_ray(ray, sentences, tmp_path, call):
    # without controls, a text is found by 300 letters that stand in no other document
    mine = drawn(12, 160)
    written(tmp_path / "texts.jsonl", mine)
    for k in range(4):
        held = [
            *(row["text"] for row in mine[k : k + 3]),
            *(f"{i} {sentences[i % 6]} {i}" for i in range(50)),
        ]
        rows = [{"id": f"{k}-{i}", "text": text} for i, text in enumerate(held)]
        written(tmp_path / "corpus" / f"c{k}.jsonl", rows)
    (tmp_path / "corpus" / "c4.jsonl.gz").write_bytes(b"no gzip")
    how = ("scan", tmp_path / "texts.jsonl", "--corpus", tmp_path / "corpus", "--out")
    for name, more in (("HERE", []), ("RAY", ["--engine", "ray", "--workers", "2"])):
        code, _, said = call(*how, tmp_path / name, *more)
        assert code == 3, said
    here, there = load_verdict(tmp_path / "HERE"), load_verdict(tmp_path / "RAY")
    assert (here.statement, here.reasons, here.figures) == (there.statement, there.reasons, there.figures)
    for name in ("texts", "hits", "marked"):
        file = f"{name}.csv"
        assert (tmp_path / "HERE" / file).read_bytes() == (tmp_path / "RAY" / file).read_bytes()


def test_two_ways_to_divide_the_work_are_refused(tmp_path, call):
    how = ("scan", "texts.jsonl", "--corpus", tmp_path, "--out", tmp_path / "X")
    for more, words in (
        (["--engine", "ray", "--shard", "1/2"], "--shard divides the files by hand"),
        (["--address", "auto"], "--address has no use without --engine ray"),
    ):
        code, _, said = call(*how, *more)
        assert (code, words in said) == (2, True)
