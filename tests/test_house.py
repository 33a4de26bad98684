"""The house grows in no direction: no number of `house.toml` is exceeded.

`python tests/test_house.py` prints what stands there and what is true; with `--lower` it lowers the numbers to what is
true, and raises none."""

import ast
import re
import sys
import tomllib
import warnings
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "house.toml"
SLACK = 0.02
"""A number that is lower by more than this share may be lowered; a test says so and does not fail."""
HEAD = """\
# What the house may hold: lines of .py files by room, and counts. No number rises; who makes a room smaller lowers its
# number: python tests/test_house.py --lower
"""


def lines(place):
    files = [place] if place.is_file() else [*place.rglob("*.py")]
    return sum(len(file.read_text("utf-8").splitlines()) for file in files)


def words(place):
    files = [place] if place.is_file() else [*place.rglob("*.md")]
    return sum(len(file.read_text("utf-8").split()) for file in files)


def late(node, inside=False):
    """The modules of our own that functions import."""
    for child in ast.iter_child_nodes(node):
        if inside and isinstance(child, ast.ImportFrom | ast.Import):
            named = [child.module] if isinstance(child, ast.ImportFrom) else [one.name for one in child.names]
            yield from (name for name in named if f"{name}.".startswith("pretrace."))
        yield from late(child, inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))


def public(tree):
    """Functions, classes and methods whose names begin with no underscore."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    found = [one for one in tree.body if isinstance(one, kinds)]
    methods = [one for cls in found if isinstance(cls, ast.ClassDef) for one in cls.body]
    names = [one.name for one in (*found, *methods) if isinstance(one, ast.FunctionDef | ast.ClassDef)]
    return [name for name in names if not name.startswith("_")]


def slots():
    """Parameters of all commands: what is offered in several counts in each."""
    from pretrace.cli import commands

    return sum(len(getattr(commands, words).default_command.declared) for words in commands.places())


def measured():
    """Every number as it is."""
    src = ROOT / "src" / "pretrace"
    trees = [ast.parse(path.read_text("utf-8")) for path in src.rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    classes = Counter(node.name.lstrip("_") for node in nodes if isinstance(node, ast.ClassDef))
    rooms = [place for place in sorted(src.iterdir()) if place.suffix == ".py" or [*place.glob("*.py")]]
    return {
        "lines": {
            **{place.stem: lines(place) for place in rooms},
            **{name: lines(ROOT / name) for name in ("src", "tests", "benchmarks")},
        },
        "counts": {
            "words of docs": words(ROOT / "docs"),
            "words of README": words(ROOT / "README.md"),
            "files of src": len(trees),
            "classes": sum(classes.values()),
            "classes under a name used twice": sum(number for number in classes.values() if number > 1),
            "own modules imported in functions": sum(len([*late(tree)]) for tree in trees),
            "public names": sum(len(public(tree)) for tree in trees),
            "option slots": slots(),
        },
    }


def found():
    """Part, name, number, and the most that is allowed (of what the file does not name: nothing)."""
    most = tomllib.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    found = [(part, *one) for part, some in measured().items() for one in some.items()]
    return [(part, name, number, most.get(part, {}).get(name, 0)) for part, name, number in found]


def test_no_number_of_the_house_rises():
    rows = found()
    over = [f"{name}: {number:,}, allowed {most:,}" for _, name, number, most in rows if number > most]
    assert not over, f"make it smaller, or make something else smaller and say why in house.toml: {over}"
    under = [
        f"{name}: {number:,} of {most:,}" for _, name, number, most in rows if number < most * (1 - SLACK)
    ]
    if under:
        warnings.warn(f"python tests/test_house.py --lower: {', '.join(under)}", stacklevel=1)


def test_no_folder_of_tests_is_left_out(pytestconfig):
    """By default pytest enters no folder called `build`: the tests of that plug-in stood there unrun."""
    folders = {one.name for top in ("tests", "src") for one in (ROOT / top).rglob("*") if one.is_dir()}
    assert not {one for one in folders if any(map(Path(one).match, pytestconfig.getini("norecursedirs")))}


if __name__ == "__main__":
    rows = found()
    for _, name, number, most in rows:
        print(f"{name:36} {number:7,} of {most:7,}")
    if "--lower" in sys.argv:
        parts = {}
        for part, name, number, most in rows:
            key = name if re.fullmatch(r"\w+", name) else f'"{name}"'
            parts.setdefault(part, []).append(f"{key} = {min(number, most or number)}\n")
        FILE.write_text(
            HEAD + "".join(f"\n[{part}]\n{''.join(some)}" for part, some in parts.items()), "utf-8"
        )
