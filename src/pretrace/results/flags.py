"""A flagging on disk: what was found, a row a text in question, and a row a known non-member.

`flags.csv` has a row a text in question, `known.csv` one a known non-member; p, q and flagged are those of the text's
document, and `drawn` are the texts they rest on. Where the answer was refused the columns p, q and flagged are empty,
so that no script takes a flag from it.

The flagging of more texts than a shard (`Flagged.whole`) holds some of them in these tables. All of its rows are in
`flags/part-00000.parquet`, … with the same columns, and those of very many known non-members in `known/…`.

Format 1 is that of version 0.1: no test of the set, and texts were flagged one by one whatever their documents. Format
2 had no measured power, and said "none" where nothing stood out, whatever could have been seen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.results.folder import Kind, Opened, Rendered, Write, read_folder, write_folder
from pretrace.results.output_checks import FLAGS, FLAGS_KEY
from pretrace.results.serialization import from_plain, to_plain
from pretrace.results.tables import read_csv, write_csv
from pretrace.types import Doubles, Flagged, FlagOutcome, Judged, Known

FLAGGING = Kind("flagging", FLAGS, FLAGS_KEY, 3, "pretrace flag", "run it again")
TEXTS, KNOWN = "flags.csv", "known.csv"
EXIT_CODES: Mapping[FlagOutcome, int] = {
    "none": 0, "flagged": 3, "set": 3, "refused": 4, "missed": 4, "coarse": 4
}  # fmt: skip
"""What `pretrace flag` leaves with, so that a script can act on it."""

TEXT_COLUMNS = ("id", "group", "score", "p", "q", "flagged", "document", "drawn")
KNOWN_COLUMNS = ("id", "group", "score", "drawn", "document")
_OLD = {TEXT_COLUMNS: TEXT_COLUMNS[:6], KNOWN_COLUMNS: KNOWN_COLUMNS[:4]}
"""What version 0.1 wrote of them."""
_FIELDS = tuple(f.name for f in dataclasses.fields(Flagged) if f.name not in ("texts", "known", "settings"))


def save_flags(
    flagged: Flagged,
    folder: Path,
    *,
    beside: Mapping[str, Write] | None = None,
    extra: Write | None = None,
    rendered: Rendered | None = None,
) -> None:
    """Write a flagging to `folder`, in place of an earlier one there; on failure nothing has changed.

    `beside` writes further tables, by their names in the folder; `extra` may add files, `rendered` is what is made from
    it (a report). Raises TypeError or ValueError where it holds what cannot be written, OutputError where `folder`
    cannot be.
    """
    _check(flagged)
    tables: dict[str, Write] = {
        TEXTS: lambda path: write_csv(path, TEXT_COLUMNS, _rows(flagged.texts), quoted=True),
        KNOWN: lambda path: write_csv(path, KNOWN_COLUMNS, _known_rows(flagged.known), quoted=True),
    }
    parts = {**tables, **(beside or {})}
    write_folder(FLAGGING, folder, _content(flagged), parts=parts, extra=extra, rendered=rendered)


def load_flags(folder: Path) -> Flagged:
    """The flagging that `save_flags` wrote to `folder`, to the last bit.

    Raises OutputError, naming the file, where `folder` holds none, where a file is damaged or was changed, or where a
    newer pretrace wrote it.
    """
    return read_folder(FLAGGING, folder, _load)


def _load(opened: Opened) -> Flagged:
    content = opened.content
    texts, known = opened.part(TEXTS, _judged), opened.part(KNOWN, _known)
    plain = {name: content[name] for name in (*_FIELDS, "settings") if name in content}
    # What stands in the tables is required too, so it is empty until it is put in.
    for name, kind in (("texts", Judged), ("known", Known)):
        plain[name] = {field.name: [] for field in dataclasses.fields(kind)}
    made = dataclasses.replace(from_plain(Flagged, plain, "flags"), texts=texts, known=known)
    _check(made)
    return made


def _content(flagged: Flagged) -> dict[str, Any]:
    """Everything but the tables, what matters most first."""
    first = {
        "outcome": flagged.outcome,
        "exit_code": EXIT_CODES[flagged.outcome],
        "statement": flagged.statement,
    }
    counts = {
        "texts": flagged.scored,
        "documents": flagged.documents,
        "flagged": flagged.number,
        "flagged_documents": flagged.flagged_documents,
        "known": flagged.known_texts,
        "known_documents": flagged.known_documents,
        "skipped": flagged.unscored,
    }
    fields = {name: to_plain(getattr(flagged, name), name) for name in _FIELDS}
    if flagged.whole is None:
        del fields["whole"]
    settings = to_plain(flagged.settings, "settings")
    return {**first, "counts": counts, **fields, "settings": settings}


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
    ids, groups, scores, p, q, flags, *more = _columns(content, TEXT_COLUMNS)
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
    ids, groups, scores, drawn, *more = _columns(content, KNOWN_COLUMNS)
    rested_on = tuple(one == "1" for one in drawn)
    return Known(tuple(ids), tuple(groups), _numbers(scores), rested_on, tuple(more[0] if more else groups))


def _columns(content: bytes, names: tuple[str, ...]) -> list[list[str]]:
    """The columns of a table; those that version 0.1 did not have are missing from its own."""
    found, rows = read_csv(content)
    if found not in (names, _OLD[names]):
        raise ValueError(f"columns {', '.join(names)} expected")
    return [[row[place] for row in rows] for place in range(len(found))]


def _numbers(values: Iterable[str]) -> Doubles:
    return np.array([float(value) for value in values], dtype=np.float64)
