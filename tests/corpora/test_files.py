"""What files of each format say, and what is wrong with the ones that cannot be read."""

import csv
import gzip
import io
import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from net.api import (
    FORMATS,
    USUAL,
    Columns,
    ExpressionError,
    Reading,
    TextsError,
    open_corpus,
    open_stream,
)

NAN, INF = math.nan, math.inf


@pytest.fixture
def write(tmp_path):
    """Writes a file: bytes and strings as they are, columns as parquet, rows as JSON lines; packed where it says so."""

    def writing(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            pq.write_table(pa.table(content), path)
            return path
        if isinstance(content, list):
            content = "".join(json.dumps(row) + "\n" for row in content)
        raw = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return path

    return writing


def refusal(path, columns=USUAL):
    with pytest.raises(TextsError) as caught:
        open_corpus(path, columns)
    message = str(caught.value)
    assert "\n" not in message
    return message


def texts_of(path, columns=USUAL):
    return [text.text for text in open_corpus(path, columns).texts]


BODY = Columns(text="body", label="member", id="doc", group="author")
LABELS = [("0", "a", True, ""), ("1", "b", None, ""), ("2", "c", False, "")]
ROW = {"id": 7, "text": "one", "label": 1, "group": "book", "year": 3}


@pytest.mark.parametrize(
    ("name", "content", "columns", "found"),
    [
        ("a.jsonl", [ROW], USUAL, [("7", "one", True, "book")]),
        ("a.jsonl", [{"input": "one"}], USUAL, [("0", "one", None, "")]),
        ("a.csv", "input,text\nno,yes\n", USUAL, [("0", "yes", None, "")]),
        ("a.csv", "body,member,doc,author\nhello,nonmember,d1,ann\n", BODY, [("d1", "hello", False, "ann")]),
        ("a.csv", "text,label\na,1\nb,\nc,0\n", USUAL, LABELS),
        ("a.csv", "text,label\nnice,positive\n", Columns(label=""), [("0", "nice", None, "")]),
        # JSON lines may bring a named label late
        ("a.jsonl", [{"text": "a"}, {"text": "b", "seen": True}], Columns(label="seen"),
         [("0", "a", None, ""), ("1", "b", True, "")]),
        ("a.parquet", {"text": list("abc"), "label": [1.0, NAN, 0.0]}, USUAL, LABELS),
        ("a.parquet", {"text": ["a"], "label": pa.array([None], "float64")}, USUAL, [("0", "a", None, "")]),
        ("a.parquet", {"text": pa.array([b"a"]), "group": pa.array(["g"]).dictionary_encode()}, USUAL,
         [("0", "a", None, "g")]),
        # empty texts stay
        ("a.jsonl", [{"text": ""}], USUAL, [("0", "", None, "")]),
        ("a.csv", 'text\n""\n"  "\n', USUAL, [("0", "", None, ""), ("1", "  ", None, "")]),
        ("a.parquet", {"text": [""]}, USUAL, [("0", "", None, "")]),
        # control characters, byte order marks, line ends, quotes
        ("a.jsonl", '{"text": "a\x00\tb"}\n', USUAL, [("0", "a\x00\tb", None, "")]),
        ("a.jsonl", '\ufeff{"text": "a"}\r\n', USUAL, [("0", "a", None, "")]),
        ("a.csv", "\ufefftext,label\r\na,1\r\n", USUAL, [("0", "a", True, "")]),
        ("a.json", '\ufeff [{"text": "a"}]', USUAL, [("0", "a", None, "")]),
        ("a.tsv", '\ufeff"text"\tlabel\r\na\t1\r\n', USUAL, [("0", "a", True, "")]),
        ("a.csv", 'text,label\n"one ""two""\nthree, four",1\n', USUAL, [("0", 'one "two"\nthree, four', True, "")]),
        # a list and lines by the same ending
        ("a.json", json.dumps([{"text": "a"}, {"text": "b"}], indent=1), USUAL,
         [("0", "a", None, ""), ("1", "b", None, "")]),
        ("b.json", [{"text": "a"}, {"text": "b"}], USUAL, [("0", "a", None, ""), ("1", "b", None, "")]),
    ],
)  # fmt: skip
def test_what_a_file_says(write, name, content, columns, found):
    corpus = open_corpus(write(name, content), columns)
    assert [(one.id, one.text, one.member, one.group) for one in corpus.texts] == found
    assert (corpus.name, corpus.notes) == (name[0], ())


@pytest.mark.parametrize(
    ("name", "content", "note", "found"),
    [
        ("a.parquet", {"text": list("abc"), "id": [10.0, None, 12.0]}, "1 row without an id took the row number.",
         [("10", "a"), ("1", "b"), ("12", "c")]),
        ("a.txt", "\ufeffone\r\n\r\n  \ntwo\x0b2\u2028.\x00\rx\nthree", "2 blank lines skipped.",
         [("0", "one"), ("1", "two\x0b2\u2028.\x00\rx"), ("2", "three")]),
        ("a.jsonl", '{"text": "a\\ud800b", "id": "\\udfff"}\n{"text": "\\ud83d\\ude00"}\n',
         "1 text held half a surrogate pair; it was replaced by U+FFFD.", [("\ufffd", "a\ufffdb"), ("1", "😀")]),
    ],
)  # fmt: skip
def test_what_was_put_right_is_noted(write, name, content, note, found):
    corpus = open_corpus(write(name, content))
    assert [(one.id, one.text) for one in corpus.texts] == found
    assert corpus.notes[0] == note


IDS = [{"id": name, "text": "a"} for name in "aaabbccddx"]
WITHOUT = "row 1 (line 2) has no text"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "title,body\na,b\n", ["'text' or 'input'", "'title', 'body'"]),
        ("a.csv", "text,label\nnice,positive\n", ["'positive'"]),
        ("a.csv", "text,text\na,b\n", ["more than one column 'text'"]),
        ("a.jsonl", IDS, ["found 'a', 'b', 'c', 'd' more than once"]),
        *(
            ("a.jsonl", [{"text": "a"}, {"text": value}], [WITHOUT])
            for value in (None, 3, 1.5, True, ["a"], {"a": "b"})
        ),
        ("a.jsonl", '{"text": "a"}\n\n{"txt": "b"}\n', ["row 1 (line 3) has no text"]),
        ("a.parquet", {"text": ["a", None]}, ["row 1 has no text"]),
        ("a.parquet", {"text": [1, 2]}, ["row 0 has no text"]),
        *(
            ("a.jsonl", [{"text": "a"}, {"text": "b", "label": value}], ["row 1 (line 2)", repr(value)])
            for value in (2, -1, 0.5, "yes", "positive", [1], {"a": 1}, INF)
        ),
        ("a.txt", "zwei Männer, ein Café".encode()[:-1], ["was cut off"]),  # within a character
        ("a.csv", 'text,label\n"a\nb\nc",1\nd,maybe\n', ["row 1 (line 5)"]),  # the line of the file
        ("a.csv", 'text\na\n"b\nc\nd\n', ["line 3"]),  # an open quote swallows nothing
        *(("a.csv", f"text,label\nb,0\n{row}\n", ["line 3", "names 2"]) for row in ("a", "a,1,2")),
        ("a.json", '[{"text": "a"}, "b"]', ["row 1 is a string"]),
        ("a.json", '[{"text": "a"},]', ["a.json is not JSON", "at column 1"]),
        ("a.json", '[{"text": "a"}, {"te', ["a.json is not JSON that can be read (Unterminated string"]),
        *((name, raw, ["holds no texts"]) for name, raw in (("a.txt", "\n \n"), ("a.csv", "text\n"), ("a.json", "[]"))),
        *((f"a.{ending}", b"", ["a."]) for ending in ("txt", "jsonl", "csv", "tsv", "json", "parquet", "txt.gz")),
        *(
            ("a.jsonl", '{"text": "a"}\n' + raw + "\n", ["a.jsonl, line 2"])
            for raw in ('{"text": "b"', "[1]", '"b"', "{'text': 'b'}", "[" * 100_000)
        ),
    ],
)  # fmt: skip
def test_what_is_refused(write, name, content, words):
    message = refusal(write(name, content))
    assert all(one in message for one in words)
    assert "'x'" not in message


def test_labels(write):
    members = (1, 1.0, True, "1", "1.0", "True", " member ")
    others = (0, 0.0, False, "0", "false", "Non-Member", "nonmember")
    unknown = ("", " ", "NaN", None, NAN)
    rows = [{"text": "a", "label": value} for value in (*members, *others, *unknown)]
    found = [text.member for text in open_corpus(write("a.jsonl", rows)).texts]
    assert found == [True] * len(members) + [False] * len(others) + [None] * len(unknown)


SAID = "Die Wärterin zählte die Schiffe, und in Köln grüßte man sie."


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", SAID), ("a.md", SAID), ("a.jsonl", f'{{"text": "a"}}\n{{"text": "{SAID}"}}\n'),
        ("a.jsonl.gz", f'{{"text": "a"}}\n{{"text": "{SAID}"}}\n'), ("a.json", f'[{{"text": "{SAID}"}}]'),
        ("a.csv", f'text\n"{SAID}"\n'), ("a.tsv", f"text\n{SAID}\n"),
        ("a.parquet", {"text": pa.array([SAID.encode("cp1252")]).cast(pa.string(), safe=False)}),
    ],
)  # fmt: skip
def test_invalid_bytes_are_refused_and_their_encoding_is_named(write, name, content):
    path = write(name, content.encode("cp1252") if isinstance(content, str) else content)
    message = refusal(path)
    assert "is not UTF-8: convert it, or name its encoding" in message
    if name != "a.parquet":
        assert "--reading encoding=NAME (cp1252" in message
        assert SAID in texts_of(path, Columns(encoding="cp1252"))
    if "jsonl" in name:  # a record at a time
        told = []
        assert [text.text for text in open_stream(path, skip_unreadable=True).texts(told.append)] == ["a"]
        assert "line 2" in told[0].reason


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("gb18030", "灯塔看守人按钟声数船，把每个号码在账本上写两次。"),
        ("utf-16-le", SAID),
        ("utf-16-be", SAID),
    ],
)
def test_another_encoding_is_named(write, encoding, said):
    path = write("a.txt", f"{said}\n".encode(encoding))
    assert f"--reading encoding={encoding if 'utf' in encoding else 'NAME'}" in refusal(path)
    assert texts_of(path, Columns(encoding=encoding)) == [said]


def test_an_encoding_that_is_not_known_or_wrong(write):
    with pytest.raises(ExpressionError, match="--reading encoding: 'klingon' is not known"):
        Columns(encoding="klingon")
    assert "is not ascii" in refusal(write("a.txt", "é"), Columns(encoding="ascii"))
    assert texts_of(write("a.txt", "écrit"), Columns(encoding="utf-8-sig")) == ["écrit"]  # without a mark


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.json", "a.csv", "a.md", "a.html", "a.jsonl.gz"])
def test_a_byte_order_mark_tells_the_encoding(write, name, encoding):
    mark = "\ufeff" if encoding == "utf-16-le" else ""
    raws = {"jsonl": '{"text": "é😀"}\n', "json": '[{"text": "é😀"}]', "csv": "text\né😀\n"}
    assert texts_of(write(name, (mark + raws.get(name.split(".")[1], "é😀")).encode(encoding))) == ["é😀"]


def test_two_stray_bytes_are_no_mark(write):
    """Read as UTF-16 these would be other characters, and no one would notice."""
    path = write("a.txt", b"\xff\xfeplain words.\n")
    assert "is not UTF-8" in refusal(path)
    assert texts_of(path, Columns(encoding="cp1252")) == ["\xff\xfeplain words."]


def test_fields_up_to_ten_megabytes(write):
    csv.field_size_limit(131_072)
    long = "x" * (9 * 1024 * 1024)
    assert texts_of(write("a.csv", f"text\n{long}\n")) == [long]
    assert "line 2" in refusal(write("b.csv", f"text\n{long}xxxxxxxxxx{long}\n"))


class Spy(io.FileIO):
    """A file that remembers how much was asked of it at once."""

    largest = 0

    def read(self, size=-1):
        data = super().read(size)
        self.largest = max(self.largest, len(data))
        return data


def test_parquet_reads_only_what_it_needs(tmp_path):
    texts = [f"{i} {math.sin(i)}" * 25 for i in range(20_000)]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": texts}), path, use_dictionary=False, compression="none")
    spy = Spy(path)
    reading = Reading(Columns(label="", id="", group=""), "a.parquet")
    assert [one.text for one in reading.stream(FORMATS[".parquet"](spy, reading, "a.parquet"))] == texts
    assert path.stat().st_size > 10_000_000 > 3_000_000 > spy.largest


def test_a_file_name_that_is_not_utf8(tmp_path):
    (tmp_path / "c").mkdir()
    try:
        (tmp_path / "c" / "caf\udce9.txt").write_text("a")
    except OSError:
        pytest.skip("this file system wants UTF-8 names")
    open_corpus(tmp_path / "c").texts[0].id.encode()


def test_streams_are_lazy_and_stop_at_nothing_but_the_text(write):
    path, alone = write("a.csv", "id,text,label\n1,a,what\n1,b,ever\n"), Columns(label="", id="", group="")
    assert [one.text for one in open_stream(path, alone).texts()] == ["a", "b"]
    stream = open_stream(write("a.jsonl", '{"text": "a"}\nbroken\n')).texts()
    assert next(stream).text == "a"
    with pytest.raises(TextsError, match="line 2"):
        next(stream)


@pytest.mark.parametrize(
    ("header", "sign", "text"),
    [
        ("id;text;label (1, 0, or none)", ";", "text"),
        ("id,text;long,label (1; 0; none)", ",", "text;long"),
        ("id\ttext\tmore", "\t", "text"),
        ('"body";"a, b, c"', ";", "body"),
    ],
)
def test_the_delimiter_is_the_one_that_parts_the_text_from_the_rest(write, header, sign, text):
    cells = sign.join("x" for _ in header.split(sign))
    assert texts_of(write("t.csv", f"{header}\n{cells}\n"), Columns(text=text)) == ["x"]
