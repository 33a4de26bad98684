"""The two sides of an audit: pieces of the suspect texts, and of texts they are held against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pretrace.auditing.snippets import Snippet
from pretrace.types import Corpus, Pair, Text


class Piece(NamedTuple):
    """A text that counts, the document it is from, and what stands before it, as context alone."""

    document: str
    text: str
    prefix: str = ""

    def as_text(self, name: str) -> Text:
        """The piece as a text of its document."""
        return Text(name, self.text, group=self.document)


@dataclass(frozen=True, slots=True)
class Sides:
    """Pieces of the suspect texts and of held-out ones; with `paired` row i of both is one place."""

    suspect: tuple[Piece, ...]
    heldout: tuple[Piece, ...]
    paired: bool = False

    def corpora(self) -> tuple[Corpus, Corpus]:
        """Both sides as texts, for what compares them without a model."""
        suspect, heldout = (
            Corpus(name, tuple(piece.as_text(f"{name} {i}") for i, piece in enumerate(side)))
            for name, side in (("suspect", self.suspect), ("heldout", self.heldout))
        )
        return suspect, heldout

    @classmethod
    def of_pairs(cls, pairs: Sequence[Pair]) -> Sides:
        """True suffixes beside the generated ones, each after the same prefix."""
        true = tuple(Piece(pair.document, pair.true, pair.prefix) for pair in pairs)
        generated = tuple(Piece(pair.document, pair.generated, pair.prefix) for pair in pairs)
        return cls(true, generated, paired=True)

    @classmethod
    def of_snippets(cls, suspect: Sequence[Snippet], heldout: Sequence[Snippet]) -> Sides:
        """Whole snippets of suspect and of held-out documents."""
        return cls(
            tuple(Piece(snippet.document, snippet.text) for snippet in suspect),
            tuple(Piece(snippet.document, snippet.text) for snippet in heldout),
        )
