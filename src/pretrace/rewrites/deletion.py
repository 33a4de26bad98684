"""Words left out."""

from __future__ import annotations

import re

import numpy as np

from pretrace.rewrites.disturbing import disturbance, drawn


@disturbance("deletion")
def deletion(text: str, share: float, rng: np.random.Generator) -> str:
    """The text without a share of its words, each with the space before it; one word at least stays."""
    words = re.findall(r"\s*\S+", text)
    if len(words) < 2:
        return text
    before = text[: len(text) - len(text.lstrip())]
    after = text[len(text.rstrip()) :]
    gone = set(drawn(rng, len(words), share)[: len(words) - 1].tolist())
    kept = [word for i, word in enumerate(words) if i not in gone]
    return before + "".join(kept).lstrip() + after
