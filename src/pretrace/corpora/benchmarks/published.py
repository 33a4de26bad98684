"""Tables in the schema their authors published, from the hub or from files a user has, by the rules of all texts."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from pretrace.corpora.columns import Columns, distinct, kind_of, listed, name_of
from pretrace.corpora.folders import holds_facts, is_hidden, walk
from pretrace.corpora.formats import FORMATS, ending_of
from pretrace.corpora.opening import path_exists, resolve_source, shown
from pretrace.corpora.packing import without_packing
from pretrace.corpora.reading import SourceRow, TextReading, counted, refuse_repeated_ids
from pretrace.errors import TextsError
from pretrace.types import Card, Corpus, Text

Cells = Mapping[str, object]
"""The cells of one row, by column."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a published table.

    `text`, `label`, `id` and `group` name the columns of those roles, "" where the table has none of that kind;
    all that are named must be there, and those `needed` as well. `meta` ones go to `Text.meta` where present.
    `derive` adds the columns `derived`, made of the others (`used` ones where present), such as a passage that
    another column names; it raises ValueError, in words that fit after "row 3: ", for a cell that makes no sense.
    `hub` is its data set there, and of several tables in a folder the one called `preferred` is it.

    Where the two sides lie apart, `splits` are theirs on the hub, and files are theirs whose names, or those of folders
    above them, begin with one of `members` or `nonmembers`; a part of a path that begins with one of `neither` tells
    nothing. `kinds` names the parts that can be asked for, a mapping where they are called otherwise elsewhere.
    """

    benchmark: str
    text: str
    label: str = "label"
    id: str = ""
    group: str = ""
    needed: tuple[str, ...] = ()
    meta: tuple[str, ...] = ()
    used: tuple[str, ...] = ()
    derive: Callable[[Cells], Cells] | None = None
    derived: tuple[str, ...] = ()
    hub: str = ""
    preferred: str = ""
    members: tuple[str, ...] = ()
    nonmembers: tuple[str, ...] = ()
    neither: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    kinds: Any = ()

    @property
    def wanted(self) -> tuple[str, ...]:
        """The columns that must be in the table."""
        roles = (self.text, self.label, self.id, self.group, *self.needed)
        return tuple(dict.fromkeys(name for name in roles if name and name not in self.derived))

    def check(self, columns: Iterable[str], where: str) -> None:
        """Raise TextsError, naming what was wanted and found, unless every wanted column is there."""
        have = list(columns)
        if missing := [name for name in self.wanted if name not in have]:
            raise TextsError(
                f"{where} lacks {listed(missing)}: {self.benchmark} is published with the columns "
                f"{listed(self.wanted)}, found {listed(have)}; give a file in that form."
            )


def read_published(source: Path | str, schema: Schema) -> Corpus:
    """The texts of one table: a Path is a file in any format of `open_corpus`, a str a data set of the hub.

    The id is the row number (from 0) where the schema names none. Raises TextsError where the table cannot be had, is
    empty, lacks a column, or a cell makes no sense.
    """
    _, called, rows = resolve_source(f"hub:{source}" if isinstance(source, str) else source)
    reading = _Published(schema, called)
    texts = tuple(reading.stream(reading.derived(rows(reading))))
    refuse_repeated_ids([text.id for text in texts], called)
    return Corpus(schema.benchmark, texts, called, reading.notes)


class _Published(TextReading):
    """A reading that wants the columns of a schema, and makes more of them than text, label, id and group."""

    def __init__(self, schema: Schema, source: str) -> None:
        super().__init__(Columns(schema.text, schema.label, schema.id, schema.group), source)
        self.schema = schema

    def pick(self, found: Sequence[str], source: str) -> tuple[str, ...]:
        self.schema.check(found, source)
        more = (name for name in (*self.schema.meta, *self.schema.used) if name in found)
        return distinct((*self.schema.wanted, *more), found, source)

    def derived(self, rows: Iterator[SourceRow]) -> Iterator[SourceRow]:
        """The rows with the columns that are made of others."""
        for number, row in enumerate(rows):
            where = self.where(number, row)
            self.schema.check(row.fields, where)
            try:
                fields = {**row.fields, **(self.schema.derive(row.fields) if self.schema.derive else {})}
                for name in self.schema.meta:
                    if isinstance(value := fields.get(name), list | dict | tuple):
                        raise ValueError(
                            f"the column {name!r} should hold a word or a number and holds {kind_of(value)}"
                        )
            except ValueError as error:
                raise TextsError(f"{where}: {error}.") from None
            yield row._replace(fields=fields)

    def meta(self, fields: Cells) -> dict[str, str]:
        return {name: name_of(fields[name]) for name in self.schema.meta if name in fields}


@cache
def _facts(file: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))


def schema_of(name: str, derive: Callable[[Cells], Cells] | None = None) -> Schema:
    """The schema of a benchmark (`schemas.toml`), with what makes its `derived` columns."""
    facts = _facts("schemas.toml")[name]
    plain: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in facts.items()}
    return Schema(**plain, derive=derive)


def read_table(schema: Schema, path: str | None) -> Corpus:
    """The one table at a path, or that of the hub where none is given."""
    return read_published(schema.hub if path is None else one_table(Path(path), schema.preferred), schema)


def read_benchmark(
    name: str,
    path: str | None,
    derive: Callable[[Cells], Cells] | None = None,
    *,
    column: str = "",
    value: object = None,
) -> Corpus:
    """A benchmark of one table with its card, and of it the texts with a value in a column (None: all)."""
    return add_card(keep_where(read_table(schema_of(name, derive), path), column, value), name)


def refuse_one_sided(corpus: Corpus, members: str, nonmembers: str) -> None:
    """TextsError unless there are texts of both labels, which the words describe."""
    for side, words in ((True, members), (False, nonmembers)):
        if not any(text.member is side for text in corpus.texts):
            raise TextsError(f"{corpus.source} holds no text with {words}: give both sides, as published.")


def join_parts(parts: Mapping[str, Corpus], name: str, source: str) -> Corpus:
    """One corpus of several, whose texts are called PART/ID after the key of their part ("" for no prefix)."""
    texts = [
        replace(text, id=f"{key}/{text.id}" if key else text.id)
        for key, part in parts.items()
        for text in part.texts
    ]
    notes = [f"{key}: {note}" if key else note for key, part in parts.items() for note in part.notes]
    return Corpus(name, tuple(texts), source, tuple(notes))


def keep_texts(corpus: Corpus, wanted: Callable[[Text], bool], what: str, *, sides: bool = False) -> Corpus:
    """The texts that are wanted, with a note on how many; TextsError where there are none of `what`, or with `sides`
    where one side has none."""
    texts = tuple(text for text in corpus.texts if wanted(text))
    for side in (MEMBERS, NONMEMBERS) if sides else ():
        if not any(text.member is (side == MEMBERS) for text in texts):
            raise TextsError(
                f"{corpus.source} holds no {side} of {what}: ask for another part, or add theirs."
            )
    if not texts:
        raise TextsError(f"{corpus.source} holds no text with {what}: ask for another part, or for all.")
    if sides and len(texts) == len(corpus):
        return corpus
    note = f"{len(texts)} of {len(corpus)} texts taken: those {'of' if sides else 'with'} {what}."
    return replace(corpus, texts=texts, notes=(*corpus.notes, note))


def keep_where(corpus: Corpus, column: str, value: object, what: str = "") -> Corpus:
    """The texts with a value in a column, whatever its case; all of them for None."""
    wanted, what = str(value).casefold(), what or f"{column} {value}"
    if value is None:
        return corpus
    return keep_texts(corpus, lambda text: text.meta[column].strip().casefold() == wanted, what)


def card_of(name: str, title: str = "") -> Card:
    """The card of a benchmark (`cards.toml`), under another title where one is given."""
    facts = _facts("cards.toml")[name]
    return Card(**{**facts, "title": title or facts["title"], "flaws": tuple(facts["flaws"])})


def add_card(corpus: Corpus, name: str, title: str = "") -> Corpus:
    """The corpus under its benchmark's name, with its card."""
    return replace(corpus, name=name, card=card_of(name, title))


def find_tables(folder: Path) -> list[Path]:
    """The data files at a path: the file itself, or all in a folder and those below it, in the order of their
    paths; hidden ones and texts for people (README.txt) are left aside. TextsError where there is none."""
    if not path_exists(folder):
        raise TextsError(f"there is no file or folder {shown(folder)!r}: check the path.")
    if not folder.is_dir():
        return [folder]
    files = [
        path
        for name, path in walk(folder).files.items()
        if ending_of(name) in FORMATS
        and ending_of(name) != ".txt"
        and not (holds_facts(name) or is_hidden(name))
    ]
    if not files:
        endings = ", ".join(ending for ending in FORMATS if ending != ".txt")
        raise TextsError(f"{shown(folder)} holds no data file: it should hold one that ends in {endings}.")
    return files


def one_table(path: Path, preferred: str = "") -> Path:
    """The one data file at a path; of several the one whose name without endings is `preferred`."""
    files = find_tables(path)
    named = [file for file in files if stem(file) == preferred]
    if len(files) > 1 and len(named) != 1:
        names = [shown(file.relative_to(path)) for file in files]
        raise TextsError(
            f"{shown(path)} holds {len(files)} data files, {listed(names)}: name the one to read."
        )
    return named[0] if len(files) > 1 else files[0]


def stem(path: Path) -> str:
    """The name of a file without its endings."""
    return Path(without_packing(path.name)).stem


# Members and non-members in files of their own, told apart by the names of the files and folders.


MEMBERS, NONMEMBERS = "members", "nonmembers"


def read_both_sides(
    schema: Schema, path: str | None, part: str = "", inner: Callable[[str], bool] = lambda name: False
) -> Corpus:
    """Both sides as one corpus: two splits of the `part` of the data set on the hub, or what lies at a path.

    That is a folder, the one in it whose name is `inner` where there is one, or a single file with a column `label` (or
    the one that the schema names). Ids are SIDE/FILE/ROW (the file left out where a side has one). A note names the
    files that tell no side. TextsError where a side has no file, or a file tells both.
    """
    sources: dict[str, tuple[str, Path | str]] = {}  # by the name of the part: its side, and where it lies
    others: list[Path] = []
    if path is None:
        home = f"{schema.hub}{part}"
        splits = zip((MEMBERS, NONMEMBERS), schema.splits, strict=True)
        sources, whole = (
            {side: (side, f"{home}:{split}") for side, split in splits},
            f"hub:{home.rstrip(':')}",
        )
    else:
        folder = Path(path)
        if folder.is_dir():
            below = (one for one in sorted(folder.iterdir()) if one.is_dir() and inner(one.name))
            folder = next(below, folder)
        files, whole = find_tables(folder), shown(folder)
        by_side: dict[str, list[Path]] = {MEMBERS: [], NONMEMBERS: [], "": []}
        for file in files if folder.is_dir() else ():
            by_side[_side_of(file.relative_to(folder), schema)].append(file)
        others = by_side.pop("")
        if not folder.is_dir() or (len(files) == 1 and (others or schema.label)):
            return read_published(files[0], replace(schema, label=schema.label or "label"))
        for side, found in by_side.items():
            if not found:
                wanted = schema.members if side == MEMBERS else schema.nonmembers
                raise TextsError(
                    f"{whole} holds no file of {side}: their names, or their folders' names, begin with "
                    f"{' or '.join(wanted)}; a single file needs a column 'label'."
                )
            for file in found:
                own = side if len(found) == 1 else f"{side}/{file.relative_to(folder).as_posix()}"
                sources[own] = side, file
    parts = {}
    for name, (side, source) in sources.items():
        corpus = read_published(source, schema)
        texts = tuple(replace(text, member=side == MEMBERS) for text in corpus.texts)
        parts[name] = replace(corpus, texts=texts)
    corpus = join_parts(parts, schema.benchmark, whole)
    if not others:
        return corpus
    note = (
        f"{counted(len(others), 'file')} not read, whose names tell no side, such as "
        f"{shown(others[0].relative_to(folder))}."
    )
    return replace(corpus, notes=(*corpus.notes, note))


def _side_of(file: Path, schema: Schema) -> str:
    """The side of a file below the folder that was given, "" where no part of its path tells; TextsError where one part
    tells this side and another that one."""
    told: dict[str, str] = {}
    for part in file.parts:
        if not (low := part.lower()).startswith(schema.neither):
            if low.startswith(schema.nonmembers):
                told.setdefault(NONMEMBERS, part)
            elif low.startswith(schema.members):
                told.setdefault(MEMBERS, part)
    if len(told) > 1:
        raise TextsError(
            f"{shown(file)} may hold members ({shown(Path(told[MEMBERS]))!r}) or non-members "
            f"({shown(Path(told[NONMEMBERS]))!r}): rename the file or its folders so that they agree."
        )
    return next(iter(told), "")
