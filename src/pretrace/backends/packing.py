"""Which texts go through the model together: sorted by length, packed by a budget of tokens."""

from __future__ import annotations

from collections.abc import Sequence


def pack(lengths: Sequence[int], budget: int) -> list[tuple[int, ...]]:
    """Batches of indices, longest texts first, such that rows × longest row stays within `budget` tokens.

    Every index with a length above 0 is in exactly one batch; a text longer than the budget goes alone.
    The longest come first, so that a run that will not fit into memory says so at once.

    >>> pack([3, 9, 0, 8, 3], budget=16)
    [(1,), (3, 0), (4,)]
    """
    order = sorted((i for i, n in enumerate(lengths) if n > 0), key=lambda i: (-lengths[i], i))
    batches: list[tuple[int, ...]] = []
    batch: list[int] = []
    for index in order:
        if batch and (len(batch) + 1) * lengths[batch[0]] > budget:
            batches.append(tuple(batch))
            batch = []
        batch.append(index)
    if batch:
        batches.append(tuple(batch))
    return batches
