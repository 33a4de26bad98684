"""The languages of a collection, guessed text by text by py3langid, which needs no network and no model to be loaded.

Shares are of texts. A guess is for the eye, so that a stray language is seen before a test is made; no test uses it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

TEXTS_READ = 300
"""Texts that are looked at, spread evenly over the collection: about half a second of work."""
CHARACTERS_READ = 1000
"""Characters of each text that are looked at."""
UNSPOKEN = {"und": "unknown", "zxx": "none (numbers, markup)"}
"""Codes that are no languages, with what a page says: it was not told, or there is none."""
_SURE = 0.5


def languages(texts: Sequence[str]) -> tuple[dict[str, float], int]:
    """The share of each language, the largest first, and how many texts were looked at.

    Languages are codes of ISO 639 (`en`, `yue`), or those of `UNSPOKEN`.
    """
    step = max(1, -(-len(texts) // TEXTS_READ))
    chosen = texts[::step]
    found = Counter(_language(text[:CHARACTERS_READ]) for text in chosen)
    return {code: number / len(chosen) for code, number in found.most_common()}, len(chosen)


def _language(text: str) -> str:
    code, _ = _identifier().classify(text)
    return str(code)


@cache
def _identifier() -> LanguageIdentifier:
    """The model of py3langid, 4.5 MB, unpacked once a process."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True, min_confidence=_SURE)
