"""Dataclasses as plain JSON values and back, read by their type hints.

A field that a class gains is written and read without a change here; a file from before it was there gives
its default. JSON has no infinities: they are written as "inf" and "-inf", and become numbers again where
the hint says float. Tuples become lists, and stay lists where the hint says no more than `Any`. An array
is read as float64 with one dimension.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from pretrace.results.encoding import expect

T = TypeVar("T")


def to_plain(value: object, where: str) -> Any:
    """The value as dicts, lists, strings, numbers, booleans and None; `where` is its name in messages.

    Takes dataclasses, mappings with string keys, lists, tuples and numpy values; ValueError for NaN,
    TypeError for anything else, naming the place.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: to_plain(getattr(value, name), f"{where}.{name}") for name in names}
    if isinstance(value, Mapping):
        wrong = [key for key in value if not isinstance(key, str)]
        if wrong:
            raise TypeError(f"{where}: the key {wrong[0]!r} is not a string")
        return {key: to_plain(value[key], f"{where}.{key}") for key in value}
    if isinstance(value, list | tuple):
        return [to_plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, np.ndarray | np.generic):
        return to_plain(value.tolist(), where)
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            raise ValueError(f"{where} is NaN")
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"{where} is of type {type(value).__name__}, which JSON cannot hold")


def from_plain(kind: type[T], plain: object, where: str) -> T:
    """The dataclass that `to_plain` was given; TypeError, ValueError or KeyError where it was not one."""
    return cast(T, _read(kind, plain, where))


def _read(hint: Any, plain: object, where: str) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint):
        return _dataclass(cast(type, hint), plain, where)
    if origin in (Union, UnionType):
        (other,) = [option for option in inner if option is not NoneType]
        return None if plain is None else _read(other, plain, where)
    if origin is Literal:
        if plain not in inner:
            raise ValueError(f"{where} is {plain!r}")
        return plain
    if origin is tuple:
        return _tuple(inner, plain, where)
    if origin is np.ndarray:
        return np.array([_number(item, where) for item in expect(plain, list)], np.float64)
    if hint is float:
        return _number(plain, where)
    if hint is Any:
        return plain
    return expect(plain, dict if isinstance(origin, type) and issubclass(origin, Mapping) else hint)


def _dataclass(kind: type, plain: object, where: str) -> Any:
    found = expect(plain, dict)
    hints = get_type_hints(kind)
    fields = [field.name for field in dataclasses.fields(kind) if field.init]
    given = {
        name: _read(hints[name], found[name], f"{where}.{name}")
        for name in fields
        if name in found  # what is missing has a default, or the class complains
    }
    return kind(**given)


def _tuple(inner: tuple[Any, ...], plain: object, where: str) -> tuple[Any, ...]:
    items = expect(plain, list)
    hints = [inner[0]] * len(items) if inner[1:] == (Ellipsis,) else list(inner)
    if len(hints) != len(items):
        raise ValueError(f"{where} has {len(items)} entries where {len(hints)} are due")
    return tuple(
        _read(hint, item, f"{where}[{i}]") for i, (hint, item) in enumerate(zip(hints, items, strict=True))
    )


def _number(plain: object, where: str) -> float:
    if plain in ("inf", "-inf"):
        return float(plain)
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        raise TypeError(f"{where} is no number")
    return float(plain)
