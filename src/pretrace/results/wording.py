"""Sentences for people: they stand in `words.toml` by their kind, and code gives their numbers."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Any

from pretrace.results.rounding import p_value
from pretrace.statistics.documents import FEW_DOCUMENTS


class _Sentences(Formatter):
    """Fills in numbers; "{p:p}" is a p-value with its two digits."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        return p_value(value) if format_spec == "p" else super().format_field(value, format_spec)


@cache
def _words() -> Mapping[str, Any]:
    def joined(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: joined(one) for name, one in part.items()}
        if isinstance(part, list):
            return tuple(map(joined, part))
        return re.sub(r"\s*\n\s*", " ", part.strip()) if isinstance(part, str) else part

    here = files("pretrace")
    texts = (
        here.joinpath(room, "words.toml").read_text("utf-8") for room in ("scoring", "verdicts", "report")
    )
    found: dict[str, Any] = {
        name: part for text in texts for name, part in joined(tomllib.loads(text)).items()
    }
    cures = {name: one.replace("{fewest}", str(FEW_DOCUMENTS)) for name, one in found["cures"].items()}
    return {**found, "cures": cures}


def sentences_of(kind: str) -> Mapping[str, Any]:
    """Look up what stands under a kind ("audit.reverse"), its sentences not yet filled in."""
    found = _words()
    for name in kind.split("."):
        found = found[name]
    return found


def fill(part: Any, /, **numbers: object) -> Any:
    """Fill numbers into a sentence, or into each of several; the cures that several kinds share are known by name."""
    if isinstance(part, str):
        return _Sentences().vformat(part, (), {**_words()["cures"], **numbers})
    if isinstance(part, tuple):
        return tuple(fill(one, **numbers) for one in part)
    return {name: fill(one, **numbers) for name, one in part.items()} if isinstance(part, dict) else part


def say(kind: str, /, **numbers: object) -> str:
    """Say the sentence of a kind, "audit.reverse.words", with its numbers filled in."""
    return str(fill(sentences_of(kind), **numbers))
