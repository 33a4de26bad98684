"""The null at scale, made small: the laws are what they say, the rows add up, and it goes on after a kill."""

import json
import sys
from typing import Any

import numpy as np
import pytest

from benchmarks.audits import null as audit_null
from benchmarks.audits.null import LAWS
from pretrace.statistics.permutation import sign_flip_test


def call(monkeypatch, out, *options):
    """What `main` leaves on file."""
    monkeypatch.setattr(sys, "argv", ["audit_null", "--out", str(out), *map(str, options)])
    audit_null.main()
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


def test_it_runs_and_goes_on_where_it_was(tmp_path, monkeypatch):
    out = tmp_path / "null.json"
    size = ["--audits", 120, "--documents", 14, 40, "--flips", 99, "--permutations", 39]
    first = call(monkeypatch, out, *size, "--limit", 3)
    assert len(first["runs"]) == 3
    whole = call(monkeypatch, out, *size)
    assert whole["rows"][: len(first["rows"])] == first["rows"]
    assert len(whole["runs"]) == 2 * len(LAWS)
    cells = {(row["law"], row["documents"], row["test"]): row for row in whole["rows"]}
    assert len(cells) == len(whole["rows"]) == 2 * (4 * len(LAWS) - 2)
    naive = cells["normal, correlation 0.3", 40, "t of snippets"]
    ours = cells["normal, correlation 0.3", 40, "sign_flip"]
    assert naive["rejected_0.05"][1] > 0.1
    assert naive["ks_p"] < 0.001 < ours["ks_p"]
    assert ours["rejected_0.05"][0] < 0.1
    assert all(sum(row["histogram"]) == row["audits"] == 120 for row in whole["rows"])
    with pytest.raises(SystemExit, match="other settings"):
        call(monkeypatch, out, *size, "--flips", 9)


def test_many_sign_flip_tests_at_once_are_the_one_that_is_shipped():
    values = audit_null.TAILS["exponential below"](np.random.default_rng(0), (6, 9))
    every = 1.0 - 2.0 * (np.arange(2**9)[:, None] >> np.arange(9) & 1)
    for guarded in (True, False):
        found = audit_null.flipped(values, every, guarded=guarded)
        exact = [sign_flip_test(one, guarded=guarded).p for one in values]
        assert (found * 513 - 1) / 512 == pytest.approx(exact)
