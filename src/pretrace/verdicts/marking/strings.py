"""Random strings that already stand in texts: hashes, UUIDs, and what a pattern of the user's finds."""

from __future__ import annotations

import hashlib
import re
import string
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pretrace.errors import ExpressionError
from pretrace.types import Corpus, Text

FEWEST_CHARACTERS = 6
"""A string with fewer different characters is no random one."""
TRIES = 200
"""Draws for one string of the same format, before it is given up."""
_START, _END = r"(?:(?<![0-9A-Za-z])|(?<=\b0[xX]))", r"(?![0-9A-Za-z])"
_UUID = re.compile(
    r"(?<![0-9A-Za-z-])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9A-F]{8}(?:-[0-9A-F]{4}){3}-[0-9A-F]{12})"
    r"(?![0-9A-Za-z-])"
)
_HEX = re.compile(rf"{_START}(?:[0-9a-f]+|[0-9A-F]+){_END}")
_LENGTHS = (32, 40, 64)
_LOWER, _UPPER = "0123456789abcdef", "0123456789ABCDEF"
_BESIDE = 1000
"""Characters on either side that a pattern may look at when it must find a new string."""
_CLASSES = (string.digits, string.ascii_lowercase, string.ascii_uppercase)


@dataclass(frozen=True, slots=True)
class Found:
    """A string, the text that holds it first, what stands before it there, and others of its format. `id` names it."""

    id: str
    text: str
    kind: str
    context: str
    string: str
    alternatives: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Format:
    """How a string is drawn anew: for each character the ones that may stand there, and what the whole must pass."""

    kind: str
    characters: tuple[str, ...]
    accepts: Callable[[str], bool]

    def drawn(self, rng: np.random.Generator) -> str | None:
        """A string of this format, all that pass being equally likely; None where too few pass."""
        sizes = [len(one) for one in self.characters]
        for _ in range(TRIES):
            places = rng.integers(sizes).tolist()
            made = "".join(one[place] for one, place in zip(self.characters, places, strict=True))
            if self.accepts(made):
                return made
        return None


def random_strings(
    corpus: Corpus, patterns: Sequence[str], *, alternatives: int, context: int, seed: int
) -> tuple[tuple[Found, ...], dict[str, int]]:
    """The random strings of the texts with fresh alternatives each, and how many were left out for which reason.

    A string counts once, where it stands first. Alternatives depend on the seed and the string alone: were they the
    same for all strings, the tests of many collections would err together.
    """
    compiled, left = compiled_patterns(patterns), Counter[str]()
    seen: set[str] = set()
    found: list[Found] = []
    for text in corpus.texts:
        for start, made, form in _formats(text, compiled, left):
            if made in seen:
                left["found again"] += 1
                continue
            seen.add(made)
            others = tuple(_others(form, alternatives, _generator(made, seed)))
            if len(others) < alternatives:
                left["too few other strings of their format"] += 1
                continue
            before = text.text[max(0, start - context) : start]
            name = f"{text.id}@{start}"
            found.append(Found(name, text.id, form.kind, before, made, others))
    return tuple(found), dict(left)


def _generator(made: str, seed: int) -> np.random.Generator:
    digest = hashlib.sha256(f"alternatives {seed} {made}".encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def compiled_patterns(patterns: Sequence[str]) -> list[re.Pattern[str]]:
    """The patterns, compiled; ExpressionError for one that is none, or that finds the empty string."""
    made = []
    for pattern in patterns:
        try:
            one = re.compile(pattern)
        except re.error as error:
            raise ExpressionError(f"--pattern {pattern!r} is no regular expression: {error}.") from None
        if one.fullmatch(""):
            raise ExpressionError(f"--pattern {pattern!r} finds the empty string: say how long a string is.")
        made.append(one)
    return made


def _formats(
    text: Text, patterns: Sequence[re.Pattern[str]], left: Counter[str]
) -> Iterator[tuple[int, str, Format]]:
    """The strings of one text in their order, each with its place and format."""
    rows = _hexadecimals(text.text, left)
    taken = np.zeros(len(text.text) + 1, dtype=bool)
    for start, (made, _) in rows.items():
        taken[start : start + len(made)] = True
    for pattern in patterns:
        for found in pattern.finditer(text.text):
            if found[0] and not taken[found.start() : found.end()].any():
                taken[found.start() : found.end()] = True
                rows[found.start()] = found[0], _of_pattern(text.text, found, pattern)
    for start, (made, form) in sorted(rows.items()):
        if not form.accepts(made):
            left["strings of fewer than 6 different characters"] += 1
        elif all(len(one) == 1 for one in form.characters):
            left["strings without a letter or digit that may vary"] += 1
        else:
            yield start, made, form


def _hexadecimals(text: str, left: Counter[str]) -> dict[int, tuple[str, Format]]:
    """The hashes and UUIDs of a text by their place."""
    rows: dict[int, tuple[str, Format]] = {}
    for found in _UUID.finditer(text):
        if _is_version_4(found[0].replace("-", "")):
            rows[found.start()] = found[0], _hexadecimal(found[0], "UUID of version 4")
        else:
            left["UUIDs of other versions"] += 1
    for found in _HEX.finditer(text):  # no part of a UUID is as long
        if len(found[0]) in _LENGTHS and not found[0].isdigit():
            rows[found.start()] = found[0], _hexadecimal(found[0], f"{len(found[0])} hexadecimal digits")
    return rows


def _others(form: Format, number: int, rng: np.random.Generator) -> Iterator[str]:
    """Fresh strings of the format; fewer where too few pass."""
    for _ in range(number):
        made = form.drawn(rng)
        if made is None:
            return
        yield made


def _hexadecimal(found: str, kind: str) -> Format:
    """The format of a hash or UUID: one case, hyphens where they are. What a UUID says of its version stays, since it
    is not random; a UUID may stand without hyphens."""
    digits = _UPPER if any(c in string.ascii_uppercase for c in found) else _LOWER
    characters = ["-" if c == "-" else digits for c in found]
    plain = [place for place, c in enumerate(found) if c != "-"]
    if len(plain) == 32 and _is_version_4(found.replace("-", "")):
        for place in (plain[12], plain[16]):
            characters[place] = found[place]
    return Format(kind, tuple(characters), lambda made: _varied(made) and not made.replace("-", "").isdigit())


def _is_version_4(digits: str) -> bool:
    return digits[12] == "4" and digits[16] in "89abAB"


def _of_pattern(text: str, found: re.Match[str], pattern: re.Pattern[str]) -> Format:
    """The format of a string that a pattern found: each letter or digit from its own class, as far as the pattern takes
    it there, all else as it is. The pattern must find the new string in the same place, so that all strings it can find
    are equally likely where each character may vary by itself."""
    start, own = found.start(), found[0]
    first = max(0, start - _BESIDE)
    before, after = text[first:start], text[found.end() : found.end() + _BESIDE]

    def finds(made: str) -> bool:
        again = pattern.match(f"{before}{made}{after}", len(before))
        return again is not None and again.end() == len(before) + len(made)

    characters = []
    for place, character in enumerate(own):
        some = next((one for one in _CLASSES if character in one), character)
        kept = [one for one in some if finds(f"{own[:place]}{one}{own[place + 1 :]}")]
        characters.append("".join(kept) or character)
    return Format(f"pattern {pattern.pattern}", tuple(characters), lambda made: _varied(made) and finds(made))


def _varied(made: str) -> bool:
    return len(set(made)) >= FEWEST_CHARACTERS
