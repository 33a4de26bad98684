"""The one noun of whatever ends in an outcome: audits, flaggings, and every test that needs no earlier checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pretrace.types.audit import Check, Null, Outcome, Power
from pretrace.types.results import Estimate, ShownAsHtml, Skipped, Tabular
from pretrace.types.traces import Bools, Doubles

VerdictTest = Literal[
    "audit",
    "flag",
    "marks",
    "triggers",
    "canaries",
    "recite",
    "samples",
]
"""The tests: of a collection beside control documents and other models, of each text beside known non-members, of texts
that were marked before they were published, of trigger sentences, of random strings that stand in the texts, of
texts that a model prints, and of the items of a benchmark that a
harness evaluated."""


@dataclass(frozen=True, slots=True, eq=False)
class Table(Tabular):
    """A table of a result, on disk `NAME.csv`: columns of equal length by name, of texts, of numbers (float64, NaN
    where a cell is empty) or of yes and no (bool, masked where a cell is empty)."""

    name: str
    columns: Mapping[str, tuple[str, ...] | Doubles | Bools]

    def __getitem__(self, column: str) -> Any:
        """A column; KeyError where there is none of that name."""
        return self.columns[column]

    def __len__(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.columns.values()), ()))


@dataclass(frozen=True, slots=True)
class Situation:
    """What the one who asks has, as far as a result or an answer says: numbers of documents, 0 where there are none.

    `unseen` counts control documents, `canaries` random strings that stand in the texts. `documents` are the texts in
    question, 0 also where it was not said. `access` is what the model offers: "weights", "logprobs" (a server that
    gives log-probabilities of a prompt) or "text" alone. `windowed` counts the documents in question that `recite` can
    ask about, None where they were not looked at. `parameters` and `training_tokens` are the model's, 0 where nobody
    knows.
    """

    unpublished: int = 0
    documents: int = 0
    unseen: int = 0
    canaries: int = 0
    checkpoint: bool = False
    access: Literal["weights", "logprobs", "text"] = "weights"
    windowed: int | None = None
    parameters: float = 0.0
    training_tokens: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Verdict(ShownAsHtml, Tabular):
    """The whole of an audit, a flagging or another test, as the report reads it and `result.json` holds it.

    `exact` says whether the null distribution is known by construction; `assumption` is what must hold in any case
    for p to mean what it says. `p` is None where no test could be made. `units` (documents, shards, …) carry the test
    and `unit` names one. `null` is the distribution of the statistic if the texts were not used. `effect` has the unit
    `effect_unit`; `standardised` is the effect over its spread between units. `planted` is what training a copy of
    the target brought, None where it was not measured. `question` is what the report asks, `compared` and `trust` are
    sentences for a reader without statistics: what was compared, and how far the answer can be trusted. `reasons`
    lead to the outcome, `advice` says what would help, `notes` what was done on the way. `figures` are the test's own
    numbers in plain values, `tables` one row a unit; `to_arrow` and `to_pandas` give the first of them. `register`
    says which test of these texts this is on this machine, and tells of the others. `statements` are what the one who
    asks says of texts and models.
    `situation` is what the advice on other tests rests on. `settings` is everything needed to repeat it.
    """

    test: str
    corpus: str
    model: str
    outcome: Outcome
    statement: str
    level: float
    exact: bool
    assumption: str
    hypothesis: str
    statistic: str
    p: float | None
    units: int
    unit: str
    question: str
    compared: tuple[str, ...]
    trust: tuple[str, ...] = ()
    null: Null | None = None
    effect: Estimate | None = None
    effect_unit: str = ""
    standardised: float | None = None
    planted: Power | None = None
    checks: tuple[Check, ...] = ()
    reasons: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    register: tuple[str, ...] = ()
    statements: Mapping[str, str] = field(default_factory=dict)
    situation: Situation = Situation()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def table(self, name: str) -> Table:
        """The table of that name; KeyError where there is none."""
        for one in self.tables:
            if one.name == name:
                return one
        raise KeyError(name)

    def __repr__(self) -> str:
        """Test, corpus, model, outcome and p, and the statement in a second line."""
        p = "no p" if self.p is None else f"p = {self.p:.2g}"
        head = f"{self.test}, {self.corpus!r}, model {self.model!r}, {self.outcome}, {p}"
        return f"Verdict({head}:\n    {self.statement})"


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
class SetTest:
    """The test of the set: do the asked documents, as a whole, score higher than the known ones?

    `p` is None where a control withholds it, and `withheld` says why. `above` asked documents lie above the line that
    `expected` of them would be above by chance (p-values of at most 5%). The test rejects at `level` from `least`
    documents on that stand above all known ones while the others are like these; None where not even all would do.

    `explained` is the drift of all asked documents, in standard deviations of the known ones, that would explain a
    rejection. `unseen` is the drift that the checks could not have excluded, and `spread` how many times as far as the
    known ones the asked documents lie below the middle.
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
