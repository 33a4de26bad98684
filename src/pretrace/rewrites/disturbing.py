"""Rewrites that disturb a share of a text at random: typing errors, dropped words, spaces in the wrong place.

What is disturbed depends on the text, the seed and the kind alone, so the same text is always disturbed
alike: on its own, in any batch, on any machine.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pretrace.registry import Registry, require, rewrites
from pretrace.types import Proposer

Change = Callable[[str, float, np.random.Generator], str]
"""The text with about a share of it disturbed; never nothing at all where there was something."""


@dataclass(frozen=True)
class Disturbance:
    """A rewrite that disturbs a share of each text, at places drawn anew for every text."""

    kind: str
    share: float
    seed: int
    change: Change

    count = 1

    def __post_init__(self) -> None:
        require(0 < self.share <= 1, f"{self.kind}: share must be above 0 and at most 1, found {self.share}.")
        require(self.seed >= 0, f"{self.kind}: seed must be 0 or more, found {self.seed}.")

    @property
    def name(self) -> str:
        """The expression that makes this rewrite, for a `View`."""
        return f"{self.kind}(share={float(self.share)}, seed={self.seed})"

    def __call__(self, texts: Sequence[str], proposer: Proposer | None, /) -> list[tuple[str, ...]]:
        return [(self.of(text),) for text in texts]

    def of(self, text: str) -> str:
        """One text, disturbed."""
        # "surrogatepass": a lone surrogate, which JSON can carry, has no UTF-8 form otherwise
        digest = hashlib.sha256(f"{self.kind}\0{text}".encode("utf-8", "surrogatepass")).digest()
        rng = np.random.default_rng([self.seed, *np.frombuffer(digest, dtype=np.uint32).tolist()])
        return self.change(text, self.share, rng)


disturbances: Registry[Disturbance] = Registry("disturbance", "pretrace.rewrites")
"""The same rewrites as `rewrites` has, and no others: what `perturbed` can be asked for."""


def disturbance(kind: str) -> Callable[[Change], Change]:
    """A decorator that registers a function of (text, share, rng) as the rewrite `kind(share=0.1, seed=0)`."""

    def register(change: Change) -> Change:
        def make(share: float = 0.1, seed: int = 0) -> Disturbance:
            return Disturbance(kind, share, seed, change)

        make.__doc__ = change.__doc__
        disturbances.add(kind)(make)
        rewrites.add(kind)(make)
        return change

    return register


def drawn(rng: np.random.Generator, number: int, share: float) -> npt.NDArray[np.int64]:
    """Which of `number` places are drawn: `share` of them, rounded, but at least one; in rising order."""
    count = min(number, max(1, round(share * number)))
    return np.sort(rng.choice(number, count, replace=False))


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
