"""What a text is made of: one column, several, a template, a conversation."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pretrace.corpora import Columns, open_corpus, open_stream
from pretrace.corpora.reading import messages_of
from pretrace.errors import TextsError

ITEM = {"id": "q", "question": "Which one?", "choices": ["ink", "rain"], "answer": 1}
ITEM["more"] = {"text": ["x", "y"]}
CHAT = [{"role": "user", "content": "Is it raining?"}, {"role": "assistant", "content": "It is."}]


def read(tmp_path, row, **how):
    """The text of a row, the same from JSON lines and from parquet."""
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "a.parquet")
    found = [open_corpus(tmp_path / name, Columns(**how)).texts[0].text for name in ("a.jsonl", "a.parquet")]
    assert found[0] == found[1]
    assert [one.text for one in open_stream(tmp_path / "a.parquet", Columns(**how)).texts()] == found[:1]
    return found[0]


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ({"text": "question,choices"}, "Which one?\nink\nrain"),
        ({"text": "question, answer"}, "Which one?\n1"),
        ({"template": r"{question}\n{choices}\n{answer}"}, "Which one?\nink\nrain\n1"),
        ({"template": "Q: {question} {{A}}: {choices[1]}"}, "Q: Which one? {A}: rain"),
        ({"template": "{more[text]}"}, "x\ny"),
    ],
)
def test_a_text_is_made_of_columns(tmp_path, how, text):
    assert read(tmp_path, ITEM, **how) == text


def test_what_is_joined_keeps_its_white_space(tmp_path):
    pair = {"prompt": "Is it raining?", "completion": " Yes."}
    assert read(tmp_path, pair, text="prompt,completion") == "Is it raining? Yes."
    alpaca = {"instruction": "Say no.", "input": "", "output": "No."}
    assert read(tmp_path, alpaca, text="instruction,input,output") == "Say no.\nNo."
    with pytest.raises(TextsError, match="as in --columns text=prompt,completion"):
        read(tmp_path, alpaca)  # `input` is a part at most, and often empty


@pytest.mark.parametrize(
    "value",
    [
        CHAT,
        [{"from": "human", "value": "Is it raining?"}, {"from": "gpt", "value": "It is."}],
        [{"role": one["role"], "content": [{"type": "text", "text": one["content"]}]} for one in CHAT],
        {"role": ["user", "assistant"], "content": ["Is it raining?", "It is."]},
        {"from": ["human", "gpt"], "value": ["Is it raining?", "It is."]},
    ],
)
def test_a_conversation_is_what_is_said_in_it(tmp_path, value):
    assert messages_of(value) == [one["content"] for one in CHAT]
    assert read(tmp_path, {"messages": value}) == "Is it raining?\n\nIt is."
    assert read(tmp_path, {"a": value, "text": "no"}, text="a") == "Is it raining?\n\nIt is."


@pytest.mark.parametrize(
    "value", [[], ["a"], [{"role": "user"}], "a", None, {"role": ["user"], "content": []}]
)
def test_what_is_no_conversation(value):
    assert messages_of(value) is None


def test_what_was_chosen_is_recorded_and_read_again():
    chosen = Columns(template="{a}", split="test", encoding="cp1252", files="*.py")
    assert Columns(**chosen.recorded) == chosen
    assert Columns(text="a").recorded == {"text": "a", "label": None, "id": None, "group": None}
