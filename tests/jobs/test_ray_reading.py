"""An audit whose texts are read by workers on a real Ray is the audit of this process."""

import json
import sys

import numpy as np
import pytest
from tiny import MORE_WORDS

from pretrace.backends.huggingface import HuggingFace
from pretrace.cli import main
from pretrace.errors import ExpressionError
from pretrace.jobs.engine import reading_elsewhere
from pretrace.jobs.settings import EngineSettings
from pretrace.runs import load_verdict
from pretrace.scoring.plan import Models
from pretrace.scoring.settings import ModelsSettings, Target
from pretrace.testing import FakeBackend
from pretrace.verdicts.audit.built import figures_of


def written(path, number, *, seed):
    rng = np.random.default_rng(seed)
    rows = [{"id": f"{path.stem}{i}", "text": " ".join(rng.choice(MORE_WORDS, 60))} for i in range(number)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def refuse(*_):
    raise AssertionError("a text was read by this process")


def test_an_audit_reads_on_ray(ray, model_folder, reference_folder, tmp_path, monkeypatch):
    posts, drafts = (
        written(tmp_path / "posts.jsonl", 40, seed=0),
        written(tmp_path / "drafts.jsonl", 40, seed=1),
    )
    command = ["audit", posts, "--model", model_folder, "--controls", drafts, "--placebo", reference_folder]
    command += ["--generator", "none", "--tokens", 32, "--also", "original", "--out"]
    found = {}
    for name in ("RAY", "HERE"):
        monkeypatch.setenv("PRETRACE_CACHE", str(tmp_path / f"cache-{name}"))
        engine = ["--engine", "ray", "--workers", 1] if name == "RAY" else []
        monkeypatch.setattr(sys, "argv", ["pretrace", *map(str, [*command, tmp_path / name, *engine])])
        with pytest.MonkeyPatch.context() as here:
            if engine:
                here.setattr(HuggingFace, "run", refuse)
                # the plan times a few made-up tokens
                here.setattr(HuggingFace, "seconds_a_token", lambda _: 1e-4)
            with pytest.raises(SystemExit) as left:
                main()
        assert left.value.code == 4
        found[name] = load_verdict(tmp_path / name)
    there, here_too = found["RAY"], found["HERE"]
    assert there.p == here_too.p
    assert [one.p for one in figures_of(there).variants] == [one.p for one in figures_of(here_too).variants]
    assert [(one.title, one.status) for one in there.checks] == [
        (one.title, one.status) for one in here_too.checks
    ]
    tables = [sorted(path.name for path in (tmp_path / name).glob("*.csv")) for name in found]
    assert tables[0] == tables[1]
    for name in tables[0]:
        assert (tmp_path / "RAY" / name).read_bytes() == (tmp_path / "HERE" / name).read_bytes()


def test_models_behind_servers_are_asked_from_here():
    class Served(FakeBackend):
        def stream(self, *_): ...

    wanted = ModelsSettings(target=Target(model="vllm:http://127.0.0.1:1"))
    with (
        pytest.raises(ExpressionError, match="--engine ray has no use: all models are behind servers"),
        reading_elsewhere(EngineSettings(engine="ray"), wanted, Models(Served())),
    ):
        pass
