"""Books and research papers, members and non-members told apart by date: BookMIA, ArxivMIA and the Tections."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pretrace.corpora.benchmarks.published import Cells, Schema, carded, kept, one_table, published
from pretrace.corpora.columns import kind_of
from pretrace.registry import corpora, require
from pretrace.types import Card, Corpus

_BOOKMIA_HUB = "swj0419/BookMIA"
_BOOKMIA_CARD = Card(
    title="BookMIA",
    what="Excerpts of 512 words from English books. Members are from the Books3 part of the Pile, non-members from "
    "books that first appeared in 2023.",
    size="9,870 excerpts.",
    licence="MIT, as stated on its page on the hub; the books themselves are under their owners' copyright.",
    citation="Shi et al. 2024, Detecting Pretraining Data from Large Language Models (ICLR 2024, arXiv:2310.16789)",
    home=_BOOKMIA_HUB,
    flaws=(
        "Old books against new ones: a bag of words that never saw a model reaches an AUC of 0.91 (Das et al. 2024).",
        "Some hundred books give about a hundred excerpts each, so the effective sample is the number of books: "
        "resample and split by book, as is done here, not by excerpt.",
    ),
)
_BOOKMIA = Schema("BookMIA", text="snippet", group="book", meta=("book_id", "snippet_id"))


@corpora.add("bookmia")
def bookmia(path: str | None = None) -> Corpus:
    """Excerpts of 512 words from old books against books of 2023 (Shi et al. 2024).

    The group is the book. `path` is a file, or a folder with one, of the columns `snippet`, `label` and `book`,
    as on the hub. Raises TextsError where the texts cannot be had.
    """
    source = f"{_BOOKMIA_HUB}::train" if path is None else one_table(Path(path), "book_data")
    return carded(published(source, _BOOKMIA), _BOOKMIA_CARD, "bookmia")


_ARXIV_MIA_HUB = "zhliu/ArxivMIA"
FIELDS = ("cs", "math")
_ARXIV_MIA_CARD = Card(
    title="ArxivMIA",
    what="Titles and abstracts from arXiv, computer science and mathematics. Members are papers from before the "
    "training data of the target models was collected, non-members papers from after that.",
    size="2,000 abstracts, half of them members: 800 of computer science, 1,200 of mathematics; 143 tokens on average.",
    licence="CC BY 4.0, as stated on its page on the hub.",
    citation="Liu et al. 2024, Probing Language Models for Pre-training Data Detection (ACL 2024, arXiv:2406.01333)",
    home=_ARXIV_MIA_HUB,
    flaws=(
        "Members and non-members are told apart by date, so subjects and fashions differ between them (NA-PDD, section "
        "4, on benchmarks split by time); read the blind baseline beside every score.",
        "It is hard: the best method of NA-PDD's table 2 reaches an AUC of 0.572 on TinyLLaMA-1.1B and 0.593 on "
        "OpenLLaMA-13B, so that intervals matter more than ranks.",
    ),
)
_ARXIV_MIA = Schema("ArxivMIA", text="text", needed=("field",), meta=("field",))


@corpora.add("arxiv_mia")
def arxiv_mia(field: Literal["cs", "math"] | None = None, path: str | None = None) -> Corpus:
    """Abstracts of computer science and mathematics, older against newer (Liu et al. 2024).

    `field` is cs or math, None for both. Each abstract is a document of its own. `path` is a file, or a folder with
    arxiv_mia.jsonl, of the columns `text`, `field` and `label`, as on the hub. Raises TextsError where the texts
    cannot be had, ExpressionError for another field.
    """
    require(
        field is None or field in FIELDS, f"arxiv_mia: field must be 'cs', 'math' or None, found {field!r}."
    )
    source = f"{_ARXIV_MIA_HUB}:arxiv_mia:train" if path is None else one_table(Path(path), "arxiv_mia")
    corpus = published(source, _ARXIV_MIA)
    if field is not None:
        corpus = kept(corpus, lambda text: text.meta["field"].strip().lower() == field, f"field {field}")
    return carded(corpus, _ARXIV_MIA_CARD, "arxiv_mia")


_ARXIVTECTION_HUB = "avduarteai/arXivTection"
_BOOKTECTION_HUB = "avduarteai/BookTection"
OPTIONS = ("A", "B", "C", "D")
SIZES = ("small", "medium", "large")
_PASSAGE = "Example_ that Answer names"

_CITATION = (
    "Duarte et al. 2024, DE-COP: Detecting Copyrighted Content in Language Models Training Data (ICML 2024, "
    "arXiv:2402.09910)"
)
_ARXIVTECTION_CARD = Card(
    title="arXivTection",
    what="Passages of about 128 tokens from research papers on arXiv: 25 papers from before 2022 (members), 25 of 2023 "
    "(non-members). Each row brings three paraphrases, which are not read here.",
    size="1,549 passages of 50 papers (762 members, 787 non-members).",
    licence="MIT, as stated on its page on the hub; the papers are under their own licences.",
    citation=_CITATION,
    home=f"{_ARXIVTECTION_HUB} (earlier avduarte333/arXivTection)",
    flaws=(
        "Members and non-members come from different years, hence different subjects and words; read the blind "
        "baseline beside every score.",
        "There are 50 papers with some thirty passages each: intervals and splits must go by paper, as they do here.",
        "Well-known papers stand among the members: they are quoted all over the web, so that more than one "
        "reading may have been learnt.",
    ),
)
_BOOKTECTION_CARD = Card(
    title="BookTection",
    what="Passages of about 64, 128 and 256 tokens (small, medium, large) from 165 books: 105 from before 2022 "
    "(members), 60 of 2023 (non-members). Each row brings three paraphrases, which are not read here.",
    size="About 16,400 passages over the three sizes; some thirty of each size from a book.",
    licence="MIT, as stated on its page on the hub; the books themselves are under their owners' copyright.",
    citation=_CITATION,
    home=f"{_BOOKTECTION_HUB} (earlier avduarte333/BookTection)",
    flaws=(
        "Built on BookMIA (FSD, appendix B), whose old and new books a bag of words tells apart with an AUC of "
        "0.91 (Das et al. 2024).",
        "The three sizes come from the same books: with all of them together a book must stay on one side of a "
        "split, as it does here.",
    ),
)


def _passage(cells: Cells) -> Cells:
    answer = cells["Answer"]
    letter = answer.strip().upper() if isinstance(answer, str) else ""
    if letter not in OPTIONS:
        found = repr(answer)[:40] if isinstance(answer, str) else kind_of(answer)
        raise ValueError(f"Answer should name the true passage, A, B, C or D, and holds {found}")
    return {_PASSAGE: cells[f"Example_{letter}"]}


def _schema(benchmark: str, *more: str) -> Schema:
    columns = (*(f"Example_{letter}" for letter in OPTIONS), "Answer", *more)
    return Schema(
        benchmark,
        text=_PASSAGE,
        label="Label",
        group="ID",
        needed=columns,
        meta=more,
        derive=_passage,
        derived=(_PASSAGE,),
    )


@corpora.add("arxivtection")
def arxivtection(path: str | None = None) -> Corpus:
    """Passages of research papers before 2022 against papers of 2023 (Duarte et al. 2024).

    The passage is the `Example_` column that `Answer` names, the group the paper (`ID`). `path` is the file as
    published, or a folder with it. Raises TextsError where the texts cannot be had.
    """
    source = f"{_ARXIVTECTION_HUB}::train" if path is None else one_table(Path(path), "0_arXivTection_data")
    return carded(published(source, _schema("arXivTection")), _ARXIVTECTION_CARD, "arxivtection")


@corpora.add("booktection")
def booktection(length: Literal["small", "medium", "large"] | None = None, path: str | None = None) -> Corpus:
    """Passages of books before 2022 against books of 2023, in three sizes (Duarte et al. 2024).

    `length` is small, medium or large (about 64, 128 and 256 tokens), None for all together, as FSD does. The
    passage is the `Example_` column that `Answer` names, the group the book (`ID`). `path` is the file as published, or
    a folder with it. Raises TextsError where the texts cannot be had, ExpressionError for another length.
    """
    require(
        length is None or length in SIZES,
        f"booktection: length must be 'small', 'medium', 'large' or None, found {length!r}.",
    )
    source = f"{_BOOKTECTION_HUB}::train" if path is None else one_table(Path(path), "0_BookTection_data")
    corpus = published(source, _schema("BookTection", "Length"))
    if length is not None:
        corpus = kept(corpus, lambda text: text.meta["Length"].strip().lower() == length, f"Length {length}")
    return carded(corpus, _BOOKTECTION_CARD, "booktection")
