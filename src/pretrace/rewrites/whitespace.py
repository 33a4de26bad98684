"""Spaces in the wrong place."""

from __future__ import annotations

import re

import numpy as np

from pretrace.rewrites.disturbing import disturbance, drawn

_SPACE = re.compile(r"(?<=\S) (?=\S)")
_INSIDE = re.compile(r"[^\W_]{2,}")


@disturbance("whitespace")
def whitespace(text: str, share: float, rng: np.random.Generator) -> str:
    """A share of the single spaces between words taken out, and one put inside a share of the words."""
    spaces = [found.start() for found in _SPACE.finditer(text)]
    words = [found.span() for found in _INSIDE.finditer(text)]
    characters = list(text)
    if spaces:
        for k in drawn(rng, len(spaces), share).tolist():
            characters[spaces[k]] = ""
    if words:
        for k in drawn(rng, len(words), share).tolist():
            start, end = words[k]
            place = int(rng.integers(start + 1, end))
            characters[place] = " " + characters[place]
    return "".join(characters)
