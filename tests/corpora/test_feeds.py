"""RSS and Atom feeds saved as files, and sitemaps, which hold no texts."""

import pytest

from pretrace.corpora import Columns, open_corpus, open_stream
from pretrace.corpora.webpages import ONLY_SUMMARY
from pretrace.errors import TextsError

RSS = """<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:atom="http://www.w3.org/2005/Atom"
     xmlns:dc="http://purl.org/dc/elements/1.1/">
<channel><title>Site</title><description>About</description><link>https://a.example</link>
<item><title>One &amp; only</title><atom:link href="x"/><link>https://a.example/1</link><guid>g1</guid>
<pubDate>Tue, 28 Feb 2023 23:30:00 -0500</pubDate><dc:creator>Ann</dc:creator>
<description>short</description><content:encoded><![CDATA[<p>Whole <b>text</b></p><p>two</p>]]></content:encoded></item>
<item><title>Second</title><link>https://a.example/2</link><description>a &amp;lt; b
next</description></item>
</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>Site</title>
<entry><title>One</title><id>urn:1</id><link rel="edit" href="no"/><link href="https://a.example/1"/>
<author><name>Ann</name></author><published>2023-03-01T01:00:00+02:00</published><updated>2024-01-01T00:00:00Z</updated>
<content type="html">&lt;p&gt;Whole&lt;/p&gt;</content></entry>
<entry><title>Two</title><id>urn:2</id><updated>2024-01-02T00:00:00Z</updated>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>Up <i>and</i></p>down</div></content></entry>
<entry><title>Three</title><id>urn:3</id><summary>a &lt;b&gt; c</summary></entry></feed>"""
RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
 xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="c"><title>S</title></channel>
<item rdf:about="https://a.example/1"><title>One</title><description>text</description><dc:date>2010-05</dc:date></item>
</rdf:RDF>"""
DEEP = "<a>" * 5000 + "</a>" * 5000
MORE = Columns(more=("date", "title", "author", "link"))


def saved(folder, content, name="feed.xml"):
    (folder / name).write_text(content, encoding="utf-8")
    return folder / name


def test_rss(tmp_path):
    corpus = open_corpus(saved(tmp_path, RSS), MORE)
    one, two = corpus.texts
    assert (one.id, one.text, dict(one.meta)) == (
        "g1",
        "Whole text\ntwo",
        {"date": "2023-03-01", "title": "One & only", "author": "Ann", "link": "https://a.example/1"},
    )
    assert (two.id, two.text, two.meta["date"]) == ("https://a.example/2", "a < b\nnext", "")
    assert corpus.notes == (f"1 text: {ONLY_SUMMARY}.",)
    assert corpus.name == "feed"


def test_atom(tmp_path):
    one, two, three = open_corpus(saved(tmp_path, ATOM, "feed.atom"), MORE).texts
    assert (one.id, one.text) == ("urn:1", "Whole")
    assert (one.meta["date"], one.meta["link"]) == ("2023-02-28", "https://a.example/1")
    assert (two.text, two.meta["date"]) == ("Up and\ndown", "2024-01-02")
    assert (three.text, three.meta["date"]) == ("a <b> c", "")


def test_rss_1(tmp_path):
    (text,) = open_corpus(saved(tmp_path, RDF, "old.rss"), MORE).texts
    assert (text.id, text.text, text.meta["date"]) == ("https://a.example/1", "text", "2010-05")


def test_an_entry_without_text(tmp_path):
    path = saved(tmp_path, RSS.replace("<description>a &amp;lt; b\nnext</description>", ""))
    with pytest.raises(TextsError, match=r"entry 1 \(Second\) has neither"):
        open_corpus(path)
    stream = open_stream(path, skip_unreadable=True)
    assert [text.id for text in stream.texts()] == ["g1"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("<urlset><url><loc>https://a.example/1</loc></url></urlset>", "is a sitemap and holds no texts"),
        ("<sitemapindex><sitemap><loc>x</loc></sitemap></sitemapindex>", "is a sitemap and holds no texts"),
        ("<html><p>x</p></html>", "neither RSS nor Atom"),
        ("<rss><channel>", "not XML"),
        (" ", "is empty"),
        ("<rss><channel/></rss>", "holds no texts"),
        ('<!DOCTYPE rss [<!ENTITY a "aa">]><rss><channel/></rss>', "document type"),
        ('<!DOCTYPE rss SYSTEM "file:///etc/passwd"><rss><channel/></rss>', "document type"),
        (f"<feed><entry><content type='xhtml'>{DEEP}</content></entry></feed>", "nested too deeply"),
    ],
)
def test_what_is_refused(tmp_path, content, words):
    with pytest.raises(TextsError, match=words) as caught:
        open_corpus(saved(tmp_path, content))
    assert "\n" not in str(caught.value)
