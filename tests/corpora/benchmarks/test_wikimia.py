"""WikiMIA in its published forms: lengths, groups across them, variants."""

import datasets
import pytest
from made import written

from pretrace.corpora.benchmarks import _facts
from pretrace.corpora.benchmarks import wikimia as module
from pretrace.corpora.benchmarks.wikimia import wikimia
from pretrace.errors import TextsError

ARTICLES = {
    name: " ".join([f"The 2014 {name} took place on 4 July 2014 in", *(f"{name}{i}" for i in range(300))])
    for name in ("Cup", "Storm", "Vote", "Fire")
}


def first(article, words):
    return " ".join(article.split()[:words])


def rows(words, names):
    return [{"input": first(ARTICLES[n], words), "label": int(n in ("Cup", "Storm"))} for n in names]


@pytest.fixture
def folder(tmp_path):
    for words, names in {32: ("Cup", "Storm", "Vote", "Fire"), 64: ("Vote", "Cup"), 128: ("Cup",)}.items():
        written(tmp_path / f"WikiMIA_length{words}.jsonl", rows(words, names))
    written(tmp_path / "WikiMIA_length256.jsonl.gz", rows(256, ("Fire",)))
    (tmp_path / "README.md").write_text("not data")
    return tmp_path


def groups(corpus):
    found = {}
    for text in corpus.texts:
        found.setdefault(text.group, set()).add(text.id)
    return found


def test_one_length(folder):
    corpus = wikimia(length=64, path=str(folder))
    found = [(t.id, len(t.text.split()), t.member) for t in corpus.texts]
    assert found == [("64/0", 64, False), ("64/1", 64, True)]
    assert corpus.card == _facts("cards.toml")["wikimia"]


def test_all_lengths_are_grouped_by_article(folder):
    corpus = wikimia(path=str(folder))
    assert len(corpus) == 8
    found = sorted(map(sorted, groups(corpus).values()))
    assert found == [["128/0", "32/0", "64/1"], ["256/0", "32/3"], ["32/1"], ["32/2", "64/0"]]


def test_longer_texts_find_each_other_without_the_shortest(folder):
    (folder / "WikiMIA_length32.jsonl").unlink()
    assert ["128/0", "64/1"] in map(sorted, groups(wikimia(path=str(folder))).values())


@pytest.mark.parametrize(
    ("texts", "sizes"),
    [
        # a last word that is cut does not part an article
        ([first(ARTICLES["Cup"], 32)[:-3], first(ARTICLES["Cup"], 64)], [2]),
        # short texts are only grouped when they are the same
        (["The", "The", "The cup was won by them in the end, at last", "", ""], [1, 2, 2]),
    ],
)
def test_what_is_one_article(tmp_path, texts, sizes):
    path = written(tmp_path / "own.jsonl", [{"input": text, "label": 1} for text in texts])
    assert sorted(map(len, groups(wikimia(path=str(path))).values())) == sizes


def test_variants_change_texts_and_not_groups(folder):
    plain = wikimia(path=str(folder))
    deleted = wikimia(variant="deletion", path=str(folder))
    moved = wikimia(variant="replacement", path=str(folder))
    assert deleted.texts[0].text.startswith("The Cup took place in Cup0")
    assert moved.texts[0].text.startswith("The 2023 Cup took place on 4 July 2023 in Cup0")
    for other in (deleted, moved):
        facts = ([(t.id, t.group, t.member) for t in one.texts] for one in (other, plain))
        assert next(facts) == next(facts)
        assert "8 of 8 texts" in other.notes[-1]


def test_a_single_file_without_a_length_in_its_name(folder):
    own = written(folder / "mine.jsonl", [*rows(32, ("Cup",)), *rows(64, ("Cup",))])
    for other in folder.glob("WikiMIA*"):
        other.unlink()
    assert len(wikimia(path=str(own))) == 2
    with pytest.raises(TextsError, match="no file with length128 in its name"):
        wikimia(length=128, path=str(own))


def test_a_length_that_is_not_there_is_named(folder):
    assert not wikimia(path=str(folder)).notes
    (folder / "WikiMIA_length64.jsonl").unlink()
    assert wikimia(path=str(folder)).notes == ("No texts of 64 words: no file here is named so.",)
    with pytest.raises(TextsError, match=r"no file with length64 in its name, found 'WikiMIA_length128"):
        wikimia(length=64, path=str(folder))
    with pytest.raises(TextsError, match="length64"):
        wikimia(length=64, path=str(folder / "WikiMIA_length32.jsonl"))


def test_from_the_hub(folder, monkeypatch, tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", cache)
    datasets.disable_progress_bars()
    splits = [f"  - {{split: WikiMIA_length{n}, path: WikiMIA_length{n}.jsonl*}}\n" for n in module.LENGTHS]
    (folder / "README.md").write_text(
        "---\nconfigs:\n- config_name: default\n  data_files:\n" + "".join(splits) + "---\n"
    )
    monkeypatch.setitem(_facts("schemas.toml")["wikimia"], "hub", str(folder))
    online, local = wikimia(), wikimia(path=str(folder))
    assert [(t.id, t.text, t.member, t.group) for t in online.texts] == [
        (t.id, t.text, t.member, t.group) for t in local.texts
    ]
    assert online.source == f"hub:{folder}"


def test_no_part_of_a_length_is_passed_over(folder):
    (folder / "WikiMIA_length64.jsonl").rename(folder / "WikiMIA_length64-00000-of-00002.jsonl")
    assert len(wikimia(length=64, path=str(folder))) == 2
    (folder / "WikiMIA_length64-00001-of-00002.jsonl").write_text('{"input": "a b", "label": 1}\n')
    with pytest.raises(TextsError, match="more than one file of a length"):
        wikimia(length=64, path=str(folder))
