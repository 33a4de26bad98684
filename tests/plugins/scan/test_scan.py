"""A scan from the command: formats, resuming, machines that share the work, what cannot be read, and the report."""

import gzip
import json
import string

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made import prose, written

from pretrace import open_corpus
from pretrace.errors import OutputError
from pretrace.plugins.scan import scan as room
from pretrace.plugins.scan.corpus import CorpusReader, files_of
from pretrace.runs import load


@pytest.fixture
def place(tmp_path):
    """Ten texts, of which 0 to 3 stand in a corpus of four files: once, twice in other letters, in part, and not."""
    written(tmp_path / "texts.jsonl", [{"id": f"t{i}", "text": prose(i)} for i in range(10)])
    written(tmp_path / "held.jsonl", [{"id": f"h{i}", "text": prose(50 + i)} for i in range(100)])
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    fill = [prose(1000 + i) for i in range(40)]
    written(
        corpus / "a.jsonl",
        [{"text": one, "id": i} for i, one in enumerate(fill[:10])]
        + [{"text": prose(0), "meta": {"url": "https://example.org/0", "date": "2020-05-01"}}],
    )
    with gzip.open(corpus / "b.jsonl.gz", "wt", encoding="utf-8") as file:
        for one in [*fill[10:20], prose(1).upper().replace(" ", "\n  ")]:
            file.write(json.dumps({"text": one}) + "\n")
    texts = [*fill[20:30], f"{fill[0]} {prose(1)}", f"As was said: {prose(2)[100:190]} and so on."]
    table = pa.table({"text": texts, "url": [f"https://example.org/p{i}" for i in range(12)]})
    pq.write_table(table, corpus / "c.parquet")
    (corpus / "d.txt").write_text("\n".join(fill[30:]), encoding="utf-8")
    return tmp_path


def asked(place, **settings):
    """What a scan of that corpus is asked for."""
    texts, held = (open_corpus(place / name) for name in ("texts.jsonl", "held.jsonl"))
    return room.Searching(texts, held, (str(place / "corpus"),), room.ScanSettings(**settings))


def test_the_command_finds_what_is_there_and_nothing_else(place, call):
    out = place / "FOUND"
    code, said = call(
        place / "texts.jsonl", "--corpus", place / "corpus", "--controls", place / "held.jsonl", "--out", out
    )
    assert code == 3, said
    assert "Found: 2 of 10 texts of texts and 0 of 100 controls stand whole in corpus (p = 0.0075)" in said
    assert "Of the control texts 0 stand whole" in said
    found = load(out)
    table = found.table("texts").columns
    assert table["found"][:4] == ("whole", "whole", "part", "no")
    assert table["copies"][:4].tolist() == [1, 2, 0, 0]
    assert table["documents"][:4].tolist() == [1, 2, 1, 0]
    assert table["coverage"][2] == pytest.approx(90 / len(prose(2)), abs=0.02)
    assert table["longest"][0] == len(prose(0).replace(" ", ""))
    hits = found.table("hits").columns
    first = {name: values[0] for name, values in hits.items()}
    assert (first["url"], first["date"], first["document"]) == ("https://example.org/0", "2020-05-01", 10)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert all(said in page for said in ("<mark", "a.jsonl", "https://example.org/0"))
    assert not (place / "FOUND.parts").exists()


def test_what_is_read_in_parts_is_the_same_to_the_bit(place):
    how = {"near": True, "overlap": True}
    whole = room.scan(asked(place, **how), place / "one.parts")
    assert whole is not None
    for part in ("1/3", "3/3"):
        assert room.scan(asked(place, shard=part, **how), place / "more.parts") is None
    assert room.scan(asked(place, shard="2/3", workers=1, **how), place / "more.parts") is not None
    again = room.scan(asked(place, **how), place / "more.parts")
    for one, other in zip(whole.tables, again.tables, strict=True):
        for name, values in one.columns.items():
            np.testing.assert_array_equal(np.array(values), np.array(other.columns[name]))
    with pytest.raises(OutputError, match="--near"):
        room.scan(asked(place), place / "more.parts")
    written(place / "texts.jsonl", [{"text": prose(99)}])
    other = asked(place, **how)
    with pytest.raises(OutputError, match="for other texts"):
        room.scan(other, place / "more.parts")
    (place / "letter.parts").mkdir()
    (place / "letter.parts" / "letter.txt").write_text("keep")
    with pytest.raises(OutputError, match="holds something else"):
        room.scan(other, place / "letter.parts")


def test_a_scan_that_was_stopped_goes_on_with_the_files_that_have_no_part(place, monkeypatch):
    parts, real, read = place / "x.parts", CorpusReader.documents, []

    def documents(self, most=None):
        read.append(self.read.file)
        if len(read) == 3:
            raise KeyboardInterrupt
        return real(self, most)

    monkeypatch.setattr(CorpusReader, "documents", documents)
    with pytest.raises(KeyboardInterrupt):
        room.scan(asked(place, workers=1), parts)
    assert len(list(parts.glob("*.npz"))) == 2
    read[:] = ["", "", "", ""]
    assert room.scan(asked(place, workers=1), parts) is not None
    assert len(read) == 4 + 2  # the two files that had none
    damaged = next(parts.glob("*.npz"))
    damaged.write_bytes(damaged.read_bytes()[:50])
    assert room.scan(asked(place), parts) is not None
    assert len(read) == 4 + 3  # a damaged part is made anew


def test_what_cannot_be_read_is_no_all_clear(place, call):
    packed = place / "corpus" / "b.jsonl.gz"
    packed.write_bytes(packed.read_bytes()[:-40])
    texts = written(place / "other.jsonl", [{"id": "o", "text": prose(77)}])
    words = (texts, "--corpus", place / "corpus", "--out", place / "OUT")
    code, said = call(*words)
    assert code == 4, said
    assert "Not all of the corpus could be read" in said
    assert "b.jsonl.gz" in said
    packed.unlink()
    code, said = call(*words)
    assert (code, "Not found: 0 of 1 texts of other" in said) == (0, True), said
    with (place / "corpus" / "a.jsonl").open("a") as file:
        file.write('{"text": "cut\n')
    code, said = call(*words)
    assert (code, "documents with no text that can be read: 1" in said) == (4, True), said


def test_short_texts_and_the_texts_own_file_are_told(place, call):
    both = [{"id": "s", "text": "too short"}, {"id": "l", "text": prose(90)}]
    short = written(place / "corpus" / "own.jsonl", both)
    code, said = call(short, "--corpus", place / "corpus", "--out", place / "OUT")
    assert code == 3
    assert "The corpus holds files of the texts themselves" in said
    assert "Too short to be looked for (fewer than 50 letters and digits): 1." in said
    other = str(written(place / "other.jsonl", [{"id": "o", "text": prose(91)}]))
    assert [one.address for one in room._find_own_files(files_of([other, str(short)]), str(short))] == [
        str(short)
    ]
    folder = place / "corpus"
    assert len(room._find_own_files(files_of([str(folder)]), str(folder))) == 5
    only = written(place / "short.jsonl", [{"id": "s", "text": "too short"}])
    code, said = call(only, "--corpus", place / "corpus", "--out", place / "OUT2")
    assert (code, "50 letters and digits or more" in said) == (2, True)


def test_a_plan_reads_and_keeps_nothing(place, call):
    code, said = call(place / "texts.jsonl", "--corpus", place / "corpus", "--plan")
    assert code == 0
    assert "4 files of" in said
    assert "Estimated time" in said
    assert sorted(one.name for one in place.iterdir()) == ["corpus", "held.jsonl", "texts.jsonl"]


def test_a_passage_that_stands_everywhere_does_not_count(place, call):
    licence = "Permission is hereby granted, free of charge, to any person obtaining this software. " * 3
    texts = written(place / "code.jsonl", [{"id": "c", "text": licence + prose(5)[:150]}])
    written(place / "corpus" / "code.jsonl", [{"text": licence + prose(2000 + i, 4)} for i in range(1100)])
    code, said = call(texts, "--corpus", place / "corpus", "--out", place / "OUT")
    assert code == 4, said
    assert "share passages with corpus, none is whole" in said
    assert "Only in common passages: 1" in said
    table = load(place / "OUT").table("texts").columns
    assert table["found"] == ("common",)
    assert table["common"][0] > 0.95 * table["coverage"][0]


def test_common_is_what_stands_in_very_many_documents_beside_the_rest():
    found = [room._is_common(*one) for one in ((1000, 1000), (100, 10), (100, 11), (99, 1))]
    assert found == [True, True, False, False]


def test_a_text_file_is_one_document_however_long(place, monkeypatch):
    monkeypatch.setattr("pretrace.plugins.scan.corpus.BLOCK_BYTES", 3000)
    (place / "corpus" / "d.txt").write_text(prose(7, 300) + prose(4) + prose(8, 300) + prose(4), "utf-8")
    found = room.scan(asked(place), place / "x.parts")
    table = found.table("texts").columns
    assert (table["found"][4], table["coverage"][4], table["documents"][4]) == ("whole", 1.0, 1)


def test_without_numba_the_extra_is_named(place, call, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, said = call(place / "texts.jsonl", "--corpus", place / "corpus", "--out", place / "OUT")
    assert code == 2
    assert "searching a corpus needs the package numba" in said
    assert "pip install 'pretrace[scan]'" in said


def test_web_archives_are_read(place):
    def record(kind, number, body):
        head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: https://example.org/{number}\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body + b"\r\n\r\n"

    page = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><body><p>{prose(6)}</p></body></html>"
    with gzip.open(place / "corpus" / "e.warc.gz", "wb") as file:
        file.write(record("conversion", 3, prose(3).encode()) + record("response", 6, page.encode()))
    hits = room.scan(asked(place), place / "x.parts").table("hits").columns
    where = dict(zip(hits["id"], hits["url"], strict=True))
    assert (where["t3"], where["t6"]) == ("https://example.org/3", "https://example.org/6")


def shingled(text, size):
    """The sequences of so many words."""
    words = "".join(c for c in text.lower() if c not in string.punctuation).split()
    return {tuple(words[i : i + size]) for i in range(len(words) - size + 1)}


def test_near_copies_and_the_overlap_of_words_are_those_of_a_naive_count(place, call):
    words = prose(6, 200).split()
    few = " ".join("changed" if i % 97 == 50 else word.upper() + "," for i, word in enumerate(words))
    many = " ".join("changed" if i % 9 == 5 else word for i, word in enumerate(words))
    short = "three words only, and a few more to have fifty letters"
    said = {"n": " ".join(words), "m": prose(9, 80), "s": short}
    texts = [{"id": name, "text": text} for name, text in said.items()]
    file = written(place / "mine.jsonl", texts)
    written(place / "corpus" / "near.jsonl", [{"text": few, "id": "few"}, {"text": many, "id": "many"}])
    written(place / "corpus" / "gram.jsonl", [{"text": "On it: " + " ".join(prose(9, 80).split()[20:34])}])
    corpus = [json.loads(one)["text"] for name in ("near", "gram", "a") for one in
              (place / "corpus" / f"{name}.jsonl").read_text().splitlines()]  # fmt: skip
    out = place / "NEAR"
    code, said = call(file, "--corpus", place / "corpus", "--near", "--overlap", "--out", out)
    assert code == 4, said
    assert "1 of 3 texts have near copies (1 documents" in said
    found = load(out)
    table, near = found.table("texts").columns, found.table("near").columns
    mine, theirs = shingled(texts[0]["text"], 5), shingled(few, 5)
    assert near["jaccard"].tolist() == [pytest.approx(len(mine & theirs) / len(mine | theirs))]
    assert near["document id"] == ("few",)
    assert table["near copies"].tolist() == [1, 0, 0]
    every = set().union(*(shingled(one, 13) for one in corpus))
    wanted = [shingled(one["text"], 13) for one in texts]
    for value, some in zip(table["13-word overlap"].tolist(), wanted, strict=True):
        assert value == pytest.approx(len(some & every) / len(some)) if some else value != value
    assert 0 < table["13-word overlap"][1] < 0.1
    assert "near.csv" in (out / "report.html").read_text(encoding="utf-8")
    code, said = call(file, "--corpus", place / "corpus", "--near", "--match", "exact", "--out", place / "X")
    assert (code, "--match folded" in said) == (2, True)
