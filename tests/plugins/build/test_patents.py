"""A small PatentMIA from made-up pages, from the first to the last step."""

import csv
import json
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
from pretrace.errors import TextsError
from pretrace.plugins.build.patents import (
    Dates,
    PageColumns,
    Pages,
    PatentPages,
    PatentSettings,
    build_patents,
    sort_page,
)
from pretrace.plugins.build.segmenting import ChineseWords

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
    words = ChineseWords()
    texts = {page.id: page.text for page in Pages(PatentPages(pages))}
    starts = set()
    for row in built.rows:
        text = str(row["text"])
        page = texts[str(row["id"])]
        assert len(words.spans(text)) == 120
        assert text in page
        assert made.HEADING not in text
        starts.add(page.index(text))
    assert len(starts) > 12, "from random places"
    assert any("\n" in str(row["text"]) for row in built.rows)


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
    words = ChineseWords()
    for row in series.rows:
        assert row["id"] == f"{row['group']}#{row['length']}"
        assert whole[str(row["group"])].startswith(str(row["text"]))
        assert len(words.spans(str(row["text"]))) == row["length"]
    opened = open_corpus(f"patentmia(path='{series.out}', length=60)").texts
    assert sum(bool(text.member) for text in opened) == 5 == len(opened) / 2


def test_dates_from_a_table_and_from_names(tmp_path):
    place = tmp_path / "pages"
    (place / "sub").mkdir(parents=True)
    for name in ("a.txt", "sub/b.txt", "c.published-2019-05-21.priority-2018-01-05.txt"):
        (place / name).write_text(made.text(name), encoding="utf-8")
    (place / "gbk.html").write_bytes(f"<meta charset=gb2312><p>{made.text('g')}".encode("gb18030"))
    table = "page,published,priority\na.txt,2015-07-03,\nsub/b,,2024-06\ngone,,\n"
    (tmp_path / "dates.csv").write_text(table)
    reader = Pages(PatentPages(place, dates=tmp_path / "dates.csv"))
    found = {page.id: (str(page.dates.published), str(page.dates.priority)) for page in reader}
    assert found == {
        "a.txt": ("2015-07-03", "None"),
        "c.published-2019-05-21.priority-2018-01-05.txt": ("2019-05-21", "2018-01-05"),
        "gbk.html": ("None", "None"),
        "sub/b.txt": ("None", "2024-06-01/2024-06-30"),
    }
    gone, other = reader.notes()
    assert gone == "The dates file names 1 page that are not among the pages, such as 'gone'."
    assert other in ("1 page not in UTF-8 read as gb2312.", "1 page not in UTF-8 read as gb18030.")


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
    found = list(Pages(PatentPages(path)))
    dated = {page.id: str(page.dates.published) for page in found}
    assert dated == {"CN1": "2019-01-01", "CN2": "2020-02-02"}
    assert found[1].text == made.text("CN2").replace("\n", " ")
    with pytest.raises(TextsError, match=r"no column 'when'; it has 'id', 'html'"):
        list(Pages(PatentPages(path, PageColumns(published="when"))))
    if kind == "jsonl":
        path.write_text(json.dumps({**rows[0], "id": [1]}))
        with pytest.raises(TextsError, match=r"row 0 holds \[1\] where a name"):
            list(Pages(PatentPages(path)))


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
    found = sort_page(Dates(days(published), days(priority)), date(2023, 1, 1), date(2024, 3, 1))
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
            list(Pages(PatentPages(tmp_path / name)))
