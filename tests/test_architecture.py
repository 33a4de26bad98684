"""The page of the architecture is true, no import goes round in a circle, and most files are worth opening."""

from __future__ import annotations

import importlib.machinery
import re
import shutil
import types
from pathlib import Path

import pytest
import rooms

MODULES = rooms.read_modules()
ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script() -> types.ModuleType:
    """scripts/draw-rooms, which has no ending that Python knows."""
    loader = importlib.machinery.SourceFileLoader("draw_rooms", str(ROOT / "scripts" / "draw-rooms"))
    module = types.ModuleType(loader.name)
    module.__file__ = loader.path
    loader.exec_module(module)
    return module


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The sources in a folder where they may be changed."""
    kept = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(rooms.ROOT, tmp_path / "pretrace", ignore=kept))


def test_the_drawing_and_the_table_are_those_of_the_sources(script: types.ModuleType) -> None:
    picture = (ROOT / "docs" / "images" / "rooms.svg").read_text(encoding="utf-8")
    assert script.rendered(PAGE) == (picture, PAGE), "run scripts/draw-rooms"


def test_an_ordinary_change_needs_no_new_drawing(script: types.ModuleType, copied: Path) -> None:
    bare = "\n".join(line for line in PAGE.splitlines() if not line.startswith("| `"))
    picture, page = script.rendered(bare)  # with the figures of today
    with (copied / "types" / "texts.py").open("a", encoding="utf-8") as file:
        file.write("LATER = 1\n" * 40)
    (copied / "types" / "more.py").write_text("MORE = 1\n", encoding="utf-8")
    assert script.rendered(page, copied) == (picture, page)


def test_a_new_import_between_rooms_needs_a_new_drawing(script: types.ModuleType, copied: Path) -> None:
    graph = rooms.room_graph(MODULES)
    above, below = next(
        (above, below)
        for above in sorted(graph)
        for below in sorted(graph)
        if "pretrace" not in (above, below)
        and rooms.floor_of(above) > rooms.floor_of(below)
        and below in rooms.reduced({**graph, above: graph[above] | {below}})[above] - graph[above]
    )
    path = copied / MODULES[f"pretrace.{above}"].path.relative_to(rooms.ROOT)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n\ndef later() -> None:\n    import pretrace.{below}\n")
    assert script.rendered(PAGE, copied)[0] != (ROOT / "docs" / "images" / "rooms.svg").read_text(
        encoding="utf-8"
    )


def test_a_new_room_needs_a_floor(script: types.ModuleType, copied: Path) -> None:
    (copied / "attic.py").write_text('"""An attic."""\n', encoding="utf-8")
    with pytest.raises(LookupError, match="'attic' is on no floor"):
        script.rendered(PAGE, copied)


def test_the_page_names_rooms_that_are_there() -> None:
    named = set(re.findall(r"`(\w+)/`", PAGE))
    assert {"scores", "backends"} <= named
    assert named <= {module.room for module in MODULES.values()}


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Nor for types alone."""
    assert rooms.circles(rooms.module_graph(MODULES, ("module", "typing"))) == []


def test_no_room_imports_itself_by_way_of_others() -> None:
    assert rooms.circles(rooms.room_graph(MODULES)) == []


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set[str]()}
    assert rooms.circles(graph) == [["a", "b", "c"]]


def test_most_files_are_worth_opening() -> None:
    lines = sorted(module.lines for module in MODULES.values())
    assert lines[len(lines) // 2] > 120


def test_a_name_that_other_files_may_use_is_used_by_one() -> None:
    assert rooms.used_in_one_file(MODULES) == [], "begin it with an underscore"


def test_the_list_of_slow_tests_names_tests_that_are_there() -> None:
    for line in (ROOT / "tests" / "slow.txt").read_text(encoding="utf-8").split():
        path, *names = line.split("::")
        assert re.search(rf"def {names[-1]}\b", (ROOT / path).read_text(encoding="utf-8")), line
