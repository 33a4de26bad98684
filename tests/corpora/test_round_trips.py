"""Odd texts written by other people's writers come back as they were, in every format."""

import gzip
import tempfile
from pathlib import Path

import pytest
from corpora.test_every_entrance import FORMATS
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


@pytest.mark.parametrize("gz", ["", ".gz"])
@pytest.mark.parametrize("name", [".jsonl", ".json (a list)", ".csv", ".tsv", ".parquet", ".arrow (a file)"])
@given(rows=ROWS)
@example(rows=[(LONG, True, "a"), ("", None, ""), ("\ufeff", False, "\x00"), (" ", None, '"')])
@settings(max_examples=25, deadline=None)
def test_round_trip(name, gz, rows):
    raw = FORMATS[name]([dict(zip(("text", "label", "group"), row, strict=True)) for row in rows])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{name.split()[0]}{gz}"
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
