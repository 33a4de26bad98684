"""From the scored rows of both sets to the outcome: the checks, the flags of documents, the test of the set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pretrace.flagging.checks import Read, no_placebo, placebo_check, row_checks, with_set_test, withheld
from pretrace.flagging.prospect import Prospect
from pretrace.flagging.sides import Sides
from pretrace.statistics import conformal
from pretrace.statistics.documents import Numbers
from pretrace.statistics.shift import set_shift
from pretrace.types import Bools, Check, Doubles, FlagOutcome, SetTest

PLACEBO_RATE = 0.05
"""The highest rate a placebo is held to: by chance it flags anything in one check of twenty at most."""
ABOVE = 0.05
"""The share of the known documents above the line at which asked ones are counted, to describe the set."""


@dataclass(frozen=True, slots=True, eq=False)
class Conclusion:
    """The outcome and what it rests on. `p`, `q` and `chosen` [documents in question], by name, are those of each
    document; where the answer is refused p and q are empty and nothing is chosen."""

    outcome: FlagOutcome
    checks: tuple[Check, ...]
    set_test: SetTest
    p: Doubles
    q: Doubles
    chosen: Bools

    def of_texts(self, place: Numbers) -> tuple[Doubles, Doubles]:
        """p and q of texts whose documents stand at these places; empty where the answer is refused."""
        return (self.p, self.q) if self.outcome == "refused" else (self.p[place], self.q[place])


def concluded(sides: Sides, made: Prospect, read: Read) -> Conclusion:
    """What the rows say; `read` gives the texts of those that the check of the words looks at."""
    settings, rows = sides.settings, sides.rows
    checks = _checks(sides, made, read)
    test = _set_test(sides, checks)
    p = sides.p(rows.scores)
    q = conformal.adjusted(p, made.method)
    chosen = conformal.flagged(q, settings.fdr)
    outcome = _outcome(bool(chosen.any()), test, checks, made)
    if outcome == "refused":
        p, q, chosen = np.zeros(0), np.zeros(0), np.zeros(len(chosen), dtype=bool)
    return Conclusion(outcome, checks, test, p, q, chosen)


def _outcome(flagged: bool, test: SetTest, checks: Sequence[Check], made: Prospect) -> FlagOutcome:
    if _refused(checks):
        return "refused"
    if flagged:
        return "flagged"
    if test.withheld:
        return "refused"
    if test.rejects:
        return "set"
    return "coarse" if made.coarse(test.least) else "none"


def _refused(checks: Sequence[Check]) -> bool:
    return any(check.status == "failed" for check in checks)


def _set_test(sides: Sides, checks: Sequence[Check]) -> SetTest:
    """The test of the set; a rejection is withheld where a control speaks against it, and all where one failed."""
    level = sides.settings.level
    asked, known = sides.by_document(sides.rows.scores)
    found = set_shift(asked, known, level=level, seed=sides.settings.seed)
    above = int((conformal.p_values(asked, known) <= ABOVE * (1 + 1e-12)).sum())
    chance = int(ABOVE * (len(known) + 1) + 1e-9) / (len(known) + 1)
    why = ""
    if _refused(checks):
        why = "a check says that the two sets differ by more than membership"
    elif found.p <= level:
        why = withheld(checks)
    p = None if why else found.p
    return SetTest(p, level, above, chance * len(asked), found.least, found.permutations, why)


def _checks(sides: Sides, made: Prospect, read: Read) -> tuple[Check, ...]:
    settings, rows = sides.settings, sides.rows
    checks = row_checks(rows.lengths, rows.asked, rows.documents, read, seed=settings.seed)
    values = rows.placebo
    if values is None:
        return (*checks, no_placebo())
    rate = min(settings.fdr, PLACEBO_RATE)
    q = conformal.adjusted(sides.p(values), made.method)
    number = int(conformal.flagged(q, rate).sum())
    blank = placebo_check(values, rows.asked, rows.documents, flagged=number, rate=rate, seed=settings.seed)
    able = conformal.resolution(sides.known, sides.number, rate, made.method).together
    if able is None:
        vain = (
            " With so few known documents nothing can be flagged at that rate, so an empty result of the placebo "
            "is no evidence."
        )
        blank = replace(blank, words=blank.words + vain)
    shift = set_shift(*sides.by_document(values), seed=settings.seed)
    return (*checks, with_set_test(blank, shift.p, settings.level))
