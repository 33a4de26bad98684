"""The verdict of an audit: its two tables and its figures, in the form that every verdict has.

The table "documents" has a row a document with its side, "suspect" or "control", and the one value of it that the
deciding test was made on. The table "pairs" has a row a place in a document: what stands there, and what a generator
wrote instead; a verdict without generated texts has no such table. All other numbers of an audit are its figures,
`types.AuditFigures`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pretrace.results.serialization import from_plain, to_plain
from pretrace.types import (
    Answer,
    AuditFigures,
    Doubles,
    Outcome,
    Pair,
    Situation,
    Table,
    Verdict,
)
from pretrace.verdicts.audit.document_values import DocumentValues
from pretrace.verdicts.frame import TestDetails, TestWording
from pretrace.verdicts.wording import fill, say, sentences_of

DOCUMENTS, PAIRS = "documents", "pairs"
"""The names of the tables."""
SUSPECT, CONTROL = SIDES = "suspect", "control"
SECOND = "second: "
"""What the column of a second model begins with, in the table of documents."""
Side = tuple[tuple[str, ...], Doubles]
"""Documents of one side, and the value of each."""
_PAIR = ("id", "document", "prefix", "true", "generated")


def words_of(figures: AuditFigures, answer: Answer, corpus: str, model: str) -> TestWording:
    """The sentences of an audit; `model` is its name in a sentence."""
    named = {"corpus": corpus, "model": model}
    return TestWording.of_kind(
        "audit.said",
        **named,
        compared=say(f"audit.compared.{figures.design}", **named),
        hypothesis=hypothesis(figures, corpus, model),
        assumption=say(
            f"audit.assumed.{'shared' if figures.design == 'placebos' else 'unseen'}", model=model
        ),
        statistic=answer.statistic,
        effect_unit=answer.unit,
    )


def said_of(corpus: str, model: str) -> Mapping[Outcome, str]:
    """The first sentences of an audit's statement."""
    return fill(sentences_of("audit.said.said"), corpus=corpus, model=model)  # type: ignore[no-any-return]


def shown_of(
    figures: AuditFigures,
    sides: tuple[Side, Side],
    pairs: tuple[Sequence[Pair], Sequence[Pair]] = ((), ()),
    seconds: Mapping[str, DocumentValues] | None = None,
) -> TestDetails:
    """What an audit shows: suspect documents with their values and control documents with theirs, and what was compared
    in both. `seconds` are the values of models that cannot have seen the texts, by name."""
    plan = figures.plan
    return TestDetails(
        figures=to_plain(figures, "figures"),
        tables=(documents_table(sides, seconds or {}), *([pairs_table(pairs)] if any(pairs) else [])),
        situation=Situation(
            documents=plan.documents if plan else len(sides[0][0]),
            unseen=plan.control_documents if plan else len(sides[1][0]),
            checkpoint=any(one.grade == "own" for one in figures.placebos),
        ),
    )


def figures_of(found: Verdict) -> AuditFigures:
    """What an audit found besides what every verdict holds; ValueError, TypeError or KeyError for another verdict."""
    return from_plain(AuditFigures, found.figures, "figures")


def documents_of(found: Verdict, side: str) -> tuple[tuple[str, ...], Doubles]:
    """The documents of a side, and the value of each."""
    table = found.table(DOCUMENTS)
    rows = [row for row, name in enumerate(table["side"]) if name == side]
    return tuple(table["document"][row] for row in rows), np.asarray(table["value"][rows])


def seconds_of(found: Verdict) -> dict[str, DocumentValues]:
    """The values of each second model, by its name."""
    table = found.table(DOCUMENTS)
    rows = [[row for row, side in enumerate(table["side"]) if side == name] for name in SIDES]
    names = [tuple(table["document"][row] for row in some) for some in rows]
    return {
        name.removeprefix(SECOND): DocumentValues(
            names[0], table[name][rows[0]], names[1], table[name][rows[1]]
        )
        for name in table.columns
        if name.startswith(SECOND)
    }


def pairs_of(found: Verdict, side: str) -> tuple[Pair, ...]:
    """What was compared in the documents of a side; nothing where no text was generated."""
    table = next((one for one in found.tables if one.name == PAIRS), None)
    if table is None:
        return ()
    rows = zip(table["side"], *(table[name] for name in _PAIR), strict=True)
    return tuple(Pair(*cells) for name, *cells in rows if name == side)


def documents_table(sides: tuple[Side, Side], seconds: Mapping[str, DocumentValues]) -> Table:
    """The table of the suspect and of the control documents, with a column for each second model."""
    (suspect, values), (control, others) = sides
    if not (np.isfinite(values).all() and np.isfinite(others).all()):
        raise ValueError("a value of the audit is NaN or infinite")
    columns: dict[str, Any] = {
        "document": (*suspect, *control),
        "side": (SUSPECT,) * len(suspect) + (CONTROL,) * len(control),
        "value": np.concatenate([values, others]).astype(np.float64),
    }
    for name, one in seconds.items():
        first = dict(zip(one.documents, one.values, strict=True))
        second = dict(zip(one.heldout_documents, one.heldout_values, strict=True))
        columns[SECOND + name] = np.array(
            [*(first[name] for name in suspect), *(second[name] for name in control)]
        )
    return Table(DOCUMENTS, columns)


def pairs_table(pairs: tuple[Sequence[Pair], Sequence[Pair]]) -> Table:
    """The table of what was compared in the suspect and in the control documents."""
    every = [*pairs[0], *pairs[1]]
    columns: dict[str, Any] = {"side": (SUSPECT,) * len(pairs[0]) + (CONTROL,) * len(pairs[1])}
    return Table(PAIRS, columns | {name: tuple(getattr(one, name) for one in every) for name in _PAIR})


def hypothesis(figures: AuditFigures, corpus: str, model: str) -> str:
    """The null hypothesis of an audit, in one sentence."""
    other, form = figures.compared_with, f"audit.hypothesis.{figures.design}"
    beyond = "" if other is not None else say("audit.hypothesis.words")
    if figures.margin:
        beyond += say("audit.hypothesis.margin", margin=figures.margin)
    against = f", compared with {other}," if other is not None else ""
    return say(form, corpus=corpus, model=model, against=against, beyond=beyond)


ACCUSING = ("placebo", "controls", "mixture", "spread", "kinds")
"""Checks that withhold an accusation alone: each asks whether something besides training makes the suspect documents
look known, and that hides no training."""
INFORMING = ("power",)
"""The check of the power: the rule itself asks for it."""
