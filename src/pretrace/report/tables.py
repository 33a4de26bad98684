"""A measured run for a paper: its table in LaTeX or Markdown, and its figures as PDF and SVG files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pretrace.errors import OutputError, shown
from pretrace.results.atomic import new_folder
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
    found = _measured(run)
    latex = form == "latex"
    best = {
        title: max((f"{of(row).value:.3f}" for row in found.rows if row.kind == "score"), default="")
        for title, of in _COLUMNS.items()
    }
    rows = [
        [
            _escape(NAMES.get(row.kind, "{}").format(row.name), latex),
            *(
                _cell(of(row), latex, bold=row.kind == "score" and f"{of(row).value:.3f}" == best[title])
                for title, of in _COLUMNS.items()
            ),
        ]
        for row in found.rows
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
    from pretrace.report import plots, svg

    found = _measured(run)
    rows, floor = found.rows, 0.5 / max(10, found.nonmembers, found.members)
    figures = {"roc": plots.roc(rows), "roc-log": plots.roc(rows, floor=floor), "auc": plots.forest(rows)}
    names = [f"{name}.{ending}" for name in figures for ending in ("pdf", "svg")]
    undated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}  # the same bytes each time
    with new_folder(Path(folder)) as partial, svg.styled():
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


def _cell(one: Estimate, latex: bool, *, bold: bool) -> str:
    value, spread = f"{one.value:.3f}", f"[{one.low:.2f}, {one.high:.2f}]"
    if latex:
        small = rf" {{\scriptsize {spread}}}"
        return rf"\textbf{{{value}}}" + small if bold else value + small
    return f"{f'**{value}**' if bold else value} {spread}"


def _escape(text: str, latex: bool) -> str:
    text = shown(text)
    if latex:
        return "".join(_LATEX.get(sign, sign) for sign in text)
    return re.sub(r"([\\`*_|<\[\]])", r"\\\1", text)
