"""One value a document, and the test on these values: samples of one document are not independent, documents are.

The values depend on the design. "controls": how much likelier the target finds a document than the placebo does, in
suspect and in control documents. "differences": the same of what stands there, less the same of what a generator wrote
in its place, in suspect and in control documents. "placebos": that difference in suspect documents alone, less a
margin, since a target that only knows the domain better than the placebo leans towards true text.

The verdict of an audit holds them in its table "documents": a row a document with its side, "suspect" or "control". The
table "pairs" has a row a place in a document: what stands there, and what a generator wrote instead; a verdict without
generated texts has no such table. All other numbers of an audit are its figures, `types.AuditFigures`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pretrace.results.serialization import from_plain, to_plain
from pretrace.results.wording import say
from pretrace.statistics.intervals import difference_interval, mean_interval, standardised
from pretrace.statistics.permutation import PermutationTest, sign_flip_test, two_sample_test
from pretrace.types import Answer, AuditFigures, Doubles, Pair, Situation, Table, Verdict
from pretrace.verdicts.frame import TestDetails, TestWording

DRAWS = 10_000
STATISTIC = "mean over its standard error, skewness taken out"
PAIRED = "sign-flip permutation test of document means, less a margin of {margin:.3g}"
UNPAIRED = "two-sample permutation test of document means"


@dataclass(frozen=True, slots=True, eq=False)
class DocumentValues:
    """The value of each suspect and control document, in a `unit`; a `margin` was taken off without controls."""

    documents: tuple[str, ...]
    values: Doubles
    heldout_documents: tuple[str, ...] = ()
    heldout_values: Doubles = field(default_factory=lambda: np.zeros(0))
    margin: float = 0.0
    unit: str = ""

    @property
    def paired(self) -> bool:
        """Whether a value is a difference that is compared with 0, since there are no control documents."""
        return not self.heldout_documents

    @property
    def sides(self) -> tuple[Doubles, Doubles]:
        """The values of suspect and of control documents."""
        return self.values, self.heldout_values

    @property
    def within(self) -> Doubles:
        """All values less the mean of their side."""
        return np.concatenate([side - side.mean() for side in self.sides if len(side)])

    @property
    def spread(self) -> float:
        """The standard deviation between documents of one side."""
        return float(self.within.std())


def permuted(found: DocumentValues, *, seed: int = 0) -> PermutationTest:
    """The one-sided test that the suspect documents' values lie above 0, or above those of control documents."""
    if found.paired:
        return sign_flip_test(found.values, flips=DRAWS, seed=seed)
    return two_sample_test(found.values, found.heldout_values, permutations=DRAWS, seed=seed)


def p_value(found: DocumentValues, *, seed: int = 0) -> float:
    """The p-value of `permuted`."""
    return permuted(found, seed=seed).p


def reversed_p(found: DocumentValues, *, seed: int = 0) -> float:
    """The p-value of the opposite, that the values lie below by more than the margin: training cannot explain that."""
    values = -found.values - 2 * found.margin
    turned = DocumentValues(found.documents, values, found.heldout_documents, -found.heldout_values)
    return p_value(turned, seed=seed)


def answer(found: DocumentValues, *, pieces: int, seed: int, facts: dict[str, object]) -> Answer:
    """The default procedure's answer on these values, of so many pieces of suspect text."""
    statistic, heldout = UNPAIRED, None if found.paired else found.heldout_values
    if heldout is None:
        statistic, effect = PAIRED.format(margin=found.margin), mean_interval(found.values)
    else:
        effect = difference_interval(found.values, heldout)
    own = {"permutations": DRAWS, "margin": found.margin, "control_documents": len(found.heldout_documents)}
    return Answer(
        procedure="pretrace",
        p=p_value(found, seed=seed),
        statistic=statistic,
        documents=len(found.documents),
        pieces=pieces,
        effect=effect,
        unit=found.unit,
        standardised=standardised(found.values, heldout),
        facts={**own, **facts},
    )


DOCUMENTS, PAIRS = "documents", "pairs"
"""The names of the tables."""
SUSPECT, CONTROL = SIDES = "suspect", "control"
SECOND = "second: "
"""What the column of a second model begins with, in the table of documents."""
_PAIR = ("id", "document", "prefix", "true", "generated")


def words_of(figures: AuditFigures, answer: Answer, corpus: str, model: str) -> TestWording:
    """The sentences of an audit; `model` is its name in a sentence."""
    named, design = {"corpus": corpus, "model": model}, figures.design
    is_alone = design == "placebos" and figures.compared_with is None
    return TestWording.of_kind(
        "audit.said",
        **named,
        compared=say(f"audit.compared.{design}", **named),
        hypothesis=say(f"audit.hypothesis.{'alone' if is_alone else design}", **named),
        assumption=say(f"audit.assumed.{'shared' if design == 'placebos' else 'unseen'}", model=model),
        statistic=answer.statistic,
        effect_unit=answer.unit,
    )


def shown_of(
    figures: AuditFigures,
    found: DocumentValues,
    pairs: tuple[Sequence[Pair], Sequence[Pair]] = ((), ()),
    seconds: Mapping[str, DocumentValues] | None = None,
) -> TestDetails:
    """Show the values of both sides, pairs, and second models by name."""
    plan, suspect, control = figures.plan, found.documents, found.heldout_documents
    values = np.concatenate(found.sides).astype(np.float64)

    def both(first: Sequence[Any], second: Sequence[Any]) -> tuple[str, ...]:
        return (SUSPECT,) * len(first) + (CONTROL,) * len(second)

    columns: dict[str, Any] = {"document": (*suspect, *control), "side": both(suspect, control)}
    columns["value"] = values
    for name, one in (seconds or {}).items():
        named = zip((one.documents, one.heldout_documents), one.sides, (suspect, control), strict=True)
        columns[SECOND + name] = np.array(
            [dict(zip(theirs, some, strict=True))[own] for theirs, some, names in named for own in names]
        )
    tables = [Table(DOCUMENTS, columns)]
    if any(pairs):
        cells = {name: tuple(getattr(one, name) for one in (*pairs[0], *pairs[1])) for name in _PAIR}
        tables.append(Table(PAIRS, {"side": both(*pairs), **cells}))
    return TestDetails(
        figures=to_plain(figures, "figures"),
        tables=tuple(tables),
        situation=Situation(
            documents=plan.documents if plan else len(suspect),
            unseen=plan.control_documents if plan else len(control),
            checkpoint=any(one.grade == "own" for one in figures.placebos),
        ),
    )


def figures_of(found: Verdict) -> AuditFigures:
    """What an audit found besides what every verdict holds; ValueError, TypeError or KeyError for another verdict."""
    return from_plain(AuditFigures, found.figures, "figures")


def documents_of(found: Verdict, side: str, column: str = "value") -> tuple[tuple[str, ...], Doubles]:
    """The documents of a side, and the value of each."""
    table = found.table(DOCUMENTS)
    rows = [row for row, name in enumerate(table["side"]) if name == side]
    return tuple(table["document"][row] for row in rows), np.asarray(table[column][rows])


def values_of(found: Verdict, column: str = "value", *, margin: float = 0.0) -> DocumentValues:
    """The values of the documents of both sides, as they stand in a column."""
    suspect, control = (documents_of(found, side, column) for side in SIDES)
    return DocumentValues(*suspect, *control, margin)


def seconds_of(found: Verdict) -> dict[str, DocumentValues]:
    """The values of each second model, by its name."""
    columns = (name for name in found.table(DOCUMENTS).columns if name.startswith(SECOND))
    return {name.removeprefix(SECOND): values_of(found, name) for name in columns}


def pairs_of(found: Verdict, side: str) -> tuple[Pair, ...]:
    """What was compared in the documents of a side; nothing where no text was generated."""
    table = next((one for one in found.tables if one.name == PAIRS), None)
    if table is None:
        return ()
    rows = zip(table["side"], *(table[name] for name in _PAIR), strict=True)
    return tuple(Pair(*cells) for name, *cells in rows if name == side)


ACCUSING = ("placebo", "controls", "mixture", "spread", "kinds")
"""Checks that withhold an accusation alone: what they look for makes documents look known and hides no training."""
INFORMING = ("power",)
"""The check of the power: the rule itself asks for it."""
