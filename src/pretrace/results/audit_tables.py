"""The tables of an audit: one value a document, as csv for people and as parquet, which gives back every
bit, and the texts that were compared, one pair a line of JSON. Each row says which side it is on, "suspect" or
"control"; format 1 called the second "heldout", and its pairs were all suspect ones and did not say so.

As in the tables of a run, csv holds names as they are (one that begins with "=" is a formula to a
spreadsheet), and a lone surrogate is written as its escape.
"""

from __future__ import annotations

import csv
import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pretrace.results.encoding import from_json
from pretrace.results.plain import from_plain
from pretrace.types import Audit, Doubles, Pair

COLUMNS = ("document", "side", "value")
SIDES = ("suspect", "control")
_FORMER = {"heldout": "control"}


class Sides(NamedTuple):
    """What `read_documents` gives back, in fields named as those of an Audit."""

    documents: tuple[str, ...]
    values: Doubles
    heldout_documents: tuple[str, ...]
    heldout_values: Doubles


class Pairs(NamedTuple):
    """What `read_pairs` gives back, in fields named as those of an Audit."""

    pairs: tuple[Pair, ...]
    control_pairs: tuple[Pair, ...]


def check_documents(audit: Audit) -> None:
    """Raise ValueError unless there is one finite value a document on both sides."""
    sides = ((audit.documents, audit.values), (audit.heldout_documents, audit.heldout_values))
    for side, (documents, values) in zip(SIDES, sides, strict=True):
        if values.shape != (len(documents),):
            raise ValueError(f"{len(documents)} {side} documents of the audit have {values.shape} values")
        if not np.isfinite(values).all():
            raise ValueError(f"a {side} value of the audit is NaN or infinite")


def write_csv(audit: Audit, path: Path) -> None:
    """Write the value of each document; floats so that reading them gives the same float back."""
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        # Every text is quoted, so that no reader takes a bare carriage return for the end of a row.
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(_rows(audit))


def write_parquet(audit: Audit, path: Path) -> None:
    """Write the same as parquet. Names with lone surrogates are stored as bytes (WTF-8)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = list(_rows(audit))
    documents, sides, values = zip(*rows, strict=True) if rows else ((), (), ())
    try:
        names = pa.array(documents, pa.string())
    except UnicodeEncodeError:
        names = pa.array([name.encode("utf-8", "surrogatepass") for name in documents], pa.binary())
    columns = (names, pa.array(sides, pa.string()), pa.array(np.array(values, np.float64)))
    with path.open("wb") as file:  # given a name, pyarrow refuses those that are not UTF-8
        pq.write_table(pa.table(dict(zip(COLUMNS, columns, strict=True))), file)


def read_documents(content: bytes) -> Sides:
    """The documents and values that `write_parquet` wrote; ValueError or KeyError where it did not."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(str(error)) from error
    found = table.column("document").to_pylist()
    names = [name.decode("utf-8", "surrogatepass") if isinstance(name, bytes) else name for name in found]
    sides = [_FORMER.get(side, side) for side in table.column("side").to_pylist()]
    values = table.column("value").to_numpy()
    picked: list[tuple[tuple[str, ...], Doubles]] = []
    for side in SIDES:
        rows = [index for index, found in enumerate(sides) if found == side]
        picked.append((tuple(names[index] for index in rows), np.array(values[rows], np.float64)))
    return Sides(*picked[0], *picked[1])


def write_pairs(audit: Audit, path: Path) -> None:
    """Write the compared texts, one JSON object a line: those of the suspect, then those of control documents."""
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        for side, pairs in zip(SIDES, (audit.pairs, audit.control_pairs), strict=True):
            for pair in pairs:
                row = {"side": side, **dataclasses.asdict(pair)}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


def read_pairs(content: bytes) -> Pairs:
    """The pairs that `write_pairs` wrote; ValueError, TypeError or KeyError where it did not."""
    found: dict[str, list[Pair]] = {side: [] for side in SIDES}
    # Split at line feeds alone: a text may hold other characters that end a line.
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        row = from_json(line)
        side = row.get("side", SIDES[0])
        if side not in found:
            raise ValueError(f"line {number}: no side is called {side!r}")
        found[side].append(from_plain(Pair, row, f"line {number}"))
    return Pairs(*(tuple(found[side]) for side in SIDES))


def _rows(audit: Audit) -> Iterable[tuple[str, str, float]]:
    yield from ((d, SIDES[0], v) for d, v in zip(audit.documents, audit.values.tolist(), strict=True))
    held = zip(audit.heldout_documents, audit.heldout_values.tolist(), strict=True)
    yield from ((document, SIDES[1], value) for document, value in held)
