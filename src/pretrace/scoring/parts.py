"""Figures of columns that do not all have a value for every text: each rests on the texts that it has.

Columns with the same texts are measured together, under the same resamples. Where every column has every text,
there is one part, and all differences are paired over it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.baselines.classifiers import WIDENING
from pretrace.errors import TextsError
from pretrace.scoring.findings import BLIND
from pretrace.statistics.controls import PLACEBO, Division, survives
from pretrace.statistics.documents import Grouping, Groups
from pretrace.statistics.paired import usual_baseline
from pretrace.statistics.resampling import Bootstrap, Calls, Spread, group_bootstrap, paired_difference
from pretrace.statistics.roc import best_threshold, roc_curve
from pretrace.types import Bools, Doubles, Measured

Key = tuple[str, str]
"""A column's name and kind."""


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """What all columns are measured by: `members` and `groups` [texts], how thresholds are chosen, the draws."""

    members: Bools
    groups: npt.NDArray[np.str_] | npt.NDArray[np.int64]
    division: Division
    seed: int
    resamples: int


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Columns measured together on `texts`: `matrix` [texts, columns], in the order of `keys`."""

    keys: Sequence[Key]
    matrix: Doubles
    members: Bools
    calls: Calls
    bootstrap: Bootstrap
    documents: int
    """Documents of the scarcer class."""

    @property
    def auc(self) -> Spread:
        """The AUC of each column with its resamples."""
        return self.bootstrap.auc

    def row(self, key: Key) -> Measured:
        """The figures of a column; of a placebo also how far the score's AUC on the target exceeds it."""
        k, bootstrap = self.keys.index(key), self.bootstrap
        assert bootstrap.accuracy is not None  # thresholds were given
        row = Measured(
            name=key[0],
            kind=key[1],
            auc=bootstrap.auc.estimate(k),
            tpr=bootstrap.tpr.estimate(k),
            accuracy=bootstrap.accuracy.estimate(k),
            threshold=float(self.calls.thresholds[k]),
            curve=roc_curve(self.matrix[:, k], self.members),
            tpr_low=bootstrap.low_tpr.estimate(k) if bootstrap.low_tpr else None,
            texts=len(self.members),
        )
        if key[1] != PLACEBO:
            return row
        target = (key[0], "score")
        lead = paired_difference(bootstrap.auc, self.keys.index(target), k).estimate
        row = replace(row, lead=lead)
        return replace(row, survives=survives(self.row(target), row))


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The columns by the texts that they have. A column whose texts are all of one class has no part."""

    columns: Mapping[Key, Doubles]
    _found: dict[bytes, Part] = field(default_factory=dict)

    @property
    def resamples(self) -> int:
        """The fewest resamples that were made of any part; 0 without one."""
        return min((part.bootstrap.resamples for part in self._found.values()), default=0)

    def has(self, key: Key) -> bool:
        """Whether a column could be measured."""
        return self._texts(key).tobytes() in self._found

    def row(self, key: Key) -> Measured:
        """The figures of a column on the texts that it has."""
        return self._found[self._texts(key).tobytes()].row(key)

    def beside(self, first: Key, second: Key) -> tuple[Part | None, tuple[int, int]]:
        """The part with the texts that both columns have, and where the two stand in it; None where it could
        not be measured."""
        part = self._found.get((self._texts(first) & self._texts(second)).tobytes())
        return part, (part.keys.index(first), part.keys.index(second)) if part else (0, 0)

    def _texts(self, key: Key) -> Bools:
        name, kind = key
        texts = np.isfinite(self.columns[key])
        return texts & np.isfinite(self.columns[name, "score"]) if kind == PLACEBO else texts

    @classmethod
    def of(cls, columns: Mapping[Key, Doubles], scores: Sequence[str], by: Labelled) -> Parts:
        """Every column measured on its texts, together with what it is compared with: the score of a placebo,
        the usual baseline and the blind baselines beside a score. TextsError where no score can be measured."""
        made = cls(columns)
        wanted: dict[bytes, tuple[Bools, set[Key]]] = {}
        blind = [key for key in columns if key[1] == "blind"]
        first = [(usual_baseline(scores), "score")] if scores else []
        for key in columns:
            beside = {PLACEBO: [(key[0], "score")], "score": [*blind, *first]}.get(key[1], [])
            for others in ((), *((other,) for other in beside)):
                texts = made._texts(key)
                for other in others:
                    texts = texts & made._texts(other)
                wanted.setdefault(texts.tobytes(), (texts, set()))[1].update((key, *others))
        for name, (texts, keys) in wanted.items():
            if len(np.unique(by.members[texts])) == 2:
                made._found[name] = _measured([key for key in columns if key in keys], columns, texts, by)
        if scores and not any(made.has((name, "score")) for name in scores):
            raise TextsError("no score has values for both members and non-members: nothing can be measured.")
        return made


def _measured(keys: Sequence[Key], columns: Mapping[Key, Doubles], texts: Bools, by: Labelled) -> Part:
    matrix = np.empty((np.count_nonzero(texts), len(keys)))
    for place, key in enumerate(keys):  # one copy at a time
        matrix[:, place] = columns[key][texts]
    members = by.members[texts]
    groups: Groups = _named(by.groups[texts])
    division = by.division.within(texts, by.members)
    chosen = division.chosen
    thresholds = [best_threshold(column, members[chosen]) for column in matrix[chosen].T]
    calls = Calls(np.array(thresholds, dtype=np.float64), division.tested)
    bootstrap = group_bootstrap(
        matrix, members, groups=groups, calls=calls, seed=by.seed, resamples=by.resamples
    )
    bag = (BLIND, "blind")
    if (
        bag in keys
    ):  # a cross-fitted classifier varies more than its fixed predictions do: see crossfit.WIDENING
        bootstrap = bootstrap.widened(keys.index(bag), WIDENING)
    return Part(keys, matrix, members, calls, bootstrap, Grouping.of(groups, members).fewest)


def _named(groups: npt.NDArray[Any]) -> Groups:
    """Groups that have names as a list of these."""
    return groups if groups.dtype.kind == "i" else groups.tolist()
