"""Result folders: tables and one JSON part, hashed, and read back only as they were written.

The JSON part comes last into the folder and holds the SHA-256 of the files beside it, so that a damaged file,
or one of another result, is noticed when the folder is read. Its own last entry is the hash of itself without this
entry; what is made from its tables (a report, which can be made anew to the same bytes by the same version) is
listed without a hash, and shows that number. Someone who means to deceive can write the hashes anew: to hold a
result fast, keep that last number elsewhere.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from pretrace import __version__
from pretrace.errors import OutputError, regular
from pretrace.results.atomic import new_folder
from pretrace.results.output_checks import FILES_KEY, FolderKind
from pretrace.results.serialization import expect, from_json, to_json

T = TypeVar("T")
Write = Callable[[Path], object]
Pages = Mapping[str, Callable[[str], str]]
"""What is made from a result (a report), by file name: a text, given the hash that the JSON part has of itself."""

_SEAL = "sha256"


def write_folder(
    kind: FolderKind,
    folder: Path,
    content: Mapping[str, Any],
    *,
    parts: Mapping[str, Write],
    extra: Write | None = None,
    pages: Pages | None = None,
) -> dict[str, Any]:
    """Write a result folder, whole or not at all, in place of an earlier one of its kind: the `parts` (by file name),
    what `extra` adds, the `pages` that are made from all that, and the JSON part with `content`, which is returned.
    Raises what the writers raise, and OutputError; then nothing has changed."""
    with new_folder(folder, kind) as partial:
        for name, write in parts.items():
            write(partial / name)
        if extra is not None:
            extra(partial)
        hashes: dict[str, str | None] = dict(file_hashes(partial))
        if kind.sealed:
            hashes = {name: hashes[name] for name in parts}
        hashes |= dict.fromkeys(pages or ())
        full = {kind.key: kind.format, **content, FILES_KEY: hashes}
        full[_SEAL] = seal = _seal(full)
        for name, page in (pages or {}).items():
            (partial / name).write_bytes(page_bytes(page(seal)))
        (partial / kind.marker).write_bytes(to_json(full))
    return full


def page_bytes(page: str) -> bytes:
    """A page as it is written: UTF-8, a lone surrogate as its escape."""
    return page.encode("utf-8", "backslashreplace")


class OpenFolder:
    """A result `folder` of a `kind` that is being read. `content` is its JSON part, whose format and seal are sound;
    `seal` is the hash that it has of itself, which stands for the whole result. OutputError where there is no such
    folder, or a newer pretrace wrote it. With `believe` a seal that does not hold is no error."""

    def __init__(self, kind: FolderKind, folder: Path, *, believe: bool = False) -> None:
        self.kind, self.folder = kind, folder
        self.content = self.explained(kind.marker, lambda: from_json(self._bytes(kind.marker)))
        found = self.content.get(kind.key)
        if type(found) is not int:
            raise OutputError(
                f"{folder} is not a pretrace {kind.name}: its {kind.marker} was written by something else."
            )
        if found > kind.format:
            raise OutputError(
                f"{folder} was written by a newer pretrace (format {found}, this one reads {kind.format}): upgrade."
            )
        self.seal = str(self.content.pop(_SEAL, ""))
        self.seal_holds = self.seal == _seal(self.content)
        if not self.seal_holds and not believe:
            raise self._changed(kind.marker)

    def __contains__(self, name: str) -> bool:
        return name in expect(self.content[FILES_KEY], dict)

    def part(self, name: str, parse: Callable[[bytes], T]) -> T:
        """What `parse` makes of a file; OutputError where the file is missing, was changed or does not parse."""
        checksum = expect(self.content[FILES_KEY], dict)[name]
        content = self._bytes(name)
        if hashlib.sha256(content).hexdigest() != checksum:
            raise self._changed(name)
        return self.explained(name, lambda: parse(content))

    def explained(self, name: str, read: Callable[[], T]) -> T:
        """What `read` gives; what it raises for a damaged file becomes an OutputError that names the file."""
        try:
            return read()
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
            raise OutputError(
                f"{self.folder} is not a pretrace {self.kind.name}: its {name} is damaged ({error}); "
                f"{self.kind.cure}."
            ) from error

    def _bytes(self, name: str) -> bytes:
        path, kind = self.folder / name, self.kind
        try:
            return regular(path).read_bytes()
        except FileNotFoundError:
            found = "there is no such folder"
            if self.folder.exists():
                there = [one for some in ("", "*/") for one in sorted(self.folder.glob(f"{some}r*.json"))]
                others = ", ".join(str(one.relative_to(self.folder)) for one in there[:3])
                found = f"there is no {name} in it{f', but {others}' if others else ''}"
            raise OutputError(
                f"{self.folder} is not a pretrace {kind.name}: {found}; give a folder that {kind.writer} wrote."
            ) from None
        except OSError as error:
            raise OutputError(f"{path} cannot be read: {error.strerror or error}.") from error

    def _changed(self, name: str) -> OutputError:
        place, kind = self.folder / name, self.kind
        return OutputError(f"{place} is damaged, was changed or belongs to another {kind.name}; {kind.cure}.")


def read_folder(kind: FolderKind, folder: Path, make: Callable[[OpenFolder], T]) -> T:
    """What `make` builds of a folder's parts; OutputError, naming the file, where one is missing or was changed."""
    opened = OpenFolder(kind, folder)
    return opened.explained(kind.marker, lambda: make(opened))


def file_hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file in the folder and below it, by its path from there."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): file_hash(path) for path in files}


def file_hash(path: Path) -> str:
    """The SHA-256 of a file; OSError where it cannot be read."""
    with regular(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _seal(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(to_json(content)).hexdigest()


# Tables on disk: csv for people, parquet, which gives back every bit, and lines of JSON.
#
# Names stand in csv as they are, so that they can be joined with the texts: one that begins with "=" is a formula
# to a spreadsheet, so open tables of untrusted names there as text only. A lone surrogate is written as its escape
# in csv and JSON, and as bytes (WTF-8) in parquet.


Column = Sequence[str] | npt.NDArray[Any]
_SPECIAL = frozenset('",\r\n')


def write_csv(
    path: Path, names: Sequence[str], rows: Iterable[Sequence[object]], *, quoted: bool = False
) -> None:
    """Write rows below their names, None as nothing, texts in quotes where they must or `quoted`; floats are exact."""
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        file.write(",".join([_cell(name, quoted) for name in names]) + "\n")
        for row in rows:
            file.write(",".join([_cell(value, quoted) for value in row]) + "\n")


def _cell(value: object, quoted: bool) -> str:
    # Not csv.writer: it leaves a lone carriage return bare, where readers then see the end of a row.
    if not isinstance(value, str):
        return "" if value is None else str(value)
    if quoted or not value or value != value.strip() or not _SPECIAL.isdisjoint(value):
        return '"' + value.replace('"', '""') + '"'
    return value


def read_csv(content: bytes) -> tuple[tuple[str, ...], list[list[str]]]:
    """The names and rows of a csv file; ValueError where a row has another length."""
    csv.field_size_limit(max(csv.field_size_limit(), len(content)))  # an id may be as long as it likes
    try:
        names, *rows = csv.reader(io.StringIO(content.decode("utf-8"), newline=""))
    except csv.Error as error:
        raise ValueError(str(error)) from error
    if any(len(row) != len(names) for row in rows):
        raise ValueError("its rows differ in length")
    return tuple(names), rows


def write_parquet(
    path: Path, columns: Mapping[str, Column], facts: Mapping[bytes, bytes] | None = None
) -> None:
    """Write columns of texts or numbers (a masked array where some are missing), and `facts` beside them."""
    import pyarrow.parquet as pq

    table = arrow_table(columns)
    with path.open("wb") as file:  # given a name, pyarrow refuses those that are not UTF-8
        pq.write_table(table.replace_schema_metadata(facts) if facts else table, file)


def read_parquet(content: bytes) -> Any:
    """The pyarrow table in a parquet file; ValueError where there is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(str(error)) from error


def texts_of(table: Any, name: str) -> tuple[str, ...]:
    """A column of texts of a table that `write_parquet` wrote; KeyError, TypeError or ValueError without one."""
    found = table.column(name).to_pylist()
    texts = tuple(t.decode("utf-8", "surrogatepass") if isinstance(t, bytes) else t for t in found)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(f"the column {name} holds something else than texts")
    return texts


def arrow_table(columns: Mapping[str, Column]) -> Any:
    """Columns by name, of texts or numbers, as a pyarrow table; texts with a lone surrogate as bytes."""
    import pyarrow as pa

    def column(values: Column) -> Any:
        if isinstance(values, np.ndarray):
            return pa.array(np.ascontiguousarray(values) if not np.ma.isMaskedArray(values) else values)
        try:
            return pa.array(values, pa.string())
        except UnicodeEncodeError:
            return pa.array([text.encode("utf-8", "surrogatepass") for text in values], pa.binary())

    return pa.table({name: column(values) for name, values in columns.items()})


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object a line."""
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_lines(content: bytes) -> list[dict[str, Any]]:
    """The objects that `write_lines` wrote; ValueError or TypeError where it did not."""
    # Split at line feeds alone: a text may hold other characters that end a line.
    return [from_json(line) for line in content.split(b"\n") if line]


_PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scikit-learn")


def record_software() -> dict[str, str]:
    """Versions of pretrace, Python and the libraries that compute the numbers."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"pretrace": __version__, "python": platform.python_version(), "system": platform.platform()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
