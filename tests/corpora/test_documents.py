"""Files that are one text each: Markdown, HTML, Word and PDF, alone and in folders."""

import io
import re
import sys
import zipfile
from pathlib import Path

import pytest

from pretrace.corpora import open_corpus, open_stream
from pretrace.corpora.documents import CHANGES, EMPTY_PAGES, FRONT_MATTER
from pretrace.corpora.reading import Unreadable
from pretrace.corpora.webpages import DEEPEST, decode_page, read_html
from pretrace.errors import MissingPackageError, TextsError

docx = pytest.importorskip("docx", reason="the extra documents is not installed")
pypdf = pytest.importorskip("pypdf", reason="the extra documents is not installed")
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject  # noqa: E402


def pdf(*pages, password=None):
    """A PDF with a line of text a page; a page without is empty, as a scan's is to a reader of text."""
    writer = pypdf.PdfWriter()
    font = {
        "/Type": "/Font",
        "/Subtype": "/Type1",
        "/BaseFont": "/Helvetica",
        "/Encoding": "/WinAnsiEncoding",
    }
    named = DictionaryObject({NameObject(key): NameObject(value) for key, value in font.items()})
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
        from docx.oxml import parse_xml

        space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
        document.paragraphs[0]._p.append(
            parse_xml(f'<w:ins {space} w:id="1"><w:r><w:t> put in</w:t></w:r></w:ins>')
        )
        document.paragraphs[0]._p.append(
            parse_xml(f'<w:del {space} w:id="2"><w:r><w:delText> taken out</w:delText></w:r></w:del>')
        )
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


class TestFolders:
    def test_one_of_each(self, folder):
        corpus = open_corpus(str(folder))
        assert [(t.id, t.group, t.text) for t in corpus.texts] == [
            ("a.txt", "a.txt", "plain\n"),
            ("b.md", "b.md", "# B\n\nmarked\n"),
            ("d.docx", "d.docx", "written\ncell"),
            ("e.pdf", "e.pdf", "printed\ntwice"),
            ("sub/c.html", "sub/c.html", "seen page"),
        ]
        kinds, front = corpus.notes
        assert "1 .docx, 1 .html, 1 .md, 1 .pdf, 1 .txt" in kinds
        assert front == f"1 text: {FRONT_MATTER}."
        stream = open_stream(folder)
        assert tuple(stream.texts()) == corpus.texts
        assert stream.notes == corpus.notes

    def test_a_folder_of_txt_is_read_as_ever(self, folder):
        for name in ("b.md", "d.docx", "e.pdf", "sub/c.html"):
            (folder / name).unlink()
        (folder / "README.md").write_text("About these texts.", encoding="utf-8")
        (folder / ".hidden.md").write_text("no", encoding="utf-8")
        corpus = open_corpus(folder)
        assert [(t.id, t.group) for t in corpus.texts] == [("a.txt", "")]
        assert corpus.notes == ("2 files in the folder left out: .hidden.md, README.md.",)

    def test_what_is_left_out(self, folder):
        for name in ("readme.html", "~$d.docx", "old.doc"):
            (folder / name).write_bytes(b"no")
        (folder / "sub" / "readme.md").write_text("one of many", encoding="utf-8")
        corpus = open_corpus(folder)
        assert "sub/readme.md" in {text.id for text in corpus.texts}
        assert "3 files in the folder left out: old.doc, readme.html, ~$d.docx." in corpus.notes

    def test_one_that_cannot_be_read(self, folder):
        (folder / "f.pdf").write_bytes(pdf(""))
        (folder / "g.docx").write_bytes(word("whole")[:900])
        with pytest.raises(TextsError, match=r"f\.pdf: the PDF has no text layer"):
            open_corpus(folder)
        told: list[Unreadable] = []
        texts = list(open_stream(folder, skip_unreadable=True).texts(told.append))
        assert len(texts) == 5
        assert [Path(one.reason.partition(":")[0]).name for one in told] == ["f.pdf", "g.docx"]

    def test_only_scans(self, folder, tmp_path):
        place = tmp_path / "scans"
        place.mkdir()
        (place / "f.pdf").write_bytes(pdf(""))
        with pytest.raises(TextsError, match="holds no texts, and 1 record that cannot be read"):
            list(open_stream(place, skip_unreadable=True).texts())


class TestSingleFiles:
    @pytest.mark.parametrize("name", ["b.md", "sub/c.html", "d.docx", "e.pdf"])
    def test_one_text(self, folder, name):
        path = folder / name
        (text,) = open_corpus(path).texts
        assert (text.id, text.group) == (path.name, path.name)
        assert open_corpus(path).name == path.stem

    def test_a_txt_file_stays_a_text_a_line(self, folder):
        (folder / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
        assert [text.text for text in open_corpus(folder / "a.txt").texts] == ["one", "two"]

    @pytest.mark.parametrize("name", ["a.md", "a.html", "a.docx", "a.pdf"])
    def test_empty(self, tmp_path, name):
        (tmp_path / name).touch()
        with pytest.raises(TextsError, match=f"{name}: the file is empty"):
            open_corpus(tmp_path / name)

    @pytest.mark.parametrize(("name", "raw"), [("a.md", b"---\na: 1\n---\n"), ("a.html", b"<nav>x</nav>")])
    def test_no_text(self, tmp_path, name, raw):
        (tmp_path / name).write_bytes(raw)
        with pytest.raises(TextsError, match="holds no text"):
            open_corpus(tmp_path / name)

    @pytest.mark.parametrize(("module", "name"), [("pypdf", "a.pdf"), ("docx", "a.docx")])
    def test_without_the_extra(self, tmp_path, monkeypatch, module, name):
        (tmp_path / name).write_bytes(b"x")
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingPackageError, match=r"pretrace\[documents\]"):
            list(open_stream(tmp_path, skip_unreadable=True).texts())


class TestPdf:
    def test_pages_without_text_are_told(self, tmp_path):
        (tmp_path / "a.pdf").write_bytes(pdf("one", "", "three"))
        corpus = open_corpus(tmp_path / "a.pdf")
        assert (corpus.texts[0].text, corpus.notes) == ("one\nthree", (f"1 text: {EMPTY_PAGES}.",))

    def test_encrypted(self, tmp_path):
        (tmp_path / "a.pdf").write_bytes(pdf("secret", password="word"))
        with pytest.raises(TextsError, match="encrypted"):
            open_corpus(tmp_path / "a.pdf")
        (tmp_path / "b.pdf").write_bytes(pdf("only its printing is forbidden", password=""))
        assert "printing" in open_corpus(tmp_path / "b.pdf").texts[0].text

    def test_what_pypdf_repairs_is_not_told_on_the_screen(self, tmp_path, capfd, caplog):
        (tmp_path / "a.pdf").write_bytes(re.sub(rb"startxref\n\d+", b"startxref\n7", pdf("whole")))
        assert open_corpus(tmp_path / "a.pdf").texts[0].text == "whole"
        assert not caplog.records
        assert capfd.readouterr().err == ""

    @pytest.mark.parametrize("size", [5, 300])
    def test_damaged(self, tmp_path, size):
        (tmp_path / "a.pdf").write_bytes(pdf("whole")[:size])
        with pytest.raises(TextsError, match=r"a\.pdf: the PDF ") as caught:
            open_corpus(tmp_path / "a.pdf")
        assert "\n" not in str(caught.value)


class TestWord:
    def test_tracked_changes_are_accepted_and_told(self, tmp_path):
        (tmp_path / "a.docx").write_bytes(word("first", "second", changed=True))
        corpus = open_corpus(tmp_path / "a.docx")
        assert corpus.texts[0].text == "first put in\nsecond"
        assert corpus.notes == (f"1 text: {CHANGES}.",)

    def test_an_older_or_encrypted_one(self, tmp_path):
        (tmp_path / "a.docx").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"x" * 600)
        with pytest.raises(TextsError, match="encrypted, or an older"):
            open_corpus(tmp_path / "a.docx")

    def test_a_zip_that_is_none(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "a.docx", "w") as packed:
            packed.writestr("notes.txt", "no")
        with pytest.raises(TextsError, match="damaged"):
            open_corpus(tmp_path / "a.docx")


class TestMarkdown:
    @pytest.mark.parametrize(
        ("written", "kept"),
        [
            ("---\ntitle: A\n---\nbody", "body"),
            ("+++\ntitle = 'A'\n+++\nbody", "body"),
            ("---\nA rule above, and one below.\n---\nbody", None),
            ("---\ntitle: never closed\nbody", None),
            ("body\n---\ntitle: A\n---\n", None),
        ],
    )
    def test_front_matter(self, tmp_path, written, kept):
        (tmp_path / "a.md").write_text(written, encoding="utf-8")
        assert open_corpus(tmp_path / "a.md").texts[0].text == (written if kept is None else kept)


class TestHtml:
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
    def test_what_a_reader_sees(self, page, text):
        assert read_html(page) == text

    def test_nesting_without_end(self):
        with pytest.raises(TextsError, match="open within each other"):
            read_html("<div>" * (DEEPEST + 1))
        assert read_html("<p>a" * 5_000).count("a") == 5_000

    def test_characters(self):
        stated = '<meta charset="iso-8859-1">\xe9\x80'
        assert decode_page(stated.encode("latin-1")) == '<meta charset="iso-8859-1">é€'
        assert decode_page(stated.encode()) == stated  # it is UTF-8, whatever it says
        assert decode_page("é".encode("utf-16")) == "é"
        with pytest.raises(TextsError, match="looks like cp1252"):
            decode_page(b"<meta charset=nonsense>\xe9")
        assert decode_page(b"<meta charset=nonsense>\xe9", "cp1252") == "<meta charset=nonsense>é"
