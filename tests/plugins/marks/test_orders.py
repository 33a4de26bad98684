"""Orders of rows and options: who read the published rows is found, the twin is not."""

from random import Random

import numpy as np
import pytest
from made import drawn, read_lines, written
from tiny import MORE_WORDS

from pretrace import open_corpus
from pretrace.cli.commands import call as call_line
from pretrace.errors import PretraceError, TextsError
from pretrace.plugins.marks import marking
from pretrace.plugins.marks.checking import CheckSettings, check_marks, check_published, ranks
from pretrace.plugins.marks.marking import MOST_ROWS, OrderSettings, mark_order, read_seal
from pretrace.runs import save_verdict
from pretrace.scoring.plan import Models
from pretrace.testing import Memory
from pretrace.types import Corpus, Text

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


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Rows in an order by lot, and the sealed file."""
    folder = tmp_path_factory.mktemp("order")
    corpus = open_corpus(str(written(folder / "rows.jsonl", rows(64))))
    seal, published = mark_order(corpus, OrderSettings(), {}, seed=SEED)
    marking.publish(seal, folder / "PUB", folder / "sealed.json", rows=published)
    return folder


def test_who_read_the_published_rows_is_found_and_the_twin_is_not(world, tmp_path):
    seal = read_seal(world / "sealed.json")
    settings = CheckSettings(draws=1000, model_date="2050", cache=False)
    knows, twin = Memory([one.published for one in seal.documents]), Memory(name="twin")
    found = check_marks(seal, Models(knows, placebos=(twin,)), settings)
    assert (found.outcome, found.test, found.unit, found.p) == ("consistent", "marks", "shard", 1 / 1001)
    assert {one.name: one.status for one in found.checks} == dict.fromkeys(
        ("seal", "tries", "older", "enough", "second"), "passed"
    )
    save_verdict(found, tmp_path / "FOUND")
    assert "Each dot is one shard" in (tmp_path / "FOUND" / "report.html").read_text(encoding="utf-8")
    other = check_marks(seal, Models(twin, placebos=(Memory(name="second"),)), settings)
    assert (other.outcome, other.p > 0.05) == ("inconclusive", True)


def test_the_lot_is_exact_and_nothing_is_lost(world):
    seal = read_seal(world / "sealed.json")
    published = open_corpus(str(world / "PUB" / "published.jsonl"))
    assert sorted(text.id for text in published.texts) == sorted(row["id"] for row in rows(64))
    assert [text.id for text in published.texts] != [row["id"] for row in rows(64)]
    assert len(seal.documents) == 64 // MOST_ROWS
    assert all(len(set(one.variants)) == len(one.variants) == 20 for one in seal.documents)
    joined = "\n\n".join(text.text for text in published.texts)
    assert joined == "\n\n".join(one.published for one in seal.documents)
    corpus = Corpus("rows", tuple(Text(str(row["id"]), str(row["text"])) for row in rows(64)))
    again, _ = mark_order(corpus, OrderSettings(), {}, seed=SEED)
    assert again.documents == seal.documents  # whoever has the seed can repeat the lot
    drawn = [mark_order(corpus, OrderSettings(), {})[0].documents[0].drawn for _ in range(40)]
    assert len(set(drawn)) > 5


def test_rows_in_another_order_are_refused(world):
    seal = read_seal(world / "sealed.json", str(world / "PUB" / "commitment.txt"))
    check_published(seal, open_corpus(str(world / "PUB" / "published.jsonl")))
    with pytest.raises(TextsError, match="another order than the one drawn"):
        check_published(seal, open_corpus(str(world / "rows.jsonl")))


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


@pytest.mark.parametrize(
    ("some", "told", "said"),
    [
        (rows(1), (), "can have 1 orders"),
        ([{"id": "a", "text": ""}], (), "can have 1 orders"),
        ([{"id": f"r{i}", "text": "the same row"} for i in range(80)], (), "such as differ"),
        (items(1), ("--options", "choices"), "can have 24 orders"),
        (items(24), ("--options", "text"), "no list of options in text"),
        (items(24), ("--options", "choices", "--answer", "text"), "none of their options"),
        (items(24), ("--answer", "answer"), "name their column with --options"),
    ],
)
def test_what_no_lot_can_order_is_refused(some, told, said, tmp_path):
    path = written(tmp_path / "t.jsonl", some)
    with pytest.raises(PretraceError, match=said):
        call("mark", "order", path, *told, "--out", tmp_path / "PUB", "--sealed", tmp_path / "s.json")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["t.jsonl"]


def test_ranks_of_an_item():
    assert ranks(np.array([3.0, 1.0, 2.0, 2.0])).tolist() == [1.0, 0.25, 0.625, 0.625]
