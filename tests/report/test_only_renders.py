"""A report renders: every figure it prints arrives finished, so it has no use for what computes one."""

import ast
from pathlib import Path

import pytest

from pretrace import report

ROOT = Path(report.__file__).parent
COMPUTING = ("pretrace.statistics", "pretrace.verdicts.audit", "scipy", "sklearn", "statistics", "random")
READS = ("pretrace.verdicts.audit.built.", "pretrace.verdicts.audit.checks.")
"""What reads the tables and figures of an audit, or says which of them decided, and computes none."""


STATISTICS = {
    "average", "corrcoef", "cov", "mean", "median", "nanmean", "nanmedian", "nanpercentile", "nanquantile",
    "nanstd", "nanvar", "percentile", "permutation", "quantile", "random", "std", "var",
}  # fmt: skip


def modules():
    found = sorted(ROOT.rglob("*.py"))
    assert {path.name for path in found} > {"run.py", "verdict.py", "plots.py"}
    return found


def local(path):
    return path.relative_to(ROOT).as_posix()


def imported(tree):
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def computing(tree):
    """What is imported that computes, wherever in the file the import stands."""
    found = (name for name in imported(tree) if not name.startswith(READS))
    return sorted(name for name in found if any(f"{name}.".startswith(f"{c}.") for c in COMPUTING))


def test_the_report_imports_nothing_that_computes():
    wrong = {local(path): computing(ast.parse(path.read_text(encoding="utf-8"))) for path in modules()}
    assert {path: names for path, names in wrong.items() if names} == {}


def test_the_report_takes_no_statistic():
    """run.median(…) and summary.mean read a result; np.median(…) and values.mean() make one."""
    found = {
        (local(path), ast.unparse(node))
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in STATISTICS
        if not (isinstance(node.value, ast.Name) and node.value.id in ("run", "summary"))
    }
    assert not found


def test_a_result_without_a_spread_is_known_by_the_most_that_a_test_gives():
    """The report imports nothing that computes, so that the number stands in it a second time."""
    from pretrace.report import verdict_plots
    from pretrace.statistics.permutation import STEEPEST

    assert pytest.approx(0.99 * STEEPEST) == verdict_plots._SCALELESS
