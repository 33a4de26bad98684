"""Words of texts in any script: runs of letters and digits in lower case, or a character where no spaces are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
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

Grams = frozenset[tuple[str, ...]]


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
    def grams(self) -> Grams:
        """All runs of `RUN` words."""
        return frozenset(zip(*(self.words[i:] for i in range(RUN)), strict=False))


def in_runs(items: Sequence[Any], known: AbstractSet[tuple[Any, ...]], size: int) -> npt.NDArray[np.bool_]:
    """Which items lie in a run of so many that is known, bool [items]."""
    found = np.zeros(len(items), dtype=np.bool_)
    for start in range(len(items) - size + 1):
        if tuple(items[start : start + size]) in known:
            found[start : start + size] = True
    return found
