"""The measurements on a GPU: nothing without one, the steps on a processor, a part that fails among the others."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import SENTENCES

from benchmarks.speed import gpu, gpu_parts
from pretrace.types import Corpus, Text

TINY = ["--device", "cpu", "--tiny", "--texts", "5"]


def test_without_a_gpu_nothing_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["gpu", "--out", str(tmp_path)])
    assert gpu.main() == 0
    assert "No GPU here" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_a_part_is_measured_on_a_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the command starts in a process of its own, here in this one."""
    texts = Corpus("few", tuple(Text(str(i), f"{one} {i}") for i, one in enumerate(SENTENCES)))
    monkeypatch.setattr(gpu_parts, "open_corpus", lambda name: texts)
    file = tmp_path / "smollm2_float32.json"
    monkeypatch.setattr(sys, "argv", ["gpu", *TINY, "--out", str(file), "--part", "smollm2_float32"])
    assert gpu.main() == 0
    part = json.loads(file.read_text())
    assert part["texts"] == part["naive_texts"] == 5
    assert part["difference"]["loss_largest"] < 1e-4
    assert part["difference"]["any_score_largest_in_sd"] < 1e-2
    assert part["against_float32"]["ours"]["largest"] < 1e-4
    assert part["tokens"] > 100


def test_a_part_that_fails_is_recorded_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = iter(
        [
            "raise SystemExit('broken')",
            "import sys, pathlib; pathlib.Path(sys.argv[-1]).write_text('{\"a\": 1}')",
            "import time; time.sleep(60)",
        ]
    )
    monkeypatch.setattr(gpu, "_command", lambda setting: [sys.executable, "-c", next(programs)])
    monkeypatch.setattr(gpu, "LIMITS", {"llama_bfloat16": 1.0})
    monkeypatch.setattr(gpu, "_LEAST", 1.0)
    argv = ["gpu", "--device", "cpu", "--out", str(tmp_path), "--parts", "tests", "memory", "llama_bfloat16"]
    monkeypatch.setattr(sys, "argv", argv)
    assert gpu.main() == 1
    parts: dict[str, Any] = json.loads((tmp_path / "gpu.json").read_text())["parts"]
    assert "broken" in parts["tests"]["error"]
    assert parts["memory"]["a"] == 1
    assert "stopped after 1 s" in parts["llama_bfloat16"]["error"]
