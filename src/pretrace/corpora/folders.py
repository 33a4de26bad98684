"""Folders of texts: documents, shards of a table, data sets as `datasets` saves them and as repositories hold them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from pretrace.corpora.columns import listed, shown
from pretrace.corpora.documents import DOCUMENTS, SOURCE
from pretrace.corpora.formats import FORMATS, LINES, TABLES, file_rows, looks_like_rows, recognise_format
from pretrace.corpora.packing import HEAD, ending_of, open_unpacked, stem_of
from pretrace.corpora.reading import SourceRow, TextReading, named
from pretrace.errors import TextsError
from pretrace.results.output_checks import json_object
from pretrace.results.wording import say

_OF_TOOLS = frozenset((".git", ".hg", ".svn", ".cache", "__MACOSX", "__pycache__", ".ipynb_checkpoints"))
"""Folders that tools keep for themselves."""
_OF_BROWSERS = frozenset((".ds_store", "thumbs.db", "desktop.ini"))
_FACTS = frozenset(("card", "dataset_info", "dataset_infos", "dataset_dict", "state"))
"""Names of JSON files that the hub's tools and our builders lay beside the data."""
_ABOUT = re.compile(r"(readme|licen[cs]e|notice|citation|changelog|contributing|authors)\b.*", re.IGNORECASE)
"""Files that tell of a collection, at the top of its folder."""
_PART = re.compile(r"(.+?)[-.](\d{5})-of-(\d{5})(?:-[0-9a-f]+)?")
_SPLITS = frozenset(("train", "test", "validation", "valid", "val", "dev"))


class Walk(NamedTuple):
    """The files below a folder, each once, and what cannot be reached with the reason; by their paths within it."""

    files: dict[str, Path]
    faults: dict[str, str]


def walk(folder: Path) -> Walk:
    """All files below a folder in order, links followed, each once; OSError where the folder cannot be read."""
    faults: dict[str, str] = {}
    files, links = dict[tuple[int, int], list[Path]](), []
    seen: set[tuple[int, int]] = set()
    waiting, linked = [folder], list[Path]()
    while waiting or linked:
        here = waiting.pop() if waiting else linked.pop(0)
        for path, known in _inside(here, folder, faults, seen):
            if stat.S_ISDIR(known.st_mode):
                if path.name not in _OF_TOOLS:
                    (linked if path.is_symlink() else waiting).append(path)
            elif path.is_symlink():
                links.append((known, path))
            elif path.name.lower() not in _OF_BROWSERS:
                files.setdefault((known.st_dev, known.st_ino), []).append(path)
    for known, path in links:
        files.setdefault((known.st_dev, known.st_ino), [path])
    every = {path.relative_to(folder).as_posix(): path for paths in files.values() for path in paths}
    return Walk(dict(sorted(every.items())), faults)


def _inside(
    here: Path, top: Path, faults: dict[str, str], seen: set[tuple[int, int]]
) -> Iterator[tuple[Path, os.stat_result]]:
    """What lies in a folder, links followed, the first time that it is come to; what cannot be reached is told."""
    try:
        known = here.stat()
        inside = [] if (known.st_dev, known.st_ino) in seen else sorted(here.iterdir())
        seen.add((known.st_dev, known.st_ino))
    except OSError as error:
        if here == top:
            raise
        inside = []
        faults[here.relative_to(top).as_posix()] = error.strerror or str(error)
    for path in inside:
        try:
            yield path, path.stat()
        except OSError as error:
            missing = path.is_symlink() and isinstance(error, FileNotFoundError)
            why = "it is a link to nothing" if missing else str(error.strerror)
            faults[path.relative_to(top).as_posix()] = why


def is_about(name: str) -> bool:
    """Whether a file of a folder, by its path within it, tells of the texts and holds none."""
    path = Path(name)
    return len(path.parts) == 1 and bool(_ABOUT.fullmatch(path.name))


def holds_facts(name: str) -> bool:
    """Whether a JSON file holds facts on the data beside it, by its name."""
    return ending_of(name) == ".json" and stem_of(name).rpartition(".")[2] in _FACTS


def is_hidden(name: str) -> bool:
    """Whether a file is hidden, lies in a hidden folder, or is a lock of a word processor."""
    return any(part.startswith((".", "~$")) for part in Path(name).parts)


def matches(name: str, patterns: str) -> bool:
    """Whether a path within a folder, or the name of its file, is that of a pattern; commas part several."""
    return any(
        fnmatch(one, pattern.strip()) for pattern in patterns.split(",") for one in (name, Path(name).name)
    )


def folder_rows(folder: Path, reading: TextReading) -> Iterator[SourceRow]:
    """The rows of a folder: of its tables one after the other, or of its documents, a text each with its path as id.
    TextsError where it holds both, several splits, or nothing that can be read."""
    saved = _saved(folder, reading)
    if saved is not None:
        yield from _table_rows(saved, reading)
        return
    found = walk(folder)
    tables, documents = _sorted_out(found, reading)
    if tables and documents:
        sides = {"tables": named([*tables]), "documents": named([*documents])}
        ending = ending_of(next(iter(tables)))
        raise TextsError(say("texts.both_kinds", source=reading.source, **sides, ending=ending))
    for name, why in found.faults.items():
        if is_hidden(name):
            reading.left_out.append(name)
        else:
            yield reading.fault(f"{shown(folder / name)} cannot be read: {why}.", None)
    if tables:
        yield from _table_rows(_of_split(tables, reading), reading)
        return
    if not documents:
        endings = ", ".join(sorted(DOCUMENTS))
        raise TextsError(say("texts.no_texts", source=reading.source, endings=endings))
    plain = set(documents.values()) == {".txt"}
    for name, kind in documents.items():
        for row in file_rows(found.files[name], reading, SOURCE if kind == ".txt" else kind):
            ids = {"id": name} if plain else {"id": name, "group": name}
            yield row if row.fault else row._replace(fields={"text": row.fields["text"], **ids})


def _sorted_out(found: Walk, reading: TextReading) -> tuple[dict[str, Path], dict[str, str]]:
    """The tables of a folder, and the documents with their kinds; what is neither is left out."""
    tables: dict[str, Path] = {}
    documents: dict[str, str] = {}
    for name, path in found.files.items():
        kind = _kind(name, path, reading.columns.files)
        if not kind:
            reading.left_out.append(shown(name))
        elif kind in TABLES:
            tables[name] = path
        else:
            documents[name] = kind
    if tables and reading.columns.files is None:
        beside = [name for name in documents if is_about(name)]
        reading.left_out += beside
        documents = {name: kind for name, kind in documents.items() if name not in beside}
    return tables, documents


def _kind(name: str, path: Path, patterns: str | None) -> str:
    """The ending a file is read by, or SOURCE; "" for one left out. With patterns all that they name is read."""
    ending = ending_of(name)
    if patterns is not None:
        chosen = matches(name, patterns) and (ending in FORMATS or ending in DOCUMENTS)
        return ending if chosen else SOURCE if matches(name, patterns) else ""
    if ending == ".txt":
        return ending
    if is_hidden(name) or holds_facts(name):
        return ""
    if ending in DOCUMENTS:
        return "" if is_about(name) and name.lower().startswith("readme") else ending
    if ending in FORMATS and ending not in LINES:
        return ending
    kind = kind_in(path)
    return kind if kind in (*FORMATS, *DOCUMENTS) else ""


def kind_in(path: Path) -> str:
    """What a file is by its first bytes: JSON is a table where it is a list of objects or an object a line."""
    if not path.is_file():
        return ending_of(path.name)
    try:
        with open_unpacked(path) as stream:
            head = stream.peek(HEAD)[:HEAD]
            kind = recognise_format(path.name, head)
            if kind == ".json" and not looks_like_rows(head):
                return ""
            return kind
    except (OSError, EOFError, TextsError):  # who reads it says what is wrong
        return recognise_format(path.name, b"")


def _table_rows(tables: Mapping[str, Path], reading: TextReading) -> Iterator[SourceRow]:
    for name, path in tables.items():
        for row in file_rows(path, reading):
            yield row._replace(file=name)


def _of_split(tables: Mapping[str, Path], reading: TextReading) -> dict[str, Path]:
    """The tables of one split; TextsError where none of several is chosen, and where a part is missing."""
    splits: dict[str, dict[str, Path]] = {}
    for name, path in tables.items():
        part = _PART.fullmatch(stem_of(name))
        words = re.split(r"[-_.]", (part[1] if part else stem_of(name)).lower())
        # by the name of the file, or of its folder
        above = Path(name.lower()).parent.parts[::-1]
        is_plain = part or len(words) == 1
        told = [*words, *above] if is_plain else [one for one in above if one not in words]
        split = next((one for one in told if one in _SPLITS), "")
        splits.setdefault(split, {})[name] = path
    several = [name for name in splits if name]
    named = reading.columns.split is not None and not reading.columns.give_way
    chosen = splits[_chosen(several, reading)] if len(several) > 1 or named else tables
    parts: dict[tuple[str, int], set[int]] = {}
    for name in chosen:
        if part := _PART.fullmatch(stem_of(name)):
            parts.setdefault((str(Path(name).with_name(part[1])), int(part[3])), set()).add(int(part[2]))
    for (name, number), there in parts.items():
        if len(there) < number:
            facts = {"source": reading.source, "there": len(there), "number": number, "name": name}
            raise TextsError(say("texts.parts", **facts))
    return dict(chosen)


def _chosen(splits: Sequence[str], reading: TextReading) -> str:
    """The split to read, which is told. TextsError where it is not there, or none of several was named."""
    named, columns = reading.columns.split, reading.columns
    if named in splits or (len(splits) == 1 and (named is None or columns.give_way)):
        chosen = named if named in splits and named else splits[0]
        others = [one for one in splits if one != chosen]
        reading.said.append(
            f"The split {chosen!r} of the folder was read{f', and not {listed(others)}' if others else ''}."
        )
        return chosen
    if not splits:
        raise TextsError(f"{reading.source} has no splits: leave out --reading split.")
    wrong = f"no split {named!r}; it has" if named is not None and not columns.give_way else "the splits"
    raise TextsError(
        f"{reading.source} has {wrong} {listed(splits)}: name one, as in --reading split={splits[0]}."
    )


def _saved(folder: Path, reading: TextReading) -> dict[str, Path] | None:
    """The arrow files of a data set that `datasets` saved, None for another folder; TextsError if one is missing."""
    splits = (json_object(folder / "dataset_dict.json") or {}).get("splits")
    if isinstance(splits, list) and splits:
        folder = folder / _chosen([str(one) for one in splits], reading)
    listed_files = (json_object(folder / "state.json") or {}).get("_data_files")
    if not isinstance(listed_files, list):
        return None
    try:
        files = {str(one["filename"]): folder / str(one["filename"]) for one in listed_files}
    except (TypeError, KeyError):
        return None
    missing = [name for name, path in files.items() if not path.is_file()]
    if missing:
        raise TextsError(
            f"{reading.source} lacks {named(missing)}, which its state.json names: fetch it again."
        )
    return files
