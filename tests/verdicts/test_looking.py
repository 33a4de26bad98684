"""What is seen in a file of texts: documents, random strings."""

from __future__ import annotations

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
    """Texts with an opinion as label."""
    return [
        {
            "id": f"2015-{i}",
            "text": f"The railway number {i} reached the valley at noon and nothing was the same",
            "label": "angry",
            "group": f"g{i // 2}",
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
    assert found.situation == Situation(documents=12, canaries=2, windowed=0)
    assert found.said == (
        "24 texts of 12 documents.",
        "2 random strings (UUIDs, hashes) in the texts.",
    )


def test_a_column_whose_values_repeat_is_suggested_as_group(tmp_path: Path) -> None:
    made = [{**row, "book": f"b{i // 2}", "page": i, "kind": "prose"} for i, row in enumerate(rows(48))]
    bare = [{name: row[name] for name in ("id", "text", "book", "page", "kind")} for row in made]
    found = look(written(tmp_path / "bare.jsonl", bare), Columns())
    assert found.said[1] == (
        "The values of the column 'book' repeat: if they name what texts belong to, give --group-column book."
    )
    assert "repeat" not in " ".join(look(written(tmp_path / "made.jsonl", made), Columns()).said)
    assert "repeat" not in " ".join(look(str(tmp_path / "bare.jsonl"), Columns(group="book")).said)


def test_texts_without_other_columns_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("one line\nanother line\n", encoding="utf-8")
    assert look(str(path), Columns()).said == ("2 texts of 2 documents.",)
    assert look("stdlib(min_chars=3000)", Columns()).situation.documents > 0


def test_the_text_column_may_have_another_name(tmp_path: Path) -> None:
    made = [{"body": row["text"]} for row in rows()]
    path = written(tmp_path / "t.jsonl", made)
    assert look(path, Columns(text="body")).situation.documents == 24
    with pytest.raises(TextsError, match="no column"):
        look(path, Columns())
