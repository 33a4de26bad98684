"""Variants of texts: what each source gives, and what makes a variant one that can be published."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pretrace.corpora import Columns, open_corpus
from pretrace.errors import TextsError
from pretrace.types import Corpus


@dataclass(frozen=True, slots=True)
class Trigger:
    """The beginning of a sentence, and the words that may end it, one a variant."""

    prompt: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The variants of every text by its id, and the reason for each text that has none. `notes` say what was dropped,
    `about` how the variants were made, both for the record."""

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
    """The variants of the text `name`; TextsError for an empty one and for two that are equal as `collapsed` sees
    them."""
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


def from_columns(corpus: Corpus, names: Sequence[str]) -> Candidates:
    """Variants of the user's own, in further columns that were read into `Text.meta`; the text itself is variant 0."""
    made = {
        text.id: checked_variants(text.id, (text.text, *(text.meta[name] for name in names)))
        for text in corpus.texts
    }
    return Candidates(made, about={"columns": list(names)})


def from_texts(corpus: Corpus, sources: Sequence[str], columns: Columns) -> Candidates:
    """Variants of the user's own, in further files with the same ids; TextsError for a file with other ids."""
    files = [
        open_corpus(source, Columns(text=columns.text, id=columns.id, label="", group=""))
        for source in sources
    ]
    found = [_by_id(other, corpus, source) for other, source in zip(files, sources, strict=True)]
    made = {
        text.id: checked_variants(text.id, (text.text, *(other[text.id] for other in found)))
        for text in corpus.texts
    }
    return Candidates(made, about={"files": list(sources)})


def checked_texts(corpus: Corpus) -> Corpus:
    """The corpus; TextsError where it has no texts or one of them is empty."""
    if not corpus.texts:
        raise TextsError(f"{corpus.name} holds no texts: there is nothing to mark.")
    empty = next((text.id for text in corpus.texts if not collapsed(text.text)), None)
    if empty is not None:
        raise TextsError(f"the text {empty!r} of {corpus.name} is empty: leave it out.")
    return corpus


def _by_id(other: Corpus, corpus: Corpus, source: str) -> dict[str, str]:
    texts = {text.id: text.text for text in other.texts}
    missing = next((text.id for text in corpus.texts if text.id not in texts), None)
    strange = next((name for name in texts if name not in {text.id for text in corpus.texts}), None)
    if missing is not None or strange is not None:
        what = (
            f"no text {missing!r}"
            if missing is not None
            else f"a text {strange!r} that the first file has not"
        )
        raise TextsError(f"{source} has {what}: files of variants need the same ids.")
    return texts
