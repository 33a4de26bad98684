"""Long sequences cut to the length a model reads, so that all of a text is trained on."""

from __future__ import annotations

from collections.abc import Sequence


def windows(tokens: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Consecutive windows of at most `max_tokens` (2 or more) tokens; none where there is nothing to predict.

    Each begins with the last token of the one before, so every token but the very first is predicted
    exactly once.

    >>> windows([1, 2, 3, 4, 5, 6], 4)
    [[1, 2, 3, 4], [4, 5, 6]]
    """
    return [list(tokens[i : i + max_tokens]) for i in range(0, len(tokens) - 1, max_tokens - 1)]
