"""Random strings that stand in texts: does a model prefer them to fresh strings of their format?

How strings are found and drawn anew stands in `verdicts.marking.strings`, what every test does in `verdicts.frame`.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from pretrace.backends.serving.address import called
from pretrace.errors import TextsError
from pretrace.results.rounding import listed, p_value
from pretrace.scoring.outlook import Watch
from pretrace.scoring.plan import Models
from pretrace.settings import TEXTS, option
from pretrace.statistics.permutation import lot_test, share_reached
from pretrace.types import Backend, Check, Corpus, Doubles, Situation, Table, Verdict, Written
from pretrace.verdicts.advise import FEWEST_STRINGS
from pretrace.verdicts.draws import seed_of
from pretrace.verdicts.frame import (
    ByLot,
    Rows,
    TestDetails,
    TestWording,
    verdict,
    watched,
)
from pretrace.verdicts.marking.strings import FoundString, hashes_of, plain, random_strings
from pretrace.verdicts.outcome import MOST_DOSE
from pretrace.verdicts.reading import (
    Continues,
    ScoreReader,
    alike,
    answers_check,
    check_without_reference,
    continued,
    draws_of,
)
from pretrace.verdicts.settings import ALONE, TEST, TestSettings
from pretrace.verdicts.wording import fill, say, sentences_of, word_check

ALTERNATIVES = 19
"""Fresh strings that each string is compared with: a fixed number, so that nobody can try several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CanarySettings(TestSettings):
    """Which strings are tested, and how much of the text the model reads with them."""

    pattern: tuple[str, ...] = option(
        (),
        "A regular expression for further strings that were drawn at random, such as 'key-[a-z0-9]{16}'; may be given "
        "more than once.",
        panel=TEXTS,
        essential=True,
    )
    context: int = option(
        200, "Characters before a string that the model reads with it.", panel=TEST, least=0, most=100_000
    )

    @property
    def matters(self) -> Mapping[str, Any]:
        """What makes the test another one."""
        return {"pattern": sorted(set(self.pattern)), "context": self.context}


@dataclass(frozen=True, slots=True)
class _NaturalCanaries:
    """The random strings of a corpus with their alternatives, and how many were left out for which reason."""

    strings: tuple[FoundString, ...]
    left_out: Mapping[str, int]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was found and what was left out, in sentences."""
        kinds = Counter(one.kind for one in self.strings)
        found = ", ".join(f"{number:,} of {kind}" for kind, number in sorted(kinds.items()))
        left = ", ".join(f"{number:,} {why}" for why, number in sorted(self.left_out.items()))
        said = (f"Strings in the test: {found}.",) if found else ()
        return said + ((f"Left out: {left}.",) if left else ())


def natural_canaries(corpus: Corpus, settings: CanarySettings, *, text: bool = False) -> _NaturalCanaries:
    """The random strings of the texts, whatever the order of the texts; TextsError where there are fewer than five.
    Opens no model. With `text`, for models that give text alone, the alternatives begin as the string does."""
    ordered = sorted(
        corpus.texts, key=lambda one: hashlib.sha256(one.text.encode("utf-8", "replace")).digest()
    )
    found, left = random_strings(
        replace(corpus, texts=tuple(ordered)),
        settings.pattern,
        alternatives=ALTERNATIVES,
        context=settings.context,
        seed=seed_of("canaries", [one.text for one in ordered], **settings.matters),
        begun=text,
    )
    made = _NaturalCanaries(found, left)
    if len(found) < FEWEST_STRINGS:
        what = (
            f"{len(found)} random strings, and a test takes {FEWEST_STRINGS} or more"
            if found
            else (
                "no hash of 32, 40 or 64 digits and no UUID of version 4 that may be random"
                f"{', and no string of the pattern' if settings.pattern else ''}"
            )
        )
        raise TextsError(
            f"{corpus.name} holds {what}: give more texts, or name strings that were drawn at random with --pattern. "
            f"{' '.join(made.notes)}".rstrip()
        )
    return made


# Gates: what can be known of the strings without a model
#
# Where a score that reads the strings alone prefers those of the texts, a model that reads well does too, and has seen
# nothing. Each gate is the test by lot itself, exact for strings that were drawn at random: then the string that stands
# in the text and its alternatives are draws from one law, whatever the score makes of them.

GATE = 0.1
"""How often fair strings are withheld: each of the scores is tested at this level over their number."""
DRAWS = 999
"""Draws of each of these tests."""
_MOST_UNITS = 2_000
"""Strings that the tests over the whole set count; more add nothing but time."""
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
_WORD = re.compile(r"[0-9a-z]{6,}")


def blind_p(strings: Sequence[FoundString], seed: int) -> dict[str, float]:
    """The p-value of each blind score, by its name in words."""
    scores: dict[str, Callable[[FoundString, str], float]] = {
        "the compressed length of context and string": _compressed,
        "the distance from a string that stands before it": _nearness,
        "check digits": lambda _, some: _obeyed(some),
    }
    found = {}
    for name, score in scores.items():
        rows = [np.array([score(one, some) for some in (one.string, *one.alternatives)]) for one in strings]
        found[name] = lot_test(rows, draws=DRAWS, seed=seed).p
    every, one = _set_tests(strings, placed, seed)
    found |= {"the same characters in the same places": every, "the same characters in one place": one}
    found["the same sequences of characters"] = _set_tests(strings, sequences, seed)[1]
    return found


def blind_check(strings: Sequence[FoundString], seed: int) -> Check:
    """Check that scores that see no model do not tell the strings from fresh ones of their format."""
    found = blind_p(strings, seed)
    level = GATE / len(found)
    seen = " and by ".join(f"{name} (p = {p_value(p)})" for name, p in found.items() if p <= level)
    numbers: dict[str, Any] = {"number": len(found), "seen": seen, "p": min(found.values())}
    figures = {"p": found, "level": level}
    return word_check("canaries.blind", not seen, figures, words="seen" if seen else "words", **numbers)


def _compressed(one: FoundString, some: str) -> float:
    """Minus the length of context and string as zlib compresses them: higher where the context holds a part of it."""
    return -float(len(zlib.compress((one.context + some).encode("utf-8", "replace"), 9)))


def _nearness(one: FoundString, some: str) -> float:
    """Minus the distance from the nearest string in the context, as numbers of their first characters: higher in lists
    that are sorted, and for times and counts."""
    near = [_number(word) for word in _WORD.findall(one.context.lower())[-20:]]
    return -min((abs(_number(some.lower()) - other) for other in near), default=0.0)


Features = Callable[[FoundString, str], Iterator[tuple[object, object]]]
"""What a string has, each with the group that it is counted in."""


def _set_tests(strings: Sequence[FoundString], features: Features, seed: int) -> tuple[float, float]:
    """The p-values of how often strings of the set share a feature, against draws of other strings for all of them.

    For each group of features the sum of the squares of their counts is taken, which is high where strings are alike,
    and put in units of its standard deviation over draws. The first p is of the sum over groups, the second of the
    largest. 1 where there are no features.
    """
    some = strings[:_MOST_UNITS]
    groups: dict[object, dict[object, int]] = {}
    table = [
        [
            [
                (group, groups.setdefault(group, {}).setdefault(f, len(groups[group])))
                for group, f in features(one, s)
            ]
            for s in (one.string, *one.alternatives)
        ]
        for one in some
    ]
    if not groups:
        return 1.0, 1.0
    starts = dict(zip(groups, np.cumsum([0, *map(len, groups.values())]).tolist(), strict=False))
    number = sum(map(len, groups.values()))
    # [strings, alternatives, features]; what a shorter string has not gets a number of its own, which is not counted
    width = max(len(row) for rows in table for row in rows)
    held = np.full((len(table), max(map(len, table)), width), number, dtype=np.int32)
    for i, rows in enumerate(table):
        for k, row in enumerate(rows):
            held[i, k, : len(row)] = [starts[group] + f for group, f in row]
    every, bounds = np.arange(len(table)), list(starts.values())
    sizes = np.array([len(rows) for rows in table])
    chosen = np.random.default_rng([seed, 1]).integers(sizes, size=(DRAWS, len(table)))
    sums = np.empty((DRAWS + 1, len(bounds)))
    for i, lot in enumerate((np.zeros_like(sizes), *chosen)):
        counts = np.bincount(held[every, lot].ravel(), minlength=number + 1)[:number].astype(np.float64)
        sums[i] = np.add.reduceat(counts**2, bounds)
    spread = sums.std(axis=0)
    units = (sums - sums.mean(axis=0)) / np.where(spread > 0, spread, 1)
    totals, most = units.sum(axis=1), units.max(axis=1)
    return share_reached(totals[1:], totals[0]), share_reached(most[1:], most[0])


def placed(one: FoundString, made: str) -> Iterator[tuple[object, object]]:
    """The characters that vary, each in the group of its place, and whether they are in the upper half of the alphabet
    and odd; strings of other kinds share nothing."""
    for i, choices in zip(one.varies, one.choices, strict=True):
        place, value = (one.kind, len(made), i), choices.find(made[i])
        yield place, made[i].lower()
        yield (*place, "half"), 2 * value >= len(choices)
        yield (*place, "odd"), value % 2


def sequences(one: FoundString, made: str) -> Iterator[tuple[object, object]]:
    """The runs of one, two and three characters that vary, wherever they stand."""
    letters = "".join(made[i].lower() for i in one.varies)
    return ((n, letters[i : i + n]) for n in (1, 2, 3) for i in range(len(letters) - n + 1))


def _number(word: str) -> float:
    """The first characters as a number from 0 to 1: digits first, then letters."""
    value, scale = 0.0, 1.0
    base = 16.0 if all(c in "0123456789abcdef-" for c in word) else 36.0
    if word.replace("-", "").isdigit():
        base = 10.0
    for character in word[:8]:
        if character in _LETTERS:
            scale /= base
            value += min(_LETTERS.index(character), base - 1) * scale
    return value


def _obeyed(made: str) -> float:
    """How many of the common check-digit rules a string obeys: Luhn's, and remainders of 10, 11, 37 and 97."""
    letters = [_LETTERS.index(c) for c in made.lower() if c in _LETTERS]
    digits = [one for one in letters if one < 10]
    doubled = [d if i % 2 == 0 else (2 * d - 9 if d > 4 else 2 * d) for i, d in enumerate(reversed(digits))]
    weighted = sum(i * d for i, d in enumerate(reversed(digits), 1))
    written = int("".join(map(str, letters)) or "0")
    moved = int("".join(map(str, letters[4:] + letters[:4])) or "0")
    rules = [sum(doubled) % 10 == 0, weighted % 11 == 0, sum(digits) % 10 == 0]
    rules += [written % 97 == 1, moved % 97 == 1, sum(letters) % 37 == 0]
    # A rule that random strings obey less often says more.
    return float(np.dot(rules, [1.0, 1.04, 1.0, 2.0, 2.0, 1.5]))


def few_check(values: Rows, level: float, *, draws: int, seed: int) -> Check:
    """Whether the result holds without the sizes of the differences, so that few strings alone cannot make it.

    Each value is replaced by its rank among those of its string and its alternatives, the mean rank for ties: a string
    that the whole world knows then counts as one.
    """
    from scipy.stats import rankdata

    rows = [row for row in values if np.isfinite(row).all()]
    p = lot_test([rankdata(row) / len(row) for row in rows], draws=draws, seed=seed).p
    first = sum(float(row[0]) > float(np.median(row[1:])) for row in rows)
    return word_check("canaries.few", p <= level, {"p": p}, first=first, number=len(rows), p=p)


def known_check(strings: Sequence[FoundString], words: Collection[str]) -> Check:
    """Check that no string is the hash of a common word; `words` are those that the models' tokenizers hold."""
    if not words:
        return word_check("canaries.known", None, words="untold")
    found = hashes_of(strings, words)
    numbers: dict[str, Any] = {"compared": len(words), "number": len(found), "names": listed(found)}
    return word_check("canaries.known", not found, words="found" if found else "words", **numbers)


def check_canaries(  # noqa: PLR0913
    corpus: Corpus,
    models: Models,
    settings: CanarySettings | None = None,
    *,
    canaries: _NaturalCanaries | None = None,
    text: bool = False,
    statements: Mapping[str, str] | None = None,
    watch: Watch | None = None,
) -> Verdict:
    """The verdict on random strings in the texts: each is compared with fresh strings of its format, in its context.

    `models.placebos` cannot have seen the strings: without one nobody is accused. `canaries` are those of
    `natural_canaries`, which are looked for unless given. With `text` the models are asked for text alone
    (`verdicts.answering`): they continue each string from its first half. Errors as there and as for `detect`.
    """
    settings = settings or CanarySettings()
    if text:
        check_without_reference(models)
    logp = LOGP + (", less that of the reference model" if models.reference is not None else "")
    test = (CanariesInText if text else Canaries)(
        corpus=corpus,
        models=models,
        settings=settings,
        watch=watched(watch),
        score="answers" if text else logp,
        found=canaries or natural_canaries(corpus, settings, text=text),
    )
    return verdict(test, statements=statements)


LOGP = "log-probability of context and string in nats"


@dataclass(frozen=True, eq=False, kw_only=True)
class Canaries(ByLot):
    """The test of random strings."""

    settings: CanarySettings
    found: _NaturalCanaries
    _cut: dict[str, int] = field(default_factory=dict)

    name = "canaries"
    accusing: ClassVar[tuple[str, ...]] = ("few", "known")
    multiple = 1.0
    """The target must prefer the strings more clearly. How alike two models find random strings is a matter of their
    tokens and says nothing of what either could know, so no likeness is asked; what both could see in the strings is
    what the gates look for."""

    @property
    def matters(self) -> Mapping[str, Any]:
        return self.settings.matters

    def read(self, model: Backend, stage: str) -> Rows:
        """The log-probability of context and string in nats, less that of the reference model where there is one."""
        own = self._totals(model, stage)
        if self.models.reference is not None:
            own = own - self._totals(self.models.reference, "reading with the reference model")
        return tuple(own.reshape(len(self.found.strings), 1 + ALTERNATIVES))

    def _totals(self, model: Backend, stage: str) -> Doubles:
        reader = ScoreReader(replace(self.models, reference=None), ALONE, self.watch, self.settings.cache)
        texts = [one.context + some for one in self.found.strings for some in (one.string, *one.alternatives)]
        read = reader.read(texts, under=model, stage=stage)
        cut = read.cut.reshape(len(self.found.strings), 1 + ALTERNATIVES).any(axis=1)
        self._cut[model.name] = int(np.count_nonzero(cut))
        return read.totals

    def planted(self) -> Sequence[str]:
        """Each string with what stands before it, as far as no other string of the test stands there: so it is read as
        often as the power says."""
        beside: dict[str, list[str]] = {}
        for one in self.found.strings:
            beside.setdefault(one.text, []).append(one.string)
        return [
            one.context.rpartition(_last(one.context, beside[one.text]))[2] + one.string
            for one in self.found.strings
        ]

    def checks(self, values: Rows) -> tuple[Check, ...]:
        from pretrace.backends.tokens import vocabulary_of

        words = frozenset[str]().union(
            *(vocabulary_of(one) for one in (self.models.target, *self.models.placebos))
        )
        return (
            blind_check(self.found.strings, self.seed),
            known_check(self.found.strings, words),
            few_check(values, self.settings.level, draws=self.settings.draws, seed=self.seed),
        )

    def words(self, values: Rows) -> TestWording:
        model, own = (
            called(self.models.target.name),
            " " + say("canaries.own") if self.settings.pattern else "",
        )
        return TestWording.of_kind("canaries.said", corpus=self.corpus.name, model=model, own=own)

    def shown(self, values: Rows) -> TestDetails:
        strings, effects = self.found.strings, self.effects(values)
        names = [one.id for one in strings]
        columns = {
            "text": tuple(one.text for one in strings),
            "format": tuple(one.kind for one in strings),
            "string": tuple(one.string for one in strings),
        }
        cut, notes = self._cut.get(self.models.target.name, 0), self.found.notes
        if cut:
            notes += (
                f"{cut:,} strings stand beyond what the model reads: let it read less before each. [--context]",
            )
        return TestDetails(
            figures={
                "strings": len(strings),
                "alternatives a string": ALTERNATIVES,
                "strings above the mean of their alternatives": int(np.count_nonzero(effects > 0)),
            },
            tables=(self.units_table("strings", names, values, **columns),),
            skipped=self.left_out(names, values),
            notes=notes,
            situation=Situation(documents=len(self.corpus), canaries=len(strings)),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class CanariesInText(Canaries):
    """The same for models that give text alone: they are given what stands before a string and its first half, and what
    they write is compared with the rest. The alternatives begin with the same half, so that the rest that stands in the
    text is one of twenty that were equally likely."""

    told: dict[int, list[str]] = field(default_factory=dict)

    accusing: ClassVar[tuple[str, ...]] = ("few", "known", "answers")
    multiple, scaled = MOST_DOSE, False

    @property
    def matters(self) -> Mapping[str, Any]:
        return {**self.settings.matters, "access": "text"}

    @property
    def trainable(self) -> bool:
        return not isinstance(self.models.target, Continues)

    def read(self, model: Backend, stage: str) -> Rows:
        """The share of a string's rest that the model writes, from its beginning, NaN without an answer."""
        with self.watch.passes(stage) as progress:
            written = continued(
                model, prompts_of(self.found), draws_of(0), cache=self.settings.cache, progress=progress
            )
        self.told[id(model)] = [one[0].text for one in written]
        return tuple(
            np.array([went_on(answer, one.begun, some) for some in (one.string, *one.alternatives)])
            if answer
            else np.full(1 + len(one.alternatives), np.nan)
            for one, answer in zip(self.found.strings, self.told[id(model)], strict=True)
        )

    def checks(self, values: Rows) -> tuple[Check, ...]:
        same = alike([[Written(one)] for one in self.told[id(self.models.target)]])
        had = sum(
            bool(np.isfinite(row).all()) and not (no and row[0] == 0)
            for row, (no,) in zip(values, same, strict=True)
        )
        return (*super().checks(values), answers_check([("strings", had, len(values))]))

    def words(self, values: Rows) -> TestWording:
        said = super().words(values)
        own: dict[str, Any] = fill(sentences_of("canaries.in_text"))
        return replace(said, compared=(said.compared[0], *own.pop("compared")), **own)

    def shown(self, values: Rows) -> TestDetails:
        found = super().shown(values)
        (table,) = found.tables
        half = {
            "begun": tuple(one.begun for one in self.found.strings),
            "answer": tuple(self.told[id(self.models.target)]),
        }
        whole = sum(bool(row[0] == 1) for row in values)
        prompt = getattr(self.models.target, "prompt", "{beginning}")
        return replace(
            found,
            figures={**found.figures, "strings written to the end": whole},
            tables=(Table(table.name, {**table.columns, **half}),),
            situation=replace(found.situation, access="text"),
            recorded={"asked": {"prompt": prompt, "tries": 1}},
        )


def prompts_of(found: _NaturalCanaries) -> list[str]:
    """What is continued: what stands before each string, and its first half."""
    return [one.context + one.begun for one in found.strings]


def went_on(answer: str, begun: str, made: str) -> float:
    """The share of the rest of a string that an answer begins with, in whatever spelling; the answer may say the first
    half again."""
    rest, said, head = plain(made[len(begun) :]), plain(answer).strip(" \n\"'`"), plain(begun)
    ways = [said, *([said.partition(head)[2]] if head and head in said else [])]
    return max(_same(way, rest) for way in ways) / len(rest)


def _same(one: str, other: str) -> int:
    return next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def _last(context: str, strings: Sequence[str]) -> str:
    """The string that stands last in a context; a character that stands nowhere for none."""
    place, found = max((context.rfind(some), some) for some in strings)
    return found if place >= 0 else "\0"
