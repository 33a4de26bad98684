"""Several servers that hold the same model, each asked by one job of an array."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from model_servers import Model, ModelServer, serving

from pretrace.cli import main
from pretrace.jobs import worker
from pretrace.runs import scan

Call = Callable[..., int]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Call:
    """Calls the command line; gives the exit code."""

    def called(*arguments: object) -> int:
        monkeypatch.setattr(sys, "argv", ["pretrace", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        return int(left.value.code or 0)

    return called


def test_two_servers_share_the_shards_of_one_run(
    call: Call,
    plain: Model,
    model_folder: Path,
    tmp_path: Path,
    sentences: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "SHARD", 8)
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps({"id": str(i), "text": sentences[i % 6]}) + "\n" for i in range(40)))
    out = tmp_path / "RUN"
    with serving(ModelServer(plain)) as one, serving(ModelServer(plain)) as other:
        for number, server in enumerate((one, other), 1):
            place = ("--model", f"vllm:{server.root}", "--tokenizer", model_folder)
            shared = ("--scores", "loss", "--no-cache", "--shard", f"{number}/2", "--out", out)
            assert call("score", texts, *place, *shared) == 0
    assert call("runs", "merge", out) == 0
    assert call("score", texts, "--model", model_folder, "--scores", "loss", "--out", tmp_path / "HERE") == 0
    there, here = (
        scan(folder).to_table(columns=["id", "loss"]).to_pydict() for folder in (out, tmp_path / "HERE")
    )
    assert there["id"] == here["id"]
    assert there["loss"] == pytest.approx(here["loss"], abs=1e-4)
