"""`pretrace build`, as a user calls it."""

import json

import pytest
from made import drawn, read_lines, written

SENTENCE = "所述第{}壳体转动安装在第{}底座，从而降低第{}水泵的噪音。"
WORDS = [f"w{i}" for i in range(60)]


@pytest.fixture
def sides(tmp_path):
    """Two files of texts, whose words are not the same."""
    made = ((name, drawn(20, 30, seed=i, name=name, of=WORDS[20 * i :])) for i, name in enumerate("ab"))
    return [written(tmp_path / f"{name}.jsonl", rows) for name, rows in made]


def test_patents(call, tmp_path):
    rows = [
        {
            "id": f"CN{i}",
            "text": "".join(SENTENCE.format(i * 97 + k, i * 31 + k * k, k * i) for k in range(12)),
            "published": "2015-07-03" if i % 2 else "2024-10-01",
            "priority": "2014-01-01" if i % 2 else "2024-05-01",
        }
        for i in range(12)
    ]
    pages = written(tmp_path / "pages.jsonl", [*rows, {"id": "undated", "text": "水泵。"}])
    out = tmp_path / "patentmia.jsonl"
    how = ("--out", out, "--words", "40", "--lengths", "10,40", "--size", "4")
    code, said, error = call("build", "patents", pages, *how)
    assert code == 0, error
    found = sorted((row["label"], row["length"]) for row in read_lines(out))
    assert found == [(0, 10)] * 4 + [(0, 40)] * 4 + [(1, 10)] * 4 + [(1, 40)] * 4
    assert "Members: 4; non-members: 4; rows: 16." in said
    assert "Left out: 1, no usable date: 'undated'; all in the card." in said
    assert f"Written: {out}, {tmp_path / 'patentmia.card.json'}" in said


def test_quality_prints_and_writes(call, tmp_path, sides):
    files = [tmp_path / "new" / name for name in ("quality.json", "again.json")]
    for out in files:
        code, said, error = call("build", "quality", *sides, "--figures", out, "--embeddings", "none")
        assert code == 0, error
    for word in ("1-gram", "2-gram", "JS divergence", "A with A", "A with B", "20 texts of A, 20 of B"):
        assert word in said
    assert all(len(line) <= 80 for line in said.splitlines()[:7])
    plain = json.loads(files[0].read_text())
    assert [row["name"] for row in plain["rows"]] == ["1-gram", "2-gram", "JS divergence", "JS distance"]
    assert plain["rows"][0]["inside"]["value"] > plain["rows"][0]["across"]["value"]
    assert plain["texts"] == {"a": 20, "b": 20}
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("prompt", "--transform prompt needs --rewrite model"),
        ("trans --columns=date=day", "day"),
        ("shout", 'Choose from: "trans", "mask", "prompt"'),
    ],
)
def test_ccnews_refuses_before_it_opens_a_model(call, tmp_path, sides, words, said):
    given = ("--members", sides[0], "--nonmembers", sides[1], "--out", tmp_path / "out", "--transform")
    code, _, error = call("build", "ccnews", *given, *words.split())
    assert (code, said in error) == (2, True), error
    assert not (tmp_path / "out").exists()
