"""ask as a user calls it: what can be answered, the command that it runs, one sentence, exit codes."""

import itertools
import json
import os
import pty
import random
import shlex
import subprocess
import sys

import pytest

from pretrace.backends import huggingface
from pretrace.corpora import opening


def written(folder, first, number):
    """A folder of texts of one kind, each another."""
    folder.mkdir()
    names = ("cat", "dog", "hen", "cow", "fox", "owl", "bee")
    for i in range(first, first + number):
        drawn = random.Random(i)  # no side has numbers or animals of its own
        said = (f"The {drawn.choice(names)} number {drawn.randrange(900)} sat on the mat." for _ in range(15))
        text = " ".join(said)
        (folder / f"{i}.txt").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def mine(tmp_path):
    return written(tmp_path / "mine", 0, 24)


def elsewhere(folder):
    """A corpus without any of the texts."""
    place = folder / "corpus.txt"
    place.write_text("nothing of it stands here, in a line that is long enough to be looked at\n")
    return place


def test_control_documents_lead_to_an_audit_and_end_in_its_sentence(
    call, mine, tmp_path, model_folder, monkeypatch
):
    loaded, read = [], []
    load, file_rows = huggingface.load, opening.folder_rows
    monkeypatch.setattr(huggingface, "load", lambda *given: loaded.append(given[0]) or load(*given))
    monkeypatch.setattr(opening, "folder_rows", lambda *given: read.append(given[0]) or file_rows(*given))
    drafts, out = written(tmp_path / "drafts", 24, 24), tmp_path / "OUT"
    words = ("ask", mine, "--model", model_folder, "--controls", drafts, "--out", out)
    code, planned, _ = call(*words, "--plan")
    assert code == 0
    assert not out.exists()
    assert "Test: Control documents. It assumes: " in planned
    assert "With 24 documents and 24 controls, one reading by a model of 1.3 million parameters" in planned
    assert "Documents needed on each side, for 8 of 10 cases;" in planned
    loaded.clear()
    read.clear()
    code, said, error = call(*words, "--json")
    assert code in (3, 4), error
    assert loaded == [str(model_folder), "smollm2"]  # what was planned with is what reads
    assert read == [mine, mine, drafts]  # a first row, which tells the column of texts; then each folder once
    found = json.loads(said)
    verdict = json.loads((out / "audit" / "result.json").read_text(encoding="utf-8"))
    assert found["statement"] == verdict["statement"]
    assert found["exit_code"] == code == verdict["exit_code"]
    assert found["report"] == str(out / "audit" / "report.html")
    assert f"runs {found['commands'][0]}" in error
    assert f"$ {found['commands'][0]}" in planned.replace("\n$", "\n$")
    assert call(*shlex.split(found["commands"][0])[1:])[0] == code  # what it prints can be run


def test_a_corpus_is_searched_and_no_model_is_needed(call, mine, tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text((mine / "3.txt").read_text(encoding="utf-8") + "\nanother line\n", encoding="utf-8")
    code, out, error = call("ask", mine, "--corpus", corpus, "--out", tmp_path / "OUT")
    assert code == 3, error
    assert out.startswith("Found: 1 of 24 texts of mine stand whole in corpus.txt")
    assert out.splitlines()[1] == f"Report: {tmp_path / 'OUT' / 'scan' / 'report.html'}"
    assert "24 texts of 24 documents.\nQuestion: does mine stand in corpus.txt?\nTest: " in error


def test_where_nothing_can_be_answered_it_names_what_is_missing_and_writes_nothing(
    call, mine, tmp_path, model_folder
):
    few = written(tmp_path / "few", 30, 7)
    words = ("ask", mine, "--model", model_folder, "--out", tmp_path / "OUT")
    code, out, _ = call(*words, "--controls", few)
    assert code == 4
    assert "Most easily had: Control documents. Missing: 13 more control documents." in out
    assert not (tmp_path / "OUT").exists()
    for dead in ("vllm:http://127.0.0.1:9", "chat:http://127.0.0.1:9"):
        code, out, error = call(*words[:3], dead, *words[4:], "--controls", few)
        assert (code, out, error.count("\n")) == (2, "", 1)
        assert "nothing answers at http://127.0.0.1:9" in error


def test_without_a_model_it_says_what_can_be_tested_and_with_what(call, mine):
    code, out, _ = call("ask", mine)
    assert code == 4
    assert out.startswith("24 texts of 24 documents.\nThis could be made:\n")
    assert f"$ pretrace audit {mine} --controls CONTROLS.jsonl --model MODEL --out AUDIT" in out
    assert out.splitlines()[-1].endswith("Missing: 20 control documents.")
    code, out, _ = call("ask", mine, "--controls", mine, "--json")
    found = json.loads(out)
    assert (code, found["possible"]) == (0, True)
    assert [one["name"] for one in found["tests"] if one["state"] == "applies"][:2] == ["controls", "flag"]


def test_a_search_that_finds_nothing_does_not_clear_a_model_that_could_not_be_tested(
    call, mine, tmp_path, model_folder
):
    words = ("ask", mine, "--corpus", elsewhere(tmp_path), "--out", tmp_path / "OUT")
    assert call(*words)[0] == 0
    code, out, error = call(*words, "--model", model_folder)
    assert code == 4, error
    assert out.startswith("Not found: ")
    assert "No test can answer with this. Most easily had: Control documents." in out
    code, out, _ = call(*words, "--model", model_folder, "--json")
    found = json.loads(out)
    assert (code, found["exit_code"], found["outcome"]) == (4, 4, "cannot answer")
    assert found["cannot"]


def test_what_goes_wrong_on_the_way_leaves_nothing(call, mine, tmp_path):
    damaged = tmp_path / "model"
    damaged.mkdir()
    (damaged / "config.json").write_text("{")
    drafts = written(tmp_path / "drafts", 24, 24)
    for how in (("--corpus", mine, "--heldout", mine), ("--model", damaged, "--controls", drafts)):
        code, _, error = call("ask", mine, *how, "--out", tmp_path / "no" / "OUT")
        assert code == 2, error
    assert not (tmp_path / "no").exists()


def test_short_texts_are_cut_into_shorter_snippets(call, tmp_path, model_folder):
    sides = [written(tmp_path / name, first, 24) for name, first in (("mine", 0), ("unseen", 24))]
    for path in itertools.chain(*(side.iterdir() for side in sides)):
        path.write_text(path.read_text("utf-8")[:100], "utf-8")
    words = (sides[0], "--model", model_folder)
    code, _, error = call("audit", *words, "--controls", sides[1], "--plan")
    assert (code, "take shorter snippets (--snippets tokens" in error) == (2, True)
    code, out, error = call("ask", *words, "--controls", sides[1], "--plan")
    assert code == 0, error
    assert "--snippets tokens=32" in out or "--snippets tokens=16" in out


@pytest.mark.parametrize("option", ["--model", "--placebo"])
def test_a_model_that_is_not_there_is_noticed_where_no_test_applies(call, tmp_path, model_folder, option):
    few = written(tmp_path / "few", 1, 2)
    models = {"--model": model_folder} | {option: tmp_path}
    code, _, error = call("ask", few, *itertools.chain(*models.items()), "--plan")
    assert code == 2
    assert "a model folder holds config.json" in error


def at_a_terminal(words, answer):
    """The exit code, standard output and what the terminal showed of a command with this answer typed."""
    keyboard, terminal = pty.openpty()
    line = [sys.executable, "-m", "pretrace", *words]
    with subprocess.Popen(line, stdin=terminal, stderr=terminal, stdout=subprocess.PIPE) as process:
        os.close(terminal)
        os.write(keyboard, answer.encode())
        out = process.stdout.read().decode()
        code = process.wait()
    shown = os.read(keyboard, 100_000).decode()
    os.close(keyboard)
    return code, out, shown


def test_the_column_of_the_longest_texts_is_taken_and_said(call, mine, tmp_path):
    rows = [f"{i};{one.read_text()}\n" for i, one in enumerate(sorted(mine.iterdir()))]
    table, folder = tmp_path / "posts.csv", tmp_path / "OUT"
    table.write_text("".join(["Nr.;Beitrag\n", *rows]), encoding="utf-8")
    code, said, asked = call("ask", table, "--plan")
    assert (code, said.startswith("24 texts of 24 documents.")) == (4, True)
    _, plan, scanned = call("scan", table, "--corpus", mine, "--plan")
    assert "are read once, in every column with text." in plan
    flagged = call("flag", table, "--controls", mine, "--model", tmp_path / "no", "--out", folder)[2]
    for error in (asked, scanned, flagged):
        assert "the texts are taken from the column 'Beitrag'" in error


def test_at_a_terminal_it_asks_before_it_starts(mine, tmp_path):
    words = ("ask", mine, "--corpus", elsewhere(tmp_path), "--out", tmp_path / "OUT")
    code, out, shown = at_a_terminal([*map(str, words)], "n\n")
    assert (code, out.strip()) == (4, "Not started.")
    assert "Question: does mine stand in corpus.txt?" in shown
    assert not (tmp_path / "OUT").exists()
