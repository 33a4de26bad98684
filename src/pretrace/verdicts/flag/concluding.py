"""From the scored rows of both sets to the outcome: the checks, the flags of documents, the test of the set.

What stands out must stand out beyond what nobody could have seen. From the value of every document in question is
taken the drift that the checks could not have excluded (`unseen_drift`), and where the lower half of these
documents is wider than that of the known ones, their distance from the middle is divided by as much. Flags are of
documents that are flagged even so, and the test of the set accuses where it still rejects. The outcome is that of
`verdicts.outcome`, as for every other test.

The checks ask whether a text that was not seen could have stood among the known ones, mostly without the target. The
rule is one for all: the answer is withheld where a 99% interval of the AUC, over documents, lies above 0.5 and the AUC
itself above 0.55. The first makes it rare by chance (1 in 200 on either side); the second lets differences pass that
large sets show and that could not matter: were a score to follow the difference to the full, an AUC of 0.55 would put
up to 1.7 times as many non-members above a threshold of 1 in 200 as promised (two normal laws 0.18 standard deviations
apart). How often sets that are alike are refused is in evidence/flagging.csv. Few documents give too narrow an
interval: two that lie high by chance lie high in every resample. Where a side has fewer than 20, a rank test of one
value a document has to agree, and where even that could never say no, the check was not run.

Spreads are compared beside means, and known neighbours in the file with each other. These two withhold an accusation
and no all-clear. `unseen_drift` says how large a drift of the score could hide from all of it.

What a flagging would have seen is measured with a copy of the target that is trained on a tenth of the texts: what that
adds to the score of a document, beyond what it adds to known non-members that were not read. Flaggings of as many
documents are then simulated: known ones stand for those nobody read, and a tenth of those in question gets what
training added. The share of these that end in an accusation is the power, with all that withholds one. How many
documents there can be like those that were read follows from the same simulation: the largest share at which a test
statistic as low as the one that was found has a chance of at least 5%.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np

from pretrace.baselines import FEWEST_TEXTS, WIDENING, Unit, bag_of_words
from pretrace.errors import TextsError
from pretrace.results.wording import p_value, plural, say
from pretrace.scoring.outlook import Watch
from pretrace.scoring.plan import Models
from pretrace.statistics import conformal
from pretrace.statistics.conformal import (
    Below,
    SetShift,
    compare_below,
    remove_drift,
    serial_p,
    set_shift,
    spread_p,
)
from pretrace.statistics.documents import (
    FEW_DOCUMENTS,
    MEMBERS,
    NONMEMBERS,
    Grouping,
    Groups,
    Numbers,
    drawn_documents,
    mean_interval,
    means,
    share_interval,
)
from pretrace.statistics.roc import group_bootstrap
from pretrace.tuning.planting import PlantSettings
from pretrace.types import Bools, Check, Corpus, Doubles, Estimate, Outcome, Power, Text
from pretrace.verdicts.flag.planning import CLEARING, FEWEST_KNOWN, DetectionLimits, FlagSettings
from pretrace.verdicts.frame import PlantedShift, planted_copy, trained
from pretrace.verdicts.outcome import ENOUGH, MOST_DOSE, ObservedFinding, conclude, word_check
from pretrace.verdicts.reading import read_scores
from pretrace.verdicts.settings import POWER_BATCH


@dataclass(frozen=True, eq=False)
class Sides:
    """Each scored text of both sets, [rows], those in question (`asked`) first: the number of its document by name,
    scores, characters. TextsError where too few texts could be scored, for these `reasons`."""

    asked: Bools
    documents: Numbers
    scores: Doubles
    placebo: Doubles | None
    lengths: Doubles
    settings: FlagSettings
    seed: int
    reasons: Iterable[str] = ()

    def __post_init__(self) -> None:
        if not self.asked.any() or self.known < FEWEST_KNOWN:
            why = "; ".join(dict.fromkeys(self.reasons) or ("there were no others",))
            numbers = {"texts": self.asked.sum(), "known": self.known, "fewest": FEWEST_KNOWN}
            raise TextsError(say("flag.plan.unscored", why=why, **numbers))

    @cached_property
    def place(self) -> Numbers:
        """The place of the document of each text in question among these, by name, [texts in question]."""
        return Grouping.of(self.documents[self.asked]).codes

    @cached_property
    def number(self) -> int:
        """The documents in question."""
        return int(self.place.max()) + 1

    @cached_property
    def known(self) -> int:
        """The known documents."""
        return len(np.unique(self.documents[~self.asked]))

    @cached_property
    def drawn(self) -> Bools:
        """The rows that make their documents' values, [rows]."""
        return conformal.drawn_pieces(self.documents, self.seed)

    def by_document(self, values: Doubles) -> tuple[Doubles, Doubles]:
        """The values of the documents in question and of the known ones, each by name, from a score of all rows."""
        mine, others = self.drawn & self.asked, self.drawn & ~self.asked
        return means(values[mine], self.documents[mine]), means(values[others], self.documents[others])

    @cached_property
    def alike(self) -> float:
        """The correlation of the target's and the placebo's values of the known documents; 0 without a placebo."""
        if self.placebo is None:
            return 0.0
        own, other = (self.by_document(values)[1] for values in (self.scores, self.placebo))
        return float(np.corrcoef(own, other)[0, 1]) if own.std() and other.std() else 0.0

    @property
    def compared(self) -> bool:
        """Whether a placebo reads so much like the target that it can speak for it (see `outcome.MOST_DOSE`)."""
        return self.alike * MOST_DOSE >= 1

    def p(self, asked: Doubles, known: Doubles) -> Doubles:
        """The p-values of documents in question from values of both sides, one a document."""
        return conformal.p_values(asked, known, randomised=self.settings.randomised, seed=self.seed)


_PLACEBO_RATE = 0.05
"""The highest rate a placebo is held to: by chance it flags anything in one check of twenty at most."""
_ABOVE = 0.05
"""The share of the known documents above the line at which asked ones are counted, to describe the set."""
DRIFT = "drift"
"""The name of the check that what was found is more than a drift that nobody could have seen."""
ACCUSING = ("spread", "runs", DRIFT)
"""Checks that withhold an accusation, and no all-clear: that is measured on the very texts."""


@dataclass(frozen=True, slots=True, eq=False)
class Outliers:
    """What stands out: the test of the set as it is (`shift`), whether it still rejects without the `unseen` drift and
    the `spread`, the p-values of documents, the least rates at which they would be flagged (`q`), and those that are
    flagged as they are and without drift and spread, [documents in question] by name."""

    shift: SetShift
    unseen: float
    spread: float
    withstands: bool
    p: Doubles
    q: Doubles
    plain: Bools
    chosen: Bools

    @property
    def rejects(self) -> bool:
        """Whether anything stands out, as it is."""
        return self.shift.p <= self.shift.level or bool(self.plain.any())


@dataclass(frozen=True, slots=True)
class SetTest:
    """The test of the set: do the asked documents, as a whole, score higher than the known ones?

    `p` is None where a control withholds it, and `withheld` says why. `above` asked documents lie above the line that
    `expected` of them would be above by chance (p-values of at most 5%). The test rejects at `level` from `least`
    documents on that stand above all known ones while the others are like these; None where not even all would do.

    `explained` is the drift of all asked documents, in standard deviations of the known ones, that would explain a
    rejection. `unseen` is the drift that the checks could not have excluded, and `spread` how many times as far as the
    known ones the asked documents lie below the middle.
    """

    p: float | None
    level: float
    above: int
    expected: float
    least: int | None
    permutations: int
    withheld: str = ""
    explained: float | None = None
    unseen: float | None = None
    spread: float | None = None

    @property
    def rejects(self) -> bool:
        """Whether the set stands out."""
        return self.p is not None and self.p <= self.level


@dataclass(frozen=True, eq=False)
class CheckedScores:
    """The rows with all that was seen of them; `withheld`: why the test of the set does not accuse if it rejects.

    Once it is concluded: the outcome, and the power or why it was `unmeasured`."""

    sides: Sides
    limits: DetectionLimits
    checks: tuple[Check, ...]
    outliers: Outliers
    withheld: str
    outcome: Outcome = "missed"
    power: Power | None = None
    unmeasured: str = ""

    @property
    def chosen(self) -> Bools:
        """The documents that are flagged; none where the answer is refused."""
        return self.outliers.chosen & (self.outcome != "refused")

    @property
    def quiet(self) -> bool:
        """Whether nothing stands out and no check withholds an all-clear: then power decides."""
        return not self.outliers.rejects and not _refuse(self.checks)

    @property
    def counts(self) -> dict[str, int]:
        """How many texts and documents there are, and how many are flagged."""
        sides, chosen = self.sides, self.chosen
        return {
            "texts": len(sides.place),
            "documents": sides.number,
            "flagged": int(chosen[sides.place].sum()),
            "flagged_documents": int(chosen.sum()),
            "known": len(sides.asked) - len(sides.place),
            "known_documents": sides.known,
        }

    @cached_property
    def set_test(self) -> SetTest:
        """The test of the set as results hold it; without p where it is withheld."""
        found, shift = self.outliers, self.outliers.shift
        number = len(shift.known)
        return SetTest(
            p=None if self.withheld else shift.p,
            level=shift.level,
            above=int((conformal.p_values(shift.asked, shift.known) <= _ABOVE * (1 + 1e-12)).sum()),
            expected=int(_ABOVE * (number + 1) + 1e-9) / (number + 1) * len(shift.asked),
            least=shift.least,
            permutations=shift.permutations,
            withheld=self.withheld,
            explained=shift.explained,
            unseen=found.unseen,
            spread=found.spread,
        )


def run_checks(sides: Sides, limits: DetectionLimits, read: Read) -> CheckedScores:
    """What the rows say; `read` gives the texts of those that the check of the words looks at."""
    level, documents = sides.settings.level, sides.documents
    checks = [*row_checks(sides.lengths, sides.asked, documents, read, seed=sides.seed)]
    checks.append(_ask_placebo(sides))
    asked, known = sides.by_document(sides.scores)
    shift, below = set_shift(asked, known, level=level, seed=sides.seed), compare_below(asked, known)
    unseen = unseen_drift(checks, sides.number, sides.known)
    found = outliers_at(shift, sides, unseen, below.allowed(WIDE))
    # where their files name known documents
    first = np.unique(documents[~sides.asked], return_index=True)[1]
    in_order = known[np.argsort(first, kind="stable")]
    checks.append(spread_check(below, checks, fewest=min(sides.number, sides.known)))
    # known documents side by side in their file must score no more alike than others, as those of few sources do
    p, runs = serial_p(in_order), word_check("flag.runs", None, words="few", documents=sides.known)
    if sides.known >= FEW_DOCUMENTS:
        runs = word_check("flag.runs", p > STRICT, {"p": p}, p=p, strict=STRICT)
    checks.append(runs)
    # what stands out must do so without the drift and the spread that nobody could have seen
    left, plain = int(found.chosen.sum()), int(found.plain.sum())
    figures = {"explained": shift.explained, "not excluded": unseen, "spread": found.spread}
    numbers: dict[str, Any] = {"left": left, "plain": plain, "unseen": unseen, **figures}
    numbers["stands"] = "stands" if found.withstands else "does not stand"
    why = ""
    if _refuse(checks):
        why = say("flag.withheld.refused")
    elif shift.p <= level:
        # it sees differences too small to refuse flags for: whatever says that sets differ beyond chance withholds it
        saying = [say(f"flag.{check.name}.differs") for check in checks if check.figures.get(BEYOND)]
        if saying:
            why = say("flag.withheld.differ", by=" and ".join(saying))
        elif not found.withstands:
            why = say("flag.withheld.drift", **numbers)
    good = (shift.p <= level and not why) or bool(left) if found.rejects else None
    words = "words" if found.rejects else "quiet"
    checks.append(word_check("flag.drift", good, figures, words=words, **numbers))
    return CheckedScores(sides, limits, tuple(checks), found, why)


def _refuse(checks: Iterable[Check]) -> bool:
    return any(check.status == "failed" and check.name not in ACCUSING for check in checks)


def outliers_at(shift: SetShift, sides: Sides, unseen: float, spread: float) -> Outliers:
    """What stands out by a test of the set, and what is left of it without a drift and a spread."""
    asked, known, (fdr, method) = shift.asked, shift.known, sides.settings.rate
    p = sides.p(asked, known)
    q = conformal.adjusted(p, method)
    chosen = plain = conformal.flagged(q, fdr)
    if plain.any():
        ways = [remove_drift(asked, known, unseen, one) for one in {1.0, spread}]
        left = np.max([sides.p(moved, known) for moved in ways], axis=0)
        chosen = plain & conformal.flagged(conformal.adjusted(left, method), fdr)
    withstands = shift.p <= shift.level and all(
        shift.p_after(unseen, one) <= shift.level for one in (1.0, spread)
    )
    return Outliers(shift, unseen, spread, withstands, p, q, plain, chosen)


def conclude_outliers(
    outliers: Outliers, checks: Sequence[Check], power: Power | None, share: Estimate | None
) -> Outcome:
    """The outcome of a flagging, from what stands out and the checks."""
    shift, rule = outliers.shift, {"accusing": ACCUSING, "rejected": outliers.rejects}
    found: dict[str, Any] = {"level": shift.level, "p": shift.p, "effect": share, "planted": power, **rule}
    end = conclude(ObservedFinding(model="", of="", **found), checks)
    if end.outcome == "consistent":
        return "flagged" if outliers.chosen.any() else "set"
    if end.outcome == "nothing":
        return "none"
    return "refused" if end.withheld or outliers.rejects else "missed"


def _ask_placebo(sides: Sides) -> Check:
    """The same flagging and test of the set, with the placebo's scores."""
    settings, values = sides.settings, sides.placebo
    if values is None:
        return word_check("flag.placebo", None, words="none")
    (fdr, method), both = settings.rate, sides.by_document(values)
    rate, q = min(fdr, _PLACEBO_RATE), conformal.adjusted(sides.p(*both), method)
    number = int(conformal.flagged(q, rate).sum())
    blank = placebo_check(values, sides.asked, sides.documents, flagged=number, rate=rate, seed=sides.seed)
    if conformal.least_together(sides.known, sides.number, rate, method) is None:
        blank = replace(blank, words=f"{blank.words} {say('flag.placebo.vain')}")
    if blank.status == "not run":
        return blank
    p = set_shift(*both, level=settings.level, seed=sides.seed).p
    beyond = bool(blank.figures[BEYOND]) or p <= settings.level
    words = f"{blank.words} {say('flag.placebo.whole', p=p)}"
    figures = {**blank.figures, "set p": p, BEYOND: beyond, ALIKE: sides.alike}
    if blank.status == "passed" and not sides.compared:  # what it does find withholds all the same
        return word_check("flag.placebo", None, figures, words="otherwise", alike=sides.alike)
    return replace(blank, words=words, figures=figures)


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

BEYOND, SPREAD, ALIKE = "beyond_chance", "spread p", "correlation"


Read = Callable[[Bools], Sequence[str]]
"""Gives the texts of the chosen rows, in order."""


def row_checks(
    lengths: Doubles, asked: Bools, groups: Numbers, read: Read, *, seed: int
) -> tuple[Check, ...]:
    """Whether words, form or lengths (characters) tell the texts `asked` about from the known ones, [rows], documents
    kept whole. Classifiers learn from and judge at most as many of a side as `UNITS` says; `read` gives those."""
    grouping = Grouping.of(groups, asked)
    few, fewer = (_too_few(asked, grouping, level) for level in (_WORDS_LEVEL, LEVEL))
    length = word_check("flag.length", None, words="few", few=fewer)
    if not fewer:
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
        scores, note = bag_of_words(read(drawn), some, theirs, seed=seed, unit=unit)
        if scores is None:
            checks.append(word_check(f"flag.{unit}", None, words="untrained", why=note))
            continue
        found = _tell_apart(scores, some, theirs, seed=seed, crossed=True)
        check = found.check(unit, most=APART)
        if unit == "words":
            check = _with_spread(check, scores, some, theirs)
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
    share = f"{100 * rate:g}%"
    check = word_check("flag.placebo", good, numbers, share=share, flagged=flagged, auc=found.auc)
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


def unseen_drift(checks: Sequence[Check], asked: int, known: int) -> float:
    """The drift of the score, in standard deviations between documents, that the checks could not have excluded. An AUC
    of a normal law and the same moved by d is Φ(d / √2). It is the upper limit (95%) of a placebo's score, or the
    larger limit of words and lengths and at least `FLOOR`; a check that was not run has the limit of its documents.
    What moves both models' scores, each by less than its spread, moves the target's at most 1 / correlation times as
    far as the placebo's."""

    def drift(away: float) -> float:
        return math.sqrt(2) * NormalDist().inv_cdf(0.5 + min(away, 0.499))

    seen = {check.name: check.figures["auc"] for check in checks if "auc" in check.figures}
    chance = math.sqrt((asked + known + 1) / (12 * asked * known))
    alike: float = next((check.figures.get(ALIKE, 0.0) for check in checks if check.name == "placebo"), 0.0)
    if alike * MOST_DOSE >= 1:
        value, low, high = seen["placebo"]
        half = max((high - low) / 2 * _UNSEEN / _NINETY_NINE, _UNSEEN * chance)
        return drift(max(0.0, value - 0.5) + half) / alike
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
    """How well values tell texts in question, as higher ones, with `both` also lower; `crossed`: a classifier's. Where
    a side has few documents a rank test (Mann and Whitney) has to agree."""
    from scipy.stats import mannwhitneyu

    few = Grouping.of(groups, asked).fewest < FEW_DOCUMENTS
    spread = group_bootstrap([values], asked, groups=groups, seed=seed, resamples=RESAMPLES).auc
    spread = replace(spread, tail=spread.tail * _OUTER)
    auc = (spread.widened(0, WIDENING) if crossed else spread).estimate(0)
    beyond, apart, level = False, False, _WORDS_LEVEL if crossed else LEVEL
    for sign in (1, -1) if both else (1,):
        side = auc if sign > 0 else Estimate(1 - auc.value, 1 - auc.high, 1 - auc.low)
        rare = side.low > 0.5
        if rare and few:
            sides = _by_side(sign * values, asked, groups)
            rare = float(mannwhitneyu(*sides, alternative="greater").pvalue) <= level
        beyond, apart = beyond or rare, apart or (rare and side.value > APART)
    return _Separation(auc, beyond, apart)


def _by_side(values: Doubles, asked: Bools, groups: Groups) -> list[Doubles]:
    codes = Grouping.of(groups).codes
    return [means(values[side], codes[side]) for side in (asked, ~asked)]


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


FEWEST = 4
"""Documents that are read at least: fewer say nothing of what training brings."""
MOST = 1_000
"""Documents of either side that take part in the planting; of more these are drawn."""
SIMULATED, LARGEST = 400, 2_000
"""Simulated flaggings, and the documents of either side with which they are simulated at most."""
SHARES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
"""Shares of documents that were read, at which the test statistic is simulated."""
_TAIL = 0.05
_TIMES = (1.5, 2, 3, 5, 8, 12, 20)
"""Times the documents that there are, of which the first that is enough is named."""
_SURELY = 0.9
"""The share of simulated flaggings that must accuse before a size is named: at that size 0.8 are to be measured."""


def measured(
    found: CheckedScores, read: Callable[[Bools], Sequence[str]], models: Models, watch: Watch
) -> tuple[Power | None, Estimate | None, str]:
    """The power, and the share of documents like the planted ones that there can be; or why it was not measured. `read`
    gives the texts of the chosen rows, in order. ModelError where the target has no weights here."""
    sides = found.sides
    if sides.number < 2 * FEWEST:
        return None, None, say("flag.plan.plantable", fewest=2 * FEWEST, number=sides.number)
    planted = _planted(sides, read, models, watch)
    if len(planted.moved) < FEWEST:
        return None, None, say("flag.plan.planted", number=len(planted.moved))
    return *simulated(found, planted), ""


def simulated(found: CheckedScores, planted: PlantedShift) -> tuple[Power, Estimate]:
    """The power and the share, from what training added."""
    sides = found.sides
    asked, known = (min(LARGEST, number) for number in (sides.number, sides.known))
    law = _Simulation.of(found, planted.moved, asked, known, np.random.default_rng([sides.seed, 7]))
    often = share_interval(law.accused(), SIMULATED)
    tenth = max(1, round(CLEARING * asked)) / asked
    enough = None if often.value >= ENOUGH else _enough(found, planted)
    gained = mean_interval(planted.moved / (float(law.values.std()) or 1.0))
    power = Power(
        probability=often,
        needed=enough[0] if enough else None,
        planted=len(planted.moved),
        epochs=planted.how.epochs,
        effect=Estimate(tenth, tenth, tenth),
        facts={
            **trained(planted.how, min(MOST, sides.number)),
            "share": tenth,
            "gained": [gained.value, gained.low, gained.high],
            "simulated": SIMULATED,
            **({"known_needed": enough[1]} if enough else {}),
        },
    )
    return power, law.share()


def _enough(found: CheckedScores, planted: PlantedShift) -> tuple[int, int] | None:
    """Numbers of documents at which a tenth is noticed with the least training adds (95%); None above `LARGEST`."""
    sides, modest = found.sides, mean_interval(planted.moved)
    gained = planted.moved - (modest.value - modest.low)
    rng = np.random.default_rng([sides.seed, 9])
    for times in _TIMES:
        asked, known = (math.ceil(times * number) for number in (sides.number, sides.known))
        if asked + known > 2 * LARGEST:
            return None
        if _Simulation.of(found, gained, asked, known, rng).accused() >= _SURELY * SIMULATED:
            return asked, known
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Simulation:
    """Flaggings of so many documents in question and known ones: values of known documents, what training added, and
    the law of the statistic at these numbers without ties."""

    found: CheckedScores
    values: Doubles
    gained: Doubles
    made: SetShift
    rng: np.random.Generator

    @classmethod
    def of(
        cls, found: CheckedScores, gained: Doubles, asked: int, known: int, rng: np.random.Generator
    ) -> _Simulation:
        """Simulated flaggings of so many documents in question and known ones."""
        sides, ranks = found.sides, (np.arange(asked, dtype=float), np.arange(known) + 0.5)
        made = set_shift(*ranks, level=sides.settings.level, seed=sides.seed)
        return cls(found, sides.by_document(sides.scores)[1], gained, made, rng)

    def drawn(self, seen: int) -> SetShift:
        """A test of the set of which `seen` documents were read, drawn with a little noise (a kernel) against ties."""
        asked, rng, values = len(self.made.asked), self.rng, self.values
        number, wide = asked + len(self.made.known), 0.9 * len(values) ** -0.2
        middle, shrunk = float(values.mean()), 1 / np.sqrt(1 + wide**2)
        both = rng.choice(values, number) + wide * float(values.std()) * rng.standard_normal(number)
        both = middle + (both - middle) * shrunk
        both[:seen] += rng.choice(self.gained, seen)
        shift = replace(self.made, asked=both[:asked], known=both[asked:])
        return replace(shift, p=shift.p_after())

    def accused(self) -> int:
        """How many simulated flaggings accuse where a tenth was read; unseen drift goes with the error of an AUC."""
        found, sides, accused = self.found, self.found.sides, 0
        numbers = (len(self.made.asked), len(self.made.known)), (sides.number, sides.known)
        errors = [(a + k + 1) / (a * k) for a, k in numbers]
        shrunk = math.sqrt(errors[0] / errors[1])
        least = 0.0 if sides.compared else FLOOR
        unseen = max(min(least, found.outliers.unseen), min(1.0, shrunk) * found.outliers.unseen)
        for _ in range(SIMULATED):
            shift = self.drawn(max(1, round(CLEARING * numbers[0][0])))
            spread = compare_below(shift.asked, shift.known).allowed(WIDE)
            one = outliers_at(shift, sides, unseen, spread)
            accused += one.withstands or bool(one.chosen.any())
        return accused

    def share(self) -> Estimate:
        """The share of documents like the planted ones: where the p that was found is the median, and where it is as
        high or higher, or as low or lower, in 5% of simulations."""
        p, asked = self.found.outliers.shift.p, len(self.made.asked)
        drawn = np.array(
            [[self.drawn(round(share * asked)).p for _ in range(SIMULATED // 2)] for share in SHARES]
        )
        high, middle, low = ((drawn >= p).mean(1), (drawn > p).mean(1), (drawn <= p).mean(1))
        value = _crossed(middle, 0.5, falling=True)
        return Estimate(
            value,
            min(value, _crossed(low, _TAIL, falling=False)),
            max(value, _crossed(high, _TAIL, falling=True)),
        )


def _crossed(chances: Doubles, level: float, *, falling: bool) -> float:
    """The share at which chances that fall (or rise) with it cross a level, read off a straight line between two."""
    if falling:
        return float(np.interp(level, np.minimum.accumulate(chances)[::-1], SHARES[::-1]))
    return float(np.interp(level, np.maximum.accumulate(chances), SHARES))


def _planted(
    sides: Sides, read: Callable[[Bools], Sequence[str]], models: Models, watch: Watch
) -> PlantedShift:
    """What a copy of the target that read a tenth of the documents makes of them, less what it makes of known ones."""
    settings, documents = sides.settings, sides.documents

    def drawn(side: Bools) -> Bools:
        names = np.unique(documents[side])
        if len(names) > MOST:
            names = np.random.default_rng([sides.seed, 8]).choice(names, MOST, replace=False)
        return np.asarray(side & np.isin(documents, names))

    asked, known = drawn(sides.asked), drawn(~sides.asked)
    texts = dict(zip(np.flatnonzero(asked | known).tolist(), read(asked | known), strict=True))
    here = np.flatnonzero(asked).tolist()
    corpus = Corpus("planted", tuple(Text(str(i), texts[i], group=f"d{documents[i]}") for i in here))
    number = len(np.unique(documents[asked]))
    planting = PlantSettings(
        share=max(CLEARING, (FEWEST + 0.5) / number),
        epochs=settings.power_epochs,
        batch=POWER_BATCH,
        method=settings.power_method,
        seed=sides.seed % 2**31,
    )
    how: dict[str, Any] = {"cache": settings.cache, "training": watch.training}
    with planted_copy(models.target, corpus, planting, **how) as (copy, members):
        mine = np.isin(documents, documents[[int(text.id) for text in members]]) & sides.drawn & asked
        others = sides.drawn & known
        some, after = np.flatnonzero(mine | others), np.full(len(documents), np.nan)
        again = [texts[i] for i in some.tolist()]
        own: dict[str, Any] = {"stage": "reading with the copy", "watch": watch, "cache": settings.cache}
        after[some] = read_scores(replace(models, target=copy), settings.plan, again, **own).values
    gained = after - sides.scores
    mine, others = mine & np.isfinite(gained), others & np.isfinite(gained)
    base = means(gained[others], documents[others]).mean()
    moved = means(gained[mine], documents[mine]) - base if mine.any() else np.zeros(0)
    return PlantedShift(moved, planting)
