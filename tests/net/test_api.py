"""The net, the tests that notice a wrong number, takes pretrace from one file."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

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
    nodes = [*ast.walk(ast.parse(source))]
    whole = [(one.name, "") for node in nodes if isinstance(node, ast.Import) for one in node.names]
    parts = (node for node in nodes if isinstance(node, ast.ImportFrom))
    return whole + [(node.module or "", one.name) for node in parts for one in node.names]


def test_the_net_imports_from_the_api_alone_and_all_of_it() -> None:
    assert len(NET) > 35
    found = {name: imported(name) for name in NET}
    own = ("pretrace", "benchmarks")
    assert not [name for name, some in found.items() if any(one.partition(".")[0] in own for one, _ in some)]
    tables = tomllib.loads((TESTS / "refusals.toml").read_text("utf-8")).values()
    found["refusals.toml"] = imports_in("\n".join(line for table in tables for line in table["imports"]))
    used = {one for some in found.values() for module, one in some if module == "net.api"}
    assert used == set(api.PLACES)
    for name in api.PLACES:
        assert getattr(api, name) is not None
