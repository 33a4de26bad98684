"""Texts set aside for tuning and for reference, so that none of them, nor a cut of the same document, is scored."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pretrace.cache import text_key
from pretrace.errors import LeakError, TextsError
from pretrace.registry import require
from pretrace.results.wording import say
from pretrace.statistics.documents import grouped_split, link_documents
from pretrace.types import Corpus, Text


@dataclass(frozen=True, slots=True)
class CorpusParts:
    """A corpus divided by documents; `tuning` and `reference` are None where no share was asked for."""

    tuning: Corpus | None
    reference: Corpus | None
    test: Corpus


def set_aside(corpus: Corpus, *, tuning: float = 0.0, reference: float = 0.0, seed: int = 0) -> CorpusParts:
    """The corpus divided at random into texts to tune on, reference texts, and the texts left to score.

    The shares are of all texts, drawn by whole documents and evenly over members and non-members;
    documents that have a text in common go together (FSD appendix C.1 draws 30% and tunes on its
    non-members). ExpressionError where the shares leave nothing, TextsError where documents are too few.
    """
    for name, share in (("tune", tuning), ("reference", reference)):
        require(0 <= share < 1, f"the {name} share must be at least 0 and below 1, found {share}.")
    require(tuning + reference < 1, f"the tune and reference shares leave no text: {tuning} + {reference}.")
    rest, parts = list(corpus.texts), []
    left = 1.0
    for name, share, stream in (("tuning", tuning, 1), ("reference", reference, 2)):
        drawn: list[Text] = []
        if share:
            document = link_documents(rest)
            groups = [document[text.document] for text in rest]
            number = int(np.random.default_rng([seed, stream]).integers(1 << 31))
            taken = grouped_split(groups, share / left, number, [text.member for text in rest])
            drawn = [text for text, took in zip(rest, taken, strict=True) if took]
            if not drawn:
                told = {"number": len(set(groups)), "share": share / left}
                raise TextsError(say("scoring.few_documents", name=corpus.name, **told))
            rest = [text for text, took in zip(rest, taken, strict=True) if not took]
            left -= share
        parts.append(replace(corpus, name=f"{corpus.name} ({name})", texts=tuple(drawn)) if share else None)
    return CorpusParts(parts[0], parts[1], replace(corpus, texts=tuple(rest)))


def check_disjoint(corpus: Corpus, seen: frozenset[bytes], purpose: str, cure: str) -> None:
    """LeakError where a text of the corpus is among those `seen` (their `text_key`s)."""
    leaked = [text.id for text in corpus.texts if text_key(text.text) in seen]
    if leaked:
        told = {"number": len(leaked), "texts": len(corpus), "name": corpus.name, "first": repr(leaked[0])}
        raise LeakError(say("scoring.leak.found", purpose=purpose, cure=cure, **told))
