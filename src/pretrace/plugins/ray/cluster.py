"""Workers on a Ray cluster: actors that open the models once and are handed shards, batches or files to search, one
piece after the other, and are started anew by Ray when they die.

The content of a piece lies in Ray's object store, so that the process that hands out holds no texts. What an actor
makes comes back the same way: nothing is written by actors, and no disk is shared. Nothing of `scoring` is imported
here: a worker of a scan starts without it.
"""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from pretrace.errors import MissingPackageError, PretraceError
from pretrace.registry import load_plugin, loaded_plugins
from pretrace.results.wording import plural, say
from pretrace.scoring.parts import EngineSettings, Spread, Task

ANSWERS_WITHIN = 30.0
"""Seconds in which a cluster must answer; Ray itself waits for minutes where nothing does."""
_TRY = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR')"
_STORE = 256 << 20  # bytes of a Ray started here: what does not fit goes to disk


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """The package ray, connected to a cluster, or with one of its own on this machine without an address;
    MissingPackageError without the package, PretraceError where there is no cluster.

    What the process was connected to before is used as it is. Standard output is standard error meanwhile: Ray prints
    there when a worker dies.
    """
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would tell its makers of every cluster
    loaded = sys.modules.get("ray")
    if address != "local" and find_spec("ray") and not (loaded and loaded.is_initialized()):
        _check_answers(address)  # before the import, at which Ray reads how it is to show who it is
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        raise MissingPackageError("ray", "--ray", "ray") from error
    with redirect_stdout(sys.stderr):
        if ray.is_initialized():
            yield ray
            return
        own = {"include_dashboard": False, "object_store_memory": _STORE} if address == "local" else {}
        try:
            with chdir(Path.cwd().anchor):  # Ray has its workers import from the folder it is started in
                ray.init(address=address, log_to_driver=False, logging_level="ERROR", **own)
        except (OSError, RuntimeError, ValueError) as error:
            if address == "local":
                raise PretraceError(say("cluster.not_started", reason=str(error))) from error
            raise _no_cluster(address, error) from error
        try:
            yield ray
        finally:
            ray.shutdown()


def _check_answers(address: str) -> None:
    """PretraceError where no Ray answers at an address. It is asked by a process of its own: a connection that fails
    cannot be given up from within."""
    if "://" in address:
        raise PretraceError(say("cluster.address", address=address))
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    asked = [sys.executable, "-P", "-c", _TRY, address]
    how: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace", "check": True}
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
        subprocess.run(asked, timeout=ANSWERS_WITHIN, **how)
    except subprocess.TimeoutExpired as error:
        raise _no_cluster(address, "nothing of Ray answers") from error
    except subprocess.CalledProcessError as error:
        raise _no_cluster(address, error.stderr.strip().rpartition("\n")[2]) from error
    except (OSError, ValueError, OverflowError) as error:
        raise _no_cluster(address, error) from error


def _no_cluster(address: str, reason: object) -> PretraceError:
    return PretraceError(
        say("cluster.none", address=address, reason=str(reason).strip().partition("\n")[0][:300])
    )


PLACED_WITHIN = 60.0
"""Seconds in which the cluster must find room for the first worker."""
MOST_DEATHS = 3
"""Times that a worker may die over one piece, or while it opens the models, until nothing more is tried."""
Piece = tuple[Any, str, Any]
"""One piece of work: what tells it from others, how messages call it, and its content."""


@dataclass(frozen=True, slots=True)
class _PieceAnswer:
    """What a worker made of a piece in so many seconds; a `refusal` is the message of a PretraceError. `told` is what
    it opened, where it opened something for this answer."""

    value: Any
    seconds: float = 0.0
    refusal: str = ""
    told: Any = None


class Actor:
    """What runs in a worker process. Ray starts it anew where it dies, and asks it again what it had not answered."""

    def __init__(self) -> None:
        self._work: Callable[[Any], Any] | None = None

    def place(self) -> str:
        """The host, once the actor has a place."""
        return socket.gethostname()

    def answer(self, setting: tuple[Any, ...], task: list[Any], *content: Any) -> _PieceAnswer:
        """What became of the content of a piece. Before the first one, and without a content, the worker takes over the
        folder, threads, GPUs and plug-ins of the process that has started it, and opens the task, of which it is given
        the place in the object store."""
        begin, told = time.perf_counter(), None
        try:
            if self._work is None:
                folder, threads, gpus, plugins = setting
                os.environ["OMP_NUM_THREADS"] = str(threads)  # torch is not imported yet
                if not gpus:  # else all workers of a host would crowd on its first GPU
                    os.environ["CUDA_VISIBLE_DEVICES"] = ""
                if Path(folder).is_dir():  # where it is not, absolute paths work
                    os.chdir(folder)
                for path in plugins:
                    load_plugin(path)
                told, self._work = importlib.import_module("ray").get(task[0])()
            value = self._work(*content) if content else None
        except PretraceError as error:
            return _PieceAnswer(None, refusal=str(error) or type(error).__name__)
        return _PieceAnswer(value, time.perf_counter() - begin, told=told)


class Pool:
    """Workers on a cluster, as a context manager; they end with it, and with the process.

    `told` is what the workers said when they had opened the models. PretraceError where the cluster has no room for a
    single one, where none is placed in time, where they die over and over, or where two of them opened different
    things.
    """

    def __init__(self, ray: Any, task: Task, settings: EngineSettings) -> None:
        found, gpus = ray.cluster_resources(), settings.gpus_per_worker
        has_cpus, has_gpus = found.get("CPU", 0.0), found.get("GPU", 0.0)
        self.workers = settings.workers or int(has_gpus / gpus if gpus else has_cpus)
        # Ray places an actor of no CPU anywhere: so a GPU is never left idle for want of one, and more workers than
        # processors, which somebody asked for, do not wait for each other.
        cpus = 0.0 if gpus or self.workers > has_cpus else 1.0
        self._set_aside = {"num_cpus": cpus, "num_gpus": gpus}
        each = f"{gpus:g} GPU" if gpus else f"{cpus:g} CPU"
        has = {"has_cpus": has_cpus, "has_gpus": has_gpus}
        self._room = say("cluster.room", **has, workers=plural(self.workers, "worker"), each=each)
        if self.workers < 1:
            raise PretraceError(say("cluster.full", room=self._room))
        threads = int(os.environ.get("OMP_NUM_THREADS", 0)) or max(1, int(has_cpus / self.workers))
        self.told: Any = None
        self._ray = ray
        setting = str(Path.cwd()), threads, gpus > 0, loaded_plugins()
        self._opening = setting, [ray.put(task)]
        self._actors: list[Any] = []
        self._free: list[Any] = []
        self._under_way: dict[Any, tuple[Any, tuple[Any, str] | None]] = {}

    def __enter__(self) -> Self:
        ray, how = self._ray, {**self._set_aside, "scheduling_strategy": "SPREAD"}
        actor = ray.remote(Actor).options(**how, max_restarts=-1, max_task_retries=MOST_DEATHS - 1)
        try:
            self._actors = [actor.remote() for _ in range(self.workers)]
            placed, _ = ray.wait([one.place.remote() for one in self._actors], timeout=PLACED_WITHIN)
            if not placed:
                raise PretraceError(say("cluster.no_place", seconds=PLACED_WITHIN, room=self._room))
            self._under_way = {one.answer.remote(*self._opening): (one, None) for one in self._actors}
            while self.told is None:
                self._arrived()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for actor in self._actors:
            self._ray.kill(actor)

    def each(self, pieces: Iterable[Piece]) -> Iterator[tuple[Any, _PieceAnswer]]:
        """What tells each piece from others, with its answer, as they come. A PretraceError of a worker is raised here;
        what was answered before stays with the caller."""
        coming = iter(pieces)
        while True:
            while self._free and (piece := next(coming, None)) is not None:
                actor = self._free.pop()
                # what is too large for a message goes into Ray's store, and from there again to whoever is asked anew
                self._under_way[actor.answer.remote(*self._opening, piece[2])] = actor, piece[:2]
            if all(piece is None for _, piece in self._under_way.values()):
                return
            piece_of, answer = self._arrived()
            if piece_of is not None:
                yield piece_of[0], answer

    def _arrived(self) -> tuple[tuple[Any, str] | None, _PieceAnswer]:
        """The next answer and its piece, None where a worker has opened the models."""
        [reference], _ = self._ray.wait(list(self._under_way))
        actor, piece = self._under_way.pop(reference)
        try:
            answer: _PieceAnswer = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            if isinstance(error, self._ray.exceptions.RayTaskError):  # a mistake in what it does
                raise
            doing = f"over {piece[1]}" if piece else "while they opened the models"
            why = " ".join(str(error).split())[-300:]
            raise PretraceError(say("cluster.died", most=MOST_DEATHS, doing=doing, why=why)) from error
        if answer.refusal:
            raise PretraceError(answer.refusal)
        if self.told is None:
            self.told = answer.told
        elif answer.told is not None and answer.told != self.told:
            raise PretraceError(say("cluster.different"))
        self._free.append(actor)
        return piece, answer


@contextmanager
def opened_pool(settings: EngineSettings, task: Task) -> Iterator[Pool]:
    """A pool of workers on the cluster that the settings name. All hosts must see files under the same names."""
    with _connected(settings.address) as ray, Pool(ray, task, settings) as pool:
        yield pool


@contextmanager
def spread_on_cluster(settings: EngineSettings) -> Iterator[Spread]:
    """Have a pool of workers for each task, on one connection to the cluster."""
    with _connected(settings.address):

        def spread(task: Task, pieces: Iterable[Piece]) -> Iterator[tuple[Any, Any]]:
            with opened_pool(settings, task) as pool:
                yield from ((tag, answer.value) for tag, answer in pool.each(pieces))

        yield spread
