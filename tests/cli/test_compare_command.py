"""`pretrace runs compare` and `table`: runs side by side, and a measured run for a paper."""

import shutil
from pathlib import Path

import pytest

from pretrace.corpora import open_corpus
from pretrace.report.tables import format_table
from pretrace.runs import load_run, save
from pretrace.scoring.detect import Options, detect
from pretrace.scoring.evaluation import evaluate
from pretrace.testing import Memory


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with the runs LABELLED and SCORED, of one model and other texts."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        lines = [f'{{"text": "number {i} of some", "label": {i % 2}, "id": "t{i}"}}\n' for i in range(40)]
        Path("one.jsonl").write_text("".join(lines))
        Path("two.txt").write_text("".join(f"line {i} of others\n" for i in range(9)))
        for name, place in (("LABELLED", "one.jsonl"), ("SCORED", "two.txt")):
            corpus = open_corpus(place)
            run = detect(corpus, Memory(), "loss,zlib", Options(cache=False))
            save(evaluate(run, corpus) if name == "LABELLED" else run, name)
    return folder


@pytest.fixture
def runs(made, tmp_path, monkeypatch):
    """The runs in a working folder of the test's own."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_runs_are_put_side_by_side(runs, ask):
    said, _ = ask("runs", "compare", "LABELLED", "SCORED", "--score", "zlib")
    auc = next(row.auc for row in load_run("LABELLED").evaluation.rows if row.name == "zlib")
    lines = said.splitlines()
    assert lines[0].split() == ["model", "corpus", "score", "AUC", "placebo", "blind"]
    assert f"{auc.value:.3f} [{auc.low:.2f}, {auc.high:.2f}]" in lines[1]
    assert lines[2].split()[-4:-2] == ["zlib", "–"]


def test_a_table_for_a_paper_in_latex_and_markdown(runs, ask):
    run = load_run(Path("LABELLED"))
    scores = [row for row in run.evaluation.rows if row.kind == "score"]
    best = max(scores, key=lambda row: row.auc.value)
    latex = ask("runs", "table", "LABELLED", "--latex")[0].splitlines()
    assert latex[1:3] == [r"\begin{tabular}{lrrr}", r"\toprule"]
    assert latex[-1] == r"\end{tabular}"
    row = next(line for line in latex if line.startswith(f"{best.name} & "))
    spread = f"[{best.auc.low:.2f}, {best.auc.high:.2f}]"
    assert row.split(" & ")[1] == rf"\textbf{{{best.auc.value:.3f}}} {{\scriptsize {spread}}}"
    assert sum(r"\textbf" in line.split(" & ")[1] for line in latex if " & " in line) == sum(
        f"{row.auc.value:.3f}" == f"{best.auc.value:.3f}" for row in scores
    )
    assert any(line.startswith(r"random\_") or "(blind)" in line for line in latex)
    assert f"| **{best.auc.value:.3f}** {spread} |" in ask("runs", "table", "LABELLED", "--markdown")[0]
    assert format_table(run, "latex").splitlines() == latex
    said = ask("runs", "table", "SCORED", "--latex", code=2)[1]
    assert "give labelled texts to pretrace evaluate" in said


def test_figures_for_a_paper_are_pdf_and_svg_and_bear_no_date(runs, ask):
    for folder in ("F", "G"):
        assert "AUC" in ask("runs", "table", "LABELLED", "--figures", folder)[0]
    names = {path.name for path in Path("F").iterdir()}
    assert names == {f"{name}.{end}" for name in ("roc", "roc-log", "auc") for end in ("pdf", "svg")}
    assert Path("F/roc.pdf").read_bytes().startswith(b"%PDF")
    for name in names:
        assert Path("F", name).read_bytes() == Path("G", name).read_bytes()
