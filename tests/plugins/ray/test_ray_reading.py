"""An audit whose texts are read by workers on a real Ray is the audit of this process."""

import pytest
from made import drawn, written

from pretrace.backends.huggingface import HuggingFace
from pretrace.errors import ExpressionError
from pretrace.jobs.settings import EngineSettings
from pretrace.plugins.ray.scoring import reading_elsewhere
from pretrace.runs import load_verdict
from pretrace.scoring.plan import Models
from pretrace.scoring.settings import ModelsSettings, Target
from pretrace.testing import FakeBackend
from pretrace.verdicts.audit.built import figures_of


def refuse(*_):
    raise AssertionError("a text was read by this process")


def test_an_audit_reads_on_ray(ray, model_folder, reference_folder, tmp_path, monkeypatch, call):
    posts, drafts = (
        written(tmp_path / f"{name}.jsonl", drawn(40, 60, seed=i, name=name))
        for i, name in enumerate(("posts", "drafts"))
    )
    command = ["audit", posts, "--model", model_folder, "--controls", drafts, "--placebo", reference_folder]
    command += ["--generator", "none", "--tokens", 32, "--also", "original", "--out"]
    found = {}
    for name in ("RAY", "HERE"):
        monkeypatch.setenv("PRETRACE_CACHE", str(tmp_path / f"cache-{name}"))
        engine = ["--engine", "ray", "--workers", 1] if name == "RAY" else []
        with pytest.MonkeyPatch.context() as here:
            if engine:
                here.setattr(HuggingFace, "run", refuse)
                # the plan times a few made-up tokens
                here.setattr(HuggingFace, "seconds_a_token", lambda _: 1e-4)
            assert call(*command, tmp_path / name, *engine)[0] == 4
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
