"""Orders of rows and options; that who read the published rows is found, and nobody else: tests/test_contracts.py."""

from random import Random

import numpy as np
import pytest
from made import drawn, read_lines, written
from tiny import MORE_WORDS

from pretrace import open_corpus
from pretrace.cli.commands import call as call_line
from pretrace.errors import TextsError
from pretrace.plugins.marks import MOST_ROWS, OrderSettings, mark_order, read_seal
from pretrace.plugins.marks.checking import check_published, ranks

SEED = "5eed"


def rows(number):
    return drawn(number, 6, seed=1, name="r")


def items(number):
    choices = [Random(i).sample(MORE_WORDS, 4) for i in range(number)]
    return [
        {"id": f"q{i}", "text": f"Question {i}?", "choices": some, "answer": i % 4}
        for i, some in enumerate(choices)
    ]


def call(*arguments):
    return call_line([str(one) for one in arguments])


def test_the_draw_is_exact_and_nothing_is_lost(tmp_path):
    corpus = open_corpus(str(written(tmp_path / "rows.jsonl", rows(64))))
    seal, lines = mark_order(corpus, OrderSettings(), {}, seed=SEED)
    (tmp_path / "published.jsonl").write_bytes(lines)
    published = open_corpus(str(tmp_path / "published.jsonl"))
    assert sorted(text.id for text in published.texts) == sorted(row["id"] for row in rows(64))
    assert [text.id for text in published.texts] != [row["id"] for row in rows(64)]
    assert len(seal.documents) == 64 // MOST_ROWS
    assert all(len(set(one.variants)) == len(one.variants) == 20 for one in seal.documents)
    joined = "\n\n".join(text.text for text in published.texts)
    assert joined == "\n\n".join(one.published for one in seal.documents)
    assert check_published(seal, published)
    with pytest.raises(TextsError, match="another order than the one drawn"):
        check_published(seal, corpus)
    again, _ = mark_order(corpus, OrderSettings(), {}, seed=SEED)
    assert again.documents == seal.documents  # whoever has the seed can repeat the lot
    drawn = [mark_order(corpus, OrderSettings(), {})[0].documents[0].drawn for _ in range(40)]
    assert len(set(drawn)) > 5


@pytest.mark.parametrize(
    "label",
    [lambda k, _: k, lambda k, _: k + 1, lambda k, _: f" {'ABCD'[k]}", lambda k, some: some[k]],
)
def test_options_change_places_and_the_right_answer_is_written_anew(label, tmp_path):
    refers = {**items(1)[0], "id": "all", "choices": ["a", "b", "All of the above", "d"]}
    some = [{**one, "answer": label(one["answer"], one["choices"])} for one in items(24)]
    path = written(tmp_path / "items.jsonl", [*some, {**refers, "answer": label(0, refers["choices"])}])
    told = ("--options", "choices", "--answer", "answer")
    places = ("--out", tmp_path / "PUB", "--sealed", tmp_path / "s.json")
    assert call("mark", "order", path, *told, *places) == 0
    moved = read_lines(tmp_path / "PUB" / "published.jsonl")
    for before, after in zip(items(24), moved[:24], strict=True):
        assert sorted(before["choices"]) == sorted(after["choices"])
        right = after["choices"].index(before["choices"][before["answer"]])
        assert str(after["answer"]).strip() == str(label(right, after["choices"])).strip()
        assert after["text"] == before["text"]
    assert any(before["choices"] != after["choices"] for before, after in zip(items(24), moved, strict=False))
    assert moved[24]["choices"] == ["a", "b", "All of the above", "d"]
    seal = read_seal(tmp_path / "s.json")
    assert len(seal.documents) == 24
    lines = [f"{letter}. {option}" for letter, option in zip("ABCD", moved[0]["choices"], strict=True)]
    assert seal.documents[0].published.splitlines()[1:] == lines


def test_ranks_of_an_item():
    assert ranks(np.array([3.0, 1.0, 2.0, 2.0])).tolist() == [1.0, 0.25, 0.625, 0.625]
