"""Refusals that one call shows, as a table: each raises its error with its message."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

TABLE = tomllib.loads(Path(__file__).with_name("refusals.toml").read_text(encoding="utf-8"))
ROWS = [(place, *row) for place, section in TABLE.items() for row in section["refused"]]


@pytest.mark.parametrize(("place", "code", "error", "message"), ROWS)
def test_it_is_refused(place, code, error, message, tmp_path):
    names: dict[str, Any] = {"tmp_path": tmp_path}
    exec("\n".join(TABLE[place]["imports"]), names)
    with pytest.raises(eval(error, names), match=message or None):
        exec(code, names)
