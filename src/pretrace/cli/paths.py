"""What commands read and write; none overwrites what it reads."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pretrace.corpora import Columns, TextStream, open_corpus, open_stream
from pretrace.errors import OutputError
from pretrace.settings import Option, option
from pretrace.types import Corpus

_QUOTED = re.compile(r"'([^']+)'|\"([^\"]+)\"")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Which texts, and where in their file things stand."""

    texts: str = option(
        help="A .jsonl, .csv, .tsv, .parquet or .txt file (also .gz), a folder of .txt, .md, .html, .docx or .pdf "
        "files, a feed (.rss, .atom, .xml), - for standard input, hub:NAME[:CONFIG][:SPLIT], or a corpus such as "
        "stdlib (see `pretrace list`).",
        metavar="TEXTS",
        path="in",
        essential=True,
    )
    columns: Columns = field(default_factory=Columns)

    def open(self) -> Corpus:
        """The texts; TextsError where they cannot be read."""
        return open_corpus(self.texts, self.columns)

    def stream(self, *, skip_unreadable: bool = False) -> TextStream:
        """The same texts, to be read one at a time."""
        return open_stream(self.texts, self.columns, skip_unreadable=skip_unreadable)


def check_outputs(given: Mapping[str, tuple[Option, Any]]) -> None:
    """OutputError where an output of a command is one of its inputs, or a folder that holds one.

    `given` are the options and their values by name. Links and relative paths are followed. Paths within an
    expression, such as `wikimia(path='a.jsonl')` or `masked:FOLDER`, are inputs too.
    """
    outputs = [(name, Path(value)) for name, (own, value) in given.items() if own.path == "out" and value]
    inputs = [
        (name, own, path)
        for name, (own, value) in given.items()
        if own.path == "in"
        for path in _paths(value)
    ]
    for out_name, out in outputs:
        for name, own, path in inputs:
            if _holds(out, path):
                shown = own.metavar or f"--{name.replace('_', '-')}"
                raise OutputError(
                    f"--{out_name} {out} would overwrite {path}, which {shown} names as an input: choose another "
                    f"--{out_name}."
                )


def _holds(out: Path, path: Path) -> bool:
    """Whether writing `out` would replace `path`: it is the same file or folder, or lies within it."""
    place, read = Path(os.path.realpath(out)), Path(os.path.realpath(path))
    return read.is_relative_to(place) or (out.exists() and out.samefile(path))


def _paths(value: Any) -> Iterator[Path]:
    """The files and folders that a value names, of those that exist."""
    if isinstance(value, list | tuple):
        for one in value:
            yield from _paths(one)
        return
    written = str(value or "")
    quoted = ("".join(found) for found in _QUOTED.findall(written))
    for name in (written, written.partition(":")[2], *quoted):
        path = Path(name).expanduser()
        try:
            if name and path.exists():
                yield path
        except (OSError, ValueError):
            continue
