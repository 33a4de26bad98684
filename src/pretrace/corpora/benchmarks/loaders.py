"""The benchmarks by name, but WikiMIA: tables in the schema their authors published, read by the rules of all texts.

A function each, whose columns, sides and address stand in `schemas.toml`. `path` is a file, or a folder with it, in the
form in which it was published; without one the texts come from the hub. TextsError where the texts cannot be had,
ExpressionError for a part that there is not.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pretrace.corpora.columns import Columns, distinct, kind_of, listed, name_of
from pretrace.corpora.folders import holds_facts, is_hidden, walk
from pretrace.corpora.formats import FORMATS, ending_of
from pretrace.corpora.opening import refuse_missing, resolve_source, shown
from pretrace.corpora.packing import without_packing
from pretrace.corpora.reading import SourceRow, TextReading, counted, refuse_repeated_ids
from pretrace.errors import ExpressionError, TextsError
from pretrace.registry import corpora, require
from pretrace.results.wording import say
from pretrace.types import Card, Corpus, Text

Cells = Mapping[str, object]
"""The cells of one row, by column."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a published table. `text`, `label`, `id` and `group` name the columns of those roles, "" where the
    table has none of that kind; all that are named must be there, and those `needed` as well. `meta` ones go to
    `Text.meta` where present. `derive` adds the columns `derived`, made of the others (`used` ones where present), such
    as a passage that another column names; it raises ValueError, in words that fit after "row 3: ", for a cell that
    makes no sense. `hub` is its data set there, and of several tables in a folder the one called `preferred` is it.
    Where the two sides lie apart, `splits` are theirs on the hub, and files are theirs whose names, or those of folders
    above them, begin with one of `members` or `nonmembers`; a part of a path that begins with one of `neither` tells
    nothing. `kinds` names the parts that can be asked for, a mapping where they are called otherwise elsewhere."""

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
    """The texts of one table: a Path is a file in any format of `open_corpus`, a str a data set of the hub. The id is
    the row number where the schema names none. TextsError where the table cannot be had or a cell makes no sense."""
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
    refuse_missing(folder)
    if not folder.is_dir():
        return [folder]
    endings = [ending for ending in FORMATS if ending != ".txt"]
    found = walk(folder).files.items()
    files = [
        path
        for name, path in found
        if ending_of(name) in endings and not (holds_facts(name) or is_hidden(name))
    ]
    if not files:
        wanted = ", ".join(endings)
        raise TextsError(f"{shown(folder)} holds no data file: it should hold one that ends in {wanted}.")
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


MEMBERS, NONMEMBERS = "members", "nonmembers"


def read_both_sides(
    schema: Schema, path: str | None, part: str = "", inner: Callable[[str], bool] = lambda name: False
) -> Corpus:
    """Both sides as one corpus: two splits of the `part` of the data set on the hub, or what lies at a path. That is a
    folder, the one in it whose name is `inner` where there is one, or a single file with a column `label` (or the one
    that the schema names). Ids are SIDE/FILE/ROW (the file left out where a side has one). A note names the files that
    tell no side. TextsError where a side has no file, or a file tells both."""
    sources: dict[str, tuple[str, Path | str]] = {}  # by the name of the part: its side, and where it lies
    others: list[Path] = []
    if path is None:
        home = f"{schema.hub}{part}"
        splits = zip((MEMBERS, NONMEMBERS), schema.splits, strict=True)
        sources = {side: (side, f"{home}:{split}") for side, split in splits}
        whole = f"hub:{home.rstrip(':')}"
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
    such = shown(others[0].relative_to(folder))
    note = f"{counted(len(others), 'file')} not read, whose names tell no side, such as {such}."
    return replace(corpus, notes=(*corpus.notes, note))


def _side_of(file: Path, schema: Schema) -> str:
    """The side of a file below the folder, "" where its path tells none; TextsError where it tells both."""
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


@corpora.add("bookmia")
def bookmia(path: str | None = None) -> Corpus:
    """Excerpts of 512 words from old books against books of 2023 (Shi et al. 2024). The group is the book."""
    return read_benchmark("bookmia", path)


@corpora.add("arxiv_mia")
def arxiv_mia(field: Literal["cs", "math"] | None = None, path: str | None = None) -> Corpus:
    """Abstracts of computer science and mathematics, older against newer (Liu et al. 2024)."""
    return read_benchmark("arxiv_mia", path, column="field", value=field)


def _passage(cells: Cells) -> Cells:
    answer = cells["Answer"]
    letter = answer.strip().upper() if isinstance(answer, str) else ""
    if letter not in ("A", "B", "C", "D"):
        found = repr(answer)[:40] if isinstance(answer, str) else kind_of(answer)
        raise ValueError(f"Answer should name the true passage, A, B, C or D, and holds {found}")
    return {"Example_ that Answer names": cells[f"Example_{letter}"]}


@corpora.add("arxivtection")
def arxivtection(path: str | None = None) -> Corpus:
    """Passages of research papers before 2022 against papers of 2023 (Duarte et al. 2024).

    The passage is the `Example_` column that `Answer` names, the group the paper (`ID`).
    """
    return read_benchmark("arxivtection", path, _passage)


@corpora.add("booktection")
def booktection(length: Literal["small", "medium", "large"] | None = None, path: str | None = None) -> Corpus:
    """Passages of books before 2022 against books of 2023, in three sizes (Duarte et al. 2024).

    `length` is about 64, 128 and 256 tokens, None for all together, as FSD does. The passage is the `Example_` column
    that `Answer` names, the group the book (`ID`).
    """
    return read_benchmark("booktection", path, _passage, column="Length", value=length)


@corpora.add("ccnewspdd")
def ccnewspdd(path: str, kind: Literal["trans", "mask", "prompt", "original"] = "trans") -> Corpus:
    """News of Pile-CC against news of 2017 that were reworded (Tang et al. 2025).

    `path` is the folder that `pretrace build ccnews` writes, or one of its files; `kind` original takes the texts as
    they were before.
    """
    schema = schema_of("ccnewspdd")
    file = _file_of_kind(Path(path), kind, schema.kinds)
    corpus = read_published(file, replace(schema, text="original") if kind == "original" else schema)
    return add_card(corpus, "ccnewspdd", f"CCNewsPDD, {schema.kinds[kind]}")


def _file_of_kind(path: Path, kind: str, kinds: Mapping[str, str]) -> Path:
    """The file of a kind: for `original` the first there is, since each holds the originals."""
    wanted = [name for name in kinds if name != "original"] if kind == "original" else [kind]
    if not path.is_dir():
        (file,) = find_tables(path)
        if kind != "original" and stem(file) in kinds and stem(file) != kind:
            raise TextsError(
                f"{shown(path)} holds the kind {stem(file)!r}, asked for {kind!r}: give the folder."
            )
        return file
    files = {stem(file): file for file in find_tables(path)}
    for name in wanted:
        if name in files:
            return files[name]
    names = " or ".join(f"{name}.jsonl" for name in wanted)
    raise TextsError(
        f"{shown(path)} holds no {names}, found {', '.join(sorted(files))}; build it: pretrace build ccnews "
        f"--transform {wanted[0]}."
    )


@corpora.add("patentmia")
def patentmia(path: str, length: int | None = None) -> Corpus:
    """Snippets of Chinese patents, before 2023 against after March 2024 (Zhang et al. 2024).

    `path` is a file as `pretrace build patents` writes it; `length` takes the snippets of that many words.
    """
    require(length is None or length > 0, f"patentmia: length must be a number of words, found {length!r}.")
    return read_benchmark("patentmia", path, column="length", value=length)


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

    name, schema = subset_name(subset), schema_of("pile", own_name)
    own = {_plain(name), _plain(PILE_SUBSETS[name])}
    corpus = read_both_sides(schema, path, f":{PILE_SUBSETS[name]}", lambda inner: _plain(inner) in own)
    if path is not None:
        corpus = keep_texts(
            corpus, lambda text: _plain(text.meta.get("pile_set_name", name)) in own, name, sides=True
        )
    return add_card(corpus, "pile", f"The Pile, {name}")


def subset_name(given: str) -> str:
    """The Pile's own name of a subset, given in any case, with or without blanks and signs.

    >>> subset_name("hacker news"), subset_name("cc"), subset_name("Ubuntu")
    ('HackerNews', 'Pile-CC', 'Ubuntu IRC')
    """
    known = {_plain(key): name for name, short in PILE_SUBSETS.items() for key in (name, short)}
    if _plain(given) in known:
        return known[_plain(given)]
    near = difflib.get_close_matches(_plain(given), known, n=1)
    hint = f"did you mean {known[near[0]]!r}?" if near else f"there are {', '.join(PILE_SUBSETS)}."
    raise ExpressionError(f"pile: the Pile has no subset {given!r}; {hint}")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


@corpora.add("dolma_paloma")
def dolma_paloma(subset: Literal["wikipedia", "common_crawl"], path: str | None = None) -> Corpus:
    """Texts of Dolma, on which OLMo was trained, against the held-out ones of Paloma.

    `path` is needed: a folder with files (or folders) of that source whose names begin with dolma for members and
    with paloma for non-members. dolma-v1_5 tells nothing, since Paloma too has a folder of that name. Where it has a
    folder of the subset's name, that one is read.
    """
    schema = schema_of("dolma_paloma")
    name = schema.kinds[subset]
    if path is None:
        raise TextsError(say("texts.dolma", name=name, subset=subset))
    corpus = read_both_sides(schema, path, inner=lambda inner: inner == subset)
    return add_card(corpus, "dolma_paloma", f"Dolma and Paloma, {name}")


# Texts of which others know from the training itself whether a model read them, and how often. Hubble, Train Once
# Answer All and the copyright traps were put into training at random, a known number of times; what CheckMIABench takes
# stands before or after a checkpoint; PANORAMA is made up, for fine-tunes of one's own.


def _whole(value: object, column: str, least: int = 0) -> int:
    """A number of copies; ValueError in words that fit after "row 3: "."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{column} should hold a whole number and holds {kind_of(value)}")
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if number != int(number) or number < least:
        raise ValueError(
            f"{column} should hold a whole number, {least} or more, and holds {str(value)[:40]!r}"
        )
    return int(number)


def _hubble(cells: Cells) -> Cells:
    """Copies and label from `duplicates`, and the title of what a passage was cut from, where `meta` has one."""
    duplicates = _whole(cells["duplicates"], "duplicates")
    meta: Any = cells.get("meta")
    if isinstance(meta, str):
        try:
            meta = json.loads(meta)
        except ValueError:
            meta = None
    title = meta.get("title") if isinstance(meta, Mapping) else None
    document = title if isinstance(title, str) else ""
    return {"copies": duplicates, "member": "1" if duplicates else "0", "document": document}


@corpora.add("hubble")
def hubble(kind: str, copies: int | None = None, path: str | None = None) -> Corpus:
    """Texts put into the Hubble models 1 to 256 times, against texts put into none (Wei et al. 2025).

    `kind` is the name of the data set, as 'passages_wikipedia'. `copies` keeps the members of so many copies (1, 4, 16,
    64 or 256), and all non-members. `path` is a folder of files whose names begin with train and test, or one file. The
    column `duplicates` goes to the results, and `evaluate` measures by copies.
    """
    schema = schema_of("hubble", _hubble)
    known = ", ".join(schema.kinds)
    require(kind in schema.kinds, f"hubble: kind must be one of {known}; found {kind!r}.")
    corpus = read_both_sides(schema, path, f"/{kind}:", lambda inner: inner == kind)
    if odd := [text.id for text in corpus.texts if text.member is not (text.copies != 0)]:
        raise TextsError(say("texts.duplicates", source=corpus.source, text=odd[0]))
    refuse_one_sided(corpus, "duplicates above 0", "duplicates of 0")
    if copies is not None:
        have = sorted({text.copies or 0 for text in corpus.texts if text.member})
        require(copies in have, f"hubble: copies must be one of {', '.join(map(str, have))}, found {copies}.")
        what = f"{copies} copies, or none"
        corpus = keep_texts(corpus, lambda text: not text.member or text.copies == copies, what)
    return add_card(corpus, "hubble", f"Hubble, {kind}")


@corpora.add("toaa")
def toaa(condition: str, path: str | None = None, tokenizer: str = "allenai/OLMo-2-0425-1B") -> Corpus:
    """Sequences put into training 1 to 16 times, and others like them (TOAA, Bordt et al. 2025).

    `condition` as published: 'plain_16x', 'rare_8tok_4x', 'random_32tok_1x', 'model_based_8tok_16x'. `tokenizer` is
    that of the ids, a hub id or a folder with tokenizer.json.
    """
    decode = _decoder(tokenizer)

    def derive(cells: Cells) -> Cells:
        ids, member = cells["input_ids"], str(cells["membership"])
        if not isinstance(ids, list) or not all(isinstance(one, int) for one in ids) or not ids:
            raise ValueError(f"input_ids should hold a list of whole numbers and holds {kind_of(ids)}")
        if member not in ("0", "1"):
            raise ValueError(f"membership should hold 1 or 0 and holds {member[:40]!r}")
        copies = _whole(cells["duplication"], "duplication", 1) if member == "1" else 0
        found = decode(ids)
        name = f"{cells['condition']}/{member}/{cells['example_idx']}"
        return {"decoded": found or "", "copies": copies, "name": name, "round": str(int(found is not None))}

    corpus = read_table(schema_of("toaa", derive), path)
    conditions = sorted({text.meta["condition"] for text in corpus.texts})
    require(
        condition in conditions,
        f"toaa: condition must be one of {', '.join(conditions)}; found {condition!r}.",
    )
    corpus = keep_where(corpus, "condition", condition)
    corpus = keep_where(corpus, "round", 1, "the same tokens when read again as text")
    refuse_one_sided(corpus, "membership 1", "membership 0")
    texts = tuple(
        replace(text, meta={name: text.meta[name] for name in ("condition", "copies")})
        for text in corpus.texts
    )
    return add_card(replace(corpus, texts=texts), "toaa", f"Train Once, Answer All, {condition}")


def _decoder(name: str) -> Callable[[list[int]], str | None]:
    """From token ids to text, without start and end tokens; None where the text is not cut into the same tokens."""
    from tokenizers import Tokenizer

    place = Path(name) / "tokenizer.json" if Path(name).is_dir() else Path(name)
    try:
        made = Tokenizer.from_file(str(place)) if place.is_file() else Tokenizer.from_pretrained(name)
    except Exception as error:  # noqa: BLE001 - the library raises a bare Exception for anything
        reason = " ".join(str(error).split())[:200]
        raise TextsError(
            f"toaa: the tokenizer {name!r} cannot be had ({reason}): give tokenizer='FOLDER', with a tokenizer.json."
        ) from None
    special = {number for number, token in made.get_added_tokens_decoder().items() if token.special}

    def decode(ids: list[int]) -> str | None:
        own = [one for one in ids if one not in special]
        text: str = made.decode(own, skip_special_tokens=False)
        return text if text and made.encode(text, add_special_tokens=False).ids == own else None

    return decode


@corpora.add("copyright_traps")
def copyright_traps(length: int = 100, copies: int = 1000, path: str | None = None) -> Corpus:
    """Sentences hidden in CroissantLLM's training 10 to 1,000 times, and others (Meeus et al. 2024).

    `length` is 25, 50 or 100 tokens. `path` is a folder of files whose names begin with seq_len_100_n_rep_1000 and the
    like, or one such file; the `perplexity_bucket` goes to the results.
    """
    require(length in (25, 50, 100), f"copyright_traps: length must be 25, 50 or 100, found {length}.")
    require(copies in (10, 100, 1000), f"copyright_traps: copies must be 10, 100 or 1000, found {copies}.")
    split = f"seq_len_{length}_n_rep_{copies}"
    schema = schema_of(
        "copyright_traps", lambda cells: {"copies": copies if str(cells["label"]) == "1" else 0}
    )
    source: str | Path = f"{schema.hub}::{split}"
    if path is not None:
        files = find_tables(Path(path))
        named = [file for file in files if stem(file).partition("-")[0] == split]
        if Path(path).is_dir() and len(named) != 1:
            raise TextsError(
                f"{shown(Path(path))} holds {len(named)} files whose names begin with {split}: wanted one."
            )
        source = named[0] if Path(path).is_dir() else files[0]
    corpus = read_published(source, schema)
    refuse_one_sided(corpus, "label 1", "label 0")
    return add_card(corpus, "copyright_traps", f"Copyright traps of {length} tokens, {copies} copies")


@corpora.add("checkmia")
def checkmia(split: str, path: str | None = None) -> Corpus:
    """Texts a model read before a checkpoint against texts that it read after it (CheckMIABench 2026).

    `split` is the name of the data set, as 'pythia_dedupe_mia_0-90000_90010-90025': steps of members, then steps of
    non-members. `path` is a folder with files whose names begin with member and with nonmember.
    """
    corpus = read_both_sides(schema_of("checkmia"), path, f"/{split}:")
    return add_card(corpus, "checkmia", f"CheckMIABench, {split}")


@corpora.add("panorama")
def panorama(kind: str | None = None, path: str | None = None) -> Corpus:
    """Posts and articles of made-up people, for fine-tunes of one's own (Selvam et al. 2025).

    `kind` is the content-type, as 'Social Media', None for all. The group is the person: `pretrace plant` then
    divides people, never their texts.
    """
    kinds = schema_of("panorama").kinds
    known = ", ".join(map(repr, kinds))
    require(kind is None or kind in kinds, f"panorama: kind must be one of {known} or None; found {kind!r}.")
    return read_benchmark("panorama", path, column="content-type", value=kind)
