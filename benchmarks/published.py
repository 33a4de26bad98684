"""Figures of the papers, as printed there, beside which ours are shown."""

from __future__ import annotations

from typing import Any

FSD = "FSD, Zhang et al. (papers/fsd.txt)"
NA_PDD = "NA-PDD, Tang et al. (papers/na_pdd.txt)"

_FSD_MODELS = ("GPT-J-6B", "OPT-6.7B", "Pythia-6.9B", "LLaMA-7B", "NeoX-20B")
_FSD_SCORES = ("ppl", "lowercase", "zlib", "min_k")
# A row a score, and in it for each model the pair of columns Base and +Ours.
_FSD_AUC = (
    ((0.79, 0.96), (0.68, 0.89), (0.77, 0.95), (0.68, 0.92), (0.79, 0.95)),
    ((0.59, 0.81), (0.58, 0.70), (0.60, 0.77), (0.50, 0.69), (0.62, 0.75)),
    ((0.64, 0.96), (0.55, 0.89), (0.63, 0.95), (0.57, 0.91), (0.65, 0.95)),
    ((0.85, 0.92), (0.74, 0.84), (0.84, 0.91), (0.76, 0.86), (0.85, 0.91)),
)
_FSD_TPR = (
    ((0.26, 0.79), (0.12, 0.63), (0.25, 0.66), (0.10, 0.81), (0.27, 0.77)),
    ((0.13, 0.23), (0.15, 0.22), (0.15, 0.25), (0.09, 0.16), (0.13, 0.20)),
    ((0.15, 0.80), (0.07, 0.60), (0.14, 0.50), (0.08, 0.66), (0.16, 0.77)),
    ((0.42, 0.57), (0.24, 0.45), (0.41, 0.35), (0.24, 0.45), (0.40, 0.58)),
)

_NA_PDD_MODELS = ("TinyLLaMA-1.1B", "OpenLLaMA-13B")
# The columns ArxivMIA, in percent: AUC (table 2), then TPR@5%FPR (table 3); None where the table has a dash.
_NA_PDD: dict[str, tuple[tuple[float | None, float], tuple[float | None, float]]] = {
    "loss": ((45.1, 49.1), (5.1, 5.6)),
    "neighbor": ((55.9, 56.2), (7.9, 6.5)),
    "min_k": ((45.5, 49.2), (4.5, 5.1)),
    "min_k_plus_plus": ((47.8, 52.0), (5.1, 6.1)),
    "dc_pdd": ((46.2, 48.7), (3.6, 4.8)),
    "zlib": ((43.0, 43.8), (2.5, 3.5)),
    "lowercase": ((45.8, 48.8), (4.3, 6.3)),
    "ref": ((None, 56.7), (None, 10.5)),
    "probe": ((53.2, 59.0), (7.5, 7.4)),
    "na_pdd": ((57.2, 59.3), (10.1, 10.5)),
}


def fsd_arxivtection() -> list[dict[str, Any]]:
    """A row a figure: AUC (table 1) and TPR@5%FPR (table 12) on ArXivTection, base and FSD, five models."""
    made = []
    for measure, table, figures in (("auc", 1, _FSD_AUC), ("tpr", 12, _FSD_TPR)):
        for score, row in zip(_FSD_SCORES, figures, strict=True):
            for model, (base, ours) in zip(_FSD_MODELS, row, strict=True):
                for column, name, value in (("Base", score, base), ("+Ours", f"fsd({score})", ours)):
                    where = f"table {table}, rows ArXivTection, column {model} {column}"
                    made.append(_figure(FSD, where, model=model, score=name, **{measure: value}))
    return made


def na_pdd_arxiv_mia() -> list[dict[str, Any]]:
    """A row a figure: AUC (table 2) and TPR@5%FPR (table 3) on ArxivMIA, ten methods, two models."""
    made = []
    for place, (measure, table) in enumerate((("auc", 2), ("tpr", 3))):
        for score, figures in _NA_PDD.items():
            for model, value in zip(_NA_PDD_MODELS, figures[place], strict=True):
                if value is not None:
                    where = f"table {table}, column ArxivMIA {model}"
                    value = round(value / 100, 4)
                    made.append(_figure(NA_PDD, where, model=model, score=score, **{measure: value}))
    return made


def _figure(paper: str, where: str, *, model: str, score: str, **measured: float) -> dict[str, Any]:
    return {"score": score, "model": model, **measured, "paper": paper, "where": where}
