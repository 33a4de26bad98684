"""What an audit of the designs' experiment has at hand, and how the outcomes of many audits are written down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.designs_texts import COPIES, OTHER, Material, Sizes
from benchmarks.designs_worlds import World, membership
from pretrace.types import Doubles, Encoded, Quantity, States, Trace

LEVEL = 0.05
Row = dict[str, Any]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Effort:
    """How many audits of a world: nulls by their statistical core, members of a point of a curve; through the whole of
    a public function nulls (`whole`), and members and broken ones (`few`); `draws` of a null distribution, and the
    units of the curves."""

    nulls: int = 100
    members: int = 60
    whole: int = 50
    few: int = 12
    draws: int = 999
    units: tuple[int, ...] = (5, 10, 20, 40, 80, 120)


@dataclass(frozen=True, slots=True)
class Audit:
    """The p-value of an audit, and whether the outcome is "consistent with training"; a design without checks accuses
    where p is at most the level."""

    p: float | None
    accused: bool

    @classmethod
    def of(cls, p: float) -> Audit:
        """An audit without checks."""
        return cls(p, p <= LEVEL)


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """A world with all that was read of it: texts, how often each unit was read in training, and the values under its
    model and the reference; `base` holds what its base said of canaries of another law, and `other` what the model
    said of another domain's published documents."""

    world: World
    made: Material
    sizes: Sizes
    values: Mapping[str, Doubles]
    base: Mapping[str, Doubles]
    reference: Mapping[str, Doubles]
    other: Doubles
    member: Mapping[str, Ints]
    elsewhere: Material
    elsewhere_reference: Mapping[str, Doubles]
    published: Mapping[str, Doubles] | None = None

    @classmethod
    def read(cls, world: World, made: Mapping[str, Material], sizes: Sizes, work: Path) -> Seen:
        """From the files of the work folder."""
        far, shape = OTHER[world.domain], world.shape

        def file(name: str) -> dict[str, Doubles]:
            with np.load(work / "values" / f"{name}.npz") as found:
                return {key: found[key] for key in found.files}

        scheme = work / "values" / f"{world.name}-published.npz"
        return cls(
            world,
            made[world.domain],
            sizes,
            file(world.name),
            file(f"base-{shape}-{world.domain}-plain"),
            file(f"base-reference-{world.domain}"),
            file(f"{world.name}-other")["published"],
            membership(world, sizes),
            made[far],
            file(f"base-reference-{far}"),
            file(f"{world.name}-published") if scheme.is_file() else None,
        )

    def places(self, kind: str, copies: int) -> Ints:
        """The units of a kind that the model read so many times (-1: with all their variants)."""
        return np.flatnonzero(self.member[kind] == copies)

    @property
    def lot(self) -> Ints:
        """The published variant of each document."""
        return np.array(self.made.lot)


class Remembered:
    """A back end that knows the log-probabilities of texts and no others: one token of equal value for each that the
    model read, so that mean and sum over a text are what the model gave."""

    offers = Quantity.LOGP
    tokenizer_hash = "remembered"
    vocabulary = 1 << 16
    max_tokens = 1 << 20

    def __init__(self, name: str, texts: Iterable[str], values: Doubles) -> None:
        self.name = name
        self.table = dict(zip(texts, values.reshape(-1, 2).tolist(), strict=True))
        self.order = list(self.table)
        self.places = {text: i for i, text in enumerate(self.order)}
        self.fingerprint = f"remembered {name}"
        self.facts: Mapping[str, Any] = {"name": name, "family": name, "weights": name}

    def encode(self, texts: Sequence[str], /) -> list[Encoded]:
        """The place of the text among those that are known, once for each of its tokens."""
        made = []
        for text in texts:
            number = int(self.table[text][1])
            ids = np.full(number, self.places[text], dtype=np.int32)
            made.append(Encoded(np.zeros(1, dtype=np.int32), ids, 0))
        return made

    def spans(self, text: str, /) -> Ints:
        """Where its tokens would be: a character each, as far as there are any."""
        starts = np.arange(int(self.table[text][1]))
        return np.stack([starts, starts + 1], axis=1).clip(max=len(text))

    def pack(self, encoded: Sequence[Encoded], /) -> list[tuple[int, ...]]:
        """All texts at once."""
        return [tuple(i for i, e in enumerate(encoded) if e.predicted)]

    def run(self, batch: Sequence[Encoded], want: Quantity, states: States = frozenset(), /) -> list[Trace]:
        """The traces of texts by what is remembered of them."""
        found = []
        for e in batch:
            total, number = self.table[self.order[int(e.tokens[0])]]
            found.append(Trace(e.tokens, np.full(int(number), total / number, dtype=np.float32), cut=e.cut))
        return found


def written(audits: Sequence[Audit], **cell: Any) -> Row:
    """A row of results: how many audits, how many have p at the level or below, how many accuse, and all p-values."""
    tested = [round(one.p, 4) for one in audits if one.p is not None]
    return {
        **cell,
        "audits": len(audits),
        "rejections": sum(one.p is not None and one.p <= LEVEL for one in audits),
        "accused": sum(one.accused for one in audits),
        "untested": len(audits) - len(tested),
        "p": tested,
    }


def curve(
    pools: Mapping[int, Ints], effort: Effort, rng: np.random.Generator, audit: Callable[[Ints, int], Audit]
) -> list[Row]:
    """Members: audits of so many units drawn from those with each number of copies, at most 4 of 5 of them at a time;
    `audit` takes the units and a seed."""
    rows = []
    for copies in COPIES:
        pool = pools[copies]
        for units in effort.units:
            if units > 0.8 * len(pool):
                continue
            found = [
                audit(rng.choice(pool, units, replace=False), int(rng.integers(1 << 31)))
                for _ in range(effort.members)
            ]
            rows.append(written(found, kind="member", copies=copies, units=units))
    return rows
