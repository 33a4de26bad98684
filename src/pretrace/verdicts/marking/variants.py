"""Variants of texts: what each source gives, and what makes a variant one that can be published."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from pretrace.corpora import Columns, open_corpus
from pretrace.errors import TextsError
from pretrace.types import Corpus, Instructed, Proposer, Sampling
from pretrace.verdicts.wording import say, sentences_of


@dataclass(frozen=True, slots=True)
class Trigger:
    """The beginning of a sentence, and the words that may end it, one a variant."""

    prompt: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VariantCandidates:
    """Variants by the id of a text, reasons for texts without any, and how they were made, for the record."""

    variants: Mapping[str, tuple[str, ...]]
    reasons: Mapping[str, str] = field(default_factory=dict)
    triggers: Mapping[str, Trigger] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)


def collapsed(text: str) -> str:
    """The text as cleaning may leave it: compatible characters made equal, invisible ones removed, and every run of
    white space one space. Two variants that differ in nothing else are one."""
    plain = unicodedata.normalize("NFKC", text)
    return " ".join("".join(c for c in plain if unicodedata.category(c) != "Cf").split())


def checked_variants(name: str, variants: Sequence[str]) -> tuple[str, ...]:
    """Check the variants of a text; TextsError for an empty one, and for two that `collapsed` makes equal."""
    seen: dict[str, int] = {}
    for place, text in enumerate(variants):
        plain = collapsed(text)
        if not plain:
            raise TextsError(
                f"the text {name!r} has an empty variant ({place}): give one, or leave the text out."
            )
        if plain in seen:
            raise TextsError(
                f"the text {name!r} has two variants that are equal ({seen[plain]} and {place}), apart from white "
                "space and invisible characters, which copying removes: change one, or leave the text out."
            )
        seen[plain] = place
    return tuple(variants)


def from_columns(corpus: Corpus, names: Sequence[str]) -> VariantCandidates:
    """Variants of the user's own, in further columns that were read into `Text.meta`; the text itself is variant 0."""
    others = [{text.id: text.meta[name] for text in corpus.texts} for name in names]
    return _own(corpus, others, {"columns": list(names)})


def from_texts(corpus: Corpus, sources: Sequence[str], columns: Columns) -> VariantCandidates:
    """Variants of the user's own, in further files with the same ids; TextsError for a file with other ids."""
    read = Columns(text=columns.text, id=columns.id, label="", group="")
    others = [_by_id(open_corpus(source, read), corpus, source) for source in sources]
    return _own(corpus, others, {"files": list(sources)})


def _own(corpus: Corpus, others: Sequence[Mapping[str, str]], about: Mapping[str, Any]) -> VariantCandidates:
    made = {text.id: (text.text, *(other[text.id] for other in others)) for text in corpus.texts}
    return VariantCandidates({name: checked_variants(name, some) for name, some in made.items()}, about=about)


def checked_texts(corpus: Corpus) -> Corpus:
    """The corpus; TextsError where it has no texts or one of them is empty."""
    if not corpus.texts:
        raise TextsError(f"{corpus.name} holds no texts: there is nothing to mark.")
    empty = next((text.id for text in corpus.texts if not collapsed(text.text)), None)
    if empty is not None:
        raise TextsError(f"the text {empty!r} of {corpus.name} is empty: leave it out.")
    return corpus


def _by_id(other: Corpus, corpus: Corpus, source: str) -> dict[str, str]:
    texts, first = {text.id: text.text for text in other.texts}, {text.id for text in corpus.texts}
    what = [f"no text {text.id!r}" for text in corpus.texts if text.id not in texts]
    what += [f"a text {name!r} that the first file has not" for name in texts if name not in first]
    if what:
        raise TextsError(f"{source} has {what[0]}: files of variants need the same ids.")
    return texts


# Canary sentences: one sentence a text, natural to read, whose last word is drawn out of several.


SENTENCES: tuple[str, ...] = tuple(sentences_of("canary.sentences"))
WORDS = tuple(say("canary.words").split())
MOST_CHOICES = len(WORDS) // 2


def canaries(corpus: Corpus, choices: int, lot: Callable[[int], int]) -> VariantCandidates:
    """For every text `choices` variants that differ in the last word of one added sentence. Sentence, names and words
    are drawn with `lot`; TextsError where there are more texts than names."""
    names = _names(len(corpus), lot)
    variants, triggers = {}, {}
    for text in corpus.texts:
        name = next(names)
        free = [word for word in WORDS if word not in name.split("-")]
        words = tuple(_drawn(free, choices, lot))
        prompt = SENTENCES[lot(len(SENTENCES))].format(name)
        gap = "\n\n" if "\n" in text.text.strip() else " "
        variants[text.id] = tuple(f"{text.text.rstrip()}{gap}{prompt} {word}." for word in words)
        triggers[text.id] = Trigger(prompt, words)
    return VariantCandidates(variants, triggers=triggers, about={"choices": choices})


def _names(number: int, lot: Callable[[int], int]) -> Iterator[str]:
    """So many names of two words, no two equal; of three words where those are too few."""
    size = 2 if number <= len(WORDS) * (len(WORDS) - 1) // 4 else 3
    if number > len(WORDS) ** 3 // 4:
        raise TextsError(f"--canary names {len(WORDS) ** 3 // 4:,} texts at most: mark in several runs.")
    seen: set[str] = set()
    while len(seen) < number:
        name = "-".join(_drawn(list(WORDS), size, lot))
        if name not in seen:
            seen.add(name)
            yield name


def _drawn(words: list[str], number: int, lot: Callable[[int], int]) -> Iterator[str]:
    left = list(words)
    for _ in itertools.repeat(None, number):
        yield left.pop(lot(len(left)))


# Variants that a model makes: paraphrases, or other choices of small words. What is not alike enough is dropped.


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
    """Take those of the proposed changes that put one ordinary word in the place of another."""
    old, new = _PARTS.findall(text), _PARTS.findall(proposed)
    made = list(old)
    for what, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "replace" and last - first == end - start:
            for place, word in zip(range(first, last), new[start:end], strict=True):
                if _ordinary(old[place]) and _ordinary(word):
                    made[place] = word
    return "".join(made)


def from_words(
    corpus: Corpus, proposer: Proposer, *, number: int, share: float, seed: int
) -> VariantCandidates:
    """Up to `number` variants of each text in which a share of the words is another one; the text is variant 0."""
    texts = [text.text for text in corpus.texts]
    made = proposer.propose(texts, number=SPARE * number, share=share, seed=seed)
    proposed = [[small_choices(text, one) for one in some] for text, some in zip(texts, made, strict=True)]
    about = {"proposer": dict(proposer.facts), "share": share, "seed": seed}
    return _kept(corpus, proposed, number, LENGTH_OF_WORDS, about, levels=LEVELS)


def from_rewriter(corpus: Corpus, rewriter: Instructed, *, number: int, seed: int) -> VariantCandidates:
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


def without_original(candidates: VariantCandidates) -> VariantCandidates:
    """The candidates without variant 0, the text as it was written; a text then needs two others."""
    left = {name: texts[1:] for name, texts in candidates.variants.items()}
    few = {
        name: "fewer than two variants beside the original" for name, some in left.items() if len(some) < 2
    }
    return VariantCandidates(
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
) -> VariantCandidates:
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
    return VariantCandidates(variants, reasons, notes=notes, about=about)


def _ordinary(word: str) -> bool:
    return len(word) > 1 and word.isalpha() and word.islower()
