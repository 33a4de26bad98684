"""Files that are one text each: Markdown, HTML, Word and PDF, alone and in folders."""

import io
import re
import sys
from pathlib import Path

import pytest
from odd_files import zipped

from pretrace.corpora import open_corpus, open_stream
from pretrace.corpora.documents import CHANGES, DEEPEST, EMPTY_PAGES, FRONT_MATTER, decode_page, read_html
from pretrace.errors import MissingPackageError, TextsError

docx = pytest.importorskip("docx", reason="the extra documents is not installed")
pypdf = pytest.importorskip("pypdf", reason="the extra documents is not installed")
from docx.oxml import parse_xml  # noqa: E402
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject  # noqa: E402


def pdf(*pages, password=None):
    """A PDF with a line of text a page; a page without is empty, as a scan's is to a reader of text."""
    writer = pypdf.PdfWriter()
    font = {"Type": "/Font", "Subtype": "/Type1", "BaseFont": "/Helvetica", "Encoding": "/WinAnsiEncoding"}
    named = DictionaryObject({NameObject(f"/{key}"): NameObject(value) for key, value in font.items()})
    for text in pages:
        page = writer.add_blank_page(300, 300)
        fonts = DictionaryObject({NameObject("/F1"): named})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        content = DecodedStreamObject()
        content.set_data(f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode() if text else b"")
        page[NameObject("/Contents")] = writer._add_object(content)
    if password is not None:
        writer.encrypt(password, algorithm="RC4-128")
    made = io.BytesIO()
    writer.write(made)
    return made.getvalue()


def word(*paragraphs, table="", changed=False):
    document = docx.Document()
    for text in paragraphs:
        document.add_paragraph(text)
    if table:
        document.add_table(1, 1).cell(0, 0).text = table
    if changed:
        space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
        for kind, text in (("ins", "<w:t> put in</w:t>"), ("del", "<w:delText> taken out</w:delText>")):
            change = parse_xml(f'<w:{kind} {space} w:id="1"><w:r>{text}</w:r></w:{kind}>')
            document.paragraphs[0]._p.append(change)
    document.sections[0].header.paragraphs[0].text = "letterhead"
    made = io.BytesIO()
    document.save(made)
    return made.getvalue()


@pytest.fixture
def folder(tmp_path):
    """One of each kind."""
    place = tmp_path / "mine"
    (place / "sub").mkdir(parents=True)
    (place / "a.txt").write_text("plain\n", encoding="utf-8")
    (place / "b.md").write_text("---\ntitle: B\n---\n\n# B\n\nmarked\n", encoding="utf-8")
    (place / "sub" / "c.html").write_text("<title>no</title><p>seen <b>page</b></p>", encoding="utf-8")
    (place / "d.docx").write_bytes(word("written", table="cell"))
    (place / "e.pdf").write_bytes(pdf("printed", "twice"))
    return place


def test_one_of_each(folder):
    corpus = open_corpus(str(folder))
    assert [(t.id, t.text) for t in corpus.texts] == [
        *(("a.txt", "plain\n"), ("b.md", "# B\n\nmarked\n"), ("d.docx", "written\ncell")),
        *(("e.pdf", "printed\ntwice"), ("sub/c.html", "seen page")),
    ]
    assert all(text.id == text.group for text in corpus.texts)
    kinds, front = corpus.notes
    assert "1 .docx, 1 .html, 1 .md, 1 .pdf, 1 .txt" in kinds
    assert front == f"1 text: {FRONT_MATTER}."
    stream = open_stream(folder)
    assert tuple(stream.texts()) == corpus.texts
    assert stream.notes == corpus.notes
    for name in ("b.md", "sub/c.html", "d.docx", "e.pdf"):
        alone = open_corpus(folder / name)
        assert [(text.id, text.group) for text in alone.texts] == [(Path(name).name,) * 2]
        assert alone.name == Path(name).stem


def test_what_is_left_out(folder):
    for name in ("readme.html", "~$d.docx", "old.doc"):
        (folder / name).write_bytes(b"no")
    (folder / "sub" / "readme.md").write_text("one of many", encoding="utf-8")
    corpus = open_corpus(folder)
    assert "sub/readme.md" in {text.id for text in corpus.texts}
    assert "3 files in the folder left out: 'old.doc', 'readme.html', '~$d.docx'." in corpus.notes


def test_one_that_cannot_be_read(folder, tmp_path):
    scans = tmp_path / "scans"
    scans.mkdir()
    for place in (folder, scans):
        (place / "f.pdf").write_bytes(pdf(""))
    (folder / "g.docx").write_bytes(word("whole")[:900])
    with pytest.raises(TextsError, match=r"f\.pdf: the PDF has no text layer"):
        open_corpus(folder)
    told = []
    assert len(list(open_stream(folder, skip_unreadable=True).texts(told.append))) == 5
    assert [Path(one.reason.partition(":")[0]).name for one in told] == ["f.pdf", "g.docx"]
    with pytest.raises(TextsError, match="holds no texts, and 1 record that cannot be read"):
        list(open_stream(scans, skip_unreadable=True).texts())


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        *((name, b"", f"{name}: the .*: .*leave it out") for name in ("a.md", "a.html", "a.docx", "a.pdf")),
        ("a.md", b"---\na: 1\n---\n", "holds no text"),
        ("a.html", b"<nav>x</nav>", "holds no text"),
        ("a.pdf", pdf("secret", password="word"), "encrypted"),
        *(("a.pdf", pdf("whole")[:size], r"a\.pdf: the (PDF|\.pdf file) is ") for size in (5, 300)),
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"x" * 600, "encrypted, or an older"),
        ("a.docx", zipped(notes__txt=b"no"), "damaged"),
    ],
)
def test_what_is_refused(tmp_path, name, raw, said):
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(TextsError, match=said) as caught:
        open_corpus(tmp_path / name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("module", "name"), [("pypdf", "a.pdf"), ("docx", "a.docx")])
def test_without_the_extra(tmp_path, monkeypatch, module, name):
    (tmp_path / name).write_bytes(b"x")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingPackageError, match=r"pretrace\[documents\]"):
        list(open_stream(tmp_path, skip_unreadable=True).texts())


NEVER_CLOSED, NO_FRONT = "---\ntitle: never closed\nbody", "---\nA rule above, and one below.\n---\nbody"


@pytest.mark.parametrize(
    ("name", "raw", "text", "notes"),
    [
        ("a.pdf", pdf("one", "", "three"), "one\nthree", (f"1 text: {EMPTY_PAGES}.",)),
        ("a.pdf", pdf("only its printing is forbidden", password=""), "only its printing is forbidden", ()),
        ("a.docx", word("first", "second", changed=True), "first put in\nsecond", (f"1 text: {CHANGES}.",)),
        ("a.md", b"---\ntitle: A\n---\nbody", "body", (f"1 text: {FRONT_MATTER}.",)),
        ("a.md", b"+++\ntitle = 'A'\n+++\nbody", "body", (f"1 text: {FRONT_MATTER}.",)),
        *(("a.md", one.encode(), one, ()) for one in (NO_FRONT, NEVER_CLOSED, "body\n---\ntitle: A\n---\n")),
    ],
)
def test_what_is_read_and_noted(tmp_path, name, raw, text, notes):
    (tmp_path / name).write_bytes(raw)
    corpus = open_corpus(tmp_path / name)
    assert (corpus.texts[0].text, corpus.notes) == (text, notes)


def test_what_pypdf_repairs_is_not_told_on_the_screen(tmp_path, capfd, caplog):
    (tmp_path / "a.pdf").write_bytes(re.sub(rb"startxref\n\d+", b"startxref\n7", pdf("whole")))
    assert open_corpus(tmp_path / "a.pdf").texts[0].text == "whole"
    assert not caplog.records
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>one  <i>two</i>\nthree</p><div>four<br>five</div>", "one two three\nfour\nfive"),
        ("<header>site</header><article><header><h1>T</h1></header>x</article>", "T\nx"),
        ("<pre>a\n\n  b</pre>c", "a\n\n  b\nc"),
        ("<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>", "1 2\n3"),
        ("<script>no</script><p hidden>no</p><nav>no</nav><!-- no -->a &lt; b &amp; c", "a < b & c"),
    ],
)
def test_what_a_reader_sees_of_a_page(page, text):
    assert read_html(page) == text


def test_nesting_without_end():
    with pytest.raises(TextsError, match="open within each other"):
        read_html("<div>" * (DEEPEST + 1))
    assert read_html("<p>a" * 5_000).count("a") == 5_000


def test_characters_of_a_page():
    stated = '<meta charset="iso-8859-1">\xe9\x80'
    assert decode_page(stated.encode("latin-1")) == '<meta charset="iso-8859-1">é€'
    assert decode_page(stated.encode()) == stated  # it is UTF-8, whatever it says
    assert decode_page("é".encode("utf-16")) == "é"
    with pytest.raises(TextsError, match="with --reading encoding=NAME"):
        decode_page(b"<meta charset=nonsense>\xe9")
    assert decode_page(b"<meta charset=nonsense>\xe9", "cp1252") == "<meta charset=nonsense>é"
