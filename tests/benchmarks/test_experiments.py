"""The experiments, on tiny models and made-up texts: they run, go on after a kill, and say what they measured."""

from __future__ import annotations

import gzip
import json
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tiny import SENTENCES

from benchmarks import read_results
from benchmarks.experiments import Ledger, thinned
from benchmarks.papers import planted_domains
from pretrace.types import Corpus, Text

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
    found: Called = read_results(out)
    return found


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


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
    with pytest.raises(planted_domains.TextsError, match="other settings"):
        call(monkeypatch, planted_domains, tmp_path / "b.json", [*size, "--epochs", 2])


def test_a_file_of_other_settings_is_left_alone(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "some.json", {"texts": 10})
    ledger.add({"seed": 0}, [{"auc": [0.5, 0.4, 0.6]}], {})
    with pytest.raises(SystemExit, match="texts 10 there and 11 here"):
        Ledger(tmp_path / "some.json", {"texts": 11})
    assert list(Ledger(tmp_path / "some.json", {"texts": 10}).todo([{"seed": 0}, {"seed": 1}])) == [
        {"seed": 1}
    ]
    assert not Ledger(tmp_path / "some.json", {"texts": 11}, fresh=True).content["rows"]


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
