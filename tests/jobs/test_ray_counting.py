"""`count` on a real Ray gives the table of this process."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pretrace.cli import main
from pretrace.frequencies import Frequencies, counting


def test_counted_on_ray(
    ray: Any, model_folder: Path, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = tmp_path / "texts.jsonl"
    texts.write_text(
        "".join(json.dumps({"text": f"{sentences[i % 6]} {i}"}) + "\n" for i in range(2000)), encoding="utf-8"
    )
    monkeypatch.setattr(counting, "CHARACTERS", 5000)
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
