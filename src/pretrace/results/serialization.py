"""Dataclasses and settings as JSON and back, read by their type hints.

A field that a class gains is written and read without a change here; a file from before it was there gives
its default. JSON has no infinities: they are written as "inf" and "-inf", and become numbers again where
the hint says float. Tuples become lists, and stay lists where the hint says no more than `Any`. A lone surrogate
is written as its escape. Every reader here raises ValueError, TypeError, KeyError or OverflowError on what it did
not write.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

T = TypeVar("T")

_LARGEST = 2**63  # what a field of type int must stay below, either side of 0
_UNREADABLE = 2**1023  # the same for any other integer: `from_json` refuses those that have no float


def to_json(value: Any) -> bytes:
    """UTF-8 JSON, indented, keys in the order given; ValueError for NaN and infinities."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, indent=1)
    # Only lone surrogates cannot be encoded, and what this puts in their place is JSON's own escape.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def from_json(content: bytes) -> dict[str, Any]:
    """The JSON object in `content`; ValueError or TypeError for what `to_json` cannot have written, such as NaN."""
    try:
        found = json.loads(content, parse_float=_finite, parse_int=_whole, parse_constant=_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return expect(found, dict)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is no finite number")
    return number


def _whole(text: str) -> int:
    _finite(text)  # an integer that has no float would fail later, wherever it is counted with
    return int(text)


def expect(value: Any, kind: type[T]) -> T:
    """The value, if it is of the kind; TypeError otherwise."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{kind.__name__} expected, found {type(value).__name__}")
    return value


def to_plain(value: object, where: str) -> Any:
    """The value as dicts, lists, strings, numbers, booleans and None; `where` is its name in messages. Takes
    dataclasses, mappings, lists, tuples and numpy values; ValueError for NaN, TypeError for anything else."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    elif isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    value = str(value) if isinstance(value, float) and math.isinf(value) else value
    if isinstance(value, Mapping):
        wrong = [key for key in value if not isinstance(key, str)]
        if wrong:
            raise TypeError(f"{where}: the key {wrong[0]!r} is not a string")
        return {key: to_plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, float) and math.isnan(value):
        raise ValueError(f"{where} is NaN, which JSON cannot hold")
    if isinstance(value, int) and abs(value) >= _UNREADABLE:
        raise ValueError(f"{where} is too large an integer")
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"{where} is of type {type(value).__name__}, which JSON cannot hold")


def from_plain(kind: type[T], plain: object, where: str) -> T:
    """The dataclass that `to_plain` was given; TypeError, ValueError or KeyError where it was not one."""
    return cast(T, _read(kind, plain, where))


def _read(hint: Any, plain: object, where: str) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint):
        fields = expect(plain, dict)
        hints = _hints(cast(type, hint))  # what is missing has a default, or the class complains
        return cast(type, hint)(
            **{n: _read(hints[n], fields[n], f"{where}.{n}") for n in hints if n in fields}
        )
    if origin in (Union, UnionType):
        (other,) = [option for option in inner if option is not NoneType]
        return None if plain is None else _read(other, plain, where)
    if origin is Literal:
        if plain not in inner:
            raise ValueError(f"{where} is {plain!r}")
        return plain
    if origin is tuple:
        items = expect(plain, list)
        every = [inner[0]] * len(items) if inner[1:] == (Ellipsis,) else list(inner)
        if len(every) != len(items):
            raise ValueError(f"{where} has {len(items)} entries where {len(every)} are due")
        return tuple(_read(*one, f"{where}[{i}]") for i, one in enumerate(zip(every, items, strict=True)))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: _read(inner[1], item, f"{where}.{key}") for key, item in expect(plain, dict).items()}
    return plain if hint is Any else _scalar(hint, plain, where)


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}


def _scalar(kind: type, plain: object, where: str) -> Any:
    if kind is float:
        is_number = isinstance(plain, int | float) and not isinstance(plain, bool)
        if not is_number and plain not in ("inf", "-inf"):
            raise TypeError(f"{where} is no number")
        return float(cast(float, plain))
    found: Any = expect(plain, kind)
    if kind is int and not -_LARGEST < found < _LARGEST:
        raise ValueError(f"{where} is too large")
    return found
