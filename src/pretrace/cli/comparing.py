"""`pretrace build gap` and `pretrace build quality`: two sets of texts side by side, without the model in question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from rich.table import Table

from pretrace.cli.answer import Answer, Plain
from pretrace.cli.options import Only
from pretrace.cli.progress import announce_training
from pretrace.corpora import Columns, open_corpus
from pretrace.results.atomic import atomic_bytes, check_writable
from pretrace.results.output_checks import OutputFile, json_with
from pretrace.settings import Option, check_ranges, like, option, seed_option
from pretrace.statistics.set_similarity import Comparing
from pretrace.types import Corpus, Estimate, Gap
from pretrace.verdicts.audit.settings import AuditSettings

if TYPE_CHECKING:
    from pretrace.statistics.set_similarity import Compared, Embed

_NO_MODEL = "none"
_KEY = "pretrace_quality"
FIGURES = OutputFile("figures", json_with(_KEY))
"""The file of `quality --figures`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two sets of texts."""

    a: str = option(help="Texts, as for `score`: the members' side.", metavar="A", path="in")
    b: str = option(help="The texts they are compared with.", metavar="B", path="in")
    columns: Annotated[Columns, Only(("text", "id", "group"))] = field(default_factory=Columns)

    def open(self) -> tuple[Corpus, Corpus]:
        """Both sets, without their labels."""
        columns = replace(self.columns, label="")
        return open_corpus(self.a, columns), open_corpus(self.b, columns)


@dataclass(frozen=True, slots=True)
class GapSettings:
    """Which classifiers compare two sets, and the seed of their folds: no verdict comes of it."""

    classifiers: tuple[str, ...] = like(AuditSettings, "classifiers")
    seed: int = seed_option()

    def __post_init__(self) -> None:
        check_ranges(self)


def gap(pair: Pair, settings: GapSettings) -> Answer:
    """How far apart two sets of texts are, by classifiers that see no model."""
    from pretrace.baselines.classifier_two_sample import gap as measure

    announce_training(settings.classifiers)
    found = measure(*pair.open(), settings.classifiers, seed=settings.seed)
    return Answer(say=partial(_said, found), own={"classifiers": found})


def _said(found: Sequence[Gap], console: Console) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("classifier", overflow="fold")
    table.add_column("AUC", justify="right", no_wrap=True)
    table.add_column("texts", justify="right")
    for one in found:
        auc = f"{one.auc.value:.3f} [{one.auc.low:.3f}, {one.auc.high:.3f}]"
        table.add_row(Plain(one.classifier), auc, f"{one.texts:,}")
    table.caption = Plain(
        "0.5: no classifier of texts can tell A from B. Where one can, a membership score may, too."
    )
    console.print(table)
    for one in found:
        if one.note:
            console.print(Plain(one.note), soft_wrap=True)


def quality(
    pair: Pair,
    settings: Comparing,
    embeddings: Annotated[
        str,
        Option(
            "Model of the similarity: minilm (extra: embeddings), a sentence-transformers folder or hub id, "
            "or none.",
            panel="",
            path="in",
        ),
    ] = "minilm",
    figures: Annotated[
        Path | None, Option("Write the figures to this JSON file, too.", panel="", path="out")
    ] = None,
) -> Answer:
    """How alike two sets of texts are, beside how alike A is to itself: shared words, embeddings, divergence."""
    from pretrace.results.serialization import to_json
    from pretrace.statistics.set_similarity import compare_sets

    if figures is not None:
        check_writable(figures, FIGURES)
    first, second = pair.open()
    embed, missing = _embedder(embeddings)
    found = compare_sets(first.texts, second.texts, settings, embed=embed)
    notes = [*found.notes, *([missing] if missing else [])]
    own = {
        "texts": {"a": found.texts[0], "b": found.texts[1]},
        "rows": [asdict(row) for row in found.rows],
        "notes": notes,
        "settings": {"a": pair.a, "b": pair.b, "embeddings": embeddings, **asdict(settings)},
    }
    if figures is not None:
        atomic_bytes(figures, to_json({_KEY: 1, **own}), FIGURES)

    def say(console: Console) -> None:
        console.print(_table(found))
        for row in found.rows:
            console.print(Plain(f"- {row.name}: {row.meaning}"))
        for note in notes:
            console.print(Plain(note))

    return Answer(say=say, own=own)


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
