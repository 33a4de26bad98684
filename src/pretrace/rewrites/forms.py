"""Forms of a text: as it stands, in lower case, with underscores, and copies in which a model replaced words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pretrace.registry import require, rewrites
from pretrace.rewrites.disturbing import disturbance, drawn
from pretrace.types import Proposer


@rewrites.add("neighbors")
@dataclass(frozen=True)
class Neighbors:
    """`m` copies of the text in which a model replaced about `share` of the tokens."""

    m: int = 25
    share: float = 0.15
    seed: int = 0

    def __post_init__(self) -> None:
        require(self.m >= 1, f"neighbor: m must be at least 1, found {self.m}.")
        require(0 < self.share <= 1, f"neighbor: share must be above 0 and at most 1, found {self.share}.")
        require(self.seed >= 0, f"neighbor: seed must be 0 or more, found {self.seed}.")

    @property
    def name(self) -> str:
        """The expression that makes this rewrite, for a `View`."""
        return f"neighbors(m={self.m}, share={self.share}, seed={self.seed})"

    @property
    def count(self) -> int:
        """So many forms of each text."""
        return self.m

    def __call__(self, texts: Sequence[str], proposer: Proposer | None, /) -> list[tuple[str, ...]]:
        assert proposer is not None  # looked at before any model is asked
        return proposer.propose(texts, number=self.m, share=self.share, seed=self.seed)


FEWEST_CAPITALS = 0.001
"""Share of the characters of a corpus below which lower-casing changes next to nothing: English prose has 30
times as many."""


@rewrites.add("lower")
@dataclass(frozen=True)
class Lower:
    """The text in lower case; no form at all of a text without a letter that has two cases, as in Chinese."""

    count = 1
    formless = "no letter of it has an upper and a lower case, so that lower-casing means nothing"

    def __call__(self, texts: Sequence[str], proposer: Proposer | None, /) -> list[tuple[str, ...]]:
        return [(text.lower(),) if has_case(text) else () for text in texts]

    def refusal(self, texts: Sequence[str], /) -> str:
        """Why lower-casing these texts is meaningless as a whole; "" where it is not."""
        if not any(map(has_case, texts)):
            return "compares a text with its lower-cased self, and no letter of the texts has two cases, as in Chinese"
        visible = sum(len(part) for text in texts for part in text.split())
        capitals = 0
        for text in texts:
            capitals += sum(map(str.isupper, text))
            if capitals >= FEWEST_CAPITALS * visible:
                return ""
        return (
            "compares a text with its lower-cased self, and lower-casing would change only "
            f"{capitals:,} of the {visible:,} characters of the texts"
        )


def has_case(text: str) -> bool:
    """Whether any letter has an upper and a lower case.

    >>> has_case("LED灯"), has_case("灯具 25")
    (True, False)
    """
    return text.lower() != text.upper()


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


@rewrites.add("plain")
@dataclass(frozen=True)
class Plain:
    """The text as it stands."""

    count = 1

    def __call__(self, texts: Sequence[str], proposer: Proposer | None, /) -> list[tuple[str, ...]]:
        return [(text,) for text in texts]


@rewrites.add("after")
@dataclass(frozen=True)
class After:
    """The text as it stands, read behind another one, whose tokens are not predicted; "" for one not known yet."""

    text: str = ""

    count = 1

    @property
    def name(self) -> str:
        """The expression that makes this rewrite, for a `View`."""
        return f"after({self.text!r})"

    def __call__(self, texts: Sequence[str], proposer: Proposer | None, /) -> list[tuple[str, ...]]:
        return [(text,) for text in texts]


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


def readable(text: str) -> str:
    """The text with lone surrogates, which no tokenizer takes, replaced by U+FFFD.

    >>> readable("a\\ud800b")
    'a���b'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text
