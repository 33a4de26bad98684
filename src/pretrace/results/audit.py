"""Audits on disk: the verdict, one value a document, and the texts that were compared.

`verdict.json` is what a script acts on. `documents.csv` and `documents.parquet` have a row a document and
`pairs.jsonl` a line a pair of texts; each says which side it is on, "suspect" or "control".

Format 1 knew one placebo and two designs, and did not record the null distribution, the plan or the sensitivity:
such an audit is read with what it holds. It called the control side "heldout", and its pairs were all suspect ones
and did not say so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.results.folder import Kind, Opened, Rendered, Write, read_folder, write_folder
from pretrace.results.output_checks import AUDIT_KEY, VERDICT
from pretrace.results.serialization import expect, from_plain, to_plain
from pretrace.results.tables import (
    Column,
    read_lines,
    read_parquet,
    texts_of,
    write_csv,
    write_lines,
    write_parquet,
)
from pretrace.results.verdicts import EXIT_CODES
from pretrace.types import Answer, Audit, Pair

AUDIT = Kind("audit", VERDICT, AUDIT_KEY, 2, "pretrace audit", "run the audit again")
CSV, DOCUMENTS, PAIRS = "documents.csv", "documents.parquet", "pairs.jsonl"

_COLUMNS = ("document", "side", "value")
_SIDES = ("suspect", "control")
_ANSWER = tuple(field.name for field in dataclasses.fields(Answer))
_FIRST = ("outcome", "statement", "corpus", "model", "design", "level")
_TABLES = ("documents", "values", "heldout_documents", "heldout_values", "pairs", "control_pairs")
_REST = tuple(f.name for f in dataclasses.fields(Audit) if f.name not in {*_FIRST, *_TABLES, "answer"})
_FORMER_SIDES = {"heldout": "control"}
_FORMER_DESIGNS = {"synthetic": "placebos", "heldout": "controls"}

Plain = dict[str, Any]


def save_audit(
    audit: Audit, folder: Path, *, extra: Write | None = None, rendered: Rendered | None = None
) -> None:
    """Write an audit to `folder`, in place of an earlier audit there; on failure nothing has changed.

    `extra` may add files, `rendered` is what is made from the audit (a report). Raises TypeError or
    ValueError where the audit holds what cannot be written, OutputError where `folder` cannot be.
    """
    _check(audit)
    content = _content(audit)
    rows = list(document_rows(audit))
    columns: tuple[Column, ...] = (
        [name for name, _, _ in rows],
        [side for _, side, _ in rows],
        np.array([value for _, _, value in rows], np.float64),
    )
    parts: dict[str, Write] = {
        CSV: lambda path: write_csv(path, _COLUMNS, rows, quoted=True),
        DOCUMENTS: lambda path: write_parquet(path, dict(zip(_COLUMNS, columns, strict=True))),
        PAIRS: lambda path: write_lines(path, _pair_rows(audit)),
    }
    write_folder(AUDIT, folder, content, parts=parts, extra=extra, rendered=rendered)


def load_audit(folder: Path) -> Audit:
    """The audit that `save_audit` wrote to `folder`, to the last bit.

    Raises OutputError, naming the file, where `folder` is not an audit, where the verdict or one of the
    tables is damaged or was changed, or where a newer pretrace wrote it.
    """
    return read_folder(AUDIT, folder, _load)


def hypothesis(audit: Audit) -> str:
    """The null hypothesis of an audit, in one sentence."""
    named = audit.answer.facts.get("placebo")
    against = f", compared with {named}," if isinstance(named, str) else ""
    known = f"{audit.model} was not trained on “{audit.corpus}”, so that{against}"
    if audit.design == "controls":
        return f"{known} the suspect documents are no easier for it to predict than the control documents."
    what = "what stands in the suspect documents is no easier for it to predict than what a generator wrote in its "
    if audit.design == "differences":
        return f"{known} {what}place, or only by as much as in the control documents."
    margin = audit.answer.facts.get("margin")
    beyond = "" if against else ", beyond what their words explain"
    if isinstance(margin, float | int) and margin:
        beyond += f", or only by the margin of {margin:.3g}"
    return f"{known} {what}place{beyond}."


def _check(audit: Audit) -> None:
    """Raise ValueError unless there is one finite value a document on both sides, and p is a probability."""
    sides = ((audit.documents, audit.values), (audit.heldout_documents, audit.heldout_values))
    for side, (documents, values) in zip(_SIDES, sides, strict=True):
        if values.shape != (len(documents),):
            raise ValueError(f"{len(documents)} {side} documents of the audit have {values.shape} values")
        if not np.isfinite(values).all():
            raise ValueError(f"a {side} value of the audit is NaN or infinite")
    if not 0 <= audit.answer.p <= 1:
        raise ValueError(f"the p-value of an audit is {audit.answer.p}")


def _content(audit: Audit) -> Plain:
    """Everything but the tables, what matters most first; the deciding answer among it, not beneath it."""
    first, rest = ({name: to_plain(getattr(audit, name), name) for name in part} for part in (_FIRST, _REST))
    return {
        "outcome": audit.outcome,
        "exit_code": EXIT_CODES[audit.outcome],
        **first,
        "hypothesis": hypothesis(audit),
        **to_plain(audit.answer, "answer"),
        **rest,
    }


def document_rows(audit: Audit) -> Iterator[tuple[str, str, float]]:
    """Each document with its side, "suspect" or "control", and its value."""
    sides = ((audit.documents, audit.values), (audit.heldout_documents, audit.heldout_values))
    for side, (documents, values) in zip(_SIDES, sides, strict=True):
        yield from ((name, side, value) for name, value in zip(documents, values.tolist(), strict=True))


def _pair_rows(audit: Audit) -> Iterator[Plain]:
    for side, pairs in zip(_SIDES, (audit.pairs, audit.control_pairs), strict=True):
        yield from ({"side": side, **dataclasses.asdict(pair)} for pair in pairs)


def _load(opened: Opened) -> Audit:
    verdict = opened.content
    opened.part(CSV, len)
    tables = opened.part(DOCUMENTS, _read_documents) | opened.part(PAIRS, _read_pairs)
    answer = {name: verdict[name] for name in _ANSWER if name in verdict}
    plain = {name: verdict[name] for name in (*_FIRST, *_REST) if name in verdict}
    if verdict[AUDIT_KEY] == 1:
        answer, plain = _upgraded(answer, plain, verdict.get("placebo"))
    # What stands in the tables is required too, so it is empty until it is put in.
    plain |= {"answer": answer, "documents": [], "values": []}
    audit = dataclasses.replace(from_plain(Audit, plain, "verdict"), **tables)
    _check(audit)
    return audit


def _read_documents(content: bytes) -> Plain:
    table = read_parquet(content)
    names, values = texts_of(table, "document"), table.column("value").to_numpy()
    sides = [_FORMER_SIDES.get(side, side) for side in texts_of(table, "side")]
    found: Plain = {}
    for side, prefix in zip(_SIDES, ("", "heldout_"), strict=True):
        rows = [index for index, other in enumerate(sides) if other == side]
        found[f"{prefix}documents"] = tuple(names[index] for index in rows)
        found[f"{prefix}values"] = np.array(values[rows], np.float64)
    return found


def _read_pairs(content: bytes) -> Plain:
    found: dict[str, list[Pair]] = {side: [] for side in _SIDES}
    for number, row in enumerate(read_lines(content), 1):
        side = row.get("side", _SIDES[0])
        if side not in found:
            raise ValueError(f"line {number}: no side is called {side!r}")
        found[side].append(from_plain(Pair, row, f"line {number}"))
    return {"pairs": tuple(found["suspect"]), "control_pairs": tuple(found["control"])}


def _upgraded(answer: Plain, verdict: Plain, placebo: object) -> tuple[Plain, Plain]:
    """The answer and the other entries of a verdict of format 1, as format 2 has them; KeyError or TypeError where
    they are not of format 1.

    It had two designs, at most one placebo, and a tolerance where there is a margin now.
    """
    facts = dict(expect(answer.get("facts", {}), dict))
    if "tolerance" in facts:
        facts["margin"] = facts.pop("tolerance")
    found = [] if placebo is None else [expect(placebo, dict)]
    if found:
        facts["placebo"] = expect(found[0]["name"], str)
    design = _FORMER_DESIGNS[expect(verdict["design"], str)]
    return {**answer, "facts": facts}, {**verdict, "design": design, "placebos": found}
