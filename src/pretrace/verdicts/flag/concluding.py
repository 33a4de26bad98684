"""From the scored rows of both sets to the outcome: the checks, the flags of documents, the test of the set.

What stands out must stand out beyond what nobody could have seen. From the value of every document in question is
taken the drift that the checks could not have excluded (`checks.unseen_drift`), and where the lower half of these
documents is wider than that of the known ones, their distance from the middle is divided by as much. Flags are of
documents that are flagged even so, and the test of the set accuses where it still rejects. The outcome is that of
`verdicts.outcome`, as for every other test.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from pretrace.errors import TextsError
from pretrace.statistics import conformal
from pretrace.statistics.conformal import Method
from pretrace.statistics.documents import Numbers, means
from pretrace.statistics.shift import SetShift, compare_below, remove_drift, serial_p, set_shift
from pretrace.types import Bools, Check, Doubles, Estimate, Outcome, Power, SetTest
from pretrace.verdicts.flag.checks import (
    BEYOND,
    WIDE,
    Read,
    placebo_check,
    row_checks,
    runs_check,
    spread_check,
    unseen_drift,
    withheld,
)
from pretrace.verdicts.flag.planning import FEWEST_KNOWN, DetectionLimits, FlagSettings
from pretrace.verdicts.outcome import ObservedFinding, conclude
from pretrace.verdicts.wording import say, word_check


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
        return np.unique(self.documents[self.asked], return_inverse=True)[1]

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

    def p(self, values: Doubles) -> Doubles:
        """The p-values of the documents in question, by name, from a score of all rows."""
        return self.p_of(*self.by_document(values))

    def p_of(self, asked: Doubles, known: Doubles) -> Doubles:
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
    the `spread`, and the documents that are flagged as they are and without these, [documents in question]."""

    shift: SetShift
    unseen: float
    spread: float
    withstands: bool
    plain: Bools
    chosen: Bools

    @property
    def rejects(self) -> bool:
        """Whether anything stands out, as it is."""
        return self.shift.p <= self.shift.level or bool(self.plain.any())


@dataclass(frozen=True, eq=False)
class CheckedScores:
    """The rows with all that was seen of them; `withheld`: why the test of the set does not accuse if it rejects.

    Once it is concluded: the outcome, the power or why it was `unmeasured`, and `p`, `q` and `chosen` [documents in
    question] by name; where the answer is refused p and q are empty and nothing is chosen."""

    sides: Sides
    limits: DetectionLimits
    checks: tuple[Check, ...]
    outliers: Outliers
    withheld: str
    outcome: Outcome = "missed"
    p: Doubles = field(default_factory=lambda: np.zeros(0))
    q: Doubles = field(default_factory=lambda: np.zeros(0))
    chosen: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))
    power: Power | None = None
    unmeasured: str = ""

    @property
    def quiet(self) -> bool:
        """Whether nothing stands out and no check withholds an all-clear: then power decides."""
        return not self.outliers.rejects and not _refuse(self.checks)

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
    checks.append(_ask_placebo(sides, limits))
    asked, known = sides.by_document(sides.scores)
    shift, below = set_shift(asked, known, level=level, seed=sides.seed), compare_below(asked, known)
    unseen = unseen_drift(checks, sides.number, sides.known)
    found = outliers_at(shift, sides, limits.method, unseen, below.allowed(WIDE))
    # where their files name known documents
    first = np.unique(documents[~sides.asked], return_index=True)[1]
    in_order = known[np.argsort(first, kind="stable")]
    checks.append(spread_check(below, checks, fewest=min(sides.number, sides.known)))
    checks.append(runs_check(serial_p(in_order), documents=sides.known))
    why = ""
    if _refuse(checks):
        why = say("flag.withheld.refused")
    elif shift.p <= level:
        why = withheld(checks)
        if not why and not found.withstands:
            which = "drift" if shift.explained <= unseen else "spread"
            numbers = {"explained": shift.explained, "unseen": unseen, "spread": found.spread}
            why = say(f"flag.withheld.{which}", **numbers)
    # what stands out must do so without the drift and the spread that nobody could have seen
    left, plain = int(found.chosen.sum()), int(found.plain.sum())
    spread = f", and a spread of {found.spread:.2f}" if found.spread > 1 else ""
    told = {
        "taken": say("flag.drift.taken", unseen=unseen, spread=spread),
        "left": left,
        "of": f" of {plain:,}" if plain else "",
        "stands": "stands" if found.withstands else "does not stand",
    }
    good = (shift.p <= level and not why) or bool(left) if found.rejects else None
    figures = {"explained": shift.explained, "not excluded": unseen, "spread": found.spread}
    words = "words" if found.rejects else "quiet"
    checks.append(word_check("flag.drift", good, figures, words=words, **told))
    return CheckedScores(sides, limits, tuple(checks), found, why)


def _refuse(checks: Iterable[Check]) -> bool:
    return any(check.status == "failed" and check.name not in ACCUSING for check in checks)


def outliers_at(shift: SetShift, sides: Sides, method: Method, unseen: float, spread: float) -> Outliers:
    """What stands out by a test of the set, and what is left of it without a drift and a spread."""
    asked, known, fdr = shift.asked, shift.known, sides.settings.fdr
    plain = conformal.flagged(conformal.adjusted(sides.p_of(asked, known), method), fdr)
    chosen = plain
    if plain.any():
        ways = [remove_drift(asked, known, unseen, one) for one in {1.0, spread}]
        p = np.max([sides.p_of(moved, known) for moved in ways], axis=0)
        chosen = plain & conformal.flagged(conformal.adjusted(p, method), fdr)
    withstands = shift.p <= shift.level and all(
        shift.p_after(unseen, one) <= shift.level for one in (1.0, spread)
    )
    return Outliers(shift, unseen, spread, withstands, plain, chosen)


def concluded(
    found: CheckedScores, power: Power | None, share: Estimate | None, why: str = ""
) -> CheckedScores:
    """Conclude by the one rule, with the power and the `share` of documents like the planted ones, if measured."""
    outcome = conclude_outliers(found.outliers, found.checks, power, share)
    end = replace(found, outcome=outcome, power=power, unmeasured=why)
    if outcome == "refused":
        return replace(end, chosen=np.zeros(found.sides.number, dtype=bool))
    p = found.sides.p(found.sides.scores)
    q = conformal.adjusted(p, found.limits.method)
    return replace(end, p=p, q=q, chosen=found.outliers.chosen)


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


def _ask_placebo(sides: Sides, limits: DetectionLimits) -> Check:
    """The same flagging and test of the set, with the placebo's scores."""
    settings, values = sides.settings, sides.placebo
    if values is None:
        return word_check("flag.placebo", None, words="none")
    rate = min(settings.fdr, _PLACEBO_RATE)
    q = conformal.adjusted(sides.p(values), limits.method)
    number = int(conformal.flagged(q, rate).sum())
    blank = placebo_check(values, sides.asked, sides.documents, flagged=number, rate=rate, seed=sides.seed)
    if conformal.resolution(sides.known, sides.number, rate, limits.method).together is None:
        blank = replace(blank, words=f"{blank.words} {say('flag.placebo.vain')}")
    if blank.status == "not run":
        return blank
    p = set_shift(*sides.by_document(values), level=settings.level, seed=sides.seed).p
    beyond = bool(blank.figures[BEYOND]) or p <= settings.level
    words = f"{blank.words} {say('flag.placebo.whole', p=p)}"
    return replace(blank, words=words, figures={**blank.figures, "set p": p, BEYOND: beyond})
