"""No room to write: one line that names the cure, exit code 2, nothing left behind."""

from made import written


def test_a_full_disk(tmp_path, model_folder, program, monkeypatch):
    """Files may not grow beyond 8 kB: the cache cannot be written."""
    rows = [f"{'The cat sat on the mat. ' * 20} {i}" for i in range(60)]
    texts = written(tmp_path / "texts.jsonl", rows)
    code = (
        "import resource, sys; from pretrace.cli import main;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)); import signal;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "main()"
    )
    arguments = ["score", str(texts), "--model", str(model_folder), "--out", str(tmp_path / "RUN")]
    monkeypatch.setenv("PRETRACE_CACHE", str(tmp_path / "cache"))
    done = program(code, *arguments)
    _, said = done.communicate()
    assert done.returncode == 2, said
    assert "Traceback" not in said
    assert not (tmp_path / "RUN").exists()
    assert not list(tmp_path.glob(".RUN*"))
