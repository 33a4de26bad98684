"""Which rows of the features go where: pairs, halves, training and test."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from pretrace.errors import TextsError
from pretrace.types import Features

Rows = npt.NDArray[np.int64]

FEWEST = 10
"""Pieces on either side that a procedure takes; fewer leave nothing to learn from or to test."""


def check(features: Features) -> None:
    """TextsError unless both sides have enough pieces, and as many of each where they are paired."""
    n, m = len(features.suspect), len(features.heldout)
    if min(n, m) < FEWEST:
        raise TextsError(
            f"dataset inference needs at least {FEWEST} pieces of text on each side, and hundreds to see anything: "
            f"found {n} suspect and {m} held-out ones; give more texts, or cut them into more snippets."
        )
    if features.paired and n != m:
        raise TextsError(f"paired texts need as many on each side, found {n} suspect and {m} held-out ones.")


def halves(features: Features, rng: np.random.Generator) -> Iterator[tuple[Rows, Rows]]:
    """(suspect rows, held-out rows) of the training half, then of the test half; row i of one goes with row i
    of the other.

    Pairs stay together. Texts without a partner get one at random, and what is over on the larger side is
    left out this time.
    """
    n, m = len(features.suspect), len(features.heldout)
    suspect = rng.permutation(n)
    heldout = suspect if features.paired else rng.permutation(m)
    pairs = min(n, m)
    for part in (slice(0, pairs // 2), slice(pairs // 2, pairs)):
        yield suspect[:pairs][part], heldout[:pairs][part]


def counted(features: Features) -> int:
    """How many documents stand behind both sides."""
    return len({*features.suspect_documents, *features.heldout_documents})
