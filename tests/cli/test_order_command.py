"""order as a user calls it, on a real tiny model: output, files, exit codes, messages."""

from __future__ import annotations

import csv
import json
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import typer
from tiny import MORE_WORDS
from verdicts.order.memorising import by_hash

from pretrace.backends import open_model
from pretrace.cli import main
from pretrace.cli.options import command_of
from pretrace.cli.testing import order
from pretrace.corpora import Columns, open_corpus
from pretrace.errors import PretraceError
from pretrace.results.verdicts import load_verdict
from pretrace.runs import report_of
from pretrace.tuning.planting import PlantSettings, plant
from pretrace.verdicts.looking import look

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(command_of(order))
ROWS, SHARDS = 8, 12


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
    """A benchmark in random order, with a label column of its own, a model that was trained on parts of it, and one
    that was trained on the same rows in another order; both began with a base that knows rows of this kind."""
    folder = tmp_path_factory.mktemp("order")
    rng = np.random.default_rng(1)
    texts = by_hash(" ".join(rng.choice(MORE_WORDS, 3)) for _ in range(SHARDS * ROWS))
    rows = [
        {"id": f"r{i}", "text": text, "label": "gold", "part": "ab"[i % 2]} for i, text in enumerate(texts)
    ]
    parts = ["\n\n".join(texts[i : i + ROWS]) for i in range(0, len(texts), ROWS)]
    texts = list(rng.permutation(texts))  # the same rows in another order
    others = ["\n\n".join(texts[i : i + ROWS]) for i in range(0, len(texts), ROWS)]
    more = [
        " ".join(rng.choice(MORE_WORDS, 3)) for _ in range(400)
    ]  # rows of the same kind, which all models know
    common = ["\n\n".join(more[i : i + ROWS]) for i in range(0, len(more), ROWS)]
    settings = PlantSettings(epochs=10, share=0.8, learning_rate=3e-3, batch=4)
    start = {"base": str(model_folder)}
    wanted = {
        "base": (common, {"epochs": 20, "share": 0.95, "learning_rate": 1e-2}),
        "trained": (parts, {}),
        "twin": (parts, {"seed": 1}),
        "heavy": (parts, {"epochs": 30, "learning_rate": 1e-2}),
        "second": (others, {"epochs": 3, "learning_rate": 1e-3}),
    }
    for name, (read, how) in wanted.items():
        made = replace(settings, **how)
        plant(
            open_corpus(read),
            settings=made,
            folder=folder / name,
            start=start.get(name, str(folder / "base")),
        )
    models = {name: folder / name for name in wanted}
    return models | {"rows": written(folder / "rows.jsonl", rows)}


def options_of(benchmark, model, out, *more):
    stated = ("--shuffled-with", "sha256", "--stated", "shuffled before release")
    second = () if "--placebo" in more else ("--placebo", benchmark["base"])
    return (benchmark["rows"], "--model", model, *stated, "--out", out, *second, *more)


def test_a_model_that_was_trained_on_the_order_is_found(ask, tmp_path, benchmark, model_folder):
    out = tmp_path / "R"
    code, said, _ = ask(*options_of(benchmark, benchmark["trained"], out))
    assert code == 3, said
    assert "consistent with training on rows with its rows in the published order" in said
    with (out / "shards.csv").open(encoding="utf-8", newline="") as file:
        shards = list(csv.DictReader(file))
    assert len(shards) == SHARDS
    assert shards[0]["shard"] == "r0 to r7"
    assert sum(float(row["effect"]) > 0 for row in shards) >= 9
    found = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert (found["test"], found["outcome"], found["exit_code"]) == ("order", "consistent", 3)
    assert found["settings"]["command"]["stated"] == "shuffled before release"
    page = (out / "report.html").read_text(encoding="utf-8")
    assert report_of(out) == page
    assert "Each column is one shard" in page
    second = ("--placebo", benchmark["base"], "--stated", "by lot")
    code, said, _ = ask(benchmark["rows"], "--model", benchmark["trained"], *second, "--out", out)
    assert code == 4  # a statement accuses nobody
    assert "Only a lot that can be drawn again" in said


def test_nobody_is_accused_without_a_second_model(ask, tmp_path, benchmark, monkeypatch):
    monkeypatch.setattr(
        "pretrace.verdicts.frame.with_second", lambda models, **_: models
    )  # it is not installed
    stated = ("--shuffled-with", "sha256", "--out", tmp_path / "R")
    code, said, _ = ask(benchmark["rows"], "--model", benchmark["trained"], *stated)
    assert code == 4
    assert "no model that cannot have seen the texts was asked as well" in said
    assert load_verdict(tmp_path / "R").p < 0.01
    code, said, _ = ask(
        *options_of(benchmark, benchmark["trained"], tmp_path / "S", "--placebo", benchmark["twin"])
    )
    assert code == 4
    assert "a model that cannot have seen the texts may find the same" in said


def test_a_model_that_never_saw_it_is_cleared_only_with_power(
    ask, tmp_path, benchmark, model_folder, monkeypatch
):
    code, said, _ = ask(*options_of(benchmark, benchmark["second"], tmp_path / "A", "--block-column", "part"))
    assert code == 4
    assert "this test could have missed it" in said
    copy = open_model(str(benchmark["heavy"]))  # as long as training a copy takes, it is not tried here
    monkeypatch.setattr("pretrace.verdicts.planting.planted_copy", lambda *_, **__: nullcontext(copy))
    code, said, _ = ask(*options_of(benchmark, benchmark["second"], tmp_path / "B", "--power"))
    assert code == 0
    assert "Nothing was found" in said
    assert "What it would have seen" in (tmp_path / "B" / "report.html").read_text(encoding="utf-8")


def test_the_order_of_options_is_tested(ask, tmp_path, benchmark, model_folder):
    rng = np.random.default_rng(1)
    rows = [
        {"question": f"Which {i}?", "choices": list(rng.choice(MORE_WORDS, 3, replace=False)), "label": 2}
        for i in range(40)
    ]
    file = written(tmp_path / "items.jsonl", rows)
    asked = (file, "--text-column", "question", "--options", "choices", "--model", model_folder)
    code, _, _ = ask(*asked, "--stated", "by lot", "--placebo", benchmark["second"], "--out", tmp_path / "R")
    assert code == 4
    found = load_verdict(tmp_path / "R")
    assert (found.test, found.unit) == ("options", "item")
    assert found.table("items").columns["orders"].tolist() == [6.0] * found.units
    assert "items" in (tmp_path / "R" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--block-column", "nowhere"), "has no column 'nowhere'"),
        (("--options", "part"), "96 of 96 items have no options in part ('r0', 'r1', 'r2' and 93 more)"),
        (("--options", "part", "--block-column", "part"), "give one of the two"),
        (("--max-tokens", 16), "there is no shard whose rows may change places"),
        (("--placebo", "MODEL"), "is the target itself"),
        (("--level", 0), "--level lies between 0 and 1"),
        (("--shuffled-with", "random.shuffle:1"), "with the seed 1 do not stand as they were published"),
        (("--shuffled-with", "dice"), "found 'dice'. The ways are random.shuffle"),
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


@pytest.mark.parametrize(
    ("gone", "why"), [("--seed", "nobody can try several"), ("--shard-rows", "up to 8 rows")]
)
def test_options_that_went_say_why(tmp_path, capsys, monkeypatch, gone, why):
    monkeypatch.setattr(
        "sys.argv", ["pretrace", "order", "rows.jsonl", gone, "5", "--out", str(tmp_path / "R")]
    )
    with pytest.raises(SystemExit) as left:
        main()
    said = capsys.readouterr().err
    assert left.value.code == 2
    assert f"pretrace order has no {gone} any more" in said
    assert why in said
    assert said.count("\n") == 1


def test_the_next_test_of_the_same_texts_is_counted(ask, tmp_path, benchmark, model_folder):
    first = ask(*options_of(benchmark, benchmark["second"], tmp_path / "A"))[1]
    assert "No other test of these texts is known" in first
    again = ask(*options_of(benchmark, benchmark["second"], tmp_path / "B"))[1]
    assert "No other test of these texts is known" in again  # the same test again is no new one
    other = ask(*options_of(benchmark, model_folder, tmp_path / "C", "--block-column", "part"))[1]
    assert "the 2nd test of these texts on this machine; for 2 tests the level is 0.025 each" in other
    page = (tmp_path / "C" / "report.html").read_text(encoding="utf-8")
    assert "the 2nd test of these texts" in page
    assert load_verdict(tmp_path / "A").p == load_verdict(tmp_path / "B").p
    seen = look(str(benchmark["rows"]), Columns()).said
    assert any("On this machine 2 tests of these texts were made" in line for line in seen)
    assert any("the 3rd: for 3 tests the level is 0.0167 each" in line for line in seen)
