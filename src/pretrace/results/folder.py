"""Results on disk: folders of tables and one JSON part, hashed, and read back only as they were written.

The JSON part comes last into the folder and holds the SHA-256 of the files beside it, so that a damaged file,
or one of another result, is noticed when the folder is read. Its own last entry is the hash of itself without this
entry; what is made from its tables (a report, which can be made anew to the same bytes by the same version) is
listed without a hash, and shows that number. Someone who means to deceive can write the hashes anew: to hold a
result fast, keep that last number elsewhere.

Dataclasses become JSON and are read by their type hints: a field that a class gains is written and read without a
change here, and a file from before it was there gives its default. JSON has no infinities: they are written as "inf"
and "-inf", and become numbers again where the hint says float. Tuples become lists, and stay lists where the hint says
no more than `Any`. Readers raise ValueError, TypeError, KeyError or OverflowError on what was not written here.

Tables are csv for people, parquet, which gives back every bit, and lines of JSON. Names stand in csv as they are, so
that they can be joined with the texts: one that begins with "=" is a formula to a spreadsheet, so open tables of
untrusted names there as text only. A lone surrogate is written as its escape in csv and JSON, and as bytes (WTF-8) in
parquet.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import hashlib
import io
import json
import math
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from pretrace import __version__
from pretrace.errors import OutputError, regular
from pretrace.results.atomic import FILES_KEY, FolderKind, new_folder
from pretrace.types import Bools

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


def truth(values: Sequence[bool | None]) -> Bools:
    """A column of yes and no, masked where there is neither."""
    told = np.array([one is not None for one in values], dtype=np.bool_)
    found = np.array([bool(one) for one in values], dtype=np.bool_)
    return found if told.all() else np.ma.masked_array(found, mask=~told)


def json_lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Write rows as JSON, one a line; what JSON has no form for, such as a date, as its text."""
    lines = "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
    return lines.encode("utf-8", "backslashreplace")


def read_lines(content: bytes) -> list[dict[str, Any]]:
    """The objects that `json_lines` wrote; ValueError or TypeError where it did not."""
    # Split at line feeds alone: a text may hold other characters that end a line.
    return [from_json(line) for line in content.split(b"\n") if line]


_LARGEST = 2**63  # what a field of type int must stay below, either side of 0
_UNREADABLE = 2**1023  # the same for any other integer: `from_json` refuses those that have no float


def to_json(value: Any) -> bytes:
    """UTF-8 JSON, indented, keys in the order given; ValueError for NaN and infinities."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, indent=1)
    # Only lone surrogates cannot be encoded, and what this puts in their place is JSON's own escape.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def from_json(content: bytes) -> dict[str, Any]:
    """The JSON object in `content`; ValueError or TypeError for what `to_json` cannot have written, such as NaN."""
    try:
        found = json.loads(content, parse_float=_finite, parse_int=_whole, parse_constant=_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return expect(found, dict)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is no finite number")
    return number


def _whole(text: str) -> int:
    _finite(text)  # an integer that has no float would fail later, wherever it is counted with
    return int(text)


def expect(value: Any, kind: type[T]) -> T:
    """The value, if it is of the kind; TypeError otherwise."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{kind.__name__} expected, found {type(value).__name__}")
    return value


def mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


def to_plain(value: object, where: str) -> Any:
    """The value as dicts, lists, strings, numbers, booleans and None; `where` is its name in messages. Takes
    dataclasses, mappings, lists, tuples and numpy values; ValueError for NaN, TypeError for anything else."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    elif isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    value = str(value) if isinstance(value, float) and math.isinf(value) else value
    if isinstance(value, Mapping):
        wrong = [key for key in value if not isinstance(key, str)]
        if wrong:
            raise TypeError(f"{where}: the key {wrong[0]!r} is not a string")
        return {key: to_plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, float) and math.isnan(value):
        raise ValueError(f"{where} is NaN, which JSON cannot hold")
    if isinstance(value, int) and abs(value) >= _UNREADABLE:
        raise ValueError(f"{where} is too large an integer")
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"{where} is of type {type(value).__name__}, which JSON cannot hold")


def from_plain(kind: type[T], plain: object, where: str) -> T:
    """The dataclass that `to_plain` was given; TypeError, ValueError or KeyError where it was not one."""
    return cast(T, _read(kind, plain, where))


def _read(hint: Any, plain: object, where: str) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint):
        fields = expect(plain, dict)
        hints = _hints(cast(type, hint))  # what is missing has a default, or the class complains
        return cast(type, hint)(
            **{n: _read(hints[n], fields[n], f"{where}.{n}") for n in hints if n in fields}
        )
    if origin in (Union, UnionType):
        (other,) = [option for option in inner if option is not NoneType]
        return None if plain is None else _read(other, plain, where)
    if origin is Literal:
        if plain not in inner:
            raise ValueError(f"{where} is {plain!r}")
        return plain
    if origin is tuple:
        items = expect(plain, list)
        every = [inner[0]] * len(items) if inner[1:] == (Ellipsis,) else list(inner)
        if len(every) != len(items):
            raise ValueError(f"{where} has {len(items)} entries where {len(every)} are due")
        return tuple(_read(*one, f"{where}[{i}]") for i, one in enumerate(zip(every, items, strict=True)))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: _read(inner[1], item, f"{where}.{key}") for key, item in expect(plain, dict).items()}
    return plain if hint is Any else _scalar(hint, plain, where)


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}


def _scalar(kind: type, plain: object, where: str) -> Any:
    if kind is float:
        is_number = isinstance(plain, int | float) and not isinstance(plain, bool)
        if not is_number and plain not in ("inf", "-inf"):
            raise TypeError(f"{where} is no number")
        return float(cast(float, plain))
    found: Any = expect(plain, kind)
    if kind is int and not -_LARGEST < found < _LARGEST:
        raise ValueError(f"{where} is too large")
    return found


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
