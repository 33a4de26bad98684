"""From the scored rows of both sets to the outcome: the checks, the flags of documents, the test of the set.

What stands out must stand out beyond what nobody could have seen. From the value of every document in question is
taken the drift that the checks could not have excluded (`checks.unseen_drift`), and where the lower half of these
documents is wider than that of the known ones, their distance from the middle is divided by as much. Flags are of
documents that are flagged even so, and the test of the set accuses where it still rejects. The outcome is that of
`verdicts.outcome`, as for every other test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pretrace.backends.serving.address import called
from pretrace.statistics import conformal
from pretrace.statistics.conformal import Method
from pretrace.statistics.documents import Numbers
from pretrace.statistics.shift import SetShift, compare_below, remove_drift, serial_p, set_shift
from pretrace.types import Bools, Check, Doubles, Estimate, Outcome, Power, SetTest
from pretrace.verdicts.flag.checks import (
    WIDE,
    Read,
    no_placebo,
    placebo_check,
    row_checks,
    runs_check,
    spread_check,
    unseen_drift,
    with_set_test,
    withheld,
)
from pretrace.verdicts.flag.planning import DetectionLimits
from pretrace.verdicts.flag.sides import Sides
from pretrace.verdicts.outcome import ObservedFinding, conclude

_PLACEBO_RATE = 0.05
"""The highest rate a placebo is held to: by chance it flags anything in one check of twenty at most."""
_ABOVE = 0.05
"""The share of the known documents above the line at which asked ones are counted, to describe the set."""
DRIFT = "drift"
"""The name of the check that what was found is more than a drift that nobody could have seen."""
ACCUSING = ("spread", "runs", DRIFT)
"""Checks that withhold an accusation, and no all-clear: that is measured on the very texts."""
_DRIFT = "A drift that the checks could not see would not explain it"


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
    """The outcome and what it rests on. `p`, `q` and `chosen` [documents in question], by name, are those of each
    document; where the answer is refused p and q are empty and nothing is chosen. `advice` is what would help."""

    outcome: Outcome
    checks: tuple[Check, ...]
    set_test: SetTest
    p: Doubles
    q: Doubles
    chosen: Bools
    power: Power | None = None
    advice: tuple[str, ...] = ()

    @property
    def unseen(self) -> list[Check]:
        """The checks that could not be made, but for that of the drift."""
        return [check for check in self.checks if check.status == "not run" and check.name != DRIFT]

    def of_texts(self, place: Numbers) -> tuple[Doubles, Doubles]:
        """p and q of texts whose documents stand at these places; empty where the answer is refused."""
        return (self.p, self.q) if self.outcome == "refused" else (self.p[place], self.q[place])


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
    checks = (*checks, *_more_checks(sides, checks, asked, known))
    refused = any(check.status == "failed" and check.name not in ACCUSING for check in checks)
    explained, why = found.shift.explained, ""
    if refused:
        why = "a check says that the two sets differ by more than membership"
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
    found: CheckedScores, power: Power | None, share: Estimate | None, *, model: str, corpus: str
) -> FlagConclusion:
    """The outcome, by the one rule. `power` is what planting a tenth brought and `share` how many documents like the
    planted ones there can be; None where that was not measured."""
    sides, chosen = found.sides, found.outliers.chosen
    outcome, advice = conclude_standing(
        found.outliers, found.checks, power, share, model=model, corpus=corpus, unit=found.made.unit
    )
    p = sides.p(sides.rows.scores)
    q = conformal.adjusted(p, found.made.method)
    if outcome == "refused":
        p, q, chosen = np.zeros(0), np.zeros(0), np.zeros(len(chosen), dtype=bool)
    return FlagConclusion(outcome, found.checks, _set_test(found), p, q, chosen, power, advice)


def conclude_standing(  # noqa: PLR0913 (what the one rule takes)
    outliers: _Outliers,
    checks: Sequence[Check],
    power: Power | None,
    share: Estimate | None,
    *,
    model: str,
    corpus: str,
    unit: str,
) -> tuple[Outcome, tuple[str, ...]]:
    """The outcome of a flagging and what would help, from what stands out and the checks."""
    end = conclude(
        ObservedFinding(
            model=called(model),
            of=f"the {unit}s of {corpus}",
            level=outliers.shift.level,
            p=outliers.shift.p,
            effect=share,
            effect_unit=f"of the {unit}s",
            planted=power,
            accusing=ACCUSING,
            noun="flagging",
            unit=unit,
            rejected=outliers.rejects,
        ),
        checks,
    )
    withheld = bool(end.withheld) or outliers.rejects
    return _outcome(end.outcome, bool(outliers.chosen.any()), withheld=withheld), end.advice


def _outcome(outcome: Outcome, flagged: bool, *, withheld: bool) -> Outcome:
    if outcome == "consistent":
        return "flagged" if flagged else "set"
    if outcome == "nothing":
        return "none"
    return "refused" if withheld else "missed"


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
    if explained <= found.unseen:
        return (
            f"a drift of the score by {explained:.2f} standard deviations would explain it, and the checks could not "
            f"have excluded one of {found.unseen:.2f}"
        )
    return (
        f"the texts also lie {found.spread:.2f} times as far below the middle as the known ones, where training moves "
        "no text to; texts that vary so much more would explain it"
    )


def _drift_check(found: _Outliers, explained: float, counts: bool) -> Check:
    """Whether what stands out would do so without the drift and the spread that nobody could have seen."""
    cure = (
        "Name a model that never saw the texts: it reads with the same score, and can exclude smaller drifts. More "
        "documents on both sides help too. [--placebo]"
    )
    figures = {"explained": explained, "not excluded": found.unseen, "spread": found.spread}
    taken = f"a drift of {found.unseen:.2f} standard deviations of the score, which the checks could not have excluded"
    if found.spread > 1:
        taken += f", and a spread of {found.spread:.2f}"
    if not found.rejects:
        words = f"Nothing stands out, so nothing has to be explained. Else this would be taken off first: {taken}."
        return Check(DRIFT, _DRIFT, "not run", words, "", figures)
    left = int(found.chosen.sum())
    words = (
        f"From the texts was taken {taken}. Without it {left:,} documents are flagged"
        f"{f' of {int(found.plain.sum()):,}' if found.plain.any() else ''}, and the set as a whole "
        f"{'stands' if found.withstands else 'does not stand'} out."
    )
    return Check.of(DRIFT, _DRIFT, counts or bool(left), words, cure, figures)


def _checks(sides: Sides, made: DetectionLimits, read: Read) -> tuple[Check, ...]:
    settings, rows = sides.settings, sides.rows
    checks = row_checks(rows.lengths, rows.asked, rows.documents, read, seed=sides.seed)
    values = rows.placebo
    if values is None:
        return (*checks, no_placebo())
    rate = min(settings.fdr, _PLACEBO_RATE)
    q = conformal.adjusted(sides.p(values), made.method)
    number = int(conformal.flagged(q, rate).sum())
    blank = placebo_check(values, rows.asked, rows.documents, flagged=number, rate=rate, seed=sides.seed)
    able = conformal.resolution(sides.known, sides.number, rate, made.method).together
    if able is None:
        vain = (
            " With so few known documents nothing can be flagged at that rate, so an empty result of the placebo "
            "is no evidence."
        )
        blank = replace(blank, words=blank.words + vain)
    shift = set_shift(*sides.by_document(values), level=settings.level, seed=sides.seed)
    return (*checks, with_set_test(blank, shift.p, settings.level))


def _more_checks(
    sides: Sides, checks: Sequence[Check], asked: Doubles, known: Doubles
) -> tuple[Check, Check]:
    fewest = min(sides.number, sides.known)
    spread = spread_check(compare_below(asked, known), checks, fewest=fewest)
    return spread, runs_check(serial_p(sides.known_in_order), documents=sides.known)
