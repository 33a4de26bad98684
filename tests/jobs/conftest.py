"""Texts in a file, and a score whose process dies."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pretrace.registry import scores

DEADLY = """
import os, signal
from pathlib import Path
from pretrace.scores import scores
from pretrace.types import Evidence, Needs, Quantity

@scores.add("deadly")
class Deadly:
    "Mean log-probability; a process that meets text FATAL dies while there is the file ARMED, which goes with it."

    needs = Needs(Quantity.LOGP)

    def __call__(self, evidence: Evidence) -> float:
        armed = Path(__file__).with_name("ARMED")
        if evidence.text.id == "FATAL" and armed.exists():
            armed.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return float(evidence.trace().logp.mean())
"""
Deadly = Callable[[str], Path]


@pytest.fixture
def lines(tmp_path, sentences):
    """Writes so many texts, and behind the first hundred, where asked, a record that cannot be read."""

    def made(number, *, broken=False, name="texts.jsonl"):
        rows = ({"id": f"t{i}", "label": i % 2, "group": f"g{i // 2}"} for i in range(number))
        some = [json.dumps({**row, "text": f"{sentences[i % 6]} {i}"}) for i, row in enumerate(rows)]
        some[100:100] = ["{not json"] if broken else []
        (tmp_path / name).write_text("\n".join(some) + "\n", encoding="utf-8")
        return tmp_path / name

    return made


@pytest.fixture
def deadly(tmp_path, monkeypatch):
    """Writes the plug-in of the score `deadly`: the first process that meets the text of this id dies, once the file
    ARMED lies beside it. The score goes with the test."""
    list(scores)  # all that is built in is there before the plug-in
    for name in ("_factories", "_origins"):
        monkeypatch.setattr(scores, name, dict(getattr(scores, name)))
    monkeypatch.setattr("pretrace.registry._files", {})  # workers load this plug-in, and none of other tests

    def plugin(fatal):
        path = tmp_path / "deadly.py"
        path.write_text(DEADLY.replace("FATAL", fatal), encoding="utf-8")
        return path

    return plugin
