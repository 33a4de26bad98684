"""Benchmarks whose labels and copies are known from the training, on small files in the form they are published in."""

import json

import pytest
from made import evaluate
from made import written as write
from tiny import make_tokenizer

from pretrace.corpora import open_corpus
from pretrace.corpora.benchmarks.loaders import checkmia, copyright_traps, hubble, panorama, toaa
from pretrace.errors import ExpressionError, TextsError
from pretrace.scoring.detect import Options, detect
from pretrace.scoring.plan import Models
from pretrace.testing import Memory


def facts(corpus):
    return [(text.text, text.member, text.copies) for text in corpus.texts]


def passages(folder):
    write(
        folder / "train-00000-of-00001.jsonl",
        [
            {"text": "twice seen", "meta": json.dumps({"title": "One"}), "duplicates": 4},
            {"text": "the same article", "meta": json.dumps({"title": "One"}), "duplicates": 1},
            {"text": "without a title", "meta": "{}", "duplicates": 256},
        ],
    )
    write(folder / "test-00000-of-00001.jsonl", [{"text": "never", "meta": "not JSON", "duplicates": 0}])
    return folder


def test_hubble_has_copies_and_articles(tmp_path):
    folder = passages(tmp_path / "passages_wikipedia")
    for place in (folder, tmp_path):
        corpus = open_corpus(f"hubble('passages_wikipedia', path={str(place)!r})")
        seen = [("twice seen", True, 4), ("the same article", True, 1), ("without a title", True, 256)]
        assert facts(corpus) == [*seen, ("never", False, 0)]
        assert [text.meta["duplicates"] for text in corpus.texts] == ["4", "1", "256", "0"]
    one, two, three, _ = corpus.texts
    assert one.document == two.document != three.document
    assert corpus.card.title == "Hubble, passages_wikipedia"
    kept = hubble("passages_wikipedia", copies=4, path=str(folder))
    assert facts(kept) == [("twice seen", True, 4), ("never", False, 0)]
    assert kept.notes[-1] == "2 of 4 texts taken: those with 4 copies, or none."
    with pytest.raises(ExpressionError, match=r"copies must be one of 1, 4, 256, found 16"):
        hubble("passages_wikipedia", copies=16, path=str(folder))
    with pytest.raises(ExpressionError, match="hubble: kind must be one of passages_gutenberg_popular"):
        hubble("wikipedia", path=str(folder))
    write(folder / "train-00001.jsonl", [{"text": "none", "duplicates": 0}])
    with pytest.raises(TextsError, match="do not fit the name of its file"):
        hubble("passages_wikipedia", path=str(folder))


def test_hubble_as_one_file(tmp_path):
    rows = [{"text": "a", "duplicates": 0}, {"text": "b", "duplicates": 16}]
    path = write(tmp_path / "all.jsonl.gz", rows)
    assert facts(hubble("testset_piqa", path=str(path))) == [("a", False, 0), ("b", True, 16)]
    with pytest.raises(TextsError, match="holds no nonmembers: give both sides"):
        hubble("testset_piqa", path=str(write(tmp_path / "one.jsonl", rows[1:])))
    for wrong in (-1, 1.5, "many", None, True):
        path = write(tmp_path / "odd.jsonl", [*rows, {"text": "c", "duplicates": wrong}])
        with pytest.raises(TextsError, match=r"row 2.*duplicates should hold a whole number"):
            hubble("testset_piqa", path=str(path))
    with pytest.raises(TextsError, match=r"lacks 'duplicates': Hubble is published with the columns"):
        hubble("testset_piqa", path=str(write(tmp_path / "none.jsonl", [{"text": "c"}])))


def test_evaluation_goes_by_copies_where_a_benchmark_knows_them(tmp_path):
    rows = [{"text": f"text number {i:02}", "duplicates": (0, 1, 0, 4)[i % 4]} for i in range(40)]
    corpus = hubble("passages_wikipedia", path=str(write(tmp_path / "all.jsonl", rows)))
    familiar = [text.text for text in corpus.texts if text.copies == 4]
    run = detect(corpus, Models(Memory(familiar)), "loss", Options(cache=False))
    found = evaluate(run, [text.text for text in corpus.texts], blind=False).by_copies
    assert [(one.least, one.most, one.members) for one in found] == [(1, 1, 10), (3, 4, 10)]
    assert found[1].auc.value == 1.0 > found[0].auc.value


def sequences(tmp_path):
    tokenizer = make_tokenizer()
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    start = tokenizer.bos_token_id
    rows = []
    for number, (condition, member, text) in enumerate(
        [
            ("rare_8tok_16x", 1, "The cat sat on the mat"),
            ("rare_8tok_16x", 0, "one two three"),
            ("plain_1x", 1, "the dog looked on"),
            ("plain_1x", 0, "Nothing was the same"),
        ]
    ):
        ids = tokenizer(text)["input_ids"]
        rows.append(
            {
                "condition": condition, "membership": member, "suffix_type": condition.split("_")[0],
                "duplication": 16 if "16x" in condition else 1, "input_ids": [start, *ids],
                "suffix_start": len(ids), "example_idx": number,
            }
        )  # fmt: skip
    broken = dict(rows[0], example_idx=9, input_ids=[start, *reversed(rows[0]["input_ids"][1:]), 250, 130])
    return write(tmp_path / "data" / "train-00000.jsonl", [*rows, broken]), tmp_path / "tokenizer"


def test_toaa_is_read_from_token_ids(tmp_path):
    path, tokenizer = sequences(tmp_path)
    corpus = toaa("rare_8tok_16x", str(path), str(tokenizer))
    assert facts(corpus) == [("The cat sat on the mat", True, 16), ("one two three", False, 0)]
    assert [text.id for text in corpus.texts] == ["rare_8tok_16x/1/0", "rare_8tok_16x/0/1"]
    assert corpus.notes[-1] == "2 of 3 texts taken: those with the same tokens when read again as text."
    assert facts(toaa("plain_1x", str(path.parent), str(tokenizer)))[0] == ("the dog looked on", True, 1)
    with pytest.raises(ExpressionError, match="condition must be one of plain_1x, rare_8tok_16x"):
        toaa("plain_4x", str(path), str(tokenizer))
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(TextsError, match=r"tokenizer .* cannot be had .* give tokenizer='FOLDER'"):
        toaa("plain_1x", str(path), str(tmp_path / "no.json"))


def test_traps_by_length_and_copies(tmp_path):
    for length, copies in ((100, 1000), (25, 10)):
        hidden = {"text": f"hidden {length}", "label": 1, "perplexity_bucket": 3}
        free = {"text": f"free {length}", "label": 0, "perplexity_bucket": 4}
        write(tmp_path / f"seq_len_{length}_n_rep_{copies}-00000-of-00001.jsonl", [hidden, free])
    corpus = copyright_traps(path=str(tmp_path))
    assert facts(corpus) == [("hidden 100", True, 1000), ("free 100", False, 0)]
    assert [text.meta["perplexity_bucket"] for text in corpus.texts] == ["3", "4"]
    assert facts(copyright_traps(25, 10, str(tmp_path)))[0] == ("hidden 25", True, 10)
    with pytest.raises(TextsError, match="holds 0 files whose names begin with 'seq_len_50_n_rep_100'"):
        copyright_traps(50, 100, str(tmp_path))
    with pytest.raises(ExpressionError, match="length must be one of 25, 50, 100, found 30"):
        open_corpus("copyright_traps(30)")


def test_what_stands_before_a_checkpoint_and_after_it(tmp_path):
    write(tmp_path / "data" / "member-00000.jsonl", [{"text": "read", "tokens": [1, 2]}])
    write(tmp_path / "data" / "nonmember-00000.jsonl", [{"text": "to come", "tokens": [3]}])
    corpus = checkmia("pythia_dedupe_mia_0-90000_90010-90025", str(tmp_path))
    assert [(text.text, text.member) for text in corpus.texts] == [("read", True), ("to come", False)]


def test_people_are_the_documents_of_panorama(tmp_path):
    rows = [
        {"id": "p1", "content-type": "Social Media", "text": "a post"},
        {"id": "p1", "content-type": "Article", "text": "an article"},
        {"id": "p2", "content-type": "Social Media", "text": "another post"},
    ]
    corpus = panorama(path=str(write(tmp_path / "train.jsonl", rows)))
    assert [t.document for t in corpus.texts if t.member is None] == ["p1", "p1", "p2"]
    assert [text.text for text in panorama("Social Media", str(tmp_path)).texts] == ["a post", "another post"]
    with pytest.raises(ExpressionError, match="kind must be one of 'Article', 'Social Media'"):
        panorama("Tweet", str(tmp_path))
