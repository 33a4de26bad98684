"""Words of texts in any script, and how many of them two texts share.

Words are runs of letters and digits in lower case; in scripts without spaces a character is a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np
import numpy.typing as npt

UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3040-\u30ff"  # Japanese syllables
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters
)
"""Characters of scripts that are written without spaces, for a character class of a regular expression."""
WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")
"""A run of letters and digits, or one character of a script that is written without spaces."""


RUN = 5
"""Words of a run that counts: shorter ones are common in any two texts of one language."""
_ALONE = "぀-ヿ㐀-䶿一-鿿"  # of Japanese and Chinese, written without spaces: each sign counts as a word
_WORD = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]+")

_Grams = frozenset[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Worded:
    """The words of a text in lower case, and where each stands: characters [start, end)."""

    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, text: str) -> Worded:
        """The words of a text: letters and digits in a row, without punctuation."""
        found = list(_WORD.finditer(text))
        return cls(tuple(one.group().lower() for one in found), tuple(one.span() for one in found))

    @property
    def grams(self) -> _Grams:
        """All runs of `RUN` words."""
        return frozenset(zip(*(self.words[i:] for i in range(RUN)), strict=False))


def covered(text: Worded, others: Iterable[_Grams]) -> npt.NDArray[np.bool_]:
    """Which words of a text lie in a run of `RUN` words or more that stands in one of the others, bool [words]."""
    known: set[tuple[str, ...]] = set().union(*others)
    return in_runs(text.words, known, RUN)


def in_runs(items: Sequence[Any], known: AbstractSet[tuple[Any, ...]], size: int) -> npt.NDArray[np.bool_]:
    """Which items lie in a run of so many that is known, bool [items]."""
    found = np.zeros(len(items), dtype=np.bool_)
    for start in range(len(items) - size + 1):
        if tuple(items[start : start + size]) in known:
            found[start : start + size] = True
    return found


def share_covered(text: Worded, others: Iterable[_Grams]) -> float:
    """The share of a text's words that `covered` finds; 0 for a text without words.

    >>> text = Worded.of("One two three four five. Six")
    >>> round(share_covered(text, [Worded.of("and one, two, three: four five!").grams]), 3)
    0.833
    """
    found = covered(text, others)
    return float(found.mean()) if len(found) else 0.0


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


def common_runs(text: str, others: Iterable[_Grams]) -> list[tuple[int, int]]:
    """Where in the text the runs stand that `covered` finds: characters [start, end), in order."""
    worded = Worded.of(text)
    found = covered(worded, others)
    runs: list[tuple[int, int]] = []
    for i, (start, end) in enumerate(worded.spans):
        if found[i]:
            start = runs.pop()[0] if i and found[i - 1] else start
            runs.append((start, end))
    return runs
