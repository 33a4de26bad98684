"""Sources as streams: their texts read one at a time, as often as wanted, in memory that does not grow with them.

Files and folders are opened anew for each reading. What can be read only once, standard input and pipes, is copied to
a temporary file (TMPDIR) first. Lists, built corpora and `.json` files are in memory as a whole.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from pretrace.corpora.columns import USUAL, Columns
from pretrace.corpora.formats import rows_of, sniffed_rows
from pretrace.corpora.hub import open_table, table_rows
from pretrace.corpora.opened import refused_politely, standard_input
from pretrace.corpora.opening import found, name_of_path, open_corpus, refuse_missing, shown
from pretrace.corpora.reading import Reading, Row, Unreadable, refuse_repeated_ids
from pretrace.types import Card, Corpus, Text

Tell = Callable[[Unreadable], object]
Rows = Callable[[Reading], Iterator[Row]]


class TextStream:
    """The texts of one source. `name`, `source` and `card` are those of its `Corpus`.

    With `skip_unreadable` a record that cannot be read is left out, and `texts` tells of it.
    """

    def __init__(
        self, name: str, source: str, columns: Columns, rows: Rows, *, skip_unreadable: bool = False
    ) -> None:
        self.name, self.source = name, source
        self.card: Card | None = None
        self.notes: tuple[str, ...] = ()
        """What was mended and left out; whole once `texts` was read to its end."""
        self._columns, self._rows = columns, rows
        self._skip = skip_unreadable

    def texts(self, tell: Tell | None = None) -> Iterator[Text]:
        """The texts in order, from the first one again at each call; ids may repeat. TextsError for the first record
        that cannot be read, unless such records are left out: then `tell` is given each of them."""
        reading = Reading(self._columns, self.source, (tell or _silent) if self._skip else None)
        yield from reading.stream(self._rows(reading))
        self.notes = reading.notes

    def whole(self, most: int, tell: Tell | None = None) -> Corpus | None:
        """The corpus, where it has at most so many texts; None otherwise. TextsError for repeated ids."""
        unread: list[Unreadable] = []
        texts = tuple(itertools.islice(self.texts(unread.append), most + 1))
        if len(texts) > most:
            return None
        for one in unread if tell else ():
            cast(Tell, tell)(one)
        refuse_repeated_ids([text.id for text in texts], self.source)
        return Corpus(self.name, texts, self.source, self.notes, self.card)


class GivenStream(TextStream):
    """The texts of a corpus that is in memory."""

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus.name, corpus.source, USUAL, lambda reading: iter(()))
        self.corpus, self.card, self.notes = corpus, corpus.card, corpus.notes

    def texts(self, tell: Tell | None = None) -> Iterator[Text]:
        """The texts in order."""
        return iter(self.corpus.texts)

    def whole(self, most: int, tell: Tell | None = None) -> Corpus | None:
        """The corpus, where it has at most so many texts."""
        return self.corpus if len(self.corpus) <= most else None


def open_stream(source: str | Path, columns: Columns = USUAL, *, skip_unreadable: bool = False) -> TextStream:
    """The stream of what a source names, as `open_corpus` reads it; the same errors, those of a record when it is
    reached. TextsError where there is no such source."""
    if source == "-":
        copy = _copied(standard_input())
        return TextStream("standard input", "standard input", columns, copy, skip_unreadable=skip_unreadable)
    if isinstance(source, str) and source.startswith("hub:"):
        name, table = open_table(source.removeprefix("hub:"))
        return TextStream(
            name,
            f"hub:{name}",
            columns,
            lambda reading: table_rows(table, reading),
            skip_unreadable=skip_unreadable,
        )
    path = Path(source)
    if isinstance(source, str) and not (source.strip() and found(path)):
        return GivenStream(open_corpus(source, columns))
    refuse_missing(path)
    rows: Rows = lambda reading: rows_of(path, reading)  # noqa: E731 - one of two ways to read
    if path.is_fifo():
        with refused_politely(shown(path)), path.open("rb") as pipe:
            rows = _copied(pipe)
    return TextStream(name_of_path(path), shown(path), columns, rows, skip_unreadable=skip_unreadable)


def _copied(stream: BinaryIO) -> Rows:
    """Rows of a stream that can be read only once, from a copy of it on disk that goes with the process."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - it is read until the stream itself goes
    with refused_politely("standard input"):
        shutil.copyfileobj(stream, copy, 1 << 20)
    copy.flush()

    def rows(reading: Reading) -> Iterator[Row]:
        with os.fdopen(os.dup(copy.fileno()), "rb") as again:
            again.seek(0)
            yield from sniffed_rows(again, reading)

    return rows


def _silent(unreadable: Unreadable) -> None:
    """Nothing: it was told of before."""
