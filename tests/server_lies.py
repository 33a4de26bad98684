"""Lies that a server of `model_servers` can tell of a prompt, by name."""

from __future__ import annotations

import math
import random
import struct
import time
from collections.abc import Callable
from typing import Any

from model_servers import Lie, ModelServer

Said = dict[str, Any]


def honest(server: ModelServer, ids: list[int]) -> Said:
    """What the model says, as it is."""
    return dict(server.model.said(ids))


def changed(change: Callable[[float], float]) -> Lie:
    """Every number changed in one way, those of the likeliest tokens and of written ones too."""

    def lie(server: ModelServer, ids: list[int]) -> Said:
        said = honest(server, ids)
        return {
            **said,
            "logp": [None, *map(change, said["logp"][1:])],
            "tops": [None, *([(id_, change(one)) for id_, one in top] for top in said["tops"][1:])],
            "written_logp": change(said["written_logp"]),
            "written_tops": [(id_, change(one)) for id_, one in said["written_tops"]],
        }

    return lie


def own_numbers(change: Callable[[list[float]], list[Any]]) -> Lie:
    """The numbers of the text's own tokens changed, all others left alone."""

    def lie(server: ModelServer, ids: list[int]) -> Said:
        said = honest(server, ids)
        return {**said, "logp": [None, *change(said["logp"][1:])]}

    return lie


def read_otherwise(*, counted: bool = False, **how: Any) -> Lie:
    """The numbers of the same tokens in other company, or at another temperature; `counted`: and it says so."""

    def lie(server: ModelServer, ids: list[int]) -> Said:
        said = dict(server.model.said(ids, **{name: given(server) for name, given in how.items()}))
        return said if counted else {**said, "read": len(ids)}

    return lie


def _one(value: Any) -> Lie:
    def change(numbers: list[float]) -> list[Any]:
        place = _drawn(numbers).randrange(len(numbers))
        return [value if i == place else one for i, one in enumerate(numbers)]

    return own_numbers(change)


def _consistent_zero(server: ModelServer, ids: list[int]) -> Said:
    """One entry of 0, with all other tokens at that place so unlikely that it could be."""
    said = honest(server, ids)
    place = 1 + _drawn(said["logp"][1:]).randrange(len(ids) - 1)
    for name, value in {
        "logp": 0.0,
        "ranks": 1,
        "tops": [
            (ids[place], 0.0),
            *((id_ + 1, -20.0 - i) for i, (id_, _) in enumerate(said["tops"][place][1:])),
        ],
    }.items():
        said[name] = [value if i == place else one for i, one in enumerate(said[name])]
    return said


def _noise(size: float) -> Lie:
    def change(numbers: list[float]) -> list[float]:
        source = random.Random(time.perf_counter_ns())  # other noise in every batch
        return [min(-1e-6, one + source.uniform(-size, size)) for one in numbers]

    return own_numbers(change)


def _drawn(numbers: list[float]) -> random.Random:
    """The same draw for the same text."""
    return random.Random(repr(numbers))


def _shuffled(numbers: list[float]) -> list[float]:
    return _drawn(numbers).sample(numbers, len(numbers))


def _another(server: ModelServer, ids: list[int]) -> Said:
    """The answer to the prompt that came before this one."""
    before = getattr(server, "before", None)
    server.before = ids  # type: ignore[attr-defined]
    return {**honest(server, before or ids), "read": len(ids)}


def _borrowed(server: ModelServer, ids: list[int]) -> Said:
    """The numbers of the prompt that came before, under the tokens of this one."""
    said, other = honest(server, ids), _another(server, ids)["logp"]
    return {**said, "logp": [*other[: len(ids)], *said["logp"][len(other) :]]}


def _first(server: ModelServer, ids: list[int]) -> Said:
    """The answer to the first prompt, given to all."""
    if not hasattr(server, "very_first"):
        server.very_first = ids  # type: ignore[attr-defined]
    return {**honest(server, server.very_first), "read": len(ids)}  # type: ignore[attr-defined]


def _around(which: int) -> Callable[[ModelServer], tuple[int, ...]]:
    def found(server: ModelServer) -> tuple[int, ...]:
        said = server.model.tokenizer.apply_chat_template(
            [{"role": "user", "content": "@@"}], tokenize=False, add_generation_prompt=True
        )
        part = said.split("@@")[which]
        return tuple(server.model.tokenizer(part, add_special_tokens=False)["input_ids"])

    return found


def _always(value: Any) -> Callable[[ModelServer], Any]:
    return lambda _: value


LIES: dict[str, Lie] = {
    "none": honest,
    "swapped": _another,
    "borrowed": _borrowed,
    "first": _first,
    "early": own_numbers(lambda some: [*some[1:], some[-1]]),
    "late": own_numbers(lambda some: [some[0], *some[:-1]]),
    "shuffled": own_numbers(_shuffled),
    "temperature": read_otherwise(temperature=_always(0.7)),
    "half": changed(lambda one: one / 2),
    "log10": changed(lambda one: one / math.log(10)),
    "log2": changed(lambda one: one / math.log(2)),
    "start": read_otherwise(before=_always((0,))),
    "start counted": read_otherwise(before=_always((0,)), counted=True),
    "template": read_otherwise(before=_around(0), after=_around(1)),
    "system": read_otherwise(before=_around(0)),
    "whole": changed(lambda one: round(one)),
    "1 decimal": changed(lambda one: round(one, 1)),
    "2 decimals": changed(lambda one: round(one, 2)),
    "8 bits": changed(lambda one: struct.unpack("<f", b"\0\0" + struct.pack("<f", one)[2:])[0]),
    "3 decimals": changed(lambda one: round(one, 3)),
    "bias up": changed(lambda one: one + 0.05),
    "bias down": changed(lambda one: one - 0.05),
    "bias own": own_numbers(lambda some: [one - 0.05 for one in some]),
    "zero": _one(0.0),
    "zero told": _consistent_zero,
    "-9997": _one(-9997.0),
    "floor": own_numbers(lambda some: [one if one > -6 else -9999.0 for one in some]),
    "floor told": changed(lambda one: max(one, -4.0)),
    "floor -20": own_numbers(lambda some: [one if one > -4 else -20.0 for one in some]),
    "noise small": _noise(0.004),
    "noise": _noise(0.05),
    "false": _one(False),
    "string": _one("-1.5"),
    "NaN": _one(float("nan")),
    "null": _one(None),
    "short": own_numbers(lambda some: some[:-1]),
}
"""Each lie, as what it makes of a prompt."""
