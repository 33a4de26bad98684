"""Modules in the folder where a command runs are not imported by its children: a pull request or a visitor may have put
them there."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from pretrace.errors import PretraceError
from pretrace.plugins.ray import cluster as pool
from pretrace.plugins.serve import Workspace
from pretrace.plugins.serve.jobs import Jobs, WebJob

ROOT = Path(__file__).parents[1]
PLANTED = ("shlex", "json", "base64", "multiprocessing", "pretrace", "ray", "colorsys")
SPAWNING = """
import multiprocessing
from pretrace.scores import scores

@scores.add("none")
class No: "Nothing."

child = multiprocessing.get_context("spawn").Process(target=print)
child.start()
child.join()
"""


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """The working folder, with modules that leave a file RUN when they are imported."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in PLANTED:
        (folder / f"{name}.py").write_text(f"open({str(folder / 'RUN')!r}, 'a').write('{name} ')\n")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    return folder


def run(command, folder, **more):
    found = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": found, **more}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("step", ["Flag", "Summarise"])
def test_a_step_of_the_action(planted, tmp_path, step):
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    [script] = (one["run"] for one in action["runs"]["steps"] if one.get("name") == step)
    given = dict.fromkeys(("TEXTS", "NONMEMBERS", "MODEL", "OUT", "POWER", "ARGUMENTS"), "none")
    outputs = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    done = run(["bash", "--noprofile", "--norc", "-e", "-c", script], planted, **given, **outputs, FDR="0.05")
    assert ("none" in done.stderr, (planted / "RUN").exists()) == (True, False), done.stderr


def test_a_process_that_a_command_spawns(planted, tmp_path):
    (tmp_path / "plugin.py").write_text(SPAWNING)
    done = run(["pretrace", "list", "--plugin", str(tmp_path / "plugin.py")], planted)
    assert (done.returncode, (planted / "RUN").exists()) == (0, False), done.stderr


def test_a_job_of_the_page(planted, tmp_path):
    jobs = Jobs(Workspace.at(tmp_path / "workspace"))
    job = jobs.add("list", ("list",), "results/none")
    while not jobs.state(jobs.workspace.record(WebJob, job.id)).over:
        time.sleep(0.05)
    assert ("Scores" in jobs.log(job), (planted / "RUN").exists()) == (True, False), jobs.log(job)


def test_the_question_whether_a_cluster_answers(planted, monkeypatch):
    monkeypatch.setattr(pool, "ANSWERS_WITHIN", 1.5)
    with socket.create_server(("127.0.0.1", 0)) as nothing, pytest.raises(PretraceError):
        pool._check_answers(f"127.0.0.1:{nothing.getsockname()[1]}")
    assert not (planted / "RUN").exists()


@pytest.mark.timeout(600)
def test_the_workers_of_ray(planted, tmp_path):
    pytest.importorskip("ray")
    code = (
        "from pretrace.plugins.ray import cluster as pool\n"
        "from pathlib import Path\n"
        "with pool._connected('local') as ray:\n"
        "    print(ray.get(ray.remote(lambda: __import__('colorsys').__file__).remote()))\n"
    )
    (tmp_path / "driver.py").write_text(code)
    done = run([sys.executable, str(tmp_path / "driver.py")], planted)
    assert ("colorsys.py" in done.stderr, (planted / "RUN").exists()) == (True, False), done.stderr
