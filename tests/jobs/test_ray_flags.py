"""`flag` on a real Ray: the flagging of one process."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import MORE_WORDS

from pretrace.cli import main
from pretrace.errors import ModelError
from pretrace.jobs import worker
from pretrace.jobs.engine.work import Scoring
from pretrace.results.serialization import from_json
from pretrace.runs import scan
from pretrace.scoring import evidence
from pretrace.scoring.detect import Options
from pretrace.scoring.holdout import Parts
from pretrace.scoring.settings import ModelsSettings, Target
from pretrace.types import Corpus


@pytest.fixture
def command(
    tmp_path: Path,
    model_folder: Path,
    deadly: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> list[object]:
    """400 texts in 200 documents and 60 known non-members, by a score of a plug-in; 16 texts a shard on Ray, 32 and
    batches planned over 16 here."""
    for seed, (path, number) in enumerate((("mine", 400), ("known", 60))):
        rng = np.random.default_rng(seed)  # near copies would count as one document
        texts = [" ".join(rng.choice(MORE_WORDS, 16)) for _ in range(number)]
        lines = [
            json.dumps({"id": f"t{i}", "text": text, "group": f"{path}{i // 2}"})
            for i, text in enumerate(texts)
        ]
        (tmp_path / f"{path}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.setattr(evidence, "CHUNK", 16)
    monkeypatch.setattr("pretrace.jobs.engine.work.CHUNK", 16)
    monkeypatch.setattr(worker, "SHARD", 32)
    monkeypatch.setattr("pretrace.verdicts.flag.checks.RESAMPLES", 200)
    known = ["--nonmembers", tmp_path / "known.jsonl", "--model", model_folder, "--no-cache"]
    return ["flag", tmp_path / "mine.jsonl", *known, "--score", "deadly", "--plugin", deadly("TEXTS: t150")]


def pretrace(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["pretrace", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0)


def test_the_flagging_is_that_of_one_process(
    ray: Any,
    command: list[object],
    reference_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command += ["--placebo", reference_folder]
    code = pretrace(monkeypatch, *command, "--out", tmp_path / "RAY", "--engine", "ray", "--workers", 1)
    assert code in (0, 3, 4)
    assert not (tmp_path / ".RAY.parts").exists()
    assert pretrace(monkeypatch, *command, "--out", tmp_path / "HERE") == code

    there, here = (scan(tmp_path / name).to_table() for name in ("RAY", "HERE"))
    assert there.num_rows == 400
    assert there.column("p").null_count == 0
    assert there.equals(here)
    for name in ("flags.csv", "known.csv"):
        assert (tmp_path / "RAY" / name).read_bytes() == (tmp_path / "HERE" / name).read_bytes()
    told, said = (from_json((tmp_path / name / "result.json").read_bytes()) for name in ("RAY", "HERE"))
    assert {name for name in told if told[name] != said[name]} <= {"files", "settings", "sha256", "figures"}
    wholes = ({**one["figures"]["whole"], "parts": 0} for one in (told, said))
    assert next(wholes) == next(wholes), "shards are smaller on Ray"
    assert {**told["figures"], "whole": 0} == {**said["figures"], "whole": 0}
    assert {**told["settings"], "command": 0, "time": 0} == {**said["settings"], "command": 0, "time": 0}
    assert {**told["settings"]["command"], "out": 0} == {**said["settings"]["command"], "out": 0}


def test_a_placebo_that_is_the_target_is_refused_by_the_workers(model_folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.symlink_to(model_folder)
    wanted = ModelsSettings(target=Target(model=str(model_folder)), placebos=(str(other),), cache=False)
    task = Scoring(wanted, "loss", Parts(None, None, Corpus("texts", ())), None, Options(cache=False))
    with pytest.raises(ModelError, match="has the very weights of the target"):
        task.open()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--engine", "ray", "--shard", "1/2"], "give one of the two"),
        (["--workers", "2"], "--workers has no use without --engine ray"),
        (["--engine", "dask"], "--engine is local or ray, found 'dask'"),
    ],
)
def test_what_does_not_go_together(
    more: list[str],
    said: str,
    command: list[object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert pretrace(monkeypatch, *command, "--out", tmp_path / "RUN", *more) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert not (tmp_path / "RUN").exists()
