"""pretrace collections as a user calls it: twenty small collections, a model, exit codes, files, messages."""

from __future__ import annotations

import csv
import json

import pytest
import typer
from verdicts.collections.made import contents, made

from pretrace.cli.options import command_of
from pretrace.cli.testing import collections
from pretrace.errors import ExpressionError, TextsError
from pretrace.registry import backends
from pretrace.results.verdicts import load_verdict
from pretrace.runs import report_of
from pretrace.testing import FakeBackend

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(command_of(collections))
CORPORA = made(20, documents=8)


@pytest.fixture(autouse=True)
def fakes(monkeypatch):
    """Models called fake:…: one that was trained on author 0, one on author 1, others on nothing."""
    list(backends)
    monkeypatch.setattr(backends, "_factories", dict(backends._factories))
    monkeypatch.setattr(backends, "_origins", dict(backends._origins))
    known = {f"author{place}": contents(CORPORA[place]) for place in range(20)}
    backends.add("fake")(lambda name, settings: FakeBackend(known.get(name, ()), name=name))


@pytest.fixture
def ask(capsys):
    """Calls the command; gives the exit code and what it printed."""

    def called(*arguments):
        code = app([str(argument) for argument in arguments], standalone_mode=False)
        return code or 0, " ".join(capsys.readouterr().out.split())

    return called


@pytest.fixture
def files(tmp_path):
    """A file for each collection, and one with all of them."""
    paths, rows = [], []
    for corpus in CORPORA:
        own = [{"id": text.id, "text": text.text} for text in corpus.texts]
        paths.append(tmp_path / f"{corpus.name.replace(' ', '')}.jsonl")
        paths[-1].write_text("".join(json.dumps(row) + "\n" for row in own), encoding="utf-8")
        rows += [
            {"id": f"{corpus.name} {row['id']}", "text": row["text"], "author": corpus.name} for row in own
        ]
    whole = tmp_path / "all.jsonl"
    whole.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return paths, whole


def with_controls(paths):
    return [part for path in paths for part in ("--controls", path)]


def test_a_collection_that_was_read_is_the_highest_of_twenty(ask, files, tmp_path):
    paths, _ = files
    out = tmp_path / "RESULT"
    common = (paths[0], *with_controls(paths[1:]), "--model", "fake:author0", "--out", out)
    code, said = ask(*common, "--placebo", "fake:none")
    assert code == 3, said
    assert "author0 are consistent with training on the texts of author0" in said
    found = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert (found["test"], found["p"], found["exact"], found["units"]) == ("collections", 0.05, False, 20)
    assert found["figures"]["value"] == "alone"
    assert found["effect"]["value"] == pytest.approx(1.0, abs=0.2)
    with (out / "collections.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["role"] for row in rows] == ["suspect", *["control"] * 19]
    assert max(rows, key=lambda row: float(row["standard deviations"]))["collection"] == "author0"
    with (out / "documents.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 160
    assert report_of(out) == (out / "report.html").read_text(encoding="utf-8")


def test_one_file_with_a_column_gives_the_same_ranks(ask, files, tmp_path):
    _, whole = files
    by_column = (
        whole,
        "--collection-column",
        "author",
        "--placebo",
        "fake:none",
        "--out",
        tmp_path / "RESULT",
    )
    code, _ = ask(*by_column, "--suspect", "author 0", "--model", "fake:author0")
    assert code == 3
    code, said = ask(*by_column, "--suspect", "author 0", "--model", "fake:author1")
    assert code == 4
    assert "could have missed it" in said
    assert "--power" in said


def test_dates_are_checked_where_a_column_has_them(ask, files, tmp_path):
    _, whole = files
    rows = [json.loads(line) for line in whole.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row["day"] = (
            "2024-05-01" if row["author"] == "author 0" else f"2012-03-{1 + int(row['author'][7:]):02}"
        )
    whole.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    code, said = ask(
        whole, "--collection-column", "author", "--suspect", "author 0", "--date-column", "day",
        "--model", "fake:author0", "--placebo", "fake:none", "--out", tmp_path / "RESULT",
    )  # fmt: skip
    assert code == 4
    assert "stands apart from the others by its dates" in said
    assert "mean date" in load_verdict(tmp_path / "RESULT").table("collections").columns


def test_reference_models_are_taken_off(ask, files, tmp_path):
    paths, _ = files
    out = tmp_path / "RESULT"
    others = (
        "--reference-model",
        "fake:other",
        "--reference-model",
        "fake:author7",
        "--placebo",
        "fake:none",
    )
    code, said = ask(paths[0], *with_controls(paths[1:]), "--model", "fake:author0", *others, "--out", out)
    assert code == 3, said
    found = load_verdict(out)
    assert found.figures["value"] == "residual"
    columns = tuple(found.table("documents").columns)
    assert columns == (
        "collection", "document", "score", "score of other", "score of author7", "log length", "zlib ratio", "value",
    )  # fmt: skip
    assert set(found.settings["references"]) == {"other", "author7"}
    assert len(found.settings["control collections"]) == 19


def test_a_placebo_that_ranks_it_as_high_withholds_an_accusation(ask, files, tmp_path):
    paths, _ = files
    common = (paths[0], *with_controls(paths[1:]), "--model", "fake:author0", "--out", tmp_path / "RESULT")
    code, said = ask(*common, "--placebo", "fake:none")
    assert code == 3, said
    backends.add("odd")(lambda name, settings: FakeBackend(contents(CORPORA[0])[:7], name=name))
    code, said = ask(*common, "--placebo", "fake:none", "--placebo", "odd:one")
    assert code == 4
    found = load_verdict(tmp_path / "RESULT")
    second = next(check for check in found.checks if check.name == "second")
    assert (second.status, second.words in said) == ("failed", True)
    assert min(value for name, value in found.figures.items() if name.startswith("p of ")) <= 0.1


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (lambda paths: [paths[0], *with_controls(paths[1:18])], TextsError, "found 17: 2 are missing"),
        (lambda paths: [paths[0]], ExpressionError, "give one of the two"),
        (lambda paths: [paths[0], "--collection-column", "a"], ExpressionError, "give both"),
        (
            lambda paths: [paths[0], *with_controls(paths[1:]), "--value", "residual"],
            ExpressionError,
            "--reference-model",
        ),
        (
            lambda paths: [paths[0], *with_controls(paths[1:]), "--date-column", "day"],
            TextsError,
            "no column 'day'",
        ),
        (
            lambda paths: [paths[0], *with_controls(paths[1:]), "--score", "ref"],
            ExpressionError,
            "--score ref",
        ),
    ],
)
def test_what_cannot_be_ranked_is_refused_and_nothing_is_written(ask, files, tmp_path, change, error, said):
    with pytest.raises(error, match=said):
        ask(
            *change(files[0]),
            "--model",
            "fake:author0",
            "--placebo",
            "fake:none",
            "--out",
            tmp_path / "RESULT",
        )
    assert not (tmp_path / "RESULT").exists()


def test_a_reference_that_is_the_target_is_refused(ask, files, tmp_path):
    paths, _ = files
    with pytest.raises(Exception, match="is the target"):
        ask(
            paths[0], *with_controls(paths[1:]), "--model", "fake:author0", "--reference-model", "fake:author0",
            "--placebo", "fake:none", "--out", tmp_path / "RESULT",
        )  # fmt: skip
