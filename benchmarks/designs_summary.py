"""From the rows of the designs' experiment to one table: false alarms, the law of p, and units for a power of 0.8."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.designs_audits import LEVEL, Row
from benchmarks.designs_pairs import HALVES
from pretrace.statistics.intervals import share_interval

POWER = 0.8
EXACT = ("marks", "canaries", "triggers", "options", "order", "collections")
PARTS = {"cutoff": HALVES}
"""Into how many parts, of as many documents as stand before the cut-off, a stream is divided."""
UNITS = {
    "marks": "document",
    "canaries": "string",
    "triggers": "trigger sentence",
    "options": "item",
    "order": "row",
    "collections": "document",
    "cutoff": "document",
    "twins": "pair",
}


def pooled(rows: Iterable[Row], *by: str) -> list[Row]:
    """Rows that agree in these names as one: their audits together, with the share that accuses and its interval."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row.get(name) for name in by), []).append(row)
    made = []
    for key, some in found.items():
        audits = sum(row["audits"] for row in some)
        rejections, accused = (sum(row[name] for row in some) for name in ("rejections", "accused"))
        share = share_interval(accused, audits)
        made.append(
            {
                **dict(zip(by, key, strict=True)),
                "audits": audits,
                "rejections": rejections,
                "accused": accused,
                "untested": sum(row["untested"] for row in some),
                "share": [round(value, 4) for value in (share.value, share.low, share.high)],
            }
        )
    return made


def binomial_interval(audits: int, level: float = LEVEL) -> tuple[int, int]:
    """The fewest and most rejections of so many true nulls that 95% of experiments give, at this level."""
    low, high = stats.binom.interval(0.95, audits, level)
    return int(low), int(high)


def discrete_uniform(p: Sequence[float], steps: int) -> tuple[float, float]:
    """The distance of Kolmogorov and Smirnov of p-values from the uniform law on 1 / steps, 2 / steps, …, 1, and the
    p-value of that distance by simulation."""
    found = np.rint(np.asarray(p) * steps).astype(np.int64).clip(1, steps)
    rng = np.random.default_rng(0)
    drawn = [_distance(rng.integers(1, steps + 1, size=len(found)), steps) for _ in range(999)]
    own = _distance(found, steps)
    return own, (1 + sum(one >= own - 1e-12 for one in drawn)) / 1000


def above_uniform(p: Sequence[float]) -> float:
    """The most that the share of p-values at or below any level lies above that level: at most about 1.2 over the root
    of their number where the test keeps its word (Kolmogorov and Smirnov, one side)."""
    ordered = np.sort(np.asarray(p))
    return float(np.max(np.arange(1, len(ordered) + 1) / len(ordered) - ordered))


def needed(rows: Sequence[Row], copies: int) -> int | None:
    """Units for a power of 0.8, from the pooled rows of members read so many times: between two sizes on the logarithm
    of the size; None where the largest that was measured does not reach it, the smallest size where that does."""
    points = sorted((row["units"], row["share"][0]) for row in rows if row["copies"] == copies)
    before: tuple[float, float] | None = None
    for units, power in points:
        if power >= POWER:
            if before is None:
                return int(units)
            part = (POWER - before[1]) / (power - before[1])
            return math.ceil(math.exp(math.log(before[0]) + part * math.log(units / before[0])))
        before = units, power
    return None


def most_tried(rows: Sequence[Row], copies: int) -> int:
    """The largest number of units that was measured of members read so many times; 0 where none was."""
    return max((int(row["units"]) for row in rows if row["copies"] == copies), default=0)


def law_steps(design: str, draws: int) -> int | None:
    """How many equally likely p-values a design has, None where the law is another one."""
    return draws + 1 if design in ("marks", "canaries", "options", "order") else None


def summary(rows: Sequence[Row], draws: int, keep: Callable[[Row], bool]) -> list[Row]:
    """One row a design and kind of null or broken case, over all worlds that `keep` takes."""
    made = []
    taken = [row for row in rows if row["kind"] != "member" and keep(row)]
    names = ("design", "kind", "test", "value", "level", "passes")
    for one in pooled(taken, *names):
        p = [value for row in taken if all(row.get(n) == one[n] for n in names) for value in row["p"]]
        low, high = binomial_interval(one["audits"])
        steps = law_steps(one["design"], draws) if one["test"] is None and one["level"] is None else None
        extra: dict[str, Any] = {
            "binomial": [low, high],
            "above_uniform": round(above_uniform(p), 4) if p else None,
        }
        if one["kind"] == "null" and steps and p:
            distance, ks = discrete_uniform(p, steps)
            extra |= {"ks": round(distance, 4), "ks_p": round(ks, 4)}
        made.append({**{k: v for k, v in one.items() if v is not None}, **extra})
    return made


def advice(rows: Sequence[Row], measured_on: str) -> dict[str, Mapping[str, Any]]:
    """What `pretrace advise` says of each design: units for a power of 0.8 and false alarms among nulls."""
    made: dict[str, Mapping[str, Any]] = {}
    for design, unit in UNITS.items():
        own = [row for row in rows if row["design"] == design and row.get("test") is None]
        nulls = [row for row in own if row["kind"].startswith("null") and main(row)]
        if not nulls:
            continue
        members = pooled([row for row in own if row["kind"] == "member" and main(row)], "copies", "units")
        times = own[0]["rows"] // own[0]["units"] if design == "order" else PARTS.get(design, 1)
        found = [needed(members, copies) for copies in (1, 4)]
        one, four = (None if value is None else value * times for value in found)
        most = [most_tried(members, copies) * times for copies in (1, 4)]
        alarms = f"{sum(row['accused'] for row in nulls)}/{sum(row['audits'] for row in nulls)}"
        made[design] = {
            "unit": unit,
            "one": one,
            "four": four,
            "more_than_one": most[0] if one is None and most[0] else None,
            "more_than_four": most[1] if four is None and most[1] else None,
            "false_alarms": alarms,
            "measured_on": measured_on,
        }
    return made


def main(row: Row) -> bool:
    """Whether a row is of the form of a design that a user gets: for collections the residual, through the function."""
    if row["design"] == "collections":
        return (
            row.get("value") == "residual"
            if row["kind"] == "member"
            else row.get("level") == "public function"
        )
    if row["kind"] == "member" and row.get("drafts") == "edited":
        return False
    return row.get("level") in (None, "public function")


def _distance(p: np.ndarray, steps: int) -> float:
    counts = np.bincount(p, minlength=steps + 1)[1:]
    return float(np.abs(np.cumsum(counts) / len(p) - np.arange(1, steps + 1) / steps).max())
