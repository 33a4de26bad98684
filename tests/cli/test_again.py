"""A result is made again from what it recorded, to the last bit; what does not record enough is refused."""

import json

import made
import pytest
from made import mats

from pretrace.cli.commands import options_of
from pretrace.cli.folders import command_line
from pretrace.registry import backends


def written(path, number, word="cat"):
    rows = [{**row, "body": row.pop("text")} for row in mats(number, word)]
    return made.written(path, rows)


def test_a_run_is_made_again_to_the_last_bit(call, tmp_path, model_folder):
    texts, run = written(tmp_path / "-texts.jsonl", 24), tmp_path / "RUN"
    options = ("--model", model_folder, "--scores=loss,min_k(k=0.1)", "--columns=text=body", "--seed=3")
    code, _, error = call("evaluate", *options, "--measuring=resamples=100", "--out", run, "--", texts)
    assert code == 0, error
    code, out, said = call("runs", "again", run, "--json")
    assert code == 0, said
    assert json.loads(out)["folder"] == str(tmp_path / "RUN-again")
    assert "pretrace runs verify" in said
    for name in ("run.json", "scores.csv", "metrics.json", "report.html"):
        assert (tmp_path / "RUN-again" / name).read_bytes() == (run / name).read_bytes(), name
    assert call("runs", "again", run, "--out", tmp_path / "OTHER", "--quiet")[2] == ""
    assert (tmp_path / "OTHER" / "run.json").read_bytes() == (run / "run.json").read_bytes()
    code, _, said = call("runs", "again", run, "--out", run)
    assert code == 2
    assert "would overwrite" in said


def test_a_flagging_is_made_again_with_its_exit_code(call, tmp_path, model_folder):
    texts, known = written(tmp_path / "texts.jsonl", 24), written(tmp_path / "known.jsonl", 24, "dog")
    lines = known.read_text(encoding="utf-8").replace('"label": 1', '"label": 0')
    # known texts need not call their column as the others do
    known.write_text(lines.replace('"body"', '"text"'), encoding="utf-8")
    options = ("--controls", known, "--model", model_folder, "--columns=text=body")
    first = call("flag", texts, *options, "--out", tmp_path / "FLAGS")
    assert first[0] in (0, 3, 4), first[2]
    again = call("runs", "again", tmp_path / "FLAGS")
    assert again[0] == first[0]
    tables = [(tmp_path / name / "flags.csv").read_bytes() for name in ("FLAGS", "FLAGS-again")]
    assert tables[0] == tables[1]
    assert call("runs", "verify", tmp_path / "FLAGS")[0] == 0


def changed(folder, change):
    """The run with other settings, without the hash of run.json."""
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    del facts["sha256"]
    change(facts["settings"])
    (folder / "run.json").write_text(json.dumps(facts), encoding="utf-8")
    return folder


def given(**options):
    return lambda settings: settings["given"].update(options)


REFUSED = {
    "a program": (lambda settings: settings.pop("given"), "does not record the options"),
    "no command": (lambda settings: settings.update(command="demo-2"), "no command of pretrace"),
    "standard input": (given(texts="-"), "made from standard input"),
    "an option of yore": (given(windoze=True), "made with --windoze"),
    "a stranger's code": (given(model_args={"trust_remote_code": True}), "give --trust"),
    "a stranger's options": (given(config="evil.toml"), "give --trust"),
    "a stranger's words": (
        given(model_args=["dtype=auto,trust-remote-code=true"]),
        "made with --model-args trust_remote_code, which can run any code: give --trust",
    ),
    "a stranger's key": (
        given(model_args={"dtype=auto,allow_pickle": True}),
        "made with --model-args allow_pickle",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_record_enough_is_refused(case, call, tmp_path, model_folder):
    change, said = REFUSED[case]
    texts, run = written(tmp_path / "texts.jsonl", 6), tmp_path / "RUN"
    call("score", texts, "--model", model_folder, "--scores=loss", "--columns=text=body", "--out", run)
    changed(run, change)
    code, _, error = call("runs", "again", run)
    assert code == 2
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "RUN-again").exists()


def test_code_that_is_trusted_runs_again(call, tmp_path, model_folder, monkeypatch):
    plugin = tmp_path / "plugin.py"
    code = "from pretrace.registry import backends\nbackends.add('one_of_mine')(print)\n"
    plugin.write_text(code, encoding="utf-8")
    monkeypatch.setattr(backends, "_factories", dict(backends._factories))
    monkeypatch.setattr(backends, "_origins", dict(backends._origins))
    texts, run = written(tmp_path / "texts.jsonl", 6), tmp_path / "RUN"
    options = ("--model", model_folder, "--scores=loss", "--columns=text=body", "--plugin", plugin)
    assert call("score", texts, *options, "--out", run)[0] == 0
    refused, _, said = call("runs", "again", run)
    assert refused == 2
    assert "--plugin" in said
    assert call("runs", "again", run, "--trust")[0] == 0
    assert (tmp_path / "RUN-again" / "run.json").read_bytes() == (run / "run.json").read_bytes()


@pytest.mark.parametrize("test", ["marks", "triggers", "canaries", "recite"])
def test_every_test_has_a_command_that_takes_its_options(test, tmp_path):
    from pretrace.cli.folders import _TESTS

    command = _TESTS.get(test, test)
    leaves = options_of(command)
    positional = next(name for name, leaf in leaves.items() if leaf.option.metavar)
    words = command_line(tmp_path, command, {positional: "x", "model": "m", "out": "o"})
    assert words == [*command.split(), "--model=m", "--out=o", "x"]
