"""The rooms of the package (the folders and single files of `src/pretrace`), their floors, and who imports whom.

Read from the sources with `ast`; nothing is imported. `draw-rooms`, `count-walks` and the tests of layers share it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "src" / "pretrace"

FLOORS: list[set[str]] = [
    {"types", "errors", "registry", "rewrites", "settings"},
    {"statistics", "results"},
    {"cache"},
    {"scores", "backends", "corpora", "frequencies", "testing"},
    {"tuning"},
    {"baselines"},
    {"scoring", "building"},
    {"jobs", "scan", "verdicts"},
    {"harnesses"},
    {"report"},
    {"runs"},
    {"verification", "web"},
    {"cli", "demo", "pretrace"},
]
"""From the ground up. A room imports from its own floor and from those below. `pretrace` holds the public names."""


_ELSEWHERE = ("src", "tests", "benchmarks", "docs", "scripts", "examples")
_TEXTS = {".py", ".md", ".html", ".js", ".toml", ""}


@dataclass(frozen=True, slots=True)
class Import:
    """One name that a module imports. `level` is "module", "function" or "typing" (under TYPE_CHECKING)."""

    name: str
    level: str
    relative: bool = False


@dataclass(frozen=True)
class Module:
    """One source file."""

    name: str
    path: Path
    room: str

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        return _imports_of(self.text)


@cache
def _imports_of(text: str) -> tuple[Import, ...]:
    return tuple(_imports(ast.parse(text), "module"))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements inside a node; an expression holds none."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        yield from getattr(node, name, ())


def _imports(node: ast.AST, level: str) -> Iterator[Import]:
    for child in _statements(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, level) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            source = child.module or ""
            yield from (Import(f"{source}.{alias.name}", level, child.level > 0) for alias in child.names)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            for part, inside in ((child.body, "typing"), (child.orelse, level)):
                for statement in part:
                    yield from _imports(ast.Module([statement], []), inside)
        else:
            inner = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from _imports(child, "function" if inner and level == "module" else level)


def read_modules(root: Path = ROOT) -> dict[str, Module]:
    """The modules of the package by their dotted names, in order."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = Module(name, path, room_of(path, root))
    return found


def room_of(path: Path, root: Path = ROOT) -> str:
    """The room of a file: its top folder, or its own name where it stands in none; `__main__` is the command."""
    first = path.relative_to(root).parts[0].removesuffix(".py")
    return {"__init__": "pretrace", "__main__": "cli"}.get(first, first)


def floor_of(room: str) -> int:
    """The floor of a room, from 0; LookupError for a room that has none."""
    for level, rooms in enumerate(FLOORS):
        if room in rooms:
            return level
    raise LookupError(f"the room {room!r} is on no floor: add it to FLOORS in scripts/rooms.py")


def module_graph(modules: Mapping[str, Module], levels: Collection[str] = ("module",)) -> dict[str, set[str]]:
    """Which modules each module imports, at the given levels.

    A package that stands in front of a module's name is not counted as imported, nor is a name such as
    `pretrace.__version__`, which is set before the package imports anything.
    """
    graph: dict[str, set[str]] = {}
    for module in modules.values():
        names = [one.name for one in module.imports if one.level in levels]
        found = {target for name in names if (target := _target(name, modules))}
        graph[module.name] = found - {module.name}
    return graph


def room_graph(
    modules: Mapping[str, Module], levels: Collection[str] = ("module", "function")
) -> dict[str, set[str]]:
    """Which rooms each room imports."""
    graph: dict[str, set[str]] = {module.room: set() for module in modules.values()}
    for name, targets in module_graph(modules, levels).items():
        graph[modules[name].room] |= {modules[target].room for target in targets}
    return {room: targets - {room} for room, targets in graph.items()}


def _target(name: str, modules: Mapping[str, Module]) -> str | None:
    if name in modules:
        return name
    parent, _, last = name.rpartition(".")
    return parent if parent in modules and not last.startswith("__") else None


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """The groups of more than one node that reach each other, each sorted (strongly connected components)."""
    reach = {node: _reachable(graph, node) for node in graph}
    groups = {tuple(sorted(other for other in reach[node] if node in reach[other])) for node in graph}
    return sorted(list(group) for group in groups if len(group) > 1)


def _reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    seen, waiting = set(), list(graph[start])
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += graph[node]
    return seen


def reduced(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The graph without the edges that other paths imply; for graphs without circles."""
    reach = {node: _reachable(graph, node) for node in graph}
    return {
        node: {one for one in targets if not any(one in reach[other] for other in targets - {one})}
        for node, targets in graph.items()
    }


def between(page: str, begin: str, end: str, part: str) -> str:
    """The page with `part` between two markers, each of which stands in it once."""
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise LookupError(f"the page lacks the lines {begin} and {end}")
    return f"{before}{begin}\n{part}\n{end}{after}"


def public_names(tree: ast.Module, *, registered: bool = True) -> list[str]:
    """The names at the top of a module that begin with no underscore, those it imports left out; without `registered`
    also those that a decorator hands to others, such as a score or a page."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if registered or not any("dataclass" not in ast.unparse(one) for one in node.decorator_list):
                found.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found += [one.id for one in targets if isinstance(one, ast.Name)]
    return [name for name in found if not name.startswith("_")]


def used_in_one_file(modules: Mapping[str, Module]) -> list[str]:
    """The public names that stand in no other file of the repository, as module:name."""
    root = ROOT.parent.parent
    paths = [path for folder in _ELSEWHERE for path in sorted((root / folder).rglob("*"))]
    mentions = Counter[str]()
    for path in paths:
        if path.is_file() and path.suffix in _TEXTS and path.parent != root / "benchmarks" / "results":
            mentions.update(set(re.findall(r"\w+", path.read_text(encoding="utf-8", errors="ignore"))))
    return [
        f"{module.name}:{name}"
        for module in modules.values()
        for name in public_names(module.tree, registered=False)
        if mentions[name] == 1
    ]
