"""Bad input: one line that names the cure, exit code 2, nothing left behind, never a traceback."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import Start

from pretrace.cli import main

Make = Callable[[Path, Path], list[str]]
GOOD = [{"id": str(i), "text": f"The cat number {i} sat on the mat.", "label": i % 2} for i in range(12)]


def write(folder: Path, rows: list[dict[str, object]] | str | bytes, name: str = "texts.jsonl") -> str:
    path = folder / name
    if isinstance(rows, list):
        rows = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(rows if isinstance(rows, bytes) else rows.encode())
    return str(path)


def without(field: str) -> list[dict[str, object]]:
    return [{k: v for k, v in row.items() if k != field} for row in GOOD]


def called(command: str, texts: str, model: Path | str, *more: str) -> list[str]:
    return [command, texts, "--model", str(model), *more]


CASES: dict[str, tuple[Make, str]] = {
    "missing file": (lambda t, m: called("score", str(t / "no.jsonl"), m), "no.jsonl"),
    "empty file": (lambda t, m: called("score", write(t, ""), m), "empty|no text"),
    "no such column": (lambda t, m: called("score", write(t, GOOD), m, "--text-column", "body"), "body"),
    "no text column": (lambda t, m: called("score", write(t, without("text")), m), "text"),
    "broken line": (lambda t, m: called("score", write(t, '{"text": "a"}\n{"text": '), m), "line 2"),
    "label of one class": (
        lambda t, m: called("evaluate", write(t, [{**r, "label": 1} for r in GOOD]), m),
        "both classes",
    ),
    "no labels": (lambda t, m: called("evaluate", write(t, without("label")), m), "label"),
    "label of no class": (
        lambda t, m: called("evaluate", write(t, [{**r, "label": "perhaps"} for r in GOOD]), m),
        "perhaps",
    ),
    "duplicate ids": (lambda t, m: called("score", write(t, [{**r, "id": "x"} for r in GOOD]), m), "'x'|x"),
    "null text": (lambda t, m: called("score", write(t, [{"text": None}]), m), "text"),
    "not a model": (lambda t, m: called("score", write(t, GOOD), t), "config.json"),
    "no such model": (lambda t, m: called("score", write(t, GOOD), "nobody/nothing"), "hub"),
    "unknown score": (lambda t, m: called("score", write(t, GOOD), m, "--scores", "min_j"), "min_k"),
    "unknown parameter": (lambda t, m: called("score", write(t, GOOD), m, "--scores", "min_k(q=1)"), "q"),
    "out of range": (lambda t, m: called("score", write(t, GOOD), m, "--scores", "min_k(k=2)"), "at most 1"),
    "wrong type": (lambda t, m: called("score", write(t, GOOD), m, "--scores", "min_k(k='a')"), "number"),
    "code": (
        lambda t, m: called("score", write(t, GOOD), m, "--scores", "__import__('os').system('true')"),
        "not a score",
    ),
    "code in an argument": (
        lambda t, m: called("score", write(t, GOOD), m, "--scores", "min_k(k=(lambda: 1)())"),
        "not a score",
    ),
    "no score at all": (lambda t, m: called("score", write(t, GOOD), m, "--scores", " "), "no score"),
    "no counts": (lambda t, m: called("score", write(t, GOOD), m, "--scores", "dc_pdd"), "pretrace count"),
    "not a count table": (
        lambda t, m: called(
            "score", write(t, GOOD), m, "--scores", "dc_pdd", "--counts", write(t, b"junk", "c.npz")
        ),
        "c.npz",
    ),
    "no reference": (lambda t, m: called("score", write(t, GOOD), m, "--scores", "ref"), "--reference-model"),
    "nothing to predict": (lambda t, m: called("score", write(t, [{"text": "a"}, {"text": ""}]), m), "token"),
    "wrong dtype": (lambda t, m: called("score", write(t, GOOD), m, "--dtype", "int3"), "int3"),
    "limit out of range": (
        lambda t, m: called("score", write(t, GOOD), m, "--max-tokens", "0"),
        "max-tokens",
    ),
    "unknown option": (lambda t, m: called("score", write(t, GOOD), m, "--scroes", "loss"), "--scores"),
    "unknown command": (lambda t, m: called("scroe", write(t, GOOD), m), "score"),
    "wrong start": (lambda t, m: called("score", write(t, GOOD), m, "--start", "often"), "often"),
    "broken gzip": (lambda t, m: called("score", write(t, b"\x1f\x8bjunk", "t.jsonl.gz"), m), "t.jsonl.gz"),
    "broken parquet": (lambda t, m: called("score", write(t, b"PAR1junk", "t.parquet"), m), "t.parquet"),
}


def run(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["pretrace", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    code = left.value.code
    return (0 if code is None else int(code)), capsys.readouterr().err


@pytest.mark.parametrize("case", CASES)
def test_bad_input(
    case: str,
    tmp_path: Path,
    model_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import re

    make, cure = CASES[case]
    arguments = make(tmp_path, model_folder)
    before = sorted(tmp_path.rglob("*"))
    code, said = run([*arguments, "--out", str(tmp_path / "RUN")], monkeypatch, capsys)
    assert code == 2
    assert re.search(cure, said), said
    assert said.count("\n") == 1
    assert said.startswith("pretrace: ")
    assert "Traceback" not in said
    assert sorted(tmp_path.rglob("*")) == before


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
