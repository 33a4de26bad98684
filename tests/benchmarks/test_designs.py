"""Rows of all benchmarks of innocents in one file, with the figures of `pretrace ask`."""

import json
import sys

import pytest

from benchmarks import read_results
from benchmarks.designs import table as designs


def row(test, kind, accused, members=None):
    """A row of innocents, or of members."""
    runs = 0 if members else 100
    return {
        "test": test, "kind": kind, "how": "simulated", "runs": runs, "rejected": 0 if members else 6,
        "accused": accused, "members": members, "before": None,
    }  # fmt: skip


def written(folder, name, rows, **more):
    content = {"machine": {"cpu": "a processor"}, "commit": "abc", "rows": rows, **more}
    (folder / name).write_text(json.dumps(content), encoding="utf-8")


def test_rows_are_gathered_and_summed_up(tmp_path, monkeypatch):
    read = [
        {"kind": f"{units} units", "copies": 1, "units": units, "runs": 10, "found": found}
        for units, found in ((5, 2), (20, 6), (80, 10))
    ]
    written(tmp_path, "innocents_one.json", [row("order", "by lot", 2), row("order", "sorted", 4)])
    written(
        tmp_path,
        "designs_models.json",
        [row("marks", "lots", None), *(row("marks", "read", 0, m) for m in read)],
    )
    needed = tmp_path / "needed.json"
    empty = {"unit": "row", "one": None, "four": None, "rejected": None, "accused": None, "worst": None}
    needed.write_text(json.dumps({"order": empty, "marks": empty, "flag": empty}), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["designs", "--results", str(tmp_path), "--needed", str(needed)])
    designs.main()
    found = read_results(tmp_path / "designs.json")
    assert [one["file"] for one in found["sources"]] == ["innocents_one.json", "designs_models.json"]
    assert {(one["test"], one["file"], one["commit"]) for one in found["rows"]} == {
        ("order", "innocents_one.json", "abc"),
        ("marks", "designs_models.json", "abc"),
    }
    advised = json.loads(needed.read_text(encoding="utf-8"))
    assert (advised["order"]["accused"], advised["order"]["worst"]) == ("2/100", "4/100 (sorted)")
    assert (advised["marks"]["rejected"], advised["marks"]["accused"], advised["marks"]["one"]) == (
        "6/100",
        None,
        40,
    )
    assert advised["flag"]["rejected"] is None
    written(tmp_path, "innocents_two.json", [{"test": "order"}])
    with pytest.raises(SystemExit, match=r"innocents_two.json: a row has no kind"):
        designs.main()


def test_units_for_a_power():
    assert designs.between([(10, 0.2), (20, 0.6), (40, 1.0)]) == 29
    assert designs.between([(10, 0.2), (20, 0.6)]) is None
    assert designs.between([(40, 1.0)]) == 40
    assert designs.between([]) is None
