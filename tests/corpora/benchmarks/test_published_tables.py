"""Tables in a published schema: wrong columns, cells, files and folders, each told in one line."""

import pytest
from made import written

from pretrace.corpora import open_corpus
from pretrace.corpora.benchmarks.loaders import Schema, find_tables, one_table, read_published
from pretrace.errors import TextsError

SCHEMA = Schema("Bench", ("passage", "label", "book"), "passage", group="book", meta=("page",))


@pytest.mark.parametrize(
    ("name", "content"), [("t.jsonl", '{"passage": "a", "y": 1}'), ("t.csv", "passage,y\na,1\n")]
)
def test_wrong_columns_are_told_with_those_that_were_found(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(TextsError) as caught:
        read_published(tmp_path / name, SCHEMA)
    message = str(caught.value)
    assert "lacks 'label', 'book'" in message
    assert "Bench is published with the columns 'passage', 'label', 'book', found 'passage', 'y';" in message
    assert "\n" not in message


def test_the_data_files_of_a_folder(tmp_path):
    for name in (
        "b/train.jsonl",
        "a.csv.gz",
        ".hidden/x.csv",
        "README.txt",
        "dataset_infos.json",
        "a.card.json",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    found = [file.relative_to(tmp_path).as_posix() for file in find_tables(tmp_path)]
    assert found == ["a.csv.gz", "b/train.jsonl"]
    said = r"holds 0 files whose names begin with 'c'.*it has 'a.csv.gz', 'b/train.jsonl': name the one"
    with pytest.raises(TextsError, match=said):
        one_table(tmp_path, "c")
    assert one_table(tmp_path, "a").name == "a.csv.gz"


def test_bookmia(tmp_path):
    books = [{"book_id": i // 2 or None, "book": f"B{i // 2}.txt", "snippet_id": i % 2} for i in range(4)]
    rows = [{**one, "snippet": f"text {i}", "label": int(i < 2)} for i, one in enumerate(books)]
    written(tmp_path / "book_data.jsonl", rows)
    (tmp_path / "README.md").write_text("")
    for path in (tmp_path, tmp_path / "book_data.jsonl"):
        corpus = open_corpus(f"bookmia(path={str(path)!r})")
        found = [(t.id, t.text, t.member, t.group) for t in corpus.texts]
        assert found == [(f"{i}", f"text {i}", i < 2, f"B{i // 2}.txt") for i in range(4)]
        assert "0.91" in corpus.card.flaws[0]
        assert corpus.texts[3].meta == {"book_id": "1", "snippet_id": "1"}
        assert corpus.texts[0].meta["book_id"] == ""
