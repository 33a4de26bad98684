"""Every command that the list of tests prints is run: none fails for what the list knew or should have known."""

import shlex
import uuid
from dataclasses import replace

import numpy as np
import pytest
from made import read_lines, written

from pretrace.corpora import Columns
from pretrace.verdicts.advise import advise, look

ROWS = 150  # six a month over 25 months: the least that some cut-off can be tested with is 23


@pytest.fixture
def texts(tmp_path):
    """Texts in a column of another name, with dates over two years (one has none), options, random strings, and a label
    that says something else than membership."""
    random = np.random.default_rng(0)
    words = [f"word{chr(97 + i)}" for i in range(26)]
    rows = [
        {
            "key": f"t{i}",
            "body": f"{' '.join(random.choice(words, 6))}: {uuid.UUID(bytes=random.bytes(16), version=4)}.",
            "label": "sports" if i % 2 else "news",
            "when": f"{2019 + i // 72}-{1 + i // 6 % 12:02}-{3 + 4 * (i % 6):02}" if i else "",
            "choices": [
                f"{one} {words[i % 26]} {words[i // 26]}" for one in ("harbour", "meadow", "lantern")
            ],
            "site": f"s{i % 22}",
        }
        for i in range(ROWS)
    ]
    return written(tmp_path / "my texts.jsonl", rows)


def advised(path, model, columns, **told):
    """The tests for a file, with what the one who asks has besides."""
    seen = look(str(path), columns)
    return advise(replace(seen.situation, **told), str(path), model=model, names=seen.names).rows


def renamed(path, name, change=""):
    """The same rows with another wording."""
    rows = [{"id": r["key"], "text": f"{change}{r['body']}", "site": r["site"]} for r in read_lines(path)]
    return written(path.with_name(name), rows)


def test_every_printed_command_runs(call, texts, tmp_path, model_folder, reference_folder, monkeypatch):
    monkeypatch.chdir(tmp_path)
    controls = [{**row, "body": f"Later. {row['body']}"} for row in read_lines(texts)]
    written(tmp_path / "CONTROLS.jsonl", controls)
    renamed(texts, "UNPUBLISHED.jsonl")
    renamed(texts, "OTHER_WORDING.jsonl", "Now: ")
    have = {"unseen": 40, "unpublished": 40, "checkpoint": True}
    tests = advised(texts, str(model_folder), Columns(text="body", id="key"), **have)
    tests = [one for one in tests if one.state == "applies"]
    assert {one.choice.name for one in tests} >= {"marks", "triggers", "canaries", "order", "flag"}
    hashes = {}
    for test in tests:
        place = tmp_path / test.choice.name
        for command in test.commands:
            own = {word: str(place / word) for word in ("MARKED", "SEALED", "PROMPTS.jsonl")}
            given = {"EARLIER": str(reference_folder), **hashes, **own}
            words = [given.get(word, word) for word in shlex.split(command)[1:]]
            # What is long is asked for its plan: the same arguments, the same texts, and no model that is trained.
            words += {"audit": ["--plan", "--snippets=tokens=8"], "flag": ["--dry-run"]}.get(words[0], [])
            # The second model and the generator that are opened by themselves are a large one.
            if words[0] == "audit" and "--generator" not in words:
                words += ["--generator", str(model_folder)]
            own = "canaries" in words[:2] or (words[:2] == ["mark", "check"] and "--model" in words)
            if own and "--placebo" not in words:
                words += ["--placebo", str(reference_folder)]
            code, _, said = call(*words)
            assert code in (0, 3, 4), (command, said)
            if words[:2] in (["mark", "texts"], ["mark", "order"]):
                hashes["HASH"] = (place / "MARKED" / "commitment.txt").read_text().split()[0]
            if (prompts := place / "PROMPTS.jsonl").exists():
                answers = [{"id": row["id"], "answer": "cat"} for row in read_lines(prompts)]
                written(tmp_path / "ANSWERS.jsonl", answers)
    published = read_lines(tmp_path / "marks" / "MARKED" / "published.jsonl")
    assert {row["id"]: row["site"] for row in published} == {f"t{i}": f"s{i % 22}" for i in range(ROWS)}


def test_recitation_is_advised_where_texts_are_long_enough(texts, tmp_path):
    def state(path, **columns):
        rows = advised(path, "m", Columns(**columns), unseen=40)
        row = next(one for one in rows if one.choice.name == "recite")
        return row.state, row.missing

    short = ("could", "5 documents in question with 400 bytes that stand nowhere else")
    assert state(texts, text="body", id="key") == short

    random = np.random.default_rng(1)
    words = ["".join(random.choice(list("abcdefghij"), 5)) for _ in range(500)]
    long = [" ".join(random.choice(words, 200)) for _ in range(6)]
    assert state(written(tmp_path / "long.jsonl", long)) == ("applies", "")
    few = state(written(tmp_path / "few.jsonl", [*long[:3], *["short"] * 3]))
    assert few == ("could", f"2 more{short[1][1:]}")
