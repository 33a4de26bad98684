"""Random strings that stand in texts: does a model prefer them to fresh strings of their format?

A string counts as random only if nobody could have guessed a part of it from what stands around it. What is refused
is refused by rules that look at the string, the texts and the other strings, and at no model. The alternatives of a
string pass the same rules, so that a string that was drawn at random is one of its alternatives like any other.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import math
import re
import string
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from typing import Any, ClassVar

import numpy as np

from pretrace.backends.naming import called
from pretrace.backends.tokens import vocabulary_of
from pretrace.errors import ModelError, TextsError
from pretrace.plugins.marks.checking import ranks
from pretrace.registry import tests
from pretrace.results.wording import fill, listed, say, sentences_of
from pretrace.scoring.outlook import Watch
from pretrace.scoring.plan import Models
from pretrace.settings import option
from pretrace.statistics.permutation import randomisation_test, share_reached
from pretrace.types import Backend, Check, Corpus, Situation, Table, Text, Verdict, Written
from pretrace.verdicts import reading
from pretrace.verdicts.advise import FEWEST_STRINGS
from pretrace.verdicts.frame import RandomisationTest, Rows, TestDetails, TestWording, verdict, watched
from pretrace.verdicts.outcome import MOST_DOSE, word_check
from pretrace.verdicts.register import seed_of
from pretrace.verdicts.settings import ALONE, TEST, TestSettings

_FEWEST_CHARACTERS = 6
"""A string with fewer different characters is no random one."""
_UUIDS = (rf"{some}{{8}}(?:-{some}{{4}}){{3}}-{some}{{12}}" for some in ("[0-9a-f]", "[0-9A-F]"))
_HASHES = (f"{some}{{{length}}}" for some in ("[0-9a-f]", "[0-9A-F]") for length in (32, 40, 64))
_STRING = re.compile(
    rf"(?<![0-9A-Za-z-])(?:{'|'.join(_UUIDS)})(?![0-9A-Za-z-])"
    rf"|(?:(?<![0-9A-Za-z])|(?<=\b0[xX]))(?:{'|'.join(_HASHES)})(?![0-9A-Za-z])"
)
ALTERNATIVES = 19
"""Fresh strings that each string is compared with: a fixed number, so that nobody can try several."""
_ONCE_IN = 1000
"""A likeness that would come about by chance less often than once in so many strings is taken for none of chance."""
_RUN = 4
"""Equal digits at the beginning or end that a random string hardly has: 1 in 4,096, as the first may be any."""
_FAMOUS_UUIDS = frozenset(say("canaries.famous.uuids").split())
"""UUIDs of version 4 that documentation of libraries and standards prints as examples."""
_ELSEWHERE = "with a beginning or end that stands elsewhere in the text"
_PLAIN = str.maketrans(string.ascii_uppercase, string.ascii_lowercase, "-")


def _plain(text: str) -> str:
    """A spelling without case and hyphens: two spellings of one UUID are one string."""
    return text.translate(_PLAIN)


_APART = {place: None for place in range(128) if not chr(place).isalnum()}


def _spelled(text: str) -> str:
    """Letters and digits alone, without what stands between bytes ("ab:cd", "0xAB, 0xCD"): for a string that a text
    also writes in another way."""
    return _plain(text).translate(_APART).replace("0x", "").replace("x", "")


def _varied(made: str) -> bool:
    return len(set(made)) >= _FEWEST_CHARACTERS and not made.replace("-", "").isdigit()


@dataclass(frozen=True, slots=True)
class _FoundString:
    """A string in the text that holds it first, of which `whole` are the letters and digits and `first` its place
    there, what stands before it, its format (a `kind`, the `digits` of one case, the places that vary), and
    `alternatives` of this format. The string and these begin with `begun`; `id` names the text and its place there."""

    text_id: str
    id: str
    whole: str
    first: int
    string: str
    context: str
    kind: str
    digits: str
    varies: tuple[int, ...]
    alternatives: tuple[str, ...] = ()
    begun: str = ""

    @property
    def every(self) -> tuple[str, ...]:
        """The string, and the others."""
        return (self.string, *self.alternatives)

    @property
    def prompt(self) -> str:
        """What is continued: what stands before it, and its first half."""
        return self.context + self.begun

    def _edges(self, made: str, number: int) -> tuple[tuple[str, str], tuple[str, str]]:
        """The first and the last characters of a string of its format that have so many values or more, in one
        spelling."""
        digits = math.ceil(math.log(number, 16))
        first, last = made[: self.varies[digits - 1] + 1], made[self.varies[-digits] :]
        return ("begins", _plain(first)), ("ends", _plain(last))

    def _drawn(self, begun: str, number: int, rng: np.random.Generator) -> Iterator[str]:
        """Strings of its format with that beginning, all equally likely, of which about so many are wanted."""
        sizes = [16 if place in self.varies else 1 for place in range(len(self.string))]
        while True:
            for row in rng.integers(sizes, size=(number + 4, len(sizes))).tolist():
                every = zip(self.string, sizes, row, strict=True)
                made = "".join(self.digits[digit] if size > 1 else c for c, size, digit in every)
                yield begun + made[len(begun) :]

    def _refuses(self, other: str) -> str:
        """Why a string of its format in this place is no random one; "" where it may be."""
        own = _plain(self.string)
        before, after = self.whole[: self.first], self.whole[self.first + len(own) :].replace(own, "\0")
        near = before[-len(self.context) :] if self.context else ""
        for where in ((near,), (before, after)):
            edges = self._edges(other, 2 * _ONCE_IN * max(1, sum(map(len, where))))
            if any(part in some for _, part in edges for some in where):
                return _ELSEWHERE
        digits = _plain(other)
        if self.kind.startswith("32 ") and digits[12] in "1235678" and digits[16] in "89ab":
            return "UUIDs of other versions"
        if 1 in (len(set(other[:_RUN])), len(set(other[-_RUN:]))):
            return "with a run at the beginning or end that a random string hardly has"
        return ""


def _string_at(text: Text, whole: str, start: int, found: str, context: int) -> _FoundString | None:
    """A string with its format: hyphens and the version of a UUID, which is not random, stay as they are. None for a
    UUID of another version, and for a number."""
    places = [place for place, c in enumerate(found) if c != "-"]
    version = tuple(places[i] for i in (12, 16))
    is_version_4 = len(places) == 32 and found[version[0]] == "4" and found[version[1]] in "89abAB"
    if found.isdigit() or ("-" in found and not is_version_4):
        return None
    kind = "UUID of version 4" if "-" in found else f"{len(found)} hexadecimal digits"
    digits = "0123456789ABCDEF" if found != found.lower() else "0123456789abcdef"
    varies = tuple(place for place in places if not (is_version_4 and place in version))
    before = text.text[max(0, start - context) : start]
    first = len(_spelled(text.text[:start]))
    return _FoundString(text.id, f"{text.id}@{start}", whole, first, found, before, kind, digits, varies)


def random_strings(
    texts: Sequence[Text], *, alternatives: int = ALTERNATIVES, context: int, seed: int, begun: bool = False
) -> tuple[tuple[_FoundString, ...], Counter[str]]:
    """The random strings of the texts with fresh alternatives each, and how many were left out for which reason; those
    that are `begun` share half of what may vary. A string counts once, in whatever spelling. Alternatives depend on the
    seed and the string alone, lest the tests of many collections err together."""
    left = Counter[str]()
    candidates = list(_candidates_of(texts, context, left))
    # beginnings and ends so long that two random strings hardly share one
    values = 2 * _ONCE_IN * max(1, len(candidates))
    counts = Counter(end for one in candidates for end in one._edges(one.string, values))

    def accepted(one: _FoundString, other: str) -> bool:
        """Whether another string in its place is random, and begins and ends as no other string of the texts."""
        own = one._edges(one.string, values)
        alone = all(counts[end] <= (end in own) for end in one._edges(other, values))
        return alone and _varied(other) and not one._refuses(other)

    found = list[_FoundString]()
    for one in candidates:
        if not accepted(one, one.string):
            left["sharing their beginning or end with another string"] += 1
            continue
        head = one.string[: one.varies[len(one.varies) // 2]] if begun else ""
        digest = hashlib.sha256(f"alternatives {seed} {one.string}".encode()).digest()
        rng = np.random.default_rng(int.from_bytes(digest, "big"))
        drawn = filter(partial(accepted, one), one._drawn(head, alternatives, rng))
        found.append(replace(one, alternatives=tuple(itertools.islice(drawn, alternatives)), begun=head))
    return tuple(found), +left


def _candidates_of(texts: Sequence[Text], context: int, left: Counter[str]) -> Iterator[_FoundString]:
    """The strings of the texts that are random by themselves and what stands around them; counts those left out."""
    seen = set[str]()
    for text in texts:
        whole = _spelled(text.text)
        for match in _STRING.finditer(text.text):
            string, why = match[0], ""
            if (one := _string_at(text, whole, match.start(), string, context)) is None:
                left["UUIDs of other versions"] += "-" in string
                continue
            if not _varied(string):
                why = f"strings of fewer than {_FEWEST_CHARACTERS} different characters"
            elif _plain(string) in seen:
                why = "found again"
            seen.add(_plain(string))
            if not why and _stands_otherwise(string, text.text, whole):
                why = _ELSEWHERE
            if why := why or one._refuses(string) or _known(string, text.text):
                left[why] += 1
            else:
                yield one


def _stands_otherwise(made: str, text: str, whole: str) -> bool:
    """Whether its bytes stand in the text in base64, or in `whole`, its letters and digits, in the other order."""
    digest = bytes.fromhex(_plain(made))
    return digest[::-1].hex() in whole or base64.b64encode(digest).decode().rstrip("=") in text


def _known(made: str, text: str) -> str:
    """Why this very string is known or has a meaning, as a hash of parts of the text has; "" where it may be random."""
    if _plain(made) in _FAMOUS_UUIDS:
        return "known examples"
    digest = bytes.fromhex(_plain(made))
    if all(32 <= byte < 127 for byte in digest):
        return "that spell a text"
    return "hashes of words" if digest in _inputs_of(text) or digest in _famous() else ""


@lru_cache(1)  # a text may hold many strings
def _inputs_of(text: str) -> frozenset[bytes]:
    """The hashes of the words, quotations and lines of a text."""
    parts = {
        *re.findall(r"\w+", text),
        *re.findall(r"[\"'“‘`]([^\"'”’`\n]{1,200})[\"'”’`]", text),
        *(line.strip() for line in text.splitlines()),
    }
    return frozenset().union(*(_hashes(part.encode("utf-8", "replace")) for part in parts))


def _hashes(content: bytes, sizes: Container[int] = (16, 20, 32)) -> list[bytes]:
    """The hashes of a content that people print, of 16, 20 and 32 bytes, git's among them."""
    blob = b"blob %d\0" % len(content) + content
    kinds = ("md5", 16, content), ("sha1", 20, content), ("sha1", 20, blob), ("sha256", 32, content)
    some = (hashlib.new(name, one, usedforsecurity=False) for name, size, one in kinds if size in sizes)
    return [one.digest() for one in some]


@cache
def _famous() -> frozenset[bytes]:
    """The hashes of the empty string, of single bytes, of small numbers and of words in many tutorials."""
    words = [w for one in say("canaries.famous.words").split() for w in (one, one.upper(), one.title())]
    numbers = [str(i) for i in range(10_000)] + ["1234567890"[:n] for n in range(5, 11)]
    said = [*words, *sentences_of("canaries.famous.phrases"), *numbers]
    inputs = [b"", b"tree 0\0", *(bytes([i]) for i in range(256)), *(one.encode() for one in said)]
    letters = [bytes([i, j]) for i in range(97, 123) for j in range(97, 123)]
    zeros = [bytes(n) for n in (2, 4, 8, 16, 32, 64, 512, 1024, 4096)]
    every = [*inputs, *letters, *zeros]
    return frozenset().union(*(_hashes(one) for content in every for one in (content, content + b"\n")))


@dataclass(frozen=True, slots=True, kw_only=True)
class CanarySettings(TestSettings):
    """Which strings are tested, and how much of the text the model reads with them."""

    context: int = option(200, "Characters before a string that are read.", panel=TEST, least=0, most=100_000)


def _matters(settings: CanarySettings) -> dict[str, Any]:
    """What makes the test another one."""
    return {"pattern": [], "context": settings.context}  # the draws are those of results on file


def natural_canaries(
    corpus: Corpus, settings: CanarySettings, *, text: bool = False
) -> tuple[tuple[_FoundString, ...], tuple[str, ...]]:
    """The random strings of texts in any order, `begun` with `text`, and what was found and left out, in sentences;
    TextsError for fewer than five."""
    texts = sorted(corpus.texts, key=lambda one: hashlib.sha256(one.text.encode("utf-8", "replace")).digest())
    seed = seed_of("canaries", [one.text for one in texts], **_matters(settings))
    found, left = random_strings(texts, context=settings.context, seed=seed, begun=text)
    kinds = Counter(f"of {one.kind}" for one in found)
    notes = tuple(
        f"{title}: {', '.join(f'{number:,} {which}' for which, number in sorted(counts.items()))}."
        for title, counts in (("Strings in the test", kinds), ("Left out", left))
        if counts
    )
    if len(found) < FEWEST_STRINGS:
        numbers = {"found": len(found), "fewest": FEWEST_STRINGS}
        said = say("canaries.missing", name=corpus.name, notes=" ".join(notes), **numbers)
        raise TextsError(said.rstrip())
    return found, notes


# Gates: what can be known of the strings without a model
#
# Where a score that reads the strings alone prefers those of the texts, a model that reads well does too, and has seen
# nothing. Each gate is the randomisation test itself, exact for strings drawn at random: then the string that stands
# in the text and its alternatives are draws from one law, whatever the score makes of them.

DRAWS = 999
"""Draws of each of these tests."""
_MOST_UNITS = 2_000
"""Strings that the tests over the whole set count; more add nothing but time."""


def blind_check(strings: Sequence[_FoundString], seed: int) -> Check:
    """Check that scores that see no model do not tell the strings from fresh ones of their format."""
    scores: dict[str, Callable[[_FoundString, str], float]] = {
        "the compressed length of context and string": _compressed,
        "the distance from a string that stands before it": _nearness,
        "check digits": lambda _, some: _obeyed(some),
    }
    found = {}
    for name, score in scores.items():
        rows = [np.array([score(one, some) for some in one.every]) for one in strings]
        found[name] = randomisation_test(rows, draws=DRAWS, seed=seed).p
    every, one = _set_tests(strings, _placed, seed)
    found |= {"the same characters in the same places": every, "the same characters in one place": one}
    found["the same sequences of characters"] = _set_tests(strings, _sequences, seed)[1]
    return reading.gate_check("canaries.blind", found)


def _compressed(one: _FoundString, some: str) -> float:
    """Minus the length of context and string: higher where the context holds a part of it."""
    return -float(len(zlib.compress((one.context + some).encode("utf-8", "replace"), 9)))


def _nearness(one: _FoundString, some: str) -> float:
    """Minus the distance from the nearest string in the context, as numbers: higher in sorted lists, and times."""
    near = [_number(word) for word in re.findall("[0-9a-z]{6,}", one.context.lower())[-20:]]
    return -min((abs(_number(some.lower()) - other) for other in near), default=0.0)


def _number(word: str) -> float:
    """The first characters as a number from 0 to 1: digits first, then letters."""
    base = 10 if word.isdigit() else 16 if set(word) <= set("0123456789abcdef-") else 36
    return float(int(word[:8], base) / base ** len(word[:8]))


def _obeyed(made: str) -> float:
    """How many of the common check-digit rules a string obeys: Luhn's, and remainders of 10, 11, 37 and 97."""
    letters = [int(c, 16) for c in _plain(made)]
    digits = [one for one in letters if one < 10]
    doubled = [d if i % 2 == 0 else (2 * d - 9 if d > 4 else 2 * d) for i, d in enumerate(reversed(digits))]
    weighted = sum(i * d for i, d in enumerate(reversed(digits), 1))
    written, moved = (int("".join(map(str, some))) for some in (letters, letters[4:] + letters[:4]))
    rules = [sum(doubled) % 10 == 0, weighted % 11 == 0, sum(digits) % 10 == 0]
    rules += [written % 97 == 1, moved % 97 == 1, sum(letters) % 37 == 0]
    # A rule that random strings obey less often says more.
    return float(np.dot(rules, [1.0, 1.04, 1.0, 2.0, 2.0, 1.5]))


Features = Callable[[_FoundString, str], Iterator[tuple[object, object]]]
"""What a string has, each with the group that it is counted in."""


def _set_tests(strings: Sequence[_FoundString], features: Features, seed: int) -> tuple[float, float]:
    """The p-values of how often strings of the set share a feature, against draws of other strings for all of them: of
    each group of features the sum of the squares of their counts, in units of its standard deviation over draws; first
    of the sum over groups, then of the largest. 1 where there are no features."""
    numbers: dict[tuple[object, object], int] = {}
    table = [
        [[numbers.setdefault(pair, len(numbers)) for pair in features(one, some)] for some in one.every]
        for one in strings[:_MOST_UNITS]
    ]
    if not numbers:
        return 1.0, 1.0
    groups = {group: place for place, group in enumerate(dict.fromkeys(group for group, _ in numbers))}
    group_of = np.array([groups[group] for group, _ in numbers])
    # [strings, alternatives, features]; what a shorter string has not gets a number of its own, which is not counted
    sizes, width = np.array([len(rows) for rows in table]), max(len(row) for rows in table for row in rows)
    held = np.full((len(table), sizes.max(), width), len(numbers), dtype=np.int32)
    for i, rows in enumerate(table):
        for k, row in enumerate(rows):
            held[i, k, : len(row)] = row
    chosen = np.random.default_rng([seed, 1]).integers(sizes, size=(DRAWS, len(table)))
    sums = np.empty((DRAWS + 1, len(groups)))
    for i, places in enumerate((np.zeros_like(sizes), *chosen)):
        counts = np.bincount(held[np.arange(len(table)), places].ravel(), minlength=len(numbers) + 1)[:-1]
        sums[i] = np.bincount(group_of, counts**2.0)
    spread = sums.std(axis=0)
    units = (sums - sums.mean(axis=0)) / np.where(spread > 0, spread, 1)
    totals, most = units.sum(axis=1), units.max(axis=1)
    return share_reached(totals[1:], totals[0]), share_reached(most[1:], most[0])


def _placed(one: _FoundString, made: str) -> Iterator[tuple[object, object]]:
    """The characters that vary, by kind and place, whether in the upper half of the alphabet, and whether odd."""
    for i in one.varies:
        place, value = (one.kind, i), one.digits.find(made[i])
        yield place, made[i].lower()
        yield (*place, "half"), value >= 8
        yield (*place, "odd"), value % 2


def _sequences(one: _FoundString, made: str) -> Iterator[tuple[object, object]]:
    """The runs of one, two and three characters that vary, wherever they stand."""
    letters = "".join(made[i].lower() for i in one.varies)
    return ((n, letters[i : i + n]) for n in (1, 2, 3) for i in range(len(letters) - n + 1))


def few_check(values: Rows, level: float, *, draws: int, seed: int) -> Check:
    """Check that ranks alone show it too: few strings with large differences cannot make the result."""
    rows = [row for row in values if np.isfinite(row).all()]
    p = randomisation_test([*map(ranks, rows)], draws=draws, seed=seed).p
    first = sum(float(row[0]) > float(np.median(row[1:])) for row in rows)
    return word_check("canaries.few", p <= level, {"p": p}, first=first, number=len(rows), p=p)


def known_check(strings: Sequence[_FoundString], words: Collection[str]) -> Check:
    """Check that no string is the hash of a common word; `words` are those that the models' tokenizers hold."""
    if not words:
        return word_check("canaries.known", None, words="untold")
    wanted = {bytes.fromhex(_plain(one.string)): one.id for one in strings}
    sizes = {len(one) for one in wanted}
    made = (one for word in words for one in _hashes(word.encode("utf-8", "replace"), sizes))
    found = sorted({wanted[one] for one in made if one in wanted})
    numbers: dict[str, Any] = {"compared": len(words), "number": len(found), "names": listed(found)}
    return word_check("canaries.known", not found, words="found" if found else "words", **numbers)


def check_canaries(  # noqa: PLR0913
    corpus: Corpus,
    models: Models,
    settings: CanarySettings | None = None,
    *,
    canaries: tuple[tuple[_FoundString, ...], tuple[str, ...]] | None = None,
    text: bool = False,
    statements: Mapping[str, str] | None = None,
    watch: Watch | None = None,
) -> Verdict:
    """The verdict on random strings in the texts: each is compared with fresh strings of its format, in its context.
    `models.placebos` cannot have seen the strings: without one nobody is accused. `canaries` are those of
    `natural_canaries` unless given. With `text` the models are asked for text alone. Errors: those, and `detect`."""
    settings = settings or CanarySettings()
    if text and models.reference is not None:
        raise ModelError(say("answers.reference"))
    beside = ", less that of the reference model" if models.reference is not None else ""
    score = "answers" if text else f"log-probability of context and string in nats{beside}"
    strings, notes = canaries or natural_canaries(corpus, settings, text=text)
    own: dict[str, Any] = {"settings": settings, "watch": watched(watch), "score": score}
    kind = _CanariesInText if text else _Canaries
    test = kind(corpus=corpus, models=models, strings=strings, notes=notes, **own)
    return verdict(test, statements=statements)


@tests.add("canaries")
@dataclass(frozen=True, eq=False, kw_only=True)
class _Canaries(RandomisationTest):
    """The test of random strings."""

    settings: CanarySettings
    strings: tuple[_FoundString, ...]
    notes: tuple[str, ...]
    _cut: dict[str, int] = field(default_factory=dict)

    name = "canaries"
    accusing: ClassVar[tuple[str, ...]] = ("few", "known")
    multiple = 1.0
    """The target must prefer the strings more clearly. How alike two models find random strings is a matter of their
    tokens and says nothing of what either could know, so no likeness is asked; what both could see in the strings is
    what the gates look for."""

    @classmethod
    def of_result(cls, found: Verdict) -> type[_Canaries]:
        return _CanariesInText if found.situation.access == "text" else cls

    @property
    def matters(self) -> Mapping[str, Any]:
        return _matters(self.settings)

    def read(self, model: Backend, stage: str) -> Rows:
        """The log-probability of context and string in nats, less that of the reference model where there is one."""
        how: dict[str, Any] = {"watch": self.watch, "cache": self.settings.cache}
        texts = [one.context + some for one in self.strings for some in one.every]
        read = reading.read_scores(Models(model), ALONE, texts, stage=stage, **how)
        own, shape = read.totals, (len(self.strings), 1 + ALTERNATIVES)
        self._cut[model.name] = int(np.count_nonzero(read.cut.reshape(shape).any(axis=1)))
        if (reference := self.models.reference) is not None:
            how["stage"] = "reading with the reference model"
            own = own - reading.read_scores(Models(reference), ALONE, texts, **how).totals
        return tuple(own.reshape(shape))

    def planted(self) -> Sequence[str]:
        """Each string with what stands before it, behind the last other string: each is read as often."""
        beside: dict[str, list[str]] = {}
        for one in self.strings:
            beside.setdefault(one.text_id, []).append(one.string)
        made = []
        for one in self.strings:
            place, last = max((one.context.rfind(some), some) for some in beside[one.text_id])
            made.append(one.context.rpartition(last if place >= 0 else "\0")[2] + one.string)
        return made

    def checks(self, values: Rows) -> tuple[Check, ...]:
        words = frozenset[str]().union(*map(vocabulary_of, (self.models.target, *self.models.placebos)))
        return (
            blind_check(self.strings, self.seed),
            known_check(self.strings, words),
            few_check(values, self.settings.level, draws=self.settings.draws, seed=self.seed),
        )

    def words(self, values: Rows) -> TestWording:
        model = called(self.models.target.name)
        return TestWording.of_kind("canaries.said", corpus=self.corpus.name, model=model)

    def shown(self, values: Rows) -> TestDetails:
        strings, cut = self.strings, self._cut.get(self.models.target.name, 0)
        names = [one.id for one in strings]
        rows = [(one.text_id, one.kind, one.string) for one in strings]
        columns = dict(zip(("text", "format", "string"), zip(*rows, strict=True), strict=True))
        above = int(np.count_nonzero(self.effects(values) > 0))
        return TestDetails(
            figures={
                "strings": len(strings),
                "alternatives a string": ALTERNATIVES,
                "strings above the mean of their alternatives": above,
            },
            tables=(self.units_table("strings", names, values, **columns),),
            skipped=self.left_out(names, values),
            notes=(*self.notes, *((say("canaries.cut", cut=cut),) if cut else ())),
            situation=Situation(documents=len(self.corpus), canaries=len(strings)),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class _CanariesInText(_Canaries):
    """The same for models that give text alone: they continue each string from its first half, with which its
    alternatives begin too, so that the rest that stands in the text is one of twenty that were equally likely."""

    told: dict[int, list[str]] = field(default_factory=dict)

    accusing: ClassVar[tuple[str, ...]] = ("few", "known", "answers")
    multiple, scaled = MOST_DOSE, False

    @property
    def matters(self) -> Mapping[str, Any]:
        return {**_matters(self.settings), "access": "text"}

    def read(self, model: Backend, stage: str) -> Rows:
        """The share of a string's rest that the model writes, from its beginning, NaN without an answer."""
        prompts, cache = [one.prompt for one in self.strings], self.settings.cache
        written = reading.continued(model, prompts, 0, stage=stage, watch=self.watch, cache=cache)
        self.told[id(model)] = answers = [one[0].text for one in written]
        return tuple(
            np.array([_went_on(answer, one.begun, some) if answer else np.nan for some in one.every])
            for one, answer in zip(self.strings, answers, strict=True)
        )

    def checks(self, values: Rows) -> tuple[Check, ...]:
        same = reading.alike([[Written(one)] for one in self.told[id(self.models.target)]])
        had = sum(
            bool(np.isfinite(row).all()) and not (no and row[0] == 0)
            for row, (no,) in zip(values, same, strict=True)
        )
        return (*super().checks(values), reading.answers_check([("strings", had, len(values))]))

    def words(self, values: Rows) -> TestWording:
        said = super().words(values)
        own: dict[str, Any] = fill(sentences_of("canaries.in_text"))
        return replace(said, compared=(said.compared[0], *own.pop("compared")), **own)

    def shown(self, values: Rows) -> TestDetails:
        found, told = super().shown(values), tuple(self.told[id(self.models.target)])
        (table,) = found.tables
        half = {"begun": tuple(one.begun for one in self.strings), "answer": told}
        whole = sum(bool(row[0] == 1) for row in values)
        prompt = getattr(self.models.target, "prompt", "{beginning}")
        return replace(
            found,
            figures={**found.figures, "strings written to the end": whole},
            tables=(Table(table.name, {**table.columns, **half}),),
            situation=replace(found.situation, access="text"),
            recorded={"asked": {"prompt": prompt, "tries": 1}},
        )


def _went_on(answer: str, begun: str, made: str) -> float:
    """The share of a string's rest that an answer begins with; it may say the first half again."""
    rest, said, head = _plain(made[len(begun) :]), _plain(answer).strip(" \n\"'`"), _plain(begun)
    ways = [said, *([said.partition(head)[2]] if head and head in said else [])]
    pairs = (zip(way, rest, strict=False) for way in ways)
    most = max(sum(1 for _ in itertools.takewhile(lambda two: two[0] == two[1], some)) for some in pairs)
    return most / len(rest)
