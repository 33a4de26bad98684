"""Boilerplate and copies, words and snippets."""

import importlib.util
import itertools
import random
import tempfile
from pathlib import Path

import pytest

from pretrace.errors import MissingPackageError
from pretrace.plugins.build.patents import Near, drop_lines, find_boilerplate, jaccard, shingles
from pretrace.plugins.build.segmenting import ChineseWords, _tokenizer, chinese_share

TEXT = "本发明涉及一种水泵，包括壳体 10 与 LED 灯；\n\n  所述壳体\u3000设有进水口。\r\n"


@pytest.fixture(scope="module")
def words():
    return ChineseWords()


def made(seed, length=1500):
    rng = random.Random(seed)
    return "".join(chr(rng.randrange(0x4E00, 0x9000)) for _ in range(length))


def test_words_tile_the_text_but_for_white_space(words):
    spans = words.spans(TEXT)
    whole = _tokenizer()[0].cut(TEXT)
    assert [TEXT[a:b] for a, b in spans] == [word for word in whole if not word.isspace()]
    gaps = [TEXT[a:b] for (_, a), (b, _) in itertools.pairwise(spans)]
    assert all(not gap.strip() for gap in gaps)
    assert "".join(TEXT[a:b] for a, b in spans) == "".join(TEXT.split())


def test_a_run_without_end_is_cut(words):
    assert words.spans("的" * 30_000)[-1][1] == 30_000
    assert not words.spans("")
    assert not words.spans(" \n")


def test_jieba_leaves_nothing_behind_and_says_nothing(capfd):
    cache = Path(tempfile.gettempdir()) / "jieba.cache"
    before = cache.stat().st_mtime_ns if cache.exists() else None
    _tokenizer.cache_clear()
    ChineseWords()
    assert (cache.stat().st_mtime_ns if cache.exists() else None) == before
    assert capfd.readouterr() == ("", "")


def test_without_jieba_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"pip install jieba$"):
        ChineseWords()


def test_the_share_of_chinese():
    assert chinese_share("水泵 ab\n") == 0.5
    assert chinese_share(" ") == 0.0
    assert chinese_share("\U00020000") == 1.0


def test_boilerplate_stands_on_many_pages():
    texts = [f"Google Patents\n  返回 \n第{i}页\n" for i in range(40)] + ["x"] * 60
    lines = find_boilerplate(texts, 0.2)
    assert lines == {"x": 60, "Google Patents": 40, "返回": 40}
    assert drop_lines(texts[3], lines) == "第3页\n"
    assert find_boilerplate(["a\na"] * 9, 0.0) == {}
    assert find_boilerplate(texts, 0.7) == {}


def test_near_copies_are_found_and_others_are_not():
    near = Near(0.8)
    assert not any(near.known(made(seed)) for seed in range(30))
    for seed in range(30):
        text = made(seed)
        assert near.known(text[:1480] + made(99, 20)), "a new end"
        assert near.known(" ".join(text))
        assert not near.known(text[:700] + made(1000 + seed, 800)), "half of it"


def test_the_jaccard_index_is_that_of_shingle_sets():
    one, other = made(1, 100), made(1, 100)[:60] + made(2, 40)
    sets = [{text[i : i + 8] for i in range(93)} for text in (one, other)]
    expected = len(sets[0] & sets[1]) / len(sets[0] | sets[1])
    assert jaccard(shingles(one), shingles(other)) == pytest.approx(expected)
    assert 0 < expected < 1


@pytest.mark.parametrize("text", ["", "水", "水泵水泵水", "\ud83d" * 20])
def test_short_texts_have_a_sketch(text):
    near = Near(0.8)
    assert not near.known(text)
    assert near.known(text)
    assert not near.known(made(5))
