"""Docstrings of Python's standard library: a corpus that every machine with Python already has, in nearly every model's
data."""

from __future__ import annotations

import ast
import functools
import platform
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pretrace.corpora.reading import mended
from pretrace.errors import TextsError
from pretrace.registry import corpora, require
from pretrace.types import Corpus, Text

_SKIPPED_FOLDERS = {
    "__pycache__", "_bundled", "dist-packages", "idle_test", "idlelib", "lib2to3", "site-packages", "test", "tests",
}  # fmt: skip

_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@corpora.add("stdlib")
def stdlib(min_chars: int = 300, max_chars: int | None = None) -> Corpus:
    """Docstrings of this Python's standard library, from `min_chars` to `max_chars` characters.

    Read from the source files with `ast`, never imported; cleaned as `inspect.cleandoc` does. The id is
    `module:qualified.name`, the group the dotted module, the label unknown. A text that stands in several places is
    kept where it stands first. `source` names the version of Python. Raises ExpressionError for a limit out of range.
    """
    require(min_chars >= 1, f"stdlib: min_chars must be at least 1, found {min_chars}.")
    good = max_chars is None or max_chars >= min_chars
    require(good, f"stdlib: max_chars must be at least min_chars={min_chars}, found {max_chars}.")
    folder = Path(sysconfig.get_path("stdlib"))
    every, unread = _all_docstrings(folder)
    long = [one for one in every if len(one[2]) >= min_chars]
    fitting = [one for one in long if max_chars is None or len(one[2]) <= max_chars]
    kept: dict[str, Text] = {}
    for module, name, docstring in fitting:
        kept.setdefault(docstring, Text(id=f"{module}:{name}", text=docstring, group=module))
    left_out = {
        f"docstrings left out for having more than {max_chars} characters": len(long) - len(fitting),
        "docstrings left out for standing elsewhere too, where they were kept": len(fitting) - len(kept),
        "source files left out for not parsing": unread,
    }
    if not kept:
        raise TextsError(f"no docstring below {folder} has the length asked for: give stdlib other limits.")
    notes = tuple(f"{what}: {count}." for what, count in left_out.items() if count)
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return Corpus("stdlib", tuple(kept.values()), f"docstrings of the standard library of {python}", notes)


@functools.cache  # parsing takes seconds, and an installed library does not change under a process
def _all_docstrings(folder: Path) -> tuple[tuple[tuple[str, str, str], ...], int]:
    """Module, qualified name and cleaned docstring of everything that has one; files that do not parse."""
    made: list[tuple[str, str, str]] = []
    unread = 0
    paths = (path.relative_to(folder) for path in folder.rglob("*.py"))
    wanted = (path for path in paths if not _SKIPPED_FOLDERS.intersection(path.parts[:-1]))
    for path in sorted(wanted, key=Path.as_posix):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # escapes like "\d" in old sources
                tree = ast.parse((folder / path).read_bytes())
        except (SyntaxError, ValueError, OSError):
            unread += 1
            continue
        parts = path.with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        seen: Counter[str] = Counter()
        for name, node in _documented(tree, ""):
            if (docstring := ast.get_docstring(node)) is not None:
                seen[name] += 1
                again = "" if seen[name] == 1 else f"~{seen[name]}"  # the second to have this name is NAME~2
                made.append((module, name + again, mended(docstring)[0]))
    return tuple(made), unread


def _documented(node: ast.AST, prefix: str) -> Iterator[tuple[str, _Documented]]:
    if isinstance(node, ast.Module):
        yield "<module>", node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + child.name, child
            yield from _documented(child, f"{prefix}{child.name}.")
        else:
            yield from _documented(child, prefix)
