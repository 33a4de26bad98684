"""Collections of as many documents, treated alike; what cannot be ranked is refused with the number that is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from verdicts.collections.made import made

from pretrace.errors import ExpressionError, TextsError
from pretrace.types import Corpus, Text
from pretrace.verdicts import collections
from pretrace.verdicts.collections import CollectionSettings, divided, gathered

EASY = 0.25


def test_all_give_as_many_documents_as_the_smallest_has(monkeypatch):
    corpora = made(4, documents=9)
    corpora[2] = replace(corpora[2], texts=corpora[2].texts[:7])
    found = gathered(corpora, EASY)
    assert found.number == 7
    assert found.codes.tolist() == [0] * 7 + [1] * 7 + [2] * 7 + [3] * 7
    assert any("author 2" in note for note in found.notes)
    monkeypatch.setattr(collections, "MOST_DOCUMENTS", 5)
    assert gathered(corpora, EASY).number == 5


def test_the_draw_depends_on_a_collections_texts_alone(monkeypatch):
    corpora = made(4, documents=9)
    monkeypatch.setattr(collections, "MOST_DOCUMENTS", 5)

    def drawn(found):
        return {
            name: {one.whole for one in found.documents if found.names[one.collection] == name}
            for name in found.names
        }

    swapped = [
        replace(one, texts=tuple(replace(text, id=f"x{i}") for i, text in enumerate(one.texts[::-1])))
        for one in corpora[::-1]
    ]
    assert drawn(gathered(swapped, EASY)) == drawn(gathered(corpora, EASY))


def test_texts_of_two_collections_are_taken_out_of_both_and_counted():
    corpora = made(4, documents=7)
    both = corpora[0].texts[0].text
    corpora[1] = replace(corpora[1], texts=(*corpora[1].texts, Text("copy", f" {both}\n")))
    found = gathered(corpora, EASY)
    assert found.number == 6
    assert all(one.whole.strip() != both for one in found.documents)
    assert [one.id for one in found.skipped] == ["author 0: d0", "author 1: copy"]
    assert any(note.startswith("2 documents share a text") for note in found.notes)


def test_texts_of_a_group_are_one_document_and_repeats_count_once():
    corpora = made(4, documents=12)
    grouped = tuple(Text(t.id, t.text, group=f"g{i // 2}") for i, t in enumerate(corpora[0].texts))
    again = Text("again", corpora[0].texts[3].text, group="g1")
    corpora[0] = replace(corpora[0], texts=(*grouped, again, Text("blank", "  ", group="g2")))
    found = gathered(corpora, EASY)
    assert found.number == 6
    assert all(len(one.texts) == 2 for one in found.documents if one.collection == 0)


def test_the_number_of_missing_collections_is_said():
    with pytest.raises(TextsError, match="takes 19 control collections, found 17: 2 are missing"):
        gathered(made(18), 0.05)
    with pytest.raises(TextsError, match="takes 99 control collections, found 19: 80 are missing"):
        gathered(made(20), 0.01)


def test_a_collection_with_too_few_documents_is_named():
    corpora = made(4)
    corpora[3] = replace(corpora[3], texts=corpora[3].texts[:4])
    with pytest.raises(TextsError, match="these have fewer: 'author 3'"):
        gathered(corpora, EASY)
    with pytest.raises(TextsError, match=r"these have fewer: 'folder/0.jsonl .0.', 'folder/0.jsonl .1.'"):
        gathered([corpora[0], corpora[0], *corpora[1:3]], EASY)


def test_collections_of_one_name_are_told_apart():
    corpora = [replace(one, name="posts") for one in made(4)]
    assert gathered(corpora, EASY).names == tuple(f"folder/{i}.jsonl" for i in range(4))
    bare = [replace(one, source="") for one in corpora]
    assert gathered(bare, EASY).names == tuple(f"posts ({i})" for i in range(4))


def test_one_file_is_divided_by_a_column():
    rows = [Text(f"r{i}", f"text {i}", meta={"author": name}) for i, name in enumerate("abcab")]
    rows.append(Text("r9", "of nobody", meta={"author": ""}))
    suspect, others = divided(Corpus("all", tuple(rows)), "author", "b")
    assert [text.id for text in suspect.texts] == ["r1", "r4"]
    assert [one.name for one in others] == ["a", "c"]
    assert suspect.notes == ("1 rows have nothing in the column author and belong to no collection.",)
    with pytest.raises(TextsError, match=r"no row of all has 'd'.*'a', 'b', 'c'"):
        divided(Corpus("all", tuple(rows)), "author", "d")


def test_a_value_that_lacks_its_models_is_refused():
    assert CollectionSettings().chosen(0, generator=False) == "alone"
    assert CollectionSettings().chosen(2, generator=False) == "residual"
    for value, references, generator, said in (
        ("residual", 0, False, "--reference-model"),
        ("alone", 1, False, "leave it out"),
        ("generated", 0, False, "--generator"),
        ("residual", 1, True, "--generator has no use"),
    ):
        with pytest.raises(ExpressionError, match=said):
            CollectionSettings(value=value).chosen(references, generator=generator)
    with pytest.raises(ExpressionError, match="--value is one of"):
        CollectionSettings(value="other")
