"""Typing errors."""

from __future__ import annotations

import numpy as np

from pretrace.rewrites.disturbing import disturbance, drawn

_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


def _beside() -> dict[str, str]:
    """The letters around each letter of an English keyboard, whose rows are each shifted by about half a key."""
    at = {
        key: (column + shift, row)
        for row, (keys, shift) in enumerate(zip(_ROWS, (0.0, 0.25, 0.75), strict=True))
        for column, key in enumerate(keys)
    }
    return {
        key: "".join(other for other, (u, v) in at.items() if 0 < (x - u) ** 2 + (y - v) ** 2 < 1.7)
        for key, (x, y) in at.items()
    }


BESIDE = _beside()
"""Letters a finger may hit instead, by the letter that was meant."""


@disturbance("typos")
def typos(text: str, share: float, rng: np.random.Generator) -> str:
    """A share of the Latin letters replaced by one beside it on an English keyboard, in the same case."""
    places = [i for i, character in enumerate(text) if character.lower() in BESIDE]
    if not places:
        return text
    characters = list(text)
    for k in drawn(rng, len(places), share).tolist():
        meant = characters[places[k]]
        near = BESIDE[meant.lower()]
        hit = near[int(rng.integers(len(near)))]
        characters[places[k]] = hit.upper() if meant.isupper() else hit
    return "".join(characters)
