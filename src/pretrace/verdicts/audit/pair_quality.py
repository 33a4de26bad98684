"""How close generated suffixes come to true ones: the same measures of both.

Words are runs of letters and digits in lower case. Where the true suffixes have hardly any white space
(Chinese, Thai, sequences of letters) single characters take the place of words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pretrace.types import Pair, Quality

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
