"""Texts in a file."""

import json

import pytest


@pytest.fixture
def lines(tmp_path, sentences):
    """Writes so many texts, and behind the first hundred, where asked, a record that cannot be read."""

    def made(number, *, broken=False, name="texts.jsonl"):
        rows = ({"id": f"t{i}", "label": i % 2, "group": f"g{i // 2}"} for i in range(number))
        some = [json.dumps({**row, "text": f"{sentences[i % 6]} {i}"}) for i, row in enumerate(rows)]
        some[100:100] = ["{not json"] if broken else []
        (tmp_path / name).write_text("\n".join(some) + "\n", encoding="utf-8")
        return tmp_path / name

    return made
