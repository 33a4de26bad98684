"""What a run records of its fitted detectors, read with care: the facts of another's recipe may be anything."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pretrace.types import Run

Entry = Mapping[str, float]
"""Figures by name; a yes or no is 1.0 or 0.0."""

_NEURONS = ("layer", "members", "nonmembers", "difference", "chosen")
_PROBE = ("layer", "auc")
_SIDES = ("members", "nonmembers")
_SENSITIVITY = ("threshold", "alpha", "k", "auc")


@dataclass(frozen=True, slots=True)
class Facts:
    """What one fitted score tells of itself.

    `neurons` and `probe` are figures by layer, `sensitivity` one entry a setting that was tried, each empty
    where the score has none; `chosen` is the probe's layer; `used` the settings that `sensitivity` varies;
    `reference` the numbers of members and of non-members it was fitted on; `others` whatever else is told.
    """

    name: str
    neurons: tuple[Entry, ...]
    probe: tuple[Entry, ...]
    sensitivity: tuple[Entry, ...]
    chosen: float | None
    used: Entry
    reference: tuple[int, int] | None
    others: Mapping[str, Any]


def fitted(run: Run) -> tuple[Facts, ...]:
    """The facts of every fitted score, in the order they were recorded."""
    found = run.settings.get("fitted")
    if not isinstance(found, Mapping):
        return ()
    return tuple(_facts(str(name), facts) for name, facts in found.items() if isinstance(facts, Mapping))


def _facts(name: str, facts: Mapping[str, Any]) -> Facts:
    layers, settings = facts.get("layers"), facts.get("settings")
    sizes = entries([facts.get("reference")], _SIDES)
    neurons = entries(layers, _NEURONS)
    used = _used(settings if isinstance(settings, Mapping) else {}, len(neurons))
    return Facts(
        name=name,
        neurons=neurons,
        probe=entries(layers, _PROBE),
        sensitivity=entries(facts.get("sensitivity"), _SENSITIVITY),
        chosen=_chosen(facts, entries(layers, ("layer", "chosen"))),
        used=used,
        reference=(int(sizes[0]["members"]), int(sizes[0]["nonmembers"])) if sizes else None,
        others=_without(brief(facts), "reference", _SIDES) if sizes else brief(facts),
    )


def _used(settings: Mapping[str, Any], layers: int) -> Entry:
    """The settings that sensitivity varies; more layers than there are come to the same as all of them."""
    used = {key: value for key in _SENSITIVITY if (value := _number(settings.get(key))) is not None}
    return used | ({"k": min(used["k"], float(layers))} if layers and "k" in used else {})


def _chosen(facts: Mapping[str, Any], marked: tuple[Entry, ...]) -> float | None:
    """The one layer that was chosen: the only one marked so, or the one named."""
    layers = [entry["layer"] for entry in marked if entry["chosen"]]
    return layers[0] if len(layers) == 1 else _number(facts.get("chosen"))


def _without(facts: Mapping[str, Any], part: str, names: tuple[str, ...]) -> dict[str, Any]:
    left = {key: value for key, value in facts[part].items() if key not in names}
    return {key: left if key == part else value for key, value in facts.items() if key != part or left}


def entries(found: Any, names: tuple[str, ...]) -> tuple[Entry, ...]:
    """A table of figures from a list of mappings; empty unless every entry has a number for every name."""
    if not isinstance(found, list | tuple):
        return ()
    rows = [{name: _number(row.get(name)) for name in names} for row in found if isinstance(row, Mapping)]
    whole = [{name: value for name, value in row.items() if value is not None} for row in rows]
    return tuple(whole) if len(whole) == len(found) and all(len(row) == len(names) for row in whole) else ()


def numbers(found: Any) -> tuple[float, ...]:
    """A list of finite numbers; empty for anything else."""
    if not isinstance(found, list | tuple):
        return ()
    values = [value for value in map(_number, found) if value is not None]
    return tuple(values) if len(values) == len(found) else ()


def brief(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The same without its tables: lists that hold mappings or lists, at any depth."""
    return dict(_kept(facts))


def _kept(facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in facts.items():
        if isinstance(value, Mapping):
            yield str(key), brief(value)
        elif not (
            isinstance(value, list | tuple) and any(isinstance(i, Mapping | list | tuple) for i in value)
        ):
            yield str(key), value


def _number(value: Any) -> float | None:
    if not isinstance(value, bool | int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and abs(number) < 1e12 else None
