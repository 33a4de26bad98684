"""The two sets of a flagging have nothing in common: what is refused where they do, and in which words."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pretrace.errors import TextsError


@dataclass(frozen=True, slots=True)
class Apart:
    """The texts in question and the known non-members, by the names of the two sets and their numbers of texts;
    TextsError where one is empty."""

    asked: str
    known: str
    asked_texts: int
    known_texts: int

    def __post_init__(self) -> None:
        for name, texts in ((self.asked, self.asked_texts), (self.known, self.known_texts)):
            if not texts:
                raise TextsError(f"{name} holds no texts.")

    def refuse_members(self, members: Sequence[str]) -> None:
        """TextsError where known texts, with these ids, are labelled as members."""
        if members:
            raise TextsError(
                f"{len(members)} of the {self.known_texts} known non-members in {self.known} (such as {members[0]!r}) "
                "are labelled as members: leave them out, or mend the label."
            )

    def refuse_same(self, same: Sequence[str]) -> None:
        """TextsError where texts in question, with these ids, are among the known ones."""
        if same:
            raise TextsError(
                f"{len(same)} of the {self.asked_texts} texts of {self.asked} (such as {same[0]!r}) are among the "
                f"known non-members in {self.known}: a text is one or the other; take them out of one of the two files."
            )

    def refuse_shared(self, groups: Collection[str]) -> None:
        """TextsError where documents have texts on both sides."""
        if groups:
            raise TextsError(
                f"{len(groups)} documents (such as {min(groups)!r}) have texts in {self.asked} and in {self.known}: a "
                "document was seen or it was not; take each out of one of the two files."
            )
