"""The tables of a result: one row a collection, and one row a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pretrace.types import Backend, Doubles, Table
from pretrace.verdicts.collections.gathering import Gathered
from pretrace.verdicts.collections.material import BLIND
from pretrace.verdicts.collections.ranking import Ranked
from pretrace.verdicts.collections.values import Scored

COLLECTIONS, DOCUMENTS = "collections", "documents"


def tables(
    together: Gathered,
    scored: Scored,
    found: Ranked,
    features: Mapping[str, Doubles],
    references: Sequence[Backend],
) -> tuple[Table, Table]:
    """`collections` (name, role, documents, mean value, text features) and `documents` (collection, name, score,
    the predictors where there are any, value)."""
    roles = ("suspect", *["control"] * len(found.others))
    first = Table(
        COLLECTIONS,
        {
            "collection": together.names,
            "role": roles,
            "documents": scored.counted().astype(np.float64),
            "value": found.means,
            **features,
        },
    )
    names = [f"score of {one.name}" for one in references]
    if len(set(names)) < len(names):
        names = [f"{name} ({number})" for number, name in enumerate(names, 1)]
    predictors = (
        {}
        if scored.predictors is None
        else dict(zip((*names, *BLIND), scored.predictors.T.copy(), strict=True))
    )
    second = Table(
        DOCUMENTS,
        {
            "collection": tuple(together.names[one.collection] for one in together.documents),
            "document": tuple(one.name for one in together.documents),
            "score": scored.target,
            **predictors,
            "value": scored.values(),
        },
    )
    return first, second
