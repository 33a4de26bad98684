"""PatentMIA from made-up pages: their text and dates by rule, what is taken out of them, and the whole of it."""

import contextlib
import csv
import importlib.util
import itertools
import json
import tempfile
from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow
import pytest
from made import read_lines, written
from plugins.build import patent_pages as made
from pyarrow import parquet

from pretrace.corpora import open_corpus
from pretrace.corpora.dates import days
from pretrace.errors import MissingPackageError, TextsError
from pretrace.plugins.build.patents import (
    PatentPages,
    PatentSettings,
    _chinese_share,
    _Dates,
    _drop_lines,
    _find_boilerplate,
    _jieba_tokenizer,
    _Pages,
    _read_markup,
    _snippet,
    _sort_page,
    _take_labels,
    _word_spans,
    build_patents,
)

SETTINGS = PatentSettings(words=120)
LEFT = {
    "a copy of another page": ["copy.html", "copy_of_old.html"],
    "between the two dates": ["between.html"],
    "its dates contradict each other": ["contradiction.html"],
    "nearly a copy of another page": ["near.html"],
    "no usable date": ["undated.txt", "vague.txt"],
    "too little Chinese": ["english.html"],
    "too short": ["short.html"],
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    return Path(made.folder(tmp_path_factory.mktemp("pages") / "pages"))


@pytest.fixture(scope="module")
def built(pages, tmp_path_factory):
    out = tmp_path_factory.mktemp("built") / "patentmia.jsonl"
    return build_patents(PatentPages(pages), out, SETTINGS)


def test_members_are_old_and_non_members_new(built):
    rows = read_lines(built.out)
    assert list(rows[0]) == ["id", "text", "label", "group", "date", "length"]
    assert [row["label"] for row in rows].count(1) == [row["label"] for row in rows].count(0) == 12
    for row in rows:
        assert (row["date"] < "2023-01-01") == bool(row["label"])
        assert (row["date"] > "2024-03-01") != bool(row["label"])
        assert (int(row["id"].removeprefix("CN").removesuffix("A.html")) < 500) == bool(row["label"])
        assert row["group"] == row["id"]


def test_a_snippet_is_so_many_words_of_its_page(built, pages):
    texts = {name: text for name, text, _ in _Pages(PatentPages(pages))}
    starts = set()
    for row in built.rows:
        text = str(row["text"])
        page = texts[str(row["id"])]
        assert len(_word_spans(text)) == 120
        assert text in page
        assert made.HEADING not in text
        starts.add(page.index(text))
    assert len(starts) > 12, "from random places"
    assert any("\n" in str(row["text"]) for row in built.rows)


def test_a_page_of_just_enough_words_is_a_snippet():
    page = {"id": "a", "text": "水泵壳体底座", "group": "a"}
    words = len(_word_spans(page["text"]))
    found = [_snippet(page, PatentSettings(words=n)) for n in (words, words + 1)]
    assert [[row["text"] for row in rows] for rows in found] == [[page["text"]], []]


def test_whatever_was_left_out_is_counted_and_named(built):
    card = json.loads(built.card_path.read_text(encoding="utf-8"))
    assert {why: found["ids"] for why, found in card["left_out"].items()} == LEFT
    assert card["counts"] == {"pages": 33, "members": 12, "nonmembers": 12, "rows": 24}
    assert sum(found["count"] for found in card["left_out"].values()) + 24 == 33
    assert card["boilerplate_lines"] == {made.HEADING: card["boilerplate_lines"][made.HEADING]}
    assert card["settings"]["words"] == 120
    assert set(card["versions"]) == {"pretrace", "jieba", "numpy"}
    assert any("neither .html nor .txt" in note for note in card["notes"])
    assert 0.5 < card["blind"]["bag_of_words_auc"][0] <= 1


def test_a_page_keeps_its_snippet_when_others_go(built, tmp_path):
    fewer = made.folder(tmp_path / "fewer")
    for name in ("CN3A.html", "CN503A.html", "between.html"):
        (fewer / name).unlink()
    other = build_patents(PatentPages(fewer), tmp_path / "fewer.jsonl", SETTINGS)
    mine = {row["id"]: row["text"] for row in built.rows}
    assert len(other.rows) == 22
    assert all(mine[row["id"]] == row["text"] for row in other.rows)
    assert other.card["pages_sha256"] != built.card["pages_sha256"]


def test_the_length_series_has_one_beginning(pages, tmp_path, built):
    settings = replace(SETTINGS, lengths=(30, 60, 120), size=5)
    series = build_patents(PatentPages(pages), tmp_path / "series.jsonl", settings)
    whole = {row["id"]: str(row["text"]) for row in built.rows}
    assert len(series.rows) == 30
    assert series.card["counts"]["rows"] == 30
    left = {why: found["count"] for why, found in series.card["left_out"].items()}
    assert left["not drawn"] == 15 - left.get("too short", 0)
    for row in series.rows:
        assert row["id"] == f"{row['group']}#{row['length']}"
        assert whole[str(row["group"])].startswith(str(row["text"]))
        assert len(_word_spans(str(row["text"]))) == row["length"]
    opened = open_corpus(f"patentmia(path='{series.out}', length=60)").texts
    assert sum(bool(text.member) for text in opened) == 5 == len(opened) / 2


def test_dates_from_a_table_and_from_names(tmp_path):
    place = tmp_path / "pages"
    (place / "sub").mkdir(parents=True)
    for name in ("a.txt", "sub/b.txt", "c.published-2019-05-21.priority-2018-01-05.txt"):
        (place / name).write_text(made.text(name), encoding="utf-8")
    (place / "gbk.html").write_bytes(f"<meta charset=gb2312><p>{made.text('g')}".encode("gb2312"))
    (place / "guessed.txt").write_bytes(made.text("h").encode("gb18030"))
    table = "page,published,priority\na.txt,2015-07-03,\nsub/b,,2024-06\ngone,,\n"
    (tmp_path / "dates.csv").write_text(table)
    reader = _Pages(PatentPages(place, dates=tmp_path / "dates.csv"))
    found = {name: (str(dates.published), str(dates.priority)) for name, _, dates in reader}
    assert found == {
        "a.txt": ("2015-07-03", "None"),
        "c.published-2019-05-21.priority-2018-01-05.txt": ("2019-05-21", "2018-01-05"),
        "gbk.html": ("None", "None"),
        "guessed.txt": ("None", "None"),
        "sub/b.txt": ("None", "2024-06-01/2024-06-30"),
    }
    assert reader.notes() == [
        "1 page named in the dates file not found, such as gone.",
        "1 page not in UTF-8, without another encoding named, read as GB 18030.",
    ]


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_a_table_of_pages(tmp_path, kind):
    first = made.google("CN1", published="2019-01-01", priority="2018-01-01")
    rows = [
        {"id": "CN1", "html": first, "published": ""},
        {"id": "CN2", "html": f"<p>{made.text('CN2')}</p>", "published": "2020-02-02"},
    ]
    path = tmp_path / f"pages.{kind}"
    if kind == "jsonl":
        written(path, rows)
    elif kind == "csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([rows[0], *(row.values() for row in rows)])
    else:
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    found = list(_Pages(PatentPages(path)))
    dated = {name: str(dates.published) for name, _, dates in found}
    assert dated == {"CN1": "2019-01-01", "CN2": "2020-02-02"}
    assert found[1][1] == made.text("CN2").replace("\n", " ")
    with pytest.raises(TextsError, match=r"no column 'when'; .*'id', 'html'"):
        list(_Pages(PatentPages(path, published="when")))
    if kind == "jsonl":
        path.write_text(json.dumps({**rows[0], "id": [1]}))
        with pytest.raises(TextsError, match=r"row 0 .*\[1\]"):
            list(_Pages(PatentPages(path)))


@pytest.mark.parametrize(
    ("published", "priority", "expected"),
    [
        ("2022-12-31", None, True), ("2023-01-01", None, "no publication date|no priority|between"),
        ("2022", "2021", True), ("2024-12-01", "2024-03-02", False), (None, "2024-03-02", False),
        (None, "2024-03-01", "no publication date"), ("2024-12-01", "2024-03-01", "between the two dates"),
        ("2024-12-01", None, "no priority date"),
        ("2024-12-01", "2024", "priority before or after 2024-03-01"),
        (None, "2024-03", "priority before or after 2024-03-01"), ("2022-12/2023", None, "no usable date"),
        ("2019-01-01", "2024-06-01", "contradict"), (None, None, "no usable date"),
    ],
)  # fmt: skip
def test_on_which_side_a_page_is(published, priority, expected):
    found = _sort_page(_Dates(days(published), days(priority)), date(2023, 1, 1), date(2024, 3, 1))
    if isinstance(expected, bool):
        assert found is expected
    else:
        assert isinstance(found, str)
        assert any(part in found for part in expected.split("|"))


def test_nothing_left_says_why_and_writes_nothing(tmp_path):
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "a.txt").write_text("公开日：2019-01-01\n水泵。")
    (tmp_path / "pages" / "empty.txt").write_text("")
    out = tmp_path / "out" / "a.jsonl"
    with pytest.raises(
        TextsError,
        match=r"no page of 512 words whose priority date is after 2024-03-01; of 2 pages .* no usable date: 1\.",
    ):
        build_patents(PatentPages(tmp_path / "pages"), out, PatentSettings())
    assert not out.parent.exists()
    (tmp_path / "empty").mkdir()
    for name, message in (("gone", "no file or folder"), ("empty", r"holds no \.txt file")):
        with pytest.raises(TextsError, match=message):
            list(_Pages(PatentPages(tmp_path / name)))


# Pages of HTML: their text, and their dates by rule.

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


def dates(html):
    found = _read_markup(html)[1]
    return str(found.published), str(found.priority)


def test_a_google_page():
    text, found = _read_markup(GOOGLE)
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


def test_the_original_of_a_translated_page_is_read():
    html = (
        '<section itemprop="description"><div><span class="notranslate"><span class="google-src-text">水泵</span> '
        'Water pump</span></div><div><span class="google-src-text">壳体</span> Shell</div></section>'
    )
    assert _read_markup(html)[0] == "水泵\n壳体"


@pytest.mark.parametrize(
    ("line", "published", "priority"),
    [
        ("(43)申请公布日 2019.05.21", "2019-05-21", "None"), ("公开日 | 2019-05-21", "2019-05-21", "None"),
        ("\u3000\u3000（45）授权公告日：2019年5月21日", "2019-05-21", "None"),
        ("公开号：CN118000000A 公开日：2024-07-02", "2024-07-02", "None"),
        ("申请号：202410012345.6；申请日：2024-03-05；优先权日：2024-03-04。", "None", "2024-03-04"),
        ("优先权日\n2018-01-05", "None", "2018-01-05"),
        ("申请日\n2024.03.05", "None", "None"), ("专利号：ZL 2019 1 0012345.6", "None", "None"),
    ],
)  # fmt: skip
def test_no_form_of_such_a_line_stays(line, published, priority):
    text, found = _take_labels(f"一种水泵\n{line}\n正文")
    assert text == "一种水泵\n正文"
    assert (str(found.published), str(found.priority)) == (published, priority)


def test_sentences_that_name_dates_stay():
    page = "公开日：2019-05-21的文献CN1公开了一种水泵。\n申请号为202410012345.6的专利公开了一种水泵。\n"
    page += "参见公开日：2019-05-21。\n公开日：不详\n申请日\n本发明涉及一种水泵。"
    assert _take_labels(page)[0] == page


LONG = (
    "公开日" + " " * 100_000 + "x", "公开日：2019 " * 10_000, "<a href='" * 560_000, "<!--" * 100_000, "<![" * 100_000,
    "<" * 100_000, "&" * 100_000, "\0" * 100_000, "<div></p>" * 50_000, "<a " * 100_000 + "/>", "<nav>" * 2000 + "x",
)  # fmt: skip


@pytest.mark.parametrize("page", [*LONG, "", "<", "<p", "</p></div>", "<body><body>", "&#xD800;"])
def test_long_and_broken_pages_are_read_or_refused(page):
    """Most of these would take hours if reading took longer than in proportion to their length."""
    _take_labels(page)
    with contextlib.suppress(TextsError):  # of tags that stand open within each other
        _read_markup(page)[0].encode("utf-8", "surrogatepass")


# What is taken out of pages, and their words.

TEXT = "本发明涉及一种水泵，包括壳体 10 与 LED 灯；\n\n  所述壳体\u3000设有进水口。\r\n"


def test_words_tile_the_text_but_for_white_space():
    spans = _word_spans(TEXT)
    whole = _jieba_tokenizer()[0].cut(TEXT)
    assert [TEXT[a:b] for a, b in spans] == [word for word in whole if not word.isspace()]
    gaps = [TEXT[a:b] for (_, a), (b, _) in itertools.pairwise(spans)]
    assert all(not gap.strip() for gap in gaps)
    assert "".join(TEXT[a:b] for a, b in spans) == "".join(TEXT.split())


def test_a_run_without_end_is_cut():
    assert _word_spans("的" * 30_000)[-1][1] == 30_000
    assert not _word_spans("")
    assert not _word_spans(" \n")


def test_jieba_leaves_nothing_behind_and_says_nothing(capfd):
    cache = Path(tempfile.gettempdir()) / "jieba.cache"
    before = cache.stat().st_mtime_ns if cache.exists() else None
    _jieba_tokenizer.cache_clear()
    _jieba_tokenizer()
    assert (cache.stat().st_mtime_ns if cache.exists() else None) == before
    assert capfd.readouterr() == ("", "")


def test_without_jieba_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    _jieba_tokenizer.cache_clear()
    with pytest.raises(MissingPackageError, match=r"pip install jieba$"):
        _word_spans("")


def test_the_share_of_chinese():
    assert _chinese_share("水泵 ab\n") == 0.5
    assert _chinese_share(" ") == 0.0
    assert _chinese_share("\U00020000") == 1.0


def test_boilerplate_stands_on_many_pages():
    texts = [f"Google Patents\n  返回 \n第{i}页\n" for i in range(40)] + ["x"] * 60
    lines = _find_boilerplate(texts, 0.2)
    assert lines == {"x": 60, "Google Patents": 40, "返回": 40}
    assert _drop_lines(texts[3], lines) == "第3页\n"
    assert _find_boilerplate(["a\na"] * 9, 0.0) == {}
    assert _find_boilerplate(texts, 0.6) == {}  # as many are not more


def test_pages_of_one_template_stay(tmp_path):
    """Half of such a page is that of all others."""
    common = made.text("template", 24)
    for i in range(30):
        text = f"公开日：{'2019-01-01' if i % 2 else '2024-07-01'}\n优先权日：{'2018' if i % 2 else '2024'}-06-01\n"
        (tmp_path / f"{i}.txt").write_text(f"{text}{common}\n{made.text(f'own {i}', 24)}", encoding="utf-8")
    settings = replace(SETTINGS, words=100, boilerplate=1.0)
    card = build_patents(PatentPages(tmp_path), tmp_path / "out.jsonl", settings).card
    assert "nearly a copy of another page" not in card["left_out"]
