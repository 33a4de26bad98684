"""The figures of post-hoc dataset inference as data: whole, well formed, and at one with what its text says."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from typing import Any

import pytest
from published_rows import Row, loads, rows_of

from pretrace.baselines.classifiers import classifiers
from pretrace.corpora.benchmarks.training_splits import PILE_SUBSETS
from pretrace.verdicts.audit.settings import PROCEDURES

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "papers" / "published"
ABOUT: dict[str, Any] = tomllib.loads((FOLDER / "posthoc_di.toml").read_text(encoding="utf-8"))

# What each table holds: rows × columns of figures.
COUNTS = {
    "table1": 2 * 5,
    "table2": 4 * 2,
    "table3": 2 * 3,
    "table4": 16 * 2 * 3,
    "table5": 8 * 2,
    "table6": 6 * 2,
    "tableA1": 2 * 2,
    "tableA3": 11 * 2 * 4 * 3,
    "tableA5": 3 * 2 * 3,
    "tableA6": 2 * 2 * 3,
    "tableA7": 4 * 2,
    "tableA8": 8 * 2,
}
DESCRIBED = {f"table{i}" for i in range(1, 7)} | {f"tableA{i}" for i in range(1, 9)} | {"figure2", "figure5"}
UNNAMED = {"author", "pile()"}  # posts that were never published, and texts the paper does not name
MEMBER, NONMEMBER = "kind='member'", "kind='nonmember'"
RESULTS = ("table3", "table4", "tableA3", "tableA5", "tableA6")
WORDS = {
    "kind": {"member", "nonmember"},
    "heldout": {"real"},
    "generation": {"suffix", "icl-paraphrase", "icl-completion", "preference"},
    "without": {"segment-and-shuffle", "suffix-comparison", "calibration", "weight-constraint"},
    "planted": {"lora", "full"},
}


def figures(table: str) -> list[Row]:
    """The rows of a table."""
    return rows_of("posthoc_di", table)


def values(table: str, metric: str) -> dict[tuple[str, str, str, str], float]:
    """The values of a metric by corpus, score, setting and model."""
    return {one[:4]: float(one.value) for one in figures(table) if one.metric == metric}


def setting_of(text: str) -> dict[str, Any]:
    """The names and values of a setting."""
    call = ast.parse(f"of({text})", mode="eval").body
    assert isinstance(call, ast.Call)
    assert not call.args
    return {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}


@pytest.mark.parametrize("table", COUNTS)
def test_a_table_is_whole(table: str) -> None:
    rows = figures(table)
    assert len(rows) == COUNTS[table]
    assert len({one.key for one in rows}) == len(rows)


@pytest.mark.parametrize("table", COUNTS)
def test_values_are_in_range_and_have_the_printed_digits(table: str) -> None:
    for one in figures(table):
        decimals = len(one.value.partition(".")[2])
        if one.metric == "time":
            assert float(one.value) > 0
        elif one.metric == "p":
            assert 0 < float(one.value) <= 1
            assert 1 <= decimals <= ABOUT[table]["digits"]
        else:
            assert 0.5 <= float(one.value) < 1
            assert decimals == ABOUT[table]["digits"]
        assert one.metric in ABOUT["metrics"]


@pytest.mark.parametrize("table", COUNTS)
def test_corpora_and_scores_are_expressions_of_pretrace(table: str) -> None:
    for one in figures(table):
        assert loads(one.corpus) or one.corpus in UNNAMED
        if one.score not in PROCEDURES:
            classifiers.make(one.score)
        assert (one.model == "") == (one.score not in PROCEDURES)


def test_settings_keep_to_the_vocabulary() -> None:
    used = set()
    for table in COUNTS:
        for one in figures(table):
            setting = setting_of(one.setting)
            used |= set(setting)
            for name, text in setting.items():
                assert text in WORDS[name] if name in WORDS else text > 0
            assert ("kind" in setting) == (ABOUT[table]["kind"] == "inference")
    assert used == set(ABOUT["settings"])


def test_every_table_is_described_and_those_with_figures_are_on_file() -> None:
    described = {name for name in ABOUT if name.startswith(("table", "figure"))}
    assert described == DESCRIBED
    assert {path.stem for path in (FOLDER / "posthoc_di").iterdir()} == set(COUNTS)
    for name in described:
        about = ABOUT[name]
        assert {"what", "kind", "percent", "digits", "runs", "here", "notes"} <= set(about)
        assert about["here"] == "yes" or about["here"].startswith("no: ")
        assert (about["kind"] == "other") == (name not in COUNTS)
        assert name in COUNTS or about["notes"].startswith("No CSV")
        assert ("exact" in about) == (about["kind"] == "inference")


@pytest.mark.parametrize("table", COUNTS)
def test_members_and_nonmembers_come_in_pairs(table: str) -> None:
    if table == "table1" or ABOUT[table]["kind"] == "gap":
        return
    keys = {one.key for one in figures(table)}
    assert {_other(key) for key in keys} == keys


def _other(key: tuple[str, ...]) -> tuple[str, ...]:
    """The key of the same figure for the other kind of suspect set."""
    there, here = (MEMBER, NONMEMBER) if key[2].startswith(NONMEMBER) else (NONMEMBER, MEMBER)
    assert key[2].startswith(here)
    return (*key[:2], key[2].replace(here, there), *key[3:])


@pytest.mark.parametrize("table", RESULTS)
def test_members_are_found_and_nonmembers_are_not(table: str) -> None:
    for (_, score, setting, _), p in values(table, "p").items():
        assert score == "paper"
        assert (p < 0.05) == setting.startswith(MEMBER)


@pytest.mark.parametrize("table", RESULTS)
def test_the_combined_classifier_is_ahead_on_members(table: str) -> None:
    text, combined = values(table, "auc_text"), values(table, "auc_combined")
    assert text.keys() == combined.keys() == values(table, "p").keys()
    assert all(combined[key] > text[key] for key in text if key[2].startswith(MEMBER))


def test_every_0001_is_a_bound_but_those_listed() -> None:
    assert ABOUT["bound"] == 0.001
    bounds = {"table1": 4, "table4": 9, "table5": 3, "tableA3": 25, "tableA7": 2, "tableA8": 7}
    for table in COUNTS:
        listed = {tuple(one) for one in ABOUT[table].get("exact", [])}
        at = {
            (one.corpus, one.setting, one.model)
            for one in figures(table)
            if (one.metric, one.value) == ("p", "0.001")
        }
        assert listed <= at
        assert len(at - listed) == bounds.get(table, 0)


def test_dataset_inference_calls_every_set_of_nonmembers_members() -> None:
    p = values("table1", "p")
    assert {setting_of(key[2])["snippets"] for key in p} == {5, 10, 15, 20, 25}
    assert all(value < 0.05 for value in p.values())


def test_what_is_printed_twice_is_the_same() -> None:
    assert values("tableA1", "auc").items() <= values("table2", "auc").items()
    for metric in ("auc_text", "auc_combined", "p"):
        usual = {
            (*key[:2], f"{key[2]}, planted='lora', epochs=1", key[3]): one
            for key, one in values("table3", metric).items()
        }
        assert usual.items() <= values("tableA5", metric).items()
    assert values("table3", "p").items() <= values("tableA7", "p").items()
    for (corpus, score, setting, model), p in values("tableA8", "p").items():
        kind, _, varied = setting.partition(", ")
        if varied in ("linear_epochs=200", "samples=2000"):
            assert values("table5", "p")[corpus, score, kind, model] == p


def test_the_text_of_the_ablations_holds() -> None:
    p = {key[2]: one for key, one in values("table5", "p").items()}
    for part in ("generation='icl-paraphrase'", "generation='icl-completion'", "generation='preference'"):
        assert p[f"{MEMBER}, {part}"] == p[f"{NONMEMBER}, {part}"] == 1
    for part in ("segment-and-shuffle", "suffix-comparison"):
        assert p[f"{MEMBER}, without='{part}'"] == p[f"{NONMEMBER}, without='{part}'"] == 1
    assert p[f"{NONMEMBER}, without='calibration'"] < 0.05
    assert p[MEMBER] < p[f"{MEMBER}, without='weight-constraint'"] == 0.004
    assert p[NONMEMBER] > p[f"{NONMEMBER}, without='weight-constraint'"] == 0.43


def test_single_figures_of_the_text() -> None:
    gap = {key[1:3]: one for key, one in values("table2", "auc").items()}
    assert gap["words", "generation='icl-paraphrase'"] == 0.762
    assert gap["gpt2", "generation='icl-paraphrase'"] == 0.990
    assert gap["gpt2", "generation='preference'"] == 0.589
    assert (
        gap["gpt2", "generation='suffix'"]
        == 0.522
        == min(one for key, one in gap.items() if key[0] == "gpt2")
    )
    member = ("author", "paper", MEMBER, "Pythia-410M")
    assert round(values("table3", "auc_combined")[member] - values("table3", "auc_text")[member], 3) == 0.018
    assert values("table3", "p")[("author", "paper", NONMEMBER, "Pythia-410M")] == 0.13
    classifier = {key[1]: one for key, one in values("table6", "auc").items()}
    assert max(classifier, key=classifier.__getitem__) == "gpt2"


def test_tables_4_and_a3_are_of_the_subsets_and_sizes_of_the_appendix() -> None:
    snippets = ABOUT["tableA2"]["snippets"]
    subsets = {f"pile({name!r})" for name in snippets}
    assert {one.corpus for one in figures("table4")} == subsets
    assert len(subsets) == 16
    assert set(snippets) <= set(PILE_SUBSETS)
    assert {one.corpus for one in figures("tableA3")} < subsets
    assert all(one["tokens"] in (32, 64) for one in snippets.values())
    assert all(one["documents"] <= int(one["held"].lstrip(">")) for one in snippets.values())
    asked = {one.model for table in COUNTS for one in figures(table) if one.model.startswith("Pythia")}
    assert asked == set(ABOUT["outliers"])
