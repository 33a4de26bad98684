"""`pretrace build`: benchmarks made from texts a user has, and two sets of texts compared (`gap`, `quality`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

from pretrace.baselines import gap as measure
from pretrace.baselines import open_embedder
from pretrace.cli.commands import Reply, plain_table, prose
from pretrace.cli.telling import doing, watched
from pretrace.corpora import Columns, open_corpus
from pretrace.errors import ExpressionError, MissingPackageError
from pretrace.plugins.build.ccnews import (
    BackTranslation,
    CcnewsSettings,
    Masking,
    Rewriting,
    TransformMethod,
    build_ccnews,
    read_side,
)
from pretrace.plugins.build.patents import PatentPages, PatentSettings, build_patents
from pretrace.plugins.build.set_similarity import Comparing, compare_sets
from pretrace.plugins.build.writing import Built
from pretrace.results.atomic import OutputFile, atomic_bytes, check_writable, json_with
from pretrace.results.folder import to_json
from pretrace.results.wording import bracketed, first_of, say
from pretrace.scoring.plan import ScoreSettings
from pretrace.settings import COLUMNS, Option, option
from pretrace.types import Corpus
from pretrace.verdicts.audit.data import AuditSettings

Unlabelled = Annotated[Columns, "text", "id", "group", "template", "split", "files", "encoding"]
"""How texts are read whose labels are not."""
Out = Annotated[
    Path,
    Option("The JSON lines to write, such as patentmia.jsonl; a card goes beside.", panel="", path="out"),
]


def patents(pages: PatentPages, out: Out, settings: PatentSettings) -> Reply:
    """PatentMIA from patent pages you have: snippets of Chinese patents, old ones against new ones."""
    with doing("building the benchmark", spinner=True):
        built = build_patents(pages, out, settings)
    card = built.card
    blind = card["blind"]
    found = [f"Note: {note}" for note in card["notes"]]
    found.append(f"{'Warning' if blind['tells_apart'] else 'Note'}: {blind['says']}")
    return _answer(built, card["counts"], found, f"patentmia(path='{out}')")


@dataclass(frozen=True, slots=True, kw_only=True)
class _CcnewsInputs:
    """Both sides as they are, how the non-members are transformed, and where the benchmark goes."""

    members: str = option(
        help="Texts the models were trained on, the paper's being Pile-CC; as for `score`.",
        panel="",
        path="in",
    )
    nonmembers: str = option(help="Texts they were not trained on: CC-News of 2017.", panel="", path="in")
    transform: Literal["trans", "mask", "prompt"] = option(
        help="trans: translated there and back; mask: BERT's words; prompt: rewritten by a model.", panel=""
    )
    out: Path = option(help="Folder for {trans,mask,prompt}.jsonl and its card.", panel="", path="out")
    date_column: str | None = COLUMNS.key(None, "Column with the non-members' date.", name="date")
    year: int = option(2017, "Year of the non-members that are taken, with --columns date.", panel="Sides")
    columns: Unlabelled = field(default_factory=Columns)


def ccnews(
    inputs: _CcnewsInputs, settings: CcnewsSettings, trans: BackTranslation, mask: Masking, prompt: Rewriting
) -> Reply:
    """Build a CCNewsPDD: members as they are, non-members transformed so that no model can have read them."""
    if inputs.transform == "prompt" and not prompt.model:
        raise ExpressionError(say("build.refused.no_rewriter"))
    methods: dict[str, TransformMethod] = {"trans": trans, "mask": mask, "prompt": prompt}
    columns, method = inputs.columns, methods[inputs.transform]
    others = read_side(inputs.nonmembers, columns, date_column=inputs.date_column, year=inputs.year)
    members = read_side(inputs.members, columns)
    with watched("transforming") as progress:
        built = build_ccnews(members, others, method, folder=inputs.out, settings=settings, progress=progress)
    blind = built.card["blind"]
    titles = {"original": "originals", "published": "as published", "transform_both": "both sides"}
    found = [f"- {title}: {blind[name]['says']}" for name, title in titles.items() if blind[name]]
    counts = {name: side["texts"] for name, side in built.card["rows"].items()}
    corpus = f"ccnewspdd(path='{inputs.out}', kind='{method.kind}')"
    return _answer(built, counts, [*found, blind["finding"]], corpus)


def _answer(built: Built, counts: Mapping[str, int], found: Sequence[str], corpus: str) -> Reply:
    """What was written, how many of either class, what was left out, what was `found`, and what to do next."""
    rows = len(built.rows)
    first = f"Members: {counts['members']:,}; non-members: {counts['nonmembers']:,}; rows: {rows:,}."
    said = [first]
    for why, out in built.card["left_out"].items():
        shown = first_of(list(map(repr, out["ids"][:3])), out["count"])
        said.append(f"Left out: {out['count']:,}, {why}: {shown}; all in the card.")
    said += [*found, f"Written: {built.out}, {built.card_path}"]
    said.append(f'Try: pretrace evaluate "{corpus}" --model MODEL --out RUN')
    files = {"file": str(built.out), "card_file": str(built.card_path)}
    own = {**files, "rows": rows, "card": built.card}
    return Reply(said, outcome="built", statement=first, own=own)


_KEY = "pretrace_quality"
FIGURES = OutputFile("figures", json_with(_KEY))
"""The file of `quality --figures`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _TextSets:
    """Two sets of texts."""

    a: str = option(help="Texts, as for `score`: the members' side.", metavar="A", path="in")
    b: str = option(help="The texts they are compared with.", metavar="B", path="in")
    columns: Unlabelled = field(default_factory=Columns)

    def _open(self) -> tuple[Corpus, Corpus]:
        """Both sets, without their labels."""
        columns = replace(self.columns, label="")
        return open_corpus(self.a, columns), open_corpus(self.b, columns)


def gap(
    pair: _TextSets,
    settings: Annotated[AuditSettings, "classifiers"],
    drawn: Annotated[ScoreSettings, "seed"],
) -> Reply:
    """How far apart two sets of texts are, by classifiers that see no model."""
    found = measure(*pair._open(), settings.classifiers, seed=drawn.seed)

    rows = [(one.classifier, bracketed(one.auc, ends=3), f"{one.texts:,}") for one in found]
    words = "0.5: no classifier of texts can tell A from B. Where one can, a membership score may, too."
    table = plain_table("classifier", numbers=("AUC", "texts"), rows=rows, caption=words)
    return Reply([table, *(one.note for one in found if one.note)], own={"classifiers": found})


def quality(
    pair: _TextSets,
    settings: Comparing,
    embeddings: Annotated[
        str, Option("minilm, a sentence-transformers folder or hub id, or none.", panel="", path="in")
    ] = "minilm",
    figures: Annotated[
        Path | None, Option("Write the figures to this JSON file, too.", panel="", path="out")
    ] = None,
) -> Reply:
    """How alike two sets of texts are, beside how alike A is to itself: shared words, embeddings, divergence."""
    if figures is not None:
        check_writable(figures, FIGURES)
    first, second = pair._open()
    missing = ""
    try:
        embed = None if embeddings == "none" else open_embedder(embeddings)
    except MissingPackageError as error:
        embed, missing = None, f"Similarity of embeddings is left out: {error}."
    rows, (size, other), notes = compare_sets(first.texts, second.texts, settings, embed=embed)
    notes += [missing] if missing else []
    own = {
        "texts": {"a": size, "b": other},
        "rows": [asdict(row) for row in rows],
        "notes": notes,
        "settings": {"a": pair.a, "b": pair.b, "embeddings": embeddings, **asdict(settings)},
    }
    if figures is not None:
        atomic_bytes(figures, to_json({_KEY: 1, **own}), FIGURES)

    measures = [(row.name, *(bracketed(one, 4, 4) for one in (row.inside, row.across))) for row in rows]
    words = f"{size:,} texts of A, {other:,} of B; 95% intervals"
    table = plain_table("measure", numbers=("A with A", "A with B"), rows=measures, caption=words)
    return Reply([table, *map(prose, (*(f"- {row.name}: {row.meaning}" for row in rows), *notes))], own=own)
