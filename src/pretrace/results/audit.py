"""Audits on disk: a folder that is there whole or not at all.

`verdict.json` is what a script acts on. It comes last into the folder and holds the SHA-256 of every table
and, as its own last entry, that of itself without this entry; so whatever was damaged or changed since is
noticed when the audit is read. (Someone who means to deceive can write the hashes anew: to hold an audit
fast, keep that last number elsewhere.) A report is made from all this and can be made anew, to the same
bytes by the same version; so it is listed without a hash.

Format 1 knew one placebo and two designs, and did not record the null distribution, the plan or the sensitivity:
such an audit is read with what it holds.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pretrace.errors import OutputError
from pretrace.results import audit_tables, encoding
from pretrace.results.atomic import new_folder
from pretrace.results.audit_formats import upgraded
from pretrace.results.output_checks import AUDIT_KEY, FILES_KEY, VERDICT
from pretrace.results.plain import from_plain, to_plain
from pretrace.types import Answer, Audit, Outcome

T = TypeVar("T")

FORMAT = 2
DOCUMENTS, PAIRS = "documents.parquet", "pairs.jsonl"
_TABLES = ("documents.csv", DOCUMENTS, PAIRS)
SEAL = "sha256"
EXIT_CODES: Mapping[Outcome, int] = {"nothing": 0, "consistent": 3, "inconclusive": 4}
"""What `pretrace audit` leaves with, so that a script can act on the verdict."""

_ANSWER = tuple(field.name for field in dataclasses.fields(Answer))
_FIRST = ("outcome", "statement", "corpus", "model", "design", "level")
_ELSEWHERE = {*audit_tables.Sides._fields, *audit_tables.Pairs._fields, "answer"}
_REST = tuple(field.name for field in dataclasses.fields(Audit) if field.name not in {*_FIRST, *_ELSEWHERE})


def save_audit(audit: Audit, folder: Path, *, extra: Callable[[Path], object] | None = None) -> None:
    """Write an audit to `folder`, in place of an earlier audit there; on failure nothing has changed.

    `extra` may add what is made from the audit (a report) to the folder before it takes its place. Raises TypeError or
    ValueError where the audit holds what cannot be written, OutputError where `folder` cannot be.
    """
    audit_tables.check_documents(audit)
    if not 0 <= audit.answer.p <= 1:
        raise ValueError(f"the p-value of an audit is {audit.answer.p}")
    verdict = _verdict(audit)
    with new_folder(folder) as partial:
        audit_tables.write_csv(audit, partial / _TABLES[0])
        audit_tables.write_parquet(audit, partial / DOCUMENTS)
        audit_tables.write_pairs(audit, partial / PAIRS)
        verdict[FILES_KEY] = {name: _hash(partial / name) for name in _TABLES}
        if extra is not None:
            extra(partial)
        files = sorted(path.relative_to(partial).as_posix() for path in partial.rglob("*") if path.is_file())
        verdict[FILES_KEY] |= {name: None for name in files if name not in _TABLES}
        verdict[SEAL] = _sealed(verdict)
        (partial / VERDICT).write_bytes(encoding.to_json(verdict))


def load_audit(folder: Path) -> Audit:
    """The audit that `save_audit` wrote to `folder`, to the last bit.

    Raises OutputError, naming the file, where `folder` is not an audit, where the verdict or one of the
    tables is damaged or was changed, or where a newer pretrace wrote it.
    """
    verdict = _parsed(folder, VERDICT, _content(folder, VERDICT), encoding.from_json)
    _check_format(folder, verdict)
    seal = verdict.pop(SEAL, None)
    if seal != _sealed(verdict):
        raise OutputError(_changed(folder / VERDICT))
    return _explained(folder, VERDICT, lambda: _load(folder, verdict))


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


def _verdict(audit: Audit) -> dict[str, Any]:
    """Everything but the tables, what matters most first; the deciding answer among it, not beneath it."""
    first, rest = ({name: to_plain(getattr(audit, name), name) for name in part} for part in (_FIRST, _REST))
    return {
        AUDIT_KEY: FORMAT,
        "outcome": audit.outcome,
        "exit_code": EXIT_CODES[audit.outcome],
        **first,
        "hypothesis": hypothesis(audit),
        **to_plain(audit.answer, "answer"),
        **rest,
    }


def _load(folder: Path, verdict: Mapping[str, Any]) -> Audit:
    contents: dict[str, bytes] = {}
    hashes = encoding.expect(verdict[FILES_KEY], dict)
    for name in _TABLES:
        contents[name] = _content(folder, name)
        if hashlib.sha256(contents[name]).hexdigest() != hashes[name]:
            raise OutputError(_changed(folder / name))
    sides = _parsed(folder, DOCUMENTS, contents[DOCUMENTS], audit_tables.read_documents)
    pairs = _parsed(folder, PAIRS, contents[PAIRS], audit_tables.read_pairs)
    answer = {name: verdict[name] for name in _ANSWER if name in verdict}
    plain = {name: verdict[name] for name in (*_FIRST, *_REST) if name in verdict}
    if verdict[AUDIT_KEY] == 1:
        answer, plain = upgraded(answer, plain, verdict.get("placebo"))
    # What stands in the tables is required too, so it is empty until it is put in.
    plain |= {"answer": answer, "documents": [], "values": []}
    audit = dataclasses.replace(from_plain(Audit, plain, "verdict"), **pairs._asdict(), **sides._asdict())
    audit_tables.check_documents(audit)
    return audit


def _sealed(verdict: Mapping[str, Any]) -> str:
    return hashlib.sha256(encoding.to_json(verdict)).hexdigest()


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _check_format(folder: Path, verdict: Mapping[str, Any]) -> None:
    found = verdict.get(AUDIT_KEY)
    if not isinstance(found, int):
        raise OutputError(f"{folder} is not a pretrace audit: its {VERDICT} was written by something else.")
    if found > FORMAT:
        raise OutputError(
            f"{folder} was written by a newer pretrace (format {found}, this one reads {FORMAT}): upgrade."
        )


def _content(folder: Path, name: str) -> bytes:
    path = folder / name
    try:
        return path.read_bytes()
    except FileNotFoundError:
        found = "there is no such folder" if not folder.exists() else f"there is no {name} in it"
        raise OutputError(
            f"{folder} is not a whole pretrace audit: {found}; give a folder that pretrace audit wrote."
        ) from None
    except OSError as error:
        raise OutputError(f"{path} cannot be read: {error.strerror or error}.") from error


def _parsed(folder: Path, name: str, content: bytes, parse: Callable[[bytes], T]) -> T:
    return _explained(folder, name, lambda: parse(content))


def _explained(folder: Path, name: str, read: Callable[[], T]) -> T:
    try:
        return read()
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise OutputError(
            f"{folder} is not a pretrace audit: its {name} is damaged ({error}); run the audit again."
        ) from error


def _changed(path: Path) -> str:
    return f"{path} is damaged, was changed or belongs to another audit; run the audit again."
