"""Membership scores of the pieces on both sides: the features that the literature's procedures learn from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pretrace.auditing.sides import Sides
from pretrace.errors import TextsError
from pretrace.scoring.evidence import Progress
from pretrace.scoring.plan import Models, ScorePlan
from pretrace.types import Bools, Corpus, Doubles, Evidence, Features, Score, Text


def features(
    sides: Sides,
    models: Models,
    expressions: Sequence[str],
    *,
    cache: bool = True,
    progress: Progress | None = None,
) -> Features:
    """The scores of all pieces under `models`, each read by itself without what stands before it.

    Pieces that give a model nothing to predict, or that a score means nothing for, are left out, of pairs both.
    TextsError where none is left, or where a score means nothing for all of them.
    """
    texts = [piece.text for piece in (*sides.suspect, *sides.heldout)]
    numbered = tuple(Text(str(i), text) for i, text in enumerate(texts))
    plan = ScorePlan.parse(expressions)
    plan.check_texts(Corpus("the pieces of the audit", numbered))
    matrix = _matrix(numbered, models, plan, cache=cache, progress=progress)
    left, right = matrix[: len(sides.suspect)], matrix[len(sides.suspect) :]
    known, others = _finite(left), _finite(right)
    if sides.paired:
        known = others = np.asarray(known & others)
    if not known.any() or not others.any():
        raise TextsError("no piece of the texts gives the model anything to predict: take longer snippets.")
    mine = [piece for piece, good in zip(sides.suspect, known, strict=True) if good]
    theirs = [piece for piece, good in zip(sides.heldout, others, strict=True) if good]
    return Features(
        names=tuple(expressions),
        suspect=left[known],
        heldout=right[others],
        suspect_texts=tuple(piece.text for piece in mine),
        heldout_texts=tuple(piece.text for piece in theirs),
        suspect_documents=tuple(piece.document for piece in mine),
        heldout_documents=tuple(piece.document for piece in theirs),
        paired=sides.paired,
    )


def _finite(matrix: Doubles) -> Bools:
    return np.asarray(np.isfinite(matrix).all(axis=1))


def _matrix(
    texts: Sequence[Text],
    models: Models,
    plan: ScorePlan,
    *,
    cache: bool,
    progress: Progress | None,
) -> Doubles:
    """One row a text, one column a score; NaN where a text gives a model nothing to predict."""
    scores = plan.fit(models, cache=cache, progress=progress)
    with models.reader(scores.needs, cache=cache, progress=progress) as reader:
        return np.array([_row(one, list(scores.ready.values())) for one in reader.read(texts)])


def _row(evidence: Evidence, scores: Sequence[Score]) -> list[float]:
    if evidence.empty:
        return [float("nan")] * len(scores)
    return [score(evidence) for score in scores]
