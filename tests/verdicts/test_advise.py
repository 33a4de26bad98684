"""Which test can be made: every rule at its boundary, the commands, and what stands in the file of figures."""

import shlex
from dataclasses import replace

import made
import pytest

from pretrace.corpora import Columns
from pretrace.errors import TextsError
from pretrace.types import Situation
from pretrace.verdicts.advise import Names, advise, look, offered_tests

EMPTY = Situation()
ENOUGH = {
    "marks": {"unpublished": 5}, "triggers": {"unpublished": 5}, "order": {"unpublished": 20},
    "canaries": {"canaries": 5}, "controls-placebo": {"unseen": 20, "checkpoint": True},
    "controls": {"unseen": 20}, "flag": {"unseen": 20}, "recite": {"unseen": 5},
    "placebo": {"checkpoint": True},
}  # fmt: skip
"""The least with which each test applies."""


def row(name, situation):
    return next(one for one in advise(situation).rows if one.choice.name == name)


def test_every_test_of_a_verdict_is_in_the_list():
    # all but `samples`, of the logs of a harness, and audits, which stand there by their controls
    tests = {"flag", "marks", "triggers", "canaries", "recite"}
    assert tests <= {choice.name for choice in offered_tests()} == set(ENOUGH)


@pytest.mark.parametrize("name", ENOUGH)
def test_a_test_applies_from_its_boundary_on(name):
    enough = ENOUGH[name]
    found = row(name, Situation(**enough))
    assert (found.state, found.missing) == ("applies", "")
    for field, number in enough.items():
        less = replace(Situation(**enough), **{field: number - 1})
        found = row(name, less)
        assert found.state == "could", field
        assert found.missing
        if number not in (1, True):
            assert found.missing.startswith("1 more "), found.missing
            assert found.begun
    found = row(name, EMPTY)
    assert (found.state, found.missing != "", found.begun) == ("could", True, False)


@pytest.mark.parametrize(
    ("access", "cannot"),
    [
        ("text", {"marks", "order", "controls-placebo", "controls", "flag", "placebo"}),
        ("logprobs", {"controls", "placebo"}),
        ("weights", set()),
    ],
)
def test_what_a_model_does_not_offer_bars_the_tests_that_read_it(access, cannot):
    everything = {key: value for enough in ENOUGH.values() for key, value in enough.items()} | {"unseen": 20}
    rows = {one.choice.name: one for one in advise(Situation(**everything, access=access)).rows}
    assert {name for name, one in rows.items() if one.state == "cannot"} == cannot
    assert {name for name, one in rows.items() if one.state == "applies"} == rows.keys() - cannot
    assert all("only text" in rows[name].missing or "weights" in rows[name].missing for name in cannot)
    for name, asked in (("canaries", access == "text"), ("recite", access != "weights")):
        assert ("--access text" in rows[name].commands[0]) == asked


@pytest.mark.parametrize("name", ["controls", "controls-placebo", "placebo"])
def test_an_audit_counts_the_documents_in_question_where_they_are_known(name):
    has = Situation(**ENOUGH[name])
    assert row(name, replace(has, documents=20)).state == "applies"
    few = row(name, replace(has, documents=19))
    assert (few.state, few.missing) == ("could", "1 more documents in question")


def test_what_applies_comes_first_and_exact_tests_before_others():
    names = [one.choice.name for one in advise(Situation(unseen=20, canaries=20)).rows]
    assert names[:4] == ["canaries", "controls", "flag", "recite"]
    assert names[4:7] == ["marks", "triggers", "order"]
    kinds = [choice.kind_words.partition(" ")[::2] for choice in offered_tests()]
    assert kinds == sorted(kinds, key=lambda kind: (kind[0] == "conditional", kind[1]))


@pytest.mark.parametrize(
    ("name", "has"),
    [
        ("controls", {}),
        ("controls", {"unseen": 4}),
        ("recite", {"documents": 4}),
        ("flag", {"access": "logprobs"}),
        ("triggers", {"access": "text"}),
    ],
)
def test_the_easiest_is_one_that_is_begun_or_takes_the_least(name, has):
    found = advise(Situation(**has))
    assert not found.possible
    assert found.easiest.choice.name == name


def test_known_names_stand_in_the_commands_as_a_shell_reads_them():
    names = Names(controls="d.jsonl", earlier="old")
    found = advise(EMPTY, "my {texts}.jsonl", model="it's", names=names)
    commands = {one.choice.name: shlex.split(one.commands[-1]) for one in found.rows}
    given = ["--controls", "d.jsonl", "--model", "it's", "--placebo", "old", "--out", "AUDIT"]
    assert commands["controls-placebo"][2:] == ["my {texts}.jsonl", *given]


# What is seen in a file of texts: documents, random strings.

UUID, SHA = "123e4567-e89b-12d3-a456-426614174000", "ab" * 32


def opinions(number=24):
    """Texts with an opinion as label."""
    said = "The railway number {} reached the valley at noon and nothing was the same"
    more = ({"id": f"2015-{i}", "text": said.format(i), "group": f"g{i // 2}"} for i in range(number))
    return [{**row, "label": "angry"} for row in more]


def written(path, rows):
    return str(made.written(path, rows))


def test_everything_is_seen_and_said(tmp_path):
    rows = opinions()
    rows[3]["text"] += f" {UUID}"
    rows[4]["text"] += f" {UUID.upper()} {SHA} {'7' * 20}"
    found = look(written(tmp_path / "t.jsonl", rows), Columns())
    assert found.situation == Situation(documents=12, canaries=2, windowed=0)
    assert found.said == ("24 texts of 12 documents.", "2 random strings (UUIDs, hashes) in the texts.")


def test_a_column_whose_values_repeat_is_suggested_as_group(tmp_path):
    full = [{**row, "book": f"b{i // 2}", "page": i, "kind": "prose"} for i, row in enumerate(opinions(48))]
    bare = [{name: row[name] for name in ("id", "text", "book", "page", "kind")} for row in full]
    found = look(written(tmp_path / "bare.jsonl", bare), Columns())
    assert found.said[1] == (
        "The values of the column 'book' repeat: if they name what texts belong to, give --columns group=book."
    )
    assert "repeat" not in " ".join(look(written(tmp_path / "full.jsonl", full), Columns()).said)
    assert "repeat" not in " ".join(look(str(tmp_path / "bare.jsonl"), Columns(group="book")).said)


def test_the_text_column_may_have_another_name(tmp_path):
    path = written(tmp_path / "t.jsonl", [{"body": row["text"]} for row in opinions()])
    assert look(path, Columns(text="body")).situation.documents == 24
    with pytest.raises(TextsError, match="no column"):
        look(path, Columns())
