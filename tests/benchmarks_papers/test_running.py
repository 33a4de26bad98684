"""A table is run by name: its settings become runs, ours stand beside the paper's, a killed run goes on."""

import csv
from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks import read_results
from benchmarks.papers import __main__ as command
from benchmarks.papers.comparing import compared
from benchmarks.papers.data import Given
from benchmarks.papers.detection import pieces
from benchmarks.papers.figures import Figure, Table, tables

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
    return Table(
        name="made.table1",
        paper="Made",
        what="A made table.",
        kind="detection",
        here="yes",
        runs="",
        figures=figures,
    )


def run(one, given, folder):
    path = command.path_of(one, given, folder)
    command.run(one, given, path)
    found: dict[str, Any] = read_results(path)
    return found


def test_every_detection_table_of_the_papers_becomes_runs():
    for one in tables().values():
        if one.kind != "detection":
            continue
        wanted = [*one.figures, *one.drawn]
        made = pieces(wanted, Given())
        assert sum(len(piece.scores) for piece in made) == len(
            {(f.corpus, f.score, repr(f.setting)) for f in wanted}
        )
        judged_here = pieces(wanted, Given(on=SOURCE))
        assert {piece.corpus for piece in judged_here} == {SOURCE}
        assert len(judged_here) <= len(made)


def test_a_table_is_run_and_compared(passages, model_folder, tmp_path):
    one = table(
        figure("loss", value=0.9),
        figure("loss", "tpr", 0.2),
        figure("fsd(ppl)", value=None),
        figure("ref"),
        figure("fsd(ppl)", on="members"),
        figure("loss", planted="lora"),
    )
    given = Given(model=str(model_folder), dtype="float32", data={SOURCE: passages}, limit=50)
    found = run(one, given, tmp_path / "out")
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
    rows: Sequence[dict[str, Any]] = [
        {"corpus": SOURCE, "setting": "", "score": "loss", "kind": "score", "auc": [0.7, 0.6, 0.8]}
    ]
    wanted = [Figure("wikimia()", "loss", {}, "Big-7B", "auc", 0.6)]
    (other,) = compared(wanted, rows, Given(on=SOURCE))
    assert (other["published"], other["ours"], other["difference"]) == (0.6, [0.7, 0.6, 0.8], None)
    (same,) = compared([figure("loss")], rows, Given())
    assert same["difference"] == pytest.approx(0.1)
    (stand_in,) = compared([figure("loss")], rows, Given(instead={SOURCE: "stdlib"}))
    assert stand_in["difference"] is None
