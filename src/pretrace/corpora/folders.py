"""Folders of texts: documents, shards of a table, data sets as `datasets` saves them and as repositories hold them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

from pretrace.corpora.documents import DOCUMENTS, SOURCE
from pretrace.corpora.formats import (
    ENDINGS,
    LINES,
    TABLES,
    ending_of,
    file_rows,
    looks_like_rows,
    open_unpacked,
    recognise_format,
    stem_of,
)
from pretrace.corpora.reading import HEAD, SourceRow, TextReading, listed, shown
from pretrace.errors import TextsError
from pretrace.results.atomic import json_object
from pretrace.results.wording import say

_OF_TOOLS = frozenset((".git", ".hg", ".svn", ".cache", "__MACOSX", "__pycache__", ".ipynb_checkpoints"))
"""Folders that tools keep for themselves."""
_OF_PROGRAMS = re.compile(r"\.ds_store|thumbs\.db|desktop\.ini|cache-[0-9a-f]+\.arrow", re.IGNORECASE)
"""Files that they keep beside the texts; the last is what `datasets` made of a data set that it had saved."""
_FACTS = frozenset(("card", "dataset_info", "dataset_infos", "dataset_dict", "state"))
"""Names of JSON files that the hub's tools and our builders lay beside the data."""
_README = re.compile(r"readme\b[^/]*", re.IGNORECASE)
_ABOUT = re.compile(r"(readme|licen[cs]e|notice|citation|changelog|contributing|authors)\b.*", re.IGNORECASE)
"""Files that tell of a collection, at the top of its folder."""
_PART = re.compile(r"(.+?)[-.](\d{5})-of-(\d{5})(?:-[0-9a-f]+)?")
_SPLITS = frozenset(("train", "test", "validation", "valid", "val", "dev"))


def walk(folder: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """All files below a folder in order, links followed, each once, and what cannot be reached with the reason; by
    their paths within it. OSError where the folder cannot be read."""
    faults: dict[str, str] = {}

    def tell(error: OSError) -> None:
        path = Path(error.filename)
        if path == folder:
            raise error
        is_missing = path.is_symlink() and isinstance(error, FileNotFoundError)
        why = "it is a link to nothing" if is_missing else error.strerror or str(error)
        faults[path.relative_to(folder).as_posix()] = why

    def place_of(path: Path) -> tuple[int, int] | None:
        """The device and number of what a path leads to; None where it leads nowhere, which is told."""
        try:
            known = path.stat()
        except OSError as error:
            tell(error)
            return None
        return known.st_dev, known.st_ino

    files: list[tuple[Path, tuple[int, int] | None]] = []
    seen: set[tuple[int, int] | None] = {None}
    waiting = [folder]  # and then the folders that links lead to
    while waiting:
        for here, inside, names in os.walk(waiting.pop(0), onerror=tell):
            if (place := place_of(Path(here))) in seen:
                inside.clear()
                continue
            seen.add(place)
            inside[:] = sorted({*inside} - _OF_TOOLS)
            waiting += [path for path in (Path(here, name) for name in inside) if path.is_symlink()]
            paths = [Path(here, name) for name in sorted(names) if not _OF_PROGRAMS.fullmatch(name)]
            files += [(path, place_of(path)) for path in paths]
    found: dict[str, Path] = {}
    for path, place in sorted(files, key=lambda one: one[0].is_symlink()):
        if place is not None and not (path.is_symlink() and place in seen):
            seen.add(place)
            found[path.relative_to(folder).as_posix()] = path
    return dict(sorted(found.items())), faults


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
    files, faults = walk(folder)
    tables, documents = _sorted_out(files, reading)
    if tables and documents:
        sides = {"tables": listed([*tables]), "documents": listed([*documents])}
        ending = ending_of(next(iter(tables)))
        raise TextsError(say("texts.both_kinds", source=reading.source, **sides, ending=ending))
    for name, why in faults.items():
        if is_hidden(name):
            reading.left_out.append(name)
        else:
            yield reading.fault(f"{shown(folder / name)} cannot be read: {why}.", None)
    for name in _of_split(folder, tables, reading):
        for row in file_rows(tables[name], reading):
            yield row._replace(file=name)
    if not tables and not documents:
        endings = ", ".join(sorted(DOCUMENTS))
        raise TextsError(say("texts.no_texts", source=reading.source, endings=endings))
    plain = set(documents.values()) == {".txt"}
    for name, kind in documents.items():
        for row in file_rows(files[name], reading, SOURCE if kind == ".txt" else kind):
            ids = {"id": name} if plain else {"id": name, "group": name}
            yield row if row.fault else row._replace(fields={"text": row.fields["text"], **ids})


def _sorted_out(files: Mapping[str, Path], reading: TextReading) -> tuple[dict[str, Path], dict[str, str]]:
    """The tables of a folder, and the documents with their kinds; what is neither is left out."""
    kinds = {name: _kind(name, path, reading.columns.files) for name, path in files.items()}
    tables = {name: files[name] for name, kind in kinds.items() if kind in TABLES}
    documents = {name: kind for name, kind in kinds.items() if kind and kind not in TABLES}
    if tables and reading.columns.files is None:
        documents = {name: kind for name, kind in documents.items() if not is_about(name)}
    reading.left_out += [shown(name) for name in kinds if name not in tables and name not in documents]
    return tables, documents


def _kind(name: str, path: Path, patterns: str | None) -> str:
    """The ending a file is read by, or SOURCE; "" for one left out. With patterns all that they name is read. JSON is a
    table where it is a list of objects or an object a line."""
    ending = ending_of(name)
    if patterns is not None:
        return "" if not matches(name, patterns) else ending if ending in ENDINGS else SOURCE
    if ending == ".txt":
        return ending
    if is_hidden(name) or holds_facts(name) or (ending in DOCUMENTS and _README.fullmatch(name)):
        return ""
    if ending in ENDINGS and ending not in LINES:
        return ending
    kind, is_table = recognise_format(name, b""), True
    with suppress(OSError, EOFError, TextsError):  # who reads it says what is wrong
        with open_unpacked(path) as stream:
            head = stream.peek(HEAD)[:HEAD]
        kind = recognise_format(name, head)
        is_table = kind != ".json" or looks_like_rows(head)
    return kind if kind in ENDINGS and is_table else ""


def _of_split(folder: Path, tables: Mapping[str, Path], reading: TextReading) -> Sequence[str]:
    """The tables of one split; TextsError where none of several is chosen, and where a part is missing."""
    saved = (json_object(folder / "dataset_dict.json") or {}).get("splits")  # by `datasets`
    known = _SPLITS.union(map(str, saved) if isinstance(saved, list) else ())
    splits: dict[str, list[str]] = {}
    for name in tables:
        part = _PART.fullmatch(stem_of(name))
        words = re.split(r"[-_.]", part[1].lower()) if part else [stem_of(name).lower()]
        told = (*words, *Path(name).parent.parts[::-1])  # the name of the file, or of its folder
        split = next((one for one in told if one in known), "")
        splits.setdefault(split, []).append(name)
    several = [name for name in splits if name]
    is_named = reading.columns.split is not None and not reading.columns.give_way
    chosen = splits[_chosen(several, reading)] if tables and (len(several) > 1 or is_named) else [*tables]
    parts: dict[tuple[str, int], set[int]] = {}
    for name in chosen:
        if part := _PART.fullmatch(stem_of(name)):
            parts.setdefault((str(Path(name).with_name(part[1])), int(part[3])), set()).add(int(part[2]))
    for (name, number), there in parts.items():
        if others := [str(n) for other, n in parts if other == name and n != number]:
            numbers = " and in ".join([str(number), *others])
            raise TextsError(say("texts.saved_twice", source=reading.source, name=name, numbers=numbers))
        if len(there) < number:
            facts = {"source": reading.source, "there": len(there), "number": number, "name": name}
            raise TextsError(say("texts.parts", **facts))
    return chosen


def _chosen(splits: Sequence[str], reading: TextReading) -> str:
    """The split to read, which is told. TextsError where it is not there, or none of several was named."""
    named, columns = reading.columns.split, reading.columns
    if named not in splits and len(splits) == 1 and (named is None or columns.give_way):
        named = splits[0]
    if named in splits:
        others = [one for one in splits if one != named]
        but = f", and not {listed(others)}" if others else ""
        reading.said.append(f"The split {named!r} of the folder was read{but}.")
        return str(named)
    if not splits:
        raise TextsError(f"{reading.source} has no splits: leave out --reading split.")
    raise TextsError(f"{reading.source} has the splits {listed(splits)}: name one with --reading split=NAME.")
