"""Ctrl-C: one line and exit code 130, whatever was interrupted makes of it."""

import contextlib
import os
import signal
import sys
import time

import numpy as np
import psutil
import pytest
from made import mats, written


@pytest.fixture(autouse=True)
def _as_in_a_terminal():
    """Where the parent ignores Ctrl-C, as shells do for background jobs, this process would, too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def texts(tmp_path):
    return written(tmp_path / "texts.jsonl", mats(20))


def interrupt(*_, **__):
    os.kill(os.getpid(), signal.SIGINT)


def told(code, out, said):
    assert (code, out) == (130, "")
    assert said == "pretrace: stopped; what was read is kept, the same command goes on from there.\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_while_counts_are_written(call, texts, tmp_path, model_folder, monkeypatch):
    monkeypatch.setattr(np, "savez", interrupt)
    told(*call("count", texts, "--model", model_folder, "--out", tmp_path / "counts.npz"))
    assert not (tmp_path / "counts.npz").exists()


PLACES = {
    "the vocabulary": "pretrace.tuning.architectures.train_vocabulary",
    "training": "pretrace.tuning.planting.train",
    "the weights": "transformers.PreTrainedModel.save_pretrained",
}


@pytest.mark.parametrize("what", PLACES)
def test_while_a_model_is_planted(what, call, texts, tmp_path, monkeypatch):
    monkeypatch.setattr(PLACES[what], interrupt)
    small = ("--architecture=layers=1,width=16,heads=2,vocabulary=300", "--epochs", 1)
    told(*call("plant", texts, *small, "--out", tmp_path / "OUT"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["texts.jsonl"]


@pytest.mark.parametrize("stopped", [True, False])
def test_a_library_that_turns_it_into_another_error(call, texts, tmp_path, monkeypatch, stopped):
    """Without Ctrl-C an error stays what it is."""

    def turned(*_, **__):
        with contextlib.suppress(KeyboardInterrupt):
            if stopped:
                interrupt()
        raise RuntimeError("unexpected position in the file")

    monkeypatch.setattr("pretrace.cli.making.make_planted", turned)
    if stopped:
        told(*call("plant", texts, "--out", tmp_path / "OUT"))
    else:
        with pytest.raises(RuntimeError, match="unexpected position"):
            call("plant", texts, "--out", tmp_path / "OUT")


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_a_search_that_is_told_to_end_ends_at_once_and_leaves_no_result(command, tmp_path, monkeypatch):
    """A text that repeats itself in a corpus that does, which was quadratic and deaf."""
    row = "the cat sat on the mat and nobody knew why. "
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text(row * 20_000)
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "0.txt").write_text(row * 1_500_000)
    for n in range(1, 30):  # more than any processor reads in two seconds
        (tmp_path / "corpus" / f"{n}.txt").hardlink_to(tmp_path / "corpus" / "0.txt")
    monkeypatch.chdir(tmp_path)
    search = command("scan", "texts", "--corpus", "corpus", "--out", "FOUND")
    while search.poll() is None and psutil.Process(search.pid).cpu_times().user < 2:
        time.sleep(0.05)
    assert search.poll() is None
    os.kill(search.pid, signal.SIGTERM)
    started = time.monotonic()
    assert search.wait() == -signal.SIGTERM
    assert time.monotonic() - started < 5
    assert not (tmp_path / "FOUND").exists()
