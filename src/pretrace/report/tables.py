"""A measured run for a paper: its table in LaTeX or Markdown, and its figures as PDF and SVG files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pretrace.errors import OutputError, shown
from pretrace.results.atomic import new_folder
from pretrace.results.wording import bracketed
from pretrace.types import Estimate, Evaluation, Measured, Run

Form = Literal["latex", "markdown"]
_COLUMNS: dict[str, Callable[[Measured], Estimate]] = {
    "AUC": lambda row: row.auc,
    "TPR at 5% FPR": lambda row: row.tpr,
    "accuracy": lambda row: row.accuracy,
}
NAMES = {"blind": "{} (blind)", "placebo": "{} (placebo)", "shuffled": "{} (labels shuffled)"}
_LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
}


def format_table(run: Run, form: Form) -> str:
    """The figures of each score and control with 95% intervals over documents; the best score of each column is bold.
    LaTeX is a `tabular` with the rules of booktabs. OutputError where the run was not measured."""
    found, latex = _measured(run), form == "latex"
    scores = [row for row in found.rows if row.kind == "score"]
    best = {t: max((f"{of(row).value:.3f}" for row in scores), default="") for t, of in _COLUMNS.items()}

    def cell(row: Measured, title: str) -> str:
        value, _, spread = bracketed(_COLUMNS[title](row)).partition(" ")
        if row.kind == "score" and value == best[title]:
            value = rf"\textbf{{{value}}}" if latex else f"**{value}**"
        return rf"{value} {{\scriptsize {spread}}}" if latex else f"{value} {spread}"

    names = [NAMES.get(row.kind, "{}").format(row.name) for row in found.rows]
    rows = [
        [_escape(name, latex), *(cell(row, title) for title in _COLUMNS)]
        for name, row in zip(names, found.rows, strict=True)
    ]
    heads = ["score", *(_escape(title, latex) for title in _COLUMNS)]
    sides = f"{found.members:,} members, {found.nonmembers:,} non-members"
    said = _escape(f"{run.corpus}: {sides}, {found.groups:,} documents; 95% intervals", latex)
    if not latex:
        every = (heads, ["---", *["---:"] * (len(heads) - 1)], *rows)
        return "\n".join((*(f"| {' | '.join(row)} |" for row in every), "", said))
    first, *lines = (" & ".join(row) + r" \\" for row in (heads, *rows))
    begin = r"\begin{tabular}{l" + "r" * (len(heads) - 1) + "}"
    ruled = (begin, r"\toprule", first, r"\midrule", *lines, r"\bottomrule")
    return "\n".join((f"% {said}", *ruled, r"\end{tabular}"))


def save_figures(run: Run, folder: str | Path) -> tuple[Path, ...]:
    """Write ROC curves and AUCs as PDF and SVG to a new `folder`; OutputError where it is there or nothing was
    measured."""
    from pretrace.report import figures as drawn

    found = _measured(run)
    rows, floor = found.rows, 0.5 / max(10, found.nonmembers, found.members)
    figures = {"roc": drawn.roc(rows), "roc-log": drawn.roc(rows, floor=floor), "auc": drawn.forest(rows)}
    names = [f"{name}.{ending}" for name in figures for ending in ("pdf", "svg")]
    undated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}  # the same bytes each time
    with new_folder(Path(folder)) as partial, drawn.styled():
        for name in names:
            stem, _, form = name.partition(".")
            figures[stem].savefig(partial / name, facecolor="white", metadata=undated[form])
    return tuple(Path(folder) / name for name in names)


def _measured(run: Run) -> Evaluation:
    if run.evaluation is None:
        raise OutputError(
            f"the run of {run.corpus} was not measured, so it has no figures: give labelled texts to pretrace evaluate."
        )
    return run.evaluation


def _escape(text: str, latex: bool) -> str:
    text = shown(text)
    if latex:
        return "".join(_LATEX.get(sign, sign) for sign in text)
    return re.sub(r"([\\`*_|<\[\]])", r"\\\1", text)
