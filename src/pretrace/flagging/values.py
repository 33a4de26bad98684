"""The scored texts of both sets, and one value for each of their documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pretrace.errors import TextsError
from pretrace.flagging.planning import FEWEST_KNOWN, Plan
from pretrace.flagging.settings import FlagSettings
from pretrace.statistics import conformal
from pretrace.statistics.documents import by_document
from pretrace.types import Bools, Doubles, Run


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
