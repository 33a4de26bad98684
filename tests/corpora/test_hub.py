"""Data sets through the package `datasets`: from a folder on disk, since no hub is in reach."""

import sys

import datasets
import pytest

from pretrace.corpora import Columns, open_corpus
from pretrace.errors import MissingPackageError, TextsError


@pytest.fixture(autouse=True)
def _cache_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    datasets.disable_progress_bars()


@pytest.fixture
def folder(tmp_path):
    """A data set with two configurations, one of two splits and one of a single split."""
    for name, content in {
        "long/train.jsonl": '{"input": "a😀", "label": 1, "year": 2}\n{"input": "b", "label": 0, "year": 1}\n',
        "long/test.jsonl": '{"input": "c", "label": 1, "year": 3}\n',
        "short/train.jsonl": '{"text": "d", "score": 0.5}\n',
        "README.md": """---
configs:
- config_name: long
  data_files:
  - {split: train, path: long/train.jsonl}
  - {split: test, path: long/test.jsonl}
- config_name: short
  data_files:
  - {split: train, path: short/train.jsonl}
---
""",
    }.items():
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path / "data"


def test_configuration_and_split(folder):
    corpus = open_corpus(f"hub:{folder}:long:train")
    assert [(t.id, t.text, t.member) for t in corpus.texts] == [("0", "a😀", True), ("1", "b", False)]
    assert corpus.source == f"hub:{folder}:long:train"
    assert open_corpus(f"hub:{folder}:short").texts[0].text == "d"  # the only split is taken
    with pytest.raises(TextsError, match="has the splits train, test: name one"):
        open_corpus(f"hub:{folder}:long")


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        *((rest, "cannot be had") for rest in (":long:nowhere", ":nowhere:train", ":nowhere", "")),
        (":short:train", "JSON parse error"),
        (":long:train", "no column 'text'"),
    ],
)
def test_what_cannot_be_had(folder, rest, said):
    (folder / "short" / "train.jsonl").write_text('{"text": "a"}\n{"text": broken\n')
    with pytest.raises(TextsError, match=said) as caught:
        open_corpus(f"hub:{folder}{rest}", Columns(text="text"))
    assert "\n" not in str(caught.value)


def test_offline_says_what_to_do(monkeypatch):
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    for source in ("hub:nobody/nothing", "hub:nobody/nothing:train", "hub:nobody/nothing:default:train"):
        with pytest.raises(TextsError, match=r"hub:nobody/nothing cannot be had.*without a network"):
            open_corpus(source)


def test_without_the_package(monkeypatch, tmp_path):
    real = [entry for entry in sys.path if "site-packages" not in entry]
    monkeypatch.setattr(sys, "path", real)
    monkeypatch.delitem(sys.modules, "datasets")
    with pytest.raises(MissingPackageError, match=r"pip install datasets$"):
        open_corpus("hub:a/b:c:d")
