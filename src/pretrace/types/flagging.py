"""What a flagging brings: which texts stand out from known non-members, and what speaks against believing it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pretrace.types.audit import Check
from pretrace.types.offered import Shown, Tabular
from pretrace.types.results import Skipped
from pretrace.types.traces import Doubles

FlagOutcome = Literal["flagged", "set", "none", "coarse", "refused"]
"""Documents are flagged; none is, but the set as a whole stands out; neither; neither, and too few known documents
for that to say anything; or no answer, because a control says that the two sets differ by more than membership."""


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """The texts in question, row by row, and the document of each.

    A document's value is the mean `scores` of its `drawn` texts. `p` and `q` (the least rate at which a document
    would be flagged), float64 [texts], are those of the text's document, and so is `flagged`. `p` and `q` are empty
    where the answer is refused: nothing may be read off them.
    """

    ids: tuple[str, ...]
    groups: tuple[str, ...]
    scores: Doubles
    p: Doubles
    q: Doubles
    flagged: tuple[bool, ...]
    documents: tuple[str, ...]
    drawn: tuple[bool, ...]

    @property
    def number(self) -> int:
        """How many documents there are."""
        return len(set(self.documents))


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """The known non-members, row by row; `drawn` are those that make the values of their `documents`."""

    ids: tuple[str, ...]
    groups: tuple[str, ...]
    scores: Doubles
    drawn: tuple[bool, ...]
    documents: tuple[str, ...]

    @property
    def number(self) -> int:
        """How many documents there are."""
        return len(set(self.documents))


@dataclass(frozen=True, slots=True)
class SetTest:
    """The test of the set: do the asked documents, as a whole, score higher than the known ones?

    `p` is None where a control withholds it, and `withheld` says why. `above` asked documents lie above the line that
    `expected` of them would be above by chance (p-values of at most 5%). The test rejects at `level` from `least`
    documents on that stand above all known ones while the others are like these; None where not even all would do.
    """

    p: float | None
    level: float
    above: int
    expected: float
    least: int | None
    permutations: int
    withheld: str = ""

    @property
    def rejects(self) -> bool:
        """Whether the set stands out."""
        return self.p is not None and self.p <= self.level


@dataclass(frozen=True, slots=True, eq=False)
class Flagged(Shown, Tabular):
    """The whole of a flagging, as the report reads it and `flags.json` holds it.

    `fdr` is the rate of false discoveries that was set beforehand and `method` how it is kept ("bh" or "by").
    `reasons` are the sentences that lead to the outcome, `advice` what would help, `notes` what was known before
    the model was asked. `settings` is everything needed to repeat it. `set_test` is None in results of version 0.1.
    """

    corpus: str
    nonmembers: str
    model: str
    score: str
    fdr: float
    method: str
    outcome: FlagOutcome
    statement: str
    texts: Judged
    known: Known
    checks: tuple[Check, ...] = ()
    reasons: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    set_test: SetTest | None = None

    @property
    def number(self) -> int:
        """How many texts are flagged."""
        return sum(self.texts.flagged)

    @property
    def flagged_documents(self) -> int:
        """How many documents are flagged; that is what the rate is about."""
        pairs = zip(self.texts.documents, self.texts.flagged, strict=True)
        return len({document for document, chosen in pairs if chosen})
