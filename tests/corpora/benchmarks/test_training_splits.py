"""The Pile and Dolma with Paloma: two sides in files of their own."""

import datasets
import pytest
from made import written

from pretrace.corpora import open_corpus
from pretrace.corpora.benchmarks import PILE_SUBSETS, _facts, dolma_paloma, pile
from pretrace.errors import ExpressionError, TextsError


def write(path, *rows):
    return written(path, rows)


def of(name, text):
    return {"text": text, "meta": {"pile_set_name": name}}


def facts(corpus):
    return [(t.id, t.text, t.member) for t in corpus.texts]


def test_splits_as_the_pile_has_them(tmp_path):
    write(tmp_path / "train" / "00.jsonl.gz", of("HackerNews", "a"), of("Pile-CC", "b"))
    write(tmp_path / "train" / "01.jsonl.gz", of("HackerNews", "c"))
    write(tmp_path / "val.jsonl", of("HackerNews", "d"), of("Pile-CC", "e"))
    write(tmp_path / "test.jsonl", of("HackerNews", "f"))
    corpus = open_corpus(f"pile('HackerNews', path={str(tmp_path)!r})")
    assert facts(corpus) == [
        ("members/train/00.jsonl.gz/0", "a", True),
        ("members/train/01.jsonl.gz/0", "c", True),
        ("nonmembers/test.jsonl/0", "f", False),
        ("nonmembers/val.jsonl/0", "d", False),
    ]
    assert corpus.notes == ("4 of 6 texts taken: those of HackerNews.",)
    assert corpus.card["title"] == "The Pile, HackerNews"
    with pytest.raises(TextsError, match="holds no text of PhilPapers"):
        pile("PhilPapers", str(tmp_path))


def test_a_snapshot_of_the_hub(tmp_path, monkeypatch):
    configs = []
    for config in ("cc", "hackernews"):
        for split in ("train", "val"):
            row = {"text": f"{config} {split}", "butter_fingers": "x"}
            write(tmp_path / config / f"{split}-00000.jsonl", row)
        files = "".join(f"  - {{split: {s}, path: {config}/{s}-*}}\n" for s in ("train", "val"))
        configs.append(f"- config_name: {config}\n  data_files:\n{files}")
    (tmp_path / "README.md").write_text("---\nconfigs:\n" + "".join(configs) + "---\n")
    expected = [("members/0", "cc train", True), ("nonmembers/0", "cc val", False)]
    assert facts(pile("Pile-CC", str(tmp_path))) == expected
    monkeypatch.setitem(_facts("schemas.toml")["pile"], "hub", str(tmp_path))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()
    assert facts(pile("cc")) == expected


def test_one_file_with_labels(tmp_path):
    path = write(tmp_path / "mine.jsonl", {"text": "a", "label": 1}, {"text": "b", "label": 0})
    for place in (path, tmp_path):
        assert facts(pile("arxiv", str(place))) == [("0", "a", True), ("1", "b", False)]
    with pytest.raises(TextsError, match="lacks 'label'"):
        pile("arxiv", str(write(tmp_path / "none.jsonl", {"text": "a"})))


def test_subsets_by_any_of_their_names(tmp_path):
    path = str(write(tmp_path / "mine.jsonl", {"text": "a", "label": 1}))
    assert len(PILE_SUBSETS) == 22
    for name, short in PILE_SUBSETS.items():
        titles = {pile(given, path).card["title"] for given in (name, short, name.lower())}
        assert titles == {f"The Pile, {name}"}
    with pytest.raises(ExpressionError, match="no subset 'hackernew'; there are ArXiv, BookCorpus2"):
        pile("hackernew")


def test_dolma_and_paloma(tmp_path):
    folder = tmp_path / "wikipedia"
    write(folder / "dolma-0001.json.gz", {"id": "x", "text": "a", "source": "wiki", "metadata": {"n": 1}})
    write(folder / "paloma" / "val.jsonl.gz", {"id": "x", "text": "b", "source": "dolma-v1_5"})
    for name in ("dolma-0", "dolma-1"):
        write(tmp_path / "common_crawl" / f"{name}.jsonl", {"text": "c"})
    expected = [("members/0", "a", True), ("nonmembers/0", "b", False)]
    assert facts(dolma_paloma("wikipedia", str(tmp_path))) == expected
    corpus = dolma_paloma("wikipedia", str(folder))
    assert facts(corpus) == expected
    assert corpus.texts[0].meta == {"source": "wiki"}
    with pytest.raises(TextsError, match=r"no file of nonmembers: .* begin with paloma"):
        dolma_paloma("common_crawl", str(tmp_path))


def test_palomas_part_of_dolma_is_no_member(tmp_path):
    write(tmp_path / "dolma" / "wiki.jsonl", {"text": "a"})
    write(tmp_path / "paloma" / "dolma-v1_5" / "wiki.jsonl", {"text": "b"})
    write(tmp_path / "paloma" / "dolma-v1_5" / "val" / "wiki.jsonl", {"text": "c"})
    corpus = dolma_paloma("wikipedia", str(tmp_path))
    assert [(t.text, t.member) for t in corpus.texts] == [("a", True), ("c", False), ("b", False)]
    write(tmp_path / "paloma" / "dolma-v1_7.jsonl", {"text": "d"})
    with pytest.raises(TextsError, match="may hold members or non-members by its path"):
        dolma_paloma("wikipedia", str(tmp_path))


def test_files_that_tell_no_side_are_named(tmp_path):
    for name in ("train", "val", "part2", "part3"):
        write(tmp_path / f"{name}.jsonl", {"text": name})
    corpus = pile("arxiv", str(tmp_path))
    assert [t.text for t in corpus.texts] == ["train", "val"]
    assert corpus.notes == ("2 files not read, whose names tell no side, such as part2.jsonl.",)
