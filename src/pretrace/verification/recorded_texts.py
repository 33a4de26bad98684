"""Which texts a result is about: where they were, how they were read, and the hashes that were recorded of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pretrace.corpora import Columns, open_corpus, open_stream
from pretrace.scoring.provenance import texts_hash
from pretrace.types import Corpus

Facts = Mapping[str, Any]
Measure = Callable[[tuple[str, ...]], tuple[str, ...]]
_COLUMNS = ("text", "label", "id", "group")


@dataclass(frozen=True, slots=True)
class Side:
    """Texts of a result: their role, the places they were read from, the SHA-256 of each place's texts, and what
    measures it now. `why` says why there is no hash, where there is none."""

    role: str
    places: tuple[str, ...]
    hashes: tuple[str, ...]
    measured: Measure
    why: str = "no hash of them was recorded"


def recorded_sides(content: Facts, settings: Facts, columns: Columns) -> tuple[Side, ...]:
    """The texts that a result recorded, from its JSON part; each name of `columns` that is not None replaces the
    recorded one."""
    return tuple(_Reader(settings, columns, str(content.get("test", ""))).sides())


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads texts as a command read them, whose options are `given`."""

    settings: Facts
    override: Columns
    test: str

    def sides(self) -> Iterator[Side]:
        """Every side, the texts in question first."""
        if self.test in ("marks", "triggers"):
            beacon = _mapping(self._facts("sealed").get("beacon")).get("value")
            yield self._side(
                "sealed", self._facts("corpus"), partial(_sealed, str(beacon) if beacon else None)
            )
            if "answers" in self.settings:
                yield self._side("answers", self._facts("answers"), _answers)
            return
        yield self._first()
        for role in ("heldout", "nonmembers"):
            if self.settings.get(role):
                yield self._side(role, self._facts(role), self._hash_of_another)
        if self.test == "twins":  # of an earlier pretrace, which paired each text with a draft
            drafts = self._side("drafts", {}, self._hash)
            yield replace(drafts, places=(), why="the test of twins is no longer part of pretrace")
        if self.given.get("reference") and self.settings.get("reference"):
            yield self._side("reference", self._facts("reference"), self._hash_of_another)
        if self.test == "collections":
            yield self._controls()

    @property
    def given(self) -> Facts:
        """The options that were given, {} where an older pretrace or a program made the result."""
        return _mapping(self.settings.get("given")) or _mapping(self.settings.get("command"))

    @property
    def columns(self) -> Columns:
        """The columns that were read."""
        kept = _mapping(self.settings.get("columns"))
        named = {name: kept.get(name, self.given.get(f"{name}_column")) for name in _COLUMNS}
        if self.test in ("order", "options"):  # there a label is an answer, and not read
            named["label"] = named["label"] or ""
        own = {name: getattr(self.override, name) for name in _COLUMNS}
        return Columns(**{name: named[name] if own[name] is None else own[name] for name in _COLUMNS})

    def _facts(self, key: str) -> Facts:
        return _mapping(self.settings.get(key))

    def _side(self, role: str, facts: Facts, measure: Callable[[str], str]) -> Side:
        place = self.given.get(role) or facts.get("source") or ""
        hashed = facts.get("sha256")
        return Side(
            role,
            (str(place),) if place else (),
            (str(hashed),) if hashed else (),
            lambda places: tuple(measure(one) for one in places),
        )

    def _first(self) -> Side:
        """The texts in question, whole: a run may have scored a part of them."""
        facts = self._facts("whole_texts") or self._facts("texts") or self._facts("corpus")
        found = self._side("texts", facts, self._suspect if self.given.get("suspect") else self._hash)
        apart = self.settings.get("windows") or self.settings.get("set_aside")
        if apart and "whole_texts" not in self.settings:
            why = "the run scored a part of them, or windows, and an earlier pretrace recorded these alone"
            return replace(found, hashes=(), why=why)
        return found

    def _hash(self, place: str, columns: Columns | None = None) -> str:
        skip = bool(self.given.get("skip_unreadable"))
        return texts_hash(open_stream(place, columns or self.columns, skip_unreadable=skip).texts())

    def _hash_of_another(self, place: str) -> str:
        return self._hash(place, self.columns.of_another)

    def _more(self, place: str, column: str) -> Corpus:
        return open_corpus(place, replace(self.columns, more=(column,)))

    def _divided(self, place: str) -> tuple[Corpus, tuple[Corpus, ...]]:
        from pretrace.verdicts.collections import divided

        column = str(self.given["collection_column"])
        return divided(self._more(place, column), column, str(self.given["suspect"]))

    def _suspect(self, place: str) -> str:
        return texts_hash(self._divided(place)[0].texts)

    def _controls(self) -> Side:
        hashes = tuple(map(str, self._facts("control collections").values()))
        if not self.given.get("suspect"):
            places = tuple(map(str, self.given.get("controls", ())))
            return Side("controls", places, hashes, lambda found: tuple(map(self._hash_of_another, found)))

        def measured(places: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(texts_hash(one.texts) for place in places for one in self._divided(place)[1])

        return Side("controls", (str(self.given["texts"]),), hashes, measured)


def _sealed(beacon: str | None, place: str) -> str:
    from pretrace.verdicts.marking.sealed import drawn_seal, read_seal

    return texts_hash(drawn_seal(read_seal(Path(place)), beacon).corpus.texts)


def _answers(place: str) -> str:
    from pretrace.verdicts.triggers import read_answers

    return texts_hash(read_answers(place).texts)


def _mapping(value: object) -> Facts:
    return value if isinstance(value, Mapping) else {}
