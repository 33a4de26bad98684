"""The net, the tests that notice a wrong number, takes pretrace from one file."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest
from net import api

TESTS = Path(__file__).parents[1]
NET = [
    path.relative_to(TESTS).as_posix()
    for path in sorted(TESTS.rglob("test_*.py"))
    if path.parent.name != "net" and "from net.api import" in path.read_text("utf-8")
]


def imported(name: str) -> list[tuple[str, str]]:
    """Each import of a file, as module and name."""
    return imports_in((TESTS / name).read_text("utf-8"))


def imports_in(source: str) -> list[tuple[str, str]]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(one.name, "") for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.module or "", one.name) for one in node.names]
    return found


@pytest.mark.parametrize("name", NET)
def test_a_file_of_the_net_imports_pretrace_from_the_api_alone(name: str) -> None:
    assert not [one for one in imported(name) if one[0].partition(".")[0] in ("pretrace", "benchmarks")]


def test_the_api_has_what_the_net_uses_and_no_more() -> None:
    assert len(NET) > 35
    tables = tomllib.loads((TESTS / "refusals.toml").read_text("utf-8")).values()
    lines = "\n".join(line for table in tables for line in table["imports"])
    every = [*imports_in(lines), *(one for name in NET for one in imported(name))]
    assert {one for module, one in every if module == "net.api"} == set(api.PLACES)
    for name in api.PLACES:
        assert getattr(api, name) is not None
