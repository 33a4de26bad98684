"""Each command on a real tiny model, as a user would call it, and what it leaves behind."""

import csv
import io
import json
import sys

import numpy as np
import pyarrow.parquet as pq
from made import written

SCORES = "loss ppl zlib lowercase ref min_k(k=0.1) min_k_plus_plus dc_pdd dc_pdd(variant='cld')"


def write(path, sentences, number=24):
    texts = (f"{sentences[i % 6]} {i}" for i in range(number))
    rows = [{"id": f"t{i}", "text": t, "label": i % 2, "group": f"g{i // 2}"} for i, t in enumerate(texts)]
    odd = {"one": "a", "none": "", "nul": "NUL \x00 and 🙂", "long": "x y z " * 20_000}
    rows += [
        {"id": name, "text": text, "label": int(name in ("none", "nul")), "group": f"g{i}"}
        for i, (name, text) in enumerate(odd.items())
    ]
    return written(path, rows)


def test_count_then_evaluate_then_report(ask, tmp_path, sentences, model_folder, reference_folder):
    texts = write(tmp_path / "texts.jsonl", sentences)
    said, _ = ask("count", texts, "--model", model_folder, "--out", tmp_path / "counts.npz")
    assert "tokens of 28 texts" in said
    run, counts = tmp_path / "RUN", ("--counts", tmp_path / "counts.npz")
    where = ("--model", model_folder, "--reference-model", reference_folder, *counts)
    how = ("--scores", SCORES.replace(" ", ","), "--measuring=resamples=200")
    said, _ = ask("evaluate", texts, *where, *how, "--out", run)
    assert all(one in said for one in ("bag of words", "'one'", "'long'"))

    table = pq.read_table(run / "scores.parquet").to_pylist()
    with (run / "scores.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = [name for name in table[0] if name not in ("id", "label", "group", "n_tokens")]
    assert (len(table), list(rows[0])[:2], columns) == (26, ["id", "label"], SCORES.split())
    for row, written_row in zip(table, rows, strict=True):
        assert row["id"] == written_row["id"]
        assert all(np.isfinite(row[name]) for name in columns)
        assert all(float(written_row[name]) == row[name] for name in columns)
    facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert facts["settings"]["cut"]["ids"] == ["long"]
    assert set(facts["settings"]["models"]) == {"target", "reference"}
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in metrics["rows"]] == [*columns, "bag of words", "text length"]

    page = (run / "report.html").read_text(encoding="utf-8")
    (run / "report.html").unlink()
    ask("runs", "report", run)
    assert (run / "report.html").read_text(encoding="utf-8") == page


def test_standard_input_and_columns(ask, tmp_path, model_folder, monkeypatch):
    lines = "".join(json.dumps({"body": f"The cat sat on mat {i}."}) + "\n" for i in range(3)).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    how = ("--model", model_folder, "--columns=text=body", "--scores", "loss", "--out", tmp_path / "RUN")
    ask("score", "-", *how)
    assert pq.read_table(tmp_path / "RUN" / "scores.parquet").column("id").to_pylist() == ["0", "1", "2"]


def test_two_runs_at_once(command, tmp_path, sentences, model_folder):
    """The same command three times at once, into the same folder and the same cache."""
    texts = write(tmp_path / "texts.jsonl", sentences, 200)
    arguments = ["score", texts, "--model", model_folder, "--scores", "loss,min_k_plus_plus"]
    arguments += ["--model-args=token_budget=256", "--out", tmp_path / "RUN"]
    environment = {"PRETRACE_CACHE": str(tmp_path / "cache")}
    started = [command(*arguments, environment=environment) for _ in range(3)]
    for process in started:
        assert process.wait() == 0, process.said.read_text(encoding="utf-8")
    assert pq.read_table(tmp_path / "RUN" / "scores.parquet").num_rows == 202
    assert sorted(path.name for path in tmp_path.iterdir()) == ["RUN", "cache", "texts.jsonl"]
