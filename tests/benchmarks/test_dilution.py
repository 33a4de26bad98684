"""The benchmark of dilution: what is read in which order, and what is fitted to its cells."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import pytest

from benchmarks.audits import dilution
from benchmarks.audits.dilution import Ready, labelled_rows, law, not_run, packaged, planner, stream
from pretrace.statistics.power import auc_power
from pretrace.types import Corpus, Text

MEMBERS = [[-1 - i, 0] for i in range(dilution.DOCUMENTS)]
READY = Ready(MEMBERS, [[1 + i, 0] for i in range(3 * dilution.DOCUMENTS)])


def cell(place: str, **more: int) -> dict[str, Any]:
    return {"size": 1, "dilution": 2, "copies": 4, "place": place, "seed": 0, **more}


@pytest.mark.parametrize(("place", "middle"), [("early", 1 / 3), ("middle", 0.5), ("late", 2 / 3)])
def test_the_copies_stand_in_one_block_where_they_fit(place: str, middle: float) -> None:
    read = stream(READY, cell(place), twin=False)
    mine = [i for i, one in enumerate(read) if one[0] < 0]
    assert mine == list(range(mine[0], mine[0] + 4 * dilution.DOCUMENTS))
    assert (mine[0] + mine[-1] + 1) / 2 / len(read) == pytest.approx(middle)
    assert [one for one in read if one[0] > 0] == stream(READY, cell(place), twin=True)


def test_a_law_is_found_again_and_foresees_a_cell_that_was_left_out() -> None:
    rows, runs = [], []
    for copies in (1, 4, 16):
        for diluted in (1, 10):
            apart = math.exp(-1.5 + 0.6 * math.log(copies) - 0.2 * math.log(diluted))
            auc = NormalDist().cdf(apart / math.sqrt(2))
            key = cell("throughout", copies=copies, dilution=diluted)
            rows.append({**key, "score": "min_k_plus_plus", "auc": [auc, 0, 1]})
            power = {str(n): auc_power(auc, n, n) for n in (25, 400)}
            runs.append({**key, "audit": {"without_placebo": power}})
    found = {"rows": rows, "runs": runs}
    fitted = law(found)["min_k_plus_plus"]
    assert fitted["exponents"] == pytest.approx({"constant": -1.5, "copies": 0.6, "dilution": -0.2}, abs=1e-3)
    assert fitted["mean_error_left_out"] < 1e-3
    told = planner(found)
    assert told["from_law"]["within_0.15"] == told["from_law"]["cells_and_sizes"] == 12
    together = told["places_together"]
    assert together["within_0.15"] == together["in_interval"] == together["cells_and_sizes"] == 12
    assert "later" not in told
    assert "1M, 10 times, 4 copies, throughout" not in not_run(found)
    assert "1M, 100 times, 4 copies, throughout" in not_run(found)


def made(effects: dict[tuple[int, int, int], float]) -> dict[str, list[dict[str, object]]]:
    """What a file would hold of cells (size, dilution, copies) with these d', with one run each."""
    rows, runs = [], []
    for (size, diluted, copies), apart in effects.items():
        auc = NormalDist().cdf(apart / math.sqrt(2))
        key = cell("throughout", size=size, copies=copies, dilution=diluted)
        rows.append({**key, "score": "min_k_plus_plus", "auc": [auc, 0, 1], "placebo": {"auc": [0.5, 0, 1]}})
        power = {str(n): dilution.power_of(auc, n) for n in (25, 400)}
        runs.append({**key, "parameters": size * 1e6, "tokens": 1e5, "audit": {"without_placebo": power}})
    return {"rows": rows, "runs": runs}


def near(size: int, diluted: int, copies: int) -> float:
    """A d' by a law, a tenth above or below it."""
    lawful = math.exp(-1.5 + 0.6 * math.log(copies) - 0.2 * math.log(diluted) + 0.1 * math.log(size))
    return lawful * (1.1 if (size + diluted + copies) % 3 else 0.9)


KEYS = [(size, diluted, copies) for size in (1, 3, 10) for diluted in (1, 10) for copies in (1, 4, 16)]


def test_a_cell_far_from_the_law_lies_outside_and_does_not_widen_its_own_interval() -> None:
    lawful = law(made({key: near(*key) for key in KEYS}))["min_k_plus_plus"]
    odd = {key: near(*key) * (4 if key == (1, 10, 1) else 1) for key in KEYS}
    fitted = law(made(odd))["min_k_plus_plus"]
    before, after = (
        next(one for one in held["left_out"] if (one["size"], one["dilution"], one["copies"]) == (1, 10, 1))
        for held in (lawful, fitted)
    )
    assert lawful["cells_in_interval"] >= 0.9 * len(KEYS)
    assert (before["inside"], after["inside"]) == (True, False)
    assert before["interval"] == after["interval"]


def test_the_planner_takes_no_dilution_at_which_no_text_was_read_once() -> None:
    found = made({key: near(*key) for key in [*KEYS, (1, 1000, 16)]})
    assert [one["beside"] for one in packaged(found)] == [10, 10, 10]
    once = made({key: near(*key) for key in [*KEYS, (1, 1000, 1)]})
    assert [one["beside"] for one in packaged(once)] == [1000, 10, 10]


def test_labelled_texts_are_written_whole_or_their_beginnings() -> None:
    labelled = Corpus("some", (Text("a", "A member.", member=True), Text("b", "No member.", member=False)))
    assert [one["text"] for one in labelled_rows(labelled, None)] == ["A member.", "No member."]
    assert labelled_rows(labelled, 4) == [
        {"id": "a", "text": "A me", "label": 1}, {"id": "b", "text": "No m", "label": 0},
    ]  # fmt: skip


def test_runs_after_the_law_was_settled_are_held_against_the_law_of_those_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dilution, "SETTLED", len(KEYS) - 2)
    effects = {key: near(*key) for key in KEYS}
    assert planner(made(effects))["later"]["aucs_in_interval"] == 2
    effects[KEYS[-1]] = 0.02
    later = planner(made(effects))["later"]
    assert (later["runs"], later["aucs_in_interval"], later["within_0.15"]) == (2, 1, 2)
