"""The page of several runs: what does not compare first, the controls beside each score, hostile names as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from pretrace.report.side_by_side import render
from pretrace.scoring.side_by_side import side_by_side
from pretrace.types import Run


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html.split("</style>")[1]).split())


def page(*runs: Run, scores: tuple[str, ...] = ()) -> str:
    return render(side_by_side([(f"R{number}", run) for number, run in enumerate(runs, 1)], scores))


def with_target(run: Run, **facts: object) -> Run:
    return replace(run, settings={"models": {"target": {"name": "m", **facts}}})


def test_the_controls_stand_beside_each_score(controlled: Callable[..., Run]) -> None:
    run = controlled()
    assert run.evaluation is not None
    said = words(page(run, with_target(run), scores=("na_pdd",)))
    by_kind = {
        row.kind: row.auc for row in run.evaluation.rows if row.name == "na_pdd" or row.kind == "blind"
    }
    for kind, word in (("blind", "blind control"), ("placebo", "placebo")):
        assert f"{word} {by_kind[kind].value:.3f}" in said
    assert "shuffled labels 0.380 to 0.620" in said
    assert "hollow square: the same score on the placebo" in said
    assert "The runs were made alike" in said


def test_what_does_not_compare_is_said_first(labelled: Callable[..., Run]) -> None:
    run = labelled(("loss",), 20)
    said = words(page(with_target(run, prefix=[]), with_target(run, prefix=[1])))
    assert said.index("Not all of these numbers compare") < said.index("These do not compare")
    assert "no start token (run 1) ; a start token before each text (run 2)" in said
    assert said.index("These do not compare") < said.index("AUC with its 95% interval")
    assert "run 1 0." in said  # two runs in one cell are told apart


def test_runs_without_labels_show_medians(unlabelled: Callable[..., Run]) -> None:
    run = unlabelled()
    html = page(run, with_target(run), scores=("loss",))
    median = run.median("loss", None)
    assert f"median −{abs(median or 0):.4g}" in words(html)
    assert "40 texts; not evaluated" in words(html)
    assert "<svg" not in html
