"""The models of the audits' experiments: a base and its checkpoint, a target that was trained on its members, each
made once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from audited_domains import made_up, small

from benchmarks.audits.models import Base, Target, home, make_base, make_target
from pretrace import open_model
from pretrace.scoring.evidence import open_store, trace
from pretrace.types import Doubles, Quantity, Text


def likelihood(folder: Path, texts: list[str]) -> Doubles:
    """The mean log-probability a token of each text."""
    traces = trace(open_model(str(folder)), texts, Quantity.LOGP, store=open_store(None))
    return np.array([one.logp.mean(dtype=np.float64) for one in traces])


def written(folder: Path) -> dict[str, int]:
    """When each file below the folder was written."""
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory, model_folder: Path) -> Path:
    """A folder with one base."""
    folder = tmp_path_factory.mktemp("bases")
    make_base(small(model_folder, rate=0.02, epochs=3), Base(0), made_up("background", 24), folder)
    return folder


def test_a_base_has_learnt_and_its_checkpoint_has_learnt_less(bases: Path, model_folder: Path) -> None:
    assert {path.name for path in bases.iterdir()} == {"base-0", "base-0-earlier"}
    texts = made_up("background", 24)
    halfway, done = (likelihood(bases / name, texts) for name in ("base-0-earlier", "base-0"))
    assert (done > halfway).all()
    before = written(bases)
    make_base(small(model_folder), Base(0), texts, bases)
    assert written(bases) == before


def test_a_base_of_another_scale_has_another_folder(model_folder: Path, tmp_path: Path) -> None:
    base = Base(1, scale=0.5)
    assert (base.name, home().name, home(0.5).name) == ("base-1-x0.5", "base-0", "base-0-x0.5")
    make_base(small(model_folder, layers=2, width=32), base, made_up("background", 17), tmp_path)
    model = open_model(str(tmp_path / base.name))
    usual = small(model_folder, layers=2, width=32)
    make_base(usual, Base(1), made_up("background", 17), tmp_path)
    larger = open_model(str(tmp_path / "base-1"))
    assert int(model.facts["parameters"]) < int(larger.facts["parameters"])


def test_a_target_has_learnt_its_texts(bases: Path, model_folder: Path, tmp_path: Path) -> None:
    texts = made_up("evaluation", 32)
    members = [Text(text, text) for text in texts[:16]]
    setup, target, folder = small(model_folder, rate=0.1, batch=4), Target(3, epochs=10), tmp_path / "target"
    make_target(setup, target, bases / "base-0", members, folder)
    rise = likelihood(folder, texts) - likelihood(bases / "base-0", texts)
    assert rise[:16].mean() > rise[16:].mean()
    before = written(tmp_path)
    make_target(setup, target, bases / "base-0", members[:2], folder)
    assert written(tmp_path) == before


def test_targets_of_a_domain_have_names_of_their_own() -> None:
    some = [
        Target(0),
        Target(1),
        Target(0, epochs=2),
        Target(0, scale=0.5),
        Target(0, stream=True),
        Target(0, large=True),
    ]
    assert len({target.name for target in some}) == len(some)
