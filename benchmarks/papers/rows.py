"""Figures of the papers on one corpus, beside which ours are shown: rows from the tables in `benchmarks.papers`."""

from __future__ import annotations

from typing import Any

from benchmarks.papers.figures import tables

MEASURES = ("auc", "tpr")


def fsd_arxivtection() -> list[dict[str, Any]]:
    """A row a figure: AUC (table 1) and TPR@5%FPR (table 12) on ArXivTection, base and FSD, five models."""
    return published("arxivtection", "fsd.table1", "fsd.table12")


def na_pdd_arxiv_mia() -> list[dict[str, Any]]:
    """A row a figure: AUC (table 2) and TPR@5%FPR (table 3) on ArxivMIA, ten methods, two models."""
    return published("arxiv_mia", "na_pdd.table2", "na_pdd.table3")


def published(corpus: str, *names: str) -> list[dict[str, Any]]:
    """The figures that tables print for a corpus, in their order, each with the paper and table it is from."""
    known = tables()
    return [
        {
            "score": figure.score,
            "model": figure.model,
            figure.metric: figure.value,
            "paper": known[name].paper,
            "where": f"{name}, {corpus}, {figure.model}",
        }
        for name in names
        for figure in known[name].figures
        if figure.corpus == corpus and figure.metric in MEASURES
    ]
