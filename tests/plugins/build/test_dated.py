"""A WikiMIA of one's own: sides by date, what is ambiguous left out, and the warning that words tell dates."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from made import read_lines, written

from pretrace.corpora import open_corpus
from pretrace.errors import OutputError, TextsError
from pretrace.plugins.build.dated import DatedSettings, DatedTexts, build_dated

SETTINGS = DatedSettings(cutoff="2023-03-01", margin_days=30)
DATES = {
    "iso": ("2023-01-29", 1), "old-instant": ("Sat, 28 Jan 2023 23:30:00 +0000", 1),
    "old-seconds": (1600000000, 1), "old-year": ("2022", 1), "old-month": ("2022-12", 1),
    "margin": ("2023-01-30", None), "margin-end": ("2023-02-28", None), "margin-month": ("2023-02", None),
    "month-across": ("2023-01", None), "year-across": ("2023", None),
    "zone-across": ("2023-02-28T23:30:00-05:00", 0), "first-new": ("2023-03-01", 0),
    "new": ("1 April 2024", 0), "new-month": ("2023-03", 0), "undated": ("some day", None),
    "no-date": (None, None),
}  # fmt: skip


def words(seed, count=40, *, topic=()):
    rng = random.Random(seed)
    letters = ("bcdfgklmnprst", "aeiou", "lmnrst")
    plain = ["".join(map(rng.choice, letters)) for _ in range(count)]
    return " ".join([*plain, *topic])


def write(path, rows):
    return str(written(path, rows))


@pytest.fixture
def texts(tmp_path):
    rows = [{"id": name, "text": words(name), "published": written} for name, (written, _) in DATES.items()]
    copy = {"id": "copy", "text": " " + words("iso").replace(" ", "\n"), "published": "2024-01-01"}
    blank = {**copy, "id": "blank", "text": " "}
    return DatedTexts(write(tmp_path / "texts.jsonl", [*rows, copy, blank]), "published")


def labels(built):
    return {str(row["id"]): int(row["label"]) for row in built.rows}


def test_sides_are_told_by_the_date(texts, tmp_path):
    built = build_dated(texts, tmp_path / "a.jsonl", SETTINGS)
    assert labels(built) == {name: label for name, (_, label) in DATES.items() if label is not None}
    assert {why: found["ids"] for why, found in built.card["left_out"].items()} == {
        "a copy of another text": ["copy"],
        "empty": ["blank"],
        "no usable date": ["no-date", "undated"],
        "the date does not tell the side": ["month-across", "year-across"],
        "within the margin": ["margin", "margin-end", "margin-month"],
    }
    dates = {row["id"]: row["date"] for row in built.rows}
    assert dates["zone-across"] == "2023-03-01"
    assert dates["old-year"] == "2022-01-01/2022-12-31"
    assert built.card["counts"] == {"texts": 18, "members": 5, "nonmembers": 4, "groups_on_both_sides": 0}
    assert "Too few texts" in built.card["blind"]["says"]
    assert [text.member for text in open_corpus(str(built.out)).texts].count(True) == 5


def test_without_a_margin_the_day_before_is_a_member(texts, tmp_path):
    built = build_dated(texts, tmp_path / "a.jsonl", DatedSettings(cutoff="2023-03-01"))
    assert labels(built)["margin-end"] == labels(built)["month-across"] == labels(built)["margin-month"] == 1


def test_balanced_and_seeded(texts, tmp_path):
    drawn = []
    for seed in range(4):
        built = build_dated(texts, tmp_path / f"{seed}.jsonl", replace(SETTINGS, balanced=True, seed=seed))
        assert sorted(labels(built).values()) == [0] * 4 + [1] * 4
        assert built.card["left_out"]["not drawn"]["count"] == 1
        drawn.append(tuple(labels(built)))
    assert len(set(drawn)) > 1


def test_the_same_twice_and_other_settings(texts, tmp_path):
    out = tmp_path / "a.jsonl"
    first = build_dated(texts, out, SETTINGS)
    before = out.read_bytes(), first.card_path.read_bytes()
    build_dated(texts, out, SETTINGS)
    assert (out.read_bytes(), first.card_path.read_bytes()) == before
    out.unlink()  # as where a process was killed between the card and the texts
    build_dated(texts, out, SETTINGS)
    assert out.read_bytes() == before[0]
    with pytest.raises(OutputError, match=r"margin_days 30, now 0"):
        build_dated(texts, out, replace(SETTINGS, margin_days=0))
    first.card_path.write_text("{")
    with pytest.raises(OutputError, match="no card of a benchmark that pretrace wrote"):
        build_dated(texts, out, SETTINGS)


def test_texts_are_cut_to_size(texts, tmp_path):
    rows = read_lines(Path(texts.source))
    rows.append({"id": "brief", "text": "two words", "published": "2001-01-01"})
    write(Path(texts.source), rows)
    whole = {row["id"]: row["text"] for row in rows}
    for settings, size in ((replace(SETTINGS, words=10), 10), (replace(SETTINGS, length=30), 30)):
        built = build_dated(texts, tmp_path / f"{size}.jsonl", settings)
        for row in built.rows:
            text = str(row["text"])
            assert whole[row["id"]].startswith(text)
            assert (len(text.split()) if size == 10 else len(text)) == size
        assert built.card["left_out"]["too short"]["ids"] == ["brief"]


@pytest.mark.parametrize("apart", [True, False])
def test_the_blind_baseline_is_told(tmp_path, apart):
    sides = [
        ("2019-01-01", ("fax", "vinyl")),
        ("2024-01-01", ("pandemic", "zoom") if apart else ("fax", "vinyl")),
    ]
    texts = [(sides[i % 2][0], words(str(i), 30, topic=sides[i % 2][1])) for i in range(80)]
    rows = [{"id": f"{i}", "text": t, "date": d, "group": f"site {i % 40}"} for i, (d, t) in enumerate(texts)]
    source = DatedTexts(write(tmp_path / "t.jsonl", rows), "date")
    blind = build_dated(source, tmp_path / "a.jsonl", DatedSettings("2023-01-01")).card["blind"]
    assert blind["tells_apart"] is apart
    assert ("tells the two sides apart" in blind["says"]) is apart
    assert ("not shown to tell" in blind["says"]) is not apart
    if apart:
        assert blind["bag_of_words_auc"][0] > 0.95
        assert "shows nothing about membership" in blind["says"]


def test_a_margin_may_reach_behind_all_dates(texts, tmp_path):
    with pytest.raises(TextsError, match=r"dated before 1023-\d\d-\d\d; .* within the margin: 9"):
        build_dated(texts, tmp_path / "a.jsonl", DatedSettings("2023-03-01", 364_999))
    with pytest.raises(TextsError, match="dated before 0001-01-01"):
        build_dated(texts, tmp_path / "a.jsonl", DatedSettings("1000-01-01", 364_999))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "a b", "date": "2020-01-01"}, "no column 'published'; its first row has 'text', 'date'"),
        ({"text": "a", "published": "soon"}, "no date that can be read, such as 2023-03-01; found 'soon'"),
        (
            {"text": "a b", "published": "2020-01-01"},
            "dated on 2023-03-01 or later; of 1 were left out: none",
        ),
    ],
)
def test_files_that_will_not_do(tmp_path, row, message):
    source = DatedTexts(write(tmp_path / "t.jsonl", [row]), "published")
    with pytest.raises(TextsError, match=message):
        build_dated(source, tmp_path / "out.jsonl", SETTINGS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.jsonl"]
