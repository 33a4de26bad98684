"""The figures of FSD's paper as data: whole, well formed, and at one with what its text says of them."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from published_rows import Row, loads, rows_of

import pretrace.scores  # noqa: F401  (fills the registry)
from pretrace.corpora.benchmarks.training_splits import PILE_SUBSETS
from pretrace.scores import scores
from pretrace.tuning.methods import methods

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "papers" / "published"
ABOUT: dict[str, Any] = tomllib.loads((FOLDER / "fsd.toml").read_text(encoding="utf-8"))

# What each table holds: scores × (base and FSD) × models × corpora × metrics, less columns printed twice.
COUNTS = {
    "table1": 4 * 2 * 5 * 2,
    "table2": 4 * 2,
    "table3": 4 * 2 * 3,
    "table4": 4 * 2 * 2 * 2,
    "table5": 4 * (1 + 3),
    "table6": 4 * 2 * 3,
    "table7": 4 * (1 + 3) * 2,
    "table12": 4 * 2 * 5 * 2,
    "table13": 4 * 2 * 3,
    "table14": 4 * 2 * 3,
    "table15": 4 * 2 * 20,
    "table16": 4 * (2 + 3),
    "table17": 4 * (1 + 3 * 3),
    "figure4": 2,
    "figure6": 2,
}
DESCRIBED = {f"table{i}" for i in range(1, 18)} | {f"figure{i}" for i in range(2, 7)}
BASES = ("ppl", "lowercase", "zlib", "min_k")
SCORES = {*BASES, *(f"fsd({name})" for name in BASES)}
WIKI, ARXIV, LLAMA = "wikimia()", "arxivtection", "LLaMA-7B"


def figures(table: str) -> list[Row]:
    """The rows of a table."""
    return rows_of("fsd", table)


def values(table: str) -> dict[tuple[str, ...], float]:
    """The values of a table by key."""
    return {one.key: float(one.value) for one in figures(table)}


def value(table: str, score: str, **at: str) -> float:
    """The one value of a score where the given columns have the given text."""
    wanted = {"corpus": WIKI, "setting": "", "model": LLAMA, "score": score, **at}
    found = [
        one for one in figures(table) if all(getattr(one, name) == text for name, text in wanted.items())
    ]
    assert len(found) == 1
    return float(found[0].value)


def gain(before: float, after: float) -> int:
    """By how many percent `after` is above `before`."""
    return round(100 * (after / before - 1))


def settings() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every setting that a table has, with its table."""
    for table in COUNTS:
        for text in {one.setting for one in figures(table)}:
            call = ast.parse(f"of({text})", mode="eval").body
            assert isinstance(call, ast.Call)
            assert not call.args
            yield table, {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}


@pytest.mark.parametrize("table", COUNTS)
def test_a_table_is_whole(table: str) -> None:
    rows = figures(table)
    assert len(rows) == COUNTS[table]
    assert len({one.key for one in rows}) == len(rows)


@pytest.mark.parametrize("table", COUNTS)
def test_values_are_in_range_and_have_the_printed_digits(table: str) -> None:
    for one in figures(table):
        assert 0 < float(one.value) < 1
        assert len(one.value.partition(".")[2]) == ABOUT[table]["digits"]
        assert one.metric in ABOUT["metrics"]


@pytest.mark.parametrize("table", COUNTS)
def test_corpora_and_scores_are_expressions_of_pretrace(table: str) -> None:
    for one in figures(table):
        assert loads(one.corpus) or one.corpus == "pile()"  # no loader: the mean over all subsets
        assert one.score in SCORES
        scores.make(one.score)


def test_settings_keep_to_the_vocabulary() -> None:
    used = set()
    for _, setting in settings():
        used |= set(setting)
        if "tuned" in setting:
            methods.make(setting["tuned"])
        assert setting.get("on", "all") in ("nonmembers", "members", "all")
    assert used == set(ABOUT["settings"])


def test_only_fsd_has_settings_of_tuning() -> None:
    for table in COUNTS:
        for one in figures(table):
            assert one.score.startswith("fsd(") or one.setting in ("", "average='subsets'")


def test_every_table_is_described_and_those_with_figures_are_on_file() -> None:
    described = {name for name in ABOUT if name.startswith(("table", "figure"))}
    assert described == DESCRIBED
    assert {path.stem for path in (FOLDER / "fsd").iterdir()} == set(COUNTS)
    for name in described:
        about = ABOUT[name]
        assert {"what", "kind", "percent", "digits", "runs", "here", "notes"} <= set(about)
        assert about["here"] == "yes" or about["here"].startswith("no: ")
        assert (about["kind"] == "other") == (name not in COUNTS)
        assert name in COUNTS or about["notes"].startswith("No CSV")


def test_the_pile_is_named_as_the_pile_names_itself() -> None:
    subsets = {f"pile({name!r})" for name in ABOUT["subsets"].values()}
    assert {one.corpus for one in figures("table15")} == subsets
    assert len(subsets) == 20
    assert set(ABOUT["subsets"].values()) <= set(PILE_SUBSETS)


@pytest.mark.parametrize("score", sorted(SCORES))
def test_table_2_is_the_mean_of_table_15(score: str) -> None:
    of_subsets = [float(one.value) for one in figures("table15") if one.score == score]
    mean = value("table2", score, corpus="pile()", model="Pythia-6.9B", setting="average='subsets'")
    assert len(of_subsets) == 20
    assert abs(sum(of_subsets) / 20 - mean) <= 0.00051


@pytest.mark.parametrize(
    ("table", "again"),
    [
        ("table1", "table3"),
        ("table1", "table6"),
        ("table12", "table14"),
        ("table5", "table17"),
        ("table6", "table3"),
    ],
)
def test_what_is_printed_twice_is_the_same(table: str, again: str) -> None:
    first, second = values(table), values(again)
    shared = first.keys() & second.keys()
    assert len(shared) >= 4
    assert {key: first[key] for key in shared} == {key: second[key] for key in shared}


@pytest.mark.parametrize("name", BASES)
def test_the_usual_settings_give_the_figures_of_tables_1_and_12(name: str) -> None:
    tuned, base = value("table1", f"fsd({name})"), value("table1", name)
    assert value("table5", f"fsd({name})", setting="on='nonmembers'") == tuned
    assert value("table7", f"fsd({name})", setting="tuned='lora'", metric="auc") == tuned
    assert value("table17", f"fsd({name})", setting="tuned='lora(learning_rate=0.001)'") == tuned
    assert value("table7", name, metric="auc") == value("table16", name) == base
    assert value("table16", name, corpus=ARXIV) == value("table1", name, corpus=ARXIV)
    tpr = value("table12", f"fsd({name})")
    assert value("table7", f"fsd({name})", setting="tuned='lora'", metric="tpr") == tpr
    assert value("table7", name, metric="tpr") == value("table12", name)


def test_slips_of_the_paper_stand_as_printed() -> None:
    exchanged = {"ppl": "ppl", "zlib": "lowercase", "lowercase": "zlib", "min_k": "min_k"}
    for name, other in exchanged.items():
        assert value("table13", name) == value("table12", other)
        assert value("table13", f"fsd({name})") == value("table12", f"fsd({other})")
    for name in BASES:
        on_wiki = value("table12", f"fsd({name})", model="Pythia-6.9B")
        assert on_wiki == value("table12", f"fsd({name})", model="Pythia-6.9B", corpus=ARXIV)


def test_table_1_is_as_its_text_says() -> None:
    opt = {"model": "OPT-6.7B"}
    assert (value("table1", "min_k", **opt), value("table1", "fsd(min_k)", **opt)) == (0.62, 0.91)
    arxiv = {"corpus": ARXIV}
    assert (value("table1", "min_k", **arxiv), value("table1", "fsd(min_k)", **arxiv)) == (0.76, 0.86)
    assert (value("table12", "ppl", **arxiv), value("table12", "fsd(ppl)", **arxiv)) == (0.10, 0.81)
    auc = values("table1")
    assert all(auc[key] < auc[(key[0], f"fsd({key[1]})", *key[2:])] for key in auc if key[1] in BASES)


def test_gains_are_those_the_text_states() -> None:
    four = {"setting": "texts=100"}
    assert gain(value("figure4", "ppl"), value("figure4", "fsd(ppl)", **four)) == 44
    books = {"corpus": "bookmia", "metric": "accuracy"}
    before, after = value("table4", "zlib", **books), value("table4", "fsd(zlib)", **books)
    assert after == 0.986
    assert round(100 * (after / before - 1), 1) == 71.8
    mean = {"corpus": "pile()", "model": "Pythia-6.9B", "setting": "average='subsets'"}
    assert round(100 * (value("table2", "fsd(ppl)", **mean) / value("table2", "ppl", **mean) - 1), 1) == 24.3
    book = {"corpus": "pile('BookCorpus2')", "model": "Pythia-6.9B"}
    assert (value("table15", "ppl", **book), value("table15", "fsd(ppl)", **book)) == (0.528, 0.885)
    assert (value("figure6", "zlib", **book), value("figure6", "fsd(zlib)", **book | four)) == (0.48, 0.78)
    replaced = {"corpus": "wikimia(variant='replacement')"}
    assert (value("table6", "ppl", **replaced), value("table6", "fsd(ppl)", **replaced)) == (0.54, 0.71)


def test_what_the_discussion_says_of_tuning_texts_holds() -> None:
    for name in BASES:
        on = {
            side: value("table5", f"fsd({name})", setting=f"on='{side}'")
            for side in ("members", "nonmembers")
        }
        assert value("table5", name) < on["members"] < on["nonmembers"]
        lora, slow = value("table7", f"fsd({name})", setting="tuned='lora'", metric="auc"), "tuned='adalora'"
        assert value("table7", f"fsd({name})", setting=slow, metric="auc") < lora
    foreign = {"corpus": ARXIV, "setting": f"tuned_on={WIKI!r}"}
    gained = [
        name
        for name in BASES
        if value("table16", f"fsd({name})", **foreign) > value("table1", name, corpus=ARXIV)
    ]
    assert gained == ["zlib"]
