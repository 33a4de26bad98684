"""Published texts with their drafts, matched by id and gathered by document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pretrace.errors import TextsError
from pretrace.statistics.documents import linked
from pretrace.types import Corpus, Doubles, Skipped, Text
from pretrace.verdicts.record import listed

FEWEST = 6
"""Documents with a pair below which no test is made: with five, even all signs alike only just reach 3%."""
EQUAL = "the draft and the published version are equal"


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Published texts with their drafts, [pairs] each, and the document of every pair. `skipped` are the pairs that
    were left out, each with the reason."""

    ids: tuple[str, ...]
    published: tuple[str, ...]
    drafts: tuple[str, ...]
    documents: tuple[str, ...]
    skipped: tuple[Skipped, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def units(self) -> tuple[str, ...]:
        """The documents by name: what a test counts."""
        return tuple(sorted(set(self.documents)))

    @property
    def unit(self) -> str:
        """What a unit is called: a pair, or a document where some hold several pairs."""
        return "pair" if len(self.units) == len(self) else "document"

    def means(self, values: Doubles) -> Doubles:
        """The mean over the pairs of each document, [documents, …], of `values` [pairs, …]."""
        place = {name: i for i, name in enumerate(self.units)}
        codes: npt.NDArray[np.int64] = np.array([place[name] for name in self.documents], dtype=np.int64)
        sums = np.zeros((len(place), *values.shape[1:]))
        np.add.at(sums, codes, values)
        sizes = np.bincount(codes, minlength=len(place)).reshape(-1, *(1,) * (values.ndim - 1))
        return np.asarray(sums / sizes)

    def without(self, reasons: Mapping[int, str]) -> Pairs:
        """The pairs without those at the given places, which are noted as skipped; TextsError where fewer than 6
        documents are left."""
        left = [i for i in range(len(self)) if i not in reasons]
        gone = tuple(Skipped(self.ids[i], why, 0) for i, why in sorted(reasons.items()))

        def of(values: Sequence[str]) -> tuple[str, ...]:
            return tuple(values[i] for i in left)

        kept = Pairs(
            of(self.ids), of(self.published), of(self.drafts), of(self.documents), (*self.skipped, *gone)
        )
        if len(kept.units) < FEWEST:
            told = "; ".join(sorted({one.reason for one in kept.skipped}))
            raise TextsError(
                f"twins takes {FEWEST} {kept.unit}s or more with a draft that differs from the published version, "
                f"found {len(kept.units)}{f' ({len(kept.skipped)} pairs were left out: {told})' if told else ''}: "
                "give more pairs."
            )
        return kept


def drafts_in(corpus: Corpus, column: str) -> Corpus:
    """The drafts that stand in a further column of the published texts (`Columns.more`); TextsError where the texts
    were read without it."""
    if any(column not in text.meta for text in corpus.texts):
        raise TextsError(f"the texts were read without the column {column!r}, which holds the drafts.")
    texts = tuple(replace(text, text=text.meta[column]) for text in corpus.texts)
    return Corpus(f"{corpus.name}, {column}", texts, source=corpus.source)


def paired(published: Corpus, drafts: Corpus) -> Pairs:
    """The pairs, matched by id; equal ones are left out and noted.

    TextsError for an id that only one side has, an empty version, or fewer than 6 documents with a usable pair.
    """
    beside = {text.id: text for text in drafts.texts}
    _check_ids(published.texts, beside)
    for name, texts in (("published version", published.texts), ("draft", drafts.texts)):
        empty = [text.id for text in texts if not text.text.strip()]
        if empty:
            raise TextsError(
                f"{len(empty)} of {len(texts)} texts have an empty {name}: {listed(empty)}. Leave out texts "
                "without both versions."
            )
    owner = linked(published.texts)
    pairs = Pairs(
        tuple(text.id for text in published.texts),
        tuple(text.text for text in published.texts),
        tuple(beside[text.id].text for text in published.texts),
        tuple(owner[text.document] for text in published.texts),
    )
    both = zip(pairs.published, pairs.drafts, strict=True)
    return pairs.without({i: EQUAL for i, (one, other) in enumerate(both) if one.strip() == other.strip()})


def _check_ids(published: Sequence[Text], drafts: Mapping[str, Text]) -> None:
    alone = [text.id for text in published if text.id not in drafts]
    if alone:
        raise TextsError(
            f"{len(alone)} of {len(published)} published texts have no draft: {listed(alone)}. Give every draft the "
            "id of its published text."
        )
    known = {text.id for text in published}
    left = [name for name in drafts if name not in known]
    if left:
        raise TextsError(
            f"{len(left)} of {len(drafts)} drafts belong to no published text: {listed(left)}. Give every draft the "
            "id of its published text, or leave it out."
        )
