"""How often the tests of an order reject and accuse where nobody trained on anything, and how often they find it.

Run it as `python -m benchmarks.designs.frame`, with `--runs` nulls a cell. Writes
benchmarks/results/innocents_frame.json; killed at any time it goes on where it was. `--fresh NUMBER` begins anew with
other seeds: what was chosen on one set of draws is reported on another. Texts of the Pile lie in PRETRACE_DATA/pile, by
default in shared/data beside the checkout.

"rejected" counts p at or below 5%; "accused" counts what ends in exit code 3: the lot that gave the order is repeated,
the blind gates see nothing in the texts (where the cell makes texts), and the second model does not find the same. An
order that carries meaning is in no order by lot, so that no lot can be repeated there. "before" is the rule of commit
26362c5 on the same draws: the user's statement is enough, and no second model is asked. Members are counted in the same
two ways, of sets in an order by lot.

Simulated cells take what a model makes of an order as a sum over neighbours: what stands in the texts for every model
(`gain` times the pattern), and preferences of its own, which two models share in part (`SHARED`). Models that are asked
in text name the part they like most. The second model sees nothing of the pattern, which is the worst case for the
innocent. Cells of running text take rows from documents in reading order, so that the blind gates have something to
see. Where neither a word nor the second model shows that each row continues the last, the numbers have the law of
training, and nothing but the lot itself can tell the two apart. The tests are the functions that the command calls:
`lot_test`, `gate_values`, `order_check`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from benchmarks.designs.models import DOMAINS, texts_of
from benchmarks.experiments import DATA, RESULTS
from benchmarks.machine import commit, machine
from pretrace.statistics.ranks import lot_test
from pretrace.types import Doubles
from pretrace.verdicts.frame import Rows
from pretrace.verdicts.order import FEWEST_PARTS, MOST_ROWS, Unit, gate_values, order_check

LEVEL, DRAWS = 0.05, 1000
SHARED = 0.5
"""Correlation of what two models prefer without a reason in the pattern."""
SHARDS, ITEMS = 24, 40
FOLLOWS = "each row continues the last one, and no word and no second model shows it"
Rng = np.random.Generator
PLACE = 0.5
"""How much more a model that is asked likes the first place of a list than the last."""
ORDERS = np.array(list(itertools.permutations(range(4))))


@dataclass(frozen=True)
class Case:
    """One innocent, or one who read the set: the units' values under both models in nats, the published order first,
    the units themselves where texts were made, and whether units are items, whose ranks are compared."""

    own: Rows
    second: Rows
    units: tuple[Unit, ...] = ()
    items: bool = False

    @property
    def compared(self) -> tuple[Rows, Rows]:
        """What is compared of both models."""
        if not self.items:
            return self.own, self.second
        own, second = (tuple(rankdata(row) / len(row) for row in rows) for rows in (self.own, self.second))
        return own, second


@dataclass(frozen=True)
class Cell:
    """A kind of texts, and how to draw one case of it; `lot`: its order was drawn by lot, which can be repeated;
    `member`: for a model that read the set; `texts`: it makes texts."""

    test: str
    kind: str
    draw: Callable[[Rng], Case]
    lot: bool = False
    member: bool = False
    texts: bool = False


def shards(rng: Rng, pattern: Doubles, gain: float, memory: float = 0.0) -> Case:
    """Shards of 8 rows in 19 random orders; `pattern` [shards, rows, rows] is what one row is worth in front of
    another for the target alone; `memory` is what the target adds where two rows stand as published."""
    number, rows = pattern.shape[:2]
    places = np.arange(rows)
    common, own, other = rng.standard_normal((3, number, rows, rows))
    first = gain * pattern + np.sqrt(SHARED) * common + np.sqrt(1 - SHARED) * own
    first[:, places[:-1], places[1:]] += memory
    second = np.sqrt(SHARED) * common + np.sqrt(1 - SHARED) * other
    orders = np.broadcast_to(places, (number, 20, rows)).copy()
    orders[:, 1:, 1:] = rng.permuted(orders[:, 1:, 1:], axis=2)
    shard = np.arange(number)[:, None, None]
    read = [values[shard, orders[..., :-1], orders[..., 1:]].sum(axis=2) for values in (first, second)]
    return Case(tuple(read[0]), tuple(read[1]))


def alike(rng: Rng, autocorrelation: float, *, gain: float = 0.3) -> Case:
    """Rows in an order of which a model sees that neighbours are alike, and no word shows it."""
    return shards(rng, _alike(rng, autocorrelation), gain)


def fair(rng: Rng, memory: float = 0.0, *, number: int = SHARDS) -> Case:
    """Rows in an order by lot."""
    return shards(rng, np.zeros((number, MOST_ROWS, MOST_ROWS)), 0.0, memory)


def continued(rng: Rng, *, gain: float = 0.5) -> Case:
    """Rows of which each continues the one before it, as the parts of a story do: a model that sees it finds these two
    likelier side by side, and no other two."""
    pattern = np.broadcast_to(np.eye(MOST_ROWS, k=1), (SHARDS, MOST_ROWS, MOST_ROWS))
    return shards(rng, pattern, gain)


def running(rng: Rng, cut: Callable[[str], list[str]], *, gain: float = 0.5) -> Case:
    """Rows of running text: eight neighbouring pieces of a document make a shard, in reading order."""
    rows: list[str] = []
    documents = [text for domain in DOMAINS for text in documents_of(domain)]
    while len(rows) < SHARDS * MOST_ROWS:
        parts = cut(documents[int(rng.integers(len(documents)))])
        rows += parts[: len(parts) // MOST_ROWS * MOST_ROWS]
    parts = [tuple(rows[i * MOST_ROWS : (i + 1) * MOST_ROWS]) for i in range(SHARDS)]
    units = tuple(Unit("", part, (tuple(range(1, MOST_ROWS)),), "\n\n") for part in parts)
    return replace(continued(rng, gain=gain), units=units)


@cache
def documents_of(domain: str) -> list[str]:
    """The documents of a domain of the Pile."""
    return texts_of(Path(os.environ.get("PRETRACE_DATA", DATA)), domain)


def sentences(text: str) -> list[str]:
    """A document by its sentences and lines."""
    return [one for one in re.split(r"(?<=[.!?])\s+|\n+", text) if len(one) > 20]


def pieces(text: str) -> list[str]:
    """A document cut after about 120 characters, within sentences."""
    return [one.strip() for one in re.findall(r"\S.{0,119}\S*(?:\s|$)", " ".join(text.split()))]


def textual(rng: Rng, arranged: Callable[[Rng, list[str]], list[str]]) -> Case:
    """Rows that were put in order by what they say; models find rows likelier behind such as share their words and are
    as long."""
    texts = arranged(rng, [sentence(rng) for _ in range(SHARDS * MOST_ROWS)])
    parts = [tuple(texts[i : i + MOST_ROWS]) for i in range(0, len(texts), MOST_ROWS)]
    units = tuple(Unit("", part, (tuple(range(1, MOST_ROWS)),), "\n\n") for part in parts)
    pattern = np.array([[[_like(a, b) for b in part] for a in part] for part in parts])
    return replace(shards(rng, pattern - pattern.mean(), 1.0), units=units)


def scales(rng: Rng, *, items: int = ITEMS, gain: float = 0.5) -> Case:
    """Items whose four options form a scale (freezing, cool, mild, scorching), published from one end to the other."""
    steps = -np.abs(np.diff(ORDERS, axis=1)).sum(axis=1).astype(float)
    pattern = np.broadcast_to((steps - steps.mean()) / steps.std(), (items, 24)).copy()
    return _items(rng, pattern, gain)


def middle(rng: Rng, *, known: bool, gain: float = 0.5, items: int = ITEMS) -> Case:
    """Items with the right answer at B or C in 60% of them, and a model that likes it there; `known`: the right answer
    keeps its place in all orders that are read."""
    places = rng.choice(4, items, p=[0.2, 0.3, 0.3, 0.2])
    where = np.argsort(ORDERS, axis=1)
    pattern = np.isin(where[:, places].T, (1, 2)).astype(float)
    pattern = 2 * (pattern - pattern.mean(axis=1, keepdims=True))
    made = _items(rng, pattern, gain)
    if not known:
        return made
    kept = [where[:, place] == place for place in places]
    own, second = (
        tuple(row[keep] for row, keep in zip(rows, kept, strict=True)) for rows in (made.own, made.second)
    )
    return Case(own, second, items=True)


def learnt(rng: Rng, memory: float, *, items: int = ITEMS) -> Case:
    """Items whose published order the target has read: it is likelier by so much, and orders near it by a part."""
    near = (np.arange(4) == ORDERS).mean(axis=1)
    made = _items(rng, np.zeros((items, 24)), 0.0)
    return replace(made, own=tuple(row + memory * near for row in made.own))


def sentence(rng: Rng) -> str:
    """A made-up row; words of a vocabulary of 300."""
    return " ".join(f"w{int(i)}" for i in rng.integers(300, size=int(rng.integers(5, 14))))


def near_copies(rng: Rng, rows: list[str]) -> list[str]:
    """Every row is followed by a copy of it with one other word."""
    found = []
    for row in rows[::2]:
        words = row.split()
        words[int(rng.integers(len(words)))] = f"w{int(rng.integers(300))}"
        found += [row, " ".join(words)]
    return found[: len(rows)]


def templated(rng: Rng, rows: list[str]) -> list[str]:
    """Three templates in turn, filled with one word each."""
    forms = (
        "Question: what is {}?",
        "Name the capital of {} in one word.",
        "Is {} larger than the sun, yes or no?",
    )
    return [forms[i % 3].format(row.split()[0]) for i, row in enumerate(rows)]


def drifting(rng: Rng, rows: list[str]) -> list[str]:
    """The vocabulary moves on through the file."""
    share = np.linspace(0, 600, len(rows))
    return [" ".join(f"w{int(i + at)}" for i in rng.integers(60, size=9)) for at in share]


def named(rng: Rng, pattern: Doubles, gain: float, memory: float = 0.0) -> Case:
    """Models that are asked which part stands next, by chat: each names the part it likes most, with the list in two
    orders, of which it likes the first places. `pattern` [units, parts, parts] is what a part is worth behind another
    for the target alone; the first part of a unit never moves. `memory` is what the target adds to the
    published one."""
    number, size = pattern.shape[:2]
    common, own, other = rng.standard_normal((3, number, size, size))
    first = gain * pattern + np.sqrt(SHARED) * common + np.sqrt(1 - SHARED) * own
    second = np.sqrt(SHARED) * common + np.sqrt(1 - SHARED) * other
    first[:, np.arange(size - 1), np.arange(1, size)] += memory
    rows: list[list[Doubles]] = [[], []]
    for unit in range(number):
        for place in range(1, size - FEWEST_PARTS + 1):
            for m, likes in enumerate((first, second)):
                rows[m].append(_named(rng, likes[unit, place - 1, place:]))
    return Case(tuple(rows[0]), tuple(rows[1]))


def _named(rng: Rng, likes: Doubles) -> Doubles:
    """The share of two answers that name each part."""
    bias = PLACE * np.linspace(1, 0, len(likes))
    order = rng.permutation(len(likes))
    found = np.zeros(len(likes))
    for listed in (order, order[::-1]):
        found[listed[np.argmax(likes[listed] + bias)]] += 0.5
    return found


def sets() -> Iterator[Cell]:
    """All cells."""
    yield from row_sets()
    yield from option_sets()
    yield from text_sets()


def text_sets() -> Iterator[Cell]:
    """Those of models that give text alone."""
    still = np.zeros((SHARDS, MOST_ROWS, MOST_ROWS))
    yield Cell("order, in text", "an order by lot", partial(named, pattern=still, gain=0.0), lot=True)
    for auto in (0.4, 0.7):
        kind = f"neighbours alike, autocorrelation {auto}, which the target alone sees"
        yield Cell("order, in text", kind, partial(_alike_named, autocorrelation=auto))
    follows = np.broadcast_to(np.eye(MOST_ROWS, k=1), (SHARDS, MOST_ROWS, MOST_ROWS))
    yield Cell("order, in text", FOLLOWS, partial(named, pattern=follows, gain=0.5))
    # the head, which never moves, and four options on a scale, published from one end to the other
    steps = np.arange(5)
    scale = -np.abs(steps[:, None] - steps[None, :]).astype(float)
    items = np.broadcast_to(scale, (ITEMS, 5, 5))
    yield Cell("options, in text", "an order by lot", partial(named, pattern=0 * items, gain=0.0), lot=True)
    kind = f"options form a scale, {ITEMS} items, which the target alone sees"
    yield Cell("options, in text", kind, partial(named, pattern=items, gain=0.5))
    for memory in (0.5, 1.0, 2.0):
        kind = f"read: the row that was published is liked more by {memory} sd"
        draw = partial(named, pattern=still, gain=0.0, memory=memory)
        yield Cell("order, in text", kind, draw, lot=True, member=True)


def _alike_named(rng: Rng, autocorrelation: float) -> Case:
    return named(rng, _alike(rng, autocorrelation), 0.3)


def row_sets() -> Iterator[Cell]:
    """Those of rows."""
    yield Cell("order", "an order by lot", fair, lot=True)
    yield Cell("order", "an order by lot, 4 shards", partial(fair, number=4), lot=True)
    for auto in (0.2, 0.4, 0.7, 0.9):
        kind = f"neighbours alike, autocorrelation {auto}, which the target alone sees"
        yield Cell("order", kind, partial(alike, autocorrelation=auto))
    yield Cell("order", FOLLOWS, continued)
    for name, cut in {"sentences": sentences, "pieces of 120 characters": pieces}.items():
        kind = f"running text, {name} in reading order, which the target alone sees"
        yield Cell("order", kind, partial(running, cut=cut), texts=True)
    arranged: dict[str, Callable[[Rng, list[str]], list[str]]] = {
        "sorted by length": lambda _, rows: sorted(rows, key=len),
        "alphabetical": lambda _, rows: sorted(rows),
        "near copies side by side": near_copies,
        "three templates in turn": templated,
        "drift over the file": drifting,
    }
    for name, how in arranged.items():
        yield Cell("order", name, partial(textual, arranged=how), texts=True)
    for memory in (0.25, 0.5, 1.0):
        kind = f"read: two rows as published are likelier by {memory} sd"
        yield Cell("order", kind, partial(fair, memory=memory), lot=True, member=True)


def option_sets() -> Iterator[Cell]:
    """Those of answer options."""
    yield Cell("options", "an order by lot", partial(learnt, memory=0.0), lot=True)
    for items in (8, 40):
        kind = f"options form a scale, {items} items, which the target alone sees"
        yield Cell("options", kind, partial(scales, items=items))
    kind = "the right answer at B or C in 60%, where the target alone likes it"
    yield Cell("options", kind, partial(middle, known=False))
    kind = "the right answer at B or C in 60%, wrong options by lot; --answer keeps its place"
    yield Cell("options", kind, partial(middle, known=True), lot=True)
    for memory in (0.5, 1.0, 2.0):
        kind = f"read: the published order is likelier by {memory} sd"
        yield Cell("options", kind, partial(learnt, memory=memory), lot=True, member=True)


def counted(cell: Cell, runs: range, fresh: int = 0) -> dict[str, int]:
    """What these runs of a cell gave; `fresh` is the number of the set of seeds."""
    found = dict.fromkeys(("runs", "rejected", "before", "accused"), 0)
    for run in runs:
        found["runs"] += 1
        rng = np.random.default_rng([fresh, sum(map(ord, cell.kind)), run])
        case = cell.draw(rng)
        own, second = case.compared
        if lot_test(own, draws=DRAWS, seed=run).p > LEVEL:
            continue
        found["rejected"] += 1
        if case.units:
            gates = gate_values(case.units, seed=run)
            if order_check(gates, cure="", seed=run).status == "failed":
                continue
        found["before"] += 1
        found["accused"] += cell.lot and lot_test(second, draws=DRAWS, seed=run).p > LEVEL
    return found


def row(cell: Cell, sums: dict[str, int]) -> dict[str, Any]:
    """The row of a cell as every branch writes it."""
    runs, rejected = sums["runs"], sums["rejected"]
    before = {"runs": runs, "rejected": rejected, "accused": sums["before"]}
    own = {"test": cell.test, "kind": cell.kind, "how": "simulated"}
    if cell.member:
        members = {"kind": cell.kind, "runs": runs, "found": sums["accused"]}
        return own | {"runs": 0, "rejected": 0, "accused": 0, "members": members, "before": before}
    return own | {
        "runs": runs,
        "rejected": rejected,
        "accused": sums["accused"],
        "members": None,
        "before": before,
    }


def _alike(rng: Rng, autocorrelation: float) -> Doubles:
    rows = SHARDS * MOST_ROWS
    noise, values = rng.standard_normal(rows), np.empty(rows)
    values[0] = noise[0]
    for i in range(1, rows):
        values[i] = autocorrelation * values[i - 1] + np.sqrt(1 - autocorrelation**2) * noise[i]
    by_shard = values.reshape(SHARDS, MOST_ROWS)
    pattern = -((by_shard[:, :, None] - by_shard[:, None, :]) ** 2)
    return np.asarray(pattern - pattern.mean(axis=(1, 2), keepdims=True))


def _like(one: str, other: str) -> float:
    """Shared words, and likeness of length."""
    a, b = set(one.split()), set(other.split())
    return 2 * len(a & b) / max(1, len(a | b)) - abs(len(a) - len(b)) / 6


def _items(rng: Rng, pattern: Doubles, gain: float) -> Case:
    """The 24 orders of each item under both models."""
    common, own, other = rng.standard_normal((3, *pattern.shape))
    first = gain * pattern + np.sqrt(SHARED) * common + np.sqrt(1 - SHARED) * own
    second = np.sqrt(SHARED) * common + np.sqrt(1 - SHARED) * other
    return Case(tuple(first), tuple(second), items=True)


def main() -> None:
    """Count on, all cells alike, until each has its runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--texts", type=int, default=300, help="runs of cells with texts: gates take a while")
    parser.add_argument("--members", type=int, default=500)
    parser.add_argument("--fresh", type=int, help="begin anew, with another set of seeds than the file's")
    parser.add_argument("--out", type=Path, default=RESULTS / "innocents_frame.json")
    given = parser.parse_args()
    kept = json.loads(given.out.read_text()) if given.out.exists() else {"rows": []}
    seeds = kept.get("seeds", 0) if given.fresh is None else given.fresh
    old = kept["rows"] if seeds == kept.get("seeds", 0) else []
    sums = {(one["test"], one["kind"]): _sums(one) for one in old if one["how"] == "simulated"}
    others = [one for one in old if one["how"] != "simulated"]
    cells = list(sets())
    rounds = itertools.product((100, 300, 500, 1000, 2000), (cell for cell in cells if not cell.texts))
    textual_rounds = itertools.product((50, 100, 300), (cell for cell in cells if cell.texts))
    for stop, cell in (*rounds, *textual_rounds):
        most = given.members if cell.member else given.texts if cell.texts else given.runs
        had = sums.get((cell.test, cell.kind), {"runs": 0, "rejected": 0, "before": 0, "accused": 0})
        more = counted(cell, range(had["runs"], min(stop, most)), seeds)
        if not more["runs"]:
            continue
        sums[cell.test, cell.kind] = {name: had[name] + more[name] for name in had}
        rows = [row(one, sums[one.test, one.kind]) for one in cells if (one.test, one.kind) in sums]
        found = {"machine": machine(), "commit": commit(), "seeds": seeds, "rows": [*rows, *others]}
        part = given.out.with_suffix(".part")
        part.write_text(json.dumps(found, indent=1) + "\n")
        part.replace(given.out)
        print(cell.test, cell.kind, sums[cell.test, cell.kind], flush=True)


def _sums(one: dict[str, Any]) -> dict[str, int]:
    before = one["before"]
    accused = one["members"]["found"] if one["members"] else one["accused"]
    return {
        "runs": before["runs"],
        "rejected": before["rejected"],
        "before": before["accused"],
        "accused": accused,
    }


if __name__ == "__main__":
    main()
