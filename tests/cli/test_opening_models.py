"""Each model of a run is opened once, its weights hashed once; placebos that are the target are refused."""

import time
from collections import Counter
from pathlib import Path

import pytest
from made import mats, written

from pretrace.backends import naming
from pretrace.cli.opening import TextAccess, open_beside, opened_for_access
from pretrace.errors import ModelError
from pretrace.scoring.plan import ModelsSettings, Target
from pretrace.testing import Memory
from pretrace.verdicts.settings import ModelsBeside, TestSettings


@pytest.fixture
def hashed(monkeypatch):
    """How often the weights of each folder were hashed."""
    counts = Counter()
    own = naming._remembered

    def counted(path, memory):
        counts[path.parent.name] += 1
        return own(path, memory)

    monkeypatch.setattr(naming, "_remembered", counted)
    return counts


def test_weights_are_hashed_once_a_run(ask, hashed, tmp_path, model_folder, reference_folder):
    texts = written(tmp_path / "texts.jsonl", mats(24))
    ask("score", texts, "--model", model_folder, "--scores", "loss", "--out", tmp_path / "SCORES")
    assert hashed == {model_folder.name: 1}
    tuning = written(tmp_path / "tuning.jsonl", [{**row, "label": 0} for row in mats(24, "dog")])
    method = ("--method", "lora(rank=2, epochs=1)")
    ask("tune", tuning, "--model", model_folder, *method, "--out", tmp_path / "ADAPTER")
    hashed.clear()
    how = ("--placebo", reference_folder, "--tuned", tmp_path / "ADAPTER", "--scores", "ppl,fsd(ppl)")
    how = (*how, "--out", tmp_path / "RUN", "--measuring=resamples=100")
    ask("evaluate", texts, "--model", model_folder, *how)
    assert hashed == {model_folder.name: 1, reference_folder.name: 1}


def test_a_placebo_may_be_an_earlier_checkpoint_of_the_target():
    def placebos(*named):
        return ModelsSettings(target=Target(model="a"), placebos=named).placebos_at

    assert placebos("a@step1000") == placebos("@step1000") == (("a", "step1000"),)
    assert (placebos("b", None), placebos(None)) == ((("b", None),), ())


def test_a_hub_that_does_not_answer_is_one_line_within_seconds(monkeypatch):
    """It takes the connection and says nothing; the download itself would wait without a limit."""
    import socket

    from huggingface_hub import constants

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr("huggingface_hub.hf_api.constants.ENDPOINT", constants.ENDPOINT)
        monkeypatch.setattr(naming, "_PATIENCE", 0.5)
        begin = time.monotonic()
        with pytest.raises(ModelError, match="could not be had from the hub"):
            naming.locate("nobody/nothing")
        assert time.monotonic() - begin < 100  # without a limit it would never end


def test_beside_a_placebo_that_is_named_no_other_model_is_asked(monkeypatch):
    """But in an audit, which subtracts the placebo."""
    for place in "pretrace.cli.opening", "pretrace.scoring.plan":
        monkeypatch.setattr(f"{place}.open_model", lambda name, **_: Memory(name=name))
    for named, names in (("b",), ["b"]), ((), ["smollm2"]):
        how = Target(model="a"), ModelsBeside(placebo=named, out=Path("R"))
        made = open_beside(*how, TestSettings())
        texts = opened_for_access(*how, TextAccess(access="text"), TestSettings(), [], 0)
        assert [one.name for one in made.placebos] == [one.name for one in texts.placebos] == names
