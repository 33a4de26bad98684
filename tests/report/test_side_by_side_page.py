"""The page of several runs: what does not compare first, the controls beside each score, hostile names as text."""

import re
from dataclasses import replace

from pretrace.report.side_by_side import render
from pretrace.scoring.side_by_side import side_by_side


def words(html):
    return " ".join(re.sub(r"<[^>]+>", " ", html.split("</style>")[1]).split())


def page(*runs, scores=()):
    return render(side_by_side([(f"R{number}", run) for number, run in enumerate(runs, 1)], scores))


def with_target(run, **facts):
    return replace(run, settings={"models": {"target": {"name": "m", **facts}}})


def test_the_controls_stand_beside_each_score(controlled):
    run = controlled()
    said = words(page(run, with_target(run), scores=("na_pdd",)))
    by_kind = {
        row.kind: row.auc for row in run.evaluation.rows if row.name == "na_pdd" or row.kind == "blind"
    }
    for kind, word in (("blind", "blind control"), ("placebo", "placebo")):
        assert f"{word} {by_kind[kind].value:.3f}" in said
    assert "shuffled labels 0.380 to 0.620" in said
    assert "hollow square: the same score on the placebo" in said
    assert "The runs were made alike" in said


def test_what_does_not_compare_is_said_first(labelled):
    run = labelled(("loss",), 20)
    said = words(page(with_target(run, prefix=[]), with_target(run, prefix=[1])))
    assert said.index("Not all of these numbers compare") < said.index("These do not compare")
    assert "no start token (run 1) ; a start token before each text (run 2)" in said
    assert said.index("These do not compare") < said.index("AUC with its 95% interval")
    assert "run 1 0." in said  # two runs in one cell are told apart
