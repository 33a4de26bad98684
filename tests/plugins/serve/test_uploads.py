"""What is taken in and what is refused, with the sentence that the visitor reads."""

import gzip
import io
import json
import os
import re
import stat
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpora.test_documents import word

from pretrace.corpora import open_corpus
from pretrace.plugins.serve import RequestError, Workspace
from pretrace.plugins.serve.command import ServeSettings
from pretrace.plugins.serve.jobs import Jobs
from pretrace.plugins.serve.uploads import Upload, take, texts_of

ROWS = [{"text": f"Text number {i} of the year", "date": f"20{10 + i}-05-01"} for i in range(6)]
LINES = "".join(json.dumps(row) + "\n" for row in [*ROWS, ROWS[0]]).encode()


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1\n"


@pytest.fixture
def workspace(tmp_path):
    return Workspace.at(tmp_path / "workspace")


def nothing_is_left(workspace):
    """Whether no upload, and no part of one, lies in a workspace."""
    return not any([*(workspace.folder / "texts").iterdir(), *(workspace.folder / "incoming").iterdir()])


def zipped(entries):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return made.getvalue()


def packed(table):
    made = io.BytesIO()
    pq.write_table(table, made, compression="zstd")
    return made.getvalue()


def taken(workspace, *files, **limits):
    """The upload of what a browser sends at once: names with contents."""
    sent = [(name, io.BytesIO(content)) for name, content in files]
    return take(workspace, sent, ServeSettings(**limits))


def test_a_folder_is_a_collection_of_a_text_a_file(workspace):
    drafts = {"one.txt": b"One\ntext.", "in/two.docx": word("Two"), "c.png": b"-"}
    made = taken(workspace, *((f"my drafts/{name}", content) for name, content in drafts.items()))
    assert (made.name, made.files, made.left_out, made.facts.texts) == ("my drafts", 2, 1, 2)
    assert {text.id for text in open_corpus(texts_of(workspace, made.id)).texts} == {"one.txt", "in/two.docx"}
    for names, texts in ((("a.md", "b.txt"), 2), (("a.jsonl", "b.jsonl"), 14)):
        loose = taken(workspace, *((name, LINES) for name in names))
        assert (loose.name, loose.files, loose.facts.texts) == (f"{names[0]} and 1 more", 2, texts)
    for name in ("x/a.txt", "x/A.txt"):
        with pytest.raises(RequestError, match="of the same name"):
            taken(workspace, ("x/a.txt", b"a"), (name, b"b"))
    assert not [*(workspace.folder / "incoming").iterdir()]


def test_the_text_of_a_document_is_looked_at(visitor, monkeypatch):
    monkeypatch.setattr(Jobs, "_start", lambda jobs, job: None)
    answer = visitor.post("/text", {"model": "m"}, ("mine.docx", word("Words of", "a letter.")))
    assert answer.status_code == 200, visitor.said(answer)
    (place,) = (visitor.workspace.folder / "looks").glob("*/text.jsonl")
    assert json.loads(place.read_text())["text"] == "Words of\na letter."
    refused = visitor.post("/text", {"model": "m"}, ("mine.docx", b"PK"))
    assert "mine.docx" in visitor.said(refused)
    assert not visitor.entries("incoming")


def test_what_is_seen_in_a_collection(workspace):
    facts = taken(workspace, ("a.jsonl", LINES)).facts
    assert (facts.duplicates, facts.columns) == (1, ("text", "date"))
    assert (facts.shortest, facts.longest) == (25, 25)


def texts_and(name, column):
    return packed(pa.table({"text": ["one two three", "four five six"], name: column}))


TWO = pa.Table.from_arrays([pa.array(["a b"]), pa.array(["x"]), pa.array(["y"])], names=["text", "n", "n"])
UNREADABLE = (  # dates out of range, an unknown time zone, two columns of one name, damaged
    texts_and("when", pa.array([2**62, -(2**62)], pa.timestamp("us"))),
    texts_and("when", pa.array([1, 2], pa.timestamp("us", "Mars/Olympus"))), packed(TWO), b"PAR1damaged",
)  # fmt: skip
LINK = zipfile.ZipInfo("a.txt")
LINK.external_attr = (stat.S_IFLNK | 0o777) << 16
MANY = bytes(1_500_000)
DEEP = [("/".join(f"{number}x{i}" for i in range(900)) + "/a.txt", "a text") for number in range(30)]
LONG = b"text," + b"x" * 200_000 + b"\na,b\n"
SMALL, FEW = {"expanded": 2_000_000}, {"most_entries": 3}
TWINS = ("A.TXT", "a.txt/b.txt", "a.txt")
OUTSIDE = ("../a.txt", "/etc/a.txt", "x/../../a.txt", "C:\\a.txt")


@pytest.mark.parametrize(
    ("name", "content", "limits", "said"),
    [
        ("a.doc", b"PK", {}, "a.doc is of no kind that can be read here: upload a table"),
        ("a.docx", b"PK", {}, "a.docx: the"),
        ("a.pdf", b"%PDF-1.4 and no more", {}, "the .pdf file is damaged"),
        ("noending", b"x", {}, "noending is of no kind"),
        ("a.txt", b"", {}, "a.txt is empty: choose a file that holds texts"),
        ("a.txt", b"ab\0cd", {}, "a.txt holds no plain text, whatever its ending says"),
        ("a.parquet", b"text\n", {}, "a.parquet is not a whole parquet file"),
        ("a.jsonl.gz", b"plain", {}, "a.jsonl.gz, line 1 is not JSON"),
        ("a.txt", b"caf\xe9 au lait", {}, "a.txt, line 1, is not UTF-8: convert it"),
        ("a.txt", POINTER, {}, "is a Git LFS pointer"),
        ("a.jsonl.gz", gzip.compress(LINES * 99)[:-20], {}, "a.jsonl.gz cannot be read (EOFError"),
        ("a.zip", b"PKnot", {}, "a.zip cannot be read (BadZipFile"),
        ("a.zip", zipped([]), {}, "a.zip holds no texts: put files that end in .txt"),
        ("a.zip", zipped([("a.exe", "x"), ("b.bin", "x")]), {}, "a.zip holds no texts"),
        ("a.zip", zipped([("a.pdf", "x")]), {}, "the .pdf file is damaged"),
        *(("a.zip", zipped([(name, "x")]), {}, "names a place outside of it") for name in OUTSIDE),
        *(("a.zip", zipped([("a.txt", "x"), (name, "y")]), {}, "of the same name") for name in TWINS),
        ("a.zip", zipped([(LINK, "/etc/passwd")]), {}, "is a link and no file"),
        # too much
        ("a.zip", zipped([("a.txt", MANY), ("b.txt", MANY)]), SMALL, "unpacks to more than 2 MB"),
        ("a.txt.gz", gzip.compress(2 * MANY), SMALL, "unpacks to more than 2 MB"),
        ("a.zip", zipped([(f"{i}.txt", "x") for i in range(4)]), FEW, "4 files and folders, and 3 is the most"),
        ("a.zip", zipped([(f"{i}/a.txt", "x") for i in range(4)]), FEW, "8 files and folders, and 3 is the most"),
        ("a.zip", zipped(DEEP), {}, "lies in 900 folders inside each other, and 10 is the"),
        ("a.txt", b"ab cd " * 400, {"expanded": 1000}, "more than 200,000 texts, or 1,000 characters"),
        ("a.csv", LONG, {}, "more than 100,000 characters"),
        *(("odd.parquet", content, {}, "odd.parquet") for content in UNREADABLE),
    ],
)  # fmt: skip
def test_what_is_not_what_it_says_or_too_much_is_refused_and_nothing_kept(
    workspace, name, content, limits, said
):
    assert len(content) < 1_000_000
    with pytest.raises(RequestError, match=re.escape(said)):
        taken(workspace, (name, content), **limits)
    assert nothing_is_left(workspace)
    assert not list(workspace.folder.parent.glob("*.txt"))


def test_a_name_cannot_lead_elsewhere(workspace):
    for name in ("../../evil.txt", "..\\..\\evil.txt", "/etc/evil.txt", "x/../../evil.txt"):
        with pytest.raises(RequestError, match="names a place outside"):
            taken(workspace, (name, b"a text\n"))
    made = taken(workspace, ("<script>x<script>.txt", b"a text\n"))
    assert workspace.within(made.path).is_relative_to(workspace.folder / "texts")
    assert not list(workspace.folder.parent.glob("evil*"))


def test_a_table_without_a_text_column_is_kept_and_the_column_chosen(visitor):
    page = visitor.upload("a.csv", "body,n\none two three,1\nfour five,2\n")
    before = visitor.client.get(page)
    said = visitor.said(before)
    assert ("has no column" in said, "/workspace/" in said) == (True, False)
    assert '<option value="body">' in before.text
    visitor.post(f"{page}/column", {"text_column": "body"})
    shown = visitor.client.get(page).text
    assert ("has no column" in shown, "Tests that apply" in shown) == (False, True)


def test_hostile_names_and_cells_are_shown_as_text(visitor):
    nasty = "<script>alert(1)</script></textarea>\"'><img src=x onerror=alert(1)>"
    line = json.dumps({"text": nasty, nasty: "2020-01-01"})
    page = visitor.upload(f"{nasty.replace('/', '')}.jsonl", f"{line}\n")
    for path in ("/collections", page, "/text", "/"):
        shown = visitor.client.get(path).text
        assert not [one for one in ("<script>alert", "<img") if one in shown]
    assert "&lt;script&gt;alert(1)" in visitor.client.get(page).text


def test_no_test_is_started_with_what_could_not_be_read(visit):
    visitor = visit(corpus=("m",))
    page = visitor.upload("a.csv", "body,n\none two three,1\n")
    good = visitor.upload("b.jsonl", '{"text": "one two three"}\n').rpartition("/")[2]
    name = page.rpartition("/")[2]
    for path, data in (
        (f"{page}/search", {"corpus": "m"}),
        (f"/collections/{good}/search", {"corpus": "m", "controls": name}),
        ("/text", {"model": "m", "text": "a", "known": name}),
    ):
        answer = visitor.post(path, data)
        assert (answer.status_code, "a.csv cannot be used" in visitor.said(answer)) == (422, True), path
    assert not visitor.entries("jobs", "looks")


def test_what_a_killed_server_had_half_taken_in_is_swept_away(visit):
    half = visit().workspace.folder / "incoming" / "20260101-000000-a-123456"
    half.mkdir()
    (half / "a.txt").write_text("half")
    visit()  # a server that begins
    assert not half.exists()


def test_a_full_workspace_takes_nothing_in_and_starts_nothing(visit):
    visitor = visit(most_kept=1, corpus=("m",))
    page = visitor.upload("a.jsonl", '{"text": "one two three"}\n')
    (visitor.workspace.folder / "results" / "large").write_bytes(os.urandom(1_000_000))
    for path, more in (
        ("/collections", {"file": ("b.txt", b"a text\n")}),
        ("/text", {"data": {"model": "m", "text": "a"}}),
        (f"{page}/search", {"data": {"corpus": "m"}}),
    ):
        answer = visitor.post(path, **more)
        assert (answer.status_code, "larger --limits workspace" in visitor.said(answer)) == (507, True), path
    assert len(visitor.workspace.records(Upload)) == 1
    assert not visitor.entries("jobs", "looks")


def test_a_workspace_keeps_so_many_uploads_and_texts(visit):
    visitor = visit(most_records=1)
    visitor.upload("a.txt", "a text\n")
    answer = visitor.post("/collections", file=("b.txt", b"a text\n"))
    assert "The folder texts of the workspace holds 1" in visitor.said(answer)
    assert answer.status_code == 507
    (visitor.workspace.folder / "looks" / "one").mkdir()
    answer = visitor.post("/text", {"model": "m", "text": "a"})
    assert (answer.status_code, "The folder looks" in visitor.said(answer)) == (507, True)
