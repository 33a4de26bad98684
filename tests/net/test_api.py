"""The net, the tests that notice a wrong number, takes pretrace from one file."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from net import api

TESTS = Path(__file__).parents[1]
NET = [
    "test_golden", "test_orientation", "scores/test_na_pdd", "backends/test_huggingface",
    "backends/test_prefixes", "backends/test_neurons", "backends/test_generation",
    "backends/test_adapters", "statistics/test_roc", "statistics/test_permutation",
    "statistics/test_conformal", "statistics/test_resampling", "statistics/test_paired",
    "statistics/test_power", "statistics/test_shift", "statistics/test_sensitivity", "test_calibration",
    "frequencies/test_frequency_table", "frequencies/test_token_counting", "tuning/test_training",
    "scoring/test_setting_aside", "scoring/test_batching", "jobs/test_sharded_runs",
    "verdicts/test_conclusions", "verdicts/audit/test_checks", "verdicts/audit/test_procedures",
    "verdicts/audit/test_data", "corpora/test_files", "statistics/test_splits", "plugins/marks/test_exact",
    "plugins/marks/test_strings", "plugins/recite/test_recite", "verdicts/flag/test_flagging",
    "verdicts/audit/test_release", "verdicts/audit/test_calibration_layer", "tuning/test_batches",
    "plugins/scan/test_searching", "cache/test_traces", "results/test_runs",
    "verdicts/test_draws",
]  # fmt: skip


def imported(name: str) -> list[tuple[str, str]]:
    """Each import of a file, as module and name."""
    found = []
    for node in ast.walk(ast.parse((TESTS / f"{name}.py").read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found += [(one.name, "") for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.module or "", one.name) for one in node.names]
    return found


@pytest.mark.parametrize("name", NET)
def test_a_file_of_the_net_imports_pretrace_from_the_api_alone(name: str) -> None:
    assert not [one for one in imported(name) if one[0].partition(".")[0] in ("pretrace", "benchmarks")]


def test_the_api_has_what_the_net_uses_and_no_more() -> None:
    assert {one for name in NET for module, one in imported(name) if module == "net.api"} == set(api.PLACES)
    for name in api.PLACES:
        assert getattr(api, name) is not None
