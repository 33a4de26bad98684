"""The benchmark of dilution: what is read in which order, and what is fitted to its cells."""

import math
from statistics import NormalDist

import pytest

from benchmarks.audits import dilution
from benchmarks.audits.dilution import Ready, law, not_run, planner, stream
from pretrace.statistics.power import auc_power

MEMBERS = [[-1 - i, 0] for i in range(dilution.DOCUMENTS)]
READY = Ready(MEMBERS, [[1 + i, 0] for i in range(3 * dilution.DOCUMENTS)])


def cell(place, **more):
    return {"size": 1, "dilution": 2, "copies": 4, "place": place, "seed": 0, **more}


@pytest.mark.parametrize(("place", "middle"), [("early", 1 / 3), ("middle", 0.5), ("late", 2 / 3)])
def test_the_copies_stand_in_one_block_where_they_fit(place, middle):
    read = stream(READY, cell(place), twin=False)
    mine = [i for i, one in enumerate(read) if one[0] < 0]
    assert mine == list(range(mine[0], mine[0] + 4 * dilution.DOCUMENTS))
    assert (mine[0] + mine[-1] + 1) / 2 / len(read) == pytest.approx(middle)
    assert [one for one in read if one[0] > 0] == stream(READY, cell(place), twin=True)


def test_a_law_is_found_again_and_foresees_a_cell_that_was_left_out():
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
