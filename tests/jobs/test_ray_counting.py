"""`count` on a real Ray gives the table of this process."""

import json
import sys

import numpy as np
import pytest

from pretrace.cli import main
from pretrace.frequencies import Frequencies
from pretrace.jobs.engine import work


def test_counted_on_ray(ray, model_folder, sentences, tmp_path, monkeypatch):
    texts = tmp_path / "texts.jsonl"
    texts.write_text(
        "".join(json.dumps({"text": f"{sentences[i % 6]} {i}"}) + "\n" for i in range(2000)), encoding="utf-8"
    )
    monkeypatch.setattr(work, "CHARACTERS", 5000)
    tables = []
    for name, more in (("HERE", []), ("RAY", ["--engine", "ray", "--workers", "2"])):
        out = tmp_path / f"{name}.npz"
        monkeypatch.setattr(
            sys,
            "argv",
            ["pretrace", "count", str(texts), "--model", str(model_folder), "--out", str(out), *more],
        )
        with pytest.raises(SystemExit) as left:
            main()
        assert not left.value.code
        tables.append(Frequencies.load(out))
    here, there = tables
    assert np.array_equal(here.counts, there.counts)
    assert (here.texts, here.source, here.method) == (there.texts, there.source, there.method)
