"""Rows, or the answer options of items, put in order by a sealed lot before they are published.

A lot with a secret seed shuffles all rows, cuts them into shards of neighbours, and draws orders of each shard; one of
these is published. So `verdicts.marks` tests a shard as it tests a text with variants: these are the shard in each of
its orders. The options of one item are a unit in the same way.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from pretrace.errors import TextsError
from pretrace.registry import require
from pretrace.results.rounding import listed
from pretrace.settings import TEXTS, option
from pretrace.types import Corpus
from pretrace.verdicts.marking.sealed import MarkedText, Seal
from pretrace.verdicts.marking.variants import checked_texts, collapsed

MOST_ROWS, SHARD_BYTES = 8, 3_000
"""Rows of a shard, and bytes, at most: about 1,000 tokens, which models read whole."""
ROW_ORDERS, OPTION_ORDERS = 20, 24
"""Orders of a shard, and of an item, that the lot draws from; up to four parts it is all of them."""
RESULTS = 40
"""Results that the lot must be able to have: twice as many as one in twenty of them takes."""
JOINT = "\n\n"
"""What stands between two rows."""

Further = Mapping[str, Mapping[str, object]]
_WHOLE = r"(?:all|none|any|some|both|either|neither|each|most|two|three|more than one|one or more)"
_LISTED = r"\(?\b(?:[A-H]|[1-8]|I{1,3}|IV|VI?)\b\)?"
_REFERS = (
    re.compile(
        rf"\b{_WHOLE}\b.{{0,20}}\b(?:above|below|these|those|options?|answers?|choices?)\b", re.IGNORECASE
    ),
    re.compile(r"\b(?:the above|(?:all|none|both|neither) of (?:them|the others))\b", re.IGNORECASE),
    re.compile(r"^\W*(?:all|none|both|neither|either)\b.{0,20}\W*$", re.IGNORECASE),
    re.compile(
        rf"{_LISTED}(?:\s*,\s*{_LISTED})*\s*(?:,|&|/|\band\b|\bor\b|\bnor\b|\bbut not\b)+\s*{_LISTED}"
    ),
    re.compile(rf"^\W*{_LISTED}\W*\bonly\b", re.IGNORECASE),
)
"""Options that refer to others: their items keep their order."""
LETTERS = 26


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderSettings:
    """What is put in order: rows, or with `options` the options of each item; ExpressionError for `answer` alone."""

    options: str = option(
        "",
        "Column with the list of an item's answer options: their order is drawn, and not that of the rows.",
        panel=TEXTS,
        essential=True,
    )
    answer: str = option(
        "",
        "With --options: column with the right answer, as its text, its letter, or its number counted from 0 or from "
        "1. A letter or number is written anew.",
        panel=TEXTS,
        essential=True,
    )

    def __post_init__(self) -> None:
        require(
            bool(self.options) or not self.answer,
            "--answer is the right answer among the options of an item: name their column with --options.",
        )


@dataclass(frozen=True, slots=True)
class _Unit:
    """A shard of rows, or the options of an item (with its text in front, lettered): parts that change places."""

    name: str
    parts: tuple[str, ...]
    head: str | None = None

    def text(self, order: Sequence[int]) -> str:
        """The text with the parts in that order."""
        if self.head is None:
            return JOINT.join(self.parts[i] for i in order)
        lettered = (f"{chr(ord('A') + place)}. {self.parts[i]}" for place, i in enumerate(order))
        return "\n".join([self.head, *lettered])

    def drawn(self, rng: np.random.Generator) -> tuple[tuple[str, ...], list[tuple[int, ...]], int]:
        """The texts of the orders that the lot may choose, all different, the orders, and the place of the one it
        chose."""
        places, most = range(len(self.parts)), ROW_ORDERS if self.head is None else OPTION_ORDERS
        orders = (
            list(itertools.permutations(places))
            if math.factorial(len(places)) <= OPTION_ORDERS
            else [tuple(rng.permutation(len(places)).tolist()) for _ in range(most)]
        )
        found = {collapsed(text): (text, order) for order in orders if (text := self.text(order))}
        texts, kept = zip(*found.values(), strict=True)
        return texts, list(kept), int(rng.integers(len(kept)))


def mark_order(
    corpus: Corpus, settings: OrderSettings, further: Further, *, seed: str | None = None
) -> tuple[Seal, bytes]:
    """The seal of an order that is drawn by lot, and the rows to be published, as JSON lines.

    `further` are the columns of the rows by id, options and right answers among them. `seed` (hexadecimal digits) is
    for tests and simulations: what is to be an evidence must not be predictable. TextsError for rows or options of
    which none, or too few, can stand in another order, and for right answers that are none of the options.
    """
    checked_texts(corpus)
    seed = seed or secrets.token_hex(32)
    rng = np.random.default_rng(int(seed, 16))
    rows: dict[str, dict[str, object]] = {
        text.id: {"id": text.id, "text": text.text, **({"group": text.group} if text.group else {})}
        | dict(further.get(text.id, {}))
        for text in corpus.texts
    }
    documents: list[MarkedText] = []
    published: list[str] = []

    def draw(unit: _Unit) -> tuple[int, ...]:
        texts, orders, chosen = unit.drawn(rng)
        if len(texts) > 1:
            documents.append(MarkedText(unit.name, texts, chosen))
        return orders[chosen]

    if settings.options:
        published = [text.id for text in corpus.texts]
        for name, (parts, write) in _items(corpus, settings, further).items():
            order = draw(_Unit(name, parts, str(rows[name]["text"]).strip()))
            rows[name] |= write(order)
    else:
        shuffled = [corpus.texts[i] for i in rng.permutation(len(corpus.texts)).tolist()]
        for shard in _shards([(text.id, text.text) for text in shuffled]):
            names = [name for name, _ in shard]
            order = draw(_Unit(f"{names[0]} to {names[-1]}", tuple(text for _, text in shard)))
            published += [names[i] for i in order]
    results = math.prod(min(len(one.variants), RESULTS) for one in documents[:10])
    kind = "options" if settings.options else "rows"
    if results < RESULTS:
        raise TextsError(
            f"the {kind} of {corpus.name} can stand in {results:,} orders, and a lot takes {RESULTS} or more: give "
            f"more {'items' if settings.options else 'rows'}, and such as differ."
        )
    lines = "".join(json.dumps(rows[name], ensure_ascii=False, default=str) + "\n" for name in published)
    seal = Seal(
        name=corpus.name,
        source="order",
        nonce=seed,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        documents=tuple(documents),
        order=tuple(one.id for one in documents),
        totals=True,
        notes=(f"The order of {len(documents):,} {'items' if settings.options else 'shards'} was drawn.",),
        about={"parts": kind},
    )
    return seal, lines.encode("utf-8", "backslashreplace")


def _shards(rows: Sequence[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Runs of rows, each as an id and a text, that are no longer than a shard may be."""
    shard: list[tuple[str, str]] = []
    size = 0
    for name, text in rows:
        own = len(text.encode("utf-8", "replace")) + len(JOINT)
        if shard and (len(shard) == MOST_ROWS or size + own > SHARD_BYTES):
            yield shard
            shard, size = [], 0
        shard.append((name, text))
        size += own
    if shard:
        yield shard


def _items(
    corpus: Corpus, settings: OrderSettings, further: Further
) -> dict[str, tuple[tuple[str, ...], Any]]:
    found: dict[str, tuple[str, ...]] = {}
    for text in corpus.texts:
        found[text.id] = _list(further.get(text.id, {}).get(settings.options))
    bare = [name for name, options in found.items() if not options]
    if bare:
        raise TextsError(
            f"{len(bare):,} of {len(found):,} items have no list of options in {settings.options} ({listed(bare)}): "
            "name the column with the list of options with --options."
        )
    places, first = _answers(found, further, settings.answer) if settings.answer else ({}, 0)

    def writer(name: str) -> Any:
        own, parts = further[name], found[name]

        def write(order: tuple[int, ...]) -> dict[str, object]:
            moved = [parts[i] for i in order]
            cell = own[settings.options]
            made: dict[str, object] = {
                settings.options: json.dumps(moved) if isinstance(cell, str) else moved
            }
            if name in places:
                place = order.index(places[name])
                told = own[settings.answer]
                letter = chr(ord("A" if str(told).isupper() else "a") + place)
                made[settings.answer] = (
                    letter if str(told).isalpha() else type(told)(place + first)  # type: ignore[call-arg]
                )
            return made

        return write

    kept = (name for name, options in found.items() if 2 <= len(options) <= LETTERS and not _refers(options))
    return {name: (found[name], writer(name)) for name in kept}


def _refers(options: Sequence[str]) -> bool:
    if len({option.casefold().strip() for option in options}) < len(options):
        return True
    return any(pattern.search(option) for pattern in _REFERS for option in options)


def _list(value: object) -> tuple[str, ...]:
    """The options in a cell: a list of strings, or one written as JSON; none otherwise."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return ()
    return tuple(found) if isinstance(found, list) and all(isinstance(one, str) for one in found) else ()


def _answers(
    options: Mapping[str, Sequence[str]], further: Further, column: str
) -> tuple[dict[str, int], int]:
    cells = {name: str(further[name].get(column, "")).strip() for name in options}
    named = {name: cell for name, cell in cells.items() if cell not in options[name]}
    numbers = {name: int(cell) for name, cell in named.items() if cell.isascii() and cell.isdigit()}
    last = any(number == len(options[name]) for name, number in numbers.items())
    zero = 0 in numbers.values()
    if numbers and zero == last:
        raise TextsError(
            f"the numbers in {column} are counted neither from 0 nor from 1 throughout: give the right answer as its "
            "text or its letter, with --answer."
        )
    first = 0 if zero else 1
    letters = {
        name: ord(cell.upper()) - ord("A") for name, cell in named.items() if re.fullmatch("[A-Za-z]", cell)
    }
    places = {name: number - first for name, number in numbers.items()} | letters
    wrong = [name for name in named if not 0 <= places.get(name, -1) < len(options[name])]
    if wrong:
        raise TextsError(
            f"{len(wrong):,} of {len(options):,} items have a right answer in {column} that is none of their options "
            f"({listed(wrong)}): name the column with its text, letter or number with --answer."
        )
    return places, first
