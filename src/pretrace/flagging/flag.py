"""Score both sets, look whether they may be compared, flag documents and test the set as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.auditing.placebo import check_placebos
from pretrace.errors import TextsError
from pretrace.flagging import words
from pretrace.flagging.checks import no_placebo, placebo_check, set_checks, with_set_test, withheld
from pretrace.flagging.planning import FEWEST_KNOWN, KNOWN, TEXTS, FlagSettings, Plan, plan, replanned
from pretrace.scoring.detect import Options, detect
from pretrace.scoring.evidence import Progress, Silent
from pretrace.scoring.plan import Models
from pretrace.scoring.provenance import record_corpus
from pretrace.statistics import conformal
from pretrace.statistics.controls import placebos
from pretrace.statistics.documents import by_document
from pretrace.statistics.shift import set_shift
from pretrace.types import (
    Backend,
    Bools,
    Check,
    Corpus,
    Doubles,
    Flagged,
    FlagOutcome,
    Judged,
    Known,
    Run,
    SetTest,
)


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """The scored rows of both sets: `asked` are the texts in question, `drawn` those that make the value of their
    document; `number` documents are in question and `known` ones are known. `place` [texts in question] is the
    place of a text's document among those in question."""

    run: Run
    documents: tuple[str, ...]
    asked: Bools
    drawn: Bools
    place: npt.NDArray[np.int64]
    number: int
    known: int
    settings: FlagSettings

    @classmethod
    def of(cls, run: Run, made: Plan, settings: FlagSettings) -> Sides:
        """The rows of a run; TextsError where too few of them could be scored."""
        asked = np.array([member is None for member in run.members], dtype=bool)
        documents = tuple(made.documents[name] for name in run.ids)
        names = np.array(documents, dtype=object)
        known = len(set(names[~asked]))
        if not asked.any() or known < FEWEST_KNOWN:
            reasons = dict.fromkeys(one.reason for one in run.skipped) or ("there were no others",)
            raise TextsError(
                f"{asked.sum()} texts and {known} known documents could be scored, and flagging takes at least 1 "
                f"and {FEWEST_KNOWN}. Why others could not: {'; '.join(reasons)}."
            )
        order = {name: place for place, name in enumerate(sorted(set(names[asked])))}
        place = np.array([order[name] for name in names[asked]], dtype=np.int64)
        drawn = conformal.drawn_pieces(documents, settings.seed)
        return cls(run, documents, asked, drawn, place, len(order), known, settings)

    @property
    def values(self) -> Doubles:
        """The score of every row."""
        return np.asarray(self.run.matrix[:, 0])

    def by_document(self, values: Doubles) -> tuple[Doubles, Doubles]:
        """The values of the documents in question and of the known ones, each by name, from a score of all rows."""

        def of(rows: Bools) -> Doubles:
            names = [self.documents[row] for row in np.flatnonzero(rows).tolist()]
            return by_document(values[rows], names)[1]

        return of(self.drawn & self.asked), of(self.drawn & ~self.asked)

    def p(self, values: Doubles) -> Doubles:
        """The p-values of the documents in question, by name, from a score of all rows."""
        settings = self.settings
        return conformal.p_values(
            *self.by_document(values), randomised=settings.randomised, seed=settings.seed
        )

    def named(self, rows: Bools, side: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Ids and groups of some rows, as their file has them; a text without a group is its own."""
        return self._at(rows, self.run.ids, side), self._at(rows, self.run.groups, side)

    def documents_of(self, rows: Bools, side: str) -> tuple[str, ...]:
        """The documents of some rows; those that share a text are one, under the first name of them."""
        return self._at(rows, self.documents, side)

    @staticmethod
    def _at(rows: Bools, names: Sequence[str], side: str) -> tuple[str, ...]:
        return tuple(names[row].removeprefix(side) for row in np.flatnonzero(rows).tolist())


PLACEBO_RATE = 0.05
"""The highest rate a placebo is held to: by chance it flags anything in one check of twenty at most."""
ABOVE = 0.05
"""The share of the known documents above the line at which asked ones are counted, to describe the set."""


def flag(
    corpus: Corpus,
    known: Corpus,
    models: Models | Backend,
    settings: FlagSettings | None = None,
    *,
    progress: Progress | None = None,
) -> Flagged:
    """Which texts of `corpus` stand out from the known non-members by one score of the target, and whether all do.

    The outcome is "flagged" where a document is flagged, "set" where none is and the set as a whole stands out,
    "refused", without p-values, where a control tells the two sets apart, "coarse" where nothing was found and
    the known documents are too few for that to say anything, else "none". With a placebo in
    `models` the same is done with it, and it must find nothing. Raises what `plan` and `detect` raise, LeakError
    among it where a model was tuned on one of the texts.
    """
    settings = settings or FlagSettings()
    models = models if isinstance(models, Models) else Models(models)
    if models.placebo is not None:
        check_placebos(models.target, (models.placebo.target,))
    made = plan(corpus, known, settings)
    how = Options(cache=settings.cache, seed=settings.seed, progress=progress or Silent())
    run = detect(made.corpus, models, settings.plan, how)
    return flag_scored(run, made, settings, corpus=corpus, known=known, model=models.target.name)


def flag_scored(
    run: Run, made: Plan, settings: FlagSettings, *, corpus: Corpus, known: Corpus, model: str
) -> Flagged:
    """The same from scores that are there: `run` has the texts of `made.corpus`, both sets, and one score."""
    sides = Sides.of(run.complete, made, settings)
    made = replanned(made, sides.known, sides.number, settings)
    return _concluded(sides, made, corpus=corpus, known=known, model=model)


def _concluded(sides: Sides, made: Plan, *, corpus: Corpus, known: Corpus, model: str) -> Flagged:
    """The flagging as it is written down, once the controls have been looked at."""
    run, settings, checks = sides.run, sides.settings, _checks(sides, made)
    test = _set_test(sides, checks)
    texts = _judged(sides, made, refused=_refused(checks))
    outcome = _outcome(texts, test, checks, made)
    if outcome == "refused":
        texts = _judged(sides, made, refused=True)
    found = Flagged(
        corpus=corpus.name,
        nonmembers=known.name,
        model=model,
        score=run.scores[0],
        fdr=settings.fdr,
        method=made.method,
        outcome=outcome,
        statement="",
        texts=texts,
        known=_known(sides),
        checks=checks,
        notes=made.notes,
        skipped=tuple(replace(one, id=one.id.removeprefix(TEXTS)) for one in run.skipped),
        settings=_record(corpus, known, run, settings),
        set_test=test,
    )
    said = words.said(found, made)
    return replace(found, statement=said.statement, reasons=said.reasons, advice=said.advice)


def _outcome(texts: Judged, test: SetTest, checks: Sequence[Check], made: Plan) -> FlagOutcome:
    if _refused(checks):
        return "refused"
    if any(texts.flagged):
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
    asked, known = sides.by_document(sides.values)
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


def _judged(sides: Sides, made: Plan, *, refused: bool) -> Judged:
    """The texts in question; without p-values and flags where the answer is refused."""
    p = sides.p(sides.values)
    q = conformal.adjusted(p, made.method)
    chosen = conformal.flagged(q, sides.settings.fdr) & (not refused)
    rows, place = sides.asked, sides.place
    p, q = (np.zeros(0), np.zeros(0)) if refused else (p[place], q[place])
    return Judged(
        *sides.named(rows, TEXTS),
        sides.values[rows],
        p,
        q,
        tuple(chosen[place].tolist()),
        sides.documents_of(rows, TEXTS),
        tuple(sides.drawn[rows].tolist()),
    )


def _known(sides: Sides) -> Known:
    rows = ~sides.asked
    drawn = tuple(sides.drawn[rows].tolist())
    return Known(*sides.named(rows, KNOWN), sides.values[rows], drawn, sides.documents_of(rows, KNOWN))


def _checks(sides: Sides, made: Plan) -> tuple[Check, ...]:
    settings = sides.settings
    content = {text.id: text.text for text in made.corpus.texts}
    texts = [content[name] for name in sides.run.ids]
    checks = set_checks(texts, sides.asked, sides.documents, seed=settings.seed)
    found = placebos(sides.run)
    if not found:
        return (*checks, no_placebo())
    (values,) = found.values()
    rate = min(settings.fdr, PLACEBO_RATE)
    q = conformal.adjusted(sides.p(values), made.method)
    number = int(conformal.flagged(q, rate).sum())
    blank = placebo_check(values, sides.asked, sides.documents, flagged=number, rate=rate, seed=settings.seed)
    able = conformal.resolution(sides.known, sides.number, rate, made.method).together
    if able is None:
        vain = (
            " With so few known documents nothing can be flagged at that rate, so an empty result of the placebo "
            "is no evidence."
        )
        blank = replace(blank, words=blank.words + vain)
    shift = set_shift(*sides.by_document(values), seed=settings.seed)
    return (*checks, with_set_test(blank, shift.p, settings.level))


def _record(corpus: Corpus, known: Corpus, run: Run, settings: FlagSettings) -> dict[str, Any]:
    """Everything needed to do it again: of the run's record, with the two sets each by itself."""
    rest = {name: value for name, value in run.settings.items() if name not in ("texts", "seed")}
    asked = {name: value for name, value in asdict(settings).items() if name not in ("cache", "plan")}
    return {**asked, "texts": record_corpus(corpus), "nonmembers": record_corpus(known), **rest}
