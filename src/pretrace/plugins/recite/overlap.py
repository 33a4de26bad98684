"""How much of a text's words stands in others, in runs, and how far two texts lie apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.statistics.words import RUN, Grams, Worded, in_runs


def covered(text: Worded, others: Iterable[Grams]) -> npt.NDArray[np.bool_]:
    """Which words of a text lie in a run of `RUN` words or more that stands in one of the others, bool [words]."""
    known: set[tuple[str, ...]] = set().union(*others)
    return in_runs(text.words, known, RUN)


def share_covered(text: Worded, others: Iterable[Grams]) -> float:
    """The share of a text's words that `covered` finds; 0 for a text without words.

    >>> text = Worded.of("One two three four five. Six")
    >>> round(share_covered(text, [Worded.of("and one, two, three: four five!").grams]), 3)
    0.833
    """
    found = covered(text, others)
    return float(found.mean()) if len(found) else 0.0


def common_runs(text: str, others: Iterable[Grams]) -> list[tuple[int, int]]:
    """Where in the text the runs stand that `covered` finds: characters [start, end), in order."""
    worded = Worded.of(text)
    found = covered(worded, others)
    runs: list[tuple[int, int]] = []
    for i, (start, end) in enumerate(worded.spans):
        if found[i]:
            start = runs.pop()[0] if i and found[i - 1] else start
            runs.append((start, end))
    return runs


def longest_run(one: Sequence[Any], other: Sequence[Any]) -> int:
    """The length of the longest run of items that stands in both.

    >>> longest_run("a b c d".split(), "x b c y".split())
    2
    """
    return SequenceMatcher(None, one, other, autojunk=False).find_longest_match().size


def edit_distance(one: str, other: str) -> int:
    """The fewest characters to put in, take out or replace that turn one text into the other (Levenshtein 1966).

    >>> edit_distance("kitten", "sitting")
    3
    """
    second = np.array([ord(c) for c in other], dtype=np.int64)
    places = np.arange(len(second) + 1)
    row = places.copy()
    for i, character in enumerate(one, 1):
        least = np.minimum(row[1:] + 1, row[:-1] + (second != ord(character)))
        # one more put in for every step to the right
        row = np.minimum.accumulate(np.concatenate([[i], least]) - places) + places
    return int(row[-1])
