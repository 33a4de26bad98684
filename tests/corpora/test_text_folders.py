"""Folders as sources: shards, splits, what is left out and told, links, and what cannot be reached."""

import json
import os
from pathlib import Path

import datasets
import pytest

from pretrace.corpora import Columns, open_corpus, open_stream
from pretrace.corpora.folders import walk
from pretrace.errors import TextsError
from pretrace.plugins.scan.corpus import files_of


def put(place, **files):
    """Files in a folder; `__` in a name is a dot, `_I_` a slash."""
    for name, content in files.items():
        path = place / name.replace("__", ".").replace("_I_", "/").replace("_o_", "-")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return place


def lines(*texts):
    return "".join(json.dumps({"text": text}) + "\n" for text in texts)


def texts(place, **how):
    return [one.text for one in open_corpus(place, Columns(**how)).texts]


def test_texts_in_order_with_their_paths(tmp_path):
    files = {"b__txt": "second\r\n", "a_I_z__txt": "first", "empty__txt": "", "x__TXT": " \n"}
    place = put(tmp_path / "c", **files, readme__md="no", __h__md="no")
    corpus = open_corpus(place)
    read = [("a/z.txt", "first"), ("b.txt", "second\r\n"), ("empty.txt", ""), ("x.TXT", " \n")]
    assert [(t.id, t.text, t.group) for t in corpus.texts] == [(*one, "") for one in read]
    assert (corpus.name, corpus.notes) == ("c", ("2 files in the folder left out: '.h.md', 'readme.md'.",))
    for wrong, columns, said in (
        (place, Columns(label="member"), "'text', 'id'"),  # it has no labels to name
        (put(tmp_path / "d", readme__md="no"), Columns(), r"holds no \.txt file"),
    ):
        with pytest.raises(TextsError, match=said):
            open_corpus(wrong, columns)


def test_a_list_in_other_bytes_than_utf_8_is_one_of_rows(tmp_path):
    place = tmp_path / "lists"
    place.mkdir()
    (place / "a.json").write_text('[{"text": "one"}]', encoding="utf-16")
    (place / "b.json").write_text('[{"text": "two"}]', encoding="utf-8")
    assert texts(place) == ["one", "two"]


def test_what_datasets_saves_is_read(tmp_path):
    """Its own files, with its own end marks."""
    data = datasets.Dataset.from_dict({"text": [f"text {i}" for i in range(10)], "label": [1, 0] * 5})
    data.save_to_disk(tmp_path / "one", num_shards=3)
    assert texts(tmp_path / "one") == data["text"][:]
    datasets.DatasetDict({"train": data, "test": data.select([3])}).save_to_disk(tmp_path / "two")
    assert texts(tmp_path / "two", split="test") == ["text 3"]
    with pytest.raises(TextsError, match="has the splits 'test', 'train': name one with --reading split="):
        texts(tmp_path / "two", split="dev")
    (tmp_path / "one" / "cache-0123456789abcdef.arrow").write_bytes(b"what a later step left there")
    assert texts(tmp_path / "one") == data["text"][:]
    data.save_to_disk(tmp_path / "one", num_shards=1)  # which leaves the three
    with pytest.raises(TextsError, match="holds data in 1 and in 3 parts"):
        texts(tmp_path / "one")


def test_splits_by_the_names_of_files_and_folders(tmp_path):
    place = put(tmp_path / "a", train__jsonl=lines("a"), test__jsonl=lines("b"))
    corpus = open_corpus(place, Columns(split="test"))
    assert [text.text for text in corpus.texts] == ["b"]
    assert corpus.notes == ("The split 'test' of the folder was read, and not 'train'.",)
    with pytest.raises(TextsError, match="has the splits 'test', 'train'"):
        texts(place)
    assert texts(put(tmp_path / "b", train_I_0__jsonl=lines("a"), train_I_1__jsonl=lines("b"))) == ["a", "b"]
    parts = put(tmp_path / "c", train_o_00000_o_of_o_00002__jsonl=lines("a"))
    with pytest.raises(TextsError, match="holds 1 of the 2 parts of train"):
        texts(parts)
    with pytest.raises(TextsError, match="has no splits: leave out --reading split"):
        texts(put(tmp_path / "d", mine__jsonl=lines("a")), split="test")
    # control documents need not have the split
    assert len(open_corpus(tmp_path / "d", Columns(split="test").of_another)) == 1


def test_a_row_of_a_shard_names_its_file(tmp_path):
    place = put(tmp_path / "a", a__jsonl=lines("a"), b__jsonl=lines("b") + '{"text": 3}\n')
    with pytest.raises(TextsError, match=r"row 2 \(b\.jsonl\) \(line 2\) has no text"):
        texts(place)
    told = []
    assert len(list(open_stream(place, skip_unreadable=True).texts(told.append))) == 2
    assert len(told) == 1


def test_shards_without_endings_and_json_that_is_no_table(tmp_path):
    parts = {"part_o_0": lines("a"), "part_o_1": lines("b")}
    place = put(tmp_path, **parts, _SUCCESS="", package__json='{\n "a": 1\n}')
    corpus = open_corpus(place)
    assert [text.text for text in corpus.texts] == ["a", "b"]
    assert corpus.notes == ("2 files in the folder left out: '_SUCCESS', 'package.json'.",)


def test_tables_beside_documents_are_not_passed_over(tmp_path):
    place = put(tmp_path, a__md="A text.", b__csv="text\nanother\n", LICENSE__txt="no")
    with pytest.raises(TextsError, match=r"holds tables \('b\.csv'\) and documents \('a\.md'\): say which"):
        texts(place)
    assert texts(place, files="*.csv") == ["another"]
    assert texts(place, files="*.md,*.txt") == ["no", "A text."]


def test_source_code_is_read_where_it_is_named(tmp_path):
    place = put(tmp_path, a__py="x = 1\n", in_I_b__py="", c__rs="fn main() {}\n", d__md="# d")
    corpus = open_corpus(place, Columns(files="*.py, *.rs"))
    found = {one.id: one.text for one in corpus.texts}
    assert found == {"a.py": "x = 1\n", "c.rs": "fn main() {}\n", "in/b.py": ""}
    assert "1 file in the folder left out: 'd.md'." in corpus.notes
    assert [one.text for one in open_corpus(place / "a.py", Columns(files="*.py")).texts] == ["x = 1\n"]
    with pytest.raises(TextsError, match="--reading files"):
        open_corpus(place / "a.py")


def test_links_are_followed_once(tmp_path):
    put(tmp_path, a_I_one__txt="one", b_I_two__txt="two")
    place = tmp_path / "a"
    (place / "linked").symlink_to(tmp_path / "b")
    (place / "loop").symlink_to(place)
    (place / "in").mkdir()
    (place / "in" / "above").symlink_to("..")
    (place / "again.txt").symlink_to(place / "one.txt")
    assert [one.id for one in open_corpus(place).texts] == ["linked/two.txt", "one.txt"]
    assert [Path(one.address).name for one in files_of([str(place)])] == ["two.txt", "one.txt"]


def test_what_cannot_be_reached_is_told(tmp_path):
    place = put(tmp_path / "a", one__txt="one")
    (place / "gone.txt").symlink_to("nowhere")
    (place / ".#one.txt").symlink_to("user@host")  # the lock of an editor
    with pytest.raises(TextsError, match=r"gone\.txt cannot be read: it is a link to nothing"):
        open_corpus(place)
    told = []
    assert len(list(open_stream(place, skip_unreadable=True).texts(told.append))) == 1
    assert [Path(one.reason.split()[0]).name for one in told] == ["gone.txt"]
    [gone] = [one for one in files_of([str(place)]) if one.fault]
    assert (Path(gone.address).name, gone.fault) == ("gone.txt", "it is a link to nothing")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_forbidden_folder_is_told(tmp_path):
    place = put(tmp_path / "a", one__txt="one", in_I_two__txt="two")
    (place / "in").chmod(0)
    try:
        assert walk(place)[1] == {"in": "Permission denied"}
        with pytest.raises(TextsError, match="Permission denied"):
            open_corpus(place)
        assert [one.fault for one in files_of([str(place)])] == ["Permission denied", ""]
    finally:
        (place / "in").chmod(0o700)


def test_a_corpus_tells_what_looks_like_data(tmp_path):
    files = {"a__txt": "one", "notes": "text without an ending", "code__py": "x = 1\n"}
    place = put(tmp_path, **files, dataset_infos__json="{\n}")
    (place / "b.xlsx").write_bytes(b"PK\x03\x04\0\0xl/")
    (place / "c.png").write_bytes(b"\x89PNG\0\0")
    found = {Path(one.address).name for one in files_of([str(place)])}
    assert found == {"a.txt", "b.xlsx", "code.py", "notes"}
