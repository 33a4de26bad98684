"""cutoff as a user calls it: output, files, exit codes, messages, on made-up models and a tiny real one."""

from __future__ import annotations

import json
from datetime import date

import numpy as np
import pytest
import typer
from tiny import WORDS

from pretrace.cli.options import command_of
from pretrace.cli.testing import cutoff
from pretrace.errors import OutputError, PretraceError
from pretrace.runs import report_of
from pretrace.testing import FakeBackend

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(command_of(cutoff))
app.command("other")(command_of(cutoff))  # one command alone would have no name


@pytest.fixture
def ask(capsys, monkeypatch):
    """Calls a command with models by name, those that are folders as they are; gives the code and what was printed."""
    import pretrace.scoring.plan as opening
    from pretrace import backends

    really = backends.open_model

    def called(models, *arguments):
        def opened(name, **how):
            return models[name] if name in models else really(name, **how)

        monkeypatch.setattr(opening, "open_model", opened)
        monkeypatch.setattr(backends, "open_model", opened)
        code = app([str(argument) for argument in arguments], standalone_mode=False)
        return code or 0, capsys.readouterr().out

    return called


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def dated():
    rng = np.random.default_rng(1)
    return [
        {
            "id": f"m{month}.{i}",
            "text": " ".join(rng.choice(WORDS, 40)),
            "date": str(date(2016 + month // 12, 1 + month % 12, 1 + 9 * i)),
        }
        for month in range(84)
        for i in range(3)
    ]


def fakes(read):
    return {
        "trained": FakeBackend(read, name="trained"),
        "other": FakeBackend(name="other", max_tokens=4000),
        "third": FakeBackend(name="third", max_tokens=3999),
    }


def checked(out, code):
    """The result on disk, which says what the report says."""
    found = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert found["exit_code"] == code
    assert report_of(out) == (out / "report.html").read_text(encoding="utf-8")
    return found


def test_a_cutoff_is_told_and_a_short_series_is_refused(ask, tmp_path, dated):
    models = fakes([row["text"] for row in dated if row["date"] < "2019-07-01"])
    texts, out = lines(tmp_path / "texts.jsonl", dated), tmp_path / "OUT"
    common = (texts, "--model", "trained", "--cutoff", "2019-07-01", "--out", out)
    code, said = ask(models, "cutoff", *common, "--placebo", "other", "--reference-model", "third")
    assert code == 3
    assert "M* =" in said
    checked(out, 3)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("<figure") == 3
    before = (out / "result.json").read_bytes()
    lines(texts, [row for row in dated if row["date"] > "2018-12"])
    with pytest.raises(PretraceError, match="are missing") as error:
        ask({}, "cutoff", *common, "--placebo", "other")  # no model is opened
    assert "\n" not in str(error.value)
    assert (out / "result.json").read_bytes() == before


def test_a_cutoff_refuses_what_it_cannot_use(ask, tmp_path, dated):
    texts, out = tmp_path / "texts.jsonl", tmp_path / "OUT"
    common = (texts, "--model", "trained", "--out", out)
    undated = [{**row, "date": ""} if i < 2 else row for i, row in enumerate(dated)]
    for rows, options, said in (
        (undated, ("--cutoff", "2019-07"), "2 of 252 texts have no usable date"),
        (dated, ("--cutoff", "2031-07"), "outside the texts, which are dated from 2016-01-01 to 2022-12-19"),
        (dated, ("--cutoff", "soon"), "--cutoff is a date such as"),
        (dated, ("--cutoff", "2019-07", "--date-column", "day"), "no column 'day'"),
    ):
        lines(texts, rows)
        with pytest.raises(PretraceError) as error:
            ask({}, "cutoff", *common, *options)
        assert said in str(error.value)
        assert "\n" not in str(error.value)
        assert not out.exists()
    with pytest.raises(OutputError, match="overwrite"):
        ask({}, "cutoff", texts, "--model", "trained", "--cutoff", "2019-07", "--out", tmp_path)


def test_the_power_of_a_cutoff_is_that_of_planted_texts(ask, tmp_path, dated, model_folder, reference_folder):
    texts, out = lines(tmp_path / "texts.jsonl", dated), tmp_path / "OUT"
    given = ("--model", model_folder, "--placebo", reference_folder, "--cutoff", "2019-07", "--out", out)
    code, said = ask({}, "cutoff", texts, *given, "--power", "--power-epochs", "1")
    found = checked(out, code)
    before = sum("2019-04" <= row["date"] < "2019-07" for row in dated)  # three months
    planted = found["planted"]["planted"]
    assert planted in (before // 2, before - before // 2)
    assert code in (0, 4)
    assert f"{planted} documents were read once by a copy" in " ".join(said.split()) or found["p"] <= 0.05
