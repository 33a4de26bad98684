"""`pretrace count`: texts from any source to a table of token counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from pretrace.backends import open_tokenizer
from pretrace.cli.progress import counted_bytes
from pretrace.corpora import Columns, open_corpus, stream_texts
from pretrace.errors import OutputError
from pretrace.frequencies import Counting, Frequencies, count
from pretrace.results.atomic import check_writable


class Sources:
    """The texts of several sources one after the other, as often as they are asked for.

    Files and folders are streamed, so that they may be larger than memory; a corpus that is built, the hub
    and standard input are read whole.
    """

    def __init__(self, names: Sequence[str], columns: Columns) -> None:
        self.columns = columns
        self.parts = [name if Path(name).exists() else open_corpus(name, columns) for name in names]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(
            stream_texts(part, self.columns) if isinstance(part, str) else (text.text for text in part.texts)
            for part in self.parts
        )


def count_files(
    names: Sequence[str],
    out: Path,
    *,
    model: str,
    columns: Columns,
    workers: int | None,
    opening: Mapping[str, Any],
) -> Frequencies:
    """The table, written to `out`; work that was stopped goes on from a file beside it."""
    if out.suffix != ".npz":
        raise OutputError(
            f"a count table is an .npz file: --out {out.with_suffix('.npz')}, found {out.name}."
        )
    check_writable(out, folder=False)
    texts = Sources(names, columns)
    tokens = open_tokenizer(model, **opening)
    checkpoint = None if "-" in names else out.with_name(f".{out.name}.counting")
    with counted_bytes() as on_progress:
        table = count(
            texts,
            tokens.rust,
            tokenizer_hash=tokens.hash,
            source=", ".join(names),
            settings=Counting(workers=workers or 0, checkpoint=checkpoint),
            on_progress=on_progress,
        )
    table.save(out)
    return table
