"""Imports go one way, and only two rooms know torch. The floors are in scripts/rooms.py."""

from __future__ import annotations

from rooms import FLOORS, floor_of, module_graph, read_modules

MODULES = read_modules()
TORCH = {"backends", "tuning", "building"}


def test_every_room_has_one_floor() -> None:
    placed = [room for rooms in FLOORS for room in rooms]
    assert sorted(placed) == sorted({module.room for module in MODULES.values()})


def test_imports_go_one_way() -> None:
    graph = module_graph(MODULES, ("module", "function", "typing"))
    wrong = [
        f"{name} imports {target}"
        for name, targets in graph.items()
        for target in sorted(targets)
        if floor_of(MODULES[target].room) > floor_of(MODULES[name].room)
    ]
    assert not wrong


def test_imports_are_absolute() -> None:
    relative = [module.name for module in MODULES.values() for one in module.imports if one.relative]
    assert not relative


def test_only_two_rooms_know_torch() -> None:
    knowing = {
        module.room
        for module in MODULES.values()
        for one in module.imports
        if one.name.split(".")[0] in ("torch", "transformers", "peft")
    }
    assert knowing <= TORCH


def test_types_import_no_other_room() -> None:
    graph = module_graph(MODULES, ("module", "function", "typing"))
    imported = {
        MODULES[target].room for name in graph if MODULES[name].room == "types" for target in graph[name]
    }
    assert imported <= {"types", "settings", "errors"}
