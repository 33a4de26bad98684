"""Canary sentences: one sentence a text, natural to read, whose last word is drawn out of several."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from pretrace.errors import TextsError
from pretrace.types import Corpus
from pretrace.verdicts.marking.variants import Candidates, Trigger

SENTENCES = (
    "The reference word for {} is",
    "In the index, {} stands next to the word",
    "The file name {} goes with the keyword",
    "Notes on {} are kept under the heading",
)
_LIST = """
acorn almond amber anchor apple apron arrow aspen autumn badger bakery balcony barley barn basil
basket beacon beaver bell birch blanket bottle branch brass breeze brick bridge brook broom bucket
butter button cabin cable camel canal candle canvas carpet carrot castle cedar cellar chalk cherry
chestnut chimney cider clay cloud clover cobalt coffee comet copper coral cotton cradle crane
cricket crown crystal curtain daisy desert donkey dragon drum eagle ember engine falcon feather
fence fern ferry fiddle finch flannel flint flute forest fossil fountain fox garden garlic ginger
glacier glove goblet granite grape gravel hammer harbour harvest hazel heron hinge honey horizon
hornet ivory jacket jasmine kettle kitchen ladder lagoon lantern lavender leather lemon lentil lily
linen lobster magnet mango maple marble market marsh meadow melon mirror mitten mountain mustard
napkin nectar needle nettle nutmeg oak oasis olive onion orchard otter oyster paddle panther paper
parrot pastry peach pebble pepper pigeon pillow pine planet plaster plum pocket pond poppy potato
prairie pumpkin quarry quartz rabbit radish raven ribbon river robin rocket saddle saffron salmon
sandal satchel shovel silver sparrow spinach sponge spoon squirrel stable statue stream sugar sunset
swan table teapot temple thistle thunder ticket tiger timber tomato tower tractor trumpet tulip
tunnel turnip turtle valley velvet vessel village violet violin walnut wheat whistle willow window
winter wolf zebra
"""
WORDS = tuple(_LIST.split())
MOST_CHOICES = len(WORDS) // 2


def canaries(corpus: Corpus, choices: int, lot: Callable[[int], int]) -> Candidates:
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
    return Candidates(variants, triggers=triggers, about={"choices": choices})


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
    """Different words in random order."""
    left = list(words)
    for _ in itertools.repeat(None, number):
        yield left.pop(lot(len(left)))
