"""The comparison of scores in an evaluation's report."""

import json
from dataclasses import replace

import made
import numpy as np
from made import evaluate

from pretrace.report.run import comparisons as section
from pretrace.report.run import render
from pretrace.results.run import load_run, save_run

TEXTS = [f"a{i % 5} b{i % 3}" for i in range(120)]


def run_of(scores=("zlib", "loss", "good"), seed=0):
    rng = np.random.default_rng(seed)
    members = np.arange(120) < 60
    base = rng.normal(size=120) + 0.4 * members
    columns = {"loss": base, "zlib": base + 0.3 * rng.normal(size=120), "good": base + 2 * members}
    matrix = np.column_stack([columns[name] for name in scores])
    run = made.run_of(matrix, members, scores=scores, settings={"seed": 3})
    return replace(run, evaluation=evaluate(run, TEXTS, seed=3, resamples=300, blind=False))


def test_there_is_nothing_to_compare_without_an_evaluation_or_a_second_score():
    assert section(run_of(("loss",))) is None
    assert section(replace(run_of(), evaluation=None)) is None


def test_a_stored_run_prints_what_was_compared_to_the_last_bit(tmp_path):
    save_run(run_of(), tmp_path / "run")
    loaded = load_run(tmp_path / "run")
    expected = run_of().evaluation.comparisons
    assert loaded.evaluation.comparisons == expected
    written = json.loads((tmp_path / "run" / "metrics.json").read_bytes())["comparisons"]
    assert [one["difference"]["high"] for one in written] == [one.difference.high for one in expected]
    page = render(loaded)
    assert page == render(run_of())
    for one in expected:
        assert f"[{one.difference.low:.3f}, {one.difference.high:.3f}]".replace("-", "−") in page
