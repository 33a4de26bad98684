"""The same rows at every entrance: formats, packings and folders, as score, flag, audit, scan, build and the page read
them."""

import bz2
import csv
import gzip
import io
import json
import lzma
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from corpora.test_documents import pdf, word
from pyarrow import ipc

from pretrace.corpora import open_corpus, open_stream
from pretrace.errors import PretraceError
from pretrace.plugins.scan import scan as room
from pretrace.plugins.serve import Workspace
from pretrace.plugins.serve.command import ServeSettings
from pretrace.plugins.serve.uploads import take
from pretrace.types import Corpus, Text

TEXTS = [
    "The keeper of the lamp counted ships by their bells; she wrote each number twice, in ink.",
    'Regen fiel auf die Kupferdächer, dann hörte er auf: "Genug", sagte die Müllerin zu ihrem Hund.',
    "Three boys sold lemons beside the bridge, and nobody who crossed it bought more than two of them.",
]
ROWS = [{"id": f"t{number}", "text": text} for number, text in enumerate(TEXTS)]


def as_lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def as_table(rows, delimiter):
    out = io.StringIO(newline="")
    names = [*rows[0], "a column, with a comma"]
    writer = csv.DictWriter(out, names, delimiter=delimiter, restval="x")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def as_parquet(rows):
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


def as_arrow(rows, make):
    sink, table = io.BytesIO(), pa.Table.from_pylist(rows)
    with make(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def as_stream(rows):
    return as_arrow(rows, ipc.new_stream)


def as_epub(rows):
    """A book whose chapters stand in its spine in another order than in its zip."""
    half = rows[0]["text"].index(" ", len(rows[0]["text"]) // 2)
    pages = {"b": rows[0]["text"][:half], "a": rows[0]["text"][half:]}
    spine = '<itemref idref="nav"/><itemref idref="b"/><itemref idref="a"/>'
    items = '<item id="nav" href="nav.xhtml" properties="nav"/>' + "".join(
        f'<item id="{one}" href="text/{one}%20.xhtml"/>' for one in sorted(pages)
    )
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        book.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        )
        book.writestr(
            "OEBPS/book.opf",
            '<!DOCTYPE package PUBLIC "-//OEB 1.2 Package//EN" "oebpkg12.dtd">'  # as older books have it
            f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest><spine>{spine}</spine></package>',
        )
        book.writestr("OEBPS/nav.xhtml", "<html><body><p>Contents</p></body></html>")
        for one in sorted(pages):
            page = f"<?xml version='1.0'?><html><head><title/></head><body><p>{pages[one]}</p></body></html>"
            book.writestr(f"OEBPS/text/{one} .xhtml", page)
    return made.getvalue()


FORMATS = {
    ".jsonl": as_lines,
    ".json (a list)": lambda rows: json.dumps(rows, indent=1).encode(),
    ".csv": lambda rows: as_table(rows, ","),
    ".csv (semicolons)": lambda rows: as_table(rows, ";"),
    ".tsv": lambda rows: as_table(rows, "\t"),
    ".parquet": as_parquet,
    ".arrow (a file)": lambda rows: as_arrow(rows, ipc.new_file),
    ".arrow (a stream)": as_stream,
    ".txt": lambda rows: "".join(f"{row['text']}\n" for row in rows).encode(),
    ".md": lambda rows: rows[0]["text"].encode(),
    ".html": lambda rows: f"<p>{rows[0]['text']}</p>".encode(),
    ".docx": lambda rows: word(rows[0]["text"]),
    ".pdf": lambda rows: pdf(rows[0]["text"]),
    ".epub": as_epub,
}
ONE_TEXT = (".md", ".html", ".docx", ".pdf", ".epub")
_PACKERS = {"gz": gzip, "zst": zstandard, "bz2": bz2, "xz": lzma}
PACKINGS = {"": bytes} | {name: packer.compress for name, packer in _PACKERS.items()}


def as_folder(place, name, make, extra):
    for number, row in enumerate(ROWS):
        file = place / name.format(number)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(make([row]))
    for beside, content in extra.items():
        (place / beside).parent.mkdir(exist_ok=True)
        (place / beside).write_text(content)


SHARDS, FACTS = "data-0000{}-of-00003.arrow", {"state.json": "{}", "dataset_info.json": "{}"}
ABOUT = {"README.md": "About these texts.", ".git/config": "[core]", "dataset_infos.json": '{\n "a": {}\n}'}
FOLDERS = {
    "a folder of .jsonl": lambda place: as_folder(place, "part-{}.jsonl", as_lines, {}),
    "a folder of .csv.gz": lambda place: as_folder(
        place, "{}.csv.gz", lambda r: gzip.compress(as_table(r, ",")), {}
    ),
    "a cloned data set repository": lambda place: as_folder(
        place, "data/train-0000{}-of-00003.parquet", as_parquet, ABOUT
    ),
    "`Dataset.save_to_disk`": lambda place: as_folder(place, SHARDS, as_stream, FACTS),
    "`DatasetDict.save_to_disk`": lambda place: as_folder(
        place, f"train/{SHARDS}", as_stream, {"dataset_dict.json": '{"splits": ["train"]}'}
    ),
    "a folder of .txt": lambda place: as_folder(place, "{}.txt", lambda rows: rows[0]["text"].encode(), {}),
    "a folder of .md.xz": lambda place: as_folder(
        place, "in/{}.md.xz", lambda rows: lzma.compress(rows[0]["text"].encode()), {}
    ),
}


def by_scan(path, tmp):
    """The texts that a scan finds whole, once each."""
    asked = Corpus("mine", tuple(Text(row["id"], row["text"]) for row in ROWS))
    searching = room.Searching(asked, None, (str(path),), room.ScanSettings(workers=1))
    found = room.scan(searching, tmp / "parts")
    if found.settings["searched"]["not read"]:
        raise PretraceError(str(found.reasons))
    states = found.table("texts").columns["found"]
    return [row["text"] for row, state in zip(ROWS, states, strict=True) if state == "whole"]


def by_page(path, tmp):
    """The beginnings of the first texts that the page shows, of as many as it counts."""
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    sent = [(str(one.relative_to(path.parent)), io.BytesIO(one.read_bytes())) for one in files]
    facts = take(Workspace.at(tmp / "workspace"), sent, ServeSettings()).facts
    assert facts.texts == len(facts.first)
    return list(facts.first)


def by_reader(path, _):
    """The texts as `score`, `flag`, `audit` and `build` read them, one at a time and all at once."""
    found = tuple(open_stream(path).texts())
    assert found == open_corpus(str(path)).texts
    return [text.text for text in found]


ENTRANCES = {"`score`, `audit`, `build`": by_reader, "`scan --corpus`": by_scan, "page": by_page}


def texts_read(entrance, path, folder):
    """Read the texts at one entrance, without white space."""
    return ["".join(text.split()) for text in ENTRANCES[entrance](path, folder)]


@pytest.mark.parametrize("entrance", ENTRANCES)
@pytest.mark.parametrize("name", FORMATS)
def test_a_file_of_each_kind_in_each_packing(tmp_path, name, entrance):
    ending, wanted = name.split()[0], TEXTS[:1] if name.split()[0] in ONE_TEXT else TEXTS
    for packing, pack in PACKINGS.items():
        # under its name, and under one that is wrong
        for called in {f"a{ending}.{packing}".rstrip("."), f"a{ending}"}:
            path = tmp_path / (packing or "plain") / called
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(pack(FORMATS[name](ROWS)))
            found = texts_read(entrance, path, tmp_path / f"{packing}{called}")
            assert found == ["".join(text.split()) for text in wanted], (called, packing)


@pytest.mark.parametrize("entrance", ENTRANCES)
@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_of_each_kind(tmp_path, name, entrance):
    FOLDERS[name](tmp_path / "texts")
    assert texts_read(entrance, tmp_path / "texts", tmp_path) == ["".join(text.split()) for text in TEXTS]
