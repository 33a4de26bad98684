"""PatentMIA and CCNewsPDD in the form that our builders write."""

import json

import pytest

from pretrace.corpora import open_corpus
from pretrace.corpora.benchmarks.loaders import ccnewspdd, patentmia
from pretrace.errors import ExpressionError, TextsError


def write(path, *rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


def snippet(page, length, label):
    told = {"label": label, "group": page, "date": "2022-01-01", "length": length}
    return {"id": f"{page}#{length}", "text": "专利" * length, **told}


def article(name, label, kind):
    changed = "" if label else f" by {kind}"
    return {
        "id": name, "text": f"news {name}{changed}", "label": label, "group": f"page {name}",
        "original": f"news {name}", "transformed": 1 - label, "split": "test",
    }  # fmt: skip


def test_patents_and_one_length_of_them(tmp_path):
    write(tmp_path / "patentmia.jsonl", *(snippet(p, n, int(p == "A")) for p in "AB" for n in (64, 512)))
    (tmp_path / "patentmia.card.json").write_text("{}")
    for path in (tmp_path, tmp_path / "patentmia.jsonl"):
        whole = open_corpus(f"patentmia(path={str(path)!r})")
        assert [(t.id, t.member, t.group) for t in whole.texts] == [
            (f"{page}#{length}", page == "A", page) for page in "AB" for length in (64, 512)
        ]
    short = patentmia(str(tmp_path), length=64)
    assert [t.id for t in short.texts] == ["A#64", "B#64"]
    assert short.texts[0].meta["date"] == "2022-01-01"
    with pytest.raises(TextsError, match="no text with length 100"):
        patentmia(str(tmp_path), 100)
    with pytest.raises(ExpressionError, match="length must be a number of words, found 0"):
        patentmia(str(tmp_path), 0)


def test_patents_in_another_form(tmp_path):
    with pytest.raises(TextsError, match="lacks 'id', 'group', 'length'"):
        patentmia(str(write(tmp_path / "t.jsonl", {"text": "a", "label": 1})))
    with pytest.raises(ExpressionError, match=r"written patentmia\(path, length=None\)"):
        open_corpus("patentmia()")


@pytest.fixture
def news(tmp_path):
    for kind in ("mask", "prompt"):
        write(tmp_path / f"{kind}.jsonl", article("a", 1, kind), article("b", 0, kind))
        (tmp_path / f"{kind}.card.json").write_text("{}")
    return tmp_path


def test_news_of_each_kind(news):
    masked = open_corpus(f"ccnewspdd(path={str(news)!r}, kind='mask')")
    assert [(t.id, t.text, t.member, t.group, t.meta["transformed"]) for t in masked.texts] == [
        ("a", "news a", True, "page a", "0"),
        ("b", "news b by mask", False, "page b", "1"),
    ]
    assert ccnewspdd(str(news), "prompt").texts[1].text == "news b by prompt"
    assert ccnewspdd(str(news / "prompt.jsonl"), "prompt").texts[1].text == "news b by prompt"
    original = ccnewspdd(str(news), "original")
    assert [t.text for t in original.texts] == ["news a", "news b"]
    assert "before any transformation" in original.card.title


def test_news_that_were_not_built(news):
    with pytest.raises(
        TextsError, match=r"holds no trans.jsonl, found mask, prompt; build it: .* --transform trans"
    ):
        ccnewspdd(str(news))
    with pytest.raises(TextsError, match="holds the kind 'mask', asked for 'prompt'"):
        ccnewspdd(str(news / "mask.jsonl"), "prompt")
    with pytest.raises(ExpressionError, match="kind must be one of 'trans', 'mask', 'prompt', 'original'"):
        open_corpus(f"ccnewspdd({str(news)!r}, kind='masked')")
    (news / "empty").mkdir()
    with pytest.raises(TextsError, match="holds no data file"):
        ccnewspdd(str(news / "empty"))
