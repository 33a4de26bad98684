"""No place and no room to write: one line that names the cure, exit code 2, nothing left behind."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from processes import Start

from pretrace.cli import main

GOOD = [{"id": str(i), "text": f"The cat number {i} sat on the mat.", "label": i % 2} for i in range(12)]


def write(folder: Path, rows: list[dict[str, object]] | str | bytes, name: str = "texts.jsonl") -> str:
    path = folder / name
    if isinstance(rows, list):
        rows = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(rows if isinstance(rows, bytes) else rows.encode())
    return str(path)


def called(command: str, texts: str, model: Path | str, *more: str) -> list[str]:
    return [command, texts, "--model", str(model), *more]


def run(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["pretrace", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    code = left.value.code
    return (0 if code is None else int(code)), capsys.readouterr().err


def test_no_place_to_write(
    tmp_path: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = write(tmp_path, GOOD)
    for out in (Path(texts) / "below-a-file", tmp_path):  # the second holds what is not a run
        code, said = run([*called("score", texts, model_folder), "--out", str(out)], monkeypatch, capsys)
        assert code == 2
        assert said.startswith("pretrace: ")
    assert Path(texts).read_text().count("\n") == len(GOOD)


def test_a_full_disk(
    tmp_path: Path, model_folder: Path, program: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files may not grow beyond 8 kB: the cache cannot be written."""
    texts = write(tmp_path, [{"text": f"{'The cat sat on the mat. ' * 20} {i}"} for i in range(60)])
    code = (
        "import resource, sys; from pretrace.cli import main;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)); import signal;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "main()"
    )
    arguments = called("score", texts, model_folder, "--out", str(tmp_path / "RUN"))
    monkeypatch.setenv("PRETRACE_CACHE", str(tmp_path / "cache"))
    done = program(code, *arguments)
    _, said = done.communicate()
    assert done.returncode == 2, said
    assert "Traceback" not in said
    assert not (tmp_path / "RUN").exists()
    assert not list(tmp_path.glob(".RUN*"))
