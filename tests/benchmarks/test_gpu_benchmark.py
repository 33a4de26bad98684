"""The measurements on a GPU: nothing without one, the steps on a processor, a part that fails among the others."""

import json
import sys

from tiny import SENTENCES

from benchmarks.speed import gpu, gpu_parts
from pretrace.types import Corpus, Text

TINY = ["--device", "cpu", "--tiny", "--texts", "5"]


def test_a_part_is_measured_on_a_processor(tmp_path, monkeypatch):
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
