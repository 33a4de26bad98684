"""Flaggings on disk: back to the last bit, whole or not at all, and damage noticed."""

from __future__ import annotations

import csv
import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from pretrace import runs
from pretrace.errors import OutputError
from pretrace.report import flags as report
from pretrace.results import output_checks as replaceable
from pretrace.results.flags import FLAGGING, load_flags, save_flags
from pretrace.results.folder import seal_of
from pretrace.results.output_checks import FLAGS, FLAGS_KEY
from pretrace.results.serialization import to_json
from pretrace.types import Check, Flagged, Judged, Known, SetTest, Skipped


def made(outcome="flagged", **changes):
    rng = np.random.default_rng(0)
    told = outcome != "refused"
    flags = (True, False, False) if outcome == "flagged" else (False,) * 3
    texts = Judged(
        ids=("=a" + "x" * 200_000, 'b "quoted",\r', "ü\n漢"),
        groups=("g", "g", "h"),
        scores=rng.normal(size=3),
        p=np.array([1 / 3, 0.1, 1.0]) if told else np.zeros(0),
        q=np.array([0.1 + 0.2, 0.3, 1.0]) if told else np.zeros(0),
        flagged=flags,
        documents=("a", "b", "h"),
        drawn=(True, False, True),
    )
    known = Known(("k1", "k2"), ("k1", "k2"), np.array([1e-300, -7.0]), (True, False), ("k1", "k2"))
    check = Check("words", "Alike", "passed", "AUC 0.5.", figures={"auc": [0.5, 0.4, 0.6]})
    return replace(
        Flagged("mine", "known", "model", "loss", 0.05, "bh", outcome, "Said.", texts, known),
        checks=(check,),
        reasons=("Because.",),
        notes=("Note.",),
        skipped=(Skipped("s", "the text is empty", 0),),
        set_test=SetTest(
            0.1 + 0.2 if outcome != "set" else 0.01, 0.05, 1, 1 / 3, None, 99, "" if told else "why"
        ),
        settings={"seed": 0, "models": {"target": {"name": "model"}}},
        **changes,
    )


def same(one, other):
    for side, fields in (("texts", ("scores", "p", "q")), ("known", ("scores",))):
        for field in fields:
            assert np.array_equal(getattr(getattr(one, side), field), getattr(getattr(other, side), field))
    plain = [
        replace(
            x,
            texts=replace(x.texts, scores=np.zeros(0), p=np.zeros(0), q=np.zeros(0)),
            known=replace(x.known, scores=np.zeros(0)),
        )
        for x in (one, other)
    ]
    assert repr(plain[0]) == repr(plain[1])


@pytest.mark.parametrize("outcome", ["flagged", "set", "none", "coarse", "refused"])
def test_there_and_back(tmp_path, outcome):
    save_flags(
        made(outcome), tmp_path / "out", extra=lambda partial: (partial / "report.html").write_text("r")
    )
    same(load_flags(tmp_path / "out"), made(outcome))
    seal = seal_of(FLAGGING, tmp_path / "out")
    page = runs.render(tmp_path / "out").read_text(encoding="utf-8")
    assert report.render(made(outcome), seal=seal) == page
    content = json.loads((tmp_path / "out" / FLAGS).read_text(encoding="utf-8"))
    assert content["exit_code"] == {"flagged": 3, "set": 3, "none": 0, "coarse": 4, "refused": 4}[outcome]
    assert content["set_test"]["permutations"] == 99
    assert content["counts"]["flagged"] == (outcome == "flagged")
    assert content["files"]["report.html"] is None


def test_people_and_programs_can_read_the_table(tmp_path):
    save_flags(made(), tmp_path / "out")
    with (tmp_path / "out" / "flags.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["id", "group", "score", "p", "q", "flagged", "document", "drawn"]
    assert [row["flagged"] for row in rows] == ["1", "0", "0"]
    save_flags(made("refused"), tmp_path / "refused")
    with (tmp_path / "refused" / "flags.csv").open(encoding="utf-8", newline="") as file:
        assert {(row["p"], row["q"], row["flagged"]) for row in csv.DictReader(file)} == {("", "", "")}


@pytest.mark.parametrize("name", ["flags.csv", "known.csv", FLAGS])
def test_a_change_is_noticed(tmp_path, name):
    save_flags(made(), tmp_path / "out")
    path = tmp_path / "out" / name
    content = path.read_bytes()
    path.write_bytes(content.replace(b"g", b"j", 1) if name != FLAGS else content.replace(b"mine", b"ours"))
    with pytest.raises(OutputError, match=r"changed|damaged"):
        load_flags(tmp_path / "out")
    path.unlink()
    with pytest.raises(OutputError, match="there is no"):
        load_flags(tmp_path / "out")


def as_version_0_1(folder):
    """The folder as the first version wrote it: format 1, fewer columns, no test of the set."""
    content = json.loads((folder / FLAGS).read_text(encoding="utf-8"))
    for gone in ("set_test", "sha256"):
        del content[gone]
    for gone in ("documents", "flagged_documents"):
        del content["counts"][gone]
    content[FLAGS_KEY] = 1
    for name, columns in (("flags.csv", 6), ("known.csv", 4)):
        with (folder / name).open(encoding="utf-8", newline="") as file:
            rows = [row[:columns] for row in csv.reader(file)]
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
        content["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    content["sha256"] = hashlib.sha256(to_json(content)).hexdigest()
    (folder / FLAGS).write_bytes(to_json(content))


@pytest.mark.parametrize("outcome", ["flagged", "none", "refused"])
def test_what_version_0_1_wrote_is_still_read(tmp_path, outcome):
    one = made(outcome)
    save_flags(one, tmp_path / "out")
    as_version_0_1(tmp_path / "out")
    old = load_flags(tmp_path / "out")
    assert (old.outcome, old.set_test, old.number) == (outcome, None, one.number)
    assert old.texts.documents == old.texts.ids  # each text was judged by itself
    assert old.texts.drawn == (True,) * 3
    assert old.known.documents == old.known.groups
    assert "as a whole" not in report.render(old)


def test_what_is_none_of_ours_is_told(tmp_path):
    with pytest.raises(OutputError, match="there is no such folder"):
        load_flags(tmp_path / "nowhere")
    (tmp_path / FLAGS).write_text("[]")
    with pytest.raises(OutputError, match="damaged"):
        load_flags(tmp_path)
    (tmp_path / FLAGS).write_text('{"pretrace_flags": 99}')
    with pytest.raises(OutputError, match="newer pretrace"):
        load_flags(tmp_path)


def test_nothing_is_left_when_writing_fails(tmp_path):
    def fail(partial):
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError):
        save_flags(made(), tmp_path / "out", extra=fail)
    assert not list(tmp_path.iterdir())


def test_what_does_not_belong_together_is_not_written(tmp_path):
    one = made()
    for wrong in (
        replace(one, outcome="refused"),  # with p-values
        replace(one, outcome="none"),  # with a flag
        replace(made("set"), set_test=None),
        replace(one, texts=replace(one.texts, documents=("a",))),
        replace(one, texts=replace(one.texts, p=np.array([np.nan, 0.1, 1.0]))),
        replace(one, known=replace(one.known, drawn=(True,))),
    ):
        with pytest.raises(ValueError, match="flag"):
            save_flags(wrong, tmp_path / "out")


def test_an_earlier_flagging_is_replaced_and_nothing_else(tmp_path):
    assert (FLAGS, FLAGS_KEY) in {(one.marker, one.key) for one in replaceable._FOLDERS}
    save_flags(made(), tmp_path / "out")
    save_flags(made("none"), tmp_path / "out")
    assert load_flags(tmp_path / "out").outcome == "none"
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    with pytest.raises(OutputError, match=r"thesis\.tex"):
        save_flags(made(), tmp_path / "out")
