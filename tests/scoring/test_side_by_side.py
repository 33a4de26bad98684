"""Runs side by side: their figures, their places in the table, and what forbids a comparison."""

import numpy as np
import pytest
from made import row, run_of

from pretrace.scoring.side_by_side import side_by_side
from pretrace.types import Estimate, Evaluation

AUC, PLACEBO, BLIND = Estimate(0.7, 0.6, 0.8), Estimate(0.55, 0.5, 0.6), Estimate(0.61, 0.5, 0.7)


def made(model="m", corpus="c", *, evaluated=True, **settings):
    """A run with two scores; keyword arguments are settings, those of the target by `target`."""
    rows = (
        row("loss", AUC, tpr=Estimate(0.2, 0.1, 0.3), texts=8),
        row("short", Estimate(0.52, 0.4, 0.6), "blind"),
        row("bag", BLIND, "blind"),
        row("loss", PLACEBO, "placebo", lead=Estimate(0.15, 0.1, 0.2), survives="yes"),
        row("zlib", 0.5),
    )
    target = {"name": model, "weights": "a" * 64, "prefix": [0], **settings.pop("target", {})}
    texts = {"sha256": corpus[0] * 64, **settings.pop("texts", {})}
    return run_of(
        np.arange(20).reshape(10, 2),
        [i % 2 == 0 if evaluated else None for i in range(10)],
        corpus=corpus,
        scores=("loss", "zlib"),
        evaluation=Evaluation(rows, 5, 5, 10, 1000, 0) if evaluated else None,
        settings={"models": {"target": target}, "texts": texts, **settings},
    )


def compared(*runs, scores=()):
    return side_by_side([(f"R{number}", run) for number, run in enumerate(runs, 1)], scores)


def apart(*runs):
    """The settings that differ, and whether the numbers still compare."""
    return {one.setting: one.compares for one in compared(*runs).differences}


def test_a_run_is_told_with_its_controls():
    found = compared(made("m", "c"), made("n", "c"), made("m", "d", evaluated=False))
    assert found.scores == ("loss", "zlib")
    run, _, plain = found.runs
    assert (run.model, run.corpus, run.folder, run.number) == ("m", "c", "R1", 1)
    assert (run.blind_name, run.blind) == ("bag", BLIND)
    one, scored = run.scores[0], plain.scores[0]
    assert (one.auc, one.placebo, one.survives, one.texts) == (AUC, PLACEBO, "yes", 8)
    assert (scored.auc, scored.median, scored.texts) == (None, 9.0, 10)
    assert found.differences == ()


SAME = {
    "windows": False,
    "counts": {"source": "y", "tokens": 7},
    "adapter": {"method": {"expression": "lora"}},
}


@pytest.mark.parametrize(
    ("changed", "setting", "compares"),
    [
        ({}, None, True),
        ({"target": {"prefix": []}}, "start token", False),
        ({"windows": True}, "windows", False),
        ({"counts": {"source": "x", "tokens": 7}}, "token counts", False),
        ({"counts": {"source": "y", "tokens": 8}}, "number of counted tokens", False),
        ({"adapter": {"method": {"expression": "ia3"}}}, "tuning", False),
        ({"seed": 5}, None, True),  # which the other did not record
    ],
)
def test_what_forbids_a_comparison(changed, setting, compares):
    assert apart(made(**SAME), made("n", **{**SAME, **changed})) == ({setting: compares} if setting else {})


@pytest.mark.parametrize(
    ("changes", "models", "corpora", "different"),
    [
        (({}, {"texts": {"sha256": "d" * 64}}), "m", "c (cccccccc),c (dddddddd)", {"texts of c": False}),
        (({}, {"target": {"weights": "b" * 64}}), "m (aaaaaaaa),m (bbbbbbbb)", "c", {"weights of m": True}),
        (({}, {"target": {"revision": "main"}}), "m", "c", {}),
        (
            [{"target": {"weights": None, "revision": name}} for name in ("step10000", "step100000")],
            "m (step10000),m (step100000)",
            "c",
            {"revision of m": True},
        ),
    ],
)
def test_what_bears_one_name_stands_apart(changes, models, corpora, different):
    runs = [made(**one) for one in changes]
    found = compared(*runs)
    named = (
        ",".join(dict.fromkeys(getattr(run, name) for run in found.runs)) for name in ("model", "corpus")
    )
    assert tuple(named) == (models, corpora)
    assert apart(*runs) == different
