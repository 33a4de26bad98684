"""HTML pages of patents: their text, and their dates by rule."""

import pytest

from pretrace.plugins.build.patents import read_markup, take_labels

GOOGLE = """<!doctype html><html><head><title>CN1</title>
<meta name="DC.date" content="2018-01-05" scheme="dateSubmitted"><script>var a = "<p>no</p>";</script></head>
<body><article itemscope><header>Google Patents</header>
<dd><time itemprop="priorityDate" datetime="2018-01-05">2018-01-05</time></dd>
<dd><time itemprop="publicationDate" datetime="2019-05-21">2019-05-21</time></dd>
<section itemprop="abstract"><h2>Abstract</h2><div>本发明涉及<b>水泵</b>。</div></section>
<section itemprop="description"><h2>Description</h2><p>第一段<br>第二段<p>第三 段&nbsp;&lt;末&gt;</section>
<table><tr itemprop="backwardReferences" itemscope><td itemprop="publicationDate">1999-01-01</td>
<td itemprop="priorityDate">1998-01-01</td><td>别的专利</td></tr></table>
<tr itemprop="similarDocuments" itemscope><td><time itemprop="publicationDate" datetime="1997-01-01"></time></td></tr>
</article></body></html>"""


JSON_LD = '<script type="application/ld+json">{}</script>'


def dates(html):
    found = read_markup(html)[1]
    return str(found.published), str(found.priority)


def test_a_google_page():
    text, found = read_markup(GOOGLE)
    assert text == "本发明涉及水泵。\n第一段\n第二段\n第三 段 <末>"
    assert (str(found.published), str(found.priority)) == ("2019-05-21", "2018-01-05")


@pytest.mark.parametrize(
    ("html", "published", "priority"),
    [
        ('<meta name="citation_publication_date" content="2019/05/21">', "2019-05-21", "None"),
        ('<meta property="article:published_time" content="2019-05-21T08:00+08:00">', "2019-05-21", "None"),
        ('<meta name="DC.date" content="2019-05-21" scheme="issue">', "2019-05-21", "None"),
        ('<meta name="DC.date" content="2019-05-21" scheme="dateSubmitted">', "None", "None"),
        ('<meta name="priority_date" content="2018-01-05">', "None", "2018-01-05"),
        ('<span itemprop="priorityDate">2018-01-05</span>', "None", "2018-01-05"),
        (JSON_LD.format('{"datePublished": "2019-05-21"}'), "2019-05-21", "None"),
        (JSON_LD.format('{"datePublished": '), "None", "None"),
        ("<dl><dt>公开日</dt><dd>2019.05.21</dd><dt>优先权日</dt><dd>2018年1月5日</dd>", "2019-05-21", "2018-01-05"),
        ("<p>授权公告日：2019-05-21</p><p>【优先权日】2018-01-05</p>", "2019-05-21", "2018-01-05"),
        ("<p>公开(公告)日: 20190521</p>", "2019-05-21", "None"),
        ("<p>Publication date: May 21, 2019</p><p>Priority date 2018-01-05", "2019-05-21", "2018-01-05"),
        ("<p>公开日为2015年3月4日的专利文献CN1公开了一种水泵。</p>", "None", "None"),
        ("<p>nothing</p>", "None", "None"),
    ],
)  # fmt: skip
def test_dates_in_other_forms(html, published, priority):
    assert dates(f"<html><body>{html}</body></html>") == dates(html) == (published, priority)


def test_lines_that_give_the_date_away_are_taken_out():
    page = "一种水泵\n公开日：2019-05-21\n优先权日\n2018-01-05\n正文公开日：2019-05-21。\n公开日：不详\n"
    text, found = take_labels(page)
    assert text == "一种水泵\n正文公开日：2019-05-21。\n公开日：不详\n"
    assert (str(found.published), str(found.priority)) == ("2019-05-21", "2018-01-05")


def test_the_original_of_a_translated_page_is_read():
    html = (
        '<section itemprop="description"><div><span class="notranslate"><span class="google-src-text">水泵</span> '
        'Water pump</span></div><div><span class="google-src-text">壳体</span> Shell</div></section>'
    )
    assert read_markup(html)[0] == "水泵\n壳体"


def test_an_unclosed_head_hides_nothing():
    assert read_markup("<html><head><title>CN1<body><p>水泵</p>")[0].endswith("水泵")


@pytest.mark.parametrize(
    ("line", "published", "priority"),
    [
        ("(43)申请公布日 2019.05.21", "2019-05-21", "None"), ("公开日 | 2019-05-21", "2019-05-21", "None"),
        ("\u3000\u3000（45）授权公告日：2019年5月21日", "2019-05-21", "None"),
        ("公开号：CN118000000A 公开日：2024-07-02", "2024-07-02", "None"),
        ("申请号：202410012345.6；申请日：2024-03-05；优先权日：2024-03-04。", "None", "2024-03-04"),
        ("申请日\n2024.03.05", "None", "None"), ("专利号：ZL 2019 1 0012345.6", "None", "None"),
    ],
)  # fmt: skip
def test_no_form_of_such_a_line_stays(line, published, priority):
    text, found = take_labels(f"一种水泵\n{line}\n正文")
    assert text == "一种水泵\n正文"
    assert (str(found.published), str(found.priority)) == (published, priority)


def test_sentences_that_name_dates_stay():
    page = "公开日：2019-05-21的文献CN1公开了一种水泵。\n申请号为202410012345.6的专利公开了一种水泵。\n"
    page += "参见公开日：2019-05-21。\n申请日\n本发明涉及一种水泵。"
    assert take_labels(page)[0] == page


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>水泵<![", "水泵"), ("<p>水泵<![if !IE]>壳体<![endif]>", "水泵壳体"), ("<p>水泵<![CDATA[ x ]]>", "水泵"),
        ("<p>水泵<!x", "水泵"), ("<p>水泵<!-- 壳体", "水泵"), ("<p>水泵<?php 壳体", "水泵"), ("<p>水\0泵\0", "水泵"),
        ("<p>\ud83d水泵", "\ufffd水泵"), ("<p a=\"<p>\" b='>' c=<p>水泵</p/>", "水泵"),
        ("<nav/><p>水泵</p><nav id=a/>x", "水泵"), ("<script>a</scripty>b</script><p>水泵", "水泵"),
    ],
)  # fmt: skip
def test_odd_markup_is_read_as_browsers_do(html, text):
    assert read_markup(html)[0] == text


@pytest.mark.parametrize("opened", ["<div>", "<a href=x>", "<table><tr><td>"])
def test_what_is_nested_deep_is_read(opened):
    """Not in a tree built by the rules of the standard: 40,000 open <div> take it most of a minute."""
    text, found = read_markup("水泵" + opened * 40_000 + "<p>公开日：2019-05-21</p>底座" + "</div>" * 1000)
    assert (text, str(found.published)) == ("水泵\n底座", "2019-05-21")


LONG = (
    "公开日" + " " * 100_000 + "x", "公开日：2019 " * 10_000, "<a href='" * 560_000, "<!--" * 100_000, "<![" * 100_000,
    "<" * 100_000, "&" * 100_000, "\0" * 100_000, "<div></p>" * 50_000, "<a " * 100_000 + "/>", "<nav>" * 2000 + "x",
)  # fmt: skip


@pytest.mark.parametrize("page", [*LONG, "", "<", "<p", "</p></div>", "<body><body>", "&#xD800;"])
def test_long_and_broken_pages_are_read(page):
    """Most of these would take hours if reading took longer than in proportion to their length."""
    take_labels(page)
    read_markup(page)[0].encode("utf-8", "surrogatepass")
