"""Checks of an audit: each looks for one mistake that would make the answer of the test wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pretrace.baselines.classifiers import WordFeatures
from pretrace.results.rounding import p_value as rounded_p
from pretrace.statistics.documents import FEW_DOCUMENTS
from pretrace.statistics.permutation import own_group, two_sample
from pretrace.types import Bools, Check, Design, Gap, Pair, Quality
from pretrace.verdicts.audit.designs import ALIKE, CLOSER, COMPARABLE, CONTROLS, differ, widest_gap
from pretrace.verdicts.audit.document_values import DocumentValues, reversed_p

STRICT = 0.01
"""The level of a control: it fails by chance in one audit of a hundred."""
_WIDEST_GAP = 0.70
"""The text-only AUC between true and generated texts above which a difference between them shows nothing, where there
are no control documents to show the effect of the generator's mistakes."""
COPIES = 0.2
KINDS = 0.05
"""The level of the test for groups of control documents: the price is an accusation in twenty, and at 1% a group of 15%
of the control documents is mostly not seen (docs/audit.md)."""
GROUPED = 500
"""Documents of a side that are put into groups, at most."""
MIXED = 0.20
"""The share of the control documents without which a rejection must stand, those that the model knows least: so many
of another kind are often not seen by the comparison of the texts (docs/audit.md)."""


def documents_check(found: DocumentValues) -> Check:
    """Whether there are enough documents."""
    title = f"At least {FEW_DOCUMENTS} documents"
    counts = {"suspect": len(found.documents), "heldout": len(found.heldout_documents)}
    fewest = counts["suspect"] if found.paired else min(counts.values())
    words = f"The test counts documents, and there are {counts['suspect']:,}"
    words += "." if found.paired else f" suspect and {counts['heldout']:,} control ones."
    cure = "Add documents: texts of one document (same group) count as one."
    return Check.of("documents", title, fewest >= FEW_DOCUMENTS, words, cure, counts)


def reverse_check(found: DocumentValues, *, seed: int) -> Check:
    """Whether the target knows the texts worse than expected, which training on them cannot explain."""
    title = "No difference in the opposite direction"
    p = reversed_p(found, seed=seed)
    words = (
        "Training on the texts can only make the target know them better than expected. That it knows them "
        f"worse was tested as well: p = {rounded_p(p)}."
    )
    cure = (
        "The two models, or the two sets of texts, differ by something besides training on these texts. Was the "
        "placebo trained on them? A closer placebo, or generated texts nearer to the true ones, would help."
    )
    return Check.of("reverse", title, p > STRICT, words, cure, {"p": p})


def mixture_check(left_out: int | None, found: DocumentValues) -> Check:
    """Whether the rejection would stand if a share of the control documents, those that the model knows least, were of
    another kind; `left_out` is how many of them it can do without, None where nothing was rejected."""
    title = "A few control documents of another kind would not explain the result"
    number = len(found.heldout_values)
    wanted = math.ceil(MIXED * number)
    figures = {"left_out": left_out, "wanted": wanted, "controls": number}
    if left_out is None:
        words = "The test did not reject, so there is no result that they could explain."
        return Check("mixture", title, "not run", words, "", figures)
    words = (
        f"The result stands without the {left_out:,} of {number:,} control documents that the model knows least "
        f"({left_out / number:.0%}). An accusation takes {wanted:,}: so many documents of another kind could be "
        "overlooked by the comparison of the texts."
    )
    cure = "Look at the control documents with the lowest values in documents.csv: are they of the same kind?"
    return Check.of("mixture", title, left_out >= wanted, words, f"{cure} {CLOSER}", figures)


def kinds_check(texts: Sequence[str], controls: Bools, *, seed: int, rejected: bool) -> Check:
    """Whether some control documents form a group of their own by their words, as documents of another kind do; `texts`
    are those of all documents."""
    title = "No group of documents is of control documents alone"
    if not rejected:
        words = "The test did not reject, so there is no result that documents of another kind could explain."
        return Check("kinds", title, "not run", words)
    features = WordFeatures(texts).learnt
    if features is None:
        return Check("kinds", title, "not run", "No word stands in two documents.")
    p, group = own_group((features @ features.T).toarray(), controls, seed=seed)
    inside, size = int((group & controls).sum()), int(group.sum())
    words = (
        f"All documents were put into groups by their words, without their sides. In the group that stands out most, "
        f"{inside:,} of {size:,} are control documents: p = {rounded_p(p)} that dealing out the sides gives as much."
    )
    cure = "Look at that group in the control documents: is it of another kind, source or subject?"
    figures = {"p": p, "group": size, "controls": inside}
    return Check.of("kinds", title, p > KINDS, words, f"{cure} {CLOSER}", figures)


def spread_check(found: DocumentValues, *, seed: int) -> Check:
    """Whether control documents vary more than suspect ones, as they do where some of them are of another kind:
    training on the suspect documents cannot explain that."""
    title = "Control documents vary no more than suspect documents"
    first, second = (
        np.abs(side - np.median(side)) for side in (found.heldout_values, found.values)
    )  # Brown and Forsythe 1974, as a permutation test
    p = two_sample(first, second, seed=seed)
    words = (
        "The distances of control documents from their median were compared with those of suspect documents from "
        f"theirs: p = {rounded_p(p)} that they are larger by chance."
    )
    return Check.of("spread", title, p > STRICT, words, CLOSER, {"p": p})


def no_control_documents() -> Check:
    """The check of an audit without control documents, which fails: a rejection is then no result."""
    title = "Control documents measure the bias of a model that never saw the texts"
    words = (
        "There are none. A model that knows a kind of text well finds true text likelier than generated text even "
        "where it never saw it. The size of this bias differs from one kind of text to another, and a margin that was "
        "measured on some kinds does not hold on others."
    )
    return Check("controls", title, "failed", words, CONTROLS.format(fewest=FEW_DOCUMENTS))


def gap_check(gaps: Sequence[Gap], why: str, design: Design) -> Check:
    """Whether the texts that are compared are alike enough for this design: `why` says how it was chosen. For suspect
    texts and control documents the rule that chose the design has decided, and only a procedure of the literature,
    which goes on without a design, can fail; for true and generated texts this check decides."""
    title = "The two sets of texts are alike as texts, as far as this design needs it"
    most = _WIDEST_GAP if design == "placebos" else ALIKE if design == "controls" else COMPARABLE
    widest = widest_gap(gaps, (most,))
    if widest is None:
        return Check("gap", title, "not run", "There are too few texts for a classifier to learn from.")
    figures: dict[str, Any] = {gap.classifier: [gap.auc.value, gap.auc.low, gap.auc.high] for gap in gaps}
    # Below 0.5 a cross-fitted classifier has found nothing: folds without signal lean to the wrong side.
    if design != "placebos":
        return Check.of("gap", title, not differ(widest, most), why, CLOSER, figures)
    words = (
        f"A classifier that never saw the model ({widest.classifier}) tells your texts from the generated ones with an "
        f"AUC of {widest.auc.value:.2f} [{widest.auc.low:.2f}, {widest.auc.high:.2f}]; 0.5 is chance; above "
        f"{_WIDEST_GAP:.2f} no other result is accepted."
    )
    cure = (
        "Give control documents. Or train the generator longer or on more of the texts, or take one that knows their "
        "language. [--heldout, --generator]"
    )
    return Check.of("gap", title, not differ(widest, most), words, cure, figures)


def copies_check(copied: float) -> Check:
    """Whether the generator repeated the true continuations."""
    title = "The generated texts are not copies"
    words = f"{copied:.0%} of the generated continuations are the true ones, word for word."
    cure = "The texts repeat themselves (boilerplate, licences, templates): leave those parts out, and audit the rest."
    return Check.of("copies", title, copied <= COPIES, words, cure, {"identical": copied})


# How close generated suffixes come to true ones: the same measures of both.
#
# Words are runs of letters and digits in lower case. Where the true suffixes have hardly any white space
# (Chinese, Thai, sequences of letters) single characters take the place of words.

Units = tuple[str, ...]

_SPACED = 0.05  # of the characters; English has 0.17, Finnish 0.11, Thai 0.03


@dataclass(frozen=True, slots=True)
class _Language:
    """What a text is counted in: `name` of the unit, and how many in a row make a copy."""

    name: str
    run: int
    split: Callable[[str], Units]


_WORDS = _Language("words", 8, lambda text: tuple(re.findall(r"\w+", text.lower())))
_CHARACTERS = _Language("characters", 24, lambda text: tuple("".join(text.lower().split())))


def pair_quality(pairs: Sequence[Pair], training: Sequence[str]) -> tuple[Quality, ...]:
    """Measures of the true and of the generated suffixes, side by side, each with what it says in a sentence.

    `training` are the texts the generator was tuned on. A measure is None where there is nothing to take it
    of, and for the true suffixes where it compares with them.
    """
    true, generated = [pair.true for pair in pairs], [pair.generated for pair in pairs]
    language = _language(true)
    own, other = [list(map(language.split, texts)) for texts in (true, generated)]
    return (
        *_lengths(true, generated, language),
        *_variety(own, other, language.name),
        *_shared(pairs, own, other, language.name),
        _copies(own, other, map(language.split, training), language),
        Quality(
            "empty",
            _mean(not text.strip() for text in true),
            _mean(not text.strip() for text in generated),
            "Share of suffixes of white space alone.",
        ),
    )


def examples(pairs: Sequence[Pair], number: int, seed: int) -> tuple[Pair, ...]:
    """So many of the pairs drawn at random, in their order, from as many documents as there are; all of them
    where there are fewer."""
    order = np.random.default_rng(seed).permutation(len(pairs)).tolist()
    seen: dict[str, int] = {}
    turns = {}
    for index in order:
        document = pairs[index].document
        turns[index] = seen[document] = seen.get(document, -1) + 1
    chosen = sorted(order, key=turns.__getitem__)[:number]  # stable: the first of every document first
    return tuple(pairs[index] for index in sorted(chosen))


def _language(texts: Sequence[str]) -> _Language:
    characters = sum(map(len, texts))
    spaces = sum(character.isspace() for text in texts for character in text)
    return _CHARACTERS if spaces < _SPACED * characters else _WORDS


def _lengths(true: Sequence[str], generated: Sequence[str], language: _Language) -> list[Quality]:
    """Characters, and words where words are what is counted."""
    counts: list[tuple[str, Callable[[str], Sequence[str]]]] = [("characters", str)]
    if language is _WORDS:
        counts.append((language.name, language.split))
    return [
        Quality(
            name,
            _mean(len(split(text)) for text in true),
            _mean(len(split(text)) for text in generated),
            f"Mean number of {name} in a suffix.",
        )
        for name, split in counts
    ]


def _variety(own: Sequence[Units], other: Sequence[Units], name: str) -> tuple[Quality, ...]:
    """How often a side says the same again, within a suffix and from one to another."""
    # More words repeat more of them: both sides of a pair are cut to the same number first.
    sizes = [min(len(a), len(b)) for a, b in zip(own, other, strict=True)]
    own_cut, other_cut = ([a[:n] for a, n in zip(side, sizes, strict=True)] for side in (own, other))
    return (
        Quality(
            "repetition",
            _repeated(own),
            _repeated(other),
            f"Share of runs of three {name} that stood in the same suffix before.",
        ),
        Quality(
            "distinct pairs",
            _distinct(own_cut, 2),
            _distinct(other_cut, 2),
            f"Different pairs of neighbouring {name} over all such pairs of all suffixes, taken from as many "
            f"{name} on both sides: low where the same phrases come again and again.",
        ),
        Quality(
            f"distinct {name}",
            _distinct(own_cut, 1),
            _distinct(other_cut, 1),
            f"Different {name} over all {name} of all suffixes, taken from as many {name} on both sides.",
        ),
    )


def _shared(
    pairs: Sequence[Pair], own: Sequence[Units], other: Sequence[Units], name: str
) -> tuple[Quality, ...]:
    """How much of the true suffix is in the generated one."""
    return (
        Quality(
            "overlap",
            None,
            _mean(_overlap(a, b) for a, b in zip(own, other, strict=True) if a or b),
            f"Mean share of the {name} of a true suffix and its generated one that stand in both: high where the "
            "generator knows, or easily guesses, what really follows.",
        ),
        Quality(
            "identical",
            None,
            _mean(pair.true.strip() == pair.generated.strip() for pair in pairs),
            "Share of generated suffixes that are the true one: such a pair tells nothing.",
        ),
    )


def _copies(
    own: Sequence[Units], other: Sequence[Units], training: Iterable[Units], language: _Language
) -> Quality:
    """Suffixes that share a long run with a training text."""
    # The few runs of the suffixes are held, the many of the training texts pass by.
    length, learnt = language.run, False
    wanted = {run for side in (own, other) for units in side for run in _runs(units, length)}
    found = set()
    for units in training:
        learnt = True
        found |= {run for run in _runs(units, length) if run in wanted}
    shares = [_mean(any(r in found for r in _runs(units, length)) for units in side) for side in (own, other)]
    return Quality(
        "copies",
        shares[0] if learnt else None,
        shares[1] if learnt else None,
        f"Share of suffixes with {length} {language.name} in a row that also stand in a text the generator learnt "
        "from: far above that of the true ones, it repeats what it learnt.",
    )


def _repeated(suffixes: Iterable[Units]) -> float | None:
    """1 - (different runs of three in a suffix) / (runs of three in it), both summed over the suffixes."""
    runs = [list(_runs(units, 3)) for units in suffixes]
    total = sum(map(len, runs))
    return 1 - sum(len(set(some)) for some in runs) / total if total else None


def _distinct(suffixes: Iterable[Units], length: int) -> float | None:
    """distinct-n (Li et al. 2016, "A diversity-promoting objective function"), over all the suffixes."""
    runs = [run for units in suffixes for run in _runs(units, length)]
    return len(set(runs)) / len(runs) if runs else None


def _overlap(one: Units, two: Units) -> float:
    """Jaccard: what both have over what either has."""
    left, right = set(one), set(two)
    return len(left & right) / len(left | right)


def _runs(units: Units, length: int) -> Iterator[Units]:
    return (units[at : at + length] for at in range(len(units) - length + 1))


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return float(np.mean(found)) if found else None
