"""Was a set whose rows, or whose answer options, stand in random order among a model's training texts?

The file reads from top to bottom: settings, units (shards of rows, items with options), the lot that is repeated, the
orders that are read, blind gates, sentences, the test. What every test does stands in `verdicts.frame`.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import random
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.backends.serving.address import called
from pretrace.errors import ModelError, TextsError
from pretrace.registry import require
from pretrace.results.rounding import p_value
from pretrace.scoring.outlook import Watch
from pretrace.scoring.plan import Models
from pretrace.settings import TEXTS, option
from pretrace.statistics.intervals import mean_interval, standardised
from pretrace.statistics.ranks import lot_effects, lot_test
from pretrace.statistics.words import Worded, words_of
from pretrace.types import Backend, Check, Corpus, Doubles, Situation, Skipped, Table, Text, Verdict
from pretrace.verdicts.draws import seed_of, texts_hash
from pretrace.verdicts.frame import ByLot, Rows, Shown, Tested, Words, verdict, watched
from pretrace.verdicts.reading import (
    Continues,
    Reader,
    answers_check,
    chats,
    check_without_reference,
    continued,
    draws_of,
)
from pretrace.verdicts.record import listed
from pretrace.verdicts.settings import ALONE, TEST, TestSettings

# Settings

FEWEST_ROWS, MOST_ROWS = 3, 8
"""Rows of a shard: the first stays where it is and two others can change places; and no more than so many, so that
nobody chooses how a set is cut."""
SHARD_TOKENS = 2048
"""Tokens of a shard at most, by the tokenizer of the model in question; its context where that is shorter."""
ASKED_TOKENS, BYTES_A_TOKEN = 1_000, 3
"""The same where models give text alone, which show no tokenizer: fewer, as a shard is asked about many times."""
_JOINT = "\n\n"
"""What stands between two rows."""
SHUFFLES, OTHERS = 19, 23
"""Other orders that are read: of a shard, and of an item with more than four options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderSettings(TestSettings):
    """How the order of rows, or of answer options, is tested; ExpressionError for a value out of its range.

    `shuffled_with` is the lot that gave the published order, to be repeated, and `shuffled_from` names the file as it
    was before (from Python: `original` of `order`); `stated` says in words how the order came about. `block_column`
    names columns within whose values rows change places. With `options` the options of each item change places instead
    of the rows, and with `answer` only the wrong ones do.
    """

    stated: str = option(
        "",
        "How the published order came about, in words, for the report. A statement accuses nobody and clears nobody: "
        "that takes --shuffled-with.",
        panel=TEST,
    )
    shuffled_with: str = option(
        "",
        "The lot that gave the published order, which is repeated: a way to shuffle and its seed, such as "
        "random.shuffle:42 or numpy.permutation:0, or sha256 for rows that stand by the hash of their text. Without it "
        "there is no verdict.",
        panel=TEST,
        essential=True,
    )
    shuffled_from: str | None = option(
        None,
        "The rows as they stood before the shuffle, given as TEXTS is; those published may be a part of them. "
        "Without it, the rows of TEXTS sorted by their text were shuffled.",
        panel=TEST,
        path="in",
        essential=True,
    )
    block_column: tuple[str, ...] = option(
        (),
        "Column of a date, topic or split: rows only change places with rows of the same value. Several: give it more "
        "than once, or with commas.",
        panel=TEXTS,
        essential=True,
    )
    options: str = option(
        "",
        "Column with the list of an item's answer options, or several columns with commas: the order of the options is "
        "tested, and TEXTS' text is the question.",
        panel=TEXTS,
        essential=True,
    )
    answer: str = option(
        "",
        "With --options: column with the right answer of an item, as its text, its letter, or its number counted from "
        "0 or from 1. The right answer then keeps its place, and only wrong options change theirs.",
        panel=TEXTS,
        essential=True,
    )

    def __post_init__(self) -> None:
        TestSettings.__post_init__(self)
        require(
            not (self.options and self.block_column),
            "--block-column is for rows, --options for the options of an item: give one of the two.",
        )
        require(
            bool(self.options) or not self.answer,
            "--answer is the right answer among the options of an item: name their column with --options.",
        )
        if self.shuffled_with:
            Lot.of(self.shuffled_with)
        require(
            bool(self.shuffled_with) or not self.shuffled_from,
            "--shuffled-from takes the way and the seed of the shuffle, too: name them with --shuffled-with.",
        )

    @property
    def blocks(self) -> tuple[str, ...]:
        """The columns within whose values rows change places."""
        return _names(self.block_column)

    @property
    def option_columns(self) -> tuple[str, ...]:
        """The columns of the options, none where the order of rows is tested."""
        return _names((self.options,))

    @property
    def columns(self) -> tuple[str, ...]:
        """The further columns of TEXTS that are read (`Columns.more`)."""
        return self.blocks + self.option_columns + ((self.answer,) if self.answer else ())


def _names(written: tuple[str, ...]) -> tuple[str, ...]:
    found = (name.strip() for one in written for name in one.split(","))
    return tuple(dict.fromkeys(filter(None, found)))


# Units: parts that change places

Orders = npt.NDArray[np.int64]
"""Orders of the parts of a unit, [orders, parts]: row 0 is the published order 0, 1, 2, …"""


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """A shard of rows, or an item with its options: parts that change places, all within one text.

    `head` stands before the parts and never moves, "" where there is none. `movable` holds groups of places; the
    parts within a group may take each other's place. `lettered` parts are options, named A, B, C by their place.
    """

    name: str
    parts: tuple[str, ...]
    movable: tuple[tuple[int, ...], ...]
    joint: str = "\n"
    head: str = ""
    lettered: bool = False

    @property
    def ways(self) -> int:
        """How many orders there are."""
        return math.prod(math.factorial(len(group)) for group in self.movable)

    def text(self, order: Sequence[int] | Orders) -> str:
        """The text with the parts in that order."""
        parts = [self._shown(place, self.parts[i]) for place, i in enumerate(order)]
        return self.joint.join([self.head, *parts] if self.head else parts)

    def texts(self, orders: Orders) -> list[str]:
        """The text in each of the orders."""
        return [self.text(order) for order in orders.tolist()]

    def before(self, place: int) -> str:
        """The published text up to a place, the letter of the place included."""
        stands = [self._shown(i, self.parts[i]) for i in range(place)]
        return self.joint.join(
            [*([self.head] if self.head else []), *stands, self._shown(place, "").rstrip()]
        )

    def _shown(self, place: int, part: str) -> str:
        return f"{chr(ord('A') + place)}. {part}" if self.lettered else part


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """The units of a test, and the rows or items that are no part of it, with the reason."""

    units: tuple[Unit, ...]
    skipped: tuple[Skipped, ...] = ()
    rows: int = 0
    """Rows, or items, in the units."""


def drawn_orders(unit: Unit, shuffles: int, rng: np.random.Generator) -> Orders:
    """The published order and so many drawn uniformly, [1 + shuffles, parts]; every order once where there are no more
    than that.

    A drawn order may be the published one, or one that was drawn before: only then are the published order and the
    drawn ones alike in law, as the test needs. A tie counts against the published order.
    """
    if unit.ways <= shuffles + 1:
        return every_order(unit)
    orders = np.tile(np.arange(len(unit.parts)), (shuffles + 1, 1))
    for group in unit.movable:
        places = np.array(group)
        orders[1:, places] = rng.permuted(np.tile(places, (shuffles, 1)), axis=1)
    return orders


def every_order(unit: Unit) -> Orders:
    """All orders of a unit, the published one first, [ways, parts]."""
    orders = np.tile(np.arange(len(unit.parts)), (unit.ways, 1))
    choices = itertools.product(*(itertools.permutations(group) for group in unit.movable))
    for row, chosen in enumerate(choices):
        for group, taken in zip(unit.movable, chosen, strict=True):
            orders[row, list(group)] = taken
    return orders


# Rows, packed into shards
#
# Why the packing keeps the test exact. Packing is greedy: a row joins the shard while the sum of the rows' weights
# stays within the limit, and the number of rows within theirs. A row's weight depends on that row alone. The first
# row of a shard never moves. Put the other rows of any shards into other orders and pack the file anew. Every part of
# a shard is at most as heavy as the whole, so no row falls out of it. The row behind it is the first of the next
# shard, the same as before, and still too much. So all these orders of the file give the same shards with the same
# first rows, and under a random order all of them were equally likely. Were the first rows moved too, a lighter one
# could fit into the shard in front of it. The first row is what the others are predicted from: where its own tokens
# are scored, they are the same in every order and cancel out. Blocks leave a part of these orders, by the same
# argument.

MARGIN = 2
"""Tokens kept free for each row: where two rows meet, a tokenizer may cut otherwise than in either alone."""
EMPTY = "the row is empty"
LONG = "longer than a shard may be"
FEW = "its shard has fewer than three rows"
FIXED = "no row of its shard may change places"


@dataclass(frozen=True, slots=True)
class Row:
    """A row, what it weighs in a shard, and the values within which it changes places."""

    id: str
    text: str
    weight: int
    block: tuple[str, ...] = ()


@dataclass(slots=True)
class _Left:
    """The rows that are left out."""

    skipped: list[Skipped] = field(default_factory=list)

    def add(self, rows: Sequence[Row], reason: str) -> None:
        self.skipped.extend(Skipped(row.id, reason, row.weight) for row in rows)


def shards(texts: Sequence[Text], target: Backend | None, settings: OrderSettings) -> Units:
    """The shards of the rows, in file order, which the model in question reads whole. Which models stand beside it does
    not matter: a shard's length follows from the texts, that model's context, and fixed numbers. Without a target, as
    where models give text alone, from the texts and fixed numbers."""
    left = _Left()
    limit = min(SHARD_TOKENS, room(target)) if target else ASKED_TOKENS
    rows = []
    for row in weighed(texts, target, settings):
        reason = EMPTY if not row.text.strip() else LONG if row.weight > limit else ""
        if reason:
            left.add([row], reason)
        else:
            rows.append(row)
    units, number = [], 0
    for shard in packed(rows, limit):
        movable = _movable(shard)
        if len(shard) < FEWEST_ROWS or not movable:
            left.add(shard, FEW if len(shard) < FEWEST_ROWS else FIXED)
            continue
        parts = tuple(row.text for row in shard)
        units.append(Unit(f"{shard[0].id} to {shard[-1].id}", parts, movable, _JOINT))
        number += len(shard)
    return Units(tuple(units), tuple(left.skipped), number)


def weighed(texts: Sequence[Text], target: Backend | None, settings: OrderSettings) -> list[Row]:
    """Each text with its weight: its tokens and those of a joint, and a margin; a token for every `BYTES_A_TOKEN` where
    there is no target."""
    counted = _tokens(target, [_JOINT, *(text.text for text in texts)]) if target else _bytes(texts)
    weights = [tokens + counted[0] + MARGIN for tokens in counted[1:]]
    return [
        Row(text.id, text.text, weight, tuple(text.meta.get(name, "") for name in settings.blocks))
        for text, weight in zip(texts, weights, strict=True)
    ]


def packed(rows: Sequence[Row], limit: int, most: int = MOST_ROWS) -> Iterator[list[Row]]:
    """The shards: runs of rows whose weights add up to at most `limit`, of at most so many rows; see above."""
    shard: list[Row] = []
    weight = 0
    for row in rows:
        if shard and (weight + row.weight > limit or len(shard) == most):
            yield shard
            shard, weight = [], 0
        shard.append(row)
        weight += row.weight
    if shard:
        yield shard


def _movable(shard: Sequence[Row]) -> tuple[tuple[int, ...], ...]:
    """The groups of places whose rows may change places: those of one block, without the first row of the shard."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, row in enumerate(shard[1:], 1):
        groups.setdefault(row.block, []).append(place)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def room(backend: Backend) -> int:
    """The tokens of a text that a back end reads, beside its start tokens."""
    return backend.max_tokens - len(backend.encode(["a"])[0].prefix)


def _bytes(texts: Sequence[Text]) -> list[int]:
    """What `_tokens` finds of a joint and of the texts, by their length alone."""
    sizes = [len(_JOINT), *(len(text.text.encode("utf-8", "replace")) for text in texts)]
    return [-(-size // BYTES_A_TOKEN) for size in sizes]


def _tokens(backend: Backend, texts: Sequence[str]) -> list[int]:
    return [len(encoded.tokens) + encoded.cut for encoded in backend.encode(texts)]


# Items with answer options

REFERRING = "an option refers to others"
NUMBERS = "its options are numbers or dates, which usually stand sorted"
USUAL = "its options have a usual order, such as yes and no"
SAME = "two of its options are the same"
ONE = "it has fewer than two options"
ALONE_WRONG = "it has fewer than two wrong options"
TWICE = "the same options stand further up"
MANY = "it has more than 26 options"
LETTERS = 26

_WHOLE = r"(?:all|none|any|some|both|either|neither|each|most|two|three|more than one|one or more)"
_LISTED = r"\(?\b(?:[A-H]|[1-8]|I{1,3}|IV|VI?)\b\)?"
_REFERS = (
    re.compile(
        rf"\b{_WHOLE}\b.{{0,20}}\b(?:above|below|these|those|options?|answers?|choices?)\b", re.IGNORECASE
    ),
    re.compile(
        r"\b(?:the above|mentioned above|(?:all|none|both|neither) of (?:them|the others))\b", re.IGNORECASE
    ),
    re.compile(
        r"^\W*(?:all|none|both|neither|either|all are (?:correct|true)|none are (?:correct|true))\W*$", re.I
    ),
    re.compile(
        rf"{_LISTED}(?:\s*,\s*{_LISTED})*\s*(?:,|&|/|\band\b|\bor\b|\bnor\b|\bbut not\b)+\s*{_LISTED}"
    ),
    re.compile(r"\bboth\s+\(?[a-h]\)?\s+and\s+\(?[a-h]\)?(?!\w)", re.IGNORECASE),
    re.compile(r"\([a-h1-8]\)\s*(?:,|&|/|and|or|nor)\s*\([a-h1-8]\)", re.IGNORECASE),
    re.compile(r"^\W*(?:all|none|both|neither|either)\b.{0,20}\b(?:are|is|apply|applies)\b", re.IGNORECASE),
    re.compile(rf"^\W*{_LISTED}\W*\bonly\b", re.IGNORECASE),
)
_NUMBER = re.compile(r"[-+−–~≈<>≤≥$€£¥]*\s*\d[\d.,:/×^*\s%°-]*(?:e[-+]?\d+)?")
_MONTHS = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE = re.compile(rf"\b(?:{_MONTHS}\b|mon(?:day)?\b|tue(?:sday)?\b|wed(?:nesday)?\b|thu(?:rsday)?\b|fri(?:day)?\b|"
                   r"sat(?:urday)?\b|sun(?:day)?\b)", re.IGNORECASE)  # fmt: skip
_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve twenty thirty hundred thousand million first "
    "second third fourth fifth once twice"
)
_COUNTED = re.compile(rf"\b(?:{'|'.join(_WORDS.split())})\b", re.IGNORECASE)
_PAIRS = frozenset(
    (
        *("yes", "no", "true", "false", "correct", "incorrect", "maybe", "unknown", "same", "unchanged"),
        *(
            "always",
            "sometimes",
            "never",
            "increase",
            "increases",
            "decrease",
            "decreases",
            "positive",
            "negative",
        ),
        *("entailment", "neutral", "contradiction", "agree", "disagree"),
    )
)
_SAYING = 3
"""Words beside a number or date up to which an option counts as one: "12 per cent", "in the year 1869"."""


def items(texts: Sequence[Text], settings: OrderSettings) -> Units:
    """The items whose options may have been put in order by lot; TextsError for items without any options, and for
    right answers that are none of them.

    No rule looks at the published order of the options, only at the set of them. Options that are all numbers or dates
    are left out in whatever order they stand: were they left out only where they are sorted, then the items that stay
    would no longer have every order with the same chance. The place of the right answer may be looked at where it is
    kept: given that place, the wrong options are still in an order by lot.
    """
    columns = settings.option_columns
    found = [options_of(text, columns) for text in texts]
    bare = [text.id for text, options in zip(texts, found, strict=True) if not options]
    if bare:
        raise TextsError(
            f"{len(bare):,} of {len(texts):,} items have no options in {' '.join(columns)} ({listed(bare)}): name "
            "the column with the list of options, or one column an option, with --options."
        )
    answers = _answers(texts, found, settings.answer) if settings.answer else [None] * len(texts)
    units, skipped = [], []
    seen: set[tuple[str, ...]] = set()
    for text, options, answer in zip(texts, found, answers, strict=True):
        # Options that come again were hardly put in order again: such items would count one lot many times.
        key = tuple(sorted(option.casefold() for option in options))
        places = tuple(place for place in range(len(options)) if place != answer)
        reason = TWICE if key in seen else left_out(options) or (ALONE_WRONG if len(places) < 2 else "")
        seen.add(key)
        if reason:
            skipped.append(Skipped(text.id, reason, 0))
            continue
        units.append(Unit(text.id, options, (places,), head=text.text.strip(), lettered=True))
    return Units(tuple(units), tuple(skipped), len(units))


def _answers(texts: Sequence[Text], options: Sequence[Sequence[str]], column: str) -> list[int]:
    """The place of the right answer of every item, counted from 0."""
    cells = [text.meta.get(column, "").strip() for text in texts]
    numbers = [int(cell) for cell in cells if cell.isdigit()]
    last = [len(own) for cell, own in zip(cells, options, strict=True) if cell == str(len(own))]
    if len(numbers) == len(cells) and (0 in numbers) == bool(last):
        raise TextsError(
            f"the numbers in {column} are counted neither from 0 nor from 1 throughout: give the right answer as its "
            "text or its letter, with --answer."
        )
    first = 0 if 0 in numbers else 1
    found = [_place(cell, own, first) for cell, own in zip(cells, options, strict=True)]
    wrong = [text.id for text, place in zip(texts, found, strict=True) if place is None]
    if wrong:
        raise TextsError(
            f"{len(wrong):,} of {len(texts):,} items have a right answer in {column} that is none of their options "
            f"({listed(wrong)}): name the column with its text, letter or number with --answer."
        )
    return [place for place in found if place is not None]


def _place(cell: str, options: Sequence[str], first: int) -> int | None:
    """Where the option stands that a cell names, None where there is none."""
    if cell in options:
        return options.index(cell)
    place = int(cell) - first if cell.isdigit() else ord(cell.upper()) - ord("A") if len(cell) == 1 else -1
    return place if 0 <= place < len(options) else None


def options_of(text: Text, columns: Sequence[str]) -> tuple[str, ...]:
    """The options of an item: the list in one column, or one column each, without empty ones."""
    cells = [text.meta.get(name, "") for name in columns]
    found = _list(cells[0]) if len(cells) == 1 else cells
    return tuple(option.strip() for option in found if option.strip())


def left_out(options: Sequence[str]) -> str:
    """Why an item with these options is no part of the test, "" where it is; the same for every order of them."""
    if len(options) < 2:
        return ONE
    if len(options) > LETTERS:
        return MANY
    if len({option.casefold() for option in options}) < len(options):
        return SAME
    if any(pattern.search(option) for pattern in _REFERS for option in options):
        return REFERRING
    if all(ordered(option) for option in options):
        return NUMBERS
    if all(set(re.findall(r"[a-z]+", option.casefold())) & _PAIRS for option in options):
        return USUAL
    return ""


def ordered(option: str) -> bool:
    """Whether an option is a number or a date, with a few words beside it at most."""
    rest, numbers = _NUMBER.subn(" ", option)
    rest, dates = _DATE.subn(" ", rest)
    rest, words = _COUNTED.subn(" ", rest)
    return bool(numbers or dates or words) and len(re.findall(r"[^\W\d_]+", rest)) <= _SAYING


def _list(cell: str) -> list[str]:
    """The options in a cell: a JSON list, or an object with such a list under "text" or "choices"."""
    try:
        value = json.loads(cell)
    except ValueError:
        return []
    if isinstance(value, dict):
        value = value.get("text", value.get("choices"))
    return [str(one) for one in value] if isinstance(value, list) else []


# Was it drawn by lot? The lot is repeated
#
# A statement accuses nobody. Rows of which each continues the last move a model that never saw them as rows that it has
# read do, and no number that a model gives tells the two apart. The lot itself can: a shuffle with a seed gives the
# same order again, and the hash of a text is one that nobody chose. Published rows may be a part of those shuffled.

_HASHED = "sha256"
CHANCE = 1e-8
"""The chance, at most, that another order than one by this lot agrees with it."""


def _shuffle(seed: int) -> Callable[[int], Sequence[int]]:
    draw = random.Random(seed)

    def made(number: int) -> Sequence[int]:
        order = list(range(number))
        draw.shuffle(order)
        return order

    return made


def _sample(seed: int) -> Callable[[int], Sequence[int]]:
    draw = random.Random(seed)
    return lambda number: draw.sample(range(number), number)


def _permutation(seed: int) -> Callable[[int], Sequence[int]]:
    draw = np.random.default_rng(seed)
    return lambda number: draw.permutation(number).tolist()


def _random_state(seed: int) -> Callable[[int], Sequence[int]]:
    draw = np.random.RandomState(seed)
    return lambda number: draw.permutation(number).tolist()


WAYS: Mapping[str, Callable[[int], Callable[[int], Sequence[int]]]] = {
    "random.shuffle": _shuffle,
    "random.sample": _sample,
    "numpy.permutation": _permutation,
    "RandomState.permutation": _random_state,
}
"""Ways to shuffle, by the name they have in Python: for a seed, the order of so many parts, and of the next ones.
numpy's `shuffle` gives the order of its `permutation`."""
_MOST_SEED = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Lot:
    """A lot that can be drawn again: a way to shuffle and its seed, or the hash of the texts (`_HASHED`, no seed)."""

    way: str
    seed: int = 0

    @classmethod
    def of(cls, written: str) -> Lot:
        """The lot that is written as "random.shuffle:42"; ExpressionError for anything else."""
        way, _, seed = written.strip().partition(":")
        right = written.strip() == _HASHED or (
            way in WAYS and seed.isascii() and seed.isdigit() and int(seed) <= _MOST_SEED
        )
        require(
            right,
            f"--shuffled-with is {_HASHED}, or a way to shuffle and its seed from 0 to {_MOST_SEED}, such as "
            f"random.shuffle:42, found {written!r}. The ways are {', '.join(WAYS)}.",
        )
        return cls(way, int(seed or 0))

    @property
    def words(self) -> str:
        """The lot as it is told."""
        return "their SHA-256" if self.way == _HASHED else f"{self.way} with the seed {self.seed}"


def repeated(corpus: Corpus, settings: OrderSettings, original: Corpus | None = None) -> str:
    """What repeating the lot gave, in words; "" where none is named. TextsError where the lot does not give the
    published order, or would give it by chance.

    Without an `original`, which has the parts as they stood before, they stood sorted by their text.
    """
    if not settings.shuffled_with:
        return ""
    lot = Lot.of(settings.shuffled_with)
    options = bool(settings.options)
    kind = OPTIONS if options else ROWS
    if options:
        items(corpus.texts, settings)  # they have options
    chance, wrong = (_options_agree if options else _rows_agree)(corpus, original, lot, settings)
    start = f" of {original.name}" if original else ", sorted by their text,"
    if lot.way == _HASHED:
        start = " of each item," if options else ","
    if wrong:
        raise TextsError(
            f"the {kind.parts}{start} put in order by {lot.words} do not stand as they were published: {wrong} stands "
            "elsewhere. Name the lot that gave the published order with --shuffled-with"
            + ("." if lot.way == _HASHED else ", and the file as it was before with --shuffled-from.")
        )
    if chance > math.log(CHANCE):
        raise TextsError(
            f"{len(corpus):,} {'items' if options else 'rows'} are so few that any order agrees with a lot by chance: "
            f"give more {'items' if options else 'rows'}."
        )
    return f"The lot was drawn again: the {kind.parts}{start} put in order by {lot.words} stand as they were published."


def _rows_agree(
    corpus: Corpus, original: Corpus | None, lot: Lot, settings: OrderSettings
) -> tuple[float, str]:
    """The logarithm of the chance that rows in any order agree with the lot, and a row that stands elsewhere."""
    if lot.way == _HASHED:
        blocks: dict[tuple[str, ...], list[Text]] = {}
        for text in corpus.texts:
            blocks.setdefault(tuple(text.meta.get(name, "") for name in settings.blocks), []).append(text)
        wrong = [
            second.id
            for rows in blocks.values()
            for first, second in itertools.pairwise(rows)
            if _digest(first.text.strip()) > _digest(second.text.strip())
        ]
        sizes = [len({text.text.strip() for text in rows}) for rows in blocks.values()]
        return -sum(math.lgamma(size + 1) for size in sizes), wrong[0] if wrong else ""
    texts = _plain(corpus)
    start = _plain(original) if original else sorted(texts)
    ahead = (start[i] for i in WAYS[lot.way](lot.seed)(len(start)))
    # "in" takes from what is ahead up to the text
    out = next((text.id for text in corpus.texts if text.text.strip() not in ahead), "")
    return -math.lgamma(len(set(texts)) + 1), out


def _options_agree(
    corpus: Corpus, original: Corpus | None, lot: Lot, settings: OrderSettings
) -> tuple[float, str]:
    """The same for the options of items. One generator shuffles those of one item after the other; by hash, a right
    answer that keeps its place is left out."""
    columns = settings.option_columns
    published = [options_of(text, columns) for text in corpus.texts]
    if lot.way == _HASHED:
        right = (
            _answers(corpus.texts, published, settings.answer) if settings.answer else [None] * len(published)
        )
        chance, out = 0.0, ""
        for text, options, answer in zip(corpus.texts, published, right, strict=True):
            free = [_digest(f"{text.text.strip()}\n{one}") for i, one in enumerate(options) if i != answer]
            chance -= math.lgamma(len(set(free)) + 1)
            out = out or (text.id if free != sorted(free) else "")
        return chance, out
    shuffled = WAYS[lot.way](lot.seed)
    before = original.texts if original else corpus.texts
    made: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}
    for text in before:
        start = options_of(text, columns) if original else tuple(sorted(options_of(text, columns)))
        made[text.text.strip(), tuple(sorted(start))] = tuple(start[i] for i in shuffled(len(start)))
    chance, out = 0.0, ""
    for text, options in zip(corpus.texts, published, strict=True):
        chance -= math.lgamma(len(set(options)) + 1)
        out = out or (text.id if made.get((text.text.strip(), tuple(sorted(options)))) != options else "")
    return chance, out


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(corpus: Corpus) -> list[str]:
    return [text.text.strip() for text in corpus.texts]


# Orders that are read, and their values

CUT = "in one of its orders it is longer than a model reads at once"
_SMALL, _ALL = 4, 23
"""Options of an item up to which every order is read, and the other orders that four options have."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """The units and the texts of each in the orders that are read, the published one first."""

    units: tuple[Unit, ...]
    texts: tuple[tuple[str, ...], ...]
    skipped: tuple[Skipped, ...] = ()

    @property
    def passes(self) -> int:
        """Texts that go through a model."""
        return len({text for texts in self.texts for text in texts})


def asked(units: Sequence[Unit], target: Backend, seed: int) -> Asked:
    """Draw the orders of every unit, and leave out units of which the target would cut off the end in any order.

    Leaving out is harmless: the rule looks at all orders of a unit alike, the published one as the others, so that the
    published order of the units that stay is still one of these by lot.
    """
    rng = np.random.default_rng([seed, 0])
    kept, texts, skipped = [], [], []
    for unit in units:
        orders = drawn_orders(unit, _number(unit), rng)
        found = tuple(unit.texts(orders))
        if _cut(target, found):
            skipped.append(Skipped(unit.name, CUT, 0))
        else:
            kept.append(unit)
            texts.append(found)
    return Asked(tuple(kept), tuple(texts), tuple(skipped))


def check_others(chosen: Asked, models: Models) -> None:
    """TextsError where a model beside the target would cut off the end of a unit: it would read another text."""
    for one in (*((models.reference,) if models.reference else ()), *models.placebos):
        cut = sum(_cut(one, texts) for texts in chosen.texts)
        if cut:
            raise TextsError(
                f"{one.name} reads at most {room(one):,} tokens at once, and {cut:,} of {len(chosen.units):,} units "
                "are longer: name a model that reads longer texts, or open the model in question with a smaller "
                "--max-tokens."
            )


def _cut(backend: Backend, texts: Sequence[str]) -> bool:
    return any(one.cut > 0 for one in backend.encode(texts))


def ranks(values: Doubles) -> Doubles:
    """The ranks of values over their number, the highest 1, the mean rank for equal values."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values) / len(values))


def _number(unit: Unit) -> int:
    """Other orders of a unit that are read."""
    if not unit.lettered:
        return SHUFFLES
    return _ALL if len(unit.parts) <= _SMALL else OTHERS


# In text alone: which part stands next?
#
# Why this is exact. The order of the movable parts was drawn by lot. Whatever stands before a place, the part that
# stands there is then any of those that are left with the same chance, given all that was asked before. What is asked
# shows what stands before the place, and the parts that are left in an order that follows from them alone. So the
# answer, whatever it is, hits with a chance of one in as many as are left, and hits of one unit are independent.

FEWEST_PARTS = 3
"""Parts that may stand in a place, at least: of two, any answer names the published one half of the time."""
LED = 12
"""Words by which a continuation is compared with a part."""
_ROWS_ASKED = (
    "Rows of a published data set, in their published order, up to a place:\n\n{before}\n\nOne of these rows stands "
    "next in the published data set:\n\n{listed}\n\nWhich one? Answer with its number alone."
)
_OPTIONS_ASKED = (
    "An item of a published test, up to a place:\n\n{before}\n\nOne of these answer options stands in that place in "
    "the published test:\n\n{listed}\n\nWhich one? It need not be the right answer. Answer with its number alone."
)


@dataclass(frozen=True, slots=True)
class Question:
    """A place of a unit: what stands before it, and the parts that may stand there, the published one first."""

    unit: int
    place: int
    before: str
    parts: tuple[str, ...]
    lettered: bool = False

    def listed(self) -> list[list[int]]:
        """The parts as they are shown, by their number: in an order that follows from the texts alone, and in the
        reverse of it, so that a model that likes a place of a list prefers no part."""
        keys = {
            i: hashlib.sha256(f"{self.before}\0{part}".encode("utf-8", "replace")).digest()
            for i, part in enumerate(self.parts)
        }
        order = sorted(range(len(self.parts)), key=lambda i: keys[i])
        return [order, order[::-1]]

    def asked(self, order: Sequence[int]) -> str:
        """The question to a model that answers questions."""
        listed = "\n\n".join(f"{number}. {self.parts[i]}" for number, i in enumerate(order, 1))
        form = _OPTIONS_ASKED if self.lettered else _ROWS_ASKED
        return form.replace("{listed}", listed).replace("{before}", self.before.rstrip())


def questions(units: Sequence[Unit]) -> tuple[Question, ...]:
    """What is asked of the units: every movable place with three or more parts left to stand there.

    Left out are places where two of these are alike: that depends on what stands before, and not on what stands there.
    """
    found = []
    for number, unit in enumerate(units):
        for group in unit.movable:
            for i, place in enumerate(group):
                parts = tuple(unit.parts[k] for k in group[i:])
                if len(parts) < FEWEST_PARTS or len({part.casefold().strip() for part in parts}) < len(parts):
                    continue
                found.append(Question(number, place, unit.before(place), parts, unit.lettered))
    return tuple(found)


def picked(answer: str, parts: Sequence[str]) -> int | None:
    """The part that an answer names, of those listed: by its words where it holds those of one part alone, else by the
    first number that is one of theirs; None where it names none."""
    said = " ".join(answer.casefold().split())
    held = [i for i, part in enumerate(parts) if " ".join(part.casefold().split()) in said]
    if len(held) == 1 and not said.strip(" .()*").isdigit():
        return held[0]
    numbers = (int(one) - 1 for one in re.findall(r"(?<![\d.,])\d{1,3}(?!\d)", said))
    return next((one for one in numbers if 0 <= one < len(parts)), None)


def led(answer: str, part: str) -> float:
    """How far a continuation begins as a part does: the share of the part's first words, 0 to 1."""
    own = Worded.of(part).words[:LED]
    said = Worded.of(answer).words
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(own, said, strict=False))
    return sum(1 for _ in same) / len(own) if own else 0.0


# Blind gates: the same test on what can be seen in the texts alone, without any model
#
# An order that was drawn by lot stands out in none of these statistics more often than chance. Where one of them
# does, in either direction, the order carries meaning, and the main test has no known null distribution: the effect
# then contains what the order itself is worth to any model. That may lie above 0 (sorted rows are easier to predict)
# or below (rows that were mixed on purpose), by an amount that nobody knows. So a gate that stands out withholds an
# accusation and an all-clear alike. All gates together withhold a random order at most once in twenty times.

GATES = 0.05
"""The level of all gates together."""
MOST, FEWEST, TOTAL = 199, 19, 20_000
"""Other orders of a unit that gates look at, at most and at least, and of all units together."""
GATE_DRAWS = 10_000
"""Draws of a gate: enough to tell a p-value from its share of the level."""
CHARACTERS = 40
"""Characters of a row by which it is put into the alphabet."""
_FRONT = re.compile(r"\W*(\d{1,15})")
_ENDS = re.compile(r"[.!?:;)\]}\"'”’»…。！？]\s*$")
"""How a row ends that ends a sentence."""
_LETTERS_ALIKE = (3, 5)
"""Letters of the pieces of words by which rows are compared."""

Pairs = Callable[[Unit, int], Doubles]
"""What each part of a unit (and its number) is worth in front of each other part, [parts, parts]."""


def gate_values(units: Sequence[Unit], *, seed: int) -> dict[str, list[Doubles]]:
    """The blind statistics of every unit in its published order and in others, by gate: [units][orders].

    A gate that finds no difference between any two orders (no row begins with a number) is left out.
    """
    number = int(np.clip(TOTAL // max(1, len(units)), FEWEST, MOST))
    rng = np.random.default_rng([seed, 1])
    orders = [drawn_orders(unit, number, rng) for unit in units]
    values = {
        name: [
            (near if name in _NEAR else neighbours)(pairs(unit, i), order)
            for i, (unit, order) in enumerate(zip(units, orders, strict=True))
        ]
        for name, pairs in _gates(units).items()
    }
    if not any(unit.lettered for unit in units):
        values["how far they compress"] = [
            compressed(unit, order) for unit, order in zip(units, orders, strict=True)
        ]
    return {name: found for name, found in values.items() if any(np.ptp(row) > 0 for row in found)}


def order_check(values: Mapping[str, Sequence[Doubles]], *, cure: str, seed: int) -> Check:
    """Whether the published order looks like one that was drawn by lot, from the blind statistics; `cure` says what can
    be done where it does not."""
    title = "The published order looks drawn by lot"
    if not values:
        return Check("order", title, "not run", "There was nothing in the texts to compare.")
    p = {name: two_sided(found, seed=seed) for name, found in values.items()}
    bound = GATES / len(p)
    out = [name for name, value in p.items() if value <= bound]
    words = (
        f"Without any model, the published order was compared with random ones, by {_and(list(p))}. "
        + (f"It stands out by {_and(out)}" if out else "It stands out by none of these")
        + f" (the smallest p is {p_value(min(p.values()))}; {p_value(bound)} and less stands out)."
    )
    return Check("order", title, "failed" if out else "passed", words, cure if out else "", {"p": p})


def two_sided(values: Sequence[Doubles], *, seed: int) -> float:
    """The p-value of published orders that stand out in either direction."""
    higher = lot_test(values, draws=GATE_DRAWS, seed=seed).p
    lower = lot_test([-row for row in values], draws=GATE_DRAWS, seed=seed).p
    return min(1.0, 2 * min(higher, lower))


def neighbours(pairs: Doubles, orders: Orders) -> Doubles:
    """The sum over neighbours of what one is worth in front of the other, [orders], from `pairs` [parts, parts]."""
    return np.asarray(pairs[orders[:, :-1], orders[:, 1:]].sum(axis=1))


def near(pairs: Doubles, orders: Orders) -> Doubles:
    """The sum over all parts of what one is worth in front of another over the distance between their places, [orders]:
    running text moves from subject to subject, so that not its neighbours alone are alike."""
    reach = range(1, orders.shape[1])
    return np.sum([pairs[orders[:, :-d], orders[:, d:]].sum(axis=1) / d for d in reach], axis=0)  # type: ignore[no-any-return]


def compressed(unit: Unit, orders: Orders) -> Doubles:
    """Minus the bytes that zlib makes of the unit's text in each order, [orders]."""
    texts = (text.encode("utf-8", "replace") for text in unit.texts(orders))
    return np.array([-len(zlib.compress(text)) for text in texts], dtype=np.float64)


def _gates(units: Sequence[Unit]) -> dict[str, Pairs]:
    """The gates that look at neighbours, by what they look at: those of rows, or those of options."""
    shared: dict[str, Pairs] = {"the alphabet": _alphabet, "numbers in front": _numbers}
    if any(unit.lettered for unit in units):
        return {**shared, "length": lambda unit, _: _rising(_lengths(unit))}
    lengths: Pairs = lambda unit, _: -np.abs(_differences(_lengths(unit)))  # noqa: E731
    return {
        **shared,
        "the length of neighbours": lengths,
        WORDS_NEAR: _alike(units, analyzer=words_of),
        PIECES_NEAR: _alike(units, analyzer="char_wb", ngram_range=_LETTERS_ALIKE),
        "where sentences end": _sentences,
    }


WORDS_NEAR, PIECES_NEAR = "the words of rows near each other", "the letters of rows near each other"
_NEAR = (WORDS_NEAR, PIECES_NEAR)
"""The gates that look at all rows of a shard, the nearer the more."""


def _sentences(unit: Unit, _: int) -> Doubles:
    """1 where a row that ends within a sentence stands before one that begins with a small letter, or one that ends a
    sentence before one that does not: [first, second]; a row cut out of running text does so."""
    within = np.array([_ENDS.search(part) is None for part in unit.parts])
    small = np.array([part.lstrip()[:1].islower() for part in unit.parts])
    return np.asarray(within[:, None] == small[None, :], dtype=np.float64)


def _alike(units: Sequence[Unit], **pieces: Any) -> Pairs:
    """The cosine of tf-idf vectors of these `pieces` of the parts, weighed over all units."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    parts = [part for unit in units for part in unit.parts]
    starts = np.cumsum([0, *(len(unit.parts) for unit in units)])
    if not any(words_of(part) for part in parts):
        return lambda unit, _: np.zeros((len(unit.parts), len(unit.parts)))
    vectors = TfidfVectorizer(sublinear_tf=True, **pieces).fit_transform(parts)

    def pairs(_: Unit, place: int) -> Doubles:
        own = vectors[starts[place] : starts[place + 1]]
        return np.asarray((own @ own.T).toarray(), dtype=np.float64)

    return pairs


def _alphabet(unit: Unit, _: int) -> Doubles:
    keys = [part.casefold().strip()[:CHARACTERS] for part in unit.parts]
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return _rising(np.array([ranks[key] for key in keys], dtype=np.float64))


def _numbers(unit: Unit, _: int) -> Doubles:
    """Like the alphabet, for numbers at the front; a part without one is neither above nor below another."""
    found = [_FRONT.match(part) for part in unit.parts]
    values = np.array([float(one[1]) if one else np.nan for one in found])
    return np.nan_to_num(_rising(values))


def _lengths(unit: Unit) -> Doubles:
    return np.array([float(len(part)) for part in unit.parts])


def _differences(values: Doubles) -> Doubles:
    """How much higher the second is, [first, second]."""
    return np.asarray(values[None, :] - values[:, None])


def _rising(values: Doubles) -> Doubles:
    """1 where the second is higher than the first, -1 where it is lower, 0 for the same: [first, second]."""
    return np.sign(_differences(values))


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# Words


@dataclass(frozen=True, slots=True)
class Kind:
    """How the things that the test counts are called, and what is said of them: of rows, or of answer options."""

    unit: str
    table: str
    parts: str
    effect_unit: str
    statistic: str
    hypothesis: str
    cure: str
    """What helps where the order carries meaning."""
    unseen: str
    """What training the test cannot find."""


ROWS = Kind(
    unit="shard",
    table="shards",
    parts="rows",
    effect_unit="nats a shard",
    statistic="sum over shards of the log-probability of the published order less the mean over the orders read",
    hypothesis="The log-probability of a shard does not depend on which of its orders was published.",
    cure="The order carries meaning, and any model may find it likelier, or less likely, than another. Where it only "
    "carries a date, topic or split, name that column: rows then change places within it. [--block-column]",
    unseen="Training on the same rows in another order, or on each row by itself, leaves nothing that it could find.",
)
OPTIONS = Kind(
    unit="item",
    table="items",
    parts="answer options",
    effect_unit="in rank, from 0 to 1",
    statistic="sum over items of the rank of the published order among the orders read less the mean rank",
    hypothesis="The log-probability of an item does not depend on which order of its options was published.",
    cure="The options stand in an order that carries meaning, and any model may find it likelier, or less likely, than "
    "another: leave out the items where they are sorted by hand, by a rule that looks only at what the options say.",
    unseen="Training on the same items with their options in another order, or on questions and answers alone, leaves "
    "nothing that it could find.",
)


def compared(kind: Kind, corpus: str, chosen: Asked, *, answers: bool) -> tuple[str, ...]:
    """What was compared, and why this tells training from no training."""
    units, orders = len(chosen.units), max(map(len, chosen.texts))
    many = f"up to {orders - 1:,} other orders" if orders > 2 else "one other order"
    kept = " The right answer kept its place in all of them." if answers else ""
    read = (
        f"The rows were divided into {units:,} shards (runs of up to {MOST_ROWS} neighbours). The model read each "
        f"shard in the published order and in {many} of the same rows."
        if kind is ROWS
        else f"The model read {units:,} items, each with its options in the published order and in {many}.{kept}"
    )
    return (
        f"The {kind.parts} of {corpus} were published in one order out of very many that would have done as well. A "
        "model that was not trained on the published set has no way of knowing which one it was.",
        f"{read} A model that was trained on the set finds the published order likelier than the others. For a model "
        f"that was not, the published order is as often above the others as below.",
    )


def assumption(stated: str, kind: Kind, lot: str) -> str:
    """What must hold for p to mean what it says."""
    held = f"It holds if the {kind.parts} were put into the published order by lot."
    said = f" This was stated of it: “{stated}”." if stated else ""
    if lot:
        return f"{held}{said} {lot}"
    return f"{held}{said or ' Nobody has stated how that order came about.'} No lot was repeated."


def trust(kind: Kind, skipped: int, original: Corpus | None) -> tuple[str, ...]:
    """How far the answer can be trusted."""
    found = [f"The test sees training on this set with its {kind.parts} in this order. {kind.unseen}"]
    if original is not None:
        found.append(
            f"That {original.name} holds the {kind.parts} as they stood before the lot is a statement of who asked: "
            "a file made from the published order, by calculating the shuffle backwards, would agree with it, too."
        )
    if skipped:
        found.append(
            f"Left out: {skipped:,}, each with its reason at the end of this report. No reason depends on the order "
            "that was published."
        )
    return tuple(found)


# The test

RESULTS = 2.0
"""How many results the orders must give together, as a multiple of 1 / level, for a test to be made."""


def order(  # noqa: PLR0913 - what is tested, and how
    corpus: Corpus,
    models: Models,
    settings: OrderSettings | None = None,
    *,
    original: Corpus | None = None,
    text: bool = False,
    watch: Watch | None = None,
    statements: Mapping[str, str] | None = None,
) -> Verdict:
    """The verdict on whether `models.target` was trained on the corpus in its published order.

    `settings.shuffled_with` is the lot that gave that order, and `original` has the rows, or the items, as they stood
    before; see `repeated`. Where no lot can be repeated there is no verdict.

    The texts of the corpus are its rows in that order; with `settings.options` they are questions, and the options
    stand in `Text.meta`. `models.reference` takes off what another model finds likely too. `models.placebos` are
    models that cannot have seen the set: without one nobody is accused. With `text` the models are asked for text alone
    (`verdicts.answering`): which row, or option, stands next. TextsError for items without options, for too few units,
    for a lot that does not give the published order, and for a model that reads shorter texts than the target; other
    errors as for `detect`.
    """
    settings = settings or OrderSettings()
    lot = repeated(corpus, settings, original)
    stated = {**(statements or {}), **({"order": settings.stated} if settings.stated else {})}
    if text:
        check_without_reference(models)
        units, found = in_text(corpus, settings)
        asks = _OptionsInText if settings.options else _InText
        return verdict(
            asks(
                corpus=corpus,
                models=models,
                settings=settings,
                watch=watched(watch),
                score="answers",
                lot=lot,
                original=original,
                units=units,
                questions=found,
            ),
            statements=stated,
        )
    units = (
        items(corpus.texts, settings) if settings.options else shards(corpus.texts, models.target, settings)
    )
    test = replace(_Order.made(corpus, models, settings, units, watch), lot=lot, original=original)
    return verdict(test, statements=stated)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Order(ByLot):
    """The test of an order: its units, and the orders of each that are read."""

    settings: OrderSettings
    units: Units
    asked: Asked
    lot: str = ""
    original: Corpus | None = None
    _read: dict[int, dict[str, float]] = field(default_factory=dict)

    name = "order"
    repeatable = True

    @classmethod
    def made(
        cls, corpus: Corpus, models: Models, settings: OrderSettings, units: Units, watch: Watch | None
    ) -> _Order:
        """The test with its orders drawn; TextsError where there is too little to test."""
        kind = _Options if settings.options else cls
        seed = seed_of(kind.name, _texts(corpus, settings), **_matters(settings))
        chosen = asked(units.units, models.target, seed)
        check_enough(chosen, settings)
        check_others(chosen, models)
        return kind(
            corpus=corpus,
            models=models,
            settings=settings,
            watch=watched(watch),
            score=LOGP + (", less that of the reference model" if models.reference is not None else ""),
            units=units,
            asked=chosen,
        )

    @property
    def matters(self) -> Mapping[str, Any]:
        return _matters(self.settings)

    @property
    def texts(self) -> Sequence[str]:
        return _texts(self.corpus, self.settings)

    @property
    def kind(self) -> Kind:
        """How its units are called."""
        return OPTIONS if self.settings.options else ROWS

    def read(self, model: Backend, stage: str) -> Rows:
        """The log-probability of every unit's text in nats, [units][orders], the published order first, less that of
        the reference model where there is one."""
        own = self._totals(model, stage)
        if self.models.reference is not None:
            other = self._totals(self.models.reference, "reading with the reference model")
            own = {text: value - other[text] for text, value in own.items()}
        return tuple(np.array([own[text] for text in texts]) for texts in self.asked.texts)

    def _totals(self, model: Backend, stage: str) -> dict[str, float]:
        """The log-probability of each text; a model is asked once. Texts are read in an order that does not tell which
        one was published: what a model computes depends in its last digits on what a text is read together with."""
        if id(model) not in self._read:
            texts = [text for found in self.asked.texts for text in sorted(set(found))]
            reader = Reader(replace(self.models, reference=None), ALONE, self.watch, self.settings.cache)
            read = reader.read(texts, under=model, stage=stage).totals.tolist()
            self._read[id(model)] = dict(zip(texts, read, strict=True))
        return self._read[id(model)]

    def planted(self) -> Sequence[str]:
        return [texts[0] for texts in self.asked.texts]

    def checks(self, values: Rows) -> tuple[Check, ...]:
        """What was stated, and what the texts alone say of their order."""
        blind = gate_values(self.asked.units, seed=self.seed)
        return (
            _lot_check(self.lot, self.settings, self.kind),
            order_check(blind, cure=self.kind.cure, seed=self.seed),
        )

    def words(self, values: Rows) -> Words:
        kind, corpus = self.kind, self.corpus.name
        return Words(
            unit=kind.unit,
            of=f"{corpus} with its {kind.parts} in the published order",
            question=f"Was {called(self.models.target.name)} trained on “{corpus}”?",
            compared=compared(kind, corpus, self.asked, answers=bool(self.settings.answer)),
            hypothesis=kind.hypothesis,
            assumption=assumption(self.settings.stated.strip(), kind, self.lot),
            statistic=kind.statistic,
            effect_unit=kind.effect_unit,
            trust=trust(kind, len(self.skipped), self.original),
            preferred="the published order",
        )

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """What takes no part, with the reason."""
        return (*self.units.skipped, *self.asked.skipped)

    def shown(self, values: Rows) -> Shown:
        """One row a unit: log-probabilities in nats, the rank of the published order, the effect."""
        others = [row[1:] for row in values]
        numbers = {
            "options" if self.settings.options else "rows": [len(unit.parts) for unit in self.asked.units],
            "orders": [len(row) for row in values],
            "published": [row[0] for row in values],
            "others_mean": [row.mean() for row in others],
            "others_low": [row.min() for row in others],
            "others_high": [row.max() for row in others],
            "rank": [ranks(row)[0] for row in values],
            "effect": self.effects(values),
        }
        names = tuple(unit.name for unit in self.asked.units)
        columns = {name: np.asarray(found, dtype=np.float64) for name, found in numbers.items()}
        orders = [len(texts) for texts in self.asked.texts]
        figures = {
            self.kind.table: len(orders),
            **({} if self.settings.options else {"rows": self.units.rows}),
            "orders of each": [min(orders), max(orders)],
            "passes": self.asked.passes,
            "left out": dict(Counter(one.reason for one in self.skipped)),
        }
        return Shown(
            figures=figures,
            tables=(Table(self.kind.table, {self.kind.unit: names, **columns}),),
            skipped=self.skipped,
            situation=Situation(rows=len(self.corpus)),
            recorded=_recorded_lot(self.original),
        )


class _Options(_Order):
    """The same for answer options: items differ more than their orders, so the rank of each order among those of its
    item is compared."""

    name = "options"

    def compared(self, values: Rows) -> Rows:
        return tuple(ranks(row) for row in values)


LOGP = "log-probability of the text in nats"


@dataclass(frozen=True, slots=True)
class Told:
    """What a model's answers made of a question: how far they name each of its parts, [parts], the published one first,
    NaN without an answer; and an answer, for the table."""

    values: Doubles
    answer: str


@dataclass(frozen=True, eq=False, kw_only=True)
class _InText(ByLot):
    """The test of an order for models that give text alone: which part stands next? Values are of the questions."""

    settings: OrderSettings
    units: Units
    questions: tuple[Question, ...]
    lot: str = ""
    original: Corpus | None = None
    told: dict[int, list[Told]] = field(default_factory=dict)

    name = "order"
    repeatable = True
    accusing = ("answers", "right")

    @property
    def matters(self) -> Mapping[str, Any]:
        return {**_matters(self.settings), "access": "text"}

    @property
    def trainable(self) -> bool:
        return not isinstance(self.models.target, Continues)

    @property
    def texts(self) -> Sequence[str]:
        return _texts(self.corpus, self.settings)

    @property
    def kind(self) -> Kind:
        """How its units are called."""
        return OPTIONS if self.settings.options else ROWS

    def read(self, model: Backend, stage: str) -> Rows:
        """How far the model's answers name each part, [questions][parts]."""
        if id(model) not in self.told:
            with self.watch.passes(stage) as progress:
                prompts = prompts_of(self.questions, chat=chats(model))
                asks = model.plain() if isinstance(model, Continues) else model
                written = continued(asks, prompts, draws_of(0), cache=self.settings.cache, progress=progress)  # type: ignore[arg-type]
            self.told[id(model)] = told(self.questions, [one[0].text for one in written], chat=chats(model))
            if not any(np.isfinite(one.values).all() for one in self.told[id(model)]):
                raise ModelError(
                    f"{model.name} named none of the {self.kind.parts} in {len(prompts):,} answers: ask another model, "
                    "or one that continues text (completions:URL)."
                )
        return tuple(one.values for one in self.told[id(model)])

    def tested(self, values: Rows) -> Tested:
        """The test by lot of the questions; the effect and its interval are those of whole units."""
        effects = self.effects(values)
        effects = effects[np.isfinite(effects)]
        return replace(
            super().tested(values),
            units=len(effects),
            effect=mean_interval(effects) if len(effects) > 1 else None,
            standardised=standardised(effects),
        )

    def effects(self, values: Rows) -> Doubles:
        """The mean over a unit's questions of how far the published part is named, less the others, [units]."""
        by_unit: list[list[float]] = [[] for _ in self.units.units]
        for one, row in zip(self.questions, values, strict=True):
            if np.isfinite(row).all():
                by_unit[one.unit] += lot_effects([row]).tolist()
        return np.array([float(np.mean(some)) if some else np.nan for some in by_unit])

    def planted(self) -> Sequence[str]:
        return [unit.text(range(len(unit.parts))) for unit in self.units.units]

    def checks(self, values: Rows) -> tuple[Check, ...]:
        """What was stated, what the texts alone say of their order, and whether the model answered."""
        blind = gate_values(self.units.units, seed=self.seed)
        had = sum(bool(np.isfinite(row).all()) for row in values)
        return (
            _lot_check(self.lot, self.settings, self.kind),
            order_check(blind, cure=self.kind.cure, seed=self.seed),
            answers_check([("questions", had, len(self.questions))]),
            *([_right_check(self.settings)] if self.settings.options else []),
        )

    def words(self, values: Rows) -> Words:
        kind, corpus = self.kind, self.corpus.name
        return Words(
            unit=kind.unit,
            of=f"{corpus} with its {kind.parts} in the published order",
            question=f"Was {called(self.models.target.name)} trained on “{corpus}”?",
            compared=_compared_in_text(kind, corpus, self.questions, chat=chats(self.models.target)),
            hypothesis=f"What the model answers does not depend on which of the {kind.parts} was published there.",
            assumption=assumption(self.settings.stated.strip(), kind, self.lot),
            statistic="sum over questions of how far the published part is named, less the mean over all parts",
            effect_unit="of the answers that name the part that was published there, above the others",
            trust=(
                *trust(kind, len(self.units.skipped), self.original),
                "A model that was trained on the set may still not tell it when it is asked.",
            ),
            preferred="the published order",
        )

    def shown(self, values: Rows) -> Shown:
        """One row a question: how far the published part is named, how far the others on average, an answer."""
        target = self.told[id(self.models.target)]
        rows = values
        named = [row for row in rows if np.isfinite(row).all()]
        columns: dict[str, tuple[str, ...] | Doubles] = {
            self.kind.unit: tuple(self.units.units[one.unit].name for one in self.questions),
            "place": np.array([one.place + 1 for one in self.questions], dtype=np.float64),
            "parts": np.array([len(one.parts) for one in self.questions], dtype=np.float64),
            "published": np.array([row[0] for row in rows]),
            "others_mean": np.array([row[1:].mean() for row in rows]),
            "stands there": tuple(one.parts[0] for one in self.questions),
            "answer": tuple(one.answer for one in target),
        }
        chat = chats(self.models.target)
        form = (_OPTIONS_ASKED if self.settings.options else _ROWS_ASKED) if chat else "{before}"
        return Shown(
            figures={
                self.kind.table: len({one.unit for one in self.questions}),
                "questions": len(self.questions),
                "answered": len(named),
                "published part named, share of answers": float(np.mean([row[0] for row in named])),
                "by chance": float(np.mean([row.mean() for row in named])),
            },
            tables=(Table("questions", columns),),
            skipped=self.units.skipped,
            situation=Situation(rows=len(self.corpus), access="text"),
            recorded={"asked": {"prompt": form, "tries": 2 if chat else 1}, **_recorded_lot(self.original)},
        )


class _OptionsInText(_InText):
    """The same for answer options."""

    name = "options"


def in_text(corpus: Corpus, settings: OrderSettings) -> tuple[Units, tuple[Question, ...]]:
    """The units and the questions to models that give text alone; TextsError where they are too few. Opens no model."""
    units = items(corpus.texts, settings) if settings.options else shards(corpus.texts, None, settings)
    found = questions(units.units)
    kind = OPTIONS if settings.options else ROWS
    results, wanted = 1.0, RESULTS / settings.level
    for one in found:
        results = min(results * len(one.parts), wanted)
    if results < wanted:
        raise TextsError(
            f"{len(found):,} questions can be asked, each with {FEWEST_PARTS} or more {kind.parts} to choose from, and "
            f"a test at the level of {settings.level:g} needs more: give more "
            f"{'items' if settings.options else 'rows'}."
        )
    return units, found


def prompts_of(asked: Sequence[Question], *, chat: bool) -> list[str]:
    """What a model is given: what stands before each place, to be continued, or for one that answers questions the
    parts as well, in both orders of a list."""
    if not chat:
        return [one.before for one in asked]
    return [one.asked(order) for one in asked for order in one.listed()]


def told(asked: Sequence[Question], answers: Sequence[str], *, chat: bool) -> list[Told]:
    """What the answers to `prompts_of` make of each question."""
    if not chat:
        return [
            Told(np.array([led(answer, part) if answer else np.nan for part in one.parts]), answer)
            for one, answer in zip(asked, answers, strict=True)
        ]
    found, ahead = [], iter(answers)
    for one in asked:
        named, first = [], ""
        for order in one.listed():
            answer = next(ahead)
            first = first or answer
            place = picked(answer, [one.parts[i] for i in order])
            if place is not None:
                named.append(np.eye(len(one.parts))[order[place]])
        row = np.mean(named, axis=0) if named else np.full(len(one.parts), np.nan)
        found.append(Told(row, first))
    return found


def _right_check(settings: OrderSettings) -> Check:
    """Whether the right answers keep their place: a model that knows them may name them first."""
    title = "The right answers keep their place"
    if settings.answer:
        return Check("right", title, "passed", f"They were named by the column {settings.answer}.")
    said = "They were not named. A model that knows them may name them where authors like to put them."
    return Check("right", title, "failed", said, "Name the column of the right answers. [--answer]")


def _compared_in_text(kind: Kind, corpus: str, asked: Sequence[Question], *, chat: bool) -> tuple[str, ...]:
    """What was compared, and why this tells training from no training."""
    units = len({one.unit for one in asked})
    how = (
        f"The model was shown the beginning of {units:,} {kind.unit}s and was asked {len(asked):,} times which of the "
        f"{kind.parts} that are left stands next, with the list in two orders."
        if chat
        else f"The model continued the beginning of {units:,} {kind.unit}s at {len(asked):,} places, and it was "
        f"measured which of the {kind.parts} that are left its continuation begins with."
    )
    return (
        f"The {kind.parts} of {corpus} were published in one order out of very many that would have done as well. A "
        "model that was not trained on the published set has no way of knowing which one it was.",
        f"{how} Without training on the set it names the one that was published there no more often than chance.",
    )


def check_enough(chosen: Asked, settings: OrderSettings) -> None:
    """TextsError unless the orders give so many results that one in 1 / level is a small part of them."""
    kind = OPTIONS if settings.options else ROWS
    results, wanted = 1.0, RESULTS / settings.level
    for texts in chosen.texts:
        results = min(results * len(texts), wanted)
    cure = f"give more {'items' if settings.options else 'rows'}"
    if not chosen.units:
        raise TextsError(f"there is no {kind.unit} whose {kind.parts} may change places: {cure}.")
    if results < wanted:
        raise TextsError(
            f"{len(chosen.units):,} {kind.unit}s whose {kind.parts} may change places give {results:,.0f} results in "
            f"all, and a test at the level of {settings.level:g} needs {wanted:,.0f}: {cure}."
        )


def _lot_check(lot: str, settings: OrderSettings, kind: Kind) -> Check:
    """Whether the lot that gave the published order was repeated (`lot`, in words)."""
    title = "The lot that gave the published order can be repeated"
    if lot:
        return Check("lot", title, "passed", lot)
    said = f"It was stated: “{settings.stated.strip()}”. " if settings.stated.strip() else ""
    words = (
        f"{said}Only a lot that can be drawn again shows that the order carries no meaning. {kind.parts.capitalize()} "
        "that continue each other move a model that never saw them as those that it has read do."
    )
    cure = (
        "Find out how the order was drawn, and name the way to shuffle, its seed, and the file as it was before. For a "
        f"set of your own, put the {kind.parts} in order by their hash before you publish it. [--shuffled-with, "
        "--shuffled-from]"
    )
    return Check("lot", title, "failed", words, cure)


def _recorded_lot(original: Corpus | None) -> dict[str, Any]:
    """What the parts before the lot were, for the record."""
    if original is None:
        return {}
    hashed = texts_hash((text.text for text in original.texts), ordered=True)
    return {"original": {"name": original.name, "sha256": hashed}}


def _texts(corpus: Corpus, settings: OrderSettings) -> list[str]:
    """What the draws depend on: rows, or questions with their options, whatever their order."""
    if not settings.options:
        return [text.text for text in corpus.texts]
    columns = settings.option_columns
    return ["\n".join((text.text, *sorted(options_of(text, columns)))) for text in corpus.texts]


def _matters(settings: OrderSettings) -> dict[str, Any]:
    """The settings that make the test another one."""
    return {"blocks": list(settings.blocks), "answer": bool(settings.answer)}
