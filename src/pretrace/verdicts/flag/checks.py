"""Could a text that was not seen have stood among the known ones? What says no, without the target.

The rule is one for all: the answer is withheld where a 99% interval of the AUC, over documents, lies above
0.5 and the AUC itself above 0.55. The first makes it rare by chance (1 in 200 on either side); the second lets
differences pass that large sets show and that could not matter: were a score to follow the difference to the
full, an AUC of 0.55 would put up to 1.7 times as many non-members above a threshold of 1 in 200 as promised
(two normal laws 0.18 standard deviations apart). How often sets that are alike are refused is in
evidence/flagging.csv.

Spreads are compared beside means, and neighbours in the file with each other (`spread_check`, `runs_check`). These two
withhold an accusation and no all-clear. `unseen_drift` says how large a drift of the score could hide from all of it.

Few documents give too narrow an interval: two that lie high by chance lie high in every resample. Where a side
has fewer than 20, a rank test of one value a document has to agree, and where even that could never say no, the
check was not run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from pretrace.baselines.blind import bag_of_words
from pretrace.baselines.classifiers import FEWEST_TEXTS, WIDENING, Unit
from pretrace.results.rounding import p_value, plural
from pretrace.scoring.holdout import drawn_documents
from pretrace.statistics.documents import FEW_DOCUMENTS, MEMBERS, NONMEMBERS, Grouping, Groups, Numbers, means
from pretrace.statistics.resampling import group_bootstrap
from pretrace.statistics.shift import Below, spread_p
from pretrace.types import Bools, Check, Doubles, Estimate
from pretrace.verdicts.wording import say, word_check

APART = 0.55
"""The AUC above which two sets count as different."""
RESAMPLES = 2000
UNITS: Mapping[Unit, int] = {"words": 20_480, "form": 4_096}
"""Texts of either side that the classifiers of words and of form learn from and judge, drawn by document."""
_OUTER = 0.2
"""The share of a 95% interval's outside that a 99% interval leaves out."""
LEVEL = 0.005
"""Of that test, on either side; as rare as the interval's failures are meant to be."""
_WORDS_LEVEL = NormalDist().cdf(WIDENING * NormalDist().inv_cdf(LEVEL))
"""The same for cross-fitted values, which vary more than the test takes them to (see `classifiers.WIDENING`)."""

FLOOR = 1 / 3
"""The drift, in standard deviations between documents, that checks of words and lengths can never exclude."""
STRICT = 0.01
"""The level of a comparison of spreads, and of neighbours."""
WIDE = 0.84
"""Standard errors above which a wider lower half is taken off, with as many added (four fifths on one side)."""
_UNSEEN = 1.645
"""Standard errors of a limit that holds in 95 of 100 cases."""
_NINETY_NINE = 2.576

BEYOND, SPREAD = "beyond_chance", "spread p"


Read = Callable[[Bools], Sequence[str]]
"""Gives the texts of the chosen rows, in order."""


def row_checks(
    lengths: Doubles, asked: Bools, groups: Numbers, read: Read, *, seed: int
) -> tuple[Check, ...]:
    """Whether words, form or lengths (characters) tell the texts `asked` about from the known ones, [rows], documents
    kept whole. Classifiers learn from and judge at most as many of a side as `UNITS` says; `read` gives those."""
    grouping = Grouping.of(groups, asked)
    few, fewer = (_too_few(asked, grouping, level) for level in (_WORDS_LEVEL, LEVEL))
    if fewer:
        kinds = ("words", "form", "length")
        return tuple(word_check(f"flag.{one}", None, words="few", few=fewer) for one in kinds)
    found = _tell_apart(lengths, asked, groups, seed=seed, both=True)
    length = _with_spread(found.check("length"), np.log1p(lengths), asked, groups)
    if few:
        return (*(word_check(f"flag.{one}", None, words="few", few=few) for one in ("words", "form")), length)
    checks = []
    for unit, most in UNITS.items():
        drawn = np.zeros(len(asked), dtype=bool)
        for side in (asked, ~asked):
            drawn[side] = drawn_documents(groups[side], side[side], most=most, seed=seed)
        some, theirs = asked[drawn], groups[drawn]
        judged = bag_of_words(read(drawn), some, theirs, seed=seed, unit=unit)
        if judged.scores is None:
            checks.append(word_check(f"flag.{unit}", None, words="untrained", why=judged.note))
            continue
        found = _tell_apart(judged.scores, some, theirs, seed=seed, crossed=True)
        check = found.check(unit, most=APART)
        if unit == "words":
            check = _with_spread(check, judged.scores, some, theirs)
        if not drawn.all():
            mine, others = (f"{(drawn & side).sum():,} of the {side.sum():,}" for side in (asked, ~asked))
            rests = say("flag.plan.rests", mine=mine, others=others)
            check = replace(check, words=f"{check.words} {rests}")
        checks.append(check)
    return (*checks, length)


def placebo_check(
    values: Doubles, asked: Bools, groups: Groups, *, flagged: int, rate: float, seed: int
) -> Check:
    """Check that the same score of a model that never saw the texts leaves them unflagged and in their place."""
    if np.ptp(values) == 0:
        return word_check("flag.placebo", None, words="mute")
    found = _tell_apart(values, asked, groups, seed=seed)
    numbers = {"flagged": flagged, "rate": rate, **found.figures}
    good = not flagged and not found.apart
    check = word_check(
        "flag.placebo", good, numbers, share=f"{100 * rate:g}%", flagged=flagged, auc=found.auc
    )
    if _seldom(Grouping.of(groups, asked), LEVEL):
        check = replace(check, words=f"{check.words} {say('flag.placebo.few')}")
    return _with_spread(check, values, asked, groups)


def spread_check(found: Below, checks: Sequence[Check], *, fewest: int) -> Check:
    """Check that both sides vary alike: in the lower half of the score (`found`), and in what other checks saw."""
    if fewest < FEWEST_TEXTS:
        return word_check("flag.spread", None, words="few")
    figures: dict[str, Any] = {"score, lower half": found.p} if found.p is not None else {}
    figures |= {check.name: check.figures[SPREAD] for check in checks if SPREAD in check.figures}
    odd = any(p <= STRICT for p in figures.values())
    ps = ", ".join(f"p = {p_value(p)} ({name})" for name, p in figures.items())
    below = say(f"flag.spread.{'none_' * (found.p is None)}below", ratio=found.ratio)
    figures["ratio"] = found.ratio
    return word_check("flag.spread", not odd, figures, below=below, ps=ps, strict=STRICT)


def runs_check(p: float, *, documents: int) -> Check:
    """Check that known documents side by side in their file score no more alike (`p`), as those of few sources do."""
    if documents < FEW_DOCUMENTS:
        return word_check("flag.runs", None, words="few", documents=documents)
    return word_check("flag.runs", p > STRICT, {"p": p}, p=p, strict=STRICT)


def unseen_drift(checks: Sequence[Check], asked: int, known: int) -> float:
    """The drift of the score, in standard deviations between documents, that the checks could not have excluded. An AUC
    of a normal law and the same moved by d is Φ(d / √2). It is the upper limit (95%) of a placebo's score, or the
    larger limit of words and lengths and at least `FLOOR`; a check that was not run has the limit of its documents."""

    def drift(away: float) -> float:
        return math.sqrt(2) * NormalDist().inv_cdf(0.5 + min(away, 0.499))

    seen = {check.name: check.figures["auc"] for check in checks if "auc" in check.figures}
    chance = math.sqrt((asked + known + 1) / (12 * asked * known))
    if "placebo" in seen:
        value, low, high = seen["placebo"]
        half = max((high - low) / 2 * _UNSEEN / _NINETY_NINE, _UNSEEN * chance)
        return drift(max(0.0, value - 0.5) + half)
    limits = [WIDENING * _UNSEEN * chance]
    for name, (value, low, high) in seen.items():
        if name == "form":  # a second look at the words' own texts, which excludes no less for being made
            continue
        away = abs(value - 0.5) if name == "length" else max(0.0, value - 0.5)
        limits.append(away + (high - low) / 2 * _UNSEEN / _NINETY_NINE)
    return max(FLOOR, *map(drift, limits))


def _with_spread(check: Check, values: Doubles, asked: Bools, groups: Groups) -> Check:
    """The check with a rank test of the spread of what it looked at, one value a document."""
    mine, others = _by_side(values, asked, groups)
    if min(len(mine), len(others)) < FEWEST_TEXTS:
        return check
    return replace(check, figures={**check.figures, SPREAD: spread_p(mine, others)})


def withheld(checks: Sequence[Check]) -> str:
    """Say why a rejection of the test of the set does not count, "" where it does: it sees differences too small to
    refuse flags for, so a control that says that sets differ by more than chance withholds it."""
    saying = [say(f"flag.{check.name}.differs") for check in checks if check.figures.get(BEYOND)]
    return say("flag.withheld.differ", by=" and by ".join(saying)) if saying else ""


@dataclass(frozen=True, slots=True)
class _Separation:
    """How well both sides are told apart: the AUC (99%), if it is `beyond` chance, and far enough `apart` to matter."""

    auc: Estimate
    beyond: bool
    apart: bool

    @property
    def figures(self) -> dict[str, Any]:
        return {"auc": [self.auc.value, self.auc.low, self.auc.high], BEYOND: self.beyond}

    def check(self, name: str, **numbers: Any) -> Check:
        """The check of that name."""
        return word_check(f"flag.{name}", not self.apart, self.figures, auc=self.auc, **numbers)


def _tell_apart(
    values: Doubles, asked: Bools, groups: Groups, *, seed: int, crossed: bool = False, both: bool = False
) -> _Separation:
    """How well values tell texts in question, as higher ones, with `both` also lower; `crossed`: a classifier's."""
    spread = group_bootstrap(values[:, None], asked, groups=groups, seed=seed, resamples=RESAMPLES).auc
    spread = replace(spread, tail=spread.tail * _OUTER)
    auc = (spread.widened(0, WIDENING) if crossed else spread).estimate(0)
    beyond, apart, level = False, False, _WORDS_LEVEL if crossed else LEVEL
    for sign in (1, -1) if both else (1,):
        side = auc if sign > 0 else Estimate(1 - auc.value, 1 - auc.high, 1 - auc.low)
        rare = side.low > 0.5 and _rank_p(sign * values, asked, groups) <= level
        beyond, apart = beyond or rare, apart or (rare and side.value > APART)
    return _Separation(auc, beyond, apart)


def _by_side(values: Doubles, asked: Bools, groups: Groups) -> list[Doubles]:
    codes = Grouping.of(groups).codes
    return [means(values[side], codes[side]) for side in (asked, ~asked)]


def _rank_p(values: Doubles, asked: Bools, groups: Groups) -> float:
    """The p-value of a rank test (Mann and Whitney) for higher documents in question; 0 where neither side is few."""
    if Grouping.of(groups, asked).fewest >= FEW_DOCUMENTS:
        return 0.0
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(*_by_side(values, asked, groups), alternative="greater").pvalue)


def _seldom(grouping: Grouping, level: float) -> bool:
    """Whether documents are so few that no order of them is rare enough to say that the sides differ."""
    few, other = sorted((grouping.holding(MEMBERS), grouping.holding(NONMEMBERS)))
    return few < FEW_DOCUMENTS and math.comb(few + other, few) * level < 1


def _too_few(asked: Bools, grouping: Grouping, level: float) -> str:
    for whose, count, bit in (
        ("in question", int(asked.sum()), MEMBERS),
        ("known", int((~asked).sum()), NONMEMBERS),
    ):
        documents = grouping.holding(bit)
        rare = documents == grouping.fewest and _seldom(grouping, level)
        if count < FEWEST_TEXTS or documents < 2 or rare:
            return say("flag.plan.few", whose=whose, count=count, documents=plural(documents, "document"))
    return ""
