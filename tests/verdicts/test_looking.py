"""What is seen in a file of texts: documents, options, random strings."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from pretrace.corpora import Columns
from pretrace.errors import TextsError
from pretrace.types import Situation
from pretrace.verdicts.looking import look

UUID, SHA = "123e4567-e89b-12d3-a456-426614174000", "ab" * 32


def rows(number: int = 24) -> list[dict[str, Any]]:
    """Texts with options, another version, an author, an opinion as label, and a number."""
    return [
        {
            "id": f"2015-{i}",
            "text": f"The railway number {i} reached the valley at noon and nothing was the same",
            "label": "angry",
            "group": f"g{i // 2}",
            "choices": ["yes", "no", "perhaps"],
            "early": f"A railway number {i} reached the valley at noon, nothing was the same",
            "title": f"Of an entirely different wording, {i} words and more besides",
            "author": f"author {i % 4}",
            "views": 2000 + i,
        }
        for i in range(number)
    ]


def written(path: Path, lines: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def test_everything_is_seen_and_said(tmp_path: Path) -> None:
    made = rows()
    made[3]["text"] += f" {UUID}"
    made[4]["text"] += f" {UUID.upper()} {SHA} {'7' * 20}"
    found = look(written(tmp_path / "t.jsonl", made), Columns())
    assert found.situation == Situation(documents=12, canaries=2, items=24, windowed=0)
    assert found.names.options == "choices"
    assert found.said == (
        "24 texts of 12 documents.",
        "2 random strings (UUIDs, hashes) in the texts.",
        "'choices' holds lists, perhaps answer options: 24 items.",
    )


def test_a_table_says_the_same(tmp_path: Path) -> None:
    made = rows()
    path = tmp_path / "t.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(made[0]))
        table.writeheader()
        table.writerows({**row, "choices": json.dumps(row["choices"])} for row in made)
    found = look(str(path), Columns())
    assert found.situation.items == 24
    assert found.names.options == "choices"


def test_columns_that_hold_little_of_a_kind_are_passed_over(tmp_path: Path) -> None:
    made = rows()
    for i, row in enumerate(made):
        row["text"] = f"A text of its own, the {i}th"
        if i % 5 == 0:
            row.update(choices=["alone"])
    found = look(written(tmp_path / "t.jsonl", made), Columns())
    assert found.situation == Situation(documents=12, windowed=0)
    assert found.names.options == "options"


def test_texts_without_other_columns_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("one line\nanother line\n", encoding="utf-8")
    assert look(str(path), Columns()).said == ("2 texts of 2 documents.",)
    assert look("stdlib(min_chars=3000)", Columns()).situation.documents > 0


def test_the_text_column_may_have_another_name(tmp_path: Path) -> None:
    made = [{"body": row["text"], "choices": row["choices"]} for row in rows()]
    path = written(tmp_path / "t.jsonl", made)
    assert look(path, Columns(text="body")).situation.items == 24
    with pytest.raises(TextsError, match="no column"):
        look(path, Columns())
