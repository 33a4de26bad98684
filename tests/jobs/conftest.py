"""A Ray of two processors on this machine, started once for the tests that need one."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pretrace.registry import scores

os.environ.setdefault("RAY_worker_niceness", "0")  # at Ray's own 15 they stand still beside the other tests

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


def pytest_collection_modifyitems(items):
    """Workers that died are started anew and import torch each time: on a busy machine that takes minutes."""
    for item in items:
        if "ray" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(900))


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


@pytest.fixture(scope="session")
def ray(tmp_path_factory):
    """The package, connected; workers find a cache of their own, and no more of the disk than a store of 80 MB."""
    package = pytest.importorskip("ray")
    kept = {name: os.environ.get(name) for name in ("PRETRACE_CACHE", "RAY_USAGE_STATS_ENABLED")}
    os.environ |= {"PRETRACE_CACHE": str(tmp_path_factory.mktemp("workers")), "RAY_USAGE_STATS_ENABLED": "0"}
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    package.init(address="local", num_cpus=2, object_store_memory=80_000_000, **quiet)
    for name, value in kept.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})
    yield package
    package.shutdown()


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
