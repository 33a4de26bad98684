"""Training files without the documents that hold the texts of a scan (`scan --clean`), with a list of what went.

A document is taken out where it holds more than 5% of a text in passages of 50 or more characters that are not common.
Each file is read once more and written under its own name into a folder beside the place, which takes its name when
the last file is there. A run that is killed goes on with the files that are missing.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.corpora import packing
from pretrace.corpora.documents import SOURCE
from pretrace.corpora.formats import LINES, looks_like_rows
from pretrace.errors import OutputError, PretraceError, TextsError
from pretrace.plugins.scan import searching
from pretrace.plugins.scan.corpus import CorpusFile, Unread, kind_of
from pretrace.plugins.scan.scan import SLIGHT, Searching, claim_folder, parts_of
from pretrace.plugins.scan.searching import UNIQUE, ScanPart, common_bytes, select_runs
from pretrace.results.atomic import atomic_text, write_atomically
from pretrace.results.folder import write_csv
from pretrace.results.wording import say

CLEANED = (*LINES, ".txt", SOURCE)
LIST = "taken-out.csv"
COLUMNS = ("file", "document", "text", "share")


def check_clean(asked: Searching, folder: Path) -> None:
    """OutputError where the folder holds something, TextsError for a file that cannot be written without documents."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(say("scan.refused.folder_full", folder=folder))
    for file in asked.files:
        if not _is_cleaned(file):
            raise TextsError(say("scan.refused.not_cleaned", address=file.address))


def _is_cleaned(file: CorpusFile) -> bool:
    """Whether a file can be written without some of its documents; also for one of which the scan tells why not."""
    try:
        with packing.open_unpacked(file.address) as stream:
            head = stream.peek(packing.HEAD)[: packing.HEAD]
            kind, is_packed = kind_of(file.address, head), not stream.seekable()
    except (OSError, EOFError, PretraceError, Unread):
        return True
    if kind == ".parquet":
        return not is_packed
    is_list = kind in LINES and looks_like_rows(head) and not head.lstrip().startswith(b"{")
    return kind in CLEANED and not is_list and packing.encoding_of(head, None) == "utf-8"


def clean(asked: Searching, whole: ScanPart, folder: Path) -> str:
    """Write the files of a scan without the documents that hold its texts, and say how many went; `whole` is what was
    found in all of them. OutputError where another scan is being cleaned beside `folder`, Unread for a file that cannot
    be read again."""
    under_way = parts_of(folder)
    told = under_way / ".lists"
    named = f"{asked.digest} {[one.address for one in asked.files]}"
    wanted = hashlib.sha256(named.encode()).hexdigest()
    claim_folder(under_way, told / "scan.txt", wanted, "other_clean")
    common = common_bytes(whole, asked.folded)
    rows: list[list[Any]] = []
    documents = 0
    for file, name in zip(asked.files, _names(asked.files), strict=True):
        list_of = told / f"{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.json"
        if not list_of.exists():
            found, number = _found(asked, file, common)
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
    taken = len({(row[0], row[1]) for row in rows})
    return say("scan.cleaned", taken=taken, documents=documents, list=LIST, folder=folder)


def _names(files: Sequence[CorpusFile]) -> list[str]:
    """Where each file goes below the folder: its path below what all have in common."""
    every = (one.address.partition("://")[2] or Path(one.address).absolute().as_posix() for one in files)
    paths = [PurePosixPath(one.lstrip("/")) for one in every]
    shared = posixpath.commonpath([path.parent for path in paths])
    return [str(path.relative_to(shared)) for path in paths]


def _found(
    asked: Searching, file: CorpusFile, common: npt.NDArray[np.bool_]
) -> tuple[list[tuple[int, str, float]], int]:
    """The documents of a file to be taken out, each with a text and its share; and how many documents the file has."""
    search, rows, documents = searching.Search(asked.blocks), [], 0
    suspects, sizes = asked.corpus.texts, asked.folded.sizes
    for found in asked.reader().documents(file):
        runs, _ = select_runs(search.runs(found.stream), found.stream, sizes)
        documents = found.read.documents
        held: dict[tuple[int, int], list[list[int]]] = {}
        for row in runs.tolist():
            if row[searching.TEXT] < len(suspects):
                held.setdefault((row[searching.DOCUMENT], row[searching.TEXT]), []).append(row)
        for (_, text), some in held.items():
            covered = np.zeros(sizes[text], dtype=np.bool_)
            for row in some:
                covered[row[searching.START] : row[searching.END]] = True
            covered &= ~common[slice(*asked.folded.spans[text])]
            share = np.count_nonzero(covered) / sizes[text]
            if share > SLIGHT or (share and max(row[searching.CHARACTERS] for row in some) >= UNIQUE):
                spans = [slice(row[searching.STRING], row[searching.LAST] + 1) for row in some]
                gone = {int(one) for span in spans for one in found.stream.rows[span]}
                rows += [(one, suspects[text].id, round(float(share), 4)) for one in sorted(gone)]
    return rows, documents


def _write(file: CorpusFile, path: Path, gone: set[int]) -> None:
    """The file without some of its documents, in the same format, packed in the same way."""
    with packing.open_raw(file.address) as raw, path.open("wb") as plain:
        packed_as = packing.packing_of(raw.peek(packing.HEAD)[: packing.HEAD])
        source = packing.unpack_stream(raw, file.address)
        kind = kind_of(file.address, source.peek(packing.HEAD)[: packing.HEAD])
        if kind == ".parquet":
            import pyarrow as pa
            from pyarrow import parquet

            table, number = parquet.ParquetFile(source, pre_buffer=False), 0
            with parquet.ParquetWriter(plain, table.schema_arrow) as written:
                for batch in table.iter_batches():
                    kept = [number + i not in gone for i in range(batch.num_rows)]
                    written.write_batch(batch.filter(pa.array(kept, pa.bool_())))
                    number += batch.num_rows
            return
        if kind in (".txt", SOURCE) and 0 in gone:
            return
        with packing.packer(packed_as, plain) if packed_as else nullcontext(plain) as target:
            if kind in (".txt", SOURCE):
                shutil.copyfileobj(source, target, 1 << 20)
                return
            number = 0
            for line in source:
                if line.strip():
                    if number not in gone:
                        target.write(line)
                    number += 1
