"""The conditional designs, through the public functions with what the models of the worlds said: control collections.

A collection is a random part of a domain's documents, so that collections are exchangeable. `collections` reads the
values from memory; everything else of it (features of the texts, regressions on the reference, checks, the rule that
decides) runs as for a user.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from benchmarks.designs_audits import LEVEL, Audit, Effort, Ints, Remembered, Row, Seen, curve, written
from pretrace.baselines import text_features
from pretrace.scoring.plan import Models
from pretrace.statistics.ranks import fewest_others, rank_p
from pretrace.types import Corpus, Text, Verdict
from pretrace.verdicts.collections import CollectionSettings, Company
from pretrace.verdicts.collections import collections as rank_collections
from pretrace.verdicts.collections.values import Scored

MOST_CONTROLS = 39


def remember_features() -> None:
    """From now on the features of a text are taken once: the same texts stand in hundreds of audits."""
    text_features._described = cache(text_features._described)


def corpus(name: str, texts: Sequence[str], places: Sequence[int], **meta: Sequence[str]) -> Corpus:
    """Documents as a corpus: an id by place, and further columns."""
    made = [
        Text(f"{name}-{i}", text, group=f"{name}-{i}", meta={key: value[n] for key, value in meta.items()})
        for n, (i, text) in enumerate(zip(places, texts, strict=True))
    ]
    return Corpus(name, tuple(made), name)


def audited(verdict: Verdict) -> Audit:
    """The p-value of a verdict, and whether it accuses."""
    return Audit(verdict.p, verdict.outcome == "consistent")


def backends(seen: Seen) -> tuple[Remembered, Remembered]:
    """The world's model and the reference, of the published documents of this domain and of another."""
    texts = [*seen.made.published, *seen.elsewhere.published[: len(seen.other)]]
    own = np.concatenate([published(seen, seen.values["variants"]), seen.other])
    far = seen.elsewhere_reference["variants"]
    lot = np.array(seen.elsewhere.lot)[: len(seen.other)]
    far = far[np.arange(len(lot)), lot]
    reference = np.concatenate([published(seen, seen.reference["variants"]), far])
    return Remembered(seen.world.name, texts, own), Remembered("reference", texts, reference)


def published(seen: Seen, values: np.ndarray) -> np.ndarray:
    """What was said of the published variants, [documents][sum, tokens]."""
    return np.asarray(values[np.arange(len(values)), seen.lot])


def collections(seen: Seen, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Null, member and broken collections through `collections` with a reference model; the curves by the rank of the
    same residuals, which leaves out the checks."""
    target, reference = backends(seen)
    never, size = seen.places("documents", 0), seen.sizes.collection

    def whole(suspect: Corpus, free: Ints) -> Audit:
        controls = drawn(free, len(suspect), rng)
        others = [
            corpus(f"c{n}", [seen.made.published[i] for i in one], one) for n, one in enumerate(controls)
        ]
        settings = CollectionSettings(documents=100, cache=False)
        company = Company(references=(reference,))
        return audited(rank_collections(suspect, others, Models(target), settings, company=company))

    rows = []
    nulls = []
    for _ in range(effort.whole):
        order = rng.permutation(never)
        nulls.append(whole(_suspect(seen, order[:size]), order[size:]))
    rows.append(written(nulls, kind="null", copies=0, units=size, level="public function"))
    for copies in (1, 4, 16):
        pool = seen.places("documents", copies)
        found = [
            whole(_suspect(seen, rng.choice(pool, size, replace=False)), never) for _ in range(effort.few)
        ]
        rows.append(written(found, kind="member", copies=copies, units=size, level="public function"))
    far = seen.elsewhere.published[: len(seen.other)]
    broken = []
    for _ in range(effort.few):
        some = rng.choice(len(far), size, replace=False)
        broken.append(whole(corpus("suspect", [far[i] for i in some], some.tolist()), never))
    rows.append(written(broken, kind="broken: another domain", copies=0, units=size, level="public function"))
    for reference_used in (True, False):
        rows += _ranks(seen, effort, rng, residual=reference_used)
    return rows


def drawn(free: Ints, size: int, rng: np.random.Generator) -> list[list[int]]:
    """Disjoint collections of so many documents, as many as there are or 39."""
    number = min(MOST_CONTROLS, len(free) // size)
    order = rng.permutation(free)[: number * size]
    return order.reshape(number, size).tolist()


def _suspect(seen: Seen, places: Ints) -> Corpus:
    return corpus("suspect", [seen.made.published[i] for i in places], places.tolist())


def _ranks(seen: Seen, effort: Effort, rng: np.random.Generator, *, residual: bool) -> list[Row]:
    """Nulls and the curve by the rank alone, on residuals or on the target's scores as they are."""
    own = _mean(published(seen, seen.values["variants"]))
    other = _mean(published(seen, seen.reference["variants"]))
    lengths = np.log([len(text) for text in seen.made.published])
    never, size = seen.places("documents", 0), seen.sizes.collection

    def rank(suspect: Ints, free: Ints) -> Audit:
        controls = drawn(free, len(suspect), rng)
        places = np.concatenate([suspect, *controls])
        codes = np.repeat(np.arange(1 + len(controls)), len(suspect))
        predictors = np.column_stack([other[places], lengths[places]]) if residual else None
        scored = Scored(own[places], predictors, codes, 1 + len(controls))
        means = scored.means(scored.values())
        return Audit.of(rank_p(float(means[0]), means[1:]))

    cell = {"value": "residual" if residual else "alone", "level": "rank"}
    nulls = []
    for _ in range(effort.nulls):
        order = rng.permutation(never)
        nulls.append(rank(order[:size], order[size:]))
    rows = [written(nulls, kind="null", copies=0, units=size)]
    enough = [n for n in effort.units if len(never) // n >= fewest_others(LEVEL)]
    limited = replace(effort, units=tuple(enough))
    pools = {copies: seen.places("documents", copies) for copies in (1, 4, 16)}
    rows += curve(pools, limited, rng, lambda units, _: rank(units, never))
    return [{**row, **cell} for row in rows]


def _mean(values: np.ndarray) -> np.ndarray:
    return np.asarray(values[:, 0] / values[:, 1])
