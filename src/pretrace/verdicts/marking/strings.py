"""Random strings that already stand in texts: hashes, UUIDs, and what a pattern of the user's finds.

A string counts as random only if nobody could have guessed a part of it from what stands around it. What is refused
is refused by rules that look at the string, the texts and the other strings, and at no model. The alternatives of a
string pass the same rules, so that a string that was drawn at random is one of its alternatives like any other.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import re
import string
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import regex

from pretrace.errors import ExpressionError
from pretrace.types import Corpus, Text

_FEWEST_CHARACTERS = 6
"""A string with fewer different characters is no random one."""
TRIES = 50
"""Rounds of draws for the alternatives of one string, before it is given up."""
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


FEWEST_BITS = 40
"""A string with fewer bits that vary (10 hexadecimal digits) may stand elsewhere by chance, or be chosen by hand."""
_ONCE_IN = 1000
"""A likeness that would come about by chance less often than once in so many strings is taken for none of chance."""
_FAMOUS_UUIDS = {
    "550e8400e29b41d4a716446655440000",
    "f47ac10b58cc4372a5670e02b2c3d479",
    "123e4567e89b42d3a456426614174000",
    "123e4567e89b42d3a456556642440000",
    "9b1deb4d3b7d4bad9bdd2b0d7b3dcb6d",
    "3fa85f6457174562b3fc2c963f66afa6",
    "936da01f9abd4d9d80c702af85c822a8",
    "109156be4fb041eab1b4efe1671c5836",
    "1b9d6bcdbbfd4b2d9b5dab8dfbbd4bed",
}
"""UUIDs of version 4 that documentation of libraries and standards prints as examples."""
_FAMOUS_INPUTS = """
hello world test foo bar baz abc password admin root user guest secret qwerty letmein welcome monkey dragon master
example sample data null none true false string text message key value token name email file
"""
"""Words whose hashes stand in many tutorials and lists of passwords."""


@dataclass(frozen=True, slots=True)
class FoundString:
    """A string, the text that holds it first, what stands before it there, and others of its format. `id` names it.

    `varies` are the places of the string that are drawn anew, and `choices` the characters that may stand there. The
    string and the others begin with `begun`."""

    id: str
    text: str
    kind: str
    context: str
    string: str
    alternatives: tuple[str, ...]
    varies: tuple[int, ...] = ()
    choices: tuple[str, ...] = ()
    begun: str = ""


@dataclass(frozen=True, slots=True)
class Format:
    """How a string is drawn anew: for each character the ones that may stand there, and what the whole must pass."""

    kind: str
    characters: tuple[str, ...]
    accepts: Callable[[str], bool]

    @property
    def bits(self) -> float:
        """How much may vary: the base-2 logarithm of the number of strings of this format."""
        return sum(math.log2(len(one)) for one in self.characters)

    def beginning(self, number: float) -> int:
        """How many first characters have so many values or more; all where none are enough."""
        return _until(self.characters, number)

    def ending(self, number: float) -> int:
        """How many last characters have so many values or more."""
        return _until(self.characters[::-1], number)

    @property
    def half(self) -> int:
        """How many first characters hold half of what may vary, or a little less."""
        bits = np.cumsum([math.log2(len(one)) for one in self.characters])
        return int(np.count_nonzero(bits <= self.bits / 2))

    def drawn(
        self, number: int, rng: np.random.Generator, refused: Callable[[str], str], begun: str = ""
    ) -> tuple[str, ...]:
        """So many strings of this format with that beginning, all equally likely; fewer where too few pass."""
        sizes = np.array([len(one) for one in self.characters])
        table = np.array([list(one.ljust(int(sizes.max()))) for one in self.characters])
        kept: list[str] = []
        for _ in range(TRIES):
            places = rng.integers(sizes, size=(number + 4, len(sizes)))
            for row in table[np.arange(len(sizes)), places]:
                made = begun + "".join(row.tolist())[len(begun) :]
                if self.accepts(made) and not refused(made):
                    kept.append(made)
            if len(kept) >= number:
                return tuple(kept[:number])
        return tuple(kept)


def random_strings(
    corpus: Corpus,
    patterns: Sequence[str],
    *,
    alternatives: int,
    context: int,
    seed: int,
    begun: bool = False,
) -> tuple[tuple[FoundString, ...], dict[str, int]]:
    """The random strings of the texts with fresh alternatives each, and how many were left out for which reason. Where
    they are `begun`, the alternatives begin as the string does, up to half of what may vary.

    A string counts once, where it stands first, in whatever spelling (case, hyphens). Alternatives depend on the seed
    and the string alone: were they the same for all strings, the tests of many collections would err together.
    """
    compiled, left = _compiled_patterns(patterns), Counter[str]()
    seen: set[str] = set()
    candidates: list[tuple[Text, int, str, Format, Callable[[str], str]]] = []
    for text in corpus.texts:
        around = _Around(text.text)
        for start, made, form in _formats(text, compiled, left):
            key = plain(made)
            if key in seen:
                left["found again"] += 1
                continue
            seen.add(key)
            refused = around.refusing(start, made, form, context)
            if why := refused(made) or around.known(made):
                left[why] += 1
            else:
                candidates.append((text, start, made, form, refused))
    shared = _Shared([(made, form) for _, _, made, form, _ in candidates])
    found: list[FoundString] = []
    for text, start, made, form, refused in candidates:
        if shared.by_another(made, form, own=made):
            left["sharing their beginning or end with another string"] += 1
            continue

        def passes(
            other: str, made: str = made, form: Format = form, first: Callable[[str], str] = refused
        ) -> str:
            return first(other) or ("shared" if shared.by_another(other, form, own=made) else "")

        head = made[: form.half] if begun else ""
        others = form.drawn(alternatives, _generator(made, seed), passes, head)
        if len(others) < alternatives:
            left["too few other strings of their format"] += 1
            continue
        before = text.text[max(0, start - context) : start]
        places = tuple(i for i, one in enumerate(form.characters) if len(one) > 1)
        choices = tuple(form.characters[i] for i in places)
        name = f"{text.id}@{start}"
        found.append(FoundString(name, text.id, form.kind, before, made, others, places, choices, head))
    return tuple(found), dict(left)


_PLAIN = str.maketrans(string.ascii_uppercase, string.ascii_lowercase, "-")


def plain(text: str) -> str:
    """A spelling without case and hyphens: two spellings of one UUID are one string."""
    return text.translate(_PLAIN)


def _until(characters: Sequence[str], number: float) -> int:
    values = 1.0
    for place, one in enumerate(characters, 1):
        values *= len(one)
        if values >= number:
            return place
    return len(characters)


class _Around:
    """The text around a string, without case and hyphens, and what in it tells a string beforehand."""

    def __init__(self, text: str) -> None:
        self.text, self.plain = text, plain(text)
        self._inputs: frozenset[bytes] | None = None

    def refusing(self, start: int, made: str, form: Format, context: int) -> Callable[[str], str]:
        """What says why a string of this format in this place is no random one; "" where it may be."""
        first = start - self.text.count("-", 0, start)
        before, after = self.plain[:first], self.plain[first + len(plain(made)) :].replace(plain(made), "\0")
        near = before[-context:] if context else ""
        few, many = (2 * _ONCE_IN * max(1, len(one)) for one in (near, before + after))
        sizes = (form.beginning(few), form.ending(few)), (form.beginning(many), form.ending(many))

        def why(other: str) -> str:
            for (head, tail), where in zip(sizes, ((near,), (before, after)), strict=True):
                parts = plain(other[:head]), plain(other[len(other) - tail :])
                if any(part in one for part in parts for one in where):
                    return "with a beginning or end that stands elsewhere in the text"
            return _telling(other, form)

        return why

    def known(self, made: str) -> str:
        """Why this very string is known or has a meaning; "" where it may be random. That one of its alternatives is,
        too, has no chance worth the time."""
        if plain(made) in _FAMOUS_UUIDS:
            return "known examples"
        if _spells(made):
            return "that spell a text"
        return "hashes of words" if self._hashed(made) else ""

    def _hashed(self, made: str) -> bool:
        digits = plain(made)
        if not _is_hash(digits):
            return False
        if self._inputs is None:
            parts = {
                *re.findall(r"\w+", self.text),
                *re.findall(r"[\"'“‘`]([^\"'”’`\n]{1,200})[\"'”’`]", self.text),
            }
            parts |= {line.strip() for line in self.text.splitlines()}
            self._inputs = frozenset().union(*(_hashes(part.encode("utf-8", "replace")) for part in parts))
        found = bytes.fromhex(digits)
        return found in self._inputs or found in _famous()


@dataclass(frozen=True, slots=True)
class _Shared:
    """The beginnings and ends of all strings of a test: so long that two random strings hardly share one."""

    strings: Sequence[tuple[str, Format]]
    counts: Counter[tuple[str, str]]

    def __init__(self, strings: Sequence[tuple[str, Format]]) -> None:
        object.__setattr__(self, "strings", strings)
        counts = Counter[tuple[str, str]]()
        for made, form in strings:
            counts.update(self._parts(made, form))
        object.__setattr__(self, "counts", counts)

    def by_another(self, made: str, form: Format, *, own: str) -> bool:
        """Whether another string than `own` begins or ends as this one does."""
        mine = set(self._parts(own, form))
        return any(self.counts[part] > (part in mine) for part in self._parts(made, form))

    def _parts(self, made: str, form: Format) -> list[tuple[str, str]]:
        number = 2.0 * _ONCE_IN * max(1, len(self.strings))
        head, tail = form.beginning(number), form.ending(number)
        parts = [("begins", plain(made[:head])), ("ends", plain(made[len(made) - tail :]))]
        return parts if head < len(made) else []


def _telling(made: str, form: Format) -> str:
    """Why a string by itself is no random one; "" where it may be."""
    digits = plain(made)
    if form.kind.startswith("32 ") and _is_uuid(digits) and not _is_version_4(digits):
        return "UUIDs of other versions"
    for side, first in ((made, form.characters[0]), (made[::-1], form.characters[-1])):
        run = next((i for i, one in enumerate(side) if one != side[0]), len(side))
        # as the first of the run may be any, it is the others that a random string hardly has
        if len(first) ** (run - 1) >= 2 * _ONCE_IN:
            return "with a run at the beginning or end that a random string hardly has"
    return ""


def _spells(made: str) -> bool:
    readings = []
    digits = made.replace("-", "")
    if len(digits) % 2 == 0 and re.fullmatch("[0-9a-fA-F]+", digits):
        readings.append(bytes.fromhex(digits))
    if re.fullmatch(r"[0-9A-Za-z+/_-]+={0,2}", made):
        some = made.rstrip("=").replace("-", "+").replace("_", "/")
        with suppress(binascii.Error):
            readings.append(base64.b64decode(some[: len(some) // 4 * 4], validate=True))
    return any(len(one) >= 8 and all(32 <= byte < 127 for byte in one) for one in readings)


def hashes_of(strings: Sequence[FoundString], words: Iterable[str]) -> list[str]:
    """The ids of strings that are hashes of words."""
    wanted = {bytes.fromhex(plain(one.string)): one.id for one in strings if _is_hash(plain(one.string))}
    sizes = {len(one) for one in wanted}
    found = (made for word in words for made in _hashes(word.encode("utf-8", "replace"), sizes))
    return sorted({wanted[one] for one in found if one in wanted})


def _is_hash(digits: str) -> bool:
    return len(digits) in _LENGTHS and _HEX.fullmatch(digits) is not None


def _hashes(content: bytes, sizes: Container[int] = (16, 20, 32)) -> list[bytes]:
    """The hashes of a content that people print, of 16, 20 and 32 bytes, git's among them."""
    made = []
    for name, size in (("md5", 16), ("sha1", 20), ("sha256", 32)):
        if size in sizes:
            made.append(hashlib.new(name, content, usedforsecurity=False).digest())
    if 20 in sizes:
        made.append(hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).digest())
    return made


@cache
def _famous() -> frozenset[bytes]:
    """The hashes of the empty string, of single bytes, of small numbers and of words in many tutorials."""
    words = [w for one in _FAMOUS_INPUTS.split() for w in (one, one.upper(), one.title())]
    said = (*words, "Hello World", "hello world", "Hello, World!", "Hello, world!", "Hello World!", "password1",
            "password123", "The quick brown fox jumps over the lazy dog")  # fmt: skip
    numbers = (
        [str(i) for i in range(10_000)] + ["12345678"[:n] for n in range(5, 9)] + ["123456789", "1234567890"]
    )
    inputs = [
        b"",
        b"tree 0\0",
        *(bytes([i]) for i in range(256)),
        *(one.encode() for one in (*said, *numbers)),
    ]
    letters = [bytes([i, j]) for i in range(97, 123) for j in range(97, 123)]
    zeros = [bytes(n) for n in (2, 4, 8, 16, 32, 64, 512, 1024, 4096)]
    every = [*inputs, *letters, *zeros]
    return frozenset().union(*(_hashes(one) for content in every for one in (content, content + b"\n")))


def _generator(made: str, seed: int) -> np.random.Generator:
    digest = hashlib.sha256(f"alternatives {seed} {made}".encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


_PATIENCE = 3.0
"""Seconds that a pattern may take for a text, and one more for every million characters of it."""


@dataclass(frozen=True, slots=True)
class UserPattern:
    """A pattern of the user's. It is searched with a time limit: one such as `(a|a)*b` takes longer than the universe
    lasts for a few thousand letters. ExpressionError where the limit is reached."""

    pattern: str
    compiled: regex.Pattern[str]

    def finditer(self, text: str) -> Iterator[regex.Match[str]]:
        """What it finds in a text, one after the other."""
        try:
            yield from self.compiled.finditer(text, timeout=self._patience(text))
        except TimeoutError:
            raise self._slow() from None

    def match(self, text: str, start: int) -> regex.Match[str] | None:
        """What it finds at a place."""
        try:
            return self.compiled.match(text, start, timeout=self._patience(text))
        except TimeoutError:
            raise self._slow() from None

    def _patience(self, text: str) -> float:
        return _PATIENCE + len(text) / 1e6

    def _slow(self) -> ExpressionError:
        return ExpressionError(
            f"--pattern {self.pattern!r} takes too long: it repeats what repeats itself, and tries every way to divide "
            "a text. Write it without one repetition in another, such as [a-z]+ for ([a-z]+)+."
        )


_MOST_ELEMENTS = 100_000
"""Elements of a pattern whose repeats are written out, as regex does with the least number: 270 bytes each."""
_ELEMENT = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|\{(\d{1,20})(?:,\d*)?\}|.", re.DOTALL)


def _count_elements(pattern: str) -> int:
    sums, last = [0], 0
    for element in _ELEMENT.finditer(pattern):
        if element[0] == "(":
            sums.append(0)
        elif element[0] == ")" and len(sums) > 1:
            last = sums.pop()
            sums[-1] += last
        elif element[1]:
            sums[-1] += last * (int(element[1]) - 1)
            last *= int(element[1])
        else:
            last = last if element[0].isspace() else 1  # (?x) takes a repeat behind a space
            sums[-1] += 1
    return sum(sums)


def _compiled_patterns(patterns: Sequence[str]) -> list[UserPattern]:
    """The patterns, compiled; ExpressionError for one that is none, that repeats too often, or that finds the empty
    string."""
    made = []
    for pattern in patterns:
        if (elements := _count_elements(pattern)) > _MOST_ELEMENTS:
            raise ExpressionError(
                f"--pattern {pattern[:100]!r} has {elements:,} elements with its repeats written out, and "
                f"{_MOST_ELEMENTS:,} is the most: repeat less often."
            )
        try:
            one = regex.compile(pattern)
        except (regex.error, OverflowError, RecursionError, MemoryError, ValueError) as error:
            raise ExpressionError(f"--pattern {pattern!r} is no regular expression: {error}.") from None
        if one.fullmatch(""):
            raise ExpressionError(f"--pattern {pattern!r} finds the empty string: say how long a string is.")
        made.append(UserPattern(pattern, one))
    return made


def _formats(
    text: Text, patterns: Sequence[UserPattern], left: Counter[str]
) -> Iterator[tuple[int, str, Format]]:
    """The strings of one text in their order, each with its place and format."""
    rows, taken = _hexadecimals(text.text, left)
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
        elif form.bits < FEWEST_BITS:
            left[f"strings with fewer than {FEWEST_BITS} bits that may vary"] += 1
        else:
            yield start, made, form


def _hexadecimals(
    text: str, left: Counter[str]
) -> tuple[dict[int, tuple[str, Format]], npt.NDArray[np.bool_]]:
    """The hashes and UUIDs of a text by their place, and which characters no pattern may take any more."""
    rows: dict[int, tuple[str, Format]] = {}
    taken = np.zeros(len(text) + 1, dtype=bool)
    for found in _UUID.finditer(text):
        taken[found.start() : found.end()] = True
        if _is_version_4(found[0].replace("-", "")):
            rows[found.start()] = found[0], _hexadecimal(found[0], "UUID of version 4")
        else:
            left["UUIDs of other versions"] += 1
    for found in _HEX.finditer(text):  # no part of a UUID is as long
        if len(found[0]) in _LENGTHS and not found[0].isdigit():
            taken[found.start() : found.end()] = True
            rows[found.start()] = found[0], _hexadecimal(found[0], f"{len(found[0])} hexadecimal digits")
    return rows, taken


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


def _is_uuid(digits: str) -> bool:
    return digits[12] in "12345678" and digits[16] in "89abAB"


def _of_pattern(text: str, found: regex.Match[str], pattern: UserPattern) -> Format:
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
    return len(set(made)) >= _FEWEST_CHARACTERS
