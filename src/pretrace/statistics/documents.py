"""Values and documents: pieces of one document are not independent, documents are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pretrace.errors import TextsError
from pretrace.types import Bools, Doubles, Text

Numbers = npt.NDArray[np.int64]
Labels = Sequence[bool | None] | Bools

MEMBERS, NONMEMBERS, UNLABELLED = 1, 2, 4
"""Bits of a group's kind: what labels its texts have. MEMBERS | NONMEMBERS is a group with both."""


def by_document(values: npt.ArrayLike, documents: Sequence[str]) -> tuple[tuple[str, ...], Doubles]:
    """The names of the documents, sorted, and the mean of each one's values, float64 [documents].

    `documents` names the document of each value. TextsError without values, with one that is not finite, or
    where the numbers do not agree.
    """
    found = checked(values, "means by document")
    if len(found) != len(documents):
        raise TextsError(f"wanted one document for each of {len(found):,} values, found {len(documents):,}.")
    grouping = Grouping.of(documents)
    sums = np.bincount(grouping.codes, weights=found, minlength=len(grouping))
    return tuple(sorted(set(documents))), sums / grouping.sizes


def checked(values: npt.ArrayLike, what: str, *, fewest: int = 1) -> Doubles:
    """The values as float64 [n]; TextsError where they are no list, too few, or one is not finite."""
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1:
        raise TextsError(f"wanted one value a document for {what}, found an array of shape {found.shape}.")
    if len(found) < fewest:
        raise TextsError(
            f"wanted values of {fewest} documents or more for {what}, found {len(found)}; give more documents."
        )
    odd = int(np.count_nonzero(~np.isfinite(found)))
    if odd:
        raise TextsError(f"wanted finite values for {what}, found {odd:,} of {len(found):,} NaN or infinite.")
    return found


def linked(texts: Sequence[Text]) -> dict[str, str]:
    """For each document the first, by name, of those it shares a text with, directly or through others.

    Texts that differ only in white space at their ends count as one; empty texts link nothing.
    """
    parent = {text.document: text.document for text in texts}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = name = parent[parent[name]]
        return name

    first: dict[str, str] = {}
    for text in texts:
        content = text.text.strip()
        if content:
            here, there = root(text.document), root(first.setdefault(content, text.document))
            parent[max(here, there)] = min(here, there)
    return {name: root(name) for name in parent}


def intraclass(values: npt.ArrayLike, documents: Sequence[str]) -> float:
    """The share of the variance of pieces that lies between documents, 0 … 1.

    From a one-way analysis of variance: (B - W) / (B + (m - 1) W), with B and W the mean squares between and
    within documents and m the mean number of pieces, corrected for unequal numbers (Donner 1986, section 2);
    0 where that is negative or no document has two pieces. A single document tells nothing of it, and
    counts as 1. TextsError without values, with one that is not finite or where the numbers do not agree.
    """
    names, means = by_document(values, documents)
    grouping = Grouping.of(documents)
    found = np.asarray(values, dtype=np.float64)
    pieces, number = len(found), len(names)
    if number == 1:
        return 1.0
    if pieces == number:
        return 0.0
    between = float(grouping.sizes @ (means - found.mean()) ** 2) / (number - 1)
    within = float(np.sum((found - means[grouping.codes]) ** 2)) / (pieces - number)
    size = (pieces - _spread(grouping.sizes.astype(np.float64))) / (number - 1)
    total = between + (size - 1) * within
    return max(0.0, (between - within) / total) if total > 0 else 0.0


def effective(values: npt.ArrayLike, documents: Sequence[str]) -> float:
    """How many independent pieces a mean over all these pieces is worth, 1 … pieces.

    Pieces over the design effect 1 + (m' - 1) r, with r the `intraclass` correlation and m' = Σ n² / Σ n for
    documents of n pieces (Kish 1965, section 5.4). Errors as there.
    """
    alike = intraclass(values, documents)
    sizes = Grouping.of(documents).sizes.astype(np.float64)
    return float(sizes.sum() / (1 + (_spread(sizes) - 1) * alike))


def _spread(sizes: Doubles) -> float:
    """The mean number of pieces in the document of a random piece."""
    return float(sizes @ sizes / sizes.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """Texts gathered into groups: `codes` [texts] is each text's group, numbered by sorted name; `sizes`
    [groups] counts texts; `kinds` [groups] says what labels a group's texts have, as bits."""

    codes: Numbers
    sizes: Numbers
    kinds: Numbers

    @classmethod
    def of(cls, groups: Sequence[str], labels: Labels | None = None) -> Grouping:
        """The grouping of the texts; without labels all groups are of one kind. TextsError without texts."""
        if not len(groups):
            raise TextsError("wanted texts to split or resample, found none; check the file and its columns.")
        number = {name: code for code, name in enumerate(sorted(set(groups)))}
        codes = np.fromiter((number[name] for name in groups), dtype=np.int64, count=len(groups))
        kinds = np.zeros(len(number), dtype=np.int64)
        np.bitwise_or.at(kinds, codes, _bits(labels, len(groups)))
        return cls(codes, np.bincount(codes, minlength=len(number)), kinds)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def strata(self) -> tuple[Numbers, ...]:
        """The groups of each kind that occurs: members alone, non-members alone, both, …"""
        return tuple(np.flatnonzero(self.kinds == kind) for kind in np.unique(self.kinds))

    def holding(self, bit: int) -> int:
        """How many groups hold at least one text of a label: MEMBERS or NONMEMBERS."""
        return int(np.count_nonzero(self.kinds & bit))


def _bits(labels: Labels | None, texts: int) -> Numbers:
    if labels is None:
        return np.full(texts, UNLABELLED, dtype=np.int64)
    if len(labels) != texts:
        raise TextsError(f"wanted one label for each of {texts} texts, found {len(labels)}.")
    bits = (UNLABELLED if label is None else MEMBERS if label else NONMEMBERS for label in labels)
    return np.fromiter(bits, dtype=np.int64, count=texts)
