"""`pretrace build patents` and `pretrace build dated`, as a user calls them."""

import pytest
from made import answer_to, read_lines, written

from pretrace.errors import PretraceError

SENTENCE = "所述第{}壳体转动安装在第{}底座，从而降低第{}水泵的噪音。"


@pytest.fixture
def pages(tmp_path):
    rows = [
        {
            "id": f"CN{i}",
            "text": "".join(SENTENCE.format(i * 97 + k, i * 31 + k * k, k * i) for k in range(12)),
            "published": "2015-07-03" if i % 2 else "2024-10-01",
            "priority": "2014-01-01" if i % 2 else "2024-05-01",
        }
        for i in range(12)
    ]
    return written(tmp_path / "pages.jsonl", [*rows, {"id": "undated", "text": "水泵。"}])


def test_patents(pages, tmp_path):
    out = tmp_path / "patentmia.jsonl"
    how = ("--out", out, "--words", "40", "--lengths", "10,40", "--size", "4")
    done = answer_to("build", "patents", pages, *how)
    assert done.exit_code == 0, done.output
    sides = sorted((row["label"], row["length"]) for row in read_lines(out))
    assert sides == [(0, 10)] * 4 + [(0, 40)] * 4 + [(1, 10)] * 4 + [(1, 40)] * 4
    assert "Members: 4; non-members: 4; rows: 16." in done.output
    assert "Left out: 1, no usable date: 'undated'; all in the card." in done.output
    assert "Left out: 4, not drawn:" in done.output
    assert f"Written: {out}, {tmp_path / 'patentmia.card.json'}" in done.output
    assert "Too few texts for a blind baseline" in done.output


def test_dated_warns(tmp_path):
    path = tmp_path / "texts.csv"
    new, old = "the pandemic came by zoom", "a fax from the vinyl shop"
    lines = [
        f"{i},{new if i % 2 else old} {i * 7919 % 101} and more,{'2024' if i % 2 else '2019'}"
        for i in range(60)
    ]
    path.write_text("\n".join(["id,text,published", *lines]))
    arguments = ("build", "dated", path, "--date-column", "published", "--cutoff", "2023-03-01")
    arguments = (*arguments, "--out", tmp_path / "dated.jsonl")
    done = answer_to(*arguments, "--balanced", "--margin-days", "10")
    assert done.exit_code == 0, done.output
    assert "Members: 30; non-members: 30; rows: 60." in done.output
    warning = "Warning: A bag of words that never saw a model tells the two sides apart (AUC 1.000"
    assert warning in done.output
    again = answer_to(*arguments).exception
    assert isinstance(again, PretraceError)
    assert "made with other settings (balanced True, now False, margin_days 10, now 0)" in str(again)
