"""The process that looks into an upload: its budgets, its end, and that nothing of a costly upload is left."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import threading
import time
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pretrace.web import inspection
from pretrace.web.settings import Limits
from pretrace.web.uploads import facts_of, sweep, take, uploads
from pretrace.web.workspace import RequestError, Workspace


@pytest.fixture
def workspace(tmp_path):
    return Workspace.at(tmp_path / "workspace")


def nothing_is_left(workspace):
    return not [*workspace.room("incoming").iterdir(), *workspace.room("texts").iterdir()]


def parquet(table):
    made = io.BytesIO()
    pq.write_table(table, made, compression="zstd")
    return made.getvalue()


def repeated(text, times):
    """A table of one text many times over, which takes next to nothing on the disk."""
    places = pa.array([0] * times, pa.int32())
    return parquet(pa.table({"text": pa.DictionaryArray.from_arrays(places, pa.array([text]))}))


def texts_and(name, column):
    return parquet(pa.table({"text": ["one two three", "four five six"], name: column}))


TWO = pa.Table.from_arrays([pa.array(["a b"]), pa.array(["x"]), pa.array(["y"])], names=["text", "n", "n"])
UNREADABLE = {
    "dates out of range": texts_and("when", pa.array([2**62, -(2**62)], pa.timestamp("us"))),
    "an unknown time zone": texts_and("when", pa.array([1, 2], pa.timestamp("us", "Mars/Olympus"))),
    "two columns of one name": parquet(TWO),
    "damaged": b"PAR1damaged",
}


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("what", UNREADABLE)
def test_an_upload_that_cannot_be_read_is_said_and_the_list_stays_whole(visitor, what):
    answer = visitor.post("/collections", file=("odd.parquet", UNREADABLE[what]))
    assert answer.status_code == 422
    assert visitor.said(answer).startswith("odd.parquet")
    assert not uploads(visitor.workspace)
    assert not list(visitor.workspace.room("incoming").iterdir())
    page = visitor.client.get("/collections")
    assert (page.status_code, "Nothing yet." in page.text) == (200, True)


@pytest.mark.usefixtures("at_once")
def test_an_upload_that_an_earlier_version_kept_although_it_cannot_be_read_does_not_break_the_list(visitor):
    page = visitor.upload("a.jsonl", '{"text": "one two three"}\n')
    (place,) = visitor.workspace.room("texts").iterdir()
    (place / "facts.json").unlink()
    (place / "a.jsonl").write_bytes(b"{no json")
    assert "not readable" in visitor.client.get("/collections").text
    assert "is not JSON" in visitor.client.get(page).text
    (place / "facts.json").unlink()
    (place / "a.jsonl").unlink()
    assert "not there any more" in visitor.client.get(page).text


@pytest.mark.usefixtures("at_once")
def test_no_test_is_started_with_what_could_not_be_read(visitor):
    page = visitor.upload("a.csv", "body,n\none two three,1\n")
    good = visitor.upload("b.jsonl", '{"text": "one two three"}\n').rpartition("/")[2]
    name = page.rpartition("/")[2]
    for path, data in (
        (f"{page}/test/score", {"model": "m", "text-column": "body"}),
        (f"/collections/{good}/test/score", {"model": "m", "reference": name}),
        ("/text", {"model": "m", "text": "a", "known": name}),
    ):
        answer = visitor.post(path, data)
        assert (answer.status_code, "a.csv cannot be used" in visitor.said(answer)) == (422, True), path
    assert not list(visitor.workspace.room("jobs").iterdir())
    assert not list(visitor.workspace.room("looks").iterdir())


def nested(folders, files):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for number in range(files):
            archive.writestr("/".join(f"{number}x{i}" for i in range(folders)) + "/a.txt", "a text")
    return made.getvalue()


COSTLY = {
    "half a million texts": ("a.txt.gz", gzip.compress(b"a\n" * 500_000), {}, "more than 200,000 texts"),
    "gigabytes in a few cells": (
        *("a.parquet", repeated("ab " * 3_500_000, 2_000), {}),
        "needs more memory than the 1,500 MB",
    ),
    "more time than there is": (
        *("a.txt.gz", gzip.compress(b"a b c d e f\n" * 199_000), {"look_seconds": 1}),
        "takes longer than 1 s to look into",
    ),
}


UPLOAD = """
import io, json, resource, sys
from pathlib import Path
from pretrace.web.settings import Limits
from pretrace.web.uploads import take
from pretrace.web.workspace import RequestError, Workspace

_, folder, name, how = sys.argv
try:
    take(Workspace.at(Path(folder)), name, io.BytesIO(sys.stdin.buffer.read()), Limits(**json.loads(how)))
except RequestError as error:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps([error.status, str(error), used.ru_utime + used.ru_stime, used.ru_maxrss]))
"""
"""An upload in a process of its own: what its children used is that of this upload alone, and a child also counts the
memory of the process that it was forked from."""


@pytest.mark.parametrize("what", COSTLY)
def test_a_small_upload_that_costs_much_is_ended_within_its_budget(workspace, what):
    name, content, how, said = COSTLY[what]
    assert len(content) < 12_000
    asked = [sys.executable, "-c", UPLOAD, str(workspace.folder), name, json.dumps(how)]
    answer = subprocess.run(asked, input=content, capture_output=True, check=False, timeout=300)
    status, words, seconds, kilobytes = json.loads(answer.stdout)
    assert (status, said in words) == (413, True), words
    assert seconds < 15
    assert kilobytes * 1024 < 1_600_000_000
    assert nothing_is_left(workspace)


NAMES = ",".join(["text", *(f"c{i}" for i in range(1000))]).encode()
TOO_MANY = {
    "folders within folders": (
        "a.zip",
        nested(900, 30),
        {},
        "lies in 900 folders inside each other, and 10 is the",
    ),
    "characters": (
        "a.txt",
        b"ab cd " * 400,
        {"expanded": 1000},
        "more than 200,000 texts, or 1,000 characters",
    ),
    "columns": ("a.csv", NAMES + b"\n" + b"," * 1000, {}, "1,001 columns"),
    "letters in names": (
        "a.csv",
        b"text," + b"x" * 200_000 + b"\na,b\n",
        {},
        "100,000 characters are the most",
    ),
}


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("what", TOO_MANY)
def test_an_upload_of_too_many_things_is_refused(workspace, what):
    name, content, how, said = TOO_MANY[what]
    with pytest.raises(RequestError, match=said):
        take(workspace, name, io.BytesIO(content), Limits(**how))
    assert nothing_is_left(workspace)


def test_what_is_seen_is_the_same_from_the_process_and_the_name_of_no_folder_is_told(workspace, monkeypatch):
    rows = "".join(
        json.dumps({"text": f"Text {i} of the year", "date": "2020-01-02"}) + "\n" for i in range(9)
    )
    for name in ("PRETRACE_API_KEY", "OPENAI_API_KEY", "PRETRACE_TOKEN"):
        monkeypatch.setenv(name, "sk-secret-of-the-owner")
    seen = {}
    run = subprocess.run
    monkeypatch.setattr("subprocess.run", lambda *what, **how: seen.update(how) or run(*what, **how))
    made = take(workspace, "a.jsonl", io.BytesIO(rows.encode()))
    facts = facts_of(workspace, made)
    assert (facts.texts, facts.columns, facts.problem, facts.languages_of) == (9, ("text", "date"), "", 9)
    assert str(workspace.folder) not in (workspace.room("texts") / made.id / "facts.json").read_text()
    assert "sk-secret-of-the-owner" not in seen["env"].values()


def test_a_process_that_is_killed_takes_the_upload_with_it(workspace, monkeypatch):
    """As the kernel kills it where the machine has no memory left."""
    monkeypatch.setattr(inspection, "sys", type("Sys", (), {"executable": "/bin/false"}))
    with pytest.raises(RequestError, match="needs more memory"):
        take(workspace, "a.txt", io.BytesIO(b"a text\n"))
    assert not list(workspace.room("incoming").iterdir())


def test_so_many_are_looked_into_at_once_and_others_hear_it_soon(workspace, monkeypatch):
    entered, go_on = threading.Event(), threading.Event()

    def slow(request, name, limits):
        entered.set()
        go_on.wait(240)
        return {"refused": "later", "status": 400}

    monkeypatch.setattr(inspection, "_answer", slow)
    limits = Limits(looks=1, look_wait=0.05)

    def one():
        with pytest.raises(RequestError, match="later"):
            take(workspace, "a.txt", io.BytesIO(b"a text\n"), limits)

    thread = threading.Thread(target=one)
    thread.start()
    assert entered.wait(240)
    began = time.monotonic()
    with pytest.raises(RequestError, match="try again in a minute") as met:
        take(workspace, "b.txt", io.BytesIO(b"a text\n"), limits)
    assert (met.value.status, time.monotonic() - began < Limits().look_wait) == (503, True)
    go_on.set()
    thread.join()
    with pytest.raises(RequestError, match="later"):  # the turn came back
        take(workspace, "c.txt", io.BytesIO(b"a text\n"), limits)


def test_what_a_killed_server_had_half_taken_in_is_swept_away(visit):
    workspace = visit().workspace
    half = workspace.room("incoming") / "20260101-000000-a-123456"
    half.mkdir()
    (half / "a.txt").write_text("half")
    sweep(workspace)
    assert not half.exists()
    half.mkdir()
    visit()  # and a server that begins does so
    assert not half.exists()


@pytest.mark.usefixtures("at_once")
def test_a_full_workspace_takes_nothing_in_and_starts_nothing(visit):
    visitor = visit(most_kept=1)
    page = visitor.upload("a.jsonl", '{"text": "one two three"}\n')
    (visitor.workspace.room("results") / "large").write_bytes(os.urandom(1_000_000))
    for path, more in (
        ("/collections", {"file": ("b.txt", b"a text\n")}),
        ("/text", {"data": {"model": "m", "text": "a"}}),
        (f"{page}/test/score", {"data": {"model": "m"}}),
    ):
        answer = visitor.post(path, **more)
        assert (answer.status_code, "larger --max-workspace" in visitor.said(answer)) == (507, True), path
    assert len(uploads(visitor.workspace)) == 1
    assert not [*visitor.workspace.room("jobs").iterdir(), *visitor.workspace.room("looks").iterdir()]


@pytest.mark.usefixtures("at_once")
def test_a_workspace_keeps_so_many_uploads_and_texts(visit):
    visitor = visit(limits=Limits(kept=1))
    visitor.upload("a.txt", "a text\n")
    answer = visitor.post("/collections", file=("b.txt", b"a text\n"))
    assert (answer.status_code, "The folder texts of the workspace holds 1" in visitor.said(answer)) == (
        507,
        True,
    )
    (visitor.workspace.room("looks") / "one").mkdir()
    answer = visitor.post("/text", {"model": "m", "text": "a"})
    assert (answer.status_code, "The folder looks" in visitor.said(answer)) == (507, True)
