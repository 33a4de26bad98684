"""The experiments, on tiny models and made-up texts: they run, go on after a kill, and say what they measured."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tiny import SENTENCES

from benchmarks.experiments import Ledger, means, thinned
from benchmarks.papers import arxiv_mia, arxivtection, planted_domains
from benchmarks.papers import rows as published
from benchmarks.papers.data import Given, opened
from benchmarks.papers.planted_table import survives
from benchmarks.speed import fitted_cost
from pretrace.types import Corpus, Text

PNG = b"\x89PNG"
Called = dict[str, Any]


def made_up(number: int, *, seed: int = 0, words: int = 16) -> list[str]:
    """So many texts of shuffled words, no two alike."""
    generator = random.Random(seed)
    pool = " ".join(SENTENCES).split()
    return [f"{' '.join(generator.sample(pool, words))} {i}." for i in range(number)]


def call(monkeypatch: pytest.MonkeyPatch, module: ModuleType, out: Path, options: list[object]) -> Called:
    """What the module's `main` leaves on file."""
    given = [module.__name__, "--out", out, "--dtype", "float32", *options]
    monkeypatch.setattr(sys, "argv", [str(one) for one in given])
    module.main()
    found: Called = json.loads(out.read_text(encoding="utf-8"))
    return found


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


@pytest.fixture
def passages(tmp_path: Path) -> Path:
    """A small arXivTection: ten articles of four passages, a mark at the start of the file."""
    texts = made_up(40)
    with gzip.open(tmp_path / "arxivtection.csv.gz", "wb") as file:
        lines = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        writer = csv.writer(lines)
        writer.writerow([*(f"Example_{letter}" for letter in "ABCD"), "Answer", "ID", "Label"])
        for i, text in enumerate(texts):
            cells = ["wrong", "wrong", "wrong", "wrong"]
            cells[i % 4] = text
            writer.writerow([*cells, "ABCD"[i % 4], f"article {i // 4}", i // 4 % 2])
        lines.flush()
    return tmp_path / "arxivtection.csv.gz"


def test_passages_are_read_as_their_authors_wrote_them(passages: Path) -> None:
    corpus = opened("arxivtection", Given(data={"arxivtection": passages}))
    assert [text.text for text in corpus.texts] == made_up(40)
    assert {text.group for text in corpus.texts if text.member} == {f"article {i}" for i in range(1, 10, 2)}


@pytest.mark.parametrize("seed", [0, 1])
def test_only_the_paper_s_split_has_articles_on_both_sides(passages: Path, seed: int) -> None:
    corpus = opened("arxivtection", Given(data={"arxivtection": passages}))
    for protocol in arxivtection.PROTOCOLS:
        parts = arxivtection.split(corpus, protocol, seed)
        assert parts.tuning is not None
        drawn, left = parts.tuning.texts, parts.test.texts
        assert sorted(t.id for t in (*drawn, *left)) == sorted(t.id for t in corpus.texts)
        both = {text.group for text in drawn} & {text.group for text in left}
        assert bool(both) is (protocol == "passages")
        assert all(text.group for text in left)


def test_arxivtection_goes_on_where_it_was(
    passages: Path, model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "fsd.json"
    size = ["--model", model_folder, "--data", passages, "--tokens", 24, "--seeds", 1]
    first = call(monkeypatch, arxivtection, out, [*size, "--limit", 1])
    assert [(run["seed"], run["protocol"]) for run in first["runs"]] == [(0, "passages")]
    whole = call(monkeypatch, arxivtection, out, size)
    assert whole["runs"][:1] == first["runs"]
    assert whole["rows"][: len(first["rows"])] == first["rows"]
    assert {row["protocol"] for row in whole["rows"]} == set(arxivtection.PROTOCOLS)
    assert {"fsd(min_k)", "bag of words", arxivtection.STRADDLING} <= {row["score"] for row in whole["rows"]}
    assert all(low <= value <= high for value, low, high in (row["auc"] for row in whole["rows"]))
    assert out.with_suffix(".png").read_bytes().startswith(PNG)
    monkeypatch.setattr(arxivtection, "open_model", None)  # nothing is left to be asked
    assert call(monkeypatch, arxivtection, out, size)["rows"] == whole["rows"]


def test_arxiv_mia(model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"text": text, "field": "cs", "label": i % 2} for i, text in enumerate(made_up(72))]
    data = write_jsonl(tmp_path / "mia.jsonl.gz", rows)
    size = ["--model", model_folder, "--data", data, "--tokens", 24, "--reference", 32]
    out = tmp_path / "mia.json"
    found = call(monkeypatch, arxiv_mia, out, [*size, "--seeds", 2, "--shuffles", 2])
    assert {row["score"] for row in found["rows"]} >= {*arxiv_mia.ONE_PASS, *arxiv_mia.FITTED, "bag of words"}
    for row in found["rows"]:
        assert ("shuffled" in row) is (row["score"] in arxiv_mia.FITTED)
    assert [run["reference"] for run in found["runs"]] == [{"members": 16, "nonmembers": 16}] * 2
    assert set(found["runs"][0]["fitted"]) == set(arxiv_mia.FITTED)
    assert all(mean["seeds"] == 2 for mean in found["means"])
    assert out.with_suffix(".png").read_bytes().startswith(PNG)


def test_planted_domains(reference_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, domain in enumerate(planted_domains.DOMAINS):
        texts = made_up(90, seed=place, words=30)
        write_jsonl(tmp_path / f"{domain}.jsonl.gz", [{"text": text} for text in texts])
    out, work = tmp_path / "planted.json", tmp_path / "work"
    size: list[object] = ["--model", reference_folder, "--data", tmp_path, "--work", work, "--texts", 80]
    size += ["--tokens", 20, "--domains", "hackernews", "--shuffles", 2, "--reference-share", 0.4]
    found = call(monkeypatch, planted_domains, out, [*size, "--epochs", 2, "--learning-rate", 3e-3])
    scores = {row["score"]: row for row in found["rows"] if row["kind"] == "score"}
    assert set(scores) == set(planted_domains.SCORES)
    for row in scores.values():
        assert row["placebo"]["auc"][1] <= row["placebo"]["auc"][0] <= row["placebo"]["auc"][2]
        assert row["lead"][0] == pytest.approx(row["auc"][0] - row["placebo"]["auc"][0], abs=2e-4)
    assert scores["ref"]["placebo"]["auc"][0] == 0.5
    assert scores["loss"]["blind"] == next(r["auc"] for r in found["rows"] if r["score"] == "bag of words")
    written = out.with_suffix(".md").read_text(encoding="utf-8")
    assert "| `fsd(ppl)` |" in written
    assert "hackernews, 2 epochs" in written
    assert (tmp_path / "planted_hackernews.png").read_bytes().startswith(PNG)
    with pytest.raises(planted_domains.TextsError, match="other settings"):
        call(monkeypatch, planted_domains, tmp_path / "b.json", [*size, "--epochs", 2])


def test_excerpts_are_of_equal_length(reference_folder: Path, tmp_path: Path) -> None:
    texts = [*made_up(30, words=30), *made_up(30, words=3, seed=1)]
    path = write_jsonl(tmp_path / "some.jsonl.gz", [{"text": text} for text in texts])
    from pretrace import open_model

    model = open_model(str(reference_folder))
    made = planted_domains.excerpts(path, model, texts=20, tokens=25, seed=0)
    lengths = {len(encoded.tokens) for encoded in model.encode([text.text for text in made.texts])}
    assert len(made) == 20
    assert lengths <= {24, 25, 26}
    with pytest.raises(planted_domains.TextsError, match="wanted 31"):
        planted_domains.excerpts(path, model, texts=31, tokens=25, seed=0)


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peaks of memory are Linux' own account"
)
def test_cost_of_one_model(model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # In this process: the numbers mean nothing then, but the pieces are the same.
    monkeypatch.setattr(fitted_cost, "apart", lambda name, case: fitted_cost.CASES[name](case))
    monkeypatch.setattr(fitted_cost, "some_texts", lambda number: ("made up", made_up(number)))
    monkeypatch.setattr(fitted_cost, "DTYPES", ("float32",))
    monkeypatch.setattr(fitted_cost, "MEMORY_TEXTS", (4, 8))
    out = tmp_path / "cost.json"
    size = ["--model", model_folder, "--texts", 12, "--tokens", 16, "--repeats", 1]
    found = call(monkeypatch, fitted_cost, out, size)
    parts = {(row["part"], row.get("what")) for row in found["rows"]}
    assert {("hooks", "with neurons"), ("tuning", "tuning"), ("fsd", "with FSD"), ("memory", None)} <= parts
    assert all(row["over_bare"][0] == 1 for row in found["rows"] if row.get("what") == "bare forward")
    assert out.with_suffix(".png").read_bytes().startswith(PNG)
    again = call(monkeypatch, fitted_cost, out, [*size, "--fresh", "--parts", "memory"])
    kept = [row for row in found["rows"] if row["part"] != "memory"]
    assert [row for row in again["rows"] if row["part"] != "memory"] == kept
    assert len([row for row in again["rows"] if row["part"] == "memory"]) == 2


def test_a_file_of_other_settings_is_left_alone(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "some.json", {"texts": 10})
    ledger.add({"seed": 0}, [{"auc": [0.5, 0.4, 0.6]}], {})
    with pytest.raises(SystemExit, match="texts 10 there and 11 here"):
        Ledger(tmp_path / "some.json", {"texts": 11})
    assert list(Ledger(tmp_path / "some.json", {"texts": 10}).todo([{"seed": 0}, {"seed": 1}])) == [
        {"seed": 1}
    ]
    assert not Ledger(tmp_path / "some.json", {"texts": 11}, fresh=True).content["rows"]


def test_a_line_a_row(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "some.json", {})
    ledger.add({"seed": 0}, [{"score": "a"}, {"score": "b"}], {"texts": 3})
    text = (tmp_path / "some.json").read_text(encoding="utf-8")
    assert '  {"seed": 0, "score": "b"}\n' in text
    assert json.loads(text)["rows"] == [{"seed": 0, "score": "a"}, {"seed": 0, "score": "b"}]
    assert {"machine", "commit", "settings", "threads"} <= json.loads(text).keys()


def test_thinning_takes_of_every_document_before_a_second_of_any() -> None:
    texts = tuple(
        Text(f"{g}-{i}", f"{g} {i}", g % 2 == 0, str(g)) for g in range(6) for i in range(1 + 3 * g)
    )
    some = thinned(Corpus("made up", texts), 8).texts
    assert len(some) == 8
    assert sum(bool(text.member) for text in some) == 4
    assert {text.group for text in some} == {"0", "1", "2", "3", "4", "5"}
    assert thinned(Corpus("made up", texts), 8).texts == some
    assert thinned(Corpus("made up", texts), 8, seed=1).texts != some


def test_means_over_seeds() -> None:
    rows = [
        {"seed": s, "score": "loss", "kind": "score", "auc": [v, 0, 1], "tpr": [0.1, 0, 1]}
        for s, v in enumerate((0.5, 0.6, 0.9))
    ]
    assert means(rows) == [
        {"score": "loss", "kind": "score", "seeds": 3, "auc": [0.6667, 0.5, 0.9], "tpr": [0.1, 0.1, 0.1]}
    ]


def test_what_survives() -> None:
    row = {"auc": [0.7, 0.6, 0.8], "lead": [0.1, 0.02, 0.2]}
    assert survives(row)
    assert not survives({**row, "auc": [0.55, 0.49, 0.6]})
    assert not survives({**row, "lead": [0.1, -0.02, 0.2]})
    assert not survives({**row, "shuffled": {"auc": [0.5, 0.3, 0.75]}})
    assert survives({**row, "shuffled": {"auc": [0.5, 0.3, 0.65]}})


def test_published_figures() -> None:
    fsd, na_pdd = published.fsd_arxivtection(), published.na_pdd_arxiv_mia()
    assert (len(fsd), len(na_pdd)) == (2 * 5 * 4 * 2, 2 * (2 * 10 - 1))
    found = {(row["score"], row["model"]): row["auc"] for row in fsd if "auc" in row}
    assert found["fsd(ppl)", "GPT-J-6B"] == 0.96
    assert found["min_k", "LLaMA-7B"] == 0.76
    tpr = {(row["score"], row["model"]): row["tpr"] for row in na_pdd if "tpr" in row}
    assert tpr["na_pdd", "OpenLLaMA-13B"] == 0.105
    assert all(row["where"] and row["paper"] for row in (*fsd, *na_pdd))
