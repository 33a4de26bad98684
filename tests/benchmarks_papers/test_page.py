"""docs/results.md is what the results on file say, and every figure on it comes from a file that it names."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.papers import page, page_audits, page_tables
from benchmarks.papers.__main__ import FOLDER


def test_the_page_is_what_is_on_file(tmp_path: Path) -> None:
    made = tmp_path / "results.md", tmp_path / "papers.md"
    page.write_page(FOLDER, *made)
    for written, kept in zip(made, (page.PAGE, page.PAPERS), strict=True):
        assert written.read_text(encoding="utf-8") == kept.read_text(encoding="utf-8"), (
            "run python -m benchmarks.papers --page"
        )


def test_every_file_it_names_is_there() -> None:
    for one in (page.PAGE, page.PAPERS):
        named = re.findall(r"\]\(([^)#]+)", one.read_text(encoding="utf-8"))
        assert len(named) > 10
        assert [name for name in named if not (one.parent / name).exists()] == []


def row(
    score: str, auc: float, *, corpus: str = "arxivtection", published: float | None = 0.6
) -> dict[str, Any]:
    ours = [auc, auc - 0.05, auc + 0.05]
    difference = None if published is None else round(auc - published, 4)
    place = {"corpus": corpus, "score": score, "setting": "", "model": "Big-7B", "metric": "auc"}
    return {**place, "published": published, "ours": ours, "difference": difference}


def found(*rows: dict[str, Any], blind: float = 0.9, **settings: Any) -> dict[str, Any]:
    measured = [{"corpus": "arxivtection", "setting": "", "score": "bag of words", "kind": "blind"}]
    measured[0]["auc"] = [blind, blind - 0.1, blind + 0.1]  # type: ignore[assignment]
    given = {"on": None, "limit": None, "instead": {}, "files": {}, "split": "documents", "dtype": "float32"}
    return {
        "settings": {"table": "fsd.table1", "model": "m", **given, **settings},
        "compared": list(rows),
        "rows": measured,
        "runs": [],
        "commit": "abc",
        "what": "x",
    }


def test_ours_the_paper_s_and_the_blind_baseline_stand_side_by_side() -> None:
    text = page_tables.table(found(row("loss", 0.7), row("zlib", 0.5, published=None)))
    assert "| `loss` |  | 0.70 (0.65 to 0.75) | 0.60 | +0.100 |" in text
    assert "| `zlib` |  | 0.50 (0.45 to 0.55) | drawn only |  |" in text
    assert "*bag of words, blind*" in text
    assert "0.90 (0.80 to 1.00)" in text


def test_several_models_of_the_paper_are_a_range() -> None:
    text = page_tables.table(found(row("loss", 0.7), {**row("loss", 0.7, published=0.8), "model": "Other"}))
    assert "0.60 to 0.80 | -0.100 to +0.100" in text


@pytest.mark.parametrize(("blind", "said"), [(0.9, True), (0.6, False)])
def test_the_blind_baseline_decides_the_words(blind: float, said: bool) -> None:
    means = [
        {"score": "loss", "kind": "score", "auc": [0.7, 0.7, 0.7]},
        {"score": "bag of words", "kind": "blind", "auc": [blind, blind, blind]},
    ]
    words = page_tables.against_blind({"means": means})
    assert ("no" in words and "evidence" in words) is said
    assert "`loss`, has 0.70" in words


def test_error_rates_are_counted_over_domains() -> None:
    same = {"procedure": "paper", "design": "paper", "placebo": "none", "epochs": 1, "stream": False}
    rows = [
        {**same, "domain": domain, "kind": kind, "rejections": k, "audits": 10}
        for domain, kind, k in (("a", "null", 1), ("b", "null", 0), ("a", "member", 9), ("b", "member", 10))
    ]
    kept_apart = {**same, "domain": "dm_mathematics", "kind": "null", "rejections": 10, "audits": 10}
    text = page_audits.audits({"rows": [*rows, kept_apart]})
    assert "1 of 20 (0.00 to 0.25)" in text
    assert "19 of 20" in text


def test_a_table_in_progress_is_left_out(tmp_path: Path) -> None:
    begun = {name: value for name, value in found(row("loss", 0.7)).items() if name != "compared"}
    (tmp_path / "fsd.table1--m.json").write_text(json.dumps(begun), encoding="utf-8")
    whole, papers = tmp_path / "page.md", tmp_path / "papers.md"
    page.write_page(tmp_path, whole, papers)
    assert "## fsd.table1" not in papers.read_text(encoding="utf-8")
    (tmp_path / "fsd.table1--m.json").write_text(json.dumps(found(row("loss", 0.7))), encoding="utf-8")
    page.write_page(tmp_path, whole, papers)
    text = papers.read_text(encoding="utf-8")
    assert "## fsd.table1" in text
    assert "0.70 (0.65 to 0.75)" in text
    assert "| `loss` | AUC 0.70 (0.65 to 0.75) | 0.60 | 0.90 |" in whole.read_text(encoding="utf-8")
