"""Are innocents accused by `pretrace cutoff` and `pretrace collections`? `python -m benchmarks.designs.conditional`.

2,000 simulated nulls a cell: documents' scores under the model in question and under a second one, with what people's
texts bring (drift, seasons, scatter, groups, mixtures). The code that decides is that of the commands: jumps, means,
ranks, checks, the second model, the one conclusion. What texts alone show is left out where a cell does not say
otherwise: there the checks of the texts pass, which is the worst case for the innocent.

"before" is the rule of commit 26362c5 on the same values: the rank of the jumps or means as they are, then the checks
of that commit (without a placebo, which it did not ask for). Members have a real jump, or raised documents, in the
model in question alone; power is beside it, before and after.

A cell that is on file is not made again, so the command goes on where it was killed. Writes
benchmarks/results/innocents_conditional.json.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.experiments import RESULTS, Ledger
from pretrace.statistics.ranks import joint_extremeness, rank_p
from pretrace.types import Corpus, Doubles
from pretrace.verdicts import collections as ranks
from pretrace.verdicts import cutoff as drops
from pretrace.verdicts import frame
from pretrace.verdicts.outcome import Found, conclude

LEVEL, SHARED = 0.05, 0.6
"""The level of all tests, and the part of the variance between documents that both models see."""
Values = tuple[Doubles, Doubles]
Random = np.random.Generator
TARGET, SECOND = SimpleNamespace(name="target"), SimpleNamespace(name="second")
MODELS: Any = SimpleNamespace(target=TARGET, placebos=(SECOND,), reference=None)


@dataclass(frozen=True)
class Outcome:
    """Whether a test rejected, and whether it accused."""

    rejected: bool
    accused: bool


def concluded(test: frame.Test[Doubles], values: Doubles, checks: Sequence[Any]) -> Outcome:
    """What the frame concludes of these values, with the second model and the given checks."""
    words = frame.Words("document", "", "", (), "", "", "", "")
    found = test.tested(values)
    second = frame._second(test, values, found, words)
    every = [*checks, *([second] if second else [])]
    said = conclude(Found("", "", LEVEL, found.p, second=True, accusing=test.accusing), every)
    return Outcome(bool(found.p is not None and found.p <= LEVEL), said.outcome == "consistent")


# The cut-off: 28 spans of three months, some documents in each

SPANS, MONTHS = 28, 3
BEGIN = date(2016, 1, 1)
Drift = Callable[[Doubles, int, Random], Doubles]
"""What a cell adds to the scores of the model in question, by place in the series (in spans) and the cut-off's."""


@dataclass(frozen=True)
class Dated:
    """A kind of dated series: the `drift` of scores, the `spread` of noise by place, where the cut-off lies (in spans),
    documents a span, how their places are drawn, and what both models see at the cut-off."""

    drift: Drift = lambda t, c, rng: np.zeros(len(t))
    spread: Callable[[Doubles], Doubles] = lambda t: np.ones(len(t))
    at: int = 16
    documents: int = 18
    places: Callable[[Random, int], Doubles] = lambda rng, n: rng.random(n)
    noise: Callable[[Random, tuple[int, ...]], Doubles] = lambda rng, n: rng.normal(size=n)
    event: tuple[float, float] = (0.0, 0.0)


def weekly(size: float) -> Drift:
    """Weeks with a level of their own, each 0.8 of the last and a new part."""

    def drift(t: Doubles, c: int, rng: Random) -> Doubles:
        weeks = (t * MONTHS * 30.44 // 7).astype(int)
        level = rng.normal(size=weeks.max() + 1)
        for i in range(1, len(level)):
            level[i] = 0.8 * level[i - 1] + 0.6 * level[i]
        return np.asarray(size * level[weeks])

    return drift


def bent(size: float, before: float) -> Drift:
    """A level that stands until so many spans before the cut-off, and falls from there on."""
    return lambda t, c, rng: -size * np.clip(t - (c - before), 0, None)


def yearly(size: float) -> Drift:
    """A season that falls fastest at the cut-off."""
    return lambda t, c, rng: -size * np.sin(2 * np.pi * (t - c) * MONTHS / 12)


SERIES: Mapping[str, Dated] = {
    "stationary": Dated(),
    "linear drift": Dated(drift=lambda t, c, rng: -0.1 * t),
    "quadratic drift": Dated(drift=lambda t, c, rng: -0.05 * t**2 / SPANS, at=20),
    "strong quadratic drift": Dated(drift=lambda t, c, rng: -0.1 * t**2 / SPANS, at=22),
    "spread rises threefold": Dated(spread=lambda t: 1 + 2 * t / SPANS, at=20),
    "spread rises fivefold": Dated(spread=lambda t: 1 + 4 * t / SPANS, at=22),
    "kink before a late cut-off": Dated(drift=bent(0.3, 1), at=20),
    "strong kink before a late cut-off": Dated(drift=bent(0.6, 1), at=20),
    "kink near the end": Dated(drift=bent(0.5, 1), at=22),
    "kink before the cut-off": Dated(drift=bent(0.6, 1)),
    "kink at the cut-off": Dated(drift=bent(0.6, 0)),
    "season": Dated(drift=yearly(0.5)),
    "strong season": Dated(drift=yearly(1.0)),
    "autocorrelated weeks": Dated(drift=weekly(1.0)),
    "few documents": Dated(documents=10),
    "density rises tenfold": Dated(places=lambda rng, n: (np.sqrt(1 + 99 * rng.random(n)) - 1) / 9),
    "density falls tenfold": Dated(places=lambda rng, n: 1 - (np.sqrt(1 + 99 * rng.random(n)) - 1) / 9),
    "heavy tails": Dated(noise=lambda rng, n: rng.standard_t(3, size=n) / np.sqrt(3)),
    "event that both models see": Dated(event=(1.0, 1.0)),
    "event that the target sees twice as clearly": Dated(event=(2.0, 1.0)),
}


def dated(kind: Dated, rng: Random, runs: int, jump: float = 0.0) -> Any:
    """A series of that kind as the test has it, its cut-off, and what both models said in each run, [runs, documents].

    Dates are drawn once for all runs. Nothing predicts the scores."""
    number = kind.documents * SPANS
    t = np.sort(kind.places(rng, number)) * SPANS
    days = BEGIN.toordinal() + (t * MONTHS * 30.4375).astype(np.int64)
    shared = np.sqrt(SHARED) * kind.noise(rng, (runs, number))
    target, second = (shared + np.sqrt(1 - SHARED) * kind.noise(rng, (runs, number)) for _ in range(2))
    cut = drops.shifted(BEGIN, MONTHS * kind.at)
    before = days < cut.toordinal()
    drift = np.stack([kind.drift(t, kind.at, rng) for _ in range(runs)])
    target = target * kind.spread(t) + drift + (jump + kind.event[0]) * before
    second = second * kind.spread(t) + kind.event[1] * before
    names = tuple(map(str, range(number)))
    series = drops.Series(Corpus("simulated", ()), np.arange(number), names, names, days)
    series.__dict__["surface"] = np.zeros((number, drops.BLIND))
    return series, cut, target, second


class SimulatedCutoff(drops._Cutoff):
    """The test of a cut-off on values that are there already."""

    def read(self, model: Any, stage: str) -> Doubles:
        return self.said[model.name]  # type: ignore[attr-defined, no-any-return]


def by_cutoff(series: Any, cut: date, target: Doubles, second: Doubles) -> Outcome:
    """The test as it is."""
    try:
        windows = drops.windows(series, cut, LEVEL)
    except drops.TextsError:  # exit code 2, before any model is asked
        return Outcome(False, False)
    made = SimulatedCutoff(
        corpus=series.corpus,
        models=MODELS,
        settings=drops.CutoffSettings(cutoff=str(cut)),
        watch=None,  # type: ignore[arg-type]
        series=series,
        windows=windows,
        reader=None,  # type: ignore[arg-type]
        predictors=series.surface,
    )
    object.__setattr__(made, "said", {"target": target, "second": second})
    if made.jumps(target).p > LEVEL:  # nobody is accused then; `conclude` would say so
        return Outcome(False, False)
    checks = (
        drops.apart_check(made.apart(target), LEVEL),
        drops.breakdown_check(made.jumps(target)),
        drops.sizes_check(windows),
    )
    return concluded(made, target, checks)


def by_cutoff_before(series: Any, cut: date, target: Doubles, second: Doubles) -> Outcome:
    """The rule of commit 26362c5: three months, jumps as they are, their rank, M*, no trend in time, sizes."""
    from scipy.special import stdtr

    windows = drops._windows(series, cut, MONTHS)  # a grid of three months, whatever the test now takes
    if min(windows.own.sizes) < 5 or len(windows.placebos) < 19:
        return Outcome(False, False)
    jumps = drops.jumps(target, series.surface, series.weeks, windows).values
    own, others = jumps[0], jumps[1:]
    rejected = rank_p(own, others) <= LEVEL
    x, y = windows.places - windows.places.mean(), others - others.mean()
    slope = float(x @ y / (x @ x))
    error = np.sqrt(((y - slope * x) ** 2).sum() / (len(x) - 2) / (x @ x))
    steady = 2 * stdtr(len(x) - 2, -abs(slope) / error) > LEVEL
    usual = float(np.median([one.weight for one in windows.placebos]))
    held = abs(own) > np.abs(others).max() and steady and windows.own.weight >= 0.5 * usual
    return Outcome(bool(rejected), bool(rejected and held))


# Collections: one in question and 19 controls, ten documents each

UNITS = 20
FEATURES = ("mean log length", "zlib ratio", "type-token ratio", ranks.WORDS, ranks.LENGTHS, ranks.NEAR)


@dataclass(frozen=True)
class Kind:
    """A kind of suspect collection: how much more its documents vary for both models and for the target alone, the
    documents of it that count, in groups of so many alike, half of them of a kind that is easier (for both models, and
    how much more so for the target), what its text features show, and the law of the noise."""

    spread: float = 1.0
    own_spread: float = 1.0
    counted: int | None = None
    alike: int = 1
    easier: tuple[float, float] = (0.0, 0.0)
    shows: Mapping[str, float] | None = None
    noise: Callable[[Random, tuple[int, ...]], Doubles] = lambda rng, n: rng.normal(size=n)


COLLECTIONS: Mapping[str, Kind] = {
    "exchangeable": Kind(),
    "documents vary twice as much": Kind(spread=2.0),
    "documents vary twice as much for the target alone": Kind(own_spread=2.0),
    "half of the documents count": Kind(counted=5),
    "shorter documents": Kind(spread=np.sqrt(2), shows={"mean log length": -2.0}),
    "groups of five alike, not seen in texts": Kind(alike=5),
    "groups of five alike": Kind(alike=5, shows={ranks.NEAR: 10.0}),
    "half of an easier kind": Kind(easier=(1.5, 1.0)),
    "half of an easier kind, for the target 1.5 times as much": Kind(easier=(1.5, 1.5)),
    "half of an easier kind, for the target twice as much": Kind(easier=(1.5, 2.0)),
    "heavy tails": Kind(noise=lambda rng, n: rng.standard_t(3, size=n) / np.sqrt(3)),
    "skewed": Kind(noise=lambda rng, n: rng.exponential(size=n) - 1),
}


def collected(kind: Kind, rng: Random, documents: int = 10, lift: float = 0.0) -> Any:
    """Twenty collections of that kind: the values of both models [documents], codes, and text features."""
    shape = (UNITS, documents)
    level = 0.3 * rng.normal(size=(UNITS, 1))
    parts = [np.sqrt(SHARED) * kind.noise(rng, shape)]
    parts += [np.sqrt(1 - SHARED) * kind.noise(rng, shape) for _ in range(2)]
    for part in parts:
        if kind.alike > 1:
            group = rng.normal(size=-(-documents // kind.alike)).repeat(kind.alike)[:documents]
            part[0] = part[0].std() * (np.sqrt(0.8) * group + np.sqrt(0.2) * rng.normal(size=documents))
        part[0] *= kind.spread
    parts[1][0] *= kind.own_spread
    target, second = level + parts[0] + parts[1], level + parts[0] + parts[2]
    if kind.own_spread > 1:
        target[0] += np.sqrt(SHARED * (kind.own_spread**2 - 1)) * rng.normal(size=documents)
    easier = np.where(rng.random(documents) < 0.5, kind.easier[0], 0.0)
    target[0] += kind.easier[1] * easier
    second[0] += easier
    if lift:
        target[0] += lift * (1 + 0.5 * rng.normal(size=documents))
    if kind.counted is not None:
        target[0, kind.counted :] = second[0, kind.counted :] = np.nan
    features = {name: rng.normal(size=UNITS) for name in FEATURES}
    for name, away in (kind.shows or {}).items():
        features[name][0] += away
    return target.ravel(), second.ravel(), np.repeat(np.arange(UNITS), documents), features


class SimulatedCollections(ranks._Collections):
    """The test of collections on values that are there already."""

    predictors = None

    def read(self, model: Any, stage: str) -> Doubles:
        return self.said[model.name]  # type: ignore[attr-defined, no-any-return]


def by_collections(target: Doubles, second: Doubles, codes: Any, features: Any) -> Outcome:
    """The test as it is."""
    together: Any = SimpleNamespace(names=tuple(map(str, range(UNITS))), codes=codes)
    made = SimulatedCollections(
        corpus=Corpus("simulated", ()),
        models=MODELS,
        settings=ranks.CollectionSettings(),
        watch=None,  # type: ignore[arg-type]
        controls=(),
        gathered=together,
        features=features,
        company=ranks.Company(),
        value="alone",
        reader=None,  # type: ignore[arg-type]
    )
    object.__setattr__(made, "said", {"target": target, "second": second})
    if made.ranked(target).p > LEVEL:  # nobody is accused then; `conclude` would say so
        return Outcome(False, False)
    return concluded(made, target, made.checks(target))


def by_collections_before(target: Doubles, second: Doubles, codes: Any, features: Any) -> Outcome:
    """The rule of commit 26362c5: the rank of the means, and the likeness of four means of text features."""
    means = np.array([np.nanmean(target[codes == unit]) for unit in range(UNITS)])
    rejected = rank_p(means[0], means[1:]) <= LEVEL
    alike = joint_extremeness(np.column_stack([features[name] for name in FEATURES[:4]])).p > LEVEL
    return Outcome(bool(rejected), bool(rejected and alike))


# Cells

JUMPS, LIFTS = (0.6, 1.0, 1.5), (0.6, 1.0, 1.5, 2.0)


def cells() -> list[dict[str, Any]]:
    """Every cell: a test, a kind, and how far the model in question knows the texts better, 0 for nulls."""
    made: list[dict[str, Any]] = [{"test": "cutoff", "kind": kind, "raised": 0.0} for kind in SERIES]
    made += [{"test": "cutoff", "kind": "stationary", "raised": jump} for jump in JUMPS]
    made += [{"test": "collections", "kind": kind, "raised": 0.0} for kind in COLLECTIONS]
    made += [{"test": "collections", "kind": "exchangeable", "raised": lift} for lift in LIFTS]
    return made


BATCH = 100
"""Runs with the same dates."""


def made(cell: Mapping[str, Any], runs: int) -> list[tuple[Outcome, Outcome]]:
    """The outcomes of a cell, after and before."""
    rng = np.random.default_rng(zlib.crc32(json.dumps(cell, sort_keys=True).encode()))
    found: list[tuple[Outcome, Outcome]] = []
    while len(found) < runs:
        number = min(BATCH, runs - len(found))
        if cell["test"] == "cutoff":
            found += cutoffs(SERIES[cell["kind"]], rng, number, cell["raised"])
        else:
            drawn = (collected(COLLECTIONS[cell["kind"]], rng, lift=cell["raised"]) for _ in range(number))
            found += [(by_collections(*one), by_collections_before(*one)) for one in drawn]
    return found


def cutoffs(kind: Dated, rng: Random, runs: int, jump: float = 0.0) -> list[tuple[Outcome, Outcome]]:
    """So many series of one kind, after and before. Who does not reject is not accused; that is found for all runs at
    once, and the others go through the whole test."""
    series, cut, target, second = dated(kind, rng, runs, jump)
    nothing = Outcome(False, False)
    after, before = [nothing] * runs, [nothing] * runs
    try:
        jumps, errors = differences(target, series, drops.windows(series, cut, LEVEL))
        for i in np.flatnonzero(low(jumps / errors)).tolist():
            after[i] = by_cutoff(series, cut, target[i], second[i])
    except drops.TextsError:  # too short a series: exit code 2, before any model is asked
        pass
    jumps, _ = differences(target, series, drops._windows(series, cut, MONTHS))
    for i in np.flatnonzero(low(jumps)).tolist():
        before[i] = by_cutoff_before(series, cut, target[i], second[i])
    return list(zip(after, before, strict=True))


def low(values: Doubles) -> Any:
    """Whether the first of each row is ranked within the level, or so nearly that rounding may decide, [runs]."""
    at_least = (values[:, 1:] >= values[:, :1] - 1e-9 * np.abs(values[:, :1])).sum(axis=1)
    return (1 + at_least) / values.shape[1] <= LEVEL


def differences(values: Doubles, series: Any, found: Any) -> tuple[Doubles, Doubles]:
    """The jumps of all runs, and their standard errors, [runs, cut-offs]: as `cutoff.jumps` where nothing predicts."""
    jumps, errors = [], []
    for one in found.all:
        means, squares = [], 0.0
        for part in (slice(one.begin, one.middle), slice(one.middle, one.end)):
            some, codes = values[:, part], drops._codes(series.weeks[part])
            mean = some.mean(axis=1)
            sums = (some - mean[:, None]) @ np.eye(codes[-1] + 1)[codes]
            m = sums.shape[1]
            squares = squares + (sums**2).sum(axis=1) / len(codes) ** 2 * m / max(1, m - 1)
            means.append(mean)
        jumps.append(means[0] - means[1])
        errors.append(np.sqrt(squares))
    return np.stack(jumps, axis=1), np.stack(errors, axis=1)


def counted(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """How many rejected and accused."""
    return {
        "runs": len(outcomes),
        "rejected": sum(one.rejected for one in outcomes),
        "accused": sum(one.accused for one in outcomes),
    }


def row(cell: Mapping[str, Any], outcomes: Sequence[tuple[Outcome, Outcome]]) -> dict[str, Any]:
    """What is written of a cell: of nulls what rejected and accused, of members what was found."""
    after, before = (counted(some) for some in zip(*outcomes, strict=True))
    if not cell["raised"]:
        return {"how": "simulated", **after, "members": None, "before": before}
    members = {
        "kind": f"{cell['raised']:g} standard deviations",
        "runs": after["runs"],
        "found": after["accused"],
    }
    return {
        "how": "simulated",
        "runs": 0,
        "rejected": 0,
        "accused": 0,
        "members": members,
        "before": {**before, "found": before["accused"]},
    }


def main() -> None:
    """Make the cells that are not on file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=RESULTS / "innocents_conditional.json")
    parser.add_argument("--limit", type=int, help="finish at most so many cells in this call")
    given = parser.parse_args()
    ledger = Ledger(given.out, {"runs": given.runs})
    for cell in ledger.todo(cells(), given.limit):
        ledger.add(cell, [row(cell, made(cell, given.runs))], {})


if __name__ == "__main__":
    main()
