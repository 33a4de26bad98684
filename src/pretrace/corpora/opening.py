"""From what a user names or gives to a corpus: files, folders, standard input, the hub, built corpora, lists."""

from __future__ import annotations

import difflib
import io
import itertools
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from pretrace.corpora.columns import TEXT_NAMES, USUAL, Columns, kind_of, mended
from pretrace.corpora.documents import DOCUMENTS, standard_input, unreadable_explained
from pretrace.corpora.formats import FORMATS, rows_of, sniffed_rows
from pretrace.corpora.hub import open_table, read_hub, table_rows
from pretrace.corpora.reading import EveryColumn, Reading, Row, Unreadable, refuse_repeated_ids
from pretrace.corpora.webpages import FEEDS
from pretrace.errors import TextsError
from pretrace.registry import Registry, corpora
from pretrace.settings import option
from pretrace.types import Card, Corpus, Text

GIVEN = "texts given"
"""The name of a corpus whose texts were given as Python objects."""

Texts = str | Path | Iterable[Any]
"""What names or holds texts: all that `open_corpus` takes."""

_EXPRESSION = re.compile(r"\s*([A-Za-z_]\w*)\s*(\(.*\))?\s*", re.DOTALL)


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


def corpus_of(texts: Corpus | Texts, name: str = GIVEN) -> Corpus:
    """The corpus that is given, or that of texts which `open_corpus` takes; `name` is that of texts given as Python
    objects. Raises what `open_corpus` raises."""
    if isinstance(texts, Corpus):
        return texts
    opened = open_corpus(texts)
    return replace(opened, name=name) if opened.name == GIVEN else opened


def open_corpus(source: Texts, columns: Columns = USUAL) -> Corpus:
    """The corpus a source names, or the texts that are given.

    `-` is standard input; `hub:NAME[:CONFIG][:SPLIT]` a data set of the Hugging Face hub; a path that
    exists a file or folder; `stdlib` or `stdlib(min_chars=500)` a corpus that is built. A path that
    exists comes before a corpus of the same name, so that a file of one's own is never passed over;
    write `stdlib()` for the corpus and `./-` for a file called `-`.

    A list (or any iterable, such as a column of a table) holds texts as strings, or rows as dicts, with the columns and
    rules of a JSON lines file: `[{"text": "…", "label": 1, "id": "a", "group": "book 1"}]`. A table of pandas, polars,
    pyarrow or datasets holds such rows. Such a corpus is called "texts given".

    Raises TextsError where there is no such source or an item is neither text nor row, ExpressionError where a
    parameter of a built corpus is wrong.
    """
    if isinstance(source, Path):
        return read_texts(source, columns)
    if not isinstance(source, str):
        return Reading(columns, GIVEN).corpus(_given(source), GIVEN)
    if source == "-":
        return _read_stream(standard_input(), columns)
    if source.startswith("hub:"):
        return read_hub(source.removeprefix("hub:"), columns)
    if source.strip() and found(Path(source)):
        return read_texts(source, columns)
    return _built(source, columns)


def operand(source: str) -> str:
    """The source as a word of a command line: `./-a.txt` for `-a.txt`, which would be read as an option."""
    return f"./{source}" if source.startswith("-") and source != "-" else source


def known_corpora() -> Registry[Corpus]:
    """The registry of corpora that are built by name: `name in known_corpora()`, or all names in order.

    A builder keeps heavy packages inside its function, since listing the corpora imports all of them.
    """
    return corpora


def _given(items: object) -> Iterator[Row]:
    """The rows of texts or rows that are given as Python objects."""
    items = _rows_of_table(items)
    if isinstance(items, set | frozenset):
        raise TextsError("a set was given, which has no order: give a list, such as sorted(texts).")
    if isinstance(items, Mapping | bytes) or not isinstance(items, Iterable):
        raise TextsError(
            f"{kind_of(items)} was given where texts were wanted: give a path, or a list of strings or of rows "
            "such as {'text': '…', 'label': 1}."
        )
    for number, item in enumerate(items):
        if isinstance(item, str | bytes):
            yield Row({"text": item})
        elif isinstance(item, Mapping):
            yield Row(
                {name: cell.item() if isinstance(cell, np.generic) else cell for name, cell in item.items()}
            )
        else:
            raise TextsError(
                f"{GIVEN}: row {number} is {kind_of(item)}; give a string, or a dict such as "
                "{'text': '…', 'label': 1}."
            )


def _rows_of_table(items: Any) -> Any:
    """The rows of a table of pandas, polars or pyarrow, an empty cell as None; anything else as it is."""
    if not hasattr(items, "columns"):
        return items  # the rows of datasets.Dataset come one at a time, as dicts
    if hasattr(items, "to_pylist"):  # pyarrow
        return items.to_pylist()
    if hasattr(items, "to_dicts"):  # polars
        return items.to_dicts()
    if hasattr(items, "notna"):  # pandas, whose empty cells are NaN
        return items.astype(object).where(items.notna(), None).to_dict("records")
    raise TextsError(
        f"{kind_of(items)} was given where texts were wanted: give its rows, as a list of dicts."
    )


def _built(source: str, columns: Columns) -> Corpus:
    written = _EXPRESSION.fullmatch(source)
    name = written[1] if written else ""
    if name not in corpora:
        near = difflib.get_close_matches(name, corpora, n=3) if name else []
        cure = (
            f"did you mean the corpus {' or '.join(near)}?"
            if near
            else "check the path, or give - for standard input, hub:NAME for a data set of the hub, or the "
            f"name of a built corpus: {', '.join(corpora)}."
        )
        raise TextsError(f"there is no file, folder or corpus {source[:200]!r}; {cure}")
    if columns.named:
        raise TextsError(
            f"{name} is a built corpus and has no columns to choose from, found {min(columns.named)!r}: leave it out."
        )
    return replace(corpora.make(source), name=source.strip())


TABLES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".gz")
_GUESSED_FROM, _LEAST_LETTERS = 100, 20


class _AnyColumn(Reading):
    """A reading that takes all columns of a table, whether one of them is the text or not."""

    def pick(self, found: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(found))


def longest_texts(path: Path) -> str:
    """The column that has the longest texts in the first rows of a table in which none is called text or input; ""
    for anything else, and where no column has long ones."""
    if not path.is_file() or ".txt" in path.suffixes or not path.name.lower().endswith(TABLES):
        return ""
    lengths: Counter[str] = Counter()
    rows = list(itertools.islice(rows_of(path, _AnyColumn(USUAL, str(path))), _GUESSED_FROM))
    for row in rows:
        if {*TEXT_NAMES} & row.fields.keys():
            return ""
        lengths.update({name: len(cell) for name, cell in row.fields.items() if isinstance(cell, str)})
    longest, letters = max(lengths.items(), key=lambda one: one[1], default=("", 0))
    return longest if letters >= _LEAST_LETTERS * len(rows) else ""


def read_texts(path: str | Path, columns: Columns = USUAL) -> Corpus:
    """The texts of a file or folder, in order; `name` is the file's name without its endings.

    Formats, by the ending of the name, each also gzipped (`.gz`): `.jsonl` and `.ndjson`, `.json` (a list
    of objects), `.csv` and `.tsv` with a header, `.parquet`, `.txt` (a text a line, blank lines skipped),
    and a folder of `.txt` files (each one text, just as it stands, its relative path the id). Documents are one text
    a file, alone or in a folder: `.md`, `.html`, `.docx` and `.pdf` (the last two with the extra `documents`). Of a
    feed saved as `.xml`, `.rss` or `.atom` each entry is a text, with a column `date`. A text may be empty, not that
    of a document. The id is the row number from 0 where there is none. Columns that `Columns` does not name are not
    read, since millions of rows must fit into memory. What was replaced or skipped is told in `notes`. Raises
    TextsError where the file, a column, a label or an id is not as it should be, MissingPackageError for a document
    whose reader is not installed.
    """
    path = Path(path)
    _refuse_missing(path)
    reading = Reading(columns, shown(path))
    return reading.corpus(rows_of(path, reading), _name_of_path(path))


def stream_texts(path: str | Path, columns: Columns = USUAL) -> Iterator[str]:
    """The texts of a file or folder one at a time, without labels and ids, for files larger than memory.

    The same formats and errors as `read_texts`; raised when the row at fault is reached. Memory does not
    grow with the file, save for `.json`, a single list that must be parsed as a whole.
    """
    path = Path(path)
    _refuse_missing(path)
    reading = Reading(columns.text_alone, shown(path))
    return reading.strings(rows_of(path, reading))


def further_columns(source: str, columns: Columns, corpus: Corpus) -> dict[str, dict[str, object]]:
    """What the rows of a file hold besides text, id and group, by the ids of its texts; nothing for sources that are
    no table, and for columns that `columns.more` names."""
    path = Path(source)
    if not found(path) or not path.is_file():
        return {}
    reading = EveryColumn(columns, shown(path))
    further = {}
    read = {role: name or role for role, name in columns.recorded.items() if role in ("id", "group")}
    for text, row in zip(corpus.texts, rows_of(path, reading), strict=False):
        read["text"] = read.get("text") or columns.pick_text(tuple(row.fields), reading.source)
        left = {*read.values(), *columns.more}
        further[text.id] = {name: value for name, value in row.fields.items() if name not in left}
    return further


def _read_stream(stream: BinaryIO, columns: Columns = USUAL) -> Corpus:
    """The texts of an open stream, as standard input is: JSON lines where the first line that is not blank
    is a JSON object, a text a line otherwise. The stream stays open."""
    reading = Reading(columns, "standard input")
    buffered = io.BufferedReader(cast(Any, stream))
    try:
        with unreadable_explained(reading.source):
            return reading.corpus(sniffed_rows(buffered, reading), reading.source)
    finally:
        buffered.detach()  # or it would close standard input when it goes


def shown(path: Path) -> str:
    """A path as messages and reports print it; a name that is no valid Unicode must not stop them."""
    return mended(str(path))[0]


def _refuse_missing(path: Path) -> None:
    """TextsError where there is no such file or folder."""
    if not found(path):
        raise TextsError(f"there is no file or folder {shown(path)!r}: check the path.")


def found(path: Path) -> bool:
    """Whether a path exists; False for what cannot be a path at all."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _name_of_path(path: Path) -> str:
    """The name of the corpus in a file or folder: the file's without its endings."""
    name = shown(Path(path.resolve().name if path.is_dir() else path.name))
    stem = name[:-3] if name.lower().endswith(".gz") else name
    ending = Path(stem).suffix
    return stem.removesuffix(ending) if ending.lower() in (*FORMATS, *DOCUMENTS, *FEEDS) else stem


# Sources as streams: their texts read one at a time, as often as wanted, in memory that does not grow with them.
#
# Files and folders are opened anew for each reading. What can be read only once, standard input and pipes, is
# copied to a temporary file (TMPDIR) first. Lists, built corpora and `.json` files are in memory as a whole.


OnUnreadable = Callable[[Unreadable], object]
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

    def texts(self, tell: OnUnreadable | None = None) -> Iterator[Text]:
        """The texts in order, from the first one again at each call; ids may repeat. TextsError for the first record
        that cannot be read, unless such records are left out: then `tell` is given each of them."""
        reading = Reading(self._columns, self.source, (tell or _silent) if self._skip else None)
        yield from reading.stream(self._rows(reading))
        self.notes = reading.notes

    def whole(self, most: int, tell: OnUnreadable | None = None) -> Corpus | None:
        """The corpus, where it has at most so many texts; None otherwise. TextsError for repeated ids."""
        unread: list[Unreadable] = []
        texts = tuple(itertools.islice(self.texts(unread.append), most + 1))
        if len(texts) > most:
            return None
        for one in unread if tell else ():
            cast(OnUnreadable, tell)(one)
        refuse_repeated_ids([text.id for text in texts], self.source)
        return Corpus(self.name, texts, self.source, self.notes, self.card)


class _GivenStream(TextStream):
    """The texts of a corpus that is in memory."""

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus.name, corpus.source, USUAL, lambda reading: iter(()))
        self.corpus, self.card, self.notes = corpus, corpus.card, corpus.notes

    def texts(self, tell: OnUnreadable | None = None) -> Iterator[Text]:
        """The texts in order."""
        return iter(self.corpus.texts)

    def whole(self, most: int, tell: OnUnreadable | None = None) -> Corpus | None:
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
        return _GivenStream(open_corpus(source, columns))
    _refuse_missing(path)
    rows: Rows = lambda reading: rows_of(path, reading)  # noqa: E731 - one of two ways to read
    if path.is_fifo():
        with unreadable_explained(shown(path)), path.open("rb") as pipe:
            rows = _copied(pipe)
    return TextStream(_name_of_path(path), shown(path), columns, rows, skip_unreadable=skip_unreadable)


def _copied(stream: BinaryIO) -> Rows:
    """Rows of a stream that can be read only once, from a copy of it on disk that goes with the process."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - it is read until the stream itself goes
    with unreadable_explained("standard input"):
        shutil.copyfileobj(stream, copy, 1 << 20)
    copy.flush()

    def rows(reading: Reading) -> Iterator[Row]:
        with os.fdopen(os.dup(copy.fileno()), "rb") as again:
            again.seek(0)
            yield from sniffed_rows(again, reading)

    return rows


def _silent(unreadable: Unreadable) -> None:
    """Nothing: it was told of before."""
