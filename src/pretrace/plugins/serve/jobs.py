"""Commands that run for a visitor: child processes `python -m pretrace …`, recorded as files in the workspace.

A job goes on without the server and is found again by the next one: job.json holds the command, the process and the
moment it began (a number alone may by now belong to another process). How a job ended, the command itself writes to
progress.json; one whose process is gone without that was stopped, and can go on: commands keep what they have read.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import psutil

from pretrace.plugins.serve import RequestError, Workspace, fresh, save
from pretrace.plugins.serve.command import ServeSettings
from pretrace.results.atomic import atomic_bytes, json_object
from pretrace.results.folder import to_json
from pretrace.results.wording import say, sentences_of
from pretrace.runs import MARKERS

_PROGRESS_VARIABLE = "PRETRACE_PROGRESS"
_LOG_SHOWN = 20_000
_MODELS_SHOWN = 12
AHEAD = ("--plan", "--dry-run")
"""The options by which a command says what it would do, and ends."""
_SAME_MOMENT = 1.0
_STOPPED = 130

Name = Literal["waiting", "running", "stopping", "done", "unanswered", "failed", "stopped"]


@dataclass(frozen=True, slots=True)
class WebJob:
    """One command: what it is called, its arguments, the folder its result goes to (relative to the workspace), and
    the process that does it (0 while it waits). `stopped` is when a visitor asked it to stop, 0 if nobody did.
    `texts` is the upload that it is about, and `case` what was said there, as part of an address."""

    id: str
    title: str
    command: tuple[str, ...]
    out: str
    at: float
    folder: str
    pid: int = 0
    born: float = 0.0
    stopped: float = 0.0
    texts: str = ""
    case: str = ""

    @property
    def plans(self) -> bool:
        """Whether it looks ahead and reads nothing yet."""
        return not {*AHEAD}.isdisjoint(self.command)


@dataclass(frozen=True, slots=True)
class State:
    """How a job is doing: `share` from 0 to 1, `left` seconds or None, what it does or how it ended, a result."""

    name: Name
    share: float = 0.0
    left: float | None = None
    said: str = ""
    result: bool = False

    @property
    def words(self) -> str:
        """The state in words."""
        return str(sentences_of("states")[self.name])

    @property
    def over(self) -> bool:
        """Whether nothing more happens by itself."""
        return self.name in ("done", "unanswered", "failed", "stopped")


class Jobs:
    """The jobs of a workspace; `settings` say what a command may know of this process's environment, and what all that
    is served takes in and runs at most."""

    def __init__(self, workspace: Workspace, settings: ServeSettings | None = None) -> None:
        self.workspace, self.settings = workspace, settings or ServeSettings()
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._lock = threading.RLock()

    def check_room(self, number: int = 1) -> None:
        """RequestError where so many jobs more cannot wait: too many wait already, or the workspace is full."""
        waiting = sum(state.name == "waiting" for _, state in self.states())
        if waiting + number > (most := self.settings.most_waiting):
            raise RequestError(say("serve.refused.waiting", waiting=waiting, most=most), 429)
        self.workspace.left(self.settings.most_kept)

    def add(
        self, title: str, command: tuple[str, ...], out: str, *, texts: str = "", case: str = ""
    ) -> WebJob:
        """A job that waits for its turn. RequestError where `check_room` has one."""
        now, here = time.time(), str(Path.cwd())
        made = WebJob(fresh(command[0]), title, command, out, now, here, texts=texts, case=case)
        with self._lock:
            self.check_room()
            self.workspace.check_room("jobs", self.settings.most_records)
            place = self._place(made)
            place.mkdir()
            save(place / "job.json", made)
        self.tick()
        return self.workspace.record(WebJob, made.id)

    def states(self) -> list[tuple[WebJob, State]]:
        """All jobs with how they are doing, the latest first."""
        return [(job, self.state(job)) for job in self.workspace.records(WebJob)]

    def models(self) -> list[str]:
        """Models that were named before, the latest first."""
        words = (word.partition("--model=") for job in self.workspace.records(WebJob) for word in job.command)
        return [*dict.fromkeys(model for before, sign, model in words if sign and not before)][:_MODELS_SHOWN]

    def state(self, job: WebJob) -> State:
        """How a job is doing, from its process and its files."""
        alive = self._process(job)  # before the file is read: a command writes how it ended, and is gone then
        told = json_object(self._place(job) / "progress.json") or {}
        ended, said = told.get("ended"), str(told.get("message") or told.get("said") or "")
        folder = self.workspace.within(job.out)
        # a result that is whole: the parts of a large run lie there before that
        result = any((folder / marker).is_file() for marker in MARKERS)
        if alive:
            name: Name = "stopping" if job.stopped else "running"
            return State(name, told.get("share") or 0.0, told.get("left"), said)
        if isinstance(ended, int) and ended != _STOPPED:
            if ended in (0, 3, 4):
                return State("done" if result else "unanswered", 1.0, result=result)
            return State("failed", said=said, result=result)
        if not job.pid and not job.stopped:
            return State("waiting")
        gone = not job.stopped and ended != _STOPPED
        said = "Its process is gone: this machine was restarted, say." if gone else ""
        return State("stopped", said=said, result=result)

    def log(self, job: WebJob) -> str:
        """The end of what the command printed."""
        with suppress(OSError), (self._place(job) / "log.txt").open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _LOG_SHOWN))
            return file.read().decode("utf-8", "replace")
        return ""

    def stop(self, job: WebJob) -> None:
        """Ask the command to stop, as Ctrl-C does; what it has read is kept."""
        with self._lock:
            job = self.workspace.record(WebJob, job.id)
            self._keep(replace(job, stopped=job.stopped or time.time()))
            self._signal(job, signal.SIGINT)

    def resume(self, job: WebJob) -> None:
        """Let a job that is over take its turn again."""
        with self._lock:
            job = self.workspace.record(WebJob, job.id)
            if not self.state(job).over:
                return
            self.check_room()
            (self._place(job) / "progress.json").unlink(missing_ok=True)
            self._keep(replace(job, pid=0, born=0.0, stopped=0.0))
            self.tick()

    def tick(self) -> None:
        """Start the job whose turn it is, and end those that were asked to stop and do not, or take too much."""
        with self._lock:
            free, states = self.settings.most_running, self.states()
            for job, state in states:
                free -= state.name in ("running", "stopping")
                if state.name == "running":
                    self._end_excess(job)
                if state.name == "stopping" and time.time() - job.stopped > self.settings.stop_seconds:
                    self._signal(job, signal.SIGKILL)
            waiting = [job for job, state in reversed(states) if state.name == "waiting"]
            for job in waiting[: max(0, free)]:
                self._start(job)

    def _start(self, job: WebJob) -> None:
        place = self._place(job)
        environment = self.settings.environment(os.environ)
        environment |= {_PROGRESS_VARIABLE: str(place / "progress.json"), "NO_COLOR": "1", "COLUMNS": "100"}
        folder = job.folder if Path(job.folder).is_dir() else self.workspace.folder
        try:
            with (place / "log.txt").open("ab") as log:
                child = subprocess.Popen(
                    [sys.executable, "-P", "-m", "pretrace", *job.command],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment,
                    cwd=folder,
                    start_new_session=True,  # a Ctrl-C that stops the server is not for it
                )
        except (OSError, ValueError) as error:  # or it would keep those that wait behind it from their turn
            self._fail(job, f"The command cannot be started ({error}): start again with other values.")
            return
        self._children[child.pid] = child
        with suppress(psutil.Error):
            self._keep(replace(job, pid=child.pid, born=psutil.Process(child.pid).create_time()))

    def _end_excess(self, job: WebJob) -> None:
        """End a running job, with its children, that takes more memory (no pages of files) or hours than it may."""
        memory, hours, taken = self.settings.job_memory, self.settings.job_hours, 0
        processes: list[psutil.Process] = []
        with suppress(psutil.Error):
            process = psutil.Process(job.pid)
            processes = [process, *process.children(recursive=True)]
        for one in processes:
            with suppress(psutil.Error):
                known = one.memory_info()
                taken += known.rss - getattr(known, "shared", 0)
        if taken > memory * 1_000_000:
            said = say("serve.excess.memory", memory=memory)
        elif time.time() - job.born > hours * 3600:
            said = say("serve.excess.hours", hours=hours)
        else:
            return
        for one in processes:
            with suppress(psutil.Error):
                one.kill()
        psutil.wait_procs(processes, self.settings.stop_seconds)
        self._fail(job, said)

    def _fail(self, job: WebJob, said: str) -> None:
        """Say in place of the command how it ended."""
        atomic_bytes(self._place(job) / "progress.json", to_json({"ended": 2, "message": said}))

    def _process(self, job: WebJob) -> psutil.Process | None:
        """The process of a job while it runs."""
        child = self._children.get(job.pid)
        ended = not job.pid or (child is not None and child.poll() is not None)
        return None if ended else running(job.pid, job.born)

    def _signal(self, job: WebJob, number: signal.Signals) -> None:
        with suppress(psutil.Error):
            if (process := self._process(job)) is not None:
                process.send_signal(number)

    def _place(self, job: WebJob) -> Path:
        return self.workspace.folder / "jobs" / job.id

    def _keep(self, job: WebJob) -> None:
        save(self._place(job) / "job.json", job)


def running(pid: int, born: float) -> psutil.Process | None:
    """The process of a number, while it runs; None where the number belongs to one that began at another moment."""
    with suppress(psutil.Error):
        found = psutil.Process(pid)
        if abs(found.create_time() - born) < _SAME_MOMENT and found.status() != psutil.STATUS_ZOMBIE:
            return found
    return None
