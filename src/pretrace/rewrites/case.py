"""Letters in the other case."""

from __future__ import annotations

import numpy as np

from pretrace.rewrites.disturbing import disturbance, drawn


@disturbance("case")
def case(text: str, share: float, rng: np.random.Generator) -> str:
    """A share of the letters turned from lower to upper case or back."""
    swapped = [character.swapcase() for character in text]
    # "ß" becomes two letters in upper case: what grows is left alone
    places = [i for i, (a, b) in enumerate(zip(text, swapped, strict=True)) if a != b and len(b) == 1]
    if not places:
        return text
    characters = list(text)
    for k in drawn(rng, len(places), share).tolist():
        characters[places[k]] = swapped[places[k]]
    return "".join(characters)
