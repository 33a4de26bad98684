"""What can be done to a text before a model reads it, by the expression a `View` carries: a share of it disturbed at
random (typing errors, dropped words, spaces in the wrong place), lower case, underscores, and copies in which a model
replaced words.

What is disturbed depends on the text, the seed and the kind alone, so the same text is always disturbed
alike: on its own, in any batch, on any machine.

A new rewrite is one new file in this folder: a class under `@rewrites.add(name)`, or, where letters or words
are disturbed at random, a plain function under `@disturbance(name)`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pretrace.registry import Registry, require
from pretrace.registry import rewrites as rewrites  # who asks for a rewrite finds them here
from pretrace.types import Proposer

Change = Callable[[str, float, "np.random.Generator"], str]
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
        return [(self._disturbed(text),) for text in texts]

    def _disturbed(self, text: str) -> str:
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


def _drawn(rng: np.random.Generator, number: int, share: float) -> npt.NDArray[np.int64]:
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
def _typos(text: str, share: float, rng: np.random.Generator) -> str:
    """A share of the Latin letters replaced by one beside it on an English keyboard, in the same case."""
    places = [i for i, character in enumerate(text) if character.lower() in BESIDE]
    if not places:
        return text
    characters = list(text)
    for k in _drawn(rng, len(places), share).tolist():
        meant = characters[places[k]]
        near = BESIDE[meant.lower()]
        hit = near[int(rng.integers(len(near)))]
        characters[places[k]] = hit.upper() if meant.isupper() else hit
    return "".join(characters)


@disturbance("deletion")
def _deletion(text: str, share: float, rng: np.random.Generator) -> str:
    """The text without a share of its words, each with the space before it; one word at least stays."""
    words = re.findall(r"\s*\S+", text)
    if len(words) < 2:
        return text
    before = text[: len(text) - len(text.lstrip())]
    after = text[len(text.rstrip()) :]
    gone = set(_drawn(rng, len(words), share)[: len(words) - 1].tolist())
    kept = [word for i, word in enumerate(words) if i not in gone]
    return before + "".join(kept).lstrip() + after


_SPACE = re.compile(r"(?<=\S) (?=\S)")
_INSIDE = re.compile(r"[^\W_]{2,}")


@disturbance("whitespace")
def _whitespace(text: str, share: float, rng: np.random.Generator) -> str:
    """A share of the single spaces between words taken out, and one put inside a share of the words."""
    spaces = [found.start() for found in _SPACE.finditer(text)]
    words = [found.span() for found in _INSIDE.finditer(text)]
    characters = list(text)
    if spaces:
        for k in _drawn(rng, len(spaces), share).tolist():
            characters[spaces[k]] = ""
    if words:
        for k in _drawn(rng, len(words), share).tolist():
            start, end = words[k]
            place = int(rng.integers(start + 1, end))
            characters[place] = " " + characters[place]
    return "".join(characters)


# Forms of a text: as it stands, in lower case, with underscores, and copies in which a model replaced words.


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


_FEWEST_CAPITALS = 0.001
"""Share of the characters of a corpus below which lower-casing changes next to nothing: English prose has 30
times as many."""


@rewrites.add("lower")
@dataclass(frozen=True)
class Lower:
    """The text in lower case; no form at all of a text without a letter that has two cases, as in Chinese."""

    count = 1
    formless = "no letter of it has an upper and a lower case, so that lower-casing means nothing"

    def __call__(self, texts: Sequence[str], proposer: Proposer | None, /) -> list[tuple[str, ...]]:
        return [(text.lower(),) if _has_case(text) else () for text in texts]

    def refusal(self, texts: Sequence[str], /) -> str:
        """Why lower-casing these texts is meaningless as a whole; "" where it is not."""
        if not any(map(_has_case, texts)):
            return "compares a text with its lower-cased self, and no letter of the texts has two cases, as in Chinese"
        visible = sum(len(part) for text in texts for part in text.split())
        capitals = 0
        for text in texts:
            capitals += sum(map(str.isupper, text))
            if capitals >= _FEWEST_CAPITALS * visible:
                return ""
        return (
            "compares a text with its lower-cased self, and lower-casing would change only "
            f"{capitals:,} of the {visible:,} characters of the texts"
        )


def _has_case(text: str) -> bool:
    """Whether any letter has an upper and a lower case.

    >>> _has_case("LED灯"), _has_case("灯具 25")
    (True, False)
    """
    return text.lower() != text.upper()


@disturbance("underscore")
def _underscore(text: str, share: float, rng: np.random.Generator) -> str:
    """A share of the words with underscores for the single spaces around them: "the_railway_reached it"."""
    words = [found.span() for found in re.finditer(r"\S+", text)]
    words = [(a, b) for a, b in words if text[a - 1 : a] == " " or text[b : b + 1] == " "]
    if not words:
        return text
    characters = list(text)
    for k in _drawn(rng, len(words), share).tolist():
        start, end = words[k]
        for place in (start - 1, end):
            if 0 <= place < len(text) and text[place] == " ":
                characters[place] = "_"
    return "".join(characters)


@rewrites.add("plain")
@dataclass(frozen=True)
class _PlainForm:
    """The text as it stands."""

    count = 1

    def __call__(self, texts: Sequence[str], proposer: Proposer | None, /) -> list[tuple[str, ...]]:
        return [(text,) for text in texts]


@rewrites.add("after")
@dataclass(frozen=True)
class After(_PlainForm):
    """The text as it stands, read behind another one, whose tokens are not predicted; "" for one not known yet."""

    text: str = ""

    @property
    def name(self) -> str:
        """The expression that makes this rewrite, for a `View`."""
        return f"after({self.text!r})"


@disturbance("case")
def _case(text: str, share: float, rng: np.random.Generator) -> str:
    """A share of the letters turned from lower to upper case or back."""
    swapped = [character.swapcase() for character in text]
    # "ß" becomes two letters in upper case: what grows is left alone
    places = [i for i, (a, b) in enumerate(zip(text, swapped, strict=True)) if a != b and len(b) == 1]
    if not places:
        return text
    characters = list(text)
    for k in _drawn(rng, len(places), share).tolist():
        characters[places[k]] = swapped[places[k]]
    return "".join(characters)
