"""From corpora to collections of as many documents each, treated alike whichever is the suspect one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pretrace.cache.location import text_key
from pretrace.errors import TextsError
from pretrace.statistics.documents import linked
from pretrace.statistics.ranks import fewest_others
from pretrace.types import Corpus, Skipped
from pretrace.verdicts.collections.settings import FEWEST_DOCUMENTS, CollectionSettings
from pretrace.verdicts.record import listed

ONLY_HERE = "a text of it stands in another collection too"


@dataclass(frozen=True, slots=True)
class Document:
    """A document: its collection's place, its name there, its texts, and what a further column says of each."""

    collection: int
    name: str
    texts: tuple[str, ...]
    dates: tuple[str, ...] = ()

    @property
    def whole(self) -> str:
        """All of its texts, a paragraph each."""
        return "\n\n".join(self.texts)


@dataclass(frozen=True, slots=True)
class Gathered:
    """Collections by `names`, the suspect one first, each with `number` of the `documents`, collection by collection.
    `notes` say what was done to get there, `skipped` what was left out."""

    names: tuple[str, ...]
    documents: tuple[Document, ...]
    number: int
    notes: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()

    @property
    def codes(self) -> npt.NDArray[np.int64]:
        """The collection of each document, [documents]."""
        return np.array([one.collection for one in self.documents], dtype=np.int64)


def divided(corpus: Corpus, column: str, suspect: str) -> tuple[Corpus, tuple[Corpus, ...]]:
    """The suspect collection and the others of one file, by what a further column (`Text.meta`) says of each row.

    TextsError where no row says `suspect`. Rows with an empty cell are left out, which the suspect corpus notes.
    """
    rows: dict[str, list[int]] = {}
    for place, text in enumerate(corpus.texts):
        rows.setdefault(text.meta.get(column, ""), []).append(place)
    lost = len(rows.pop("", ()))
    if suspect not in rows:
        raise TextsError(
            f"no row of {corpus.name} has {suspect!r} in the column {column!r}; it has {listed(sorted(rows))}: "
            "name one of them with --suspect."
        )
    made = {
        name: replace(corpus, name=name, texts=tuple(corpus.texts[place] for place in places), notes=())
        for name, places in rows.items()
    }
    notes = (
        (f"{lost:,} rows have nothing in the column {column} and belong to no collection.",) if lost else ()
    )
    first = replace(made.pop(suspect), notes=(*corpus.notes, *notes))
    return first, tuple(made[name] for name in sorted(made))


def gathered(corpora: Sequence[Corpus], settings: CollectionSettings, *, date_column: str = "") -> Gathered:
    """As many documents of each corpus, the suspect one first, at most `settings.documents`.

    Texts that stand in two collections are taken out of both, with their documents: such collections depend on each
    other. What is drawn of a collection depends on its own texts and the seed. TextsError for fewer collections than
    the level takes, or for one with fewer than 5 documents left.
    """
    _check_number(len(corpora) - 1, settings.level)
    names = _names(corpora)
    found = [_documents(corpus, place, date_column) for place, corpus in enumerate(corpora)]
    own, shared = _apart(found)
    number = min(settings.documents, *map(len, own))
    few = [name for name, some in zip(names, own, strict=True) if len(some) < FEWEST_DOCUMENTS]
    if few:
        raise TextsError(
            f"a collection takes {FEWEST_DOCUMENTS} documents or more that stand in no other, and these have fewer: "
            f"{listed(few)}. Add documents, or leave them out."
        )
    drawn = tuple(one for some in own for one in _drawn(some, number, settings.seed))
    skipped = tuple(Skipped(f"{names[one.collection]}: {one.name}", ONLY_HERE, 0) for one in shared)
    return Gathered(names, drawn, number, _notes(own, names, number, len(shared)), skipped)


def _check_number(controls: int, level: float) -> None:
    needed = fewest_others(level)
    if controls < needed:
        raise TextsError(
            f"a rank at the level of {level:g} takes {needed} control collections, found {controls}: "
            f"{needed - controls} are missing. Add collections of the same kind with --controls, or set a higher "
            "--level beforehand."
        )


def _names(corpora: Sequence[Corpus]) -> tuple[str, ...]:
    """The names of the corpora; where two are called the same, with where they are from, or a number."""
    count = Counter(corpus.name for corpus in corpora)
    long = [corpus.name if count[corpus.name] == 1 else corpus.source or corpus.name for corpus in corpora]
    again, made = Counter(long), []
    for place, name in enumerate(long):
        made.append(name if again[name] == 1 else f"{name} ({place})")
    return tuple(made)


def _documents(corpus: Corpus, place: int, date_column: str) -> list[Document]:
    """The documents of a corpus with their distinct texts, blank ones left out; those that share a text are one."""
    owner, seen = linked(corpus.texts), set[str]()
    texts: dict[str, list[tuple[str, str]]] = {}
    for text in corpus.texts:
        content = text.text.strip()
        if content and content not in seen:
            seen.add(content)
            date = text.meta.get(date_column, "") if date_column else ""
            texts.setdefault(owner[text.document], []).append((text.text, date))
    return [
        Document(
            place, name, tuple(one for one, _ in some), tuple(date for _, date in some) if date_column else ()
        )
        for name, some in texts.items()
    ]


def _apart(found: Sequence[Sequence[Document]]) -> tuple[list[list[Document]], list[Document]]:
    """The documents of each collection that share no text with another collection, and those that do."""
    homes: dict[str, set[int]] = {}
    for documents in found:
        for one in documents:
            for text in one.texts:
                homes.setdefault(text.strip(), set()).add(one.collection)
    several = {text for text, places in homes.items() if len(places) > 1}
    own: list[list[Document]] = []
    shared: list[Document] = []
    for documents in found:
        own.append([one for one in documents if not any(text.strip() in several for text in one.texts)])
        shared += [one for one in documents if any(text.strip() in several for text in one.texts)]
    return own, shared


def _drawn(documents: Sequence[Document], number: int, seed: int) -> list[Document]:
    """So many of the documents, by a hash of seed and text: neither names nor order nor role decide."""
    return sorted(documents, key=lambda one: text_key(f"{seed}\n{one.whole}"))[:number]


def _notes(
    own: Sequence[Sequence[Document]], names: Sequence[str], number: int, shared: int
) -> tuple[str, ...]:
    notes = []
    smallest = min(range(len(own)), key=lambda place: len(own[place]))
    if any(len(some) > number for some in own):
        why = f", as many as {names[smallest]} has" if len(own[smallest]) == number else ""
        notes.append(f"{number:,} documents of each collection were drawn{why}.")
    if shared:
        notes.append(
            f"{shared:,} documents share a text with another collection and were taken out of all collections."
        )
    return tuple(notes)
