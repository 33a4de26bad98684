"""From a word on the command line to a corpus."""

import gzip
import io
import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from pretrace.corpora import Columns, corpus_of, open_corpus, open_stream
from pretrace.errors import TextsError


@pytest.fixture
def feed(monkeypatch):
    def feeding(raw):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))

    return feeding


class TestStandardInput:
    def test_json_lines(self, feed):
        feed(b'\xef\xbb\xbf\n \n{"text": "a", "label": 1}\n{"text": "b"}\n')
        corpus = open_corpus("-")
        assert [(t.text, t.member) for t in corpus.texts] == [("a", True), ("b", None)]
        assert corpus.name == "standard input"
        assert not sys.stdin.buffer.closed

    @pytest.mark.parametrize(
        "raw", [b"\n\nplain {\nb\n", b'"a string"\n3\n', b"[1]\n[2]", b"{broken\n}", b'\n1\n{"text": "a"}\n']
    )
    def test_a_text_a_line(self, feed, raw):
        feed(raw)
        assert [t.text for t in open_corpus("-").texts] == raw.decode().strip().split("\n")

    @pytest.mark.parametrize(
        ("raw", "said"), [(b'\n{"text": "a"}\nplain\n', "standard input, line 3"), (b" \n", "holds no texts")]
    )
    def test_what_is_refused(self, feed, raw, said):
        feed(raw)
        with pytest.raises(TextsError, match=said):
            open_corpus("-")


class TestPaths:
    def test_file_with_columns(self, tmp_path):
        path = tmp_path / "some.thing.csv.gz"
        path.write_bytes(gzip.compress(b"body\nhello\n"))
        corpus = open_corpus(str(path), Columns(text="body"))
        assert (corpus.name, corpus.source, corpus.texts[0].text) == ("some.thing", str(path), "hello")

    def test_a_path_comes_before_a_corpus(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "stdlib").mkdir()
        (tmp_path / "stdlib" / "a.txt").write_text("mine")
        assert open_corpus("stdlib").texts[0].text == "mine"
        assert len(open_corpus("stdlib()")) > 100

    @pytest.mark.parametrize(
        "source", ["", " ", "nowhere.jsonl", "a/b", "a\0b", "x" * 5000, "nothing(3", "__import__('os')"]
    )
    def test_no_such_source(self, source):
        with pytest.raises(TextsError, match="there is no file, folder or corpus") as caught:
            open_corpus(source)
        assert "stdlib" in str(caught.value)
        assert len(str(caught.value)) < 600


class TestBuilt:
    def test_the_expression_is_the_name(self):
        corpus = open_corpus(" stdlib(min_chars=3000) ")
        assert corpus.name == "stdlib(min_chars=3000)"
        assert min(len(text.text) for text in corpus.texts) >= 3000


class TestGiven:
    def test_strings(self):
        corpus = open_corpus(["a", "", "b\ud800", "café".encode()])
        assert [(t.id, t.text) for t in corpus.texts] == list(
            zip("0123", ("a", "", "b\ufffd", "café"), strict=True)
        )
        assert (corpus.name, corpus.source) == ("texts given", "texts given")
        assert [note.split(";")[0] for note in corpus.notes] == ["1 text held half a surrogate pair"]

    def test_rows_are_read_as_those_of_a_file_are(self, tmp_path):
        rows = [
            {"body": "a", "label": "member", "id": 3.0, "group": "g", "more": [1]},
            {"body": "b\ud800", "label": 0},
            {"body": "c", "label": None, "id": ""},
        ]
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        columns = Columns(text="body")
        given, read = open_corpus(iter(rows), columns), open_corpus(str(path), columns)
        assert given.texts == read.texts
        assert given.notes == read.notes
        assert len(given.notes) == 2

    def test_cells_of_numpy(self):
        labels = np.array([1, 0])
        rows = [{"text": t, "label": label} for t, label in zip(np.array(["a", "b"]), labels, strict=True)]
        assert [(t.text, t.member) for t in open_corpus(rows).texts] == [("a", True), ("b", False)]

    @pytest.mark.parametrize("kind", ["pandas", "pyarrow", "datasets", "polars"])
    def test_a_table_is_its_rows_and_a_column_its_texts(self, kind):
        package = pytest.importorskip(kind)
        rows = {"text": ["a", "b"], "label": [1, None], "group": ["x", "y"]}
        table = {
            "pandas": lambda: package.DataFrame(rows),
            "pyarrow": lambda: package.table(rows),
            "datasets": lambda: package.Dataset.from_dict(rows),
            "polars": lambda: package.DataFrame(rows),
        }[kind]()
        found = open_corpus(table)
        assert [(t.text, t.member, t.group) for t in found.texts] == [("a", True, "x"), ("b", None, "y")]
        column = table["text"].to_pylist() if kind == "pyarrow" else table["text"]
        assert [t.text for t in corpus_of(column, "mine").texts] == ["a", "b"]
        assert corpus_of(column, "mine").name == "mine"
        assert corpus_of(found, "mine") is found

    @pytest.mark.parametrize(
        ("name", "content", "read", "told"),
        [
            ("same.csv", "body,key\nA,k\n", [("A", "k")], False),
            ("other.csv", "text,id\nA,i\n", [("A", "i")], True),
            ("other.jsonl", '{"input": "A", "id": "i", "label": 0}\n', [("A", "i")], True),
            ("lines.txt", "A\nB\n", [("A", "0"), ("B", "1")], True),
        ],
    )
    def test_names_for_another_source_give_way(self, tmp_path, name, content, read, told):
        """Control documents need not call their columns as the texts in question do; a label that is left out stays
        so, and what must be there must be there."""
        (tmp_path / name).write_text(content)
        columns = Columns(text="body", id="key", label="").of_another
        found = open_corpus(tmp_path / name, columns)
        assert [(text.text, text.id) for text in found.texts] == read
        assert all(text.member is None for text in found.texts)
        assert [note for note in found.notes if "has no column 'body'" in note] == list(found.notes) * told
        assert open_stream(tmp_path / name, columns).whole(len(found)) == found
        with pytest.raises(TextsError, match="has no column 'published'"):
            open_corpus(tmp_path / name, replace(columns, more=("published",)))

    def test_a_folder_beside_a_table_has_no_columns_to_name(self, tmp_path):
        (tmp_path / "one.txt").write_text("A")
        found = open_corpus(tmp_path, Columns(text="body", group="book").of_another)
        assert [(text.text, text.document) for text in found.texts] == [("A", "one.txt")]
        assert not found.notes
        assert len(open_corpus("stdlib", Columns(text="body").of_another)) > 0
