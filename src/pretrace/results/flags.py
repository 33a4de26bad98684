"""A flagging on disk: a folder that is there whole or not at all.

`flags.csv` has a row a text in question, `known.csv` one a known non-member; p, q and flagged are those of the text's
document, and `drawn` are the texts they rest on. Where the answer was refused the columns p, q and flagged are empty,
so that no script takes a flag from it. `flags.json` comes last into the
folder and holds the SHA-256 of both tables and, as its own last entry, that of itself without this entry.

As in the tables of a run, csv holds ids as they are (one that begins with "=" is a formula to a spreadsheet),
and a lone surrogate is written as its escape.
"""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.errors import OutputError
from pretrace.results import encoding
from pretrace.results.atomic import new_folder
from pretrace.results.output_checks import FILES_KEY, FLAGS, FLAGS_KEY
from pretrace.results.plain import from_plain, to_plain
from pretrace.types import Doubles, Flagged, FlagOutcome, Judged, Known

FORMAT = 2
"""1 is that of version 0.1: no test of the set, and texts were flagged one by one whatever their documents."""
TEXTS, KNOWN = "flags.csv", "known.csv"
SEAL = "sha256"
EXIT_CODES: Mapping[FlagOutcome, int] = {
    "none": 0,
    "flagged": 3,
    "set": 3,
    "refused": 4,
    "coarse": 4,
}
"""What `pretrace flag` leaves with, so that a script can act on it."""

_TEXT_COLUMNS = ("id", "group", "score", "p", "q", "flagged", "document", "drawn")
_KNOWN_COLUMNS = ("id", "group", "score", "drawn", "document")
_OLD = {_TEXT_COLUMNS: _TEXT_COLUMNS[:6], _KNOWN_COLUMNS: _KNOWN_COLUMNS[:4]}
"""What version 0.1 wrote of them."""
_FIELDS = tuple(
    field.name for field in dataclasses.fields(Flagged) if field.name not in ("texts", "known", "settings")
)


def save_flags(flagged: Flagged, folder: Path, *, extra: Callable[[Path], object] | None = None) -> None:
    """Write a flagging to `folder`, in place of an earlier one there; on failure nothing has changed.

    `extra` may add what is made from it (a report) before the folder takes its place. Raises TypeError or
    ValueError where it holds what cannot be written, OutputError where `folder` cannot be.
    """
    _check(flagged)
    content = _content(flagged)
    with new_folder(folder) as partial:
        tables = {TEXTS: _rows(flagged.texts), KNOWN: _known_rows(flagged.known)}
        columns = {TEXTS: _TEXT_COLUMNS, KNOWN: _KNOWN_COLUMNS}
        for name, rows in tables.items():
            (partial / name).write_bytes(_csv(columns[name], rows))
        content[FILES_KEY] = {name: _hash((partial / name).read_bytes()) for name in tables}
        if extra is not None:
            extra(partial)
        files = sorted(path.relative_to(partial).as_posix() for path in partial.rglob("*") if path.is_file())
        content[FILES_KEY] |= {name: None for name in files if name not in tables}
        content[SEAL] = _hash(encoding.to_json(content))
        (partial / FLAGS).write_bytes(encoding.to_json(content))


def load_flags(folder: Path) -> Flagged:
    """The flagging that `save_flags` wrote to `folder`, to the last bit.

    Raises OutputError, naming the file, where `folder` holds none, where a file is damaged or was changed, or where a
    newer pretrace wrote it.
    """
    try:
        content = encoding.from_json(_read(folder, FLAGS))
        _check_format(folder, content)
        seal = content.pop(SEAL, None)
        if seal != _hash(encoding.to_json(content)):
            raise OutputError(_changed(folder / FLAGS))
        hashes = encoding.expect(content[FILES_KEY], dict)
        tables = {name: _read(folder, name) for name in (TEXTS, KNOWN)}
        for name, found in tables.items():
            if _hash(found) != hashes.get(name):
                raise OutputError(_changed(folder / name))
        plain = {name: content[name] for name in (*_FIELDS, "settings") if name in content}
        # What stands in the tables is required too, so it is empty until it is put in.
        empty: dict[str, list[object]] = {
            "ids": [],
            "groups": [],
            "scores": [],
            "p": [],
            "q": [],
            "flagged": [],
            "drawn": [],
            "documents": [],
        }
        made = from_plain(Flagged, {**plain, "texts": empty, "known": empty}, "flags")
        texts, known = _judged(tables[TEXTS]), _known(tables[KNOWN])
        made = dataclasses.replace(made, texts=texts, known=known)
        _check(made)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise OutputError(
            f"{folder} is not a whole flagging: its {FLAGS} or a table is damaged ({error}); run it again."
        ) from error
    return made


def _content(flagged: Flagged) -> dict[str, Any]:
    """Everything but the tables, what matters most first."""
    texts = flagged.texts
    first = {
        "outcome": flagged.outcome,
        "exit_code": EXIT_CODES[flagged.outcome],
        "statement": flagged.statement,
    }
    counts = {
        "texts": len(texts.ids),
        "documents": texts.number,
        "flagged": flagged.number,
        "flagged_documents": flagged.flagged_documents,
        "known": len(flagged.known.ids),
        "known_documents": flagged.known.number,
        "skipped": len(flagged.skipped),
    }
    fields = {name: to_plain(getattr(flagged, name), name) for name in _FIELDS}
    settings = to_plain(flagged.settings, "settings")
    return {FLAGS_KEY: FORMAT, **first, "counts": counts, **fields, "settings": settings}


def _check(flagged: Flagged) -> None:
    """ValueError unless every text has its figures, and none where the answer is refused."""
    texts, known = flagged.texts, flagged.known
    rows = len(texts.ids)
    given = 0 if flagged.outcome == "refused" else rows
    columns = (texts.groups, texts.flagged, texts.documents, texts.drawn)
    if {*map(len, columns), *texts.scores.shape} != {rows}:
        raise ValueError("the texts of a flagging differ in number from column to column")
    if texts.p.shape != (given,) or texts.q.shape != (given,):
        raise ValueError(
            f"{rows} texts of a flagging have p-values of shape {texts.p.shape} ({flagged.outcome})"
        )
    others = (known.groups, known.drawn, known.documents)
    if {*map(len, others), *known.scores.shape} != {len(known.ids)}:
        raise ValueError("the known texts of a flagging differ in number from column to column")
    if not all(np.isfinite(part).all() for part in (texts.scores, texts.p, texts.q, known.scores)):
        raise ValueError("a figure of a flagging is NaN or infinite")
    if (flagged.outcome == "flagged") != (flagged.number > 0):
        raise ValueError(f"{flagged.number} texts are flagged where the outcome is {flagged.outcome}")
    if flagged.outcome == "set" and not (flagged.set_test and flagged.set_test.rejects):
        raise ValueError("a flagging says that the set stands out, and its test of the set does not")


def _rows(texts: Judged) -> Iterable[Sequence[object]]:
    """A row a text; p, q and flagged are empty where the answer was refused."""
    told = len(texts.p) == len(texts.ids)
    for i, (name, group) in enumerate(zip(texts.ids, texts.groups, strict=True)):
        figures = (float(texts.p[i]), float(texts.q[i]), int(texts.flagged[i])) if told else ("", "", "")
        yield name, group, float(texts.scores[i]), *figures, texts.documents[i], int(texts.drawn[i])


def _known_rows(known: Known) -> Iterable[Sequence[object]]:
    columns = (known.ids, known.groups, known.scores.tolist(), map(int, known.drawn), known.documents)
    return zip(*columns, strict=True)


def _judged(content: bytes) -> Judged:
    ids, groups, scores, p, q, flags, *more = _columns(content, _TEXT_COLUMNS)
    # version 0.1 judged every text by itself
    documents, drawn = more or (ids, ["1"] * len(ids))
    return Judged(
        tuple(ids),
        tuple(groups),
        _numbers(scores),
        _numbers(one for one in p if one),
        _numbers(one for one in q if one),
        tuple(flag == "1" for flag in flags),
        tuple(documents),
        tuple(one == "1" for one in drawn),
    )


def _known(content: bytes) -> Known:
    ids, groups, scores, drawn, *more = _columns(content, _KNOWN_COLUMNS)
    rested_on = tuple(one == "1" for one in drawn)
    return Known(tuple(ids), tuple(groups), _numbers(scores), rested_on, tuple(more[0] if more else groups))


def _csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Floats so that reading them gives the same float back; every text quoted, so that no reader takes a bare
    carriage return for the end of a row."""
    made = io.StringIO(newline="")
    writer = csv.writer(made, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return made.getvalue().encode("utf-8", "backslashreplace")


def _columns(content: bytes, names: tuple[str, ...]) -> list[list[str]]:
    """The columns of a table; those that version 0.1 did not have are missing from its own."""
    csv.field_size_limit(max(csv.field_size_limit(), len(content)))  # an id may be as long as it likes
    header, *rows = csv.reader(io.StringIO(content.decode("utf-8"), newline=""))
    if tuple(header) not in (names, _OLD[names]) or any(len(row) != len(header) for row in rows):
        raise ValueError(f"columns {', '.join(names)} expected")
    return [[row[place] for row in rows] for place in range(len(header))]


def _numbers(values: Iterable[str]) -> Doubles:
    return np.array([float(value) for value in values], dtype=np.float64)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _check_format(folder: Path, content: Mapping[str, Any]) -> None:
    found = content.get(FLAGS_KEY)
    if not isinstance(found, int):
        raise OutputError(f"{folder} is not a pretrace flagging: its {FLAGS} was written by something else.")
    if found > FORMAT:
        raise OutputError(
            f"{folder} was written by a newer pretrace (format {found}, this one reads {FORMAT}): upgrade."
        )


def _read(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError:
        found = "there is no such folder" if not folder.exists() else f"there is no {name} in it"
        raise OutputError(
            f"{folder} is not a whole flagging: {found}; give a folder that pretrace flag wrote."
        ) from None
    except OSError as error:
        raise OutputError(f"{folder / name} cannot be read: {error.strerror or error}.") from error


def _changed(path: Path) -> str:
    return f"{path} is damaged, was changed or belongs to another flagging; run it again."
