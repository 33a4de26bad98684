"""What a flagging brings: which texts stand out from known non-members, and what speaks against believing it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pretrace.types.audit import Check, Power
from pretrace.types.offered import Shown, Tabular
from pretrace.types.results import Skipped
from pretrace.types.traces import Doubles

FlagOutcome = Literal["flagged", "set", "none", "missed", "coarse", "refused"]
"""Documents are flagged; none is, but the set as a whole stands out; neither, and a tenth of the documents, if seen,
would have been noticed; neither, but that could have been missed ("coarse" in results of before version 0.2); or no
answer, because a control says that the two sets differ, or could differ, by more than membership."""


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
class Bars:
    """A histogram: how many values lie in each of equal bins from `low` to `high`, the outermost with those beyond; of
    texts or documents in question (`every`), of the flagged ones among them, and of the known ones."""

    low: float
    high: float
    every: tuple[int, ...]
    flagged: tuple[int, ...]
    known: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class WholeFlagging:
    """What a large flagging counted over all of its texts, of which `Flagged.texts` holds some.

    The first `sampled` rows there are drawn at random, each text alike; those behind them were not drawn and are there
    for their scores: the highest of all, and the highest of the flagged ones. `known_sampled` says the same of
    `Flagged.known`. The whole table lies in the files `parts`, that of the known ones in `known_parts`. `least` is the
    lowest score of a flagged text, `low_p` counts documents with a p-value of at most 5%; `scores` and `p` are drawn.
    """

    texts: int
    documents: int
    flagged: int
    flagged_documents: int
    known: int
    known_documents: int
    skipped: int
    unreadable: int
    sampled: int
    known_sampled: int
    scores: Bars
    p: Bars | None
    least: float | None
    low_p: int
    parts: tuple[str, ...]
    known_parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetTest:
    """The test of the set: do the asked documents, as a whole, score higher than the known ones?

    `p` is None where a control withholds it, and `withheld` says why. `above` asked documents lie above the line that
    `expected` of them would be above by chance (p-values of at most 5%). The test rejects at `level` from `least`
    documents on that stand above all known ones while the others are like these; None where not even all would do.

    `explained` is the drift of all asked documents, in standard deviations of the known ones, that would explain a
    rejection. `unseen` is the drift that the checks could not have excluded, and `spread` how many times as far as the
    known ones the asked documents lie below the middle. None in results of before version 0.2.
    """

    p: float | None
    level: float
    above: int
    expected: float
    least: int | None
    permutations: int
    withheld: str = ""
    explained: float | None = None
    unseen: float | None = None
    spread: float | None = None

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
    A flagging of more texts than memory holds has `whole`: `texts`, `known` and `skipped` are then some of them.
    `power` is what training a copy of the target on a tenth of the documents brought, `tests` says which test of these
    texts this is on this machine.
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
    whole: WholeFlagging | None = None
    power: Power | None = None
    tests: str = ""

    @property
    def number(self) -> int:
        """How many texts are flagged."""
        return self.whole.flagged if self.whole else sum(self.texts.flagged)

    @property
    def flagged_documents(self) -> int:
        """How many documents are flagged; that is what the rate is about."""
        if self.whole:
            return self.whole.flagged_documents
        pairs = zip(self.texts.documents, self.texts.flagged, strict=True)
        return len({document for document, chosen in pairs if chosen})

    @property
    def scored(self) -> int:
        """How many texts in question have a score."""
        return self.whole.texts if self.whole else len(self.texts.ids)

    @property
    def documents(self) -> int:
        """How many documents these come from."""
        return self.whole.documents if self.whole else self.texts.number

    @property
    def known_texts(self) -> int:
        """How many known non-members have a score."""
        return self.whole.known if self.whole else len(self.known.ids)

    @property
    def known_documents(self) -> int:
        """How many documents these come from."""
        return self.whole.known_documents if self.whole else self.known.number

    @property
    def unscored(self) -> int:
        """How many texts of both sets have no score."""
        return self.whole.skipped if self.whole else len(self.skipped)
