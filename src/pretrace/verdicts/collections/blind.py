"""Features of collections that need no model: does collection 0 stand apart from the others as text?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pretrace.baselines.classifiers import Words
from pretrace.baselines.text_features import SURFACE, surface_features
from pretrace.building.reading import days
from pretrace.errors import TextsError
from pretrace.statistics.ranks import joint_extremeness
from pretrace.types import Check, Doubles
from pretrace.verdicts.collections.gathering import Gathered

ALIKE = "alike"
_NAMES = {"log length": "mean log length", "zlib ratio": "zlib ratio", "type-token ratio": "type-token ratio"}
WORDS, DATE = "distance of words", "mean date"
_SAID = {
    "mean log length": "the length of its documents",
    "zlib ratio": "how repetitive its texts are",
    "type-token ratio": "how varied its words are",
    WORDS: "the words it uses",
    DATE: "its dates",
}


def blind_features(gathered: Gathered) -> dict[str, Doubles]:
    """Columns by name, one value a collection: mean log length, zlib ratio and type-token ratio of its documents, the
    distance of its words from those of all others, and its mean date (days since year 1) where dates were read.

    TextsError for a document without a date that can be read.
    """
    codes, units = gathered.codes, len(gathered.names)
    wholes = [one.whole for one in gathered.documents]
    table = surface_features(wholes)
    columns = {new: _means(table[:, SURFACE.index(old)], codes, units) for old, new in _NAMES.items()}
    columns[WORDS] = word_distances(wholes, codes, units)
    if any(one.dates for one in gathered.documents):
        columns[DATE] = _means(_days(gathered), codes, units)
    return columns


def word_distances(texts: Sequence[str], codes: np.ndarray, units: int) -> Doubles:
    """The cosine distance between the mean TF-IDF of each collection's texts and that of all other collections' means,
    [units]; 0 for all where no word occurs in two texts."""
    learnt = Words(texts).learnt
    if learnt is None or units < 2:
        return np.zeros(units)
    centres = np.stack(
        [np.asarray(learnt[np.flatnonzero(codes == unit)].mean(axis=0)).ravel() for unit in range(units)]
    )
    others = (centres.sum(axis=0) - centres) / (units - 1)
    sizes = np.linalg.norm(centres, axis=1) * np.linalg.norm(others, axis=1)
    near = np.divide((centres * others).sum(axis=1), sizes, out=np.zeros(units), where=sizes > 0)
    return np.asarray(1 - near)


def alike_check(columns: dict[str, Doubles], level: float) -> Check:
    """Whether collection 0 is not the odd one out in these features: one gate for all of them, by rank.

    It fails for 1 collection in 20 at a level of 5% where all are exchangeable, and withholds an accusation and an
    all-clear alike: a collection that stands apart as text may have a high mean, or a low one, for that reason.
    """
    names = tuple(columns)
    found = joint_extremeness(np.column_stack([columns[name] for name in names]))
    most = names[found.which]
    figures = {"p": found.p, **dict(zip(names, found.deviations.tolist(), strict=True))}
    if found.p > level:
        words = (
            f"By length, words and the like it is not the odd one out: of all collections a share of {found.p:.2g} "
            "lies at least as far from the middle."
        )
        return Check(ALIKE, _TITLE, "passed", words, figures=_finite(figures))
    words = (
        f"It stands apart from the others by {_SAID[most]} (p = {found.p:.2g}). So its result may have another reason "
        "than training, in either direction."
    )
    return Check(ALIKE, _TITLE, "failed", words, _CURE, _finite(figures))


_TITLE = "As texts, the collection is like the others"
_CURE = (
    "Choose control collections nearer to the suspect one: of the same site, kind, length and period. Do so by their "
    "texts alone, before another look at the model."
)


def _means(values: Doubles, codes: np.ndarray, units: int) -> Doubles:
    return np.array([values[codes == unit].mean() for unit in range(units)])


def _days(gathered: Gathered) -> Doubles:
    """The mean day of each document, counted from year 1."""
    made = []
    for one in gathered.documents:
        found = [days(date) for date in one.dates]
        if None in found:
            raise TextsError(
                f"a text of {one.name!r} in {gathered.names[one.collection]} has no date that can be read, such as "
                "2023-03-01: mend the column that --date-column names, or leave that option out."
            )
        spans = [(day.first.toordinal() + day.last.toordinal()) / 2 for day in found if day is not None]
        made.append(sum(spans) / len(spans))
    return np.array(made)


def _finite(figures: dict[str, float]) -> dict[str, float | None]:
    """Without the infinite deviations of features that do not vary."""
    return {name: value if np.isfinite(value) else None for name, value in figures.items()}
