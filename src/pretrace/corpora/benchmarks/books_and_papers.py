"""Books and research papers, members and non-members told apart by date: BookMIA, ArxivMIA and the Tections."""

from __future__ import annotations

from typing import Literal

from pretrace.corpora.benchmarks.published import Cells, Schema, add_card, keep_texts, read_table
from pretrace.corpora.columns import kind_of
from pretrace.registry import corpora
from pretrace.types import Corpus

_BOOKMIA = Schema("BookMIA", text="snippet", group="book", meta=("book_id", "snippet_id"))
_ARXIV_MIA = Schema("ArxivMIA", text="text", needed=("field",), meta=("field",))


@corpora.add("bookmia")
def bookmia(path: str | None = None) -> Corpus:
    """Excerpts of 512 words from old books against books of 2023 (Shi et al. 2024).

    The group is the book. `path` is a file, or a folder with one, of the columns `snippet`, `label` and `book`,
    as on the hub. Raises TextsError where the texts cannot be had.
    """
    return add_card(read_table(_BOOKMIA, "swj0419/BookMIA::train", path, "book_data"), "bookmia")


@corpora.add("arxiv_mia")
def arxiv_mia(field: Literal["cs", "math"] | None = None, path: str | None = None) -> Corpus:
    """Abstracts of computer science and mathematics, older against newer (Liu et al. 2024).

    `field` is cs or math, None for both. Each abstract is a document of its own. `path` is a file, or a folder with
    arxiv_mia.jsonl, of the columns `text`, `field` and `label`, as on the hub. Raises TextsError where the texts
    cannot be had.
    """
    corpus = read_table(_ARXIV_MIA, "zhliu/ArxivMIA:arxiv_mia:train", path, "arxiv_mia")
    if field is not None:
        corpus = keep_texts(
            corpus, lambda text: text.meta["field"].strip().lower() == field, f"field {field}"
        )
    return add_card(corpus, "arxiv_mia")


_OPTIONS = ("A", "B", "C", "D")
_PASSAGE = "Example_ that Answer names"


def _passage(cells: Cells) -> Cells:
    answer = cells["Answer"]
    letter = answer.strip().upper() if isinstance(answer, str) else ""
    if letter not in _OPTIONS:
        found = repr(answer)[:40] if isinstance(answer, str) else kind_of(answer)
        raise ValueError(f"Answer should name the true passage, A, B, C or D, and holds {found}")
    return {_PASSAGE: cells[f"Example_{letter}"]}


def _schema(benchmark: str, *more: str) -> Schema:
    columns = (*(f"Example_{letter}" for letter in _OPTIONS), "Answer", *more)
    return Schema(
        benchmark, text=_PASSAGE, label="Label", group="ID", needed=columns, meta=more,
        derive=_passage, derived=(_PASSAGE,),
    )  # fmt: skip


@corpora.add("arxivtection")
def arxivtection(path: str | None = None) -> Corpus:
    """Passages of research papers before 2022 against papers of 2023 (Duarte et al. 2024).

    The passage is the `Example_` column that `Answer` names, the group the paper (`ID`). `path` is the file as
    published, or a folder with it. Raises TextsError where the texts cannot be had.
    """
    hub = "avduarteai/arXivTection::train"
    return add_card(read_table(_schema("arXivTection"), hub, path, "0_arXivTection_data"), "arxivtection")


@corpora.add("booktection")
def booktection(length: Literal["small", "medium", "large"] | None = None, path: str | None = None) -> Corpus:
    """Passages of books before 2022 against books of 2023, in three sizes (Duarte et al. 2024).

    `length` is small, medium or large (about 64, 128 and 256 tokens), None for all together, as FSD does. The
    passage is the `Example_` column that `Answer` names, the group the book (`ID`). `path` is the file as published, or
    a folder with it. Raises TextsError where the texts cannot be had.
    """
    schema = _schema("BookTection", "Length")
    corpus = read_table(schema, "avduarteai/BookTection::train", path, "0_BookTection_data")
    if length is not None:
        corpus = keep_texts(
            corpus, lambda text: text.meta["Length"].strip().lower() == length, f"Length {length}"
        )
    return add_card(corpus, "booktection")
