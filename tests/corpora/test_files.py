"""What files of each format say, and what is wrong with the ones that cannot be read."""

import csv
import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from net.api import USUAL, Columns, ExpressionError, TextsError, open_corpus, open_stream, stream_texts

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path):
    def writing(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return path

    return writing


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def parquet(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


def refusal(path, columns=USUAL):
    with pytest.raises(TextsError) as caught:
        open_corpus(path, columns)
    message = str(caught.value)
    assert "\n" not in message
    return message


class TestColumns:
    def test_usual_names(self, write):
        path = write("a.jsonl", lines({"id": 7, "text": "one", "label": 1, "group": "book", "year": 3}))
        (text,) = open_corpus(path).texts
        assert (text.id, text.text, text.member, text.group) == ("7", "one", True, "book")

    def test_input_stands_in_for_text(self, write):
        assert open_corpus(write("a.jsonl", lines({"input": "one"}))).texts[0].text == "one"
        assert open_corpus(write("b.csv", "input,text\nno,yes\n")).texts[0].text == "yes"

    def test_rows_number_themselves(self, write):
        corpus = open_corpus(write("some.jsonl", lines({"text": "a"}, {"text": "b"})))
        assert [text.id for text in corpus.texts] == ["0", "1"]
        assert (corpus.name, corpus.notes) == ("some", ())

    def test_named_columns(self, write):
        path = write("a.csv", "body,member,doc,author\nhello,yes,d1,ann\n".replace("yes", "nonmember"))
        (text,) = open_corpus(path, Columns(text="body", label="member", id="doc", group="author")).texts
        assert (text.text, text.member, text.id, text.group) == ("hello", False, "d1", "ann")

    @pytest.mark.parametrize("role", ["text", "label", "id", "group"])
    @pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "json"])
    def test_a_named_column_must_be_there(self, tmp_path, write, role, ending):
        row = {"text": "a", "author": "ann"}
        path = {
            "jsonl": lambda: write("a.jsonl", lines(row)),
            "json": lambda: write("a.json", json.dumps([row])),
            "csv": lambda: write("a.csv", "text,author\na,ann\n"),
            "parquet": lambda: parquet(tmp_path / "a.parquet", text=["a"], author=["ann"]),
        }[ending]()
        message = refusal(path, Columns(**{role: "nowhere"}))
        assert "'nowhere'" in message
        assert "'text', 'author'" in message

    def test_no_text_column_lists_what_there_is(self, write):
        message = refusal(write("a.csv", "title,body\na,b\n"))
        assert "'text' or 'input'" in message
        assert "'title', 'body'" in message

    def test_an_empty_name_leaves_a_column_out(self, write):
        path = write("a.csv", "text,label\nnice,positive\n")
        assert "'positive'" in refusal(path)
        assert open_corpus(path, Columns(label="")).texts[0].member is None

    def test_json_lines_may_bring_a_named_label_late(self, write):
        path = write("a.jsonl", lines({"text": "a"}, {"text": "b", "seen": True}))
        assert [t.member for t in open_corpus(path, Columns(label="seen")).texts] == [None, True]


class TestLabels:
    @pytest.mark.parametrize(
        ("value", "member"),
        [
            (1, True), (0, False), (1.0, True), (0.0, False), (True, True), (False, False), ("1", True),
            ("0", False), ("1.0", True), ("True", True), ("false", False), ("member", True),
            ("Non-Member", False), ("nonmember", False), ("", None), (" ", None), ("NaN", None),
            (None, None), (math.nan, None),
        ],
    )  # fmt: skip
    def test_known(self, write, value, member):
        assert open_corpus(write("a.jsonl", lines({"text": "a", "label": value}))).texts[0].member is member

    @pytest.mark.parametrize("value", [2, -1, 0.5, "yes", "positive", [1], {"a": 1}, math.inf])
    def test_refused_with_line_and_value(self, write, value):
        message = refusal(write("a.jsonl", lines({"text": "a"}, {"text": "b", "label": value})))
        assert "row 1 (line 2)" in message
        assert repr(value) in message

    def test_parquet_column_with_gaps(self, tmp_path):
        path = parquet(tmp_path / "a.parquet", text=list("abc"), label=[1.0, math.nan, None])
        assert [text.member for text in open_corpus(path).texts] == [True, None, None]

    def test_csv_cells(self, write):
        path = write("a.csv", "text,label\na,1\nb,\nc,0\n")
        assert [text.member for text in open_corpus(path).texts] == [True, None, False]


class TestIds:
    def test_repeated(self, write):
        rows = [{"id": name, "text": "a"} for name in "aaabbccddx"]
        message = refusal(write("a.jsonl", lines(*rows)))
        assert "'a' (3 times), 'b' (2 times), 'c' (2 times) and 1 more" in message
        assert "'x'" not in message

    def test_numbers_and_gaps(self, tmp_path):
        corpus = open_corpus(parquet(tmp_path / "a.parquet", text=list("abc"), id=[10.0, None, 12.0]))
        assert [text.id for text in corpus.texts] == ["10", "1", "12"]
        assert corpus.notes == ("1 row without an id took the row number.",)


class TestTexts:
    @pytest.mark.parametrize("value", [None, 3, 1.5, True, ["a"], {"a": "b"}])
    def test_no_string_no_text(self, write, value):
        message = refusal(write("a.jsonl", lines({"text": "a"}, {"text": value})))
        assert "row 1 (line 2) has no text" in message

    def test_a_row_without_the_column(self, write):
        assert "row 1 (line 3) has no text" in refusal(write("a.jsonl", '{"text": "a"}\n\n{"txt": "b"}\n'))

    def test_null_and_number_in_parquet(self, tmp_path):
        assert "row 1 has no text" in refusal(parquet(tmp_path / "a.parquet", text=["a", None]))
        assert "row 0 has no text" in refusal(parquet(tmp_path / "b.parquet", text=[1, 2]))

    def test_empty_texts_stay(self, write, tmp_path):
        assert open_corpus(write("a.jsonl", lines({"text": ""}))).texts[0].text == ""
        assert open_corpus(write("a.csv", 'text\n""\n"  "\n')).texts[1].text == "  "
        assert open_corpus(parquet(tmp_path / "a.parquet", text=[""])).texts[0].text == ""

    def test_text_file_skips_and_counts_blank_lines(self, write):
        corpus = open_corpus(write("a.txt", "\ufeffone\r\n\r\n  \ntwo\x0b2\u2028.\x00\rx\nthree"))
        assert [text.text for text in corpus.texts] == ["one", "two\x0b2\u2028.\x00\rx", "three"]
        assert [text.id for text in corpus.texts] == ["0", "1", "2"]
        assert corpus.notes == ("2 blank lines skipped.",)

    @pytest.mark.parametrize(
        "name", ["a.txt", "a.jsonl", "a.jsonl.gz", "a.json", "a.csv", "a.tsv", "a.md", "a.parquet"]
    )
    def test_invalid_bytes_are_refused_and_their_encoding_is_named(self, write, tmp_path, name):
        said = "Die Wärterin zählte die Schiffe, und in Köln grüßte man sie."
        raws = {
            "txt": said,
            "md": said,
            "jsonl": f'{{"text": "a"}}\n{{"text": "{said}"}}\n',
            "json": f'[{{"text": "{said}"}}]',
            "csv": f'text\n"{said}"\n',
            "tsv": f"text\n{said}\n",
        }
        kind = name.split(".")[1]
        if kind == "parquet":
            path = parquet(
                tmp_path / name, text=pa.array([said.encode("cp1252")]).cast(pa.string(), safe=False)
            )
        else:
            path = write(name, raws[kind].encode("cp1252"))
        message = refusal(path)
        assert "is not UTF-8; it looks like cp1252" in message
        if kind != "parquet":
            assert "--encoding cp1252" in message
            assert said in [text.text for text in open_corpus(path, Columns(encoding="cp1252")).texts]
            told = []
            stream = open_stream(path, skip_unreadable=True)
            if kind == "jsonl":  # a record at a time
                assert [text.text for text in stream.texts(told.append)] == ["a"]
                assert "line 2" in told[0].reason

    @pytest.mark.parametrize(
        ("encoding", "said"),
        [
            ("cp1251", "Хранительница маяка считала корабли по их колоколам."),
            ("koi8-r", "Хранительница маяка считала корабли по их колоколам."),
            ("cp932", "灯台守は鐘の音で船を数え、番号を帳簿に二度書いた。"),
            ("euc-jp", "灯台守は鐘の音で船を数え、番号を帳簿に二度書いた。"),
            ("gb18030", "灯塔看守人按钟声数船，把每个号码在账本上写两次。"),
            ("big5", "燈塔看守人按鐘聲數船，把每個號碼在帳本上寫兩次。"),
            ("cp1250", "Zażółć gęślą jaźń, latarniczka liczyła statki według dzwonów."),
            ("utf-16-le", "The keeper of the lamp counted ships by their bells."),
            ("utf-16-be", "The keeper of the lamp counted ships by their bells."),
        ],
    )
    def test_encodings_are_recognised(self, write, encoding, said):
        path = write("a.txt", f"{said}\n".encode(encoding))
        assert f"--encoding {encoding}" in refusal(path)
        assert open_corpus(path, Columns(encoding=encoding)).texts[0].text == said

    def test_an_encoding_that_is_not_known_or_wrong(self, write):
        with pytest.raises(ExpressionError, match="--encoding 'klingon' is not known"):
            Columns(encoding="klingon")
        assert "is not ascii" in refusal(write("a.txt", "é"), Columns(encoding="ascii"))

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-8-sig"])
    @pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.json", "a.csv", "a.md", "a.html", "a.jsonl.gz"])
    def test_a_byte_order_mark_tells_the_encoding(self, write, name, encoding):
        mark = "\ufeff" if encoding == "utf-16-le" else ""
        raws = {"jsonl": '{"text": "é😀"}\n', "json": '[{"text": "é😀"}]', "csv": "text\né😀\n"}
        path = write(name, (mark + raws.get(name.split(".")[1], "é😀")).encode(encoding))
        assert [text.text for text in open_corpus(path).texts] == ["é😀"]

    def test_a_file_that_ends_within_a_character_was_cut(self, write):
        assert "was cut off" in refusal(write("a.txt", "zwei Männer, ein Café".encode()[:-1]))

    def test_halves_of_surrogate_pairs(self, write):
        raw = '{"text": "a\\ud800b", "id": "\\udfff"}\n{"text": "\\ud83d\\ude00"}\n'
        corpus = open_corpus(write("a.jsonl", raw))
        assert [text.text for text in corpus.texts] == ["a\ufffdb", "😀"]
        assert corpus.texts[0].id == "\ufffd"
        assert corpus.notes[0] == "1 text held half a surrogate pair; it was replaced by U+FFFD."

    def test_control_characters_in_json_strings(self, write):
        assert open_corpus(write("a.jsonl", '{"text": "a\x00\tb"}\n')).texts[0].text == "a\x00\tb"

    def test_byte_order_mark_and_crlf(self, write):
        for name, raw in {
            "a.jsonl": '\ufeff{"text": "a"}\r\n',
            "a.csv": "\ufefftext,label\r\na,1\r\n",
            "a.json": '\ufeff [{"text": "a"}]',
            "a.tsv": '\ufeff"text"\tlabel\r\na\t1\r\n',
        }.items():
            assert open_corpus(write(name, raw)).texts[0].text == "a", name


class TestTables:
    def test_quotes_and_line_ends_inside_fields(self, write):
        path = write("a.csv", 'text,label\n"one ""two""\nthree, four",1\nplain,0\n')
        assert [t.text for t in open_corpus(path).texts] == ['one "two"\nthree, four', "plain"]

    def test_error_names_the_line_of_the_file(self, write):
        assert "row 1 (line 5)" in refusal(write("a.csv", 'text,label\n"a\nb\nc",1\nd,maybe\n'))

    def test_an_open_quote_swallows_nothing(self, write):
        assert "line 3" in refusal(write("a.csv", 'text\na\n"b\nc\nd\n'))

    @pytest.mark.parametrize("row", ["a", "a,1,2"])
    def test_wrong_number_of_fields(self, write, row):
        message = refusal(write("a.csv", f"text,label\nb,0\n{row}\n"))
        assert "line 3" in message
        assert "names 2" in message

    def test_fields_up_to_ten_megabytes(self, write):
        csv.field_size_limit(131_072)
        long = "x" * (9 * 1024 * 1024)
        assert open_corpus(write("a.csv", f"text\n{long}\n")).texts[0].text == long
        assert "line 2" in refusal(write("b.csv", f"text\n{long}xxxxxxxxxx{long}\n"))

    def test_json_list_and_json_lines_by_the_same_ending(self, write):
        assert len(open_corpus(write("a.json", json.dumps([{"text": "a"}, {"text": "b"}], indent=1)))) == 2
        assert len(open_corpus(write("b.json", lines({"text": "a"}, {"text": "b"})))) == 2
        assert "row 1 is a string" in refusal(write("c.json", '[{"text": "a"}, "b"]'))

    def test_parquet_reads_only_what_it_needs(self, tmp_path):
        class Spy:
            """A file that remembers how much was asked of it at once."""

            def __init__(self, path):
                self.file, self.largest, self.closed = path.open("rb"), 0, False

            def read(self, size=-1):
                data = self.file.read(size)
                self.largest = max(self.largest, len(data))
                return data

            def __getattr__(self, name):
                return getattr(self.file, name)

        from net.api import Reading, parquet_rows

        texts = [f"{i} {math.sin(i)}" * 25 for i in range(20_000)]
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"text": texts}), path, use_dictionary=False, compression="none")
        spy = Spy(path)
        reading = Reading(Columns(label="", id="", group=""), "a.parquet")
        assert list(reading.strings(parquet_rows(spy, reading, "a.parquet"))) == texts
        assert path.stat().st_size > 10_000_000 > 3_000_000 > spy.largest

    def test_parquet_of_binary_and_dictionary_columns(self, tmp_path):
        path = parquet(
            tmp_path / "a.parquet",
            text=pa.array([b"a", b"b"]),
            group=pa.array(["g", "g"]).dictionary_encode(),
        )
        assert [(t.text, t.group) for t in open_corpus(path).texts] == [("a", "g"), ("b", "g")]


class TestFolders:
    def test_files_in_order_with_their_paths(self, write, tmp_path):
        for name, content in {
            "c/b.txt": "second\r\n",
            "c/a/z.txt.gz": "first",
            "c/empty.txt": "",
            "c/x.TXT": " \n",
            "c/readme.md": "no",
        }.items():
            write(name, content)
        corpus = open_corpus(tmp_path / "c")
        assert [(t.id, t.text) for t in corpus.texts] == [
            ("a/z.txt.gz", "first"),
            ("b.txt", "second\r\n"),
            ("empty.txt", ""),
            ("x.TXT", " \n"),
        ]
        assert (corpus.name, corpus.notes) == ("c", ("1 file in the folder left out: readme.md.",))
        assert list(stream_texts(tmp_path / "c")) == ["first", "second\r\n", "", " \n"]

    def test_a_folder_without_texts(self, write, tmp_path):
        write("c/readme.md", "no")
        assert "holds no .txt file" in refusal(tmp_path / "c")

    def test_a_folder_has_no_labels_to_name(self, write, tmp_path):
        write("c/a.txt", "a")
        assert "'text', 'id'" in refusal(tmp_path / "c", Columns(label="member"))

    def test_a_file_name_that_is_not_utf8(self, tmp_path):
        (tmp_path / "c").mkdir()
        try:
            (tmp_path / "c" / "caf\udce9.txt").write_text("a")
        except OSError:
            pytest.skip("this file system wants UTF-8 names")
        open_corpus(tmp_path / "c").texts[0].id.encode()


class TestDamage:
    @pytest.mark.parametrize(
        "name", ["a.txt", "a.jsonl", "a.csv", "a.tsv", "a.json", "a.parquet", "a.txt.gz"]
    )
    def test_empty_files(self, write, name):
        assert "a." in refusal(write(name, b""))

    @pytest.mark.parametrize(
        ("name", "raw"), [("a.txt", "\n \n"), ("a.csv", "text\n"), ("a.json", "[]"), ("a.jsonl", "\n\n")]
    )
    def test_no_texts(self, write, name, raw):
        path = write(name, raw)
        assert "holds no texts" in refusal(path)
        with pytest.raises(TextsError, match="holds no texts"):
            list(stream_texts(path))

    @pytest.mark.parametrize("raw", ['{"text": "b"', "[1]", '"b"', "{'text': 'b'}", "[" * 100_000])
    def test_broken_json_lines(self, write, raw):
        assert "a.jsonl, line 2" in refusal(write("a.jsonl", '{"text": "a"}\n' + raw + "\n"))

    @pytest.mark.parametrize("name", ["a.txt.gz", "a.jsonl.gz", "a.csv.gz", "a.parquet.gz"])
    @pytest.mark.parametrize("damage", ["cut", "flipped", "garbled"])
    def test_broken_gzip(self, tmp_path, name, damage):
        whole = gzip.compress("".join(f'{{"text": "{math.sin(i)}"}}\n' for i in range(999)).encode())
        middle = len(whole) // 2
        raw = {
            "cut": whole[:-20],
            "flipped": whole[:middle]
            + bytes(255 - b for b in whole[middle : middle + 9])
            + whole[middle + 9 :],
            "garbled": whole[:10] + b"\xff" * 40 + whole[50:],
        }[damage]
        (tmp_path / name).write_bytes(raw)
        assert name in refusal(tmp_path / name)

    def test_broken_parquet(self, tmp_path):
        path = parquet(tmp_path / "a.parquet", text=[f"{math.sin(i)}" for i in range(5000)])
        whole = path.read_bytes()
        for raw in (
            whole[:-9],
            whole[9:],
            whole[: len(whole) // 2],
            b"PAR1" + b"\x00" * 40 + b"PAR1",
            b"text",
        ):
            path.write_bytes(raw)
            assert "not a whole parquet file" in refusal(path)
        (tmp_path / "b.parquet.gz").write_bytes(gzip.compress(whole[:-9]))
        assert "not a whole parquet file" in refusal(tmp_path / "b.parquet.gz")


def test_streams_stop_at_nothing_but_the_text(write):
    path = write("a.csv", "id,text,label\n1,a,what\n1,b,ever\n")
    assert list(stream_texts(path)) == ["a", "b"]
    assert list(stream_texts(path, Columns(text="label"))) == ["what", "ever"]


def test_streams_are_lazy(write):
    stream = stream_texts(write("a.jsonl", '{"text": "a"}\nbroken\n'))
    assert next(stream) == "a"
    with pytest.raises(TextsError, match="line 2"):
        next(stream)
