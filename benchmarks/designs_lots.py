"""The exact designs, on what the models of the worlds said: marks, canaries, triggers, options, and the order of rows.

Nulls are fresh lots on units that the model never read: given the values, every lot was as likely as any other, so
hundreds of audits come from one reading. Members are random parts of the units that the model read, with the lot that
was really drawn. The tests are the core that the public functions call on the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats

from benchmarks.designs_audits import LEVEL, Audit, Effort, Ints, Row, Seen, curve, written
from benchmarks.order_literature import shard_t_test
from pretrace.statistics.lots import lot_test
from pretrace.types import Doubles
from pretrace.verdicts.order.gates import gate_values, order_check
from pretrace.verdicts.order.units import Unit

NULL_UNITS = 40


def marks(seen: Seen, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Marked documents, by the total log-probability of the variants; broken: the variant that the reference model
    likes best is published, and documents of which all variants reached the training texts."""
    totals = seen.values["variants"][..., 0]
    first = first_of(totals, seen.lot)
    rows = by_lot(seen, effort, rng, totals, first, "documents")
    taste = first_of(totals, seen.reference["variants"][..., 0].argmax(axis=1))
    never, leaked = seen.places("documents", 0), seen.places("documents", -1)
    rows.append(_part(taste, never, effort, rng, kind="broken: published by taste", copies=0))
    rows.append(_part(first, leaked, effort, rng, kind="broken: all variants leaked", copies=4))
    return rows


def canaries(seen: Seen, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Random strings at the end of texts beside fresh ones; broken: strings of the digits 0 and 1 alone."""
    totals = seen.values["canaries"][..., 0]
    rows = by_lot(seen, effort, rng, totals, totals, "canaries")
    plain = seen.base["plain_canaries"][..., 0]
    rows.append(
        _part(plain, np.arange(len(plain)), effort, rng, kind="broken: another law of strings", copies=0)
    )
    return rows


def options(seen: Seen, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """The ranks of the published order of four options among all 24; broken: options in the alphabet's order."""
    totals = seen.values["items"][..., 0]
    ranks = np.asarray(stats.rankdata(totals, axis=1) / totals.shape[1])
    rows = by_lot(seen, effort, rng, ranks, ranks, "items")
    spelled = np.array([min(range(24), key=unit.__getitem__) for unit in seen.made.items])
    never = seen.places("items", 0)
    rows.append(_part(first_of(ranks, spelled), never, effort, rng, kind="broken: sorted options", copies=0))
    return rows


def triggers(seen: Seen, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Trigger sentences: a hit is a target that the model finds likelier than the other seven, which stands in for a
    greedy answer; p by the binomial law."""
    totals = seen.values["triggers"][..., 0]
    said, number = totals.argmax(axis=1), totals.shape[1]

    def audit(units: Ints, lot: Ints) -> Audit:
        hits = int(np.count_nonzero(said[units] == lot))
        return Audit.of(float(stats.binom.sf(hits - 1, len(units), 1 / number)))

    never = seen.places("triggers", 0)
    size = min(NULL_UNITS, len(never))
    nulls = [
        audit(rng.choice(never, size, replace=False), rng.integers(number, size=size))
        for _ in range(effort.nulls)
    ]
    rows = [written(nulls, kind="null", copies=0, units=size)]
    pools = {copies: seen.places("triggers", copies) for copies in (1, 4, 16)}
    return rows + curve(
        pools, effort, rng, lambda units, _: audit(units, np.zeros(len(units), dtype=np.int64))
    )


def order(seen: Seen, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Shards of rows with 19 recombined shuffles; broken: shards whose rows are pieces of one document in order."""
    values = seen.values["shards"]
    rows = by_lot(seen, effort, rng, values, values, "shards")
    meaning = seen.values["meaningful"]
    every = np.arange(len(meaning))
    rows.append(_part(meaning, every, effort, rng, kind="broken: the order carries meaning", copies=0))
    for row in rows:
        row["rows"], row["passes"] = row["units"] * seen.sizes.rows, values.shape[1]
    return rows


def gates(seen: Seen, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Order with its blind gates, which are made as `pretrace order` makes them: shards in random order that were never
    read, and shards whose rows are pieces of one document in order."""
    never, found = seen.places("shards", 0), []
    kinds = {
        "null": (seen.made.shards, seen.values["shards"], never),
        "broken: the order carries meaning": (
            seen.made.meaningful,
            seen.values["meaningful"],
            np.arange(len(seen.made.meaningful)),
        ),
    }
    for kind, (shards, values, pool) in kinds.items():
        size = round(0.8 * len(pool))
        audits = []
        for _ in range(effort.few):
            some = rng.choice(pool, size, replace=False)
            units = [_unit(shards[int(i)], rng if kind == "null" else None) for i in some]
            seed = int(rng.integers(1 << 31))
            drawn = (
                values[some]
                if kind != "null"
                else first_of(values[some], rng.integers(values.shape[1], size=size))
            )
            p = tester(effort.draws)(drawn, seed).p
            check = order_check(gate_values(units, seed=seed), cure="", seed=seed)
            audits.append(Audit(p, p is not None and p <= LEVEL and check.status == "passed"))
        more = {"rows": size * seen.sizes.rows, "passes": values.shape[1]}
        found.append(
            written(audits, kind=kind, copies=0, units=size, design="order", level="with gates", **more)
        )
    return found


def _unit(rows: Sequence[str], rng: np.random.Generator | None) -> Unit:
    """A shard as the test has it, in the order of its rows or in a random one."""
    order = [0, *(1 + (np.arange(len(rows) - 1) if rng is None else rng.permutation(len(rows) - 1))).tolist()]
    return Unit("shard", tuple(rows[i] for i in order), (tuple(range(1, len(rows))),), "\n")


def scheme(seen: Seen, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """The t-test over shards of Oren et al. on the same models and shards, all rows shuffled as they do, at their
    number of passes and at ours; and the test by lot on those very values at our number. Nulls take one of the shuffles
    for the published order."""
    assert seen.published is not None
    shards, values = seen.published["shards"].tolist(), seen.published["values"]
    place = {shard: i for i, shard in enumerate(shards)}
    ours, lot = seen.values["shards"].shape[1], tester(effort.draws)
    tests: list[tuple[str, int, Callable[[Doubles, int], Audit]]] = [
        ("t-test over shards", ours, _t_test),
        ("t-test over shards", values.shape[1], _t_test),
        ("by lot, all rows shuffled", ours, lot),
    ]
    rows = []
    for name, passes, test in tests:
        pools = {copies: seen.places("shards", copies) for copies in (4, 16)} | {
            1: np.zeros(0, dtype=np.int64)
        }

        def audit(units: Ints, seed: int, passes: int = passes, test: Callable[..., Audit] = test) -> Audit:
            return test(values[[place[int(one)] for one in units], :passes], seed)

        made = curve(pools, effort, rng, audit)
        nulls = [test(_shuffled(values, passes, rng), i) for i in range(effort.nulls)]
        made.append(written(nulls, kind="null", copies=0, units=len(values)))
        more = {"design": "order", "test": name, "passes": passes}
        rows += [{**row, **more, "rows": row["units"] * seen.sizes.rows} for row in made]
    return rows


def _t_test(values: Doubles, _: int) -> Audit:
    return Audit.of(shard_t_test(list(values)))


def _shuffled(values: Doubles, passes: int, rng: np.random.Generator) -> Doubles:
    """So many of the shuffles of each shard, in random order, without the published order."""
    places = rng.permuted(np.tile(np.arange(1, values.shape[1]), (len(values), 1)), axis=1)
    return np.take_along_axis(values, places[:, : min(passes, values.shape[1] - 1)], axis=1)


def first_of(values: Doubles, chosen: Ints) -> Doubles:
    """The values [units, alternatives] with the chosen alternative of each unit first."""
    others = np.argsort(
        np.arange(values.shape[1])[None, :] != np.asarray(chosen)[:, None], axis=1, kind="stable"
    )
    return np.take_along_axis(values, others, axis=1)


def by_lot(
    seen: Seen, effort: Effort, rng: np.random.Generator, values: Doubles, drawn: Doubles, kind: str
) -> list[Row]:
    """Nulls and members of a test by lot. `values` [units, alternatives] get fresh lots for nulls; `drawn` are the same
    with the alternative that was really published first."""
    never = seen.places(kind, 0)
    size = min(NULL_UNITS, len(never))
    test = tester(effort.draws)
    nulls = []
    for _ in range(effort.nulls):
        units = rng.choice(never, size, replace=False)
        lots = rng.integers(values.shape[1], size=size)
        nulls.append(test(first_of(values[units], lots), int(rng.integers(1 << 31))))
    rows = [written(nulls, kind="null", copies=0, units=size)]
    pools = {copies: seen.places(kind, copies) for copies in (1, 4, 16)}
    return rows + curve(pools, effort, rng, lambda units, seed: test(drawn[units], seed))


def tester(draws: int) -> Callable[[Doubles, int], Audit]:
    """The test by lot with so many draws."""
    return lambda values, seed: Audit.of(lot_test(list(values), draws=draws, seed=seed).p)


def _part(
    drawn: Doubles, pool: Ints, effort: Effort, rng: np.random.Generator, *, kind: str, copies: int
) -> Row:
    """Audits of random parts of a pool of units, with the published alternative first."""
    size, test = min(NULL_UNITS, round(0.8 * len(pool))), tester(effort.draws)
    found = [
        test(drawn[rng.choice(pool, size, replace=False)], int(rng.integers(1 << 31)))
        for _ in range(effort.nulls)
    ]
    return written(found, kind=kind, copies=copies, units=size)
