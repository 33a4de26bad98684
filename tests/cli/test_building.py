"""`pretrace build`, as a user calls it."""

import json

import pytest
from made import drawn, read_lines, written

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


def test_patents(pages, tmp_path, ask):
    out = tmp_path / "patentmia.jsonl"
    how = ("--out", out, "--words", "40", "--lengths", "10,40", "--size", "4")
    said = "".join(ask("build", "patents", pages, *how))
    sides = sorted((row["label"], row["length"]) for row in read_lines(out))
    assert sides == [(0, 10)] * 4 + [(0, 40)] * 4 + [(1, 10)] * 4 + [(1, 40)] * 4
    for words in (
        "Members: 4; non-members: 4; rows: 16.",
        "Left out: 1, no usable date: 'undated'; all in the card.",
    ):
        assert words in said
    assert f"Written: {out}, {tmp_path / 'patentmia.card.json'}" in said


WORDS = [f"w{i}" for i in range(60)]


def texts(path, number, seed, *, first=0):
    return written(path, drawn(number, 30, seed=seed, name=path.stem, of=WORDS[first:]))


def test_quality_prints_and_writes(tmp_path, ask):
    a, b = texts(tmp_path / "a.jsonl", 20, 0), texts(tmp_path / "b.jsonl", 10, 1, first=20)
    out = tmp_path / "new" / "quality.json"
    said, _ = ask("build", "quality", a, b, "--figures", out, "--embeddings", "none")
    for word in ("1-gram", "2-gram", "JS divergence", "A with A", "A with B", "20 texts of A, 10 of B"):
        assert word in said
    assert all(len(line) <= 80 for line in said.splitlines()[:7])
    plain = json.loads(out.read_text())
    assert [row["name"] for row in plain["rows"]] == ["1-gram", "2-gram", "JS divergence", "JS distance"]
    assert plain["rows"][0]["inside"]["value"] > plain["rows"][0]["across"]["value"]
    assert plain["texts"] == {"a": 20, "b": 10}
    again = tmp_path / "again.json"
    ask("build", "quality", a, b, "--figures", again, "--embeddings", "none")
    assert again.read_bytes() == out.read_bytes()


def test_ccnews_refuses_before_it_opens_a_model(tmp_path, ask):
    a, b = texts(tmp_path / "a.jsonl", 8, 0), texts(tmp_path / "b.jsonl", 8, 1)
    given = ("build", "ccnews", "--members", a, "--nonmembers", b, "--out", tmp_path / "out", "--transform")
    for words, said in (
        (["prompt"], "--transform prompt needs --rewrite model"),
        (["trans", "--columns=date=day"], "day"),
        (["shout"], '--transform. Choose from: "trans", "mask", "prompt"'),
    ):
        assert said in ask(*given, *words, code=2)[1]
    assert not (tmp_path / "out").exists()


def test_ccnews_by_a_model_here(tmp_path, monkeypatch, ask):
    from pretrace.plugins.build import ccnews as transforms

    class Opened:
        facts: dict[str, str] = {"name": "shouter"}  # noqa: RUF012

        def change(self, some, seed):
            return [transforms.Changed(text.upper() + " again") for text in some]

    monkeypatch.setattr(transforms.BackTranslation, "open", lambda self: Opened())
    a, b = texts(tmp_path / "a.jsonl", 12, 0), texts(tmp_path / "b.jsonl", 12, 1)
    given = ["--members", a, "--nonmembers", b, "--out", tmp_path / "out", "--transform", "trans"]
    said, _ = ask("build", "ccnews", *given, "--texts", 24, "--words=least=5", "--transform-both")
    assert "24 texts, 12 of them members" in said
    for word in ("- originals: ", "- as published: ", "- both sides: ", "Card: "):
        assert word in said
    rows = read_lines(tmp_path / "out" / "trans.jsonl")
    assert all(row["text"].endswith(" again") for row in rows)
    card = json.loads((tmp_path / "out" / "trans.card.json").read_text())
    assert card["settings"]["there"] == "Helsinki-NLP/opus-mt-en-fr"
    assert card["settings"]["sources"]["members"]["texts"] == 12
