"""`pretrace runs table`: a measured run for a paper."""

from dataclasses import replace
from pathlib import Path

import pytest

from pretrace.report.tables import format_table
from pretrace.runs import load_run, save
from pretrace.scoring.detect import Options, detect
from pretrace.scoring.evaluation import evaluate
from pretrace.testing import Memory
from pretrace.types import Corpus, Text


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A working folder with the runs LABELLED and SCORED, of one model and other texts."""
    monkeypatch.chdir(tmp_path)
    texts = [Text(f"t{i}", f"number {i} of some", member=i % 2 == 1) for i in range(40)]
    for name, some in (("LABELLED", texts), ("SCORED", texts[:9])):
        corpus = Corpus(name, tuple(some))
        run = detect(corpus, Memory(), "loss,zlib", Options(cache=False))
        save(evaluate(run, corpus) if name == "LABELLED" else run, name)


@pytest.mark.usefixtures("runs")
def test_a_table_for_a_paper_in_latex_and_markdown(ask):
    run = load_run(Path("LABELLED"))
    scores = [row for row in run.evaluation.rows if row.kind == "score"]
    best = max(scores, key=lambda row: row.auc.value)
    latex = ask("runs", "table", "LABELLED", "--latex")[0].splitlines()
    assert latex[1:3] == [r"\begin{tabular}{lrrr}", r"\toprule"]
    assert latex[-1] == r"\end{tabular}"
    row = next(line for line in latex if line.startswith(f"{best.name} & "))
    spread = f"[{best.auc.low:.2f}, {best.auc.high:.2f}]"
    assert row.split(" & ")[1] == rf"\textbf{{{best.auc.value:.3f}}} {{\scriptsize {spread}}}"
    rows = tuple(replace(one, auc=best.auc) for one in run.evaluation.rows)  # a control is never bold
    table = format_table(replace(run, evaluation=replace(run.evaluation, rows=rows)), "latex")
    assert table.count(rf"\textbf{{{best.auc.value:.3f}}}") == len(scores) < len(rows)
    assert f"| **{best.auc.value:.3f}** {spread} |" in ask("runs", "table", "LABELLED", "--markdown")[0]
    assert format_table(run, "latex").splitlines() == latex
    said = ask("runs", "table", "SCORED", "--latex", code=2)[1]
    assert "give labelled texts to pretrace evaluate" in said


@pytest.mark.usefixtures("runs")
def test_figures_for_a_paper_are_pdf_and_svg_and_bear_no_date(ask):
    for folder in ("F", "G"):
        assert "AUC" in ask("runs", "table", "LABELLED", "--figures", folder)[0]
    names = {path.name for path in Path("F").iterdir()}
    assert names == {f"{name}.{end}" for name in ("roc", "roc-log", "auc") for end in ("pdf", "svg")}
    assert Path("F/roc.pdf").read_bytes().startswith(b"%PDF")
    for name in names:
        assert Path("F", name).read_bytes() == Path("G", name).read_bytes()
