"""Imports go one way and in no circle, and only the rooms that ask or train models know torch."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pretrace

SRC = Path(__file__).parent.parent / "src"
FLOORS = """
types errors registry plugins rewrites settings; statistics results; cache; scores backends corpora frequencies;
tuning; baselines; scoring; jobs verdicts; report; runs; testing verification; cli; __init__ __main__; plug-in
"""
"""The rooms (folders and single files of the package) from the ground up: a room imports from its floor and below."""
HEIGHT = {room: height for height, floor in enumerate(FLOORS.split(";")) for room in floor.split()}
PATHS = {".".join(path.relative_to(SRC).with_suffix("").parts): path for path in SRC.rglob("*.py")}
FILES = {name.removesuffix(".__init__"): ast.parse(path.read_text("utf-8")) for name, path in PATHS.items()}


def height(name):
    """A module within a folder of `plugins` stands above the core, and the core imports none."""
    plugin = name.startswith("pretrace.plugins.")
    return HEIGHT["plug-in" if plugin else name.split(".")[1] if "." in name else "__init__"]


def imported(node, late=True):
    """The modules that the code imports, those that its functions import only if `late`."""
    found = set[str]()
    for one in ast.iter_child_nodes(node):
        if isinstance(one, ast.Import):
            found |= {alias.name for alias in one.names}
        elif isinstance(one, ast.ImportFrom):
            inner = {f"{one.module}.{alias.name}" for alias in one.names if alias.name != "__version__"}
            found |= {name if name in FILES else f"{one.module}" for name in inner}
        elif late or not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            found |= imported(one, late)
    return found


def test_a_room_imports_from_no_higher_floor():
    pairs = {(name, other) for name, tree in FILES.items() for other in imported(tree) & FILES.keys()}
    named = {("pretrace", place) for place in pretrace._PLACES}  # for type checkers
    assert not {(name, other) for name, other in pairs - named if height(name) < height(other)}


def test_a_plugin_imports_no_other():
    rooms = {name: name.split(".")[2] for name in FILES if name.startswith("pretrace.plugins.")}
    pairs = {(name, other) for name in rooms for other in imported(FILES[name]) & rooms.keys()}
    assert len(set(rooms.values())) > 4
    assert not {(name, other) for name, other in pairs if rooms[name] != rooms[other]}


def test_no_module_imports_itself_by_way_of_others():
    graph = {name: (imported(tree, late=False) & FILES.keys()) - {name} for name, tree in FILES.items()}
    TopologicalSorter(graph).prepare()


def test_only_rooms_that_ask_or_train_models_import_torch():
    heavy = ("torch", "transformers", "peft", "pretrace.backends.libraries")
    knowing = {name for name, tree in FILES.items() for one in imported(tree) if one.startswith(heavy)}
    assert {name.split(".")[1] for name in knowing} <= {"backends", "tuning", "plugins"}
