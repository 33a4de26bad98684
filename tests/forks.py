"""Commands in forks of this process, where they close streams: everything is imported once."""

import gc
import importlib
import io
import os
import resource
import signal
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import cache

WARM = (
    "pretrace.cli.commands", "pretrace.runs", "pretrace.scoring.plan", "pretrace.backends.huggingface",
    "pretrace.plugins.build.patents", "pretrace.plugins.build.ccnews",
    "pretrace.plugins.marks.checking", "pretrace.plugins.marks.canaries",
    "pretrace.report.run", "pretrace.report.verdict", "pretrace.plugins.harnesses.samples", "pretrace.frequencies",
    "pyarrow.parquet", "pyarrow.dataset", "peft",
)  # fmt: skip
LONGEST = 20
"""Seconds of processor time after which a command counts as one that never ends."""


@cache
def warm():
    """Import what commands import."""
    for name in WARM:
        importlib.import_module(name)
    from pretrace.cli import main

    arguments = sys.argv
    for words in (["list"], ["score", "absent", "--model", "absent", "--out", "absent"]):
        sys.argv = ["pretrace", *words]
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), suppress(SystemExit):
            main()
    sys.argv = arguments
    from pretrace.cli import commands

    for words in commands.places():
        getattr(commands, words)
    gc.collect()
    gc.freeze()  # a fork copies no page for having counted what lies on it


def forked(words, folder, *, stdin, environment, closed=(), unread=False):
    """`pretrace WORDS` in `folder`, in a fork of this process. `closed` are streams that are closed by number; with
    PYTHONIOENCODING in the environment the console is of that kind; `unread`: what reads standard output has ended."""
    place = folder.parent
    (place / "stdin").write_bytes(stdin)
    process = os.fork()
    if not process:
        _child(words, folder, environment, closed, unread=unread)
    _, status = os.waitpid(process, 0)
    told = [(place / name).read_bytes() for name in ("stdout", "stderr")]
    code = os.waitstatus_to_exitcode(status)
    return code, *(one.decode("utf-8", "replace") for one in told)


def _child(words, folder, environment, closed, *, unread):
    code = 1
    try:
        # of waiting: a pipe takes no processor time, nor does a machine that is busy
        signal.alarm(10 * LONGEST)
        resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST))
        os.environ.update(environment)
        os.chdir(folder)
        _streams(folder.parent, os.environ.get("PYTHONIOENCODING", "utf-8"), closed)
        if unread:
            reading, writing = os.pipe()
            os.close(reading)
            os.dup2(writing, 1)
        sys.argv = ["pretrace", *words]
        from pretrace.cli import main

        try:
            main()
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else int(left.code is not None)
        except BaseException:  # noqa: BLE001 - what the interpreter would print
            text = traceback.format_exc().encode("utf-8", "backslashreplace")
            os.write(2, text)
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    finally:
        os._exit(code)


def _reader(encoding):
    return io.TextIOWrapper(io.BufferedReader(io.FileIO(0, "rb", closefd=False)), encoding)


def _streams(place, encoding, closed):
    """The standard streams as a shell makes them."""
    modes = ((0, "stdin", os.O_RDONLY), (1, "stdout", os.O_WRONLY), (2, "stderr", os.O_WRONLY))
    for number, name, mode in modes:
        opened = os.open(place / name, mode | (os.O_CREAT | os.O_TRUNC if number else 0))
        os.dup2(opened, number)
        os.close(opened)
        if number in closed:
            os.close(number)
    sys.stdin = None if 0 in closed else _reader(encoding)
    buffers = [None if n in closed else io.FileIO(n, "wb", closefd=False) for n in (1, 2)]
    out, err = (one and io.TextIOWrapper(io.BufferedWriter(one), encoding) for one in buffers)
    sys.stdout, sys.stderr = out, err
