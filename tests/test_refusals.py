"""Refusals that one call shows, as a table: each raises its error with its message."""

import ast
import tomllib
from pathlib import Path
from string import Formatter

import pytest

import pretrace
from pretrace.results.wording import sentences_of

TABLE = tomllib.loads(Path(__file__).with_name("refusals.toml").read_text(encoding="utf-8"))
ROWS = [(place, *row) for place, section in TABLE.items() for row in section["refused"]]


@pytest.mark.parametrize(("place", "code", "error", "message"), ROWS)
def test_it_is_refused(place, code, error, message, tmp_path):
    names = {"tmp_path": tmp_path}
    exec("\n".join(TABLE[place]["imports"]), names)
    with pytest.raises(eval(error, names), match=message or None):
        exec(code, names)


def said():
    """Each sentence that code says by its full name, with the names of its numbers."""
    for path in sorted(Path(pretrace.__file__).parent.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            is_said = isinstance(call, ast.Call) and getattr(call.func, "id", "") == "say"
            if is_said and isinstance(call.args[0], ast.Constant):
                yield call.args[0].value, {one.arg for one in call.keywords}


def test_every_sentence_is_there_and_is_given_its_numbers():
    known = [*said()]
    assert len(known) > 100
    for kind, given in known:
        fields = (field for _, field, _, _ in Formatter().parse(sentences_of(kind)) if field)
        wanted = {field.partition(".")[0] for field in fields}
        assert wanted <= given | {*sentences_of("cures")} or None in given, kind  # None: **numbers
