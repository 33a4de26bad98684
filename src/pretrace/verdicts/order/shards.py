"""Rows in file order, packed into shards that a model reads at once.

Why the packing keeps the test exact. Packing is greedy: a row joins the shard while the sum of the rows' weights stays
within the limit, and the number of rows within theirs. A row's weight depends on that row alone. The first row of a
shard never moves. Put the other rows of any shards into other orders and pack the file anew. Every part of a shard is
at most as heavy as the whole, so no row falls out of it. The row behind it is the first of the next shard, the same as
before, and still too much. So all these orders of the file give the same shards with the same first rows, and under a
random order all of them were equally likely. Were the first rows moved too, a lighter one could fit into the shard in
front of it. The first row is what the others are predicted from: where its own tokens are scored, they are the same in
every order and cancel out. Blocks leave a part of these orders, by the same argument.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pretrace.types import Backend, Skipped, Text
from pretrace.verdicts.order.settings import FEWEST_ROWS, OrderSettings
from pretrace.verdicts.order.units import Unit, Units

MARGIN = 2
"""Tokens kept free for each row: where two rows meet, a tokenizer may cut otherwise than in either alone."""
EMPTY = "the row is empty"
LONG = "longer than a shard may be"
FEW = "its shard has fewer than three rows"
FIXED = "no row of its shard may change places"


@dataclass(frozen=True, slots=True)
class Row:
    """A row, what it weighs in a shard, and the values within which it changes places."""

    id: str
    text: str
    weight: int
    block: tuple[str, ...] = ()


@dataclass(slots=True)
class _Left:
    """The rows that are left out."""

    skipped: list[Skipped] = field(default_factory=list)

    def add(self, rows: Sequence[Row], reason: str) -> None:
        self.skipped.extend(Skipped(row.id, reason, row.weight) for row in rows)


def shards(texts: Sequence[Text], backends: Sequence[Backend], settings: OrderSettings) -> Units:
    """The shards of the rows, in file order, which every one of the `backends` reads whole."""
    left = _Left()
    limit = min(settings.shard_tokens, *(_room(backend) for backend in backends))
    rows = []
    for row in weighed(texts, backends, settings):
        reason = EMPTY if not row.text.strip() else LONG if row.weight > limit else ""
        if reason:
            left.add([row], reason)
        else:
            rows.append(row)
    units, number = [], 0
    for shard in packed(rows, limit, settings.shard_rows):
        if len(shard) < FEWEST_ROWS:
            left.add(shard, FEW)
            continue
        movable = _movable(shard)
        if not movable:
            left.add(shard, FIXED)
            continue
        parts = tuple(row.text for row in shard)
        units.append(Unit(f"{shard[0].id} to {shard[-1].id}", parts, movable, settings.joint))
        number += len(shard)
    return Units(tuple(units), tuple(left.skipped), number)


def weighed(texts: Sequence[Text], backends: Sequence[Backend], settings: OrderSettings) -> list[Row]:
    """Each text with its weight: its tokens and those of a joint, the most that a back end counts, and a margin."""
    weights = [0] * len(texts)
    for backend in backends:
        joint = _tokens(backend, [settings.joint])[0] if settings.joint else 0
        for i, tokens in enumerate(_tokens(backend, [text.text for text in texts])):
            weights[i] = max(weights[i], tokens + joint + MARGIN)
    return [
        Row(text.id, text.text, weight, tuple(text.meta.get(name, "") for name in settings.blocks))
        for text, weight in zip(texts, weights, strict=True)
    ]


def packed(rows: Sequence[Row], limit: int, most: int | None = None) -> Iterator[list[Row]]:
    """The shards: runs of rows whose weights add up to at most `limit`, of at most so many rows; see above."""
    shard: list[Row] = []
    weight = 0
    for row in rows:
        if shard and (weight + row.weight > limit or len(shard) == most):
            yield shard
            shard, weight = [], 0
        shard.append(row)
        weight += row.weight
    if shard:
        yield shard


def _movable(shard: Sequence[Row]) -> tuple[tuple[int, ...], ...]:
    """The groups of places whose rows may change places: those of one block, without the first row of the shard."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, row in enumerate(shard[1:], 1):
        groups.setdefault(row.block, []).append(place)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def _room(backend: Backend) -> int:
    """The tokens of a text that a back end reads, beside its start tokens."""
    return backend.max_tokens - len(backend.encode(["a"])[0].prefix)


def _tokens(backend: Backend, texts: Sequence[str]) -> list[int]:
    return [len(encoded.tokens) + encoded.cut for encoded in backend.encode(texts)]
