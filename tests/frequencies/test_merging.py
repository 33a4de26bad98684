"""Merges made in many words at once are those that the tokenizer makes in each."""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from pretrace.frequencies.encoding import Merges, only_merges

Build = Callable[[str], Tokenizer]

WORDS = st.one_of(
    st.text(alphabet=string.ascii_letters + string.digits + " ", min_size=1, max_size=32),
    st.text(alphabet="abs e", min_size=1, max_size=20),
    st.sampled_from([" the", "return", "aaaaaaaa", " self", "    ", "a", "subprocess", " argument"]),
)


def model_of(tokenizer: Tokenizer) -> dict[str, Any]:
    model: dict[str, Any] = json.loads(tokenizer.to_str())["model"]
    return model


def encoded(merges: Merges, words: list[str]) -> list[list[int]]:
    ids, owners = merges.encode(pa.array([word.encode() for word in words], pa.binary()))
    found: list[list[int]] = [[] for _ in words]
    for token, owner in zip(ids.tolist(), owners.tolist(), strict=True):
        found[owner].append(token)
    return found


@pytest.mark.parametrize(("kind", "space"), [("gpt2", "Ġ"), ("llama2", "▁")])
@settings(max_examples=100, deadline=None)
@given(words=st.lists(WORDS, max_size=40))
def test_equal_the_models_own(kind: str, space: str, words: list[str], built: Build) -> None:
    model = model_of(built(kind))
    merges = Merges(model, space)
    expected = [
        [token.id for token in built(kind).model.tokenize(word.replace(" ", space))] for word in words
    ]
    assert encoded(merges, words) == expected


def test_hashes_that_meet_are_told_apart(built: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(built("gpt2"))
    merges = Merges(model, "Ġ")
    words = [" subprocess", "argument", "returncode", " communicate"]
    expected = encoded(merges, words)
    assert max(map(len, expected)) < 8
    monkeypatch.setattr("pretrace.frequencies.encoding._MIX", np.uint64(0))
    assert encoded(Merges(model, "Ġ"), words) == expected


def test_a_slice_of_an_array(built: Build) -> None:
    merges = Merges(model_of(built("gpt2")), "Ġ")
    words = pa.array([b"one", b" two", b"three", b" four"], pa.binary())
    ids, owners = merges.encode(words.slice(1, 2))
    made = ["".join(map(built("gpt2").id_to_token, ids[owners == owner])) for owner in (0, 1)]
    assert made == ["Ġtwo", "three"]


def test_a_model_without_merges() -> None:
    vocabulary = {char: index for index, char in enumerate(string.ascii_letters + string.digits + "Ġ")}
    merges = Merges({"type": "BPE", "vocab": vocabulary, "merges": []}, "Ġ")
    assert encoded(merges, ["ab", " "]) == [[0, 1], [62]]


@pytest.mark.parametrize(
    "twist",
    [
        {"type": "WordPiece"},
        {"ignore_merges": True},
        {"dropout": 0.1},
        {"continuing_subword_prefix": "##"},
        {"end_of_word_suffix": "</w>"},
        {"vocab": {"a": 0}},
    ],
)
def test_models_that_do_more_than_merge_are_left_alone(twist: dict[str, Any], built: Build) -> None:
    model = model_of(built("gpt2"))
    assert only_merges(model, "Ġ")
    assert not only_merges(model, "▁")
    assert not only_merges(model | twist, "Ġ")
