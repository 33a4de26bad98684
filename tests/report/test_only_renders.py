"""A report renders: every figure it prints arrives finished, so it has no use for what computes one."""

import ast
from pathlib import Path

import pytest

from pretrace import report
from pretrace.report import verdict_plots
from pretrace.statistics.permutation import STEEPEST

ROOT = Path(report.__file__).parent
COMPUTING = ("pretrace.statistics", "pretrace.verdicts.audit", "scipy", "sklearn", "statistics", "random")
READS = ("pretrace.verdicts.audit.data.", "pretrace.verdicts.audit.checks.")
"""What reads the tables and figures of an audit, or says which of them decided, and computes none."""
STATISTICS = {
    "average", "corrcoef", "cov", "mean", "median", "nanmean", "nanmedian", "nanpercentile", "nanquantile",
    "nanstd", "nanvar", "percentile", "permutation", "quantile", "random", "std", "var",
}  # fmt: skip


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: path.name)
def test_the_report_imports_nothing_that_computes_and_takes_no_statistic(path):
    """run.median(…) reads a result; np.median(…) and values.mean() make one."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = [one.name for node in nodes if isinstance(node, ast.Import) for one in node.names]
    from_nodes = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    names += [f"{node.module}.{one.name}" for node in from_nodes for one in node.names]
    found = [name for name in names if not name.startswith(READS)]
    assert not [name for name in found if any(f"{name}.".startswith(f"{one}.") for one in COMPUTING)]
    taken = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr in STATISTICS]
    of_run = [one for one in taken if isinstance(one.value, ast.Name) and one.value.id == "run"]
    assert taken == of_run


def test_a_result_without_a_spread_is_known_by_the_most_that_a_test_gives():
    """The report imports nothing that computes, so that the number stands in it a second time."""
    assert pytest.approx(0.99 * STEEPEST) == verdict_plots._SCALELESS
