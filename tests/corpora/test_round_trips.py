"""Odd texts written by other people's writers come back as they were, in every format."""

import csv
import gzip
import io
import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pretrace.corpora import Columns, open_corpus, open_stream

ODD = st.text(
    st.one_of(
        st.characters(codec="utf-8"), st.sampled_from("\x00\r\n\t\"',;\\\ufeff\ufffd\u2028\x85😀👩🏽‍🚀")
    ),
    max_size=40,
)
LABELS = st.sampled_from([True, False, None])
ROWS = st.lists(st.tuples(ODD, LABELS, ODD), min_size=1, max_size=8)
LONG = ("😀\x00\"\n'," * 20_000)[:100_000]


def as_jsonl(rows, ascii_only=True):
    dicts = [{"text": text, "label": label, "group": group} for text, label, group in rows]
    return "".join(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in dicts).encode()


def as_table(rows, delimiter):
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writerow(["text", "label", "group"])
    writer.writerows((text, "" if label is None else int(label), group) for text, label, group in rows)
    return out.getvalue().encode()


def as_parquet(rows):
    text, label, group = (list(column) for column in zip(*rows, strict=True))
    columns = {
        "text": pa.array(text, pa.string()),
        "label": pa.array(label, pa.bool_()),
        "group": pa.array(group),
    }
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


WRITERS = {
    "a.jsonl": as_jsonl,
    "b.jsonl": lambda rows: as_jsonl(rows, ascii_only=False),
    "a.csv": lambda rows: as_table(rows, ","),
    "a.tsv": lambda rows: as_table(rows, "\t"),
    "a.parquet": as_parquet,
    "a.json": lambda rows: b"[" + as_jsonl(rows).replace(b"\n", b",").removesuffix(b",") + b"]",
}


@pytest.mark.parametrize("gz", ["", ".gz"])
@pytest.mark.parametrize("name", WRITERS)
@given(rows=ROWS)
@example(rows=[(LONG, True, "a"), ("", None, ""), ("\ufeff", False, "\x00"), (" ", None, '"')])
@settings(max_examples=25, deadline=None)
def test_round_trip(name, gz, rows):
    raw = WRITERS[name](rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / (name + gz)
        path.write_bytes(gzip.compress(raw, 1) if gz else raw)
        corpus = open_corpus(path)
        assert [(text.text, text.member, text.group) for text in corpus.texts] == list(rows)
        assert corpus.notes == ()
        alone = open_stream(path, Columns(label="", id="", group=""))
        assert [one.text for one in alone.texts()] == [text for text, _, _ in rows]


@given(raw=st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line), min_size=1, max_size=5))
@example(raw=[b"\xff\xfe", b"\xe2\x82", b"ok", b"\xed\xa0\x80\xf0\x9f"])
@settings(max_examples=150, deadline=None)
def test_any_bytes_make_texts_or_a_refusal(raw):
    """A text file of any bytes reads as Python decodes it, line by line, and a line that is no UTF-8 is told."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.txt"
        path.write_bytes(b"the first\n" + b"\n".join(raw))
        told = []
        texts = [text.text for text in open_stream(path, skip_unreadable=True).texts(told.append)]
    lines = [line.removesuffix(b"\r") for line in raw]
    fine = [line.decode() for line in lines if line.decode(errors="replace").encode() == line]
    assert texts == ["the first", *(line for line in fine if line.strip())]
    assert len(told) == len(lines) - len(fine)
