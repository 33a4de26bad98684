"""Which texts are one document, and values with their intervals, splits and folds by document: pieces of one are not
independent.

Groups are numbered by sorted name before anything is drawn, so a split depends on the seed and on which
texts there are, and not on the order of the rows.
"""

from __future__ import annotations

import heapq
import math
import tempfile
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.errors import TextsError
from pretrace.registry import require
from pretrace.types import Bools, Doubles, Estimate, Text

Numbers = npt.NDArray[np.int64]
Labels = Sequence[bool | None] | Bools
Groups = Sequence[str] | Numbers
"""The group of each text: its name, or a number in whose place it stands among the sorted names."""

FEW_DOCUMENTS = 20
"""Documents of a class or side below which intervals over documents are rough, and no audit gives a verdict."""
MEMBERS, NONMEMBERS, UNLABELLED = 1, 2, 4
"""Bits of a group's kind: what labels its texts have. MEMBERS | NONMEMBERS is a group with both."""
_DENSE = 8  # times as many numbers as texts


def by_document(values: npt.ArrayLike, documents: Sequence[str]) -> tuple[tuple[str, ...], Doubles]:
    """The names of the `documents` of values, sorted, and the mean of each one's values, float64 [documents].
    TextsError without values, with one that is not finite, or where the numbers do not agree."""
    return tuple(sorted(set(documents))), means(values, documents)


def means(values: npt.ArrayLike, groups: Groups) -> Doubles:
    """The mean of the values of each group, in their order, float64 [groups]; errors as in `by_document`."""
    found = check_values(values, "means by document")
    if len(found) != len(groups):
        raise TextsError(f"wanted one document for each of {len(found):,} values, found {len(groups):,}.")
    grouping = Grouping.of(groups)
    sums = np.bincount(grouping.codes, weights=found, minlength=len(grouping))
    return np.asarray(sums / grouping.sizes)


def check_values(values: npt.ArrayLike, what: str, *, fewest: int = 1) -> Doubles:
    """The values as float64 [n]; TextsError where they are no list, too few, or one is not finite."""
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1:
        raise TextsError(f"wanted one value a document for {what}, found an array of shape {found.shape}.")
    if len(found) < fewest:
        raise TextsError(f"wanted {fewest} documents or more for {what}, found {len(found)}; give more.")
    odd = int(np.count_nonzero(~np.isfinite(found)))
    if odd:
        raise TextsError(f"wanted finite values for {what}, found {odd:,} of {len(found):,} NaN or infinite.")
    return found


def check_kinds(texts: Sequence[str], labels: Bools) -> None:
    """Raise TextsError unless each text has a label and both labels occur."""
    if len(texts) != len(labels):
        raise TextsError(f"wanted one label for each of {len(texts)} texts, found {len(labels)}.")
    if labels.all() or not labels.any():
        raise TextsError(
            f"a classifier learns from two kinds of text, and all {len(texts)} are of one; give it both."
        )


def link_documents(texts: Sequence[Text]) -> dict[str, str]:
    """For each document the first, by name, of those it shares a text with, directly or through others. Texts that
    differ only in white space at their ends count as one; empty texts link nothing."""
    names = sorted({text.document for text in texts})
    numbers = {name: number for number, name in enumerate(names)}
    known = {"": 0}
    contents = [known.setdefault(text.text.strip(), len(known)) for text in texts]
    documents = np.array([numbers[text.document] for text in texts], dtype=np.int64)
    first = linked_numbers(np.array(contents, dtype=np.int64), documents, len(names))
    return {text.document: names[first[numbers[text.document]]] for text in texts}


def linked_numbers(contents: Numbers, documents: npt.NDArray[np.integer[Any]], number: int) -> Numbers:
    """`link_documents` for texts of which only a hash is known: for each of the `number` documents the least, by
    number, of those it shares a text with, [documents]. `contents` are the hashes [texts] of the texts without white
    space at their ends, 0 for an empty one; `documents` [texts] are numbers in the order of the names."""
    order = np.argsort(contents, kind="stable")
    hashes, theirs = contents[order], documents[order]
    same = (hashes[1:] == hashes[:-1]) & (hashes[1:] != 0) & (theirs[1:] != theirs[:-1])
    if not same.any():
        return np.arange(number)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones, ends = np.ones(int(same.sum()), dtype=np.int8), (theirs[:-1][same], theirs[1:][same])
    labels = connected_components(coo_array((ones, ends), shape=(number, number)), directed=False)[1]
    return np.asarray(np.unique(labels, return_index=True)[1][labels])


_SHINGLE = 8  # characters that are looked at together, white space not counted
BANDS, _HASHES = 32, 8
"""Bands of a sketch, and hashes a band."""
_SKETCHED = 20_000  # characters of a text that are read
_BLOCK = BANDS * 8 << 12  # bytes of the bands of some thousand texts
_SKETCH_SEED, _MULTIPLIER = 1, 0x9E3779B97F4A7C15


class Sketches:
    """Sketches of texts in order, which link those that are nearly the same: ten versions of one page, counted as ten,
    make sets stand out by chance. Texts are linked whose 8-character strings (white space and case not counted) are
    mostly the same. They lie in a temporary file that goes away with it, 8 bytes a text and band, of which one band at
    a time is kept.

    The sketches are MinHash (Broder 1997) by `rensa`: 256 hashes a text, in 32 bands of 8; two texts are linked where a
    band agrees. At a Jaccard index of 0.8 that is so for 99 pairs in 100, at 0.7 for 85, at 0.6 for 42, at 0.5 for 12
    and at 0.3 for 1 in 500.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as this)

    def add(self, text: str, *, alone: bool = True) -> None:
        """A text; it is compared with others only where it stands `alone`."""
        self._file.write(array("q", text_bands(text) if alone else [0] * BANDS))

    def band(self, number: int) -> Numbers:
        """One band of all texts, [texts]; 0 for a text that is compared with none."""
        self._file.seek(0)
        found = [np.zeros(0, dtype=np.int64)]
        while some := self._file.read(_BLOCK):
            found.append(np.frombuffer(some, dtype=np.int64)[number::BANDS].copy())
        return np.concatenate(found)

    def link(
        self, codes: npt.NDArray[np.integer[Any]], first: Numbers, sides: Sequence[slice | Bools]
    ) -> Numbers:
        """For each document the one that it is linked to, itself where to none: beyond `first` [documents], each with
        those of its side that say mostly the same. `codes` [texts] are the documents of the texts; a text is on one
        side."""
        linked = np.asarray(first, dtype=np.int64)
        for number in range(BANDS):
            hashes = self.band(number)
            for side in sides:
                rows = linked[codes[side]].astype(np.int64)
                linked = linked_numbers(hashes[side], rows, len(linked))[linked]
        return linked


def text_bands(text: str) -> list[int]:
    """The bands of a text, as 64-bit numbers that are never 0; all 0 for a text without a character."""
    from rensa import RMinHash

    if not text.strip():
        return [0] * BANDS
    squeezed = "".join(text[:_SKETCHED].lower().split()).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(squeezed, dtype=np.uint32).astype(np.uint64)
    size = max(1, len(codes) - _SHINGLE + 1)  # one shingle of the whole where it is shorter
    padded = np.concatenate([codes, np.zeros(max(0, _SHINGLE - len(codes)), dtype=np.uint64)])
    strings = np.full(size, _MULTIPLIER, dtype=np.uint64)
    for place in range(_SHINGLE):
        strings = (strings ^ padded[place : place + size]) * np.uint64(_MULTIPLIER)
        strings ^= strings >> np.uint64(29)
    strings = np.unique(strings)
    ends = np.array([0, len(strings)], dtype=np.uint64)
    made = RMinHash.digest_matrix_from_flat_token_hashes(
        strings, ends, num_perm=BANDS * _HASHES, seed=_SKETCH_SEED
    )
    hashes = np.array(made.to_rows()[0], dtype=np.uint64).reshape(BANDS, _HASHES)
    folded = np.full(BANDS, _MULTIPLIER, dtype=np.uint64)
    for column in hashes.T:
        folded = (folded ^ column) * np.uint64(0xBF58476D1CE4E5B9)
        folded ^= folded >> np.uint64(31)
    return [int(one) or 1 for one in folded.view(np.int64)]


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """Texts in groups: `codes` [texts] by sorted name, `sizes` [groups] in texts, `kinds` [groups]: bits of labels."""

    codes: Numbers
    sizes: Numbers
    kinds: Numbers

    @classmethod
    def of(cls, groups: Groups, labels: Labels | None = None) -> Grouping:
        """The grouping of the texts; without labels all groups are of one kind. TextsError without texts."""
        if not len(groups):
            raise TextsError("wanted texts to split or resample, found none; check the file and its columns.")
        codes = _numbered(groups)
        sizes = np.bincount(codes)
        kinds = np.zeros(len(sizes), dtype=np.int64)
        if labels is not None and len(labels) != len(groups):
            raise TextsError(f"wanted one label for each of {len(groups)} texts, found {len(labels)}.")
        bits: Any = UNLABELLED
        if isinstance(labels, np.ndarray) and labels.dtype == np.bool_:
            bits = np.where(labels, MEMBERS, NONMEMBERS)
        elif labels is not None:
            bits = [UNLABELLED if label is None else MEMBERS if label else NONMEMBERS for label in labels]
        np.bitwise_or.at(kinds, codes, bits)
        return cls(codes, sizes, kinds)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def strata(self) -> tuple[Numbers, ...]:
        """The groups of each kind that occurs: members alone, non-members alone, both, …"""
        return tuple(np.flatnonzero(self.kinds == kind) for kind in np.unique(self.kinds))

    def holding(self, bit: int) -> int:
        """How many groups hold at least one text of a label: MEMBERS or NONMEMBERS."""
        return int(np.count_nonzero(self.kinds & bit))

    @property
    def fewest(self) -> int:
        """How many groups hold texts of the scarcer label."""
        return min(self.holding(MEMBERS), self.holding(NONMEMBERS))


def grouped_split(groups: Groups, share: float, seed: int, labels: Labels | None = None) -> Bools:
    """Which texts a random draw of whole groups takes, about `share` of them; bool [texts]. With labels it is made
    apart among groups of members, of non-members and of both. Of two groups of a kind or more it takes at least
    one and leaves one; the only one of its kind is left. ExpressionError unless 0 < share < 1."""
    require(0 < share < 1, f"a split takes a share between 0 and 1 of the texts, found {share}.")
    grouping = Grouping.of(groups, labels)
    rng = np.random.default_rng(seed)
    taken = np.zeros(len(grouping), dtype=bool)
    for stratum in grouping.strata:
        order = rng.permutation(stratum)
        taken[_drawn(order, grouping.sizes[order], share)] = True
    return np.asarray(taken[grouping.codes])


def drawn_documents(documents: Groups, members: Labels, *, most: int, seed: int) -> Bools:
    """Which texts a random draw of whole documents takes, about `most` of them, evenly over the labels; all where they
    are no more."""
    if len(documents) <= most:
        return np.ones(len(documents), dtype=bool)
    return grouped_split(documents, most / len(documents), seed, members)


def grouped_folds(grouping: Grouping, folds: int, seed: int) -> Numbers:
    """The fold of each text, 0 … folds - 1, shape [texts]: groups whole, sizes and kinds spread evenly. Within each
    kind the groups are dealt in random order, large ones first, each to the fold that has the least of that kind so
    far."""
    rng = np.random.default_rng(seed)
    fold = np.zeros(len(grouping), dtype=np.int64)
    totals = [0] * folds
    for stratum in grouping.strata:
        order = rng.permutation(stratum)
        order = order[np.argsort(-grouping.sizes[order], kind="stable")]
        heap = [(0, totals[k], k) for k in range(folds)]
        heapq.heapify(heap)
        for group in order.tolist():
            load, _, k = heap[0]
            fold[group] = k
            size = int(grouping.sizes[group])
            totals[k] += size
            heapq.heapreplace(heap, (load + size, totals[k], k))
    return np.asarray(fold[grouping.codes])


def _drawn(order: Numbers, sizes: Numbers, share: float) -> Numbers:
    """The groups to take: going through them in order, each that brings the number of texts nearer."""
    target, took, picked = float(sizes.sum()) * share, 0, np.zeros(len(order), dtype=bool)
    if len(order) < 2:
        return order[:0]
    for place, size in enumerate(sizes.tolist()):
        if abs(took + size - target) < abs(took - target):
            took += size
            picked[place] = True
    if not picked.any():
        picked[np.argmin(sizes)] = True
    if picked.all():
        picked[-1] = False
    return np.asarray(order[picked])


def _numbered(groups: Groups) -> Numbers:
    """The number of each text's group among the sorted names, from 0, none left out."""
    if isinstance(groups, np.ndarray) and groups.dtype.kind == "i":
        if groups.min() >= 0 and groups.max() < _DENSE * len(groups):  # counted, which is faster than sorted
            there = np.bincount(groups) > 0
            return groups if there.all() else np.asarray((np.cumsum(there) - 1)[groups])
        return np.unique(groups, return_inverse=True)[1]
    number = {name: code for code, name in enumerate(sorted(set(groups)))}
    return np.fromiter((number[name] for name in groups), dtype=np.int64, count=len(groups))


def mean_interval(values: npt.ArrayLike) -> Estimate:
    """The mean of one value a document with Student's 95% interval; TextsError for fewer than two."""
    found = check_values(values, "an interval", fewest=2)
    error = math.sqrt(float(found.var(ddof=1)) / len(found))
    return _student(float(found.mean()), error, len(found) - 1)


def difference_interval(suspect: npt.ArrayLike, heldout: npt.ArrayLike) -> Estimate:
    """How far the mean of `suspect` is above that of `heldout`, with Welch's 95% interval. One value a document
    on either side; TextsError where a side has fewer than two."""
    first, second = (check_values(side, "an interval", fewest=2) for side in (suspect, heldout))
    shares = [np.float64(side.var(ddof=1) / len(side)) for side in (first, second)]
    error = math.sqrt(float(sum(shares)))
    freedom = satterthwaite(shares[0], shares[1], (len(first), len(second)))
    return _student(float(first.mean() - second.mean()), error, float(freedom))


def satterthwaite(first: npt.ArrayLike, second: npt.ArrayLike, sizes: tuple[int, int]) -> Doubles:
    """Degrees of freedom of Welch's t, from the variances of both means, any shape, and the numbers behind them."""
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    share = one / np.maximum(one + other, 1e-200)
    parts = share**2 / max(1, sizes[0] - 1) + (1 - share) ** 2 / max(1, sizes[1] - 1)
    return np.asarray(1 / parts)


def share_interval(hits: int, trials: int) -> Estimate:
    """The share of hits with its exact 95% interval (Clopper and Pearson 1934); ExpressionError without trials."""
    from scipy.special import betaincinv

    require(
        0 <= hits <= trials > 0,
        f"a share takes trials and no more hits than those, found {hits} of {trials}.",
    )
    low = float(betaincinv(hits, trials - hits + 1, 0.025)) if hits else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 0.975)) if hits < trials else 1.0
    return Estimate(hits / trials, low, high)


def score_interval(values: npt.ArrayLike) -> Estimate:
    """The mean of one value from 0 to 1 a document with Wilson's 95% score interval (1927). It is never empty,
    also where all documents are right. For values between 0 and 1 it is wider than need be, since those vary less than
    right and wrong. TextsError without a value."""
    found = check_values(values, "an interval", fewest=1)
    z2 = NormalDist().inv_cdf(0.975) ** 2
    number, share = len(found), float(np.clip(found.mean(), 0, 1))
    middle = (share + z2 / (2 * number)) / (1 + z2 / number)
    half = math.sqrt(z2 * share * (1 - share) / number + z2**2 / (4 * number**2)) / (1 + z2 / number)
    return Estimate(share, max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half)))


def score_difference(first: npt.ArrayLike, second: npt.ArrayLike) -> Estimate:
    """How far the first mean is above the second, one value from 0 to 1 a document, with Newcombe's 95% interval.

    Method 10 of Newcombe (1998, Statistics in Medicine 17): the score intervals of both, put together. In 4,000 draws
    of right and wrong each, with 5 to 200 documents a side, 95.0 to 97.5% of the intervals held the truth. TextsError
    where a side is empty.
    """
    one, other = (score_interval(side) for side in (first, second))
    value = one.value - other.value
    below = math.hypot(one.value - one.low, other.high - other.value)
    above = math.hypot(one.high - one.value, other.value - other.low)
    return Estimate(value, value - below, value + above)


def standardised(values: npt.ArrayLike, heldout: npt.ArrayLike | None = None) -> float | None:
    """The mean, or its distance from the mean of `heldout`, over the standard deviation between documents. With two
    sides the deviation is the root of the mean of both variances. None where it has no meaning: fewer than two
    documents on a side, or values that do not vary."""
    sides = [check_values(side, "a standardised effect") for side in (values, heldout) if side is not None]
    if min(map(len, sides)) < 2:
        return None
    deviation = math.sqrt(sum(float(side.var(ddof=1)) for side in sides) / len(sides))
    effect = float(sides[0].mean()) - (float(sides[1].mean()) if len(sides) == 2 else 0.0)
    largest = max(float(np.abs(side).max()) for side in sides)
    return effect / deviation if deviation > largest * 1e-12 else None


def _student(value: float, error: float, freedom: float) -> Estimate:
    from scipy.special import stdtrit  # heavy, and only needed once there is something to report

    half = float(stdtrit(freedom, 0.975)) * error
    return Estimate(value, value - half, value + half)
