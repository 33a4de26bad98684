"""Files that were cut, damaged or never fetched: told as what they are, and never read as whole."""

import gzip
import io
import json
import random
import zipfile

import pypdf
import pytest
from corpora.test_documents import pdf
from corpora.test_every_entrance import FORMATS, PACKINGS, as_epub
from hypothesis import given, settings
from hypothesis import strategies as st

from pretrace.corpora import open_corpus
from pretrace.corpora.formats import unpack_stream
from pretrace.errors import TextsError
from pretrace.plugins.scan.corpus import CorpusFile, CorpusReader

_RANDOM = random.Random(1)
ROWS = [
    {"id": f"t{i}", "text": " ".join(f"{_RANDOM.randrange(10**6)}" for _ in range(20))} for i in range(300)
]
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935\nsize 12345\n"
TABLES = (".jsonl", ".json (a list)", ".parquet", ".arrow (a file)", ".arrow (a stream)")


def records(rows):
    """The records of a WET file."""
    texts = [(row["id"], row["text"].encode()) for row in rows]
    head = "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Record-ID: <{}>\r\nContent-Length: {}\r\n\r\n"
    return [head.format(name, len(text)).encode() + text + b"\r\n\r\n" for name, text in texts]


def read_corpus(path):
    """How many buffers of documents a scan reads of a file, and why it reads no more."""
    reader = CorpusReader(CorpusFile(str(path), path.stat().st_size))
    return sum(1 for _ in reader.documents()), reader.read.unread


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("name", TABLES)
def test_a_cut_table_is_refused_as_texts_and_unread_as_a_corpus(tmp_path, name, packing):
    whole = PACKINGS[packing](FORMATS[name](ROWS))
    for size in (len(whole) - 2, len(whole) - 9, len(whole) // 2, len(whole) // 3, 40):
        path = tmp_path / f"a{name.split()[0]}"
        path.write_bytes(whole[:size])
        with pytest.raises(TextsError, match=r"a\."):
            open_corpus(path)
        assert "a." in read_corpus(path)[1]


@pytest.mark.parametrize(
    "pack",
    [
        b"".join,
        lambda some: gzip.compress(b"".join(some)),
        lambda some: b"".join(map(gzip.compress, some)),  # as crawls have them
    ],
)
def test_a_cut_web_archive_is_unread(tmp_path, pack):
    some = records(ROWS[:20])
    whole, path = pack(some), tmp_path / "a.wet.gz"
    ends = [sum(map(len, some[:i])) for i in range(21)] if whole == b"".join(some) else []
    path.write_bytes(whole)
    assert read_corpus(path) == (1, "")
    unread = 0
    for size in range(len(whole) - 6, 20, -97):
        if any(end - 4 <= size <= end for end in ends):  # between two records nothing is cut
            continue
        path.write_bytes(whole[:size])
        assert "cut off" in read_corpus(path)[1]
        unread += 1
    assert unread > 10
    path.write_bytes(whole[:400] + b"x" * 50 + whole[400:])
    assert read_corpus(path)[1]


@pytest.mark.parametrize("packing", [one for one in PACKINGS if one])
@settings(max_examples=60, deadline=None)
@given(parts=st.lists(st.binary(max_size=3000), min_size=1, max_size=4), data=st.data())
def test_packed_streams_behind_each_other_are_read_and_a_cut_one_is_told(packing, parts, data):
    pack = PACKINGS[packing]
    streams = [pack(part) for part in parts]
    whole = b"".join(streams)

    def read(raw):
        return unpack_stream(io.BufferedReader(io.BytesIO(raw)), "a").read()

    assert read(whole) == b"".join(parts)
    assert read(whole + bytes(8)) == b"".join(parts)  # padding
    ends = {sum(map(len, streams[:i])) for i in range(len(streams) + 1)}
    size = data.draw(st.integers(len(streams[0]) - 1, len(whole)))
    if size not in ends:
        with pytest.raises((EOFError, OSError)):
            read(whole[:size])
    with pytest.raises(OSError, match="stand behind its end"):
        read(whole + b"more of something else")


def test_the_end_of_a_frame_is_looked_for_however_it_falls(tmp_path):
    """A zst frame that ends where a block does has no more to say than that its end is not there."""
    whole = PACKINGS["zst"](b"".join(json.dumps(row).encode() + b"\n" for row in ROWS))
    for size in range(len(whole) - 1, len(whole) - 60, -1):
        (tmp_path / "a.jsonl").write_bytes(whole[:size])
        with pytest.raises(TextsError, match="its zst stream is cut off"):
            open_corpus(tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    "name", ["a.txt", "a.jsonl", "a.parquet", "a.md", "a.csv", "a.arrow", "a.gz", "folder/a.jsonl"]
)
def test_a_pointer_of_git_lfs_is_called_that_everywhere(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(POINTER)
    said = "is a Git LFS pointer, not the file: run `git lfs pull`"
    with pytest.raises(TextsError, match=said):
        open_corpus(str(path.parent if "/" in name else path))
    assert said in read_corpus(path)[1]


def test_a_text_on_pointers_is_a_text(tmp_path):
    (tmp_path / "a.md").write_bytes(POINTER + b"is how a pointer looks. " * 50)
    assert len(open_corpus(tmp_path / "a.md")) == 1


def test_a_cut_pdf_and_books_that_cannot_be_read(tmp_path):
    whole = pdf(*(f"page {i}" for i in range(40)))
    longer, more = pypdf.PdfWriter(io.BytesIO(whole), incremental=True), io.BytesIO()
    for _ in range(90):
        longer.add_blank_page(9, 9)
    longer.write(more)
    # the last leaves an end mark, that of the first version
    for raw, said in (
        (whole[:-20], r"the \.pdf file is damaged"),
        (more.getvalue()[:-20], "its end mark is not there"),
    ):
        (tmp_path / "a.pdf").write_bytes(raw)
        with pytest.raises(TextsError, match=said):
            open_corpus(tmp_path / "a.pdf")
    book = as_epub([{"text": "One half of a book and another half."}])
    (tmp_path / "a.epub").write_bytes(book[:-30])
    with pytest.raises(TextsError, match=r"the \.epub file is damaged"):
        open_corpus(tmp_path / "a.epub")
    made = io.BytesIO(book)
    with zipfile.ZipFile(made, "a") as more:
        more.writestr("META-INF/encryption.xml", '<x><y URI="OEBPS/text/a .xhtml"/></x>')
    (tmp_path / "a.epub").write_bytes(made.getvalue())
    with pytest.raises(TextsError, match="DRM"):
        open_corpus(tmp_path / "a.epub")
