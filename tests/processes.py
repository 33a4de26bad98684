"""Traces, Python processes that write them, and processes of the pretrace command that begin at once."""

import importlib
import json
import multiprocessing
import os
import signal
import sqlite3
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pretrace.types import Trace

PRELUDE = """
import sys
from pathlib import Path
import numpy as np
from processes import make_trace as trace, same_traces as same
from pretrace.errors import OutputError
from pretrace.cache import text_key
from pretrace.scoring.evidence import Traces
from pretrace.types import Quantity, Trace

folder = Path(sys.argv[1])
"""


def make_trace(seed, length=50, moments=True):
    """A trace whose content depends on the seed alone."""
    random = np.random.default_rng(seed)
    tokens = random.integers(0, 50_000, length).astype(np.int32)
    logp, mean, std = random.normal(size=(3, length)).astype(np.float32)
    return Trace(tokens, logp, mean, std, seed) if moments else Trace(tokens, logp, cut=seed)


def same_traces(one, two):
    """Whether two traces agree to the last bit."""

    def bits(trace):
        arrays = (trace.tokens, trace.logp, trace.mean, trace.std)
        return trace.cut, [a if a is None else (a.dtype, a.tobytes()) for a in arrays]

    return one is not None and two is not None and bits(one) == bits(two)


@pytest.fixture
def trace():
    return make_trace


@pytest.fixture
def same():
    return same_traces


def edit(store, statement, *values):
    """Change the database of a store behind its back."""
    connection = sqlite3.connect(store.path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


CLI = ("commands", "options", "auditing", "flagging", "making", "scoring")
IMPORTED = (
    *("torch", "transformers.models.gpt_neox.modeling_gpt_neox", "pretrace.scoring.plan"),
    *("pretrace.tuning", *(f"pretrace.cli.{name}" for name in CLI)),
)
"""What a process has imported before it begins: most of what a short command does otherwise."""


INSTEAD = "PRETRACE_TESTS_PACKAGED"
"""The variable that names a folder of a tiny model, which jobs take for the packaged one of 135 million parameters."""


def forking():
    """What starts processes that have imported `IMPORTED` before they begin: the imports are done once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(IMPORTED))
    return context


@dataclass(frozen=True)
class Running:
    """A process of its own, asked as subprocess.Popen is: `said` is where what it says goes, and what it prints unless
    `stdout` can be read while it runs."""

    process: Any
    said: Any = None
    stdout: Any = None

    @property
    def pid(self):
        return self.process.pid

    @property
    def returncode(self):
        return self.process.exitcode

    def poll(self):
        return self.process.exitcode

    def end(self):
        self.process.kill()
        self.process.join()

    def wait(self):
        """The exit code, negative where a signal ended it; a process that goes on for minutes is killed."""
        self.process.join(240)
        self.end()
        return self.process.exitcode

    def communicate(self):
        """What is left on standard output, and all of standard error, once the process has ended."""
        with self.stdout:
            out = self.stdout.read()
        self.process.join()
        return out, self.said.read_text(encoding="utf-8")


@pytest.fixture
def running(tmp_path_factory):
    """Starts a function of this file in a process, forked from one that has imported what most code needs; killed at
    the end."""
    context, every = forking(), []

    def started(target, *given, environment=None, piped=False):
        said = tmp_path_factory.mktemp("said") / "said.txt"
        reader, writer = context.Pipe(duplex=False) if piped else (None, None)
        given = (*given, {**os.environ, **(environment or {})}, said, writer)
        process = context.Process(target=target, args=given)
        process.start()
        if piped:
            writer.close()
            with reader:
                reader = os.fdopen(os.dup(reader.fileno()), encoding="utf-8")
        every.append(Running(process, said, reader))
        return every[-1]

    yield started
    for one in every:
        one.end()
        if one.stdout:
            one.stdout.close()


@pytest.fixture
def program(running):
    """Starts `python -c CODE ARGUMENTS`."""
    return lambda code, *arguments: running(run_code, code, list(map(str, arguments)), piped=True)


@pytest.fixture
def start(tmp_path, program):
    """Starts a Python process that knows `folder`, `trace`, `same` and the store."""
    return lambda code, *arguments: program(PRELUDE + code, tmp_path, *arguments)


@pytest.fixture
def command(running):
    """Starts `pretrace ARGUMENTS`. `changes` are values of constants, by module and name; `environment` is added to
    that of the test."""

    def started(*arguments, changes=None, environment=None):
        return running(run, list(map(str, arguments)), changes or {}, environment=environment)

    return started


def enter(environment, said, out=None):
    """Take on the variables and streams that a forked process is given."""
    os.environ.clear()
    os.environ.update(environment)
    with said.open("ab") as file:
        os.dup2((out or file).fileno(), 1)
        os.dup2(file.fileno(), 2)


def run_code(code, arguments, environment, said, out):
    enter(environment, said, out)
    out.close()
    sys.argv = ["-c", *arguments]
    exec(compile(code, "<program>", "exec"), {"__name__": "__main__"})


def run(arguments, changes, environment, said, out=None):
    enter(environment, said)
    for name, value in changes.items():
        module, _, constant = name.rpartition(".")
        setattr(importlib.import_module(module), constant, value)
    from pretrace.cli import main

    sys.argv = ["pretrace", *arguments]
    main()


def job(arguments, environment, folder, log):
    """The command of a job of the page, in a forked process: with that environment alone, in a group of its own."""
    os.setsid()
    os.chdir(folder)
    if instead := environment.get(INSTEAD):
        from pretrace.backends import naming

        setattr(naming, "_packaged", lambda: naming.locate(instead))  # noqa: B010 (a function of the module)
    run(arguments, {}, environment, Path(log))


@pytest.fixture
def call(monkeypatch, capsys):
    """Calls the command line here; gives the exit code, the output and what was said on standard error."""

    def called(*arguments):
        from pretrace.cli import main

        monkeypatch.setattr(sys, "argv", ["pretrace", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        said = capsys.readouterr()
        return int(left.value.code or 0), said.out, said.err

    return called


@pytest.fixture
def ask(call):
    """Calls the command line, which must leave with `code`, or one of several; gives what it printed and said."""

    def asked(*arguments, code=0):
        left, out, err = call(*arguments)
        assert left in (code if isinstance(code, tuple) else (code,)), (out, err)
        return out, err

    return asked


def killed_half_way(started, parts, below):
    """Kill the command once two parts of its job are there, and fewer than `below`; when each was written, by its
    file."""
    deadline = time.monotonic() + 200
    while len(counted(parts)) < 2 and time.monotonic() < deadline and started.poll() is None:
        time.sleep(0.005)
    os.kill(started.pid, signal.SIGKILL)
    started.wait()
    kept = {name: (parts / name).stat().st_mtime_ns for name in counted(parts)}
    assert 2 <= len(kept) < below
    return kept


def counted(parts):
    """The files of the parts of a job that have a manifest."""
    manifests = [path for path in parts.glob("[!.]*.json") if not path.name.startswith("job-")]
    return [json.loads(path.read_bytes())["file"] for path in manifests]
