"""Underscores for spaces."""

from __future__ import annotations

import re

import numpy as np

from pretrace.rewrites.disturbing import disturbance, drawn


@disturbance("underscore")
def underscore(text: str, share: float, rng: np.random.Generator) -> str:
    """A share of the words with underscores for the single spaces around them: "the_railway_reached it"."""
    words = [found.span() for found in re.finditer(r"\S+", text)]
    words = [(a, b) for a, b in words if text[a - 1 : a] == " " or text[b : b + 1] == " "]
    if not words:
        return text
    characters = list(text)
    for k in drawn(rng, len(words), share).tolist():
        start, end = words[k]
        for place in (start - 1, end):
            if 0 <= place < len(text) and text[place] == " ":
                characters[place] = "_"
    return "".join(characters)
