"""Texts that begin alike: which of their tokens are read once for many of them, and which texts go together.

Many continuations of one beginning (orders of an item's options, texts that are read after one and the same text) cost
far less when the keys and values of the beginning are computed once. What is shared follows from the token ids of all
texts of a call, so that a run that was killed and starts again sees the same batches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pretrace.backends.tokens import pack
from pretrace.errors import ModelError
from pretrace.results.wording import say
from pretrace.types import Encoded, Ints

LEAST = 8
"""Tokens of a beginning that is worth a pass of its own, at least."""
GAIN = 0.9
"""What is left to compute, as a share of all tokens, where a beginning is shared, at most."""
WIDTH = 4
"""Times the token budget of a batch that the keys and values of its rows may take, beginnings included."""
_NEAR = 0.8  # a beginning is cut to the shortest of its batch, and to no less than this part


def behind(encoded: Sequence[Encoded], context: Encoded, most: int) -> list[Encoded]:
    """The texts as they are read after another one: its tokens stand between the start tokens and theirs, are not
    predicted, and all is cut to `most` tokens. ModelError where the context is cut or leaves no room for two
    tokens."""
    prefix: Ints = np.concatenate([context.prefix, context.tokens])
    room = most - len(prefix)
    if context.cut or room < 2:
        given = len(context.tokens) + context.cut
        raise ModelError(say("models.long_context", given=given, most=most))
    return [Encoded(prefix, e.tokens[:room], e.cut + max(0, len(e.tokens) - room)) for e in encoded]


def alike(encoded: Sequence[Encoded]) -> list[Encoded]:
    """The same texts, each with the number of tokens that it shares with others (`Encoded.shared`): of all ways to
    divide them into sets with one beginning each, the one that leaves the fewest tokens to compute."""
    made = list(encoded)
    rows = [np.concatenate([e.prefix, e.tokens]) if len(e.prefix) else e.tokens for e in encoded]
    heads = [row[:LEAST].tobytes() if len(row) > LEAST else b"" for row in rows]
    often = Counter(heads)
    order = [i for i, e in enumerate(encoded) if heads[i] and often[heads[i]] > 1 and e.predicted]
    keys = {i: rows[i].astype(">i4").tobytes() for i in order}
    order.sort(key=keys.__getitem__)
    common = [0] * (len(order) + 1)
    for at in range(1, len(order)):
        one, other = rows[order[at - 1]], rows[order[at]]
        if heads[order[at - 1]] == heads[order[at]]:
            most = min(len(one), len(other))
            differ = np.flatnonzero(one[:most] != other[:most])
            both = min(int(differ[0]) if len(differ) else most, most - 1)  # fewer than either has
            common[at] = both if both >= LEAST else 0
    for found in _divided([len(rows[i]) for i in order], common) if any(common) else ():
        for i in order[found.first : found.last]:
            made[i] = replace(made[i], shared=found.depth)
    return made


@dataclass(slots=True)
class _AlikeSet:
    """Neighbours in sorted order, from `first` up to `last`, that begin with the same `depth` tokens, and how the
    texts in it would be divided among smaller sets at least cost."""

    depth: int
    first: int
    last: int
    cost: float
    parts: list[_AlikeSet]


def _divided(lengths: Sequence[int], common: Sequence[int]) -> list[_AlikeSet]:
    """The sets that cost least; `common[i]` tokens are shared by the texts i - 1 and i, 0 at both ends. Sets form
    a tree, walked from the leaves to the root: one is taken whole where that costs less than the best of its
    parts."""
    before = np.concatenate([[0], np.cumsum(lengths)])
    open_sets: list[_AlikeSet] = [_AlikeSet(0, 0, 0, 0.0, [])]
    for end in range(1, len(lengths) + 1):
        first, cost, parts = end - 1, float(lengths[end - 1]), list[_AlikeSet]()
        while open_sets[-1].depth > common[end]:
            own = open_sets.pop()
            own.cost += cost
            own.parts += parts
            first, cost, parts = own.first, own.cost, own.parts
            whole = own.depth + float(before[end] - before[first]) - own.depth * (end - first)
            if whole <= GAIN * cost:
                cost, parts = whole, [_AlikeSet(own.depth, first, end, whole, [])]
        if open_sets[-1].depth == common[end]:
            open_sets[-1].cost += cost
            open_sets[-1].parts += parts
        else:
            open_sets.append(_AlikeSet(common[end], first, end, cost, parts))
    return open_sets[0].parts


def pack_alike(encoded: Sequence[Encoded], budget: int) -> list[tuple[int, ...]]:
    """Batches as `tokens.pack` makes them, with texts that share a beginning apart from the others. A set that
    fits into a batch stays whole, others of about the same beginning beside it; one that does not fills batches of
    its own."""
    sets: dict[tuple[int, bytes], list[int]] = {}
    rest = [0] * len(encoded)
    for i, e in enumerate(encoded):
        if e.predicted and e.shared:
            row = np.concatenate([e.prefix, e.tokens])[: e.shared]
            sets.setdefault((e.shared, row.tobytes()), []).append(i)
        else:
            rest[i] = e.length if e.predicted else 0
    batches: list[tuple[int, ...]] = []
    rows: list[int] = []
    depths: list[int] = []

    def fits(shared: int, found: Sequence[int]) -> bool:
        every = [*rows, *found]
        longest = max(encoded[i].length for i in every)
        cost = len(every) * (longest - shared) + (len(depths) + 1) * shared
        near = not depths or shared >= _NEAR * depths[0]
        return near and cost <= budget and len(every) * longest <= WIDTH * budget

    for (shared, _), found in sorted(sets.items(), key=lambda one: (-one[0][0], one[1][0])):
        if rows and not fits(shared, found):
            batches.append(tuple(rows))
            rows, depths = [], []
        if fits(shared, found):
            rows += found
            depths.append(shared)
            continue
        longest = max(encoded[i].length for i in found)
        room = max(1, WIDTH * budget // longest)  # rows
        for some in pack([encoded[i].length - shared for i in found], budget):
            own = [found[i] for i in some]
            batches += [tuple(own[start : start + room]) for start in range(0, len(own), room)]
    return batches + ([tuple(rows)] if rows else []) + pack(rest, budget)
