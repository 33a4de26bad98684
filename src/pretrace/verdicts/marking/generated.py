"""Variants that a model makes: paraphrases, or other choices of small words. What is not alike enough is dropped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from pretrace.types import Corpus, Instructed, Proposer, Sampling
from pretrace.verdicts.marking.variants import Candidates, collapsed

INSTRUCTION = (
    "Write the following text again in other words. Keep its meaning, all facts, names and numbers, its tone and its "
    "length. Answer with the new text alone.\n\n"
)
LENGTH_OF_WORDS, LENGTH_OF_REWRITING = 0.15, 0.5
"""How far the length of a variant may lie from that of the text, as a share, by what made it."""
LEVELS = 1.0
"""How far the reading level of a variant with other words may lie from that of the text, in school years."""
SPARE = 3
"""Variants asked of a model for each that is wanted, since some are dropped."""
_PARTS = re.compile(r"\w+|\W+")
_SENTENCE_ENDS = re.compile(r"[.!?…。！？]+")


def reading_level(text: str) -> float:
    """The automated readability index (Senter and Smith 1967), in school years: from characters a word and words a
    sentence; 0 for a text without words."""
    words = re.findall(r"\w+", text)
    if not words:
        return 0.0
    sentences = max(1, len(_SENTENCE_ENDS.findall(text)))
    return 4.71 * sum(map(len, words)) / len(words) + 0.5 * len(words) / sentences - 21.43


def alike(text: str, variant: str, *, length: float, levels: float | None = None) -> bool:
    """Whether a variant is about as long as the text and, where `levels` is given, as easy to read."""
    if abs(len(variant) - len(text)) > length * len(text):
        return False
    return levels is None or abs(reading_level(variant) - reading_level(text)) <= levels


def small_choices(text: str, proposed: str) -> str:
    """The text with those of the proposed changes that put one ordinary word in the place of another. Names, numbers,
    capitals, punctuation and white space stay."""
    old, new = _PARTS.findall(text), _PARTS.findall(proposed)
    made = list(old)
    for what, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "replace" and last - first == end - start:
            for place, word in zip(range(first, last), new[start:end], strict=True):
                if _ordinary(old[place]) and _ordinary(word):
                    made[place] = word
    return "".join(made)


def from_words(corpus: Corpus, proposer: Proposer, *, number: int, share: float, seed: int) -> Candidates:
    """Up to `number` variants of each text in which a share of the words is another one; the text is variant 0."""
    texts = [text.text for text in corpus.texts]
    made = proposer.propose(texts, number=SPARE * number, share=share, seed=seed)
    proposed = [[small_choices(text, one) for one in some] for text, some in zip(texts, made, strict=True)]
    about = {"proposer": dict(proposer.facts), "share": share, "seed": seed}
    return _kept(corpus, proposed, number, LENGTH_OF_WORDS, about, levels=LEVELS)


def from_rewriter(corpus: Corpus, rewriter: Instructed, *, number: int, seed: int) -> Candidates:
    """Up to `number` paraphrases of each text by a model that follows instructions; the text is variant 0."""
    texts = [text.text for text in corpus.texts]
    asked = [f"{INSTRUCTION}{text}" for text in texts]
    tokens = max(64, max(map(len, texts)) // 2)
    rounds = [
        rewriter.answers(asked, tokens=tokens, sampling=Sampling(), seed=seed + place)
        for place in range(number + 1 if number == 1 else SPARE * number // 2)
    ]
    proposed = [[some[i].text for some in rounds if some[i].ended] for i in range(len(texts))]
    about = {"rewriter": dict(rewriter.facts), "instruction": INSTRUCTION, "seed": seed}
    return _kept(corpus, proposed, number, LENGTH_OF_REWRITING, about)


def without_original(candidates: Candidates) -> Candidates:
    """The candidates without variant 0, the text as it was written; a text then needs two others."""
    left = {name: texts[1:] for name, texts in candidates.variants.items()}
    few = {
        name: "fewer than two variants beside the original" for name, some in left.items() if len(some) < 2
    }
    return Candidates(
        {name: some for name, some in left.items() if name not in few},
        {**candidates.reasons, **few},
        notes=candidates.notes,
        about={**candidates.about, "original": False},
    )


def _kept(
    corpus: Corpus,
    proposed: Sequence[Sequence[str]],
    number: int,
    length: float,
    about: dict[str, object],
    levels: float | None = None,
) -> Candidates:
    variants, reasons, dropped = {}, {}, 0
    for text, some in zip(corpus.texts, proposed, strict=True):
        kept = {collapsed(text.text): text.text}
        for one in some:
            if not collapsed(one) or not alike(text.text, one, length=length, levels=levels):
                dropped += 1
            else:
                kept.setdefault(collapsed(one), one)
        if len(kept) > 1:
            variants[text.id] = tuple(kept.values())[: number + 1]
        else:
            reasons[text.id] = (
                "the model gave no variant that is other than the text and alike in length and style"
            )
    asked = sum(map(len, proposed))
    notes = (
        f"{dropped:,} of {asked:,} proposed variants were dropped, since length or reading level was another.",
    )
    return Candidates(variants, reasons, notes=notes, about=about)


def _ordinary(word: str) -> bool:
    return len(word) > 1 and word.isalpha() and word.islower()
