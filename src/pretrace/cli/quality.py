"""`pretrace quality`: how alike two sets of texts are, beside how alike the first is to itself."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text as Plain

from pretrace.cli import options as o
from pretrace.types import Estimate

if TYPE_CHECKING:
    from pretrace.statistics.set_similarity import Compared, Embed

_NO_MODEL = "none"


def quality(
    a: Annotated[
        str,
        typer.Argument(metavar="A", help="Texts, as for `score`: the members' side.", show_default=False),
    ],
    b: Annotated[
        str, typer.Argument(metavar="B", help="The texts they are compared with.", show_default=False)
    ],
    embeddings: Annotated[
        str,
        typer.Option(
            help="Model of the similarity: minilm (extra: embeddings), a sentence-transformers folder or hub id, "
            "or none."
        ),
    ] = "minilm",
    json: Annotated[
        Path | None, typer.Option("--json", help="Write the figures to this file, too.", show_default=False)
    ] = None,
    text_column: o.TextColumn = None,
    id_column: o.IdColumn = None,
    group_column: o.GroupColumn = None,
    seed: o.Seed = 0,
) -> None:
    """How alike two sets of texts are, beside how alike A is to itself: shared words, embeddings, divergence."""
    from pretrace.corpora import Columns, open_corpus
    from pretrace.results.atomic import atomic_bytes, check_writable
    from pretrace.results.serialization import to_json
    from pretrace.statistics.set_similarity import Comparing, compare_sets

    if json is not None:
        check_writable(json, folder=False)
    columns = Columns(text=text_column, label="", id=id_column, group=group_column)
    settings = Comparing(seed=seed)
    first, second = open_corpus(a, columns), open_corpus(b, columns)
    embed, missing = _embedder(embeddings)
    found = compare_sets(first.texts, second.texts, settings, embed=embed)
    notes = [*found.notes, *([missing] if missing else [])]
    console = Console(highlight=False)
    console.print(_table(found))
    for row in found.rows:
        console.print(Plain(f"- {row.name}: {row.meaning}"))
    for note in notes:
        console.print(Plain(note))
    if json is not None:
        given = {"a": a, "b": b, "embeddings": embeddings, **asdict(settings)}
        atomic_bytes(json, to_json({**_plain(found), "notes": notes, "settings": given}))


def _embedder(model: str) -> tuple[Embed | None, str]:
    """What embeds texts, or None and a line on why not."""
    from pretrace.errors import MissingPackageError
    from pretrace.tuning.embedding import open_embedder

    if model == _NO_MODEL:
        return None, ""
    try:
        return open_embedder(model), ""
    except MissingPackageError as error:
        return None, f"Similarity of embeddings is left out: {error}."


def _table(found: Compared) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("measure", no_wrap=True)
    for title in ("A with A", "A with B"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in found.rows:
        table.add_row(row.name, _shown(row.inside), _shown(row.across))
    size, other = found.texts
    table.caption = Plain(f"{size:,} texts of A, {other:,} of B; 95% intervals")
    table.caption_justify = "left"
    return table


def _shown(estimate: Estimate) -> str:
    return f"{estimate.value:.4f} \\[{estimate.low:.4f}, {estimate.high:.4f}]"


def _plain(found: Compared) -> dict[str, Any]:
    """The comparison as plain values."""
    return {"texts": {"a": found.texts[0], "b": found.texts[1]}, "rows": [asdict(row) for row in found.rows]}
