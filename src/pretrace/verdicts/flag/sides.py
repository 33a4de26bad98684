"""The scored rows of both sets as arrays, and the values of documents that every figure of a flagging rests on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pretrace.errors import TextsError
from pretrace.statistics import conformal
from pretrace.statistics.documents import Numbers, means
from pretrace.types import Bools, Doubles
from pretrace.verdicts.flag.planning import FEWEST_KNOWN, FlagSettings


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What is known of every scored text, [rows]: whether it is in question (`asked`), the number of its document in
    the order of the names, its score, that of the placebo where there is one, and its characters."""

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
            why = dict.fromkeys(reasons) or ("there were no others",)
            raise TextsError(
                f"{asked.sum()} texts and {known} known documents could be scored, and flagging takes at least 1 "
                f"and {FEWEST_KNOWN}. Why others could not: {'; '.join(why)}."
            )
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
