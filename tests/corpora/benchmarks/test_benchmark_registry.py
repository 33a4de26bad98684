"""All benchmarks together: they can be listed without anything heavy, have cards, and fail fast without a network."""

import re
import time
from pathlib import Path

import datasets
import pytest
from huggingface_hub import constants
from hypothesis import given
from hypothesis import strategies as st

from pretrace.corpora import open_corpus
from pretrace.corpora.benchmarks.wikimia import with_year, without_timestamps
from pretrace.errors import TextsError


@pytest.fixture
def dead_hub(monkeypatch, tmp_path):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")  # nobody listens there
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)


@pytest.mark.parametrize("expression", ["wikimia(64)", "bookmia", "hubble('passages_wikipedia')"])
def test_without_a_network_the_cure_comes_at_once(dead_hub, expression):
    start = time.perf_counter()
    with pytest.raises(TextsError, match=r"the hub cannot be reached .*give the path of its parquet"):
        open_corpus(expression)
    assert time.perf_counter() - start < 8
    assert not constants.HF_HUB_OFFLINE
    assert not datasets.config.HF_HUB_OFFLINE


TABLE = Path(__file__).with_name("timestamps.tsv").read_text(encoding="utf-8").splitlines()
DATES = [row.replace("\\n", "\n").split("\t") for row in TABLE]
"""Texts, without their time stamps, and with their years moved to 2023; what is no time stamp stays."""


@pytest.mark.parametrize(("text", "deleted", "moved"), DATES)
def test_dates_go_or_move(text, deleted, moved):
    assert without_timestamps(text) == deleted
    assert with_year(text) == moved


@given(st.text(alphabet=st.sampled_from("0129 -/:.,()MayJul\nin the"), max_size=60))
def test_any_text_loses_nothing_but_its_stamps(text):
    letters = re.sub(r"\s", "", without_timestamps(text))
    left = iter(text)
    assert all(letter in left for letter in letters)  # what is left stands in the text, in this order
    assert with_year(with_year(text)) == with_year(text)


@pytest.mark.parametrize(
    "text",
    [
        *("In 2014, it won. " * 6000, "1 " * 50_000, " " * 100_000, "May " * 25_000, "2014-" * 20_000),
        *("(" * 2000 + "2015" + ")" * 2000, "In 2015" + ", " * 3000 + "x"),
    ],
)
def test_long_texts_take_no_longer_for_their_length(text):
    start = time.perf_counter()
    without_timestamps(text)
    with_year(text)
    assert time.perf_counter() - start < 8
