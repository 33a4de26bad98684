"""`action.yml` and `Dockerfile` name what is there, and the action's scripts end as docs/ci.md says. Docker and GitHub
themselves are not run here."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import yaml
from made import options_of
from report.flaggings import flagging, known_of, texts_of

from pretrace.runs import save_verdict
from pretrace.verdicts.flag.concluding import SetTest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = ACTION["runs"]["steps"]
SCRIPTS = {step["name"]: step for step in STEPS if "run" in step}
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
GIVEN = {"TEXTS": "a b.jsonl", "CONTROLS": "$(touch run)", "MODEL": "m", "FDR": "0.05", "OUT": "o"}
ACTIONS = {"actions/setup-python", "actions/upload-artifact"}

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="the action's scripts are for bash")


def bash(step, folder, **given):
    """A step of the action as GitHub starts it, with the variables that its inputs become."""
    script = folder / "step.sh"
    script.write_text(SCRIPTS[step]["run"], encoding="utf-8")
    told = {"GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    words = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)]
    how = {"capture_output": True, "text": True, "check": False}
    return subprocess.run(words, cwd=folder, env={**os.environ, **given, **told}, **how)


def pretend(folder, code):
    """A PATH on which `pretrace` writes its arguments down and leaves with a code."""
    command = folder / "bin" / "pretrace"
    command.parent.mkdir()
    command.write_text(f'#!/usr/bin/env bash\nprintf "%s\\n" "$@" > called\nexit {code}\n', encoding="utf-8")
    command.chmod(0o755)
    return f"{command.parent}{os.pathsep}{os.environ['PATH']}"


def flags_of(name):
    return {leaf.flag for leaf in options_of(name).values()}


def extras_in(text):
    return set(filter(None, re.split(r"[,\s]+", text)))


def test_the_action_names_what_is_there():
    assert ACTION["runs"]["using"] == "composite"
    assert {step["uses"].partition("@")[0] for step in STEPS if "uses" in step} == ACTIONS
    assert all(step["shell"] == "bash" for step in SCRIPTS.values())
    named = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", SCRIPTS["Flag"]["run"]))
    assert {"--controls", "--model", "--fdr", "--out", "--power"} == named
    assert named <= flags_of("flag")
    assert extras_in(ACTION["inputs"]["extras"]["default"]) <= set(PROJECT["optional-dependencies"])


def test_every_input_is_used_and_none_is_made_up():
    written = json.dumps(STEPS)
    assert set(re.findall(r"inputs\.([\w-]+)", written)) == set(ACTION["inputs"])
    ids = {step["id"] for step in STEPS if "id" in step}
    assert set(re.findall(r"steps\.([\w-]+)\.", written + json.dumps(ACTION["outputs"]))) == ids
    for step in SCRIPTS.values():
        assert "${{" not in step["run"], "an input in a script could run as a command"


def test_the_page_lists_the_inputs():
    table = PAGE[PAGE.index("| input |") : PAGE.index("| exit code of")]
    cells = [line.split("|")[1] for line in table.splitlines()[2:] if "|" in line]
    assert set(re.findall(r"`([\w-]+)`", " ".join(cells))) == set(ACTION["inputs"])
    example = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)
    step = yaml.safe_load(example[1])["jobs"]["contamination"]["steps"][1]
    assert set(step["with"]) <= set(ACTION["inputs"])
    named = {one for one in shlex.split(step["with"]["arguments"]) if one.startswith("--")}
    assert named <= flags_of("flag")
    for name, one in ACTION["inputs"].items():
        assert one.get("required") or f"`{one['default']}`" in table or not one["default"], name


@needs_bash
@pytest.mark.parametrize(("code", "left"), [(0, 0), (3, 0), (4, 0), (2, 2), (130, 130)])
def test_the_report_is_kept_before_the_job_fails(tmp_path, code, left):
    arguments = "--method by --score 'min_k(k=0.1)'"
    done = bash("Flag", tmp_path, **GIVEN, ARGUMENTS=arguments, PATH=pretend(tmp_path, code))
    assert done.returncode == left, done.stderr
    assert (tmp_path / "output").read_text(encoding="utf-8") == f"exit-code={code}\n"
    called = (tmp_path / "called").read_text(encoding="utf-8").splitlines()
    assert called[:4] == ["flag", "a b.jsonl", "--controls", "$(touch run)"]
    assert called[-4:] == ["--method", "by", "--score", "min_k(k=0.1)"]
    assert not (tmp_path / "run").exists()


@needs_bash
def test_arguments_that_cannot_be_split_are_not_left_out(tmp_path):
    done = bash("Flag", tmp_path, **GIVEN, ARGUMENTS="--score 'min_k", PATH=pretend(tmp_path, 0))
    assert (done.returncode, "close its quotes" in done.stdout) == (2, True)
    assert not (tmp_path / "called").exists()


@needs_bash
def test_the_summary_of_a_job(tmp_path):
    texts = texts_of(("a", "b"), np.array([3.0, 0.1]), np.array([0.001, 0.4]), (True, False))
    known = known_of(("k",), np.array([0.0]))
    said, test = "Of <b> and `x`: something stands out.", SetTest(0.2, 0.05, 1, 0.1, 2, 99)
    save_verdict(flagging("flagged", texts, known, set_test=test, statement=said), tmp_path / "o")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = bash("Summarise", tmp_path, OUT="o", PATH=path)
    assert done.returncode == 0, done.stderr
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert summary == "```\nOf <b> and x: something stands out.\n```\n"


@needs_bash
def test_outcomes(tmp_path):
    for code, chosen, left, says in (
        ("0", "fail", 0, "Nothing"),
        ("3", "warn", 3, "::error title=Something stands out::"),
        ("4", "warn", 0, "::warning title=Not answered::"),
        ("4", "fail", 4, "::error title=Not answered::"),
        ("4", "", 4, "::error title=Not answered::"),
    ):
        done = bash("Outcome", tmp_path, CODE=code, ON_REFUSED=chosen)
        assert (done.returncode, done.stdout.startswith(says)) == (left, True), (code, chosen)


def test_the_image_is_made_of_what_is_there():
    words = [line.split(maxsplit=1) for line in DOCKERFILE.splitlines() if line.strip() and line[0] != "#"]
    told = dict(words)
    assert words[0] == ["FROM", f"python:{ACTION['inputs']['python-version']['default']}-slim"]
    assert [*map(json.loads, (told["ENTRYPOINT"], told["VOLUME"]))] == [["pretrace"], ["/cache"]]
    assert told["USER"] != "root"
    copied = [name for word, rest in words if word == "COPY" for name in rest.split()[:-1]]
    assert all((ROOT / name).exists() for name in copied)
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    needed = (PROJECT["readme"], *PROJECT["license-files"])  # the build wants these
    assert {f"!{name}" for name in (*copied, *needed)} <= {*ignored}
    extras = re.search(r'"/src\[([\w,]+)\]"', DOCKERFILE)
    assert extras_in(extras[1]) <= set(PROJECT["optional-dependencies"])
    assert "PRETRACE_CACHE=/cache" in told["ENV"]
