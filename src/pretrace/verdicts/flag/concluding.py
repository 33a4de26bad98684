"""From the scored rows of both sets to the outcome: the checks, the flags of documents, the test of the set.

What stands out must stand out beyond what nobody could have seen. From the value of every document in question is
taken the drift that the checks could not have excluded (`checks.unseen_drift`), and where the lower half of these
documents is wider than that of the known ones, their distance from the middle is divided by as much. Flags are of
documents that are flagged even so, and the test of the set accuses where it still rejects. The outcome is that of
`verdicts.outcome`, as for every other test.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pretrace.errors import TextsError
from pretrace.statistics import conformal
from pretrace.statistics.conformal import Method
from pretrace.statistics.documents import Numbers, means
from pretrace.statistics.shift import SetShift, compare_below, remove_drift, serial_p, set_shift
from pretrace.types import Bools, Check, Doubles, Estimate, Outcome, Power, SetTest
from pretrace.verdicts.flag.checks import (
    WIDE,
    Read,
    placebo_check,
    row_checks,
    runs_check,
    spread_check,
    unseen_drift,
    with_set_test,
    withheld,
)
from pretrace.verdicts.flag.planning import FEWEST_KNOWN, DetectionLimits, FlagSettings
from pretrace.verdicts.outcome import ObservedFinding, conclude
from pretrace.verdicts.wording import say, word_check


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What is known of every scored text, [rows], those in question first: whether it is in question (`asked`), the
    number of its document in the order of the names, its score, that of the placebo where there is one, and its
    characters."""

    asked: Bools
    documents: Numbers
    scores: Doubles
    placebo: Doubles | None
    lengths: Doubles


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """The rows of both sets: `drawn` [rows] are those that make the value of their document; `number` documents are in
    question and `known` ones are known. `place` [texts in question] is the place of a text's document among those in
    question."""

    rows: Rows
    drawn: Bools
    place: Numbers
    number: int
    known: int
    settings: FlagSettings
    seed: int

    @classmethod
    def of(cls, rows: Rows, settings: FlagSettings, seed: int, reasons: Iterable[str]) -> Sides:
        """The rows looked over; TextsError where too few texts could be scored, for these `reasons`."""
        asked, documents = rows.asked, rows.documents
        known = len(np.unique(documents[~asked]))
        if not asked.any() or known < FEWEST_KNOWN:
            why = "; ".join(dict.fromkeys(reasons) or ("there were no others",))
            numbers = {"texts": asked.sum(), "known": known, "fewest": FEWEST_KNOWN}
            raise TextsError(say("flag.plan.unscored", why=why, **numbers))
        names, place = np.unique(documents[asked], return_inverse=True)
        drawn = conformal.drawn_pieces(documents, seed)
        return cls(rows, drawn, place, len(names), known, settings, seed)

    def by_document(self, values: Doubles) -> tuple[Doubles, Doubles]:
        """The values of the documents in question and of the known ones, each by name, from a score of all rows."""
        asked, documents = self.rows.asked, self.rows.documents
        mine, others = self.drawn & asked, self.drawn & ~asked
        return means(values[mine], documents[mine]), means(values[others], documents[others])

    def p(self, values: Doubles) -> Doubles:
        """The p-values of the documents in question, by name, from a score of all rows."""
        return self.p_of(*self.by_document(values))

    def p_of(self, asked: Doubles, known: Doubles) -> Doubles:
        """The p-values of documents in question from values of both sides, one a document."""
        return conformal.p_values(asked, known, randomised=self.settings.randomised, seed=self.seed)

    @property
    def known_in_order(self) -> Doubles:
        """The values of the known documents in the order in which their files first name them."""
        _, known = self.by_document(self.rows.scores)
        first = np.unique(self.rows.documents[~self.rows.asked], return_index=True)[1]
        return np.asarray(known[np.argsort(first, kind="stable")])


_PLACEBO_RATE = 0.05
"""The highest rate a placebo is held to: by chance it flags anything in one check of twenty at most."""
_ABOVE = 0.05
"""The share of the known documents above the line at which asked ones are counted, to describe the set."""
DRIFT = "drift"
"""The name of the check that what was found is more than a drift that nobody could have seen."""
ACCUSING = ("spread", "runs", DRIFT)
"""Checks that withhold an accusation, and no all-clear: that is measured on the very texts."""


@dataclass(frozen=True, slots=True, eq=False)
class _Outliers:
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


@dataclass(frozen=True, slots=True, eq=False)
class FlagConclusion:
    """The outcome of a flagging and what it rests on; `why` says why its power was not measured. `p`, `q` and `chosen`
    [documents in question], by name, are those of each document; where the answer is refused p and q are empty and
    nothing is chosen."""

    outcome: Outcome
    checks: tuple[Check, ...]
    set_test: SetTest
    p: Doubles
    q: Doubles
    chosen: Bools
    sides: Sides
    limits: DetectionLimits
    power: Power | None = None
    why: str = ""

    @property
    def unseen(self) -> list[Check]:
        """The checks that could not be made, but for that of the drift."""
        return [check for check in self.checks if check.status == "not run" and check.name != DRIFT]


@dataclass(frozen=True, slots=True, eq=False)
class CheckedScores:
    """The rows with all that was seen of them, before power and outcome: `counts` says that the test of the set
    accuses, and `why` why it does not where it rejects. `explained` is the drift that would explain it."""

    sides: Sides
    made: DetectionLimits
    checks: tuple[Check, ...]
    outliers: _Outliers
    explained: float
    counts: bool
    why: str

    @property
    def quiet(self) -> bool:
        """Whether nothing stands out and no check withholds an all-clear: then power decides."""
        failed = any(check.status == "failed" and check.name not in ACCUSING for check in self.checks)
        return not self.outliers.rejects and not failed


def run_checks(sides: Sides, made: DetectionLimits, read: Read) -> CheckedScores:
    """What the rows say; `read` gives the texts of those that the check of the words looks at."""
    rows = sides.rows
    checks = _checks(sides, made, read)
    asked, known = sides.by_document(rows.scores)
    found = find_outliers(sides, made, asked, known, unseen_drift(checks, sides.number, sides.known))
    fewest = min(sides.number, sides.known)
    spread = spread_check(compare_below(asked, known), checks, fewest=fewest)
    checks = (*checks, spread, runs_check(serial_p(sides.known_in_order), documents=sides.known))
    refused = any(check.status == "failed" and check.name not in ACCUSING for check in checks)
    explained, why = found.shift.explained, ""
    if refused:
        why = say("flag.withheld.refused")
    elif found.shift.p <= found.shift.level:
        why = withheld(checks) or ("" if found.withstands else _unexcluded(found, explained))
    counts = found.shift.p <= found.shift.level and not why
    checks = (*checks, _drift_check(found, explained, counts))
    return CheckedScores(sides, made, checks, found, explained, counts, why)


def find_outliers(
    sides: Sides, made: DetectionLimits, asked: Doubles, known: Doubles, unseen: float
) -> _Outliers:
    """What stands out of values of both sides, one a document, and what is left of it without a drift `unseen`."""
    settings = sides.settings
    shift = set_shift(asked, known, level=settings.level, seed=sides.seed)
    spread = compare_below(asked, known).allowed(WIDE)
    return outliers_at(shift, sides, made.method, unseen, spread)


def outliers_at(shift: SetShift, sides: Sides, method: Method, unseen: float, spread: float) -> _Outliers:
    """The same from a test of the set that was made."""
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
    return _Outliers(shift, unseen, spread, withstands, plain, chosen)


def concluded(
    found: CheckedScores, power: Power | None, share: Estimate | None, why: str = ""
) -> FlagConclusion:
    """Conclude by the one rule. `power` is what planting a tenth brought and `share` how many documents like the
    planted ones there can be; None where that was not measured."""
    sides, chosen = found.sides, found.outliers.chosen
    outcome = conclude_outliers(found.outliers, found.checks, power, share)
    p = sides.p(sides.rows.scores)
    q = conformal.adjusted(p, found.made.method)
    if outcome == "refused":
        p, q, chosen = np.zeros(0), np.zeros(0), np.zeros(len(chosen), dtype=bool)
    end = outcome, found.checks, _set_test(found), p, q, chosen
    return FlagConclusion(*end, sides, found.made, power, why)


def conclude_outliers(
    outliers: _Outliers, checks: Sequence[Check], power: Power | None, share: Estimate | None
) -> Outcome:
    """The outcome of a flagging, from what stands out and the checks."""
    shift = outliers.shift
    end = conclude(
        ObservedFinding(
            model="",
            of="",
            level=shift.level,
            p=shift.p,
            effect=share,
            planted=power,
            accusing=ACCUSING,
            rejected=outliers.rejects,
        ),
        checks,
    )
    if end.outcome == "consistent":
        return "flagged" if outliers.chosen.any() else "set"
    if end.outcome == "nothing":
        return "none"
    return "refused" if end.withheld or outliers.rejects else "missed"


def _set_test(found: CheckedScores) -> SetTest:
    """The test of the set as results hold it; without p where it is withheld."""
    shift, unseen = found.outliers.shift, found.outliers.unseen
    above = int((conformal.p_values(shift.asked, shift.known) <= _ABOVE * (1 + 1e-12)).sum())
    number = len(shift.known)
    chance = int(_ABOVE * (number + 1) + 1e-9) / (number + 1)
    return SetTest(
        p=None if found.why else shift.p,
        level=shift.level,
        above=above,
        expected=chance * len(shift.asked),
        least=shift.least,
        permutations=shift.permutations,
        withheld=found.why,
        explained=found.explained,
        unseen=unseen,
        spread=found.outliers.spread,
    )


def _unexcluded(found: _Outliers, explained: float) -> str:
    """Why a rejection does not count that an unseen difference would explain."""
    which = "drift" if explained <= found.unseen else "spread"
    return say(f"flag.withheld.{which}", explained=explained, unseen=found.unseen, spread=found.spread)


def _drift_check(found: _Outliers, explained: float, counts: bool) -> Check:
    """Check that what stands out would do so without the drift and the spread that nobody could have seen."""
    figures = {"explained": explained, "not excluded": found.unseen, "spread": found.spread}
    spread = f", and a spread of {found.spread:.2f}" if found.spread > 1 else ""
    taken = say("flag.drift.taken", unseen=found.unseen, spread=spread)
    if not found.rejects:
        return word_check("flag.drift", None, figures, words="quiet", taken=taken)
    left = int(found.chosen.sum())
    of = f" of {int(found.plain.sum()):,}" if found.plain.any() else ""
    stands = "stands" if found.withstands else "does not stand"
    good = counts or bool(left)
    return word_check("flag.drift", good, figures, taken=taken, left=left, of=of, stands=stands)


def _checks(sides: Sides, made: DetectionLimits, read: Read) -> tuple[Check, ...]:
    settings, rows = sides.settings, sides.rows
    checks = row_checks(rows.lengths, rows.asked, rows.documents, read, seed=sides.seed)
    values = rows.placebo
    if values is None:
        return (*checks, word_check("flag.placebo", None, words="none"))
    rate = min(settings.fdr, _PLACEBO_RATE)
    q = conformal.adjusted(sides.p(values), made.method)
    number = int(conformal.flagged(q, rate).sum())
    blank = placebo_check(values, rows.asked, rows.documents, flagged=number, rate=rate, seed=sides.seed)
    able = conformal.resolution(sides.known, sides.number, rate, made.method).together
    if able is None:
        blank = replace(blank, words=f"{blank.words} {say('flag.placebo.vain')}")
    shift = set_shift(*sides.by_document(values), level=settings.level, seed=sides.seed)
    return (*checks, with_set_test(blank, shift.p, settings.level))
