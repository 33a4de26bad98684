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
from pretrace.testing import Memory
from pretrace.verdicts.audit.built import figures_of


def refuse(*_):
    raise AssertionError("a text was read by this process")


def test_an_audit_reads_on_ray(ray, model_folder, reference_folder, tmp_path, monkeypatch, call):
    rows = {name: drawn(40, 60, seed=i, name=name) for i, name in enumerate(("posts", "drafts"))}
    posts, drafts = (written(tmp_path / f"{name}.jsonl", some) for name, some in rows.items())
    command = ["audit", posts, "--model", model_folder, "--controls", drafts, "--placebo", reference_folder]
    command += ["--generator", "none", "--snippets=tokens=32", "--also", "original", "--out"]
    for name, engine in (("RAY", ["--ray=workers=1"]), ("HERE", [])):
        monkeypatch.setenv("PRETRACE_CACHE", str(tmp_path / f"cache-{name}"))
        with pytest.MonkeyPatch.context() as here:
            if engine:
                here.setattr(HuggingFace, "run", refuse)
                # the plan times a few made-up tokens
                here.setattr(HuggingFace, "seconds_a_token", lambda _: 1e-4)
            assert call(*command, tmp_path / name, *engine)[0] == 4
    there, here = load_verdict(tmp_path / "RAY"), load_verdict(tmp_path / "HERE")
    assert there.p == here.p
    assert [one.p for one in figures_of(there).variants] == [one.p for one in figures_of(here).variants]
    states = [[(one.title, one.status) for one in found.checks] for found in (there, here)]
    assert states[0] == states[1]
    tables = [{p.name: p.read_bytes() for p in (tmp_path / name).glob("*.csv")} for name in ("RAY", "HERE")]
    assert tables[0] == tables[1]


def test_models_behind_servers_are_asked_from_here():
    class Served(Memory):
        def stream(self, *_): ...

    wanted = ModelsSettings(target=Target(model="vllm:http://127.0.0.1:1"))
    with (
        pytest.raises(ExpressionError, match="--ray has no use: all models are behind servers"),
        reading_elsewhere(EngineSettings(workers=0), wanted, Models(Served())),
    ):
        pass


def test_scanned_on_ray(ray, sentences, tmp_path, call):
    # without controls, a text is found by 300 letters that stand in no other document
    mine = drawn(12, 160)
    written(tmp_path / "texts.jsonl", mine)
    for k in range(4):
        held = [row["text"] for row in mine[k : k + 3]] + [f"{i} {sentences[i % 6]} {i}" for i in range(50)]
        rows = [{"id": f"{k}-{i}", "text": text} for i, text in enumerate(held)]
        written(tmp_path / "corpus" / f"c{k}.jsonl", rows)
    (tmp_path / "corpus" / "c4.jsonl.gz").write_bytes(b"no gzip")
    how = ("scan", tmp_path / "texts.jsonl", "--corpus", tmp_path / "corpus", "--out")
    for name, more in (("HERE", []), ("RAY", ["--ray=workers=1"])):
        code, _, said = call(*how, tmp_path / name, *more)
        assert code == 3, said
    here, there = load_verdict(tmp_path / "HERE"), load_verdict(tmp_path / "RAY")
    assert (here.statement, here.reasons, here.figures) == (there.statement, there.reasons, there.figures)
    for name in ("texts", "hits", "marked"):
        file = f"{name}.csv"
        assert (tmp_path / "HERE" / file).read_bytes() == (tmp_path / "RAY" / file).read_bytes()
