"""The conditional designs on documents with dates and on pairs of versions, through their public functions.

Dates are given by lot, so that nothing drifts: in a stream of members the model read all documents before the cut-off,
and none after it. Twins are two versions of a document: two variants that were made in the same way, or a
published version and a draft that differs from it by a rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

import numpy as np

from benchmarks.designs_audits import Audit, Effort, Ints, Remembered, Row, Seen, curve, written
from benchmarks.designs_conditional import audited, backends, corpus, published
from pretrace.scoring.plan import Models
from pretrace.verdicts.cutoff import CutoffSettings
from pretrace.verdicts.cutoff import cutoff as drop_at
from pretrace.verdicts.twins import TwinSettings
from pretrace.verdicts.twins import twins as compare

HALVES, BEFORE, MONTHS = 24, 4, 3
"""A stream is six years in parts of three months, of which four lie before the cut-off: 20 placebo cut-offs."""
PAIRS = 40
DRAWS = 999


def cutoff(seen: Seen, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Streams through `cutoff` with a reference model: nulls of documents that were never read, and of read and
    unread ones without regard to date; members; broken: half of the documents after the cut-off are of another
    domain."""
    target, reference = backends(seen)
    texts = [*seen.made.published, *seen.elsewhere.published[: len(seen.other)]]

    def audit(before: Sequence[int], after: Sequence[int], size: int) -> Audit:
        places = [*before, *after]
        days = [_day(i // size, i % size, size) for i in range(len(places))]
        stream = corpus("stream", [texts[i] for i in places], places, date=days)
        settings = CutoffSettings(
            cutoff=_day(BEFORE, 0, size), months=MONTHS, fewest=min(5, size), draws=DRAWS, cache=False
        )
        return audited(drop_at(stream, Models(target), settings, references=(reference,)))

    def split(pool: Ints, size: int) -> Audit:
        drawn = rng.permutation(pool)[: HALVES * size]
        return audit(drawn[: BEFORE * size].tolist(), drawn[BEFORE * size :].tolist(), size)

    never = seen.places("documents", 0)
    mixed = np.concatenate([never, seen.places("documents", 1), seen.places("documents", 4)])
    size = max(one for one in seen.sizes.stream if HALVES * one <= len(never))
    rows = []
    parts = {"null": (never, effort.whole), "null: read without regard to date": (mixed, effort.few)}
    for name, (pool, number) in parts.items():
        found = [split(pool, size) for _ in range(number)]
        rows.append(written(found, kind=name, copies=0, units=size, level="public function"))
    rows += _streams(seen, effort, rng, audit)
    far = np.arange(len(seen.made.published), len(texts))
    drift = []
    for _ in range(effort.few):
        drawn = rng.permutation(never)[: HALVES * size]
        after = drawn[BEFORE * size :].copy()
        some = rng.choice(len(after), min(len(far), len(after) // 2), replace=False)
        after[some] = rng.permutation(far)[: len(some)]
        drift.append(audit(drawn[: BEFORE * size].tolist(), after.tolist(), size))
    rows.append(
        written(drift, kind="broken: another domain after", copies=0, units=size, level="public function")
    )
    return rows


def _streams(seen: Seen, effort: Effort, rng: np.random.Generator, audit: object) -> list[Row]:
    """Members: everything before the cut-off was read, nothing after it."""
    never, rows = seen.places("documents", 0), []
    for copies in (1, 4, 16):
        pool = seen.places("documents", copies)
        for size in seen.sizes.stream:
            if BEFORE * size > len(pool) or (HALVES - BEFORE) * size > len(never):
                continue
            found = []
            for _ in range(effort.few):
                before = rng.choice(pool, BEFORE * size, replace=False).tolist()
                after = rng.choice(never, (HALVES - BEFORE) * size, replace=False).tolist()
                found.append(audit(before, after, size))  # type: ignore[operator]
            rows.append(written(found, kind="member", copies=copies, units=size, level="public function"))
    return rows


def _day(half: int, place: int, size: int) -> str:
    """A date within a part of three months, the documents of a part spread over it."""
    month = half * MONTHS + place * MONTHS // size
    return date(2018 + month // 12, 1 + month % 12, 1 + place % 28 if place else 1).isoformat()


def twins(seen: Seen, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Pairs through `twins` with the reference as a negative control: nulls and members of two variants that were made
    in the same way; nulls and members whose draft has more words replaced, as any model can tell; broken: drafts
    without their end."""
    kinds = {"": seen.values["variants"], "edited": seen.values["edited"], "short": seen.values["short"]}
    rows = []
    for kind in kinds:
        rows += _twins(seen, effort, rng, kind)
    return rows


def _twins(seen: Seen, effort: Effort, rng: np.random.Generator, kind: str) -> list[Row]:
    never = seen.places("documents", 0)
    drafts, places = _drafts(seen, kind, rng)
    target = _model(seen, seen.world.name, seen.values, kind, places)
    placebo = _model(seen, "reference", seen.reference, kind, places)

    def audit(units: Ints, _: int = 0) -> Audit:
        chosen = units.tolist()
        originals = corpus("texts", [seen.made.published[i] for i in chosen], chosen)
        beside = corpus("texts", [drafts[i] for i in chosen], chosen)
        settings = TwinSettings(draws=DRAWS, cache=False)
        return audited(compare(originals, beside, Models(target, placebos=(placebo,)), settings))

    names = {
        "": "null",
        "edited": "null: drafts of more odd words",
        "short": "broken: drafts without their end",
    }
    size = min(PAIRS, len(never))
    number = effort.few if kind == "short" else effort.whole
    found = [audit(rng.choice(never, size, replace=False)) for _ in range(number)]
    rows = [written(found, kind=names[kind], copies=0, units=size)]
    if kind != "short":
        pools = {copies: seen.places("documents", copies) for copies in (1, 4, 16)}
        units = (10, 20, 40, 80) if not kind else (40,)
        few = replace(effort, members=effort.few, units=units if not seen.sizes.tiny else (10,))
        rows += curve(pools, few, rng, audit)
    return [{**row, "drafts": kind or "alike", "level": "public function"} for row in rows]


def _drafts(seen: Seen, kind: str, rng: np.random.Generator) -> tuple[Sequence[str], Ints]:
    """The draft of each document, and the variant that it is where it is one."""
    lot, number = seen.lot, seen.sizes.variants
    places = (lot + rng.integers(1, number, size=len(lot))) % number
    if not kind:
        return [some[i] for some, i in zip(seen.made.variants, places, strict=True)], places
    return getattr(seen.made, kind), places


def _model(seen: Seen, name: str, values: object, kind: str, places: Ints) -> Remembered:
    """A model that remembers published versions and drafts."""
    said = values["variants"]  # type: ignore[index]
    own = published(seen, said)
    if kind:
        texts, beside = getattr(seen.made, kind), values[kind]  # type: ignore[index]
    else:
        texts = [some[i] for some, i in zip(seen.made.variants, places, strict=True)]
        beside = said[np.arange(len(said)), places]
    return Remembered(name, [*seen.made.published, *texts], np.concatenate([own, beside]))
