"""From what a user names or gives to a corpus (files, folders, standard input, the hub, built corpora, lists), and what
a run records of it."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from pretrace.corpora.documents import SOURCE
from pretrace.corpora.folders import folder_rows, matches
from pretrace.corpora.formats import (
    ENDINGS,
    ending_of,
    file_rows,
    sniffed_rows,
    standard_input,
    unpack_stream,
    unreadable_explained,
    without_packing,
)
from pretrace.corpora.reading import (
    USUAL,
    Columns,
    SourceRow,
    TextReading,
    Unreadable,
    kind_of,
    messages_of,
    refuse_repeated_ids,
    shown,
)
from pretrace.errors import MissingPackageError, TextsError, suggest
from pretrace.registry import Registry, corpora
from pretrace.results.wording import say
from pretrace.settings import option
from pretrace.types import Corpus, Text

GIVEN = "texts given"
"""The name of a corpus whose texts were given as Python objects."""

Texts = str | Path | Iterable[Any]
"""What names or holds texts: all that `open_corpus` takes."""

_EXPRESSION = re.compile(r"\s*([A-Za-z_]\w*)\s*(\(.*\))?\s*", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Which texts, and where in their file things stand; `given` is what `open` gives where they were read already."""

    texts: str = option(
        help="A table (.jsonl, .csv, .parquet, …, also packed), a folder of tables or of documents (.txt, .md, .html, "
        ".docx, .pdf, .epub), - for standard input, hub:NAME[:CONFIG][:SPLIT], or a corpus such as stdlib (see "
        "`pretrace list`).",
        metavar="TEXTS",
        path="in",
        essential=True,
    )
    columns: Columns = field(default_factory=Columns)
    given: Corpus | None = None

    def open(self) -> Corpus:
        """The texts; TextsError where they cannot be read."""
        return open_corpus(self.texts, self.columns) if self.given is None else self.given

    def stream(self, *, skip_unreadable: bool = False) -> TextStream:
        """The same texts, to be read one at a time."""
        return open_stream(self.texts, self.columns, skip_unreadable=skip_unreadable)

    def with_text_column(self, note: Callable[[str], object]) -> Source:
        """The texts with the column that they are taken from (`choose_text`), noted where nobody named it."""
        columns, said = choose_text(self.texts, self.columns)
        if said:
            note(said)
        return replace(self, columns=columns)


def corpus_of(texts: Corpus | Texts, name: str = GIVEN) -> Corpus:
    """The corpus that is given, or that of texts which `open_corpus` takes, called `name` for Python objects."""
    if isinstance(texts, Corpus):
        return texts
    opened = open_corpus(texts)
    return replace(opened, name=name) if opened.name == GIVEN else opened


def open_corpus(source: Texts, columns: Columns = USUAL) -> Corpus:
    """The corpus a source names, or the texts that are given. `-` is standard input; `hub:NAME[:CONFIG][:SPLIT]` a data
    set of the Hugging Face hub; a path that exists a file or folder; `stdlib` or `stdlib(min_chars=500)` a corpus that
    is built. A path that exists comes before a corpus of the same name; write `stdlib()` for the corpus and `./-` for a
    file called `-`. A list, any iterable or a table of pandas, polars, pyarrow or datasets holds strings, or rows by
    the rules of JSON lines: `[{"text": "…", "label": 1, "id": "a", "group": "book 1"}]`. Raises TextsError where there
    is no such source or an item is neither text nor row, ExpressionError where a parameter of a built corpus is
    wrong."""
    stream = open_stream(source, columns)
    return stream._corpus_of(tuple(stream.texts()))


Rows = Callable[[TextReading], Iterator[SourceRow]]
OnUnreadable = Callable[[Unreadable], object]


def _silent(_: Unreadable) -> None: ...  # it was told of before


def resolve_source(source: Texts, columns: Columns = USUAL) -> tuple[str, str, Rows]:
    """What a corpus is named, what messages call its source, and its rows: of a file, a folder, an address that fsspec
    opens, `-` (standard input), a data set of the hub, which is opened, or of Python objects."""
    if not isinstance(source, str | Path):
        return GIVEN, GIVEN, lambda reading: _given(source)
    if isinstance(source, str) and source.startswith("hub:"):
        name, table = _open_table(source.removeprefix("hub:"), columns.split)
        found, called = table.column_names, f"hub:{name}"
        return name, called, lambda reading: _given(table.select_columns([*reading.pick(found, called)]))
    if source == "-":
        return "standard input", "standard input", _rows_of_standard_input()
    path = Path(source)
    if isinstance(source, str) and "://" in source and not _path_exists(path):
        return _name_of_path(Path(source.partition("?")[0])), source, partial(file_rows, source)
    refuse_missing(path)
    return _name_of_path(path), shown(path), partial(_path_rows, path)


def every_row(
    source: str | Path, columns: Columns = USUAL, unreadable: OnUnreadable | None = None
) -> Iterator[SourceRow]:
    """The rows of a file, folder or address with all their columns; errors as of `TextReading`."""
    _, called, rows = resolve_source(source, columns)
    return rows(TextReading(columns, called, unreadable, every_column=True))


def _path_rows(path: Path, reading: TextReading) -> Iterator[SourceRow]:
    columns = reading.columns
    with unreadable_explained(reading.source):
        if path.is_dir():
            yield from folder_rows(path, reading)
            return
        if columns.split is not None and not columns.give_way:
            raise TextsError(f"{reading.source} is a file, and has no splits: leave out --reading split.")
        chosen = columns.files is not None and matches(path.name, columns.files)
        yield from file_rows(path, reading, SOURCE if chosen and ending_of(path.name) not in ENDINGS else "")


def _rows_of_standard_input() -> Rows:
    """The rows of what can be read only once: from a copy on disk (TMPDIR) that goes with the process."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - it is read until the rows themselves go
    with unreadable_explained("standard input"):
        shutil.copyfileobj(standard_input(), copy, 1 << 20)
        copy.flush()

    def rows(reading: TextReading) -> Iterator[SourceRow]:
        with os.fdopen(os.dup(copy.fileno()), "rb") as again, unreadable_explained(reading.source):
            again.seek(0)
            yield from sniffed_rows(unpack_stream(again, reading.source), reading)

    return rows


def _names_corpus(source: Texts) -> TypeGuard[str]:
    """Whether a word names a corpus that is built, and not something that has rows."""
    if not isinstance(source, str) or source == "-" or source.startswith("hub:") or "://" in source:
        return False
    return not (source.strip() and _path_exists(Path(source)))


def operand(source: str) -> str:
    """The source as a word of a command line: `./-a.txt` for `-a.txt`, which would be read as an option."""
    return f"./{source}" if source.startswith("-") and source != "-" else source


def known_corpora() -> Registry[Corpus]:
    """The registry of corpora built by name. Builders import heavy packages inside: listing imports all."""
    return corpora


def _given(items: object) -> Iterator[SourceRow]:
    """The rows of texts or rows that are given as Python objects; an empty cell of a table is None."""
    table: Any = items
    if hasattr(table, "to_pylist"):  # pyarrow
        items = table.to_pylist()
    elif hasattr(table, "to_dicts"):  # polars
        items = table.to_dicts()
    elif hasattr(table, "columns") and hasattr(table, "notna"):  # pandas, whose empty cells are NaN
        items = table.astype(object).where(table.notna(), None).to_dict("records")
    if isinstance(items, Mapping | bytes | set | frozenset) or not isinstance(items, Iterable):
        raise TextsError(say("texts.no_items", what=kind_of(items)))
    for number, item in enumerate(items):
        if isinstance(item, str | bytes):
            yield SourceRow({"text": item})
        elif isinstance(item, Mapping):
            yield SourceRow(
                {name: cell.item() if isinstance(cell, np.generic) else cell for name, cell in item.items()}
            )
        else:
            raise TextsError(say("texts.no_row", source=GIVEN, number=number, what=kind_of(item)))


def _built(source: str, columns: Columns) -> Corpus:
    written = _EXPRESSION.fullmatch(source)
    name = written[1] if written else ""
    if name not in corpora:
        near = suggest(name or source[:200], corpora if name else ())
        cure = f".{near}" if near else say("texts.no_corpus", corpora=", ".join(corpora))
        raise TextsError(f"there is no file, folder or corpus {source[:200]!r}{cure}")
    if named := columns.required:
        raise TextsError(f"{name} is built and has no columns to choose, found {min(named)!r}: leave it out.")
    return replace(corpora.make(source), name=source.strip())


_GUESSED_FROM, _LEAST_LETTERS = 100, 20
_NAMES_FROM, _LONGEST_NAME = 2_000, 200


def choose_text(source: str, columns: Columns) -> tuple[Columns, str]:
    """The columns with that of the text chosen, and a sentence where nobody named it: `text`, `input` or a
    conversation, else that with the longest texts in the first rows; as they are without long texts."""
    path = Path(source)
    if columns.named_texts or not _path_exists(path) or not (path.is_file() or path.is_dir()):
        return columns, ""
    looked = _rows_to_look_at(path, columns)
    rows = [next(looked, {})]
    with suppress(TextsError):
        columns.pick_texts(rows[0], "")
        return columns, ""
    rows += itertools.islice(looked, _GUESSED_FROM - 1)
    lengths: Counter[str] = Counter()
    for name, cell in (one for fields in rows for one in fields.items()):
        words = " ".join(messages_of(cell) or ()) or cell
        # a comma parts the names of columns
        lengths[name] += len(words) if isinstance(words, str) and "," not in name else 0
    [(longest, letters)] = lengths.most_common(1) or [("", 0)]
    if not longest or letters < _LEAST_LETTERS * len(rows):
        return columns, ""
    said = f"the texts are taken from the column {longest!r}, which has the longest; --columns text names another."
    return replace(columns, text=longest), said


def repeated_column(path: Path, fewest: int) -> str:
    """The column of a table whose values repeat as names of documents do, at least `fewest`; "" without one."""
    if not path.is_file():
        return ""
    names: dict[str, list[object]] = {}
    rows = 0
    for fields in itertools.islice(_rows_to_look_at(path, USUAL), _NAMES_FROM):
        rows += 1
        for name, cell in fields.items():
            if type(cell) in (int, str) and 0 < len(str(cell)) < _LONGEST_NAME:
                names.setdefault(name, []).append(cell)
    kinds = {name: len({*cells}) for name, cells in names.items() if len(cells) == rows}
    able = [name for name, number in kinds.items() if fewest <= number <= rows / 2]
    return max(able, key=kinds.__getitem__, default="")


def _rows_to_look_at(path: Path, columns: Columns) -> Iterator[Mapping[str, object]]:
    """The cells of the rows that can be read."""
    return (row.fields for row in every_row(path, columns, _silent) if not row.fault)


def further_columns(source: str, columns: Columns, corpus: Corpus) -> dict[str, dict[str, object]]:
    """What a table's rows hold besides text, id, group and `columns.more`, by id; nothing for other sources."""
    path = Path(source)
    if not _path_exists(path) or not path.is_file():
        return {}
    further = {}
    read = columns.others(())
    for text, row in zip(corpus.texts, every_row(path, columns), strict=False):
        left = {read["id"], read["group"], *columns.pick_texts(row.fields.keys(), source), *columns.more}
        further[text.id] = {name: value for name, value in row.fields.items() if name not in left}
    return further


def refuse_missing(path: Path) -> None:
    """TextsError where there is no such file or folder."""
    if not _path_exists(path):
        raise TextsError(f"there is no file or folder {shown(path)!r}: check the path.")


def _path_exists(path: Path) -> bool:
    """Whether a path exists; False for what cannot be a path at all."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _name_of_path(path: Path) -> str:
    """The name of the corpus in a file or folder: the file's without its endings."""
    name = without_packing(shown(path.resolve().name if path.is_dir() else path.name))
    return name.removesuffix(Path(name).suffix) if ending_of(name) in ENDINGS else name


@dataclass(eq=False)
class TextStream:
    """The texts of one source, with `name`, `source` and `card` of its `Corpus`, read one at a time, as often as
    wanted. With `skip_unreadable` a record that cannot be read is left out, and `texts` tells of it."""

    name: str
    source: str
    rows: Rows = lambda reading: iter(())
    columns: Columns = USUAL
    skip_unreadable: bool = False
    card: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()
    """What was mended and left out; whole once `texts` was read to its end."""
    given: Corpus | None = None
    """The corpus whose texts these are, where it is in memory."""

    @classmethod
    def of(cls, corpus: Corpus) -> TextStream:
        """The texts of a corpus that is in memory."""
        return TextStream(corpus.name, corpus.source, card=corpus.card, notes=corpus.notes, given=corpus)

    def texts(self, tell: OnUnreadable | None = None) -> Iterator[Text]:
        """The texts in order, from the first one again at each call; ids may repeat. TextsError for the first record
        that cannot be read, unless such are left out: then `tell` is given each."""
        if self.given is not None:
            yield from self.given.texts
            return
        skip = (tell or _silent) if self.skip_unreadable else None
        reading = TextReading(self.columns, self.source, skip)
        yield from reading.stream(self.rows(reading))
        self.notes = reading.notes

    def _corpus_of(self, texts: tuple[Text, ...]) -> Corpus:
        """The corpus of these texts of the stream. TextsError for repeated ids."""
        if self.given is not None:
            return self.given
        refuse_repeated_ids([text.id for text in texts], self.source)
        return Corpus(self.name, texts, self.source, self.notes, self.card)

    def whole(self, most: int, tell: OnUnreadable = _silent) -> Corpus | None:
        """The corpus, where it has at most so many texts; None otherwise. TextsError for repeated ids."""
        unread: list[Unreadable] = []
        texts = tuple(itertools.islice(self.texts(unread.append), most + 1))
        if len(texts) > most:
            return None
        for one in unread:
            tell(one)
        return self._corpus_of(texts)


def open_stream(source: Texts, columns: Columns = USUAL, *, skip_unreadable: bool = False) -> TextStream:
    """The stream of what a source names, as `open_corpus` reads it; errors of a record come when it is reached."""
    if _names_corpus(source):
        return TextStream.of(_built(source, columns))
    return TextStream(*resolve_source(source, columns), columns, skip_unreadable)


def content_of(text: Text) -> bytes:
    """Id, text, label and group, each after its length in 8 bytes."""
    parts = [
        part.encode("utf-8", "surrogatepass") for part in (text.id, text.text, str(text.member), text.group)
    ]
    return b"".join(len(part).to_bytes(8, "little") + part for part in parts)


def texts_hash(texts: Iterable[Text]) -> str:
    """The SHA-256 of what texts contain (`content_of`), in their order."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(content_of(text))
    return digest.hexdigest()


def record_corpus(corpus: Corpus) -> dict[str, Any]:
    """Name, source, size and hash of the texts (ids, texts and labels, in order), and a benchmark's card."""
    documents = len({text.document for text in corpus.texts})
    return record_texts(corpus, len(corpus), documents, texts_hash(corpus.texts))


def record_texts(source: Corpus | TextStream, texts: int, documents: int, sha256: str) -> dict[str, Any]:
    """The same of texts that may not be in memory."""
    return {
        "name": source.name,
        "source": source.source,
        "texts": texts,
        "documents": documents,
        "sha256": sha256,
        "notes": list(source.notes),
        **({"card": source.card} if source.card else {}),
    }


# Data sets of the Hugging Face hub, through the package `datasets`. Run here: a data set folder (`hub:./folder`), wrong
# configurations and splits, a broken file, offline mode, a hub out of reach. Not run: a download, a gated data set,
# offline mode with a full cache.

_SECONDS_TO_REACH = 3.0
"""How long the hub may take to answer before its data sets are looked for in the cache alone."""


def _open_table(address: str, split: str | None = None) -> tuple[str, Any]:
    """`NAME:CONFIG:SPLIT` and the table of `datasets` of an address `NAME[:CONFIG][:SPLIT]`; without `split` the only
    one is taken. A folder of that path comes first. MissingPackageError without `datasets`, TextsError for no such
    thing."""
    if importlib.util.find_spec("datasets") is None:
        raise MissingPackageError("datasets", "reading from the Hugging Face hub")
    import datasets

    name, *rest = address.split(":")
    if not name or len(rest) > 2:
        raise TextsError(f"'hub:{address}' is not a data set of the hub: write hub:NAME[:CONFIG][:SPLIT].")
    config, named = [*rest, "", ""][:2]
    with _hub_explained(name):
        split = named or split
        splits = [split] if split else datasets.get_dataset_split_names(name, config or None)
        if len(splits) != 1:
            said = f"has the splits {', '.join(splits)}" if splits else "does not list its splits"
            raise TextsError(f"hub:{name} {said}: name one, as in hub:{name}:{config}:test.")
        table = datasets.load_dataset(name, config or None, split=splits[0])
    return f"{name}:{config}:{splits[0]}", table


@contextmanager
def _hub_explained(name: str) -> Iterator[None]:
    """While it lasts, what the hub has not is a TextsError with a cure; one out of reach is not asked again."""
    import datasets
    from datasets.exceptions import DatasetsError
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import HfHubHTTPError

    # The hub's client has had three HTTP libraries; its own error descends from the root of the one in use.
    failures = (OSError, ValueError, RuntimeError, DatasetsError, *HfHubHTTPError.__bases__)
    before, unreachable = (datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE), ""
    try:
        if not (constants.HF_HUB_OFFLINE or Path(name).exists()):
            HfApi().dataset_info(name, timeout=_SECONDS_TO_REACH)  # `datasets` itself tries for 20 s
    except (HfHubHTTPError, ValueError):
        pass  # it answers, and `datasets` says what is wrong
    except failures as error:
        unreachable = f"the hub cannot be reached ({error})"
    if unreachable:  # `datasets` then takes what lies in its cache, or fails at once
        datasets.config.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE = True
    try:
        yield
    except failures as error:
        cause = error.__cause__ or error
        reason = unreachable or " ".join(str(cause).split()).rstrip(".") or type(cause).__name__
        raise TextsError(say("texts.hub", name=name, reason=reason[:300])) from None
    finally:
        datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE = before
