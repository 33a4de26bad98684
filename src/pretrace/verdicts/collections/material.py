"""The pieces of text that stand for each document: its texts, or places in it beside what a generator wrote there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pretrace.auditing.generation import TRAINING, WRITING, complete, tuned_generator
from pretrace.auditing.snippets import Snippet, SnippetSettings, cut, divide
from pretrace.baselines.text_features import SURFACE, surface_features
from pretrace.cache.generated import Draw
from pretrace.errors import TextsError
from pretrace.types import Backend, Corpus, Doubles, Text
from pretrace.verdicts.collections.gathering import Gathered
from pretrace.verdicts.collections.settings import CollectionSettings
from pretrace.verdicts.collections.values import document_means
from pretrace.verdicts.reading import Watched

BLIND = ("log length", "zlib ratio")
"""What predicts a document's score without any model, beside the reference models."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A text of a document (its place among all), and what a generator wrote in its place, None without one."""

    document: int
    text: str
    generated: str | None = None


@dataclass(frozen=True, slots=True)
class Material:
    """The pieces of all documents, in the documents' order; `number` is that of documents."""

    pieces: tuple[Piece, ...]
    number: int
    notes: tuple[str, ...] = ()

    def by_document(self, read: Callable[[Sequence[str]], Doubles]) -> Doubles:
        """The mean of what `read` gives for each text, by document, [documents]: of its pieces as they are, or of the
        differences between them and what was generated in their place."""
        texts = [one.text for one in self.pieces]
        beside = [one.generated for one in self.pieces if one.generated is not None]
        values = read([*texts, *beside])
        if beside:
            values = values[: len(texts)] - values[len(texts) :]
        return document_means(values, [one.document for one in self.pieces], self.number)

    def blind(self) -> Doubles:
        """The same means of the columns `BLIND`, [documents, 2]."""
        places = [SURFACE.index(name) for name in BLIND]
        return np.column_stack(
            [
                self.by_document(lambda texts, at=place: surface_features(texts)[:, at])  # type: ignore[misc]
                for place in places
            ]
        )


def as_they_are(gathered: Gathered) -> Material:
    """All texts of the documents."""
    pieces = tuple(Piece(place, text) for place, one in enumerate(gathered.documents) for text in one.texts)
    return Material(pieces, len(gathered.documents))


def beside_generated(
    gathered: Gathered, generator: Backend, settings: CollectionSettings, watch: Watched
) -> Material:
    """Pieces of each document and the same with their second half written by the generator.

    Each collection has a generator of its own, made by the same recipe: tuned on half of that collection's pieces, or
    as it is. So how well a generator imitates is a property of the collection like any other, and all are exposed to
    it alike. ModelError where the generator has no weights here, TextsError where no document is long enough.
    """
    tuned = settings.tuning.strip() != "none"
    pieces: list[Piece] = []
    lost = short = 0
    for unit in range(len(gathered.names)):
        judged, learnt, left = _snippets(gathered, unit, generator, settings, tuned=tuned)
        short += left
        made = _written(judged, learnt, generator, settings, watch)
        found = [Piece(int(one.document), one.text, one.prefix + new) for one, new in made if new]
        lost += len(judged) - len(found)
        pieces += found
    if not pieces:
        raise TextsError(
            f"no document has {settings.tokens} tokens in a row for --value generated: take shorter pieces with "
            "--tokens, or longer documents."
        )
    notes = []
    if short:
        notes.append(f"{short:,} texts are shorter than {settings.tokens} tokens and gave no piece.")
    if lost:
        notes.append(f"{lost:,} pieces were given no continuation and were left out.")
    return Material(
        tuple(sorted(pieces, key=lambda one: one.document)), len(gathered.documents), tuple(notes)
    )


def _snippets(
    gathered: Gathered, unit: int, generator: Backend, settings: CollectionSettings, *, tuned: bool
) -> tuple[Sequence[Snippet], Sequence[Snippet], int]:
    """The pieces of a collection to judge, those its generator learns from, and how many texts are too short."""
    mine = [(place, one) for place, one in enumerate(gathered.documents) if one.collection == unit]
    texts = tuple(
        Text(f"{place}.{number}", text, group=str(place))
        for place, one in mine
        for number, text in enumerate(one.texts)
    )
    how = SnippetSettings(
        tokens=settings.tokens, most=settings.snippets, pairs=10**9, share=0.5 if tuned else 1.0
    )
    made = cut(Corpus(gathered.names[unit], texts), generator.spans, how, seed=settings.seed)
    judged, learnt = divide(made.snippets, how, seed=settings.seed) if made.snippets else ((), ())
    return judged, learnt if tuned else (), len(made.short)


def _written(
    judged: Sequence[Snippet],
    learnt: Sequence[Snippet],
    generator: Backend,
    settings: CollectionSettings,
    watch: Watched,
) -> list[tuple[Snippet, str]]:
    """Each judged piece with what the generator, tuned on the others, writes after its first half."""
    if not judged:
        return []
    with watch.training(TRAINING) as on_step:
        own = tuned_generator(
            generator,
            [one.text for one in learnt],
            settings.tuning,
            seed=settings.seed,
            cache=settings.cache,
            on_step=on_step,
        )
    draw = Draw(settings.tokens - settings.tokens // 2, seed=settings.seed)
    with watch.passes(WRITING) as progress:
        made = complete(own, [one.prefix for one in judged], draw, cache=settings.cache, progress=progress)
    return list(zip(judged, made, strict=True))
