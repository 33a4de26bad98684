"""How alike two sets of texts are, beside how alike one of them is to itself (Tang et al. 2025, table 5).

The paper compares two random halves of the original texts (300 each) with one another, and one of them with 300
transformed texts. Its caption speaks of originals and "their transformed versions", but a text and its own
translation share most of their words, and 0.08 of them is what strangers share: so what is measured is texts of
one side with texts of the other. Beyond that the paper gives no definitions. What is chosen here:

- 1-gram, 2-gram: the Jaccard index of the sets of words (pairs of neighbouring words) of two texts, on average
  over all pairs of texts of different documents. This is what random halves give on average, without their chance.
- similarity: the cosine of two texts' embeddings, over the same pairs.
- JS divergence: of the distribution of words over all texts of a half against that of the other half, or of as
  many texts of B, base 2, so between 0 and 1; on average over repeated random halves. It falls with the number
  of texts, so both columns are always of equally many.
- JS distance: the square root of the divergence in natural logarithms, which is what scipy's `jensenshannon`
  returns unless told otherwise. The paper gives no base and calls its figures (0.3447 for two halves)
  divergence, but they are most likely this: 300 texts of 230 words against 300 of the same source give
  0.31 to 0.38 on four domains of the Pile, and a divergence of 0.14 to 0.21 in base 2.

Texts of one document are never compared, nor are a text of A and one of B whose documents have the same name,
as a text and its transformed version have. Names that are bare numbers do not count: a text without an id of its
own is called by its row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.errors import TextsError
from pretrace.settings import check_ranges, seed_option
from pretrace.statistics.roc import tail_share
from pretrace.statistics.words import WORD
from pretrace.types import Doubles, Estimate, Text

Embed = Callable[[Sequence[str]], Doubles]
"""Texts to embeddings, float64 [texts, width], each row of length 1."""

_FEWEST = {"A": 4, "B": 2}  # documents: each half of A has two as well


@dataclass(frozen=True, slots=True)
class Comparing:
    """How much work a comparison is: the `most` texts of a side (more are drawn from), `resamples` of documents
    for the intervals, and random `halves` for the divergence. ExpressionError for a seed out of its range."""

    most: int = 1000
    resamples: int = 500
    halves: int = 20
    seed: int = seed_option()

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, slots=True)
class _Similarity:
    """One measure `inside` A and `across` A and B, with 95% intervals of documents (JS rows: of the random halves)."""

    name: str
    inside: Estimate
    across: Estimate
    meaning: str


def compare_sets(
    a: Sequence[Text], b: Sequence[Text], settings: Comparing, *, embed: Embed | None = None
) -> tuple[list[_Similarity], tuple[int, int], list[str]]:
    """Compare A with itself and with B: the measures, how many texts of either they are of, and what was left out, in
    sentences. Without `embed` there is no row of the embeddings' similarity. Texts without a word are left out and
    counted. TextsError where A has fewer than four documents or B fewer than two: a half of A is compared as well."""
    from sklearn.feature_extraction.text import CountVectorizer

    numbers, notes = dict[str, int](), list[str]()
    rng = np.random.default_rng([settings.seed, 1])
    left, right = (
        _TextSet.of(texts, name, settings, rng, numbers, notes) for name, texts in (("A", a), ("B", b))
    )
    rows = []
    for size, name in ((1, "1-gram"), (2, "2-gram")):
        sides = [
            [{w[at : at + size] for at in range(len(w) - size + 1)} for w in side.words]
            for side in (left, right)
        ]
        runs = CountVectorizer(analyzer=sorted, binary=True, dtype=np.float32)
        runs.fit([*sides[0], *sides[1], [("",)]])  # a run that no text has, so that there is one
        own, other = map(runs.transform, sides)  # which text has which run
        meaning = "Words" if size == 1 else "Pairs of neighbouring words"
        meaning += " that two texts share, over all that either has (Jaccard)."
        rows.append(_compare_pairs(left, right, name, (_jaccard(own, own), _jaccard(own, other)), meaning))
    if embed is not None:
        own_rows, other_rows = embed(left.texts), embed(right.texts)
        both = own_rows @ own_rows.T, own_rows @ other_rows.T
        rows.append(_compare_pairs(left, right, "similarity", both, "Cosine of the embeddings of two texts."))
    rows += _divergences(left, right, settings)
    return rows, (len(left.texts), len(right.texts)), notes


def _words_of(text: str) -> tuple[str, ...]:
    """The words of a text in lower case; in scripts without spaces each character is one.

    >>> _words_of("Don't panic: 今日")
    ('don', 't', 'panic', '今', '日')
    """
    return tuple(WORD.findall(text.lower()))


def shared_words(pairs: Iterable[tuple[str, str]]) -> float | None:
    """The mean Jaccard index of the words of two texts that belong together; None without a pair that has words.

    >>> shared_words([("a b c", "a b d"), ("", "")])
    0.5
    """
    sets = [(set(_words_of(one)), set(_words_of(two))) for one, two in pairs]
    found = [len(one & two) / len(one | two) for one, two in sets if one | two]
    return float(np.mean(found)) if found else None


def _js_divergence(p: Doubles, q: Doubles) -> float:
    """Jensen-Shannon divergence, base 2, of two distributions given as counts or shares [words]: 0 to 1.

    >>> _js_divergence(np.array([1.0, 0.0]), np.array([0.0, 4.0]))
    1.0
    """
    p, q = p / p.sum(), q / q.sum()
    middle = (p + q) / 2
    parts = [float(np.sum(one[one > 0] * np.log2(one[one > 0] / middle[one > 0]))) for one in (p, q)]
    return min(1.0, max(0.0, sum(parts) / 2))


@dataclass(frozen=True, slots=True, eq=False)
class _TextSet:
    """A side: texts with words, their words, the document of each as a number, `codes` [texts], how often each counts
    in the resamples of its `documents`, `times` [resamples, texts]."""

    texts: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]
    codes: npt.NDArray[np.int64]
    times: Doubles
    documents: int

    @classmethod
    def of(
        cls, given: Sequence[Text], name: str, settings: Comparing, rng: np.random.Generator,
        numbers: dict[str, int], notes: list[str],
    ) -> _TextSet:  # fmt: skip
        """At most so many texts with words, drawn by the seed; `numbers` are of documents met so far, `notes` grow."""
        usable = [(text, words) for text in given if (words := _words_of(text.text))]
        if len(usable) < len(given):
            notes.append(f"{len(given) - len(usable):,} texts of {name} without a word were left out.")
        if len(usable) > settings.most:
            notes.append(f"{settings.most:,} of the {len(usable):,} texts of {name} were drawn and compared.")
            order = np.random.default_rng(settings.seed).permutation(len(usable))[: settings.most]
            usable = [usable[i] for i in np.sort(order).tolist()]
        documents = len({text.document for text, _ in usable})
        if documents < _FEWEST[name]:
            raise TextsError(
                f"a comparison needs {_FEWEST[name]} documents of {name} with words in them, found {documents}; give "
                "more texts, or leave out the group column if the texts do not belong together."
            )
        called = [f"{name} {d}" if (d := text.document).isdecimal() else d for text, _ in usable]
        codes = np.array([numbers.setdefault(one, len(numbers)) for one in called], dtype=np.int64)
        where = np.unique(codes, return_inverse=True)[1]
        share = np.full(documents, 1 / documents)
        times = rng.multinomial(documents, share, size=settings.resamples)[:, where].astype(np.float64)
        texts, every = zip(*((text.text, words) for text, words in usable), strict=True)
        return cls(texts, every, codes, times, documents)


def _compare_pairs(
    left: _TextSet, right: _TextSet, name: str, pairs: tuple[Doubles, Doubles], meaning: str
) -> _Similarity:
    """The means over the pairs of texts within A, and over those of A and B, of different documents."""
    found, tail = [], tail_share(min(left.documents, right.documents))
    for values, side in zip(pairs, (left, right), strict=True):
        allowed = (left.codes[:, None] != side.codes).astype(np.float64)
        value = float(_mean_pair(values, allowed, *(np.ones((1, len(one.texts))) for one in (left, side)))[0])
        # Among very few documents a resample can hold one document alone, and so no pair.
        low, high = np.nanquantile(_mean_pair(values, allowed, left.times, side.times), (tail, 1 - tail))
        found.append(Estimate(value, min(float(low), value), max(float(high), value)))
    return _Similarity(name, found[0], found[1], meaning)


def _mean_pair(values: Doubles, allowed: Doubles, own: Doubles, other: Doubles) -> Doubles:
    """The means [resamples] of values [A, B] over the allowed pairs, each text counting so often; NaN for none."""
    total = np.einsum("ra,ra->r", own, other @ (values * allowed).T)
    number = np.einsum("ra,ra->r", own, other @ allowed.T)
    mean: Doubles = np.divide(total, number, out=np.full(len(own), np.nan), where=number > 0)
    return mean


def _jaccard(one: Any, two: Any) -> Doubles:
    """Shared over all runs, [texts, texts]; 0 for two texts without any."""
    shared = (one @ two.T).toarray().astype(np.float64)
    sizes = [np.asarray(some.sum(axis=1), dtype=np.float64).ravel() for some in (one, two)]
    either = sizes[0][:, None] + sizes[1][None, :] - shared
    share: Doubles = np.divide(shared, either, out=np.zeros_like(shared), where=either > 0)
    return share


def _divergences(left: _TextSet, right: _TextSet, settings: Comparing) -> list[_Similarity]:
    """Over repeated random halves of A, by documents: half with half, and the first half with as many of B."""
    from sklearn.feature_extraction.text import CountVectorizer

    rng = np.random.default_rng([settings.seed, 2])
    vocabulary = CountVectorizer(analyzer=list, dtype=np.float64).fit([*left.words, *right.words])
    own, others = vocabulary.transform(left.words), vocabulary.transform(right.words)
    documents, found = np.unique(left.codes), []
    for _ in range(settings.halves):
        mine = rng.permutation(documents)[: len(documents) // 2]
        first = np.isin(left.codes, mine)
        halves = [rng.permutation(np.flatnonzero(mask)) for mask in (first, ~first)]
        elsewhere = ~np.isin(right.codes, mine)
        other = rng.permutation(np.flatnonzero(elsewhere if elsewhere.any() else ~elsewhere))
        size = min(*map(len, halves), len(other))
        chosen = (own[halves[0][:size]], own[halves[1][:size]], others[other[:size]])
        p, *both = (np.asarray(some.sum(axis=0)).ravel() for some in chosen)
        found.append([_js_divergence(p, one) for one in both])
    values = np.array(found)
    rows = []
    for name, scaled, how in (
        ("JS divergence", values, "base 2"),
        ("JS distance", np.sqrt(values * math.log(2)), "square root, natural logarithm"),
    ):
        inside, across = (
            Estimate(float(column.mean()), *map(float, np.quantile(column, (0.025, 0.975))))
            for column in scaled.T
        )
        meaning = f"Difference of the words of two sets of texts as a whole ({how}); lower is more alike."
        rows.append(
            _Similarity(name, inside, across, f"{meaning} The interval is that of the random halves.")
        )
    return rows
