"""The published procedures on models with known members, without and with the base as reference model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from benchmarks.audits.readings import OWN
from benchmarks.audits.samples import SNIPPET, Subject, blocks, counted
from benchmarks.experiments import Row
from pretrace.baselines.classifiers import classifiers
from pretrace.types import Doubles, Features, Pair, TextClassifier
from pretrace.verdicts.audit.data import expressions
from pretrace.verdicts.audit.procedures.original import original
from pretrace.verdicts.audit.procedures.post_hoc import paper, release

NONE = "none"


def literature_rows(subject: Subject) -> Iterator[Row]:
    """The published procedures on their features, without and with the base as reference model."""
    if "features" not in subject.arrays:
        return
    pairs, names = subject.domain.pairs["drawn"], expressions(True)
    true, generated = subject.arrays["features"].astype(np.float64)
    documents = subject.domain.documents(pairs)
    found = subject.by_document(np.zeros(len(pairs)))
    classifier = classifiers.make("words")
    whole = np.isfinite(true).all(axis=1) & np.isfinite(generated).all(axis=1)
    rng = np.random.default_rng(0)
    for kind, side in (("null", ~found.members), ("member", found.members)):
        order = rng.permutation(np.array(found.names)[side])
        sets = [order[i : i + 200] for i in blocks(len(order), 200)]
        for reference in (NONE, OWN):
            kept = [i for i, name in enumerate(names) if reference == OWN or name != "ref"]
            for procedure in ("paper", "original", "release"):
                p = []
                for some in sets:
                    rows = np.flatnonzero(whole & np.isin(documents, some))
                    features = _features(pairs, documents, (true, generated), rows, kept)
                    p.append(_asked(procedure, features, classifier))
                if p:
                    yield {
                        "procedure": procedure,
                        "design": procedure,
                        "placebo": reference,
                        "text": SNIPPET,
                        "kind": kind,
                    } | {"documents": 200, "controls": 0, **counted(p)}


def _features(
    pairs: Sequence[Pair],
    documents: npt.NDArray[np.str_],
    sides: tuple[Doubles, Doubles],
    rows: npt.NDArray[np.int64],
    kept: Sequence[int],
) -> Features:
    names = expressions(True)
    some = [pairs[i] for i in rows.tolist()]
    owners = tuple(documents[rows].tolist())
    return Features(
        names=tuple(names[i] for i in kept),
        suspect=sides[0][np.ix_(rows, kept)],
        heldout=sides[1][np.ix_(rows, kept)],
        suspect_texts=tuple(pair.true for pair in some),
        heldout_texts=tuple(pair.generated for pair in some),
        suspect_documents=owners,
        heldout_documents=owners,
    )


def _asked(procedure: str, features: Features, classifier: TextClassifier) -> float:
    if procedure == "original":
        return original(features, seed=0).p
    asked = paper if procedure == "paper" else release
    return asked(features, classifier=classifier, seed=0).p
