"""A table is run by name: its settings become runs, ours stand beside the paper's, a killed run goes on."""

import csv
import re

import pytest

from benchmarks import read_results
from benchmarks.papers import __main__ as command
from benchmarks.papers import page
from benchmarks.papers.__main__ import FOLDER
from benchmarks.papers.comparing import compared
from benchmarks.papers.data import Given
from benchmarks.papers.detection import pieces
from benchmarks.papers.figures import Figure, Table, setting_of, tables
from pretrace.errors import TextsError

SOURCE = "arxivtection"


@pytest.fixture
def passages(tmp_path):
    """arXivTection in its published form: twelve articles of five passages."""
    path = tmp_path / "arxivtection.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"Example_{letter}" for letter in "ABCD"), "Answer", "ID", "Label"])
        for i in range(60):
            age = "early" if i // 5 % 2 else "late"
            text = f"passage {i} of article {i // 5} says the {age} word number {i * 7 % 13}"
            writer.writerow([text, "no", "no", "no", "A", f"article {i // 5}", i // 5 % 2])
    return path


def figure(score, metric="auc", value=0.6, **setting):
    return Figure(SOURCE, score, setting, "Big-7B", metric, value)


def table(*figures):
    said = {"paper": "Made", "what": "A made table.", "kind": "detection", "here": "yes", "runs": ""}
    return Table(name="made.table1", **said, figures=figures)


def test_every_detection_table_of_the_papers_becomes_runs():
    for one in tables().values():
        if one.kind != "detection":
            continue
        assert all(0 <= figure.value <= 1 for figure in one.figures), one.name
        wanted = [*one.figures, *one.drawn]
        made = pieces(wanted, Given())
        asked = {(f.corpus, f.score, repr(f.setting)) for f in wanted}
        assert sum(len(piece.scores) for piece in made) == len(asked)
        judged_here = pieces(wanted, Given(on=SOURCE))
        assert {piece.corpus for piece in judged_here} == {SOURCE}
        assert len(judged_here) <= len(made)


def test_a_table_is_run_and_compared(passages, model_folder, tmp_path):
    plain = figure("loss", value=0.9), figure("loss", "tpr", 0.2), figure("fsd(ppl)", value=None)
    one = table(*plain, figure("ref"), figure("fsd(ppl)", on="members"), figure("loss", planted="lora"))
    given = Given(model=str(model_folder), dtype="float32", data={SOURCE: passages}, limit=50)
    path = command.path_of(one, given, tmp_path / "out")
    command.run(one, given, path)
    found = read_results(path)
    rows = {(row["score"], row["setting"], row["metric"]): row for row in found["compared"]}
    ours = rows["loss", "", "auc"]
    assert ours["difference"] == round(ours["ours"][0] - 0.9, 4)
    assert rows["fsd(ppl)", "", "auc"]["ours"] is not None
    assert rows["fsd(ppl)", "", "auc"]["difference"] is None
    assert "--reference-model" in rows["ref", "", "auc"]["why"]
    assert "planted" in rows["loss", "planted='lora'", "auc"]["why"]
    assert found["settings"]["limit"] == 50
    judged = {(run["members"], run["nonmembers"]) for run in found["runs"]}
    assert len(judged) == 1  # base and tuned on the same texts
    members = next(run for run in found["runs"] if run["setting"] == "on='members'")
    usual = next(run for run in found["runs"] if run["setting"] == "")
    assert members["tuning"]["losses"] != usual["tuning"]["losses"]


def test_no_difference_is_given_between_two_corpora():
    rows = [{"corpus": SOURCE, "setting": "", "score": "loss", "kind": "score", "auc": [0.7, 0.6, 0.8]}]
    wanted = [Figure("wikimia()", "loss", {}, "Big-7B", "auc", 0.6)]
    (other,) = compared(wanted, rows, Given(on=SOURCE))
    assert (other["published"], other["ours"], other["difference"]) == (0.6, [0.7, 0.6, 0.8], None)
    (same,) = compared([figure("loss")], rows, Given())
    assert same["difference"] == pytest.approx(0.1)
    (stand_in,) = compared([figure("loss")], rows, Given(instead={SOURCE: "stdlib"}))
    assert stand_in["difference"] is None


def test_the_page_is_what_is_on_file(tmp_path):
    made = page.write_page(FOLDER, tmp_path / "papers.md").read_text("utf-8")
    assert made == page.PAPERS.read_text("utf-8"), "python -m benchmarks.papers --page"
    named = re.findall(r"\]\(([^)#]+)", made)
    assert len(named) > 10
    assert not [name for name in named if not (page.PAPERS.parent / name).exists()]


ENTRY = """
title = "On α"
[table1]
what = "AUC of two scores."
kind = "detection"
percent = true
digits = 1
runs = "A model."
here = "yes"
"""
ROWS = """corpus,score,setting,model,metric,value
wikimia(length=64),min_k(k=0.1),,Pythia-6.9B,auc,0.695
"""


@pytest.mark.parametrize("text", ["100", "counts=C4", "of=open('x')", "a=1)(b=2", "**{'a': 1}"])
def test_anything_but_names_with_values_is_no_setting(text):
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        setting_of(text)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("wikimia,ppl,,GPT-3,auc", "wanted 6 cells, found 5"),
        ("wikimia(length,ppl,,GPT-3,auc,0.5", "'wikimia(length' is no expression"),
        ("wikimia,ppl,on=x,GPT-3,auc,0.5", "'on=x' is no setting"),
        ("wikimia,ppl,,GPT-3,auc,nan", "found 'auc' and 'nan'"),
        ("wikimia(length=64),min_k(k=0.1),,Pythia-6.9B,auc,0.7", "the same figure as on line 2"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path, row, said):
    path = tmp_path / "fsd" / "table1.csv"
    path.parent.mkdir()
    (tmp_path / "fsd.toml").write_text(ENTRY, encoding="utf-8")
    path.write_text(ROWS + row + "\n", encoding="utf-8")
    with pytest.raises(TextsError, match=re.escape(f"{path} line 3: ") + ".*" + re.escape(said)):
        tables(tmp_path)
