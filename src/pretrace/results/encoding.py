"""Runs as JSON: settings and coloured texts as plain values and back; `plain` does evaluations.

JSON has no infinities: where one may stand it is written as a string, "inf" or "-inf". A lone surrogate is
written as its escape. Every reader here raises ValueError, TypeError or KeyError on what it did not write.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from pretrace.types import Heat, Skipped

T = TypeVar("T")


def to_json(value: Any) -> bytes:
    """UTF-8 JSON, indented, keys in the order given; ValueError for NaN and infinities."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, indent=1)
    # Only lone surrogates cannot be encoded, and what this puts in their place is JSON's own escape.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def from_json(content: bytes) -> dict[str, Any]:
    """The JSON object in `content`; ValueError where there is none."""
    try:
        found = json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return expect(found, dict)


def expect(value: Any, kind: type[T]) -> T:
    """The value, if it is of the kind; TypeError otherwise."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{kind.__name__} expected, found {type(value).__name__}")
    return value


def plain_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as run.json holds them, keys in the order given.

    They may hold dicts with string keys, lists, strings, numbers, booleans and None: TypeError for
    anything else, ValueError for NaN and infinities, naming the setting. To be called before the work.
    """
    plain = _plain(settings, "settings")
    assert isinstance(plain, dict)
    return plain


def _plain(value: object, where: str) -> object:
    if isinstance(value, Mapping):
        wrong = [key for key in value if not isinstance(key, str)]
        if wrong:
            raise TypeError(f"{where}: the key {wrong[0]!r} is not a string")
        return {key: _plain(value[key], f"{where}.{key}") for key in value}
    if isinstance(value, list):
        return [_plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where} is {value}, which run.json cannot hold")
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"{where} is of type {type(value).__name__}, which run.json cannot hold")


def heat_to_plain(heat: tuple[Heat, ...]) -> dict[str, Any]:
    """Coloured texts as plain values."""
    return {"texts": [_finite(dataclasses.asdict(text)) for text in heat]}


def heat_from_plain(plain: Mapping[str, Any]) -> tuple[Heat, ...]:
    """The coloured texts `heat_to_plain` was given."""
    return tuple(
        Heat(
            id=expect(text["id"], str),
            pieces=tuple(expect(piece, str) for piece in expect(text["pieces"], list)),
            logp=tuple(None if logp is None else _number(logp) for logp in expect(text["logp"], list)),
            note=expect(text["note"], str),
        )
        for text in expect(plain["texts"], list)
    )


def skipped_to_plain(skipped: tuple[Skipped, ...]) -> list[dict[str, Any]]:
    """Skipped texts as plain values."""
    return [{"id": text.id, "reason": text.reason, "n_tokens": int(text.tokens)} for text in skipped]


def skipped_from_plain(plain: Any) -> tuple[Skipped, ...]:
    """The skipped texts `skipped_to_plain` was given."""
    return tuple(
        Skipped(expect(text["id"], str), expect(text["reason"], str), expect(text["n_tokens"], int))
        for text in expect(plain, list)
    )


def _number(plain: Any) -> float:
    if isinstance(plain, str) and plain not in ("inf", "-inf"):
        raise ValueError(f"number expected, found {plain[:20]!r}")
    return float(plain)


def _finite(value: Any) -> Any:
    """Tuples as lists, numpy numbers as Python's, infinities as strings; ValueError for NaN."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_finite(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            raise ValueError("a figure of a coloured text is NaN")
        return str(value)
    return value
