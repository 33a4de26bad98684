"""Texts from files, folders and standard input, by one set of rules whatever the format."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from pretrace.corpora.columns import Columns, mended
from pretrace.corpora.formats import FORMATS, refused_politely, rows_of, sniffed_rows
from pretrace.corpora.reading import Reading
from pretrace.errors import TextsError
from pretrace.types import Corpus

__all__ = ["USUAL", "Columns", "read_stream", "read_texts", "stream_texts"]

USUAL = Columns()
"""The usual column names: text or input, label, id, group."""


def read_texts(path: str | Path, columns: Columns = USUAL) -> Corpus:
    """The texts of a file or folder, in order; `name` is the file's name without its endings.

    Formats, by the ending of the name, each also gzipped (`.gz`): `.jsonl` and `.ndjson`, `.json` (a list
    of objects), `.csv` and `.tsv` with a header, `.parquet`, `.txt` (a text a line, blank lines skipped),
    and a folder of `.txt` files (each one text, just as it stands, its relative path the id). A text may
    be empty. The id is the row number from 0 where there is none. Columns other than the four of
    `Columns` are not read, since millions of rows must fit into memory. What was replaced or skipped is
    told in `notes`. Raises TextsError where the file, a column, a label or an id is not as it should be.
    """
    path = Path(path)
    _refuse_missing(path)
    reading = Reading(columns, shown(path))
    return reading.corpus(rows_of(path, reading), _name(path))


def stream_texts(path: str | Path, columns: Columns = USUAL) -> Iterator[str]:
    """The texts of a file or folder one at a time, without labels and ids, for files larger than memory.

    The same formats and errors as `read_texts`; raised when the row at fault is reached. Memory does not
    grow with the file, save for `.json`, a single list that must be parsed as a whole.
    """
    path = Path(path)
    _refuse_missing(path)
    reading = Reading(columns.text_alone, shown(path))
    return reading.strings(rows_of(path, reading))


def read_stream(stream: BinaryIO, columns: Columns = USUAL) -> Corpus:
    """The texts of an open stream, as standard input is: JSON lines where the first line that is not blank
    is a JSON object, a text a line otherwise. The stream stays open."""
    reading = Reading(columns, "standard input")
    buffered = io.BufferedReader(cast(Any, stream))
    try:
        with refused_politely(reading.source):
            return reading.corpus(sniffed_rows(buffered, reading), reading.source)
    finally:
        buffered.detach()  # or it would close standard input when it goes


def shown(path: Path) -> str:
    """A path as messages and reports print it; a name that is no valid Unicode must not stop them."""
    return mended(str(path))[0]


def _refuse_missing(path: Path) -> None:
    if not found(path):
        raise TextsError(f"there is no file or folder {shown(path)!r}: check the path.")


def found(path: Path) -> bool:
    """Whether a path exists; False for what cannot be a path at all."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _name(path: Path) -> str:
    name = shown(Path(path.resolve().name if path.is_dir() else path.name))
    stem = name[:-3] if name.lower().endswith(".gz") else name
    ending = Path(stem).suffix
    return stem.removesuffix(ending) if ending.lower() in FORMATS else stem
