"""The texts of the experiment on the tests without an earlier checkpoint: what is planted in a model, and what is not.

Every design draws on one domain's documents, divided at random, so that members and non-members differ in nothing but
exposure. What is drawn by lot (variants, orders, canaries) is drawn here, once a domain; which units a model reads, and
how often, is drawn anew for every model.
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.errors import TextsError

DOMAINS = ("wikipedia_en", "pubmed_abstracts", "stackexchange")
"""Those that everything was settled on."""
KEPT_APART = "hackernews"
"""Looked at when everything else was settled."""
BACKGROUND = (*DOMAINS, KEPT_APART, "nih_exporter", "github")
OTHER = {
    "wikipedia_en": "pubmed_abstracts",
    "pubmed_abstracts": "stackexchange",
    "stackexchange": "wikipedia_en",
    "hackernews": "wikipedia_en",
}
"""The domain that stands in where a design is broken on purpose."""
COPIES = (1, 4, 16)
HEX, DIGITS = "0123456789abcdef", "01"
WORD = re.compile(r"\b[a-z]{4,12}\b")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything; a tuple of four counts units that are read once, 4 times, 16 times, and never. `stream`
    are the documents in the months before and after a cut-off that are compared."""

    documents: tuple[int, int, int, int] = (160, 100, 50, 320)
    leaked: int = 30
    characters: int = 400
    fewest: int = 900
    variants: int = 3
    replaced: float = 0.1
    shards: tuple[int, int, int, int] = (32, 24, 16, 48)
    rows: int = 8
    row: int = 65
    meaningful: int = 24
    shuffles: int = 19
    published: int = 250
    items: tuple[int, int, int, int] = (60, 40, 25, 80)
    fresh: int = 19
    targets: int = 8
    others: int = 100
    collection: int = 10
    stream: tuple[int, ...] = (5, 10, 15)
    background: int = 1200
    epochs: int = 2
    rate: float = 2e-3
    batch: int = 8
    tiny: bool = False

    @property
    def plain(self) -> dict[str, Any]:
        """All of it in plain values."""
        return json.loads(json.dumps(asdict(self)))


QUICK = Sizes(
    documents=(14, 7, 7, 100),
    leaked=4,
    characters=60,
    fewest=200,
    shards=(7, 7, 7, 5),
    rows=4,
    row=16,
    meaningful=4,
    shuffles=9,
    published=19,
    items=(7, 7, 7, 8),
    fresh=9,
    others=12,
    collection=5,
    stream=(3,),
    background=200,
    epochs=1,
    tiny=True,
)
"""Sizes of a run that only shows that everything works."""


@dataclass(frozen=True, slots=True)
class Material:
    """All texts of a domain. `variants` [documents][variants] with the published index `lot`; `edited` and `short` are
    drafts of the published variant: with more words replaced, and with its end left out. `shards` are rows in the
    published order, `orders` [shards][shuffles] their permutations; `meaningful` shards are consecutive pieces of one
    document. The first of each tuple of `items`, `canaries`, `plain_canaries` and `triggers` is what is published."""

    domain: str
    variants: tuple[tuple[str, ...], ...]
    lot: tuple[int, ...]
    edited: tuple[str, ...]
    short: tuple[str, ...]
    shards: tuple[tuple[str, ...], ...]
    meaningful: tuple[tuple[str, ...], ...]
    items: tuple[tuple[str, ...], ...]
    canaries: tuple[tuple[str, ...], ...]
    plain_canaries: tuple[tuple[str, ...], ...]
    triggers: tuple[tuple[str, ...], ...]

    @property
    def published(self) -> tuple[str, ...]:
        """The variant of each document that was drawn."""
        return tuple(some[i] for some, i in zip(self.variants, self.lot, strict=True))


def read(data: Path, domain: str) -> list[str]:
    """The distinct texts of a domain, in the order of the file."""
    path = data / "pile" / f"{domain}.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return list(dict.fromkeys(json.loads(line)["text"].strip() for line in file))


def divided(texts: Sequence[str], sizes: Sizes, seed: int) -> tuple[list[str], list[str]]:
    """The documents of the experiment and those of the background; TextsError where there are too few."""
    long = [text for text in texts if len(text) >= sizes.fewest]
    wanted = sum(sizes.documents) + sizes.leaked
    if len(long) < wanted:
        raise TextsError(
            f"the experiment takes {wanted} texts of {sizes.fewest} characters, found {len(long)}."
        )
    order = np.random.default_rng([seed, 1]).permutation(len(long))
    chosen = {int(i) for i in order[:wanted]}
    audited = [long[int(i)] for i in order[:wanted]]
    kept = {long[i] for i in chosen}
    return audited, [text[: sizes.background] for text in texts if text not in kept]


def material(data: Path, domain: str, sizes: Sizes, seed: int = 0) -> Material:
    """All that is planted or held back of a domain."""
    texts, background = divided(read(data, domain), sizes, seed)
    rng = np.random.default_rng([seed, 2, *map(ord, domain[:4])])
    words = vocabulary(background)
    heads = [cut(text, sizes.characters) for text in texts]
    variants = [
        tuple(reworded(head, words, sizes.replaced, rng) for _ in range(sizes.variants)) for head in heads
    ]
    lot = rng.integers(sizes.variants, size=len(heads))
    published = [some[i] for some, i in zip(variants, lot, strict=True)]
    tails = [" ".join(text[sizes.characters + 20 :].split()) for text in texts]
    meaningful, shards = _shards(tails, sizes, rng)
    stems = [cut(" ".join(text[len(text) // 2 :].split()), 50) for text in background if len(text) >= 150]
    number, pool = sum(sizes.items), sorted(set(itertools.chain(*words.values())))
    stems = [stems[i % len(stems)] for i in range(3 * number)]
    return Material(
        domain,
        tuple(variants),
        tuple(map(int, lot)),
        tuple(reworded(text, words, sizes.replaced, rng) for text in published),
        tuple(" ".join(text.split(" ")[: int(0.85 * len(text.split(" ")))]) for text in published),
        shards,
        meaningful,
        tuple(_item(stem, pool, rng) for stem in stems[:number]),
        tuple(_canary(stem, HEX, sizes.fresh, rng) for stem in stems[number : 2 * number]),
        tuple(_canary(stem, DIGITS, sizes.fresh, rng) for stem in stems[number : 2 * number]),
        tuple(_trigger(stem, pool, sizes.targets, rng) for stem in stems[2 * number :]),
    )


def vocabulary(texts: Sequence[str]) -> dict[int, list[str]]:
    """The words of the texts that stand there three times or more, by length."""
    counts = Counter(word for text in texts for word in WORD.findall(text))
    found: dict[int, list[str]] = {}
    for word, times in sorted(counts.items()):
        if times >= 3:
            found.setdefault(len(word), []).append(word)
    return found


def reworded(text: str, words: dict[int, list[str]], share: float, rng: np.random.Generator) -> str:
    """The text with this share of its words (two at least) replaced by other words of the same length."""
    places = [match.span() for match in WORD.finditer(text)]
    number = min(len(places), max(2, round(share * len(text.split()))))
    out = text
    for i in rng.permutation(len(places))[:number]:
        start, end = places[int(i)]
        pool = words.get(end - start, [])
        new = pool[int(rng.integers(len(pool)))] if pool else ""
        out = out[:start] + (new or text[start:end]) + out[end:]
    return out


def cut(text: str, characters: int) -> str:
    """The beginning of a text, up to the last blank within so many characters."""
    return text if len(text) <= characters else text[:characters].rsplit(" ", 1)[0].rstrip()


def shuffles(sizes: Sizes, shards: int, number: int, *, whole: bool = False) -> list[list[list[int]]]:
    """For each shard so many random orders of its rows, the first row where it is unless `whole`."""
    first = 0 if whole else 1
    rngs = [np.random.default_rng([3, first, shard]) for shard in range(shards)]
    return [
        [[*range(first), *(first + rng.permutation(sizes.rows - first)).tolist()] for _ in range(number)]
        for rng in rngs
    ]


def _shards(tails: Sequence[str], sizes: Sizes, rng: np.random.Generator) -> Any:
    """Shards whose rows are pieces of one document in order, and shards of rows in random order."""
    whole = sizes.rows * (sizes.row + 5)
    long = [i for i, tail in enumerate(tails) if len(tail) > whole][: sizes.meaningful]
    meaningful = tuple(tuple(pieces(tails[i], sizes.row)[: sizes.rows]) for i in long)
    used = set(long)
    rows = [piece for i, tail in enumerate(tails) if i not in used for piece in pieces(tail, sizes.row)[:4]]
    rows = list(dict.fromkeys(row for row in rows if len(row) >= sizes.row // 2))
    wanted = sum(sizes.shards) * sizes.rows
    if len(rows) < wanted:
        raise TextsError(f"the ordered sets take {wanted} rows, found {len(rows)}.")
    drawn = [rows[int(i)] for i in rng.permutation(len(rows))[:wanted]]
    shards = tuple(tuple(drawn[i : i + sizes.rows]) for i in range(0, wanted, sizes.rows))
    return meaningful, shards


def pieces(text: str, characters: int) -> list[str]:
    """Consecutive pieces of about so many characters, cut at blanks."""
    found: list[str] = [""]
    for word in text.split():
        if len(found[-1]) + len(word) >= characters and found[-1]:
            found.append("")
        found[-1] = f"{found[-1]} {word}".strip()[: 2 * characters]
    return found


def _item(stem: str, pool: Sequence[str], rng: np.random.Generator) -> tuple[str, ...]:
    """A question with its four options in all orders, the published one first."""
    options = [pool[int(i)] for i in rng.choice(len(pool), 4, replace=False)]
    return tuple(
        f"{stem}\n" + "\n".join(f"{name}. {word}" for name, word in zip("ABCD", order, strict=True))
        for order in itertools.permutations(options)
    )


def _canary(stem: str, letters: str, fresh: int, rng: np.random.Generator) -> tuple[str, ...]:
    """A text with a random string at its end; the first is the published one, of these `letters`, and the others are
    fresh draws of hexadecimal digits."""
    drawn = [
        "".join(some[int(i)] for i in rng.integers(len(some), size=12)) for some in (letters, *[HEX] * fresh)
    ]
    return tuple(f"{stem} {string}" for string in drawn)


def _trigger(stem: str, pool: Sequence[str], targets: int, rng: np.random.Generator) -> tuple[str, ...]:
    """A trigger sentence with each of its targets, the published one first."""
    words = [pool[int(i)] for i in rng.choice(len(pool), targets, replace=False)]
    return tuple(f"{stem}: the key is {word}" for word in words)
