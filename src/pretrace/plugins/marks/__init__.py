"""Marking: variants of every text, or orders of rows, a random draw, and what is published and what stays secret.

Each source gives variants that can be published. The sealed file holds all of them, and which was drawn; it is written
once, for the owner alone. Rows, or the answer options of items, are put in order in the same way: a draw with a secret
seed shuffles all rows, cuts them into shards of neighbours, and draws orders of each shard; one of these is published.
So `checking` tests a shard as it tests a text with variants: these are the shard in each of its orders. The
options of one item are a unit in the same way.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
import secrets
import string
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from pretrace.corpora import Columns, open_corpus
from pretrace.corpora.formats import unreadable_explained
from pretrace.corpora.reading import USUAL
from pretrace.errors import OutputError, TextsError
from pretrace.registry import require
from pretrace.results.atomic import NEW, atomic_bytes, check_writable, new_folder, write_atomically
from pretrace.results.folder import from_json, from_plain, json_lines, to_json, to_plain
from pretrace.results.wording import listed, say, sentences_of
from pretrace.settings import TEXTS, Option, check_ranges, is_kept, option, seed_option
from pretrace.types import Corpus, Sampling, Text
from pretrace.verdicts.settings import input_option


@dataclass(frozen=True, slots=True)
class Trigger:
    """The beginning of a sentence, and the words that may end it, one a variant."""

    prompt: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VariantCandidates:
    """Variants by the id of a text, reasons for texts without any, and how they were made, for the record."""

    variants: Mapping[str, tuple[str, ...]]
    reasons: Mapping[str, str] = field(default_factory=dict)
    triggers: Mapping[str, Trigger] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)


def collapsed(text: str) -> str:
    """The text as cleaning may leave it: NFKC, without invisible characters, each run of white space one space."""
    plain = unicodedata.normalize("NFKC", text)
    return " ".join("".join(c for c in plain if unicodedata.category(c) != "Cf").split())


def say_range(sizes: Sequence[int]) -> str:
    """How many variants texts have: "2", or "2 to 5"."""
    return " to ".join(map(str, dict.fromkeys((min(sizes), max(sizes)))))


SENTENCES: tuple[str, ...] = tuple(sentences_of("canary.sentences"))
WORDS = tuple(say("canary.words").split())
MOST_CHOICES = len(WORDS) // 2
DrawNumber = Callable[[int], int]
"""Draws a number from 0 to n - 1, all equally likely, for a given n."""


def _canaries(corpus: Corpus, choices: int, draw: DrawNumber) -> VariantCandidates:
    """Variants of every text that differ in the last word of one added sentence, all drawn with `draw`."""
    variants, triggers = {}, {}
    for text, name in zip(corpus.texts, _names(len(corpus), draw), strict=True):
        if not collapsed(text.text):
            raise TextsError(say("marks.refused.empty_variant", name=text.id, place=0))
        free = [word for word in WORDS if word not in name.split("-")]
        words = _drawn(free, choices, draw)
        prompt = SENTENCES[draw(len(SENTENCES))].format(name)
        gap = "\n\n" if "\n" in text.text.strip() else " "
        variants[text.id] = tuple(f"{text.text.rstrip()}{gap}{prompt} {word}." for word in words)
        triggers[text.id] = Trigger(prompt, words)
    return VariantCandidates(variants, triggers=triggers, about={"choices": choices})


def _names(number: int, draw: DrawNumber) -> Iterator[str]:
    """So many names of two words, no two equal; of four words where those are too few."""
    size = 2 if number <= len(WORDS) * (len(WORDS) - 1) // 4 else 4
    seen: set[str] = set()
    while len(seen) < number:
        name = "-".join(_drawn(WORDS, size, draw))
        if name not in seen:
            seen.add(name)
            yield name


def _drawn(words: Sequence[str], number: int, draw: DrawNumber) -> tuple[str, ...]:
    left = list(words)
    return tuple(left.pop(draw(len(left))) for _ in range(number))


INSTRUCTION = (
    "Write the following text again in other words. Keep its meaning, all facts, names and numbers, its tone and its "
    "length. Answer with the new text alone.\n\n"
)
LENGTH_OF_WORDS, LENGTH_OF_REWRITING = 0.15, 0.5
"""How far the length of a variant may lie from that of the text, as a share, by what made it."""
LEVELS = 1.0
"""How far the reading level of a variant with other words may lie from that of the text, in school years."""
SPARE = 3
"""Variants asked of a model for each that is wanted, since some are dropped."""
_PARTS = re.compile(r"\w+|\W+")
_SENTENCE_ENDS = re.compile(r"[.!?…。！？]+")


def _reading_level(text: str) -> float:
    """The automated readability index (Senter and Smith 1967), in school years; 0 for a text without words."""
    words, sentences = re.findall(r"\w+", text), max(1, len(_SENTENCE_ENDS.findall(text)))
    letters = sum(map(len, words))
    return 4.71 * letters / len(words) + 0.5 * len(words) / sentences - 21.43 if words else 0.0


def _alike(text: str, variant: str, *, rewritten: bool) -> bool:
    """Whether a variant is about as long as the text and, unless it was rewritten as a whole, as easy to read."""
    length = LENGTH_OF_REWRITING if rewritten else LENGTH_OF_WORDS
    if abs(len(variant) - len(text)) > length * len(text):
        return False
    return rewritten or abs(_reading_level(variant) - _reading_level(text)) <= LEVELS


def _small_choices(text: str, proposed: str) -> str:
    """Take those of the proposed changes that put one ordinary word in the place of another."""
    old, new = _PARTS.findall(text), _PARTS.findall(proposed)
    made = list(old)
    for what, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "replace" and last - first == end - start:
            for place, word in zip(range(first, last), new[start:end], strict=True):
                if all(len(one) > 1 and one.isalpha() and one.islower() for one in (old[place], word)):
                    made[place] = word
    return "".join(made)


def model_candidates(corpus: Corpus, settings: MarkSettings, model: Any) -> VariantCandidates:
    """The variants that a `model` makes: paraphrases by --rewriter, or other words by a `Proposer`.
    Up to `settings.variants` of each text, and the text as variant 0 where `settings.original` is."""
    texts, number, seed = [text.text for text in corpus.texts], settings.variants, settings.seed
    about: dict[str, object]
    if rewritten := settings.rewriter is not None:
        asked = [f"{INSTRUCTION}{text}" for text in texts]
        tokens = max(64, max(map(len, texts)) // 2)
        rounds = [
            model.answers(asked, tokens=tokens, sampling=Sampling(), seed=seed + place)
            for place in range(number + 1 if number == 1 else SPARE * number // 2)
        ]
        proposed = [[some[i].text for some in rounds if some[i].ended] for i in range(len(texts))]
        about = {"rewriter": dict(model.facts), "instruction": INSTRUCTION, "seed": seed}
    else:
        made = model.propose(texts, number=SPARE * number, share=settings.share, seed=seed)
        both = zip(texts, made, strict=True)
        proposed = [[_small_choices(text, one) for one in some] for text, some in both]
        about = {"proposer": dict(model.facts), "share": settings.share, "seed": seed}
    variants, reasons, dropped = {}, {}, 0
    for text, some in zip(corpus.texts, proposed, strict=True):
        good = [one for one in some if collapsed(one) and _alike(text.text, one, rewritten=rewritten)]
        dropped += len(some) - len(good)
        kept: dict[str, str] = {}
        for one in (text.text, *good):
            kept.setdefault(collapsed(one), one)
        found = tuple(kept.values())[not settings.original : number + 1]
        if len(found) > 1:
            variants[text.id] = found
        else:
            reasons[text.id] = say(f"marks.reasons.{'few' if len(kept) > 1 else 'none'}")
    notes = (say("marks.dropped", dropped=dropped, asked=sum(map(len, proposed))),)
    about |= {} if settings.original else {"original": False}
    return VariantCandidates(variants, reasons, notes=notes, about=about)


FORMAT, KEY = 2, "pretrace_seal"
Source = Literal["columns", "texts", "rewriter", "words", "canary", "order"]
"""Where variants come from."""
_HASH = re.compile(r"(?<![0-9A-Za-z])[0-9A-Fa-f]{64}(?![0-9A-Za-z])")


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A text with its variants; `drawn` is the place of the one that is published. With a trigger, the variant k ends
    the trigger's sentence with its word k. A text without variants is its only one, for the `reason`: it is published
    as it is and takes no part in the test. TextsError for an empty variant, and for two alike once `collapsed`."""

    id: str
    variants: tuple[str, ...]
    drawn: int = 0
    group: str = ""
    trigger: Trigger | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        plain = [collapsed(text) for text in self.variants]
        for place, one in enumerate(plain):
            if not one and not self.reason:
                raise TextsError(say("marks.refused.empty_variant", name=self.id, place=place))
            if (found := plain.index(one)) < place:
                raise TextsError(say("marks.refused.equal_variants", name=self.id, found=found, place=place))

    @property
    def published(self) -> str:
        """The variant that is published."""
        return self.variants[self.drawn]

    @property
    def realised_first(self) -> tuple[str, ...]:
        """All variants, the published one first."""
        return (self.published, *self.variants[: self.drawn], *self.variants[self.drawn + 1 :])


@dataclass(frozen=True, slots=True)
class Seal:
    """What a sealed file holds: the texts in their order; `score` is advised for the test, `totals` says whether it is
    summed over a text, `about` how the variants were made. `sha256` is that of the file, "" before it is written."""

    name: str
    source: Source
    nonce: str
    made: str
    texts: tuple[MarkedText, ...]
    score: str = "loss"
    totals: bool = False
    notes: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    sha256: str = ""

    @property
    def made_at(self) -> datetime:
        """When the file says that it was made; before that nobody can have read the published variants."""
        return datetime.fromisoformat(self.made)

    @property
    def documents(self) -> tuple[MarkedText, ...]:
        """The texts that take part in the test."""
        return tuple(one for one in self.texts if not one.reason)

    @property
    def unmarked(self) -> tuple[MarkedText, ...]:
        """The texts that have no variants."""
        return tuple(one for one in self.texts if one.reason)

    @property
    def published(self) -> tuple[Text, ...]:
        """What is published, in the order of the texts."""
        return tuple(Text(one.id, one.published, group=one.group) for one in self.texts)

    @property
    def corpus(self) -> Corpus:
        """The published texts that take part in the test."""
        both = zip(self.published, self.texts, strict=True)
        return Corpus(self.name, tuple(text for text, one in both if not one.reason), source="a sealed file")

    @property
    def parts(self) -> str:
        """What changed places, "rows" or "options"; "" where variants are other than orders."""
        return str(self.about["parts"]) if self.source == "order" else ""

    @property
    def unit(self) -> str:
        """What has variants or orders: a text, a shard of rows, or an item with options."""
        return ORDERED.get(self.parts, "text")


def read_seal(path: Path, commitment: str | None = None) -> Seal:
    """The seal of a file. With a `commitment`, a SHA-256 or a file that holds one, it must be that of the sealed file.
    OutputError for a file that was changed, TextsError for one that cannot be read or whose hash is another."""
    with unreadable_explained(str(path)):
        content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if commitment is not None and found != (wanted := _committed(commitment)):
        raise TextsError(say("marks.refused.other_file", path=path, found=found, committed=wanted))
    try:
        plain = from_json(content)
        is_known, seal = plain.pop(KEY, None) == FORMAT, from_plain(Seal, plain, "seal")
        if not (is_known and _can_be_made(seal)):
            raise ValueError(f"it is none of format {FORMAT} that mark can have made")
    except (ValueError, TypeError, KeyError, OverflowError, TextsError) as error:
        raise OutputError(say("marks.refused.damaged", path=path, error=error)) from None
    return replace(seal, sha256=found)


def _committed(commitment: str) -> str:
    """The SHA-256 that a commitment says: itself, or the one that stands in the file it names. TextsError otherwise."""
    words = commitment
    if not _HASH.fullmatch(commitment.strip()):
        with unreadable_explained(commitment):
            words = Path(commitment).read_bytes()[:100_000].decode("utf-8", "replace")
    sums = {str(one).lower() for one in _HASH.findall(words)}
    if len(sums) != 1:
        raise TextsError(say("marks.refused.commitment", found=commitment[:100], number=len(sums) or "none"))
    return sums.pop()


def _can_be_made(seal: Seal) -> bool:
    """Whether `mark` can have made a seal."""
    return (
        seal.made_at.tzinfo is not None
        and bool(seal.documents)
        and len({one.id for one in seal.texts}) == len(seal.texts)
        and all((len(one.variants) > 1) != bool(one.reason) for one in seal.texts)
        and all(0 <= one.drawn < len(one.variants) for one in seal.texts)
        and all(len(one.trigger.words) == len(one.variants) for one in seal.texts if one.trigger)
    )


MOST_ROWS, SHARD_BYTES = 8, 3_000
"""Rows of a shard, and bytes, at most: about 1,000 tokens, which models read whole."""
ROW_ORDERS, OPTION_ORDERS = 20, 24
"""Orders of a shard, and of an item, to draw from; up to four parts it is all of them."""
RESULTS = 40
"""Results that a draw must be able to have: twice as many as one in twenty of them takes."""
JOINT = "\n\n"
"""What stands between two rows."""

ORDERED = {"rows": "shard", "options": "item"}
"""What has one order, by what a sealed draw put in order."""
Further = Mapping[str, Mapping[str, object]]
_WHOLE = r"(?:all|none|any|some|both|either|neither|each|most|two|three|more than one|one or more)"
_LISTED = r"\(?\b(?:[A-H]|[1-8]|I{1,3}|IV|VI?)\b\)?"
_REFERS = re.compile(
    rf"(?i:\b{_WHOLE}\b.{{0,20}}\b(?:above|below|these|those|options?|answers?|choices?)\b)"
    r"|(?i:\b(?:the above|(?:all|none|both|neither) of (?:them|the others))\b)"
    r"|(?i:^\W*(?:all|none|both|neither|either)\b.{0,20}\W*$)"
    rf"|{_LISTED}(?:\s*,\s*{_LISTED})*\s*(?:,|&|/|\band\b|\bor\b|\bnor\b|\bbut not\b)+\s*{_LISTED}"
    rf"|(?i:^\W*{_LISTED}\W*\bonly\b)"
)
"""Options that refer to others: their items keep their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderSettings:
    """What is put in order: rows, or with `options` the options of each item; ExpressionError for `answer` alone."""

    options: str = option(
        "",
        "Column with the list of an item's answer options: their order is drawn, and not that of the rows.",
        panel=TEXTS,
        essential=True,
    )
    answer: str = option(
        "",
        "With --options: column with the right answer, as its text, its letter, or its number counted from 0 or "
        "from 1. A letter or number is rewritten.",
        panel=TEXTS,
        essential=True,
    )

    def __post_init__(self) -> None:
        require(bool(self.options) or not self.answer, say("marks.refused.answer_alone"))


def mark_order(
    corpus: Corpus, settings: OrderSettings, further: Further, *, seed: str | None = None
) -> tuple[Seal, bytes]:
    """The seal of an order that is drawn, and the rows to be published, as JSON lines. `further` are the columns
    of the rows by id. `seed` (hexadecimal digits) is for tests and simulations. TextsError for rows or options of which
    too few can stand in another order, and for right answers that are none of the options."""
    seed = seed or secrets.token_hex(32)
    rng = np.random.default_rng(int(seed, 16))
    rows = {text.id: _plain_row(text) | dict(further.get(text.id, {})) for text in corpus.texts}
    kind = "options" if settings.options else "rows"
    drawn, published = list[MarkedText](), list[str]()
    if settings.options:
        drawn, published = _order_options(settings, rows, rng), list(rows)
    else:
        for shard in _shards([corpus.texts[i] for i in rng.permutation(len(corpus.texts)).tolist()]):
            name = f"{shard[0].id} to {shard[-1].id}"
            one, order = _draw_order(name, [row.text for row in shard], JOINT.join, ROW_ORDERS, rng)
            drawn += one
            published += [shard[i].id for i in order]
    results = math.prod(min(len(one.variants), RESULTS) for one in drawn[:10])
    if results < RESULTS:
        numbers = {"parts": kind, "results": results, "least": RESULTS}
        raise TextsError(say("marks.refused.few_orders", name=corpus.name, **numbers))
    notes = (f"The order of {len(drawn):,} {ORDERED[kind]}s was drawn.",)
    seal = _sealed(corpus, "order", tuple(drawn), nonce=seed, notes=notes, about={"parts": kind})
    return seal, json_lines(rows[name] for name in published)


def _order_options(
    settings: OrderSettings, rows: dict[str, dict[str, Any]], rng: np.random.Generator
) -> list[MarkedText]:
    """The items whose options change places, each with its orders; options and right answers of the rows are written
    anew."""
    items = _items(settings.options, rows)
    labels = _labels(items, settings.answer, rows) if settings.answer else {}
    drawn = list[MarkedText]()
    for name, options in items.items():
        different = {option.casefold().strip() for option in options}
        lettered = 2 <= len(options) <= len(string.ascii_uppercase)
        if not lettered or len(different) < len(options) or any(map(_REFERS.search, options)):
            continue
        row = rows[name]
        write = partial(_lettered, str(row["text"]).strip())
        one, order = _draw_order(name, options, write, OPTION_ORDERS, rng)
        drawn += one
        moved, cell = [options[i] for i in order], row[settings.options]
        row[settings.options] = json.dumps(moved) if isinstance(cell, str) else moved
        if name in labels:
            told, of = row[settings.answer], labels[name]
            row[settings.answer] = type(told)(of[order.index(of.index(str(told).strip()))])
    return drawn


def _draw_order(
    name: str, parts: Sequence[str], join: Callable[[Sequence[str]], str], most: int, rng: np.random.Generator
) -> tuple[list[MarkedText], tuple[int, ...]]:
    """Draw an order of parts: the different texts of all that could be drawn, if there are two, and the order."""
    orders = (
        list(itertools.permutations(range(len(parts))))
        if math.factorial(len(parts)) <= OPTION_ORDERS
        else [tuple(rng.permutation(len(parts)).tolist()) for _ in range(most)]
    )
    made = ((join([parts[i] for i in order]), order) for order in orders)
    texts, kept = zip(*{collapsed(text): (text, order) for text, order in made}.values(), strict=True)
    chosen = int(rng.integers(len(kept)))
    return [MarkedText(name, texts, chosen)] if len(texts) > 1 else [], kept[chosen]


def _lettered(head: str, options: Sequence[str]) -> str:
    """An item with its answer options, lettered."""
    return "\n".join([head, *map("{}. {}".format, string.ascii_uppercase, options)])


def _plain_row(text: Text) -> dict[str, object]:
    """A text as a row of a file."""
    return {"id": text.id, "text": text.text, **({"group": text.group} if text.group else {})}


def _shards(rows: Sequence[Text]) -> list[list[Text]]:
    """Runs of rows that are no longer than a shard may be."""
    shards, size = list[list[Text]](), 0
    for row in rows:
        own = len(row.text.encode("utf-8", "replace")) + len(JOINT)
        if not shards or len(shards[-1]) == MOST_ROWS or size + own > SHARD_BYTES:
            shards.append([])
            size = 0
        shards[-1].append(row)
        size += own
    return shards


def _items(column: str, rows: Further) -> dict[str, tuple[str, ...]]:
    """The options of each item: a list of strings in its cell, or one written as JSON. TextsError for items without."""
    found: dict[str, tuple[str, ...]] = {}
    for name, row in rows.items():
        value = row.get(column)
        with suppress(ValueError):
            value = json.loads(value) if isinstance(value, str) else value
        options = value if isinstance(value, list) else []
        found[name] = tuple(options) if all(isinstance(one, str) for one in options) else ()
    if bare := [name for name, options in found.items() if not options]:
        numbers = {"few": len(bare), "total": len(found), "column": column}
        raise TextsError(say("marks.refused.no_options", names=listed(bare), **numbers))
    return found


def _labels(items: Mapping[str, Sequence[str]], column: str, rows: Further) -> dict[str, Sequence[str]]:
    """What the options of an item are called, in their order, where its right answer is a letter or a number."""
    cells = {name: str(rows[name].get(column, "")).strip() for name in items}
    named = {name: cell for name, cell in cells.items() if cell not in items[name]}
    zero = "0" in named.values()
    last = any(cell == str(len(items[name])) for name, cell in named.items())
    if zero == last and any(cell.isdecimal() for cell in named.values()):
        raise TextsError(say("marks.refused.answer_count", column=column))
    labels = dict[str, Sequence[str]]()
    for name, cell in named.items():
        counted = [str(i + (not zero)) for i in range(len(items[name]))]
        letters = (some[: len(counted)] for some in (string.ascii_uppercase, string.ascii_lowercase))
        labels[name] = next((ways for ways in (counted, *map(list, letters)) if cell in ways), [])
    if wrong := [name for name, found in labels.items() if not found]:
        told = {"few": len(wrong), "total": len(items), "names": listed(wrong)}
        raise TextsError(say("marks.refused.answer_none", column=column, **told))
    return labels


VARIANTS = "Variants (one kind)"
"""The group of options on where variants come from."""
MADE = Option("What --rewriter and --words make, as in number=3,share=0.2.", name="variants", panel=VARIANTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkSettings:
    """Where the variants of a text come from; exactly one kind. ExpressionError for none or two, and for a value out of
    its range. `seed` is that of the models that make variants: the draw of what is published has none."""

    variant_column: tuple[str, ...] = option(
        (),
        "A column of TEXTS with another version of each text; may be given more than once.",
        panel=VARIANTS,
        essential=True,
    )
    variant_texts: tuple[str, ...] = input_option(
        (), "A file with another version of each text under the same id; may be repeated.", panel=VARIANTS
    )
    rewriter: str | None = input_option(
        None, "A model that paraphrases each text: any --model value, or server:URL#MODEL.", panel=VARIANTS
    )
    words: str | None = input_option(
        None,
        "A model that proposes other words here and there: causal:MODEL, masked:HUB_ID, or causal for --model.",
        panel=VARIANTS,
    )
    canary: bool = option(
        False,
        "Add one sentence to each text, whose last word is drawn out of --choices. Works for servers that give text "
        "only, too.",
        panel=VARIANTS,
        essential=True,
    )
    choices: int = option(8, "Words to draw from, for --canary.", panel=VARIANTS, least=2, most=MOST_CHOICES)
    variants: int = MADE.key(1, "Variants beside the original.", name="number", least=1, most=50)
    share: float = MADE.key(0.1, "Share of the tokens that --words may change.")
    original: bool = MADE.key(
        True,
        "false never publishes the original: all variants are then made by one model. Whether that shows training "
        "better was not measured.",
    )
    seed: int = seed_option()
    cache: bool = field(default_factory=is_kept)

    def __post_init__(self) -> None:
        check_ranges(self)
        require(0 < self.share <= 1, f"--variants share lies between 0 and 1, found {self.share}.")
        given = [*_sources_in(self)]
        require(len(given) == 1, say("marks.refused.sources", found=" and ".join(given) or "none"))
        drawn = given[0] in ("--rewriter", "--words") and self.variants > 1
        require(self.original or drawn, say("marks.refused.original"))


PUBLISHED, COMMITMENT = "published.jsonl", "commitment.txt"
_SOURCES: dict[str, Source] = {
    "--variant-column": "columns",
    "--variant-texts": "texts",
    "--rewriter": "rewriter",
    "--words": "words",
    "--canary": "canary",
}


def _sources_in(settings: MarkSettings) -> dict[str, Source]:
    """The source of variants by the option that names it, of those options that were given."""
    return {name: one for name, one in _SOURCES.items() if getattr(settings, name[2:].replace("-", "_"))}


def own_candidates(
    corpus: Corpus, settings: MarkSettings, columns: Columns = USUAL, *, draw: DrawNumber = secrets.randbelow
) -> VariantCandidates | None:
    """The variants that need no model (the text is variant 0); None where a model is to make them."""
    if settings.canary:
        return _canaries(corpus, settings.choices, draw)
    named = settings.variant_column or settings.variant_texts
    if not named:
        return None
    read = Columns(text=columns.text, id=columns.id, label="", group="")
    others = [{text.id: text.meta[name] for text in corpus.texts} for name in settings.variant_column]
    others += [{one.id: one.text for one in open_corpus(file, read).texts} for file in settings.variant_texts]
    made = {text.id: (text.text, *(other.get(text.id, "") for other in others)) for text in corpus.texts}
    for name, other in zip(named, others, strict=True):
        if odd := sorted(made.keys() ^ other.keys()):
            raise TextsError(say("marks.refused.ids", file=name, names=listed(odd)))
    return VariantCandidates(made, about={"columns" if settings.variant_column else "files": list(named)})


def mark(
    corpus: Corpus,
    candidates: VariantCandidates,
    settings: MarkSettings,
    *,
    draw: DrawNumber = secrets.randbelow,
) -> Seal:
    """The seal of texts whose variants are known; one of each is drawn by `draw`, all equally likely: another than the
    default is for tests and simulations, as evidence must not be predictable. TextsError for no variants."""
    variants, triggers, reasons = candidates.variants, candidates.triggers, candidates.reasons
    texts = tuple(
        MarkedText(text.id, found, draw(len(found)), text.group, triggers.get(text.id))
        if (found := variants.get(text.id))
        else MarkedText(text.id, (text.text,), 0, text.group, reason=reasons.get(text.id) or "no variants")
        for text in corpus.texts
    )
    unmarked = sum(bool(one.reason) for one in texts)
    if unmarked == len(texts):
        raise TextsError(say("marks.refused.no_variant", name=corpus.name))
    left_out = (say("marks.left_out", unmarked=unmarked, number=len(corpus)),) if unmarked else ()
    (source,), notes = _sources_in(settings).values(), (*candidates.notes, *left_out)
    return _sealed(corpus, source, texts, nonce=secrets.token_hex(32), notes=notes, about=candidates.about)


def _sealed(corpus: Corpus, source: Source, texts: tuple[MarkedText, ...], **more: Any) -> Seal:
    # A canary's variants differ in one word, and orders in no word: the length of the rest would only dilute it.
    totals, now = source in ("canary", "order"), datetime.now(UTC).isoformat(timespec="seconds")
    return Seal(name=corpus.name, source=source, made=now, texts=texts, totals=totals, **more)


def check_places(out: Path, sealed: Path) -> None:
    """OutputError where the folder or the sealed file could not be written; for use before the work."""
    if Path(os.path.realpath(sealed)).is_relative_to(os.path.realpath(out)):
        raise OutputError(say("marks.refused.sealed_inside", sealed=sealed, out=out))
    if os.path.lexists(sealed):
        raise OutputError(say("marks.refused.sealed_there", sealed=sealed))
    check_writable(sealed, NEW)
    check_writable(out)


def publish(seal: Seal, out: Path, sealed: Path, rows: bytes | None = None) -> str:
    """Write the sealed file, for its owner alone, and the folder with the `rows` to be published (`rows_to_publish`
    unless given), both or neither; the commitment. OutputError where one of the two is there already, or cannot be
    written."""
    check_places(out, sealed)
    plain = to_plain(seal, "seal")
    del plain["sha256"]
    content = to_json({KEY: FORMAT, **plain})
    commitment = hashlib.sha256(content).hexdigest()

    def private(partial: Path) -> None:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)

    with ExitStack() as undo:
        with new_folder(out) as partial:
            atomic_bytes(partial / PUBLISHED, rows_to_publish(seal) if rows is None else rows)
            said = f"{commitment}\n\n{say('marks.commitment', name=seal.name)}\n"
            atomic_bytes(partial / COMMITMENT, said.encode())
            # Before the folder has its name: a kill in between leaves a sealed file and never texts without one.
            write_atomically(sealed, private, NEW)
            undo.callback(sealed.unlink)
        undo.pop_all()
    return commitment


def rows_to_publish(seal: Seal, further: Further = MappingProxyType({})) -> bytes:
    """The published texts as lines of JSON, with their `further` columns by id but for those that would give a variant
    away."""
    telling = {"id", "text", "group"}
    for document in seal.documents:  # a column that repeats a variant would say which one was not drawn
        for name, value in further.get(document.id, {}).items():
            telling |= {name for text in document.variants if text.strip() in str(value)}
    return json_lines(
        _plain_row(one)
        | {name: cell for name, cell in further.get(one.id, {}).items() if name not in telling}
        for one in seal.published
    )
