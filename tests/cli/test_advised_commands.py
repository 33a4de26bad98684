"""Every command that the list of tests prints is run: none fails for what the list knew or should have known."""

import json
import shlex
import uuid
from dataclasses import replace

import numpy as np
import pytest

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
    path = tmp_path / "my texts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def advised(path, model, columns, **told):
    """The tests for a file, with what the one who asks has besides."""
    seen = look(str(path), columns)
    return advise(replace(seen.situation, **told), str(path), model=model, names=seen.names).rows


def other(path, name, change):
    """The same rows with another wording."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    made = path.with_name(name)
    made.write_text("".join(json.dumps({**row, "body": f"{change} {row['body']}"}) + "\n" for row in rows))
    return made


def renamed(path, name, change=""):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    made = path.with_name(name)
    made.write_text(
        "".join(
            json.dumps({"id": row["key"], "text": f"{change}{row['body']}", "site": row["site"]}) + "\n"
            for row in rows
        )
    )
    return made


def test_every_printed_command_runs(call, texts, tmp_path, model_folder, reference_folder, monkeypatch):
    monkeypatch.chdir(tmp_path)
    other(texts, "CONTROLS.jsonl", "Later.")
    renamed(texts, "UNPUBLISHED.jsonl")
    renamed(texts, "OTHER_WORDING.jsonl", "Now: ")
    have = {"unseen": 40, "unpublished": 40, "checkpoint": True}
    tests = advised(texts, str(model_folder), Columns(text="body", id="key"), **have)
    tests = [one for one in tests if one.state == "applies"]
    assert {one.choice.name for one in tests} >= {"marks", "triggers", "canaries", "order", "flag"}
    hashes: dict[str, str] = {}
    for test in tests:
        place = tmp_path / test.choice.name
        for command in test.commands:
            words = shlex.split(command)[1:]
            words = [str(reference_folder) if word == "EARLIER" else word for word in words]
            words = [hashes.get(word, word) for word in words]
            words = [
                str(place / word) if word in ("MARKED", "SEALED", "PROMPTS.jsonl") else word for word in words
            ]
            # What is long is asked for its plan: the same arguments, the same texts, and no model that is trained.
            words += {"audit": ["--plan", "--tokens", "8"], "flag": ["--dry-run"]}.get(words[0], [])
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
                rows = [json.loads(line) for line in prompts.read_text().splitlines()]
                answers = "".join(json.dumps({"id": row["id"], "answer": "cat"}) + "\n" for row in rows)
                (tmp_path / "ANSWERS.jsonl").write_text(answers)
    published = [
        json.loads(line)
        for line in (tmp_path / "marks" / "MARKED" / "published.jsonl").read_text().splitlines()
    ]
    assert {row["id"]: row["site"] for row in published} == {f"t{i}": f"s{i % 22}" for i in range(ROWS)}


def test_recitation_is_advised_where_texts_are_long_enough(texts, tmp_path):
    def state(path, **columns):
        row = next(
            one for one in advised(path, "m", Columns(**columns), unseen=40) if one.choice.name == "recite"
        )
        return row.state, row.missing

    short = ("could", "5 documents in question with 400 bytes that stand nowhere else")
    assert state(texts, text="body", id="key") == short

    random = np.random.default_rng(1)
    words = ["".join(random.choice(list("abcdefghij"), 5)) for _ in range(500)]
    long = tmp_path / "long.jsonl"
    rows = [{"text": " ".join(random.choice(words, 200))} for _ in range(6)]
    long.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert state(long) == ("applies", "")

    rows[3:] = [{"text": "short"}] * 3
    long.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert state(long) == ("could", f"2 more{short[1][1:]}")
