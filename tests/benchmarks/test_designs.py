"""Rows of all benchmarks of innocents in one file, with the figures of `pretrace ask`."""

import json
import math
import sys
from statistics import NormalDist

import pytest

from benchmarks import read_results
from benchmarks.audits import dilution
from benchmarks.audits.dilution import Ready, law, not_run, planner, stream
from benchmarks.designs import table as designs
from benchmarks.experiments import Ledger, thinned
from pretrace.statistics.permutation import auc_power
from pretrace.types import Corpus, Text


def row(test, kind, accused, members=None):
    """A row of innocents, or of members."""
    runs = 0 if members else 100
    return {
        "test": test, "kind": kind, "how": "simulated", "runs": runs, "rejected": 0 if members else 6,
        "accused": accused, "members": members, "before": None,
    }  # fmt: skip


def written(folder, name, rows):
    content = {"machine": {"cpu": "a processor"}, "commit": "abc", "rows": rows}
    (folder / name).write_text(json.dumps(content), encoding="utf-8")


def test_rows_are_gathered_and_summed_up(tmp_path, monkeypatch):
    found = {5: 2, 20: 6, 80: 10}
    read = [{"kind": f"{u} units", "copies": 1, "units": u, "runs": 10, "found": k} for u, k in found.items()]
    written(tmp_path, "innocents_one.json", [row("order", "by lot", 2), row("order", "sorted", 4)])
    models = [row("marks", "lots", None), *(row("marks", "read", 0, m) for m in read)]
    written(tmp_path, "designs_models.json", models)
    needed = tmp_path / "needed.json"
    empty = {"unit": "row", "one": None, "four": None, "rejected": None, "accused": None, "worst": None}
    needed.write_text(json.dumps({"order": empty, "marks": empty, "flag": empty}), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["designs", "--results", str(tmp_path), "--needed", str(needed)])
    designs.main()
    found = read_results(tmp_path / "designs.json")
    assert [one["file"] for one in found["sources"]] == ["innocents_one.json", "designs_models.json"]
    sources = {"order": "innocents_one.json", "marks": "designs_models.json"}
    assert all((one["file"], one["commit"]) == (sources[one["test"]], "abc") for one in found["rows"])
    advised = json.loads(needed.read_text(encoding="utf-8"))
    assert (advised["order"]["accused"], advised["order"]["worst"]) == ("2/100", "4/100 (sorted)")
    assert [advised["marks"][name] for name in ("rejected", "accused", "one")] == ["6/100", None, 40]
    assert advised["flag"]["rejected"] is None
    written(tmp_path, "innocents_two.json", [{"test": "order"}])
    with pytest.raises(SystemExit, match=r"innocents_two.json: a row has no kind"):
        designs.main()


@pytest.mark.parametrize(
    ("found", "units"),
    [([(10, 0.2), (20, 0.6), (40, 1.0)], 29), ([(10, 0.2), (20, 0.6)], None), ([(40, 1.0)], 40), ([], None)],
)
def test_units_for_a_power(found, units):
    assert designs.between(found) == units


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


def test_a_file_of_other_settings_is_left_alone(tmp_path):
    ledger = Ledger(tmp_path / "some.json", {"texts": 10})
    ledger.add({"seed": 0}, [{"auc": [0.5, 0.4, 0.6]}], {})
    with pytest.raises(SystemExit, match="texts 10 there and 11 here"):
        Ledger(tmp_path / "some.json", {"texts": 11})
    first, other = {"seed": 0}, {"seed": 1}
    assert list(Ledger(tmp_path / "some.json", {"texts": 10}).todo([first, other])) == [other]
    assert not Ledger(tmp_path / "some.json", {"texts": 11}, fresh=True).content["rows"]


def test_thinning_takes_of_every_document_before_a_second_of_any():
    texts = tuple(
        Text(f"{g}-{i}", f"{g} {i}", g % 2 == 0, str(g)) for g in range(6) for i in range(1 + 3 * g)
    )
    some = thinned(Corpus("made up", texts), 8).texts
    assert len(some) == 8
    assert sum(bool(text.member) for text in some) == 4
    assert {text.group for text in some} == {"0", "1", "2", "3", "4", "5"}
    assert thinned(Corpus("made up", texts), 8).texts == some
    assert thinned(Corpus("made up", texts), 8, seed=1).texts != some
