"""Imports go one way, and only two rooms know torch."""

from __future__ import annotations

import ast
from pathlib import Path

import pretrace

ROOT = Path(pretrace.__file__).parent
FLOORS = [
    {"types", "errors", "registry", "rewrites", "settings"},
    {"statistics", "cache", "results"},
    {"scores", "backends", "corpora", "frequencies", "testing"},
    {"tuning"},
    {"baselines"},
    {"scoring", "building"},
    {"auditing"},
    {"flagging"},
    {"report"},
    {"runs"},
    {"scale", "web", "cli", "demo", "__init__", "__main__"},
]
TORCH = {"backends", "tuning", "building"}


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def floor(name: str) -> int:
    for level, rooms in enumerate(FLOORS):
        if name in rooms:
            return level
    raise AssertionError(f"{name} is on no floor: add it to FLOORS")


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.append(str(node.module))
            if node.module == "pretrace":
                found += [f"pretrace.{alias.name}" for alias in node.names]
    return found


def test_imports_go_one_way() -> None:
    wrong = []
    for path in ROOT.rglob("*.py"):
        for name in imports(path):
            parts = name.split(".")
            if parts[0] != "pretrace" or len(parts) == 1 or parts[1].startswith("__"):
                continue
            if not (ROOT / parts[1]).exists() and not (ROOT / f"{parts[1]}.py").exists():
                continue  # a public name of the package itself
            if floor(parts[1]) > floor(room(path)):
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not wrong


def test_only_two_rooms_know_torch() -> None:
    knowing = {
        room(path)
        for path in ROOT.rglob("*.py")
        for name in imports(path)
        if name.split(".")[0] in ("torch", "transformers", "peft")
    }
    assert knowing <= TORCH


def test_types_import_no_other_room() -> None:
    ours = {n for p in (ROOT / "types").glob("*.py") for n in imports(p) if n.startswith("pretrace")}
    assert {name.split(".")[1] for name in ours} == {"types", "settings"}
