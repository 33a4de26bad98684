"""Training files without the documents that hold the texts of a scan (`scan --clean`), with a list of what went.

A document is taken out where it holds more than 5% of a text in passages of 50 or more characters that are not common.
Each file is read once more and written under its own name into a folder beside the place, which takes its name when
the last file is there. A run that is killed goes on with the files that are missing.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from pretrace.errors import OutputError, TextsError
from pretrace.results.atomic import atomic_text, write_atomically
from pretrace.results.folder import write_csv
from pretrace.scan.corpus import BLOCK_BYTES, CorpusFile, opened
from pretrace.scan.folding import has_numba
from pretrace.scan.scan import SLIGHT, Searching, parts_of
from pretrace.scan.searching import DOCUMENT, END, START, TEXT, Runs, Search, Table
from pretrace.scan.sightings import Part, common_bytes

CLEANED = (".jsonl", ".ndjson", ".json", ".parquet", ".txt")
LIST = "taken-out.csv"
COLUMNS = ("file", "document", "text", "share")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """How many documents of how many were taken out, and the folder with the files and the list of them."""

    taken: int
    documents: int
    folder: Path

    @property
    def words(self) -> str:
        """It in a sentence."""
        return (
            f"{self.taken:,} of {self.documents:,} documents were taken out; the files without them, and the list "
            f"{LIST}, are in {self.folder}."
        )


def check_clean(asked: Searching, folder: Path) -> None:
    """OutputError where the folder holds something, TextsError for a file that cannot be written without some of its
    documents."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(
            f"{folder} holds something already, which is not replaced: name an empty or a new "
            "folder for --clean."
        )
    for file in asked.files:
        if file.ending not in CLEANED:
            raise TextsError(
                f"--clean writes .jsonl, .parquet and .txt files (also .gz, .zst), and {file.address} is another: "
                "search it in a scan of its own."
            )


def clean(asked: Searching, whole: Part, folder: Path) -> Cleaned:
    """Write the files of a scan without the documents that hold its texts; `whole` is what was found in all of them.

    OutputError where another scan is being cleaned beside `folder`, Unread for a file that cannot be read again.
    """
    check_clean(asked, folder)
    under_way = parts_of(folder)
    told = under_way / ".lists"
    wanted = hashlib.sha256(
        f"{asked.texts.digest} {[one.address for one in asked.files]}".encode()
    ).hexdigest()
    mark = told / "scan.txt"
    if under_way.exists() and (not mark.exists() or mark.read_text(encoding="utf-8") != wanted):
        raise OutputError(
            f"{under_way} holds something else than this --clean: delete it, or name another folder."
        )
    told.mkdir(parents=True, exist_ok=True)
    atomic_text(mark, wanted)
    table, common = (
        Table.of(asked.texts.contents),
        common_bytes(whole, asked.texts.contents, asked.texts.starts),
    )
    names = _names(asked.files)
    rows: list[list[Any]] = []
    documents = 0
    for file, name in zip(asked.files, names, strict=True):
        list_of = told / f"{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.json"
        if not list_of.exists():
            found, number = _found(asked, table, file, common)
            gone = {int(row[0]) for row in found}
            write_atomically(under_way / name, partial(_write, file, gone=gone))
            atomic_text(list_of, json.dumps({"rows": found, "documents": number}))
        held = json.loads(list_of.read_text(encoding="utf-8"))
        rows += [[file.address, *row] for row in held["rows"]]
        documents += held["documents"]
    write_atomically(under_way / LIST, lambda path: write_csv(path, COLUMNS, rows))
    for one in told.iterdir():
        one.unlink()
    told.rmdir()
    if folder.exists():
        folder.rmdir()
    under_way.rename(folder)
    return Cleaned(len({(row[0], row[1]) for row in rows}), documents, folder)


def _names(files: Sequence[CorpusFile]) -> list[str]:
    """Where each file goes below the folder: its path below what all have in common."""
    paths = [
        PurePosixPath(file.address.partition("://")[2] or Path(file.address).absolute().as_posix())
        for file in files
    ]
    shared = len(paths[0].parts) - 1
    for path in paths:
        same = 0
        while same < min(shared, len(path.parts) - 1) and path.parts[same] == paths[0].parts[same]:
            same += 1
        shared = same
    return [str(PurePosixPath(*path.parts[shared:])) for path in paths]


def _found(
    asked: Searching, table: Table, file: CorpusFile, common: npt.NDArray[np.bool_]
) -> tuple[list[tuple[int, str, float]], int]:
    """The documents of a file to be taken out, each with a text and the share of it that it holds; and how many
    documents the file has."""
    search, rows, documents = Search(table, fast=has_numba()), [], 0
    suspects = asked.texts.corpus.texts
    for found in asked.reader().documents(file):
        runs = search.runs(found.buffer, found.spans)
        documents = found.number + len(found.spans)
        for document, text, share in _shares(runs, asked, common):
            if text < len(suspects) and share > SLIGHT:
                rows.append((found.number + document, suspects[text].id, round(share, 4)))
    return rows, documents


def _shares(runs: Runs, asked: Searching, common: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int, float]]:
    """For each document and text with a run in common: the share of the text's bytes in runs, common ones left out."""
    held: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for row in runs.tolist():
        held.setdefault((row[DOCUMENT], row[TEXT]), []).append((row[START], row[END]))
    starts = asked.texts.starts
    for (document, text), some in held.items():
        size = len(asked.texts.contents[text])
        covered = np.zeros(size, dtype=np.bool_)
        for start, end in some:
            covered[start:end] = True
        covered &= ~common[starts[text] : starts[text] + size]
        yield document, text, float(np.count_nonzero(covered)) / size


def _write(file: CorpusFile, path: Path, gone: set[int]) -> None:
    """The file without some of its documents, in the same format, packed in the same way."""
    if file.ending == ".parquet":
        _write_parquet(file, path, gone)
        return
    with opened(file) as source, path.open("wb") as plain:
        if file.ending == ".txt":
            if 0 in gone:
                return
            with _packed(plain, file) as target:
                while some := source.read(BLOCK_BYTES):
                    target.write(some)
            return
        number, rest = 0, b""
        with _packed(plain, file) as target:
            while True:
                some = source.read(BLOCK_BYTES)
                lines = (rest + some).split(b"\n")
                rest = lines.pop() if some else b""
                for line in lines:
                    if line.strip():
                        if number not in gone:
                            target.write(line + b"\n")
                        number += 1
                if not some:
                    return


def _write_parquet(file: CorpusFile, path: Path, gone: set[int]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    with opened(file) as source:
        table = parquet.ParquetFile(source, pre_buffer=False)
        number = 0
        with parquet.ParquetWriter(path, table.schema_arrow) as target:
            for batch in table.iter_batches():
                kept = np.array([number + i not in gone for i in range(batch.num_rows)], dtype=np.bool_)
                target.write_batch(batch.filter(pa.array(kept)))
                number += batch.num_rows


def _packed(plain: IO[bytes], file: CorpusFile) -> Any:
    """What packs the bytes that are written as the file was packed, as a context."""
    name = file.address.lower()
    if name.endswith(".gz"):
        return gzip.GzipFile(filename="", mode="wb", fileobj=plain, mtime=0)
    if name.endswith(".zst"):
        import zstandard

        return zstandard.ZstdCompressor().stream_writer(plain, closefd=False)
    return _Plain(plain)


class _Plain:
    """A file as a context that does not close it."""

    def __init__(self, plain: IO[bytes]) -> None:
        self.write = plain.write

    def __enter__(self) -> _Plain:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing: who opened it closes it."""
