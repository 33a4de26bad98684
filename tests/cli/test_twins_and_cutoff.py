"""twins and cutoff as a user calls them: output, files, exit codes, messages, on made-up models and a tiny real one."""

from __future__ import annotations

import json
from datetime import date

import numpy as np
import pytest
import typer
from tiny import WORDS

from pretrace.cli.cutoff import cutoff
from pretrace.cli.options import command_of
from pretrace.cli.twins import twins
from pretrace.errors import OutputError, PretraceError
from pretrace.runs import report_of
from pretrace.testing import FakeBackend

app = typer.Typer(pretty_exceptions_enable=False)
for command in (twins, cutoff):
    app.command()(command_of(command))


@pytest.fixture
def ask(capsys, monkeypatch):
    """Calls a command with models by name, those that are folders as they are; gives the code and what was printed."""
    import pretrace.scoring.models as opening
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
def pairs(tmp_path):
    rng = np.random.default_rng(0)
    rows = []
    for i in range(24):
        words = rng.choice(WORDS, 40)
        other = words.copy()
        other[rng.integers(0, 40, 6)] = rng.choice(WORDS, 6)
        rows.append({"id": f"t{i}", "text": " ".join(words), "draft": " ".join(other)})
    return rows


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


def test_twins_tell_a_trained_model_beside_a_placebo(ask, tmp_path, pairs):
    models, out = fakes([row["text"] for row in pairs]), tmp_path / "OUT"
    texts = lines(tmp_path / "texts.jsonl", pairs)
    common = (texts, "--draft-column", "draft", "--model", "trained", "--out", out)
    code, said = ask(models, "twins", *common, "--placebo", "other", "--reference-model", "third")
    assert code == 3
    assert "Γ* =" in said
    found = checked(out, 3)
    assert found["figures"]["gamma"] > 1
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "would stand even if" in page
    assert page.count("<figure") == 3
    assert ask(models, "twins", *common)[0] == 4  # the same without a placebo
    checked(out, 4)


def test_drafts_may_stand_in_a_file_of_their_own(ask, tmp_path, pairs):
    drafts = lines(tmp_path / "drafts.jsonl", [{"id": r["id"], "text": r["draft"]} for r in reversed(pairs)])
    texts = lines(tmp_path / "texts.jsonl", [{"id": r["id"], "text": r["text"]} for r in pairs])
    out, models = tmp_path / "OUT", fakes([row["text"] for row in pairs])
    common = (texts, "--drafts", drafts, "--placebo", "other", "--out", out)
    assert ask(models, "twins", *common, "--model", "trained")[0] == 3
    assert ask(models, "twins", *common, "--model", "third")[0] == 4


def test_twins_refuse_what_they_cannot_use(ask, tmp_path, pairs):
    texts, out = tmp_path / "texts.jsonl", tmp_path / "OUT"
    common = (texts, "--model", "trained", "--out", out)
    for rows, options, said in (
        (pairs, (), "one of --draft-column and --drafts"),
        (pairs, ("--draft-column", "notes"), "no column 'notes'"),
        ([{**pairs[0], "draft": ""}, *pairs[1:]], ("--draft-column", "draft"), "empty draft: 't0'"),
        (pairs[:5], ("--draft-column", "draft"), "found 5"),
    ):
        lines(texts, rows)
        with pytest.raises(PretraceError) as error:
            ask({}, "twins", *common, *options)  # no model is opened
        assert said in str(error.value)
        assert "\n" not in str(error.value)
        assert not out.exists()


def test_a_cutoff_is_told_and_a_short_series_is_not(ask, tmp_path, dated):
    models = fakes([row["text"] for row in dated if row["date"] < "2019-07-01"])
    texts, out = lines(tmp_path / "texts.jsonl", dated), tmp_path / "OUT"
    common = (texts, "--model", "trained", "--cutoff", "2019-07-01", "--out", out)
    code, said = ask(models, "cutoff", *common, "--placebo", "other", "--reference-model", "third")
    assert code == 3
    assert "M* =" in said
    checked(out, 3)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("<figure") == 3
    assert ask(models, "cutoff", *common, "--months", "6")[0] == 4
    assert checked(out, 4)["p"] is None


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


def test_nothing_shown_takes_planting_that_would_have_been_seen(
    ask, tmp_path, pairs, model_folder, reference_folder
):
    """A tiny real model that read nothing: planting measures what the test would have seen."""
    texts, out = lines(tmp_path / "texts.jsonl", pairs), tmp_path / "OUT"
    given = ("--draft-column", "draft", "--model", model_folder, "--placebo", reference_folder, "--out", out)
    code, said = ask({}, "twins", texts, *given, "--power", "--power-epochs", "3", "--draws", "500")
    found = checked(out, code)
    assert found["planted"]["planted"] == 12
    bound, planted = found["effect"]["high"], found["planted"]["effect"]["low"]
    rejects = found["p"] <= 0.05
    assert code == (0 if bound < planted and not rejects else 4)
    assert "Reading 12 of them" in said or rejects


def test_the_power_of_a_cutoff_is_that_of_planted_texts(ask, tmp_path, dated, model_folder):
    texts, out = lines(tmp_path / "texts.jsonl", dated), tmp_path / "OUT"
    given = ("--model", model_folder, "--cutoff", "2019-07", "--out", out)
    code, said = ask({}, "cutoff", texts, *given, "--power", "--power-epochs", "1")
    found = checked(out, code)
    before = sum("2019-04" <= row["date"] < "2019-07" for row in dated)  # --months is 3
    assert found["planted"]["planted"] == before // 2
    assert code in (0, 4)
    assert f"Reading {before // 2} of them" in said or found["p"] <= 0.05
