"""What is to be seen in an upload before any test: columns, number, length and languages of texts, and more."""

from __future__ import annotations

import statistics
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pretrace.corpora import Columns, open_corpus
from pretrace.corpora.columns import USUAL
from pretrace.corpora.opening import choose_text, rows_of
from pretrace.corpora.reading import EveryColumn
from pretrace.errors import TextsError
from pretrace.plugins.serve.settings import Limits
from pretrace.plugins.serve.workspace import RequestError
from pretrace.results.wording import say
from pretrace.types import Situation
from pretrace.verdicts.advise import Names, look

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier


_LETTERS_READ = 2_000_000
"""Characters of all texts together that are looked at for their scripts."""
_SCRIPTS_SHOWN = 4
FIRST = 3
"""Texts of which the beginning is shown."""
_FIRST_READ, _FIRST_SHOWN = 2_000, 300


@dataclass(frozen=True, slots=True)
class UploadFacts:
    """What was seen in an upload. Lengths are in characters; `scripts` are shares of the letters by script,
    `languages` those of the texts by code, among `languages_of` texts that were looked at.
    `problem` says why nothing else could be seen, `columns` then what there is to choose from."""

    text_column: str = ""
    texts: int = 0
    documents: int = 0
    members: int = 0
    nonmembers: int = 0
    columns: tuple[str, ...] = ()
    shortest: int = 0
    median: int = 0
    longest: int = 0
    empty: int = 0
    duplicates: int = 0
    scripts: Mapping[str, float] = field(default_factory=dict)
    languages: Mapping[str, float] = field(default_factory=dict)
    languages_of: int = 0
    said: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    situation: Situation = field(default_factory=Situation)
    names: Names = field(default_factory=Names)
    problem: str = ""
    other_labels: bool = False
    first: tuple[str, ...] = ()
    guessed: bool = False
    """Whether a column called label says something else than membership, and must be left out. `first` are the
    beginnings of the first texts; `guessed` says that nobody named the column they stand in."""


def look_into(path: Path, name: str, text_column: str, limits: Limits) -> UploadFacts:
    """What is seen in a file or folder that a visitor calls `name`. A table without a text has a `problem`: choose a
    column. TextsError where nothing can be read, RequestError beyond the limits; other errors of a reader pass."""
    place = str(path)

    def plain(said: str) -> str:
        return said.replace(place, name)

    try:
        columns = _columns(path, limits)
        chosen, guessed = choose_text(place, Columns(text=text_column or None))
    except TextsError as error:
        raise TextsError(plain(str(error))) from error
    try:
        corpus, other = open_corpus(place, chosen), False
    except TextsError:
        try:
            corpus, other = open_corpus(place, replace(chosen, label="")), True
        except TextsError as error:
            if not {*columns} - {"text", "input", chosen.text}:  # no other column could be chosen
                raise TextsError(plain(str(error))) from error
            return UploadFacts(text_column=chosen.text or "", columns=columns, problem=plain(str(error)))
    texts = [text.text for text in corpus.texts]
    lengths = [len(text) for text in texts]
    told, (spoken, among) = look(place, chosen, corpus), languages(texts)
    return UploadFacts(
        text_column=chosen.text or "",
        texts=len(texts),
        documents=told.situation.documents,
        members=sum(text.member is True for text in corpus.texts),
        nonmembers=sum(text.member is False for text in corpus.texts),
        columns=columns,
        shortest=min(lengths),
        median=round(statistics.median(lengths)),
        longest=max(lengths),
        empty=sum(not text.strip() for text in texts),
        duplicates=len(texts) - len(set(texts)),
        scripts=scripts(texts),
        languages=spoken,
        languages_of=among,
        said=tuple(map(plain, told.said[1:])),
        notes=tuple(map(plain, corpus.notes)),
        situation=told.situation,
        names=told.names,
        first=tuple(" ".join(text[:_FIRST_READ].split())[:_FIRST_SHOWN] for text in texts[:FIRST]),
        other_labels=other,
        guessed=bool(guessed),
    )


def scripts(texts: Sequence[str]) -> dict[str, float]:
    """The share of each script among the letters of the first texts, the largest first.

    >>> scripts(["abc", "а1"])
    {'Latin': 0.75, 'Cyrillic': 0.25}
    """
    counted: Counter[str] = Counter()
    characters: Counter[str] = Counter()
    read = 0
    for text in texts:
        characters.update(text[: _LETTERS_READ - read])
        read += len(text)
        if read >= _LETTERS_READ:
            break
    for character, number in characters.items():
        if character.isalpha():
            counted[unicodedata.name(character, "other").split()[0].capitalize()] += number
    total = sum(counted.values())
    return {_SCRIPTS.get(name, name): n / total for name, n in counted.most_common(_SCRIPTS_SHOWN)}


_SCRIPTS = {"Cjk": "Chinese characters", "Hiragana": "Japanese (hiragana)", "Katakana": "Japanese (katakana)"}


def _columns(path: Path, limits: Limits) -> tuple[str, ...]:
    """The columns of a table's first row, none of documents; RequestError where it holds too much."""
    names: tuple[str, ...] = ()
    size = 0
    reading = EveryColumn(USUAL, str(path))
    for number, row in enumerate(rows_of(path, reading), start=1):
        if reading.kinds:  # a text a file: what it may hold was checked as it came
            return ()
        if number == 1 and {*row.fields} != {"text"}:
            names = tuple(row.fields)
            if len(names) > limits.columns or sum(map(len, names)) > limits.column_characters:
                found = {"columns": len(names), "characters": sum(map(len, names))}
                raise RequestError(say("serve.refused.columns", **found, limits=limits))
        size += sum(len(cell) for cell in row.fields.values() if isinstance(cell, str))
        if number > limits.texts or size > limits.expanded:
            most = f"{limits.texts:,} texts, or {limits.expanded:,} characters,"
            raise RequestError(say("serve.refused.too_large", most=most), 413)
    return names


# The languages of a collection, guessed text by text by py3langid, which needs no network and no second process.

_TEXTS_READ = 300
"""Texts that are looked at, spread evenly over the collection: about half a second of work."""
_CHARACTERS_READ = 1000
"""Characters of each text that are looked at."""
UNSPOKEN = {"und": "unknown", "zxx": "none (numbers, markup)"}
"""Codes that are no languages, with what a page says: it was not told, or there is none."""
_SURE = 0.5


def languages(texts: Sequence[str]) -> tuple[dict[str, float], int]:
    """The share of each language (ISO 639, or `UNSPOKEN`), the largest first, and how many texts were looked at."""
    step = max(1, -(-len(texts) // _TEXTS_READ))
    chosen = texts[::step]
    found = Counter(str(_identifier().classify(text[:_CHARACTERS_READ])[0]) for text in chosen)
    return {code: number / len(chosen) for code, number in found.most_common()}, len(chosen)


@cache
def _identifier() -> LanguageIdentifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True, min_confidence=_SURE)
