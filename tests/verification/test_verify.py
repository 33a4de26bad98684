"""A folder is verified: its files, its report, its texts; and a change to any of them is found."""

import json
import re
import shutil
from pathlib import Path

import pytest
from made import written

from pretrace.cli.commands import call
from pretrace.corpora import Columns, open_corpus
from pretrace.corpora.opening import record_corpus
from pretrace.errors import ExpressionError, OutputError, TextsError
from pretrace.verification import _recorded_sides, verify


def texts_of(number, word="cat"):
    said = f"The {word} number {{}} sat on the mat."
    return [{"key": f"k{i}", "body": said.format(i), "label": i % 2} for i in range(number)]


@pytest.fixture(scope="module")
def made(tmp_path_factory, model_folder):
    """A folder with texts, and a run of them whose columns have names of their own."""
    desk = tmp_path_factory.mktemp("verify")
    texts = written(desk / "texts.jsonl", texts_of(12))
    where = [str(texts), "--model", str(model_folder), "--columns=text=body,id=key", "--out"]
    assert call(["score", *where, str(desk / "RUN"), "--scores=loss"]) == 0
    assert call(["evaluate", *where, str(desk / "PART"), "--scores=na_pdd", "--set-aside=reference=0.5"]) == 0
    return desk


@pytest.fixture
def desk(made, tmp_path):
    """The same in a folder where it may be changed; the recorded place of the texts is still the first one."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def facts_of(folder, **changed):
    """What run.json says, once written anew with these changes."""
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8")) | changed
    if changed:
        (folder / "run.json").write_text(json.dumps(facts), encoding="utf-8")
    return facts


def states(folder, **named):
    return {one.name: one.state for one in verify(folder, {k: str(v) for k, v in named.items()}).checks}


@pytest.mark.parametrize(("run", "more"), [("RUN", "not recorded"), ("PART", "yes")])
def test_all_that_was_recorded_holds_of_a_run_as_it_was_written(desk, run, more):
    """Also of one that scored a part of its texts: the texts as they were given were recorded, too."""
    found = verify(desk / run)
    whole = dict.fromkeys(("files", "seal", "report", "texts"), "yes")
    assert {one.name: one.state for one in found.checks} == {**whole, "numbers": more}
    assert (found.holds, found.kind) == (True, "run")
    assert states(desk / run, texts=desk / "texts.jsonl")["texts"] == "yes"


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


def test_other_texts_are_not_those_of_the_run(desk):
    other = written(desk / "other.jsonl", texts_of(12, "dog"))
    fewer = written(desk / "fewer.jsonl", texts_of(11))
    for place in (other, fewer):
        assert states(desk / "RUN", texts=place)["texts"] == "no"
    renamed = [{"id": row["key"], "text": row["body"], "label": row["label"]} for row in texts_of(12)]
    usual = written(desk / "usual.jsonl", renamed)
    with pytest.raises(TextsError, match="body"):
        verify(desk / "RUN", {"texts": usual})
    found = verify(desk / "RUN", {"texts": usual}, columns=Columns(text="text", id="id"))
    assert found.holds


def test_texts_that_are_not_here_are_asked_for(desk):
    named = facts_of(desk / "RUN")["settings"]["given"]["texts"]
    Path(named).rename(f"{named}.away")
    try:
        found = verify(desk / "RUN")
    finally:
        Path(f"{named}.away").rename(named)
    [texts] = [one for one in found.checks if one.name == "texts"]
    assert (texts.state, "--texts" in texts.words, found.holds) == ("not given", True, True)


def test_what_is_no_result_and_a_role_it_does_not_have_are_one_line(desk):
    with pytest.raises(OutputError, match="not a pretrace run"):
        verify(desk)
    with pytest.raises(ExpressionError, match="has no controls; its texts are: texts"):
        verify(desk / "RUN", {"controls": desk / "texts.jsonl"})


def test_the_command_prints_a_short_list_and_leaves_with_0_or_2(desk, ask):
    said, _ = ask("runs", "verify", desk / "RUN")
    assert re.findall(r"^(\w+) +yes", said, re.MULTILINE) == ["files", "seal", "report", "texts"]
    edited("scores.csv")(desk / "RUN")
    found = json.loads(ask("runs", "verify", desk / "RUN", "--json", code=2)[0])
    assert (found["command"], found["outcome"], found["exit_code"]) == ("runs verify", "differs", 2)
    assert found["checks"][0] == {"name": "files", "state": "no", "words": "scores.csv was changed"}


def rows(word, number=5, **more):
    texts = (f"{word} {i} and more" for i in range(number))
    return [{"id": f"{word}{i}", "text": t, "label": i % 2, **more} for i, t in enumerate(texts)]


def measured(content):
    """Whether each side of a result is what is at its recorded place."""
    sides = _recorded_sides(content, Columns())
    return {one.role: one.measure(one.place) == one.sha256 for one in sides}


def test_every_side_that_was_recorded_is_read_as_its_command_read_it(tmp_path):
    one, other = (written(tmp_path / f"{name}.jsonl", rows(name)) for name in "ab")
    a, b = (record_corpus(open_corpus(str(place))) for place in (one, other))
    given = {"texts": str(one), "controls": str(other)}
    audit = {"corpus": a, "heldout": b, "command": given}
    flagging = {"texts": a, "nonmembers": b, "command": given}
    for settings in (audit, flagging):
        assert measured({"settings": settings}) == {"texts": True, "controls": True}
    assert measured({"settings": {**audit, "heldout": a}}) == {"texts": True, "controls": False}
    reference = {"texts": a, "reference": b, "given": {"texts": str(one), "reference": str(other)}}
    assert measured({"settings": reference}) == {"texts": True, "reference": True}
