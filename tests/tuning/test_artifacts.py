"""What training writes is there whole or not at all, and a full disk is named, whichever library meets it."""

import resource

import pytest
import torch
from safetensors import SafetensorError
from tiny import SENTENCES, make_model, make_tokenizer, opened

from pretrace.errors import OutputError
from pretrace.tuning.adapters import tune
from pretrace.tuning.artifacts import write_planted
from pretrace.tuning.plan import methods
from pretrace.tuning.training import Checkpoint, Position
from pretrace.types import Corpus, Text

CORPUS = Corpus("sentences", tuple(Text(str(i), text, i % 2 == 0) for i, text in enumerate(SENTENCES)))


@pytest.fixture
def little_room():
    """Files may not grow beyond 3,000 bytes, as on a disk that is nearly full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def adapter(folder):
    tune(opened("llama"), CORPUS, methods.make("lora(epochs=1)"), folder=folder)


def planted(folder):
    write_planted(folder, make_model("llama"), make_tokenizer(), corpus=CORPUS, card={})


def checkpoint(folder):
    model = torch.nn.Linear(100, 100)
    Checkpoint(folder, "a training").save(model, torch.optim.AdamW(model.parameters()), Position())


@pytest.mark.parametrize("write", [adapter, planted, checkpoint])
def test_no_room_for_what_a_library_writes(tmp_path, little_room, write):
    with pytest.raises(OutputError, match=r"out cannot be written: File too large; choose a place"):
        write(tmp_path / "out")
    assert not [path for path in tmp_path.iterdir() if path.name != ".out.training"]


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    def full(*_, **__):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(OutputError, match=r"out cannot be written: the disk is full") as caught:
        adapter(tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())
