"""Rows of files that are one text each: all of a folder, or a single document."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

from pretrace.corpora.columns import mended
from pretrace.corpora.documents import DOCUMENTS, read_document
from pretrace.corpora.opened import opened, refuse_utf16, refused_politely
from pretrace.corpora.reading import Reading, Row
from pretrace.errors import TextsError

_FAMILY = {".markdown": ".md", ".htm": ".html"}
"""What counts as the same kind of file in the notes."""


def folder_rows(folder: Path, reading: Reading) -> Iterator[Row]:
    """Each `.txt` file and each document below a folder as one text, in the order of the relative paths, which are the
    ids. A `.txt` file is taken just as it stands; what is neither is counted."""
    names = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if not file.is_dir()}
    kinds = {name: _kind_in_folder(name) for name in sorted(names)}
    texts = {name: kind for name, kind in kinds.items() if kind}
    if not texts:
        endings = ", ".join(sorted(DOCUMENTS))
        raise TextsError(
            f"{reading.source} holds no .txt file and no document ({endings}; a README is none): name a file in it, or "
            "another folder."
        )
    pipes = [name for name in texts if names[name].exists() and not names[name].is_file()]
    if pipes:
        raise TextsError(
            f"{reading.source} holds {pipes[0]!r}, which is a pipe or a device and no file: take it out of the folder."
        )
    reading.left_out += len(names) - len(texts)
    documents = set(texts.values()) != {".txt"}
    for name, kind in texts.items():
        row = _text_file(names[name]) if kind == ".txt" else _document(names[name], kind, reading)
        reading.kinds[_FAMILY.get(kind, kind)] += not row.fault
        named = {"id": name, "group": name} if documents else {"id": name}
        yield row if row.fault else row._replace(fields={**row.fields, **named})


def document_rows(file: Path, reading: Reading) -> Iterator[Row]:
    """The one row of a file that is one text; its name is the id and the group."""
    row = _document(file, ending_of(file.name), reading)
    name = mended(file.name)[0]
    yield row if row.fault else row._replace(fields={**row.fields, "id": name, "group": name})


def ending_of(name: str) -> str:
    """The ending of a file's name in small letters, without the `.gz` of a packed one."""
    return Path(name.lower().removesuffix(".gz")).suffix


def _kind_in_folder(name: str) -> str:
    """The ending of a file to be read, "" for one that is left out: another kind, and of documents those that are
    hidden, the lock files of word processors, and a README, which tells of the folder."""
    ending, path = ending_of(name), Path(name)
    if ending == ".txt":
        return ending
    hidden = any(part.startswith((".", "~$")) for part in path.parts)
    readme = len(path.parts) == 1 and path.name.lower().startswith("readme.")
    return ending if ending in DOCUMENTS and not (hidden or readme) else ""


def _text_file(file: Path) -> Row:
    with refused_politely(str(file)), opened(file) as stream:
        refuse_utf16(stream, str(file))
        text, damaged = mended(stream.read().removeprefix(codecs.BOM_UTF8))
    return Row({"text": text}, None, damaged)


def _document(file: Path, ending: str, reading: Reading) -> Row:
    with refused_politely(str(file)), opened(file) as stream:
        raw = stream.read()
    try:
        read = read_document(raw, ending)
    except TextsError as error:
        return reading.fault(f"{mended(str(file))[0]}: {error}", None)
    reading.remarks.update(read.remarks)
    return Row({"text": read.text}, None, read.damaged)
