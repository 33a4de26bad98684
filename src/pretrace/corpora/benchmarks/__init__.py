"""The papers' benchmarks: tables in the schema their authors published, read by the rules of all texts.

A new benchmark is its columns, sides and address in `schemas.toml`, its card in `cards.toml`, and a function that
returns a `Corpus`, under `@corpora.add("name")`. `path` is a file, or a folder with it, in the form in which it was
published; without one the texts come from the hub. TextsError where the texts cannot be had, ExpressionError for a part
that there is not.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pretrace.corpora.folders import holds_facts, is_hidden, walk
from pretrace.corpora.formats import TABLES, ending_of, stem_of
from pretrace.corpora.opening import refuse_missing, resolve_source
from pretrace.corpora.reading import (
    Columns,
    SourceRow,
    TextReading,
    cell_of,
    distinct,
    listed,
    refuse_repeated_ids,
    shown,
)
from pretrace.errors import ExpressionError, TextsError
from pretrace.registry import corpora, require
from pretrace.results.wording import plural, say
from pretrace.types import Corpus, Text

Cells = Mapping[str, object]
"""The cells of one row, by column."""


@dataclass(frozen=True, slots=True)
class _Schema:
    """How a benchmark is published: all `columns` must be in its table. `text`, `label`, `id` and `group` name those of
    these roles ("" for none), and `meta` ones go to `Text.meta` where they are there. `derive` makes further columns of
    these and of the `used` ones, such as a passage that another column names; it raises ValueError, in words that fit
    after "row 3: ", for a cell that makes no sense. `hub` is its data set there, and of several tables in a folder the
    one called `preferred` is it. Where the two sides lie apart, `splits` are theirs on the hub, and files are theirs
    whose names, or those of folders above them, begin with one of `members` or `nonmembers`; a part of a path that
    begins with one of `neither` tells nothing. `kinds` are the parts that can be asked for."""

    benchmark: str
    columns: tuple[str, ...]
    text: str
    label: str = "label"
    id: str = ""
    group: str = ""
    meta: tuple[str, ...] = ()
    used: tuple[str, ...] = ()
    derive: Callable[[Cells], Cells] = lambda cells: {}
    hub: str = ""
    preferred: str = ""
    members: tuple[str, ...] = ()
    nonmembers: tuple[str, ...] = ()
    neither: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    kinds: Any = ()
    name: str = ""
    card: Mapping[str, Any] | None = None


def read_published(source: Path | str, schema: _Schema) -> Corpus:
    """The texts of one table: a Path is a file in any format of `open_corpus`, a str a data set of the hub. The id is
    the row number where the schema names none. TextsError where the table cannot be had or a cell makes no sense."""
    _, called, rows = resolve_source(f"hub:{source}" if isinstance(source, str) else source)
    reading = _Published(schema, called)
    texts = tuple(reading.stream(reading._derived(rows(reading))))
    refuse_repeated_ids([text.id for text in texts], called)
    return Corpus(schema.name, texts, called, reading.notes, schema.card)


class _Published(TextReading):
    """A reading that wants the columns of a schema, and makes more of them than text, label, id and group."""

    def __init__(self, schema: _Schema, source: str) -> None:
        super().__init__(Columns(schema.text, schema.label, schema.id, schema.group), source)
        self.schema = schema

    def pick(self, found: Sequence[str], source: str) -> tuple[str, ...]:
        self._check(found, source)
        more = (name for name in (*self.schema.meta, *self.schema.used) if name in found)
        return distinct((*self.schema.columns, *more), found, source)

    def _check(self, columns: Iterable[str], where: str) -> None:
        """Raise TextsError, naming what was wanted and found, unless every wanted column is there."""
        have, wanted = list(columns), self.schema.columns
        if missing := [name for name in wanted if name not in have]:
            raise TextsError(
                f"{where} lacks {listed(missing)}: {self.schema.benchmark} is published with the columns "
                f"{listed(wanted)}, found {listed(have)}; give a file in that form."
            )

    def _derived(self, rows: Iterator[SourceRow]) -> Iterator[SourceRow]:
        """The rows with the columns that are made of others."""
        for number, row in enumerate(rows):
            where = self._where(number, row)
            self._check(row.fields, where)
            try:
                yield row._replace(fields={**row.fields, **self.schema.derive(row.fields)})
            except ValueError as error:
                raise TextsError(f"{where}: {error}.") from None

    def _meta(self, fields: Cells) -> dict[str, str]:
        return {name: cell_of(fields[name]) for name in self.schema.meta if name in fields}


@cache
def _facts(file: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))


def schema_of(name: str, derive: Callable[[Cells], Cells] = lambda cells: {}, title: str = "") -> _Schema:
    """The schema of a benchmark (`schemas.toml`), with what makes further columns, and its card (`cards.toml`), under
    another title where one is given."""
    facts = _facts("schemas.toml")[name]
    plain: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in facts.items()}
    card = _facts("cards.toml")[name]
    card = {**card, "title": title or card["title"]}
    return _Schema(**plain, derive=derive, name=name, card=card)


def _read_table(schema: _Schema, path: str | None, column: str = "", value: object = None) -> Corpus:
    """The texts with a value in a column, whatever its case (None: all), of the one table at a path, or of that of the
    hub for None."""
    source = schema.hub if path is None else _one_table(Path(path), schema.preferred)
    corpus, wanted = read_published(source, schema), str(value).casefold()
    if value is None:
        return corpus
    what = f"with {column} {value}"
    return _keep_texts(corpus, lambda text: text.meta[column].strip().casefold() == wanted, what)


def join_parts(parts: Mapping[str, Corpus], schema: _Schema, source: str) -> Corpus:
    """One corpus of several, whose texts are called PART/ID after the key of their part ("" for no prefix)."""
    texts = [
        replace(text, id=f"{key}/{text.id}" if key else text.id)
        for key, part in parts.items()
        for text in part.texts
    ]
    notes = [f"{key}: {note}" if key else note for key, part in parts.items() for note in part.notes]
    return Corpus(schema.name, tuple(texts), source, tuple(notes), schema.card)


def _keep_texts(corpus: Corpus, wanted: Callable[[Text], bool], what: str) -> Corpus:
    """The texts that are wanted, with a note on how many; `what` they are in half a sentence. TextsError for none."""
    texts = tuple(text for text in corpus.texts if wanted(text))
    if not texts:
        raise TextsError(f"{corpus.source} holds no text {what}: ask for another part.")
    note = f"{len(texts)} of {len(corpus)} texts taken: those {what}."
    return replace(corpus, texts=texts, notes=(*corpus.notes, note))


def find_tables(folder: Path) -> list[Path]:
    """The data files at a path: the file itself, or all in a folder and those below it, in the order of their
    paths; hidden ones and texts for people (README.txt) are left aside. TextsError where there is none."""
    refuse_missing(folder)
    if not folder.is_dir():
        return [folder]
    files = [
        path
        for name, path in walk(folder)[0].items()
        if ending_of(name) in TABLES and not (holds_facts(name) or is_hidden(name))
    ]
    if not files:
        raise TextsError(f"{shown(folder)} holds no data file, which ends in {', '.join(TABLES)}: add one.")
    return files


def _one_table(path: Path, called: str) -> Path:
    """The data file at a path, or the one in a folder: alone there, or its name begins with `called`, then a hyphen or
    its ending."""
    files = find_tables(path)
    if len(files) == 1:
        return files[0]
    named = [file for file in files if stem_of(file.name).partition("-")[0] == called]
    if len(named) != 1:
        names = listed([shown(file.relative_to(path)) for file in files])
        raise TextsError(
            f"{shown(path)} holds {len(named)} files whose names begin with {called!r}, and should hold one; it has "
            f"{names}: name the one to read."
        )
    return named[0]


MEMBERS, NONMEMBERS = "members", "nonmembers"


def _read_both_sides(
    schema: _Schema, path: str | None, part: str = "", inner: Callable[[str], bool] = lambda name: False
) -> Corpus:
    """Both sides as one corpus: two splits of the `part` of the data set on the hub, or what lies at a path. That is a
    folder, the one in it whose name is `inner` where there is one, or a single file with a column `label` (or the one
    that the schema names). Ids are SIDE/FILE/ROW (the file left out where a side has one). A note names the files that
    tell no side. TextsError where a side has no file, or a file tells both."""
    if path is None:
        home = f"{schema.hub}{part}"
        splits = zip((f"{home}:{split}" for split in schema.splits), (MEMBERS, NONMEMBERS), strict=True)
        return _join_sides(dict(splits), schema, Path(), f"hub:{home.rstrip(':')}")
    folder = Path(path)
    if folder.is_dir():
        folder = next((one for one in sorted(folder.iterdir()) if one.is_dir() and inner(one.name)), folder)
    files = find_tables(folder)
    if len(files) == 1:
        if not schema.label:
            schema = replace(schema, label="label", columns=(*schema.columns, "label"))
        return read_published(files[0], schema)
    sides = {file: _side_of(file.relative_to(folder), schema) for file in files}
    return _join_sides(sides, schema, folder, shown(folder))


def _join_sides(sides: Mapping[Any, str], schema: _Schema, folder: Path, whole: str) -> Corpus:
    """The texts of files or splits with their sides; those of none ("") are told and not read."""
    parts = {}
    for side, wanted in ((MEMBERS, schema.members), (NONMEMBERS, schema.nonmembers)):
        sources = [source for source, told in sides.items() if told == side]
        if not sources:
            raise TextsError(
                f"{whole} holds no file of {side}: their names, or their folders' names, begin with "
                f"{' or '.join(wanted)}; a single file needs a column 'label'."
            )
        for source in sources:
            corpus = read_published(source, schema)
            texts = tuple(replace(text, member=side == MEMBERS) for text in corpus.texts)
            name = side if len(sources) == 1 else f"{side}/{source.relative_to(folder).as_posix()}"
            parts[name] = replace(corpus, texts=texts)
    corpus = join_parts(parts, schema, whole)
    if not (others := [shown(file.relative_to(folder)) for file, side in sides.items() if not side]):
        return corpus
    note = f"{plural(len(others), 'file')} not read, whose names tell no side, such as {others[0]}."
    return replace(corpus, notes=(*corpus.notes, note))


def _side_of(file: Path, schema: _Schema) -> str:
    """The side of a file below the folder, "" where its path tells none; TextsError where it tells both."""
    parts = [low for low in map(str.lower, file.parts) if not low.startswith(schema.neither)]
    told = {
        side
        for side, names in ((MEMBERS, schema.members), (NONMEMBERS, schema.nonmembers))
        if any(part.startswith(names) for part in parts)
    }
    if len(told) > 1:
        raise TextsError(
            f"{shown(file)} may hold members or non-members by its path: rename it or its folders."
        )
    return next(iter(told), "")


@corpora.add("bookmia")
def bookmia(path: str | None = None) -> Corpus:
    """Excerpts of 512 words from old books against books of 2023 (Shi et al. 2024). The group is the book."""
    return _read_table(schema_of("bookmia"), path)


@corpora.add("arxiv_mia")
def arxiv_mia(field: Literal["cs", "math"] | None = None, path: str | None = None) -> Corpus:
    """Abstracts of computer science and mathematics, older against newer (Liu et al. 2024)."""
    return _read_table(schema_of("arxiv_mia"), path, "field", field)


def _passage(cells: Cells) -> Cells:
    letter = str(cells["Answer"]).strip().upper()
    if letter not in ("A", "B", "C", "D"):
        raise ValueError(
            f"Answer should name the true passage, A, B, C or D, and holds {cells['Answer']!r:.40}"
        )
    return {"Example_ that Answer names": cells[f"Example_{letter}"]}


@corpora.add("arxivtection")
def arxivtection(path: str | None = None) -> Corpus:
    """Passages of research papers before 2022 against papers of 2023 (Duarte et al. 2024).

    The passage is the `Example_` column that `Answer` names, the group the paper (`ID`).
    """
    return _read_table(schema_of("arxivtection", _passage), path)


@corpora.add("booktection")
def booktection(length: Literal["small", "medium", "large"] | None = None, path: str | None = None) -> Corpus:
    """Passages of books before 2022 against books of 2023, in three sizes (Duarte et al. 2024).

    `length` is about 64, 128 and 256 tokens, None for all together, as FSD does. The passage is the `Example_` column
    that `Answer` names, the group the book (`ID`).
    """
    return _read_table(schema_of("booktection", _passage), path, "Length", length)


@corpora.add("ccnewspdd")
def ccnewspdd(path: str, kind: Literal["trans", "mask", "prompt", "original"] = "trans") -> Corpus:
    """News of Pile-CC against news of 2017 that were reworded (Tang et al. 2025).

    `path` is the folder that `pretrace build ccnews` writes, or one of its files; `kind` original takes the texts as
    they were before.
    """
    kinds, place = schema_of("ccnewspdd").kinds, Path(path)
    schema = schema_of("ccnewspdd", title=f"CCNewsPDD, {kinds[kind]}")
    if kind == "original":  # which each of the files holds
        schema = replace(schema, text="original", columns=("original", *schema.columns[1:]))
        return read_published(find_tables(place)[0], schema)
    file = _one_table(place, kind)
    if (named := stem_of(file.name)) in kinds and named != kind:
        raise TextsError(f"{shown(file)} holds texts of another kind: ask for kind={named!r}.")
    return read_published(file, schema)


@corpora.add("patentmia")
def patentmia(path: str, length: int | None = None) -> Corpus:
    """Snippets of Chinese patents, before 2023 against after March 2024 (Zhang et al. 2024).

    `path` is a file as `pretrace build patents` writes it; `length` takes the snippets of that many words.
    """
    require(length is None or length > 0, f"patentmia: length must be a number of words, found {length!r}.")
    return _read_table(schema_of("patentmia"), path, "length", length)


PILE_SUBSETS: dict[str, str] = schema_of("pile").kinds
"""The Pile's subsets under their own names (`pile_set_name`), with the names that the hub's data set gives them."""


@corpora.add("pile")
def pile(subset: str, path: str | None = None) -> Corpus:
    """One subset of the Pile, as 'HackerNews': its training split against its validation split.

    `subset` is the Pile's own name or the hub data set's ('Pile-CC' or 'cc'), whatever its case. `path` is a folder
    of files whose names (or folders) begin with train for members, with val or test for non-members, or one file
    with a column `label`; rows that name another subset in `meta.pile_set_name` are left out.
    """

    def own_name(cells: Cells) -> Cells:
        meta = cells.get("meta")
        found = meta.get("pile_set_name") if isinstance(meta, Mapping) else cells.get("domain")
        return {"pile_set_name": found} if isinstance(found, str) and found else {}

    name = _subset_name(subset)
    schema = schema_of("pile", own_name, f"The Pile, {name}")
    own = {_plain(name), _plain(PILE_SUBSETS[name])}
    corpus = _read_both_sides(schema, path, f":{PILE_SUBSETS[name]}", lambda inner: _plain(inner) in own)

    def is_own(text: Text) -> bool:
        return path is None or _plain(text.meta.get("pile_set_name", name)) in own

    return corpus if all(map(is_own, corpus.texts)) else _keep_texts(corpus, is_own, f"of {name}")


def _subset_name(given: str) -> str:
    """The Pile's own name of a subset, given in any case, with or without blanks and signs.

    >>> _subset_name("hacker news"), _subset_name("cc"), _subset_name("Ubuntu IRC")
    ('HackerNews', 'Pile-CC', 'Ubuntu IRC')
    """
    known = {_plain(key): name for name, short in PILE_SUBSETS.items() for key in (name, short)}
    if _plain(given) not in known:
        raise ExpressionError(f"pile: the Pile has no subset {given!r}; there are {', '.join(PILE_SUBSETS)}.")
    return known[_plain(given)]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


@corpora.add("dolma_paloma")
def dolma_paloma(subset: Literal["wikipedia", "common_crawl"], path: str | None = None) -> Corpus:
    """Texts of Dolma, on which OLMo was trained, against the held-out ones of Paloma.

    `path` is needed: a folder with files (or folders) of that source whose names begin with dolma for members and
    with paloma for non-members. dolma-v1_5 tells nothing, since Paloma too has a folder of that name. Where it has a
    folder of the subset's name, that one is read.
    """
    name = schema_of("dolma_paloma").kinds[subset]
    if path is None:
        raise TextsError(say("texts.dolma", name=name, subset=subset))
    schema = schema_of("dolma_paloma", title=f"Dolma and Paloma, {name}")
    return _read_both_sides(schema, path, inner=lambda inner: inner == subset)


def _hubble(cells: Cells) -> Cells:
    """Copies and label from `duplicates`, and the title of what a passage was cut from, where `meta` has one."""
    copies = cell_of(cells["duplicates"])
    if not copies.isdecimal():
        raise ValueError(f"duplicates should hold a whole number, 0 or more, and holds {copies[:40]!r}")
    meta: Any = cells.get("meta")
    if isinstance(meta, str):
        with suppress(ValueError):
            meta = json.loads(meta)
    document = str(meta.get("title") or "") if isinstance(meta, Mapping) else ""
    return {"copies": int(copies), "member": "1" if int(copies) else "0", "document": document}


@corpora.add("hubble")
def hubble(kind: str, copies: int | None = None, path: str | None = None) -> Corpus:
    """Texts put into the Hubble models 1 to 256 times, against texts put into none (Wei et al. 2025).

    `kind` is the name of the data set, as 'passages_wikipedia'. `copies` keeps the members of so many copies (1, 4, 16,
    64 or 256), and all non-members. `path` is a folder of files whose names begin with train and test, or one file. The
    column `duplicates` goes to the results, and `evaluate` measures by copies.
    """
    schema = schema_of("hubble", _hubble, f"Hubble, {kind}")
    known = ", ".join(schema.kinds)
    require(kind in schema.kinds, f"hubble: kind must be one of {known}; found {kind!r}.")
    corpus = _read_both_sides(schema, path, f"/{kind}:", lambda inner: inner == kind)
    if odd := [text.id for text in corpus.texts if text.member is not (text.copies != 0)]:
        raise TextsError(say("texts.duplicates", source=corpus.source, text=odd[0]))
    if copies is not None:
        have = sorted({text.copies or 0 for text in corpus.texts if text.member})
        require(copies in have, f"hubble: copies must be one of {', '.join(map(str, have))}, found {copies}.")
        what = f"with {copies} copies, or none"
        corpus = _keep_texts(corpus, lambda text: not text.member or text.copies == copies, what)
    return corpus
