"""A report renders: every figure it prints arrives finished, so it imports nothing that computes one."""

import ast
from pathlib import Path

import pytest

from pretrace import report
from pretrace.report import figures
from pretrace.statistics.permutation import STEEPEST

ROOT = Path(report.__file__).parent
COMPUTING = ("pretrace.statistics", "pretrace.verdicts.audit", "scipy", "sklearn", "statistics", "random")
READS = ("pretrace.verdicts.audit.data.", "pretrace.verdicts.audit.checks.")
"""What reads the tables and figures of an audit, or says which of them decided, and computes none."""
STATISTICS = {
    "average", "mean", "median", "nanmean", "nanmedian", "nanquantile", "percentile", "permutation", "quantile",
    "random", "std", "var",
}  # fmt: skip


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: path.name)
def test_the_report_imports_nothing_that_computes_and_takes_no_statistic(path):
    """run.median(…) reads a result; np.median(…) and values.mean() make one."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = [one.name for node in nodes if isinstance(node, ast.Import) for one in node.names]
    names += [
        f"{one.module}.{name.name}" for one in nodes if isinstance(one, ast.ImportFrom) for name in one.names
    ]
    found = [name for name in names if not name.startswith(READS)]
    assert not [name for name in found if any(f"{name}.".startswith(f"{one}.") for one in COMPUTING)]
    taken = [ast.unparse(one) for one in nodes if isinstance(one, ast.Attribute) and one.attr in STATISTICS]
    assert not [one for one in taken if not one.startswith("run.")]


def test_a_result_without_a_spread_is_known_by_the_most_that_a_test_gives():
    """The report imports nothing that computes, so that the number stands in it a second time."""
    assert pytest.approx(0.99 * STEEPEST) == figures._SCALELESS
