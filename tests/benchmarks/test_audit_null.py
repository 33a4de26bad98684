"""The null at scale, made small: the laws are what they say, the rows add up, and it goes on after a kill."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks.audits import null as audit_null
from benchmarks.audits.null import LAWS, Block
from pretrace.statistics.permutation import sign_flip_test


def call(monkeypatch: pytest.MonkeyPatch, out: Path, *options: object) -> dict[str, Any]:
    """What `main` leaves on file."""
    monkeypatch.setattr(sys, "argv", ["audit_null", "--out", str(out), *map(str, options)])
    audit_null.main()
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


def intraclass(values: Any, codes: Any) -> float:
    """The share of the variance of snippets that lies between documents (Donner 1986, section 2)."""
    sizes = np.bincount(codes)
    means = np.bincount(codes, weights=values) / sizes
    between = float(sizes @ (means - values.mean()) ** 2) / (len(sizes) - 1)
    within = float(np.sum((values - means[codes]) ** 2)) / (len(values) - len(sizes))
    size = (len(values) - sizes @ sizes / sizes.sum()) / (len(sizes) - 1)
    return max(0.0, (between - within) / (between + (size - 1) * within))


@pytest.mark.parametrize("name", LAWS)
def test_a_law_has_mean_0_variance_1_and_its_correlation(name: str) -> None:
    law = LAWS[name]
    block = Block.of(law, (60, 100), np.random.default_rng(0), mean=10)
    assert block.snippets.mean() == pytest.approx(0, abs=0.06)
    assert block.snippets.var() == pytest.approx(1, abs=0.1 if law.tail == "none" else 0.25)
    codes = np.repeat(np.arange(100), block.sizes)
    alike = np.mean([intraclass(audit, codes) for audit in block.snippets])
    assert alike == pytest.approx(law.shared, abs=0.03)
    skew = float(stats.skew(block.documents, axis=None))
    assert {"above": skew > 0.3, "below": skew < -0.3}.get(law.tail, abs(skew) < 3)


def test_it_runs_and_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_many_sign_flip_tests_at_once_are_the_one_that_is_shipped() -> None:
    values = audit_null.TAILS["exponential below"](np.random.default_rng(0), (6, 9))
    every = 1.0 - 2.0 * (np.arange(2**9)[:, None] >> np.arange(9) & 1)
    for guarded in (True, False):
        found = audit_null.flipped(values, every, guarded=guarded)
        exact = [sign_flip_test(one, guarded=guarded).p for one in values]
        assert (found * 513 - 1) / 512 == pytest.approx(exact)
