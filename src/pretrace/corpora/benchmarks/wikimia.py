"""WikiMIA: beginnings of Wikipedia articles on events, in four lengths, and its two variants without dates."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pretrace.corpora.benchmarks.published import (
    Schema,
    carded,
    joined,
    kept,
    published,
    stem,
    tables,
)
from pretrace.corpora.benchmarks.timestamps import with_year, without_timestamps
from pretrace.corpora.opening import shown
from pretrace.errors import TextsError
from pretrace.registry import corpora, require
from pretrace.types import Card, Corpus, Text

HUB = "swj0419/WikiMIA"
LENGTHS = (32, 64, 128, 256)
SHORTEST_BEGINNING = 8
"""Words that more than must agree for two texts to be of one article; shorter texts only if they are the same."""

CARD = Card(
    title="WikiMIA",
    what="Beginnings of English Wikipedia articles on events, cut to 32, 64, 128 or 256 words. Members are articles on "
    "events before 2017, non-members articles on events after the models' data was collected (2023).",
    size="1,650 texts: 776 of 32 words, 542 of 64, 250 of 128, 82 of 256. The longer ones begin with the shorter ones "
    "of the same article.",
    licence="MIT, as stated on its page on the hub; the texts are Wikipedia's (CC BY-SA).",
    citation="Shi et al. 2024, Detecting Pretraining Data from Large Language Models (ICLR 2024, arXiv:2310.16789)",
    home=HUB,
    flaws=(
        "Members and non-members come from different years: a bag of words that never saw a model tells them apart "
        "with an AUC of 0.99 (Das et al. 2024), so a high AUC here says nothing on membership by itself.",
        "The years in the texts alone show the shift (FSD, table 11); the variants without time stamps soften it and "
        "change the probabilities of the words that follow (FSD, section 5).",
        "The lengths share their articles: splits that treat each length by itself put one article on both sides. "
        "Here all lengths of an article are one group.",
    ),
)
_END = ""  # no word is empty: the mark of a whole text among beginnings
_SCHEMA = Schema("WikiMIA", text="input")
_REWRITES: dict[str, tuple[Callable[[str], str], str]] = {
    "deletion": (without_timestamps, "Time stamps taken out of"),
    "replacement": (with_year, "Years of time stamps replaced by 2023 in"),
}


@corpora.add("wikimia")
def wikimia(
    length: int | None = None,
    variant: Literal["plain", "deletion", "replacement"] = "plain",
    path: str | None = None,
) -> Corpus:
    """Wikipedia on events before 2017 against events of 2023, 32 to 256 words (Shi et al. 2024).

    `length` is 32, 64, 128 or 256, None for all four together (as FSD does); texts of one article are one group
    across lengths. `variant` takes time stamps out or writes 2023 for their years (FSD, table 6). `path` is a
    file of `input` and `label`, or a folder of files whose names hold `length32` and so on, as on the hub. The id
    is LENGTH/ROW. Raises TextsError where the texts cannot be had, ExpressionError for another length.
    """
    require(
        length in (None, *LENGTHS), f"wikimia: length must be 32, 64, 128, 256 or None, found {length!r}."
    )
    lengths = LENGTHS if length is None else (length,)
    if path is None:
        parts = {str(n): published(f"{HUB}::WikiMIA_length{n}", _SCHEMA) for n in lengths}
    else:
        parts = _files(Path(path), lengths)
    corpus = _grouped(joined(parts, "wikimia", f"hub:{HUB}" if path is None else shown(Path(path))))
    absent = [str(n) for n in lengths if str(n) not in parts and "" not in parts]
    if absent:
        note = f"No texts of {' and '.join(absent)} words: no file here is named so."
        corpus = replace(corpus, notes=(*corpus.notes, note))
    return carded(_rewritten(corpus, variant), CARD, "wikimia")


def _files(path: Path, lengths: Sequence[int]) -> dict[str, Corpus]:
    """The tables of the lengths asked for, by length; a single file that names no length is taken for all."""
    files = tables(path)
    by_length: dict[int, Path] = {}
    for file in files:
        length = _length_of(file)
        if length is not None and by_length.setdefault(length, file) != file:
            raise TextsError(
                f"{shown(path)} holds more than one file with length{length} in its name, "
                f"{shown(by_length[length].relative_to(path))} and {shown(file.relative_to(path))}: put them into one."
            )
    if len(files) == 1 and _length_of(files[0]) is None:
        corpus = published(files[0], _SCHEMA)
        if len(lengths) > 1:
            return {"": corpus}
        (words,) = lengths
        return {str(words): kept(corpus, lambda text: len(text.text.split()) == words, f"{words} words")}
    found_here = {str(n): by_length[n] for n in lengths if n in by_length}
    if not found_here or (len(lengths) == 1 and len(found_here) < len(lengths)):
        wanted = " or ".join(f"length{n}" for n in lengths)
        names = ", ".join(shown(Path(file.name)) for file in files[:8])
        raise TextsError(
            f"{shown(path)} holds no file with {wanted} in its name, found {names}: rename or add it."
        )
    return {n: published(file, _SCHEMA) for n, file in found_here.items()}


def _length_of(file: Path) -> int | None:
    named = re.search(r"length_?(\d+)", stem(file), re.IGNORECASE)
    return int(named[1]) if named else None


def _grouped(corpus: Corpus) -> Corpus:
    """The corpus with one group an article: a text belongs to the shortest text that it begins with.

    Compared word by word; the last word of the shorter one is left aside, since it may be cut.
    """
    words = {text.id: tuple(text.text.split()) for text in corpus.texts}
    roots: dict[tuple[str, ...], str] = {}
    sizes: list[int] = []
    made: dict[str, str] = {}
    for text in sorted(corpus.texts, key=lambda text: len(words[text.id])):
        own = words[text.id]
        whole = (*own, _END)
        begun = (roots.get(own[:size]) for size in sizes)
        made[text.id] = roots.get(whole) or next(filter(None, begun), f"article {text.id}")
        roots.setdefault(whole, made[text.id])
        if len(own) > SHORTEST_BEGINNING:
            roots.setdefault(own[:-1], made[text.id])
            sizes += [len(own) - 1] if len(own) - 1 not in sizes else []
    return replace(corpus, texts=tuple(replace(text, group=made[text.id]) for text in corpus.texts))


def _rewritten(corpus: Corpus, variant: str) -> Corpus:
    if variant == "plain":
        return corpus
    rewrite, done = _REWRITES[variant]
    texts: list[Text] = [replace(text, text=rewrite(text.text)) for text in corpus.texts]
    changed = sum(new.text != old.text for new, old in zip(texts, corpus.texts, strict=True))
    note = f"{done} {changed} of {len(texts)} texts, by rule."
    empty = sum(not text.text.strip() for text in texts)
    notes = (note, f"{empty} of them were left empty.") if empty else (note,)
    return replace(corpus, texts=tuple(texts), notes=(*corpus.notes, *notes))
