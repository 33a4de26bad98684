"""A folder is verified: its files, its report, its numbers; and a change to any of them is found."""

import json
import re
import shutil

import pytest
from made import mats, written

from pretrace.cli.commands import call
from pretrace.errors import OutputError
from pretrace.verification import verify


@pytest.fixture(scope="module")
def made(tmp_path_factory, model_folder):
    """A folder with a run."""
    desk = tmp_path_factory.mktemp("verify")
    texts = written(desk / "texts.jsonl", mats(12))
    assert (
        call(["score", str(texts), "--model", str(model_folder), "--scores=loss", "--out", str(desk / "RUN")])
        == 0
    )
    return desk


@pytest.fixture
def desk(made, tmp_path):
    """The same in a folder where it may be changed."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def facts_of(folder, **changed):
    """What run.json says, once written anew with these changes."""
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8")) | changed
    if changed:
        (folder / "run.json").write_text(json.dumps(facts), encoding="utf-8")
    return facts


def states(folder):
    return {one.name: one.state for one in verify(folder).checks}


def test_all_that_was_recorded_holds_of_a_run_as_it_was_written(desk):
    assert states(desk / "RUN") == {**dict.fromkeys(("files", "seal", "report"), "yes"), **NONE}
    assert (verify(desk / "RUN").holds, verify(desk / "RUN").kind) == (True, "run")


def test_a_report_shows_the_hash_of_its_result_at_its_end_and_on_each_printed_page(desk):
    seal = facts_of(desk / "RUN")["sha256"]
    page = (desk / "RUN" / "report.html").read_text(encoding="utf-8")
    assert f'@page {{ @bottom-left {{ content: "pretrace · SHA-256 {seal}"' in page
    assert page.count(seal) == 2


def edited(name):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes() + b" ")


def resettled(folder):
    facts_of(folder, settings={**facts_of(folder)["settings"], "seed": 5})


NONE = {"numbers": "not recorded"}
"""A run that was not evaluated has no number that its table gives."""
CHANGES = {
    "a table": (edited("scores.csv"), {"files": "no", **NONE}),
    "the table that is read": (edited("scores.parquet"), {"files": "no", "report": "no", "numbers": "no"}),
    "a table is gone": (lambda folder: (folder / "cut.csv").unlink(), {"files": "no", **NONE}),
    "the report": (edited("report.html"), {"report": "no", **NONE}),
    "the report is gone": (lambda folder: (folder / "report.html").unlink(), {"report": "no", **NONE}),
    "the settings": (resettled, {"seal": "no", "report": "no", "numbers": "no"}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_found_where_it_is(desk, change):
    act, expected = CHANGES[change]
    act(desk / "RUN")
    found = {name: state for name, state in states(desk / "RUN").items() if state != "yes"}
    assert found == expected
    assert not verify(desk / "RUN").holds


def test_what_is_no_result_is_one_line(desk):
    with pytest.raises(OutputError, match="not a pretrace run"):
        verify(desk)


def test_the_command_prints_a_short_list_and_leaves_with_0_or_2(desk, ask):
    said, _ = ask("runs", "verify", desk / "RUN")
    assert re.findall(r"^(\w+) +yes", said, re.MULTILINE) == ["files", "seal", "report"]
    edited("scores.csv")(desk / "RUN")
    found = json.loads(ask("runs", "verify", desk / "RUN", "--json", code=2)[0])
    assert (found["command"], found["outcome"], found["exit_code"]) == ("runs verify", "differs", 2)
    assert found["checks"][0] == {"name": "files", "state": "no", "words": "scores.csv was changed"}
