"""Words of texts in any script, and how many of them two texts share.

Words are runs of letters and digits in lower case; in scripts without spaces a character is a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3040-\u30ff"  # Japanese syllables
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters
)
"""Characters of scripts that are written without spaces, for a character class of a regular expression."""
WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")
"""A run of letters and digits, or one character of a script that is written without spaces."""


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text in lower case; in scripts without spaces each character is one.

    >>> words_of("Don't panic: 今日")
    ('don', 't', 'panic', '今', '日')
    """
    return tuple(WORD.findall(text.lower()))


def shared_words(pairs: Iterable[tuple[str, str]]) -> float | None:
    """The mean Jaccard index of the words of two texts that belong together; None without a pair that has words.

    >>> shared_words([("a b c", "a b d"), ("", "")])
    0.5
    """
    sets = [(set(words_of(one)), set(words_of(two))) for one, two in pairs]
    found = [len(one & two) / len(one | two) for one, two in sets if one | two]
    return float(np.mean(found)) if found else None
