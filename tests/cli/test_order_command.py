"""order as a user calls it, on a real tiny model: output, files, exit codes, messages."""

from __future__ import annotations

import csv
import json
from contextlib import nullcontext

import numpy as np
import pytest
import typer
from tiny import MORE_WORDS

from pretrace.backends import open_model
from pretrace.cli.options import command_of
from pretrace.cli.ordering import order
from pretrace.corpora import open_corpus
from pretrace.errors import PretraceError
from pretrace.results.verdicts import load_verdict
from pretrace.runs import report_of
from pretrace.tuning.planting import PlantSettings, plant

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(command_of(order))
ROWS, SHARDS = 5, 12


@pytest.fixture
def ask(capsys):
    """Calls the command; gives the exit code and what it printed and said."""

    def called(*arguments):
        code = app([str(argument) for argument in arguments], standalone_mode=False)
        said = capsys.readouterr()
        return code or 0, " ".join(said.out.split()), said.err

    return called


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory, model_folder):
    """A benchmark in random order, with a label column of its own, and a model that was trained on parts of it."""
    folder = tmp_path_factory.mktemp("order")
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(MORE_WORDS, 3)) for _ in range(SHARDS * ROWS)]
    rows = [
        {"id": f"r{i}", "text": text, "label": "gold", "part": "ab"[i % 2]} for i, text in enumerate(texts)
    ]
    parts = ["\n\n".join(texts[i : i + ROWS]) for i in range(0, len(texts), ROWS)]
    settings = PlantSettings(epochs=30, share=0.8, learning_rate=1e-2, batch=4)
    plant(open_corpus(parts), settings=settings, folder=folder / "trained", start=str(model_folder))
    return {"rows": written(folder / "rows.jsonl", rows), "trained": folder / "trained"}


def options_of(benchmark, model, out, *more):
    stated = ("--stated", "shuffled before release", "--shard-rows", ROWS)
    return (benchmark["rows"], "--model", model, *stated, "--out", out, *more)


def test_a_model_that_was_trained_on_the_order_is_found(ask, tmp_path, benchmark, model_folder):
    out = tmp_path / "R"
    code, said, _ = ask(*options_of(benchmark, benchmark["trained"], out, "--placebo", model_folder))
    assert code == 3
    assert "consistent with training on rows with its rows in the published order" in said
    with (out / "shards.csv").open(encoding="utf-8", newline="") as file:
        shards = list(csv.DictReader(file))
    assert len(shards) == SHARDS
    assert shards[0]["shard"] == "r0 to r4"
    assert sum(float(row["effect"]) > 0 for row in shards) >= 9
    found = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert (found["test"], found["outcome"], found["exit_code"]) == ("order", "consistent", 3)
    assert found["settings"]["command"]["stated"] == "shuffled before release"
    assert found["settings"]["test"]["joint"] == "\n\n"
    page = (out / "report.html").read_text(encoding="utf-8")
    assert report_of(out) == page
    assert "Each column is one shard" in page
    code, _, _ = ask(benchmark["rows"], "--model", benchmark["trained"], "--shard-rows", ROWS, "--out", out)
    assert code == 4  # nobody says how the order came about


def test_a_model_that_never_saw_it_is_cleared_only_with_power(
    ask, tmp_path, benchmark, model_folder, monkeypatch
):
    code, said, _ = ask(*options_of(benchmark, model_folder, tmp_path / "A", "--block-column", "part"))
    assert code == 4
    assert "this test could have missed it" in said
    copy = open_model(str(benchmark["trained"]))  # as long as training a copy takes, it is not tried here
    monkeypatch.setattr("pretrace.verdicts.planting.planted_copy", lambda *_, **__: nullcontext(copy))
    code, said, _ = ask(*options_of(benchmark, model_folder, tmp_path / "B", "--power"))
    assert code == 0
    assert "Nothing was found" in said
    assert "What it would have seen" in (tmp_path / "B" / "report.html").read_text(encoding="utf-8")


def test_the_order_of_options_is_tested(ask, tmp_path, model_folder):
    rng = np.random.default_rng(1)
    rows = [
        {"question": f"Which {i}?", "choices": list(rng.choice(MORE_WORDS, 3, replace=False)), "label": 2}
        for i in range(40)
    ]
    file = written(tmp_path / "items.jsonl", rows)
    asked = (file, "--text-column", "question", "--options", "choices", "--model", model_folder)
    code, _, _ = ask(*asked, "--stated", "by lot", "--out", tmp_path / "R")
    assert code == 4
    found = load_verdict(tmp_path / "R")
    assert (found.test, found.unit) == ("options", "item")
    assert found.table("items").columns["orders"].tolist() == [6.0] * found.units
    assert "items" in (tmp_path / "R" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--block-column", "nowhere"), "has no column 'nowhere'"),
        (("--options", "part"), "60 of 60 items have no options in part ('r0', 'r1', 'r2' and 57 more)"),
        (("--options", "part", "--block-column", "part"), "give one of the two"),
        (("--shard-tokens", 16), "there is no shard whose rows may change places"),
        (("--placebo", "MODEL"), "is the target itself"),
        (("--level", 0), "--level lies between 0 and 1"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(
    ask, tmp_path, benchmark, model_folder, more, message
):
    more = tuple(model_folder if one == "MODEL" else one for one in more)
    with pytest.raises(PretraceError) as error:
        ask(*options_of(benchmark, model_folder, tmp_path / "R", *more))
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "R").exists()
