"""Actors on Ray that are handed pieces of work one after the other, and replaced when they die.

A piece is put into Ray's object store once and handed out again from there when the actor that had it dies, so that
the process that hands out holds no texts. What an actor makes comes back the same way: nothing is written by actors,
and no disk is shared.
"""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, Self

from pretrace.errors import EngineError, MissingPackageError, PretraceError
from pretrace.jobs.settings import EngineSettings
from pretrace.registry import load_plugin, loaded_plugins

# A Ray cluster: found or started, and how many workers it has room for. Ray is imported only when it is used.


ANSWERS_WITHIN = 30.0
"""Seconds in which a cluster must answer; Ray itself waits for minutes where nothing does."""
_TRY = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR')"
_STORE = 256 << 20  # bytes of a Ray started here: what does not fit goes to disk


@dataclass(frozen=True, slots=True)
class Room:
    """What a cluster has, and the workers that are asked of it: `cpus` and `gpus` are what Ray sets aside for each,
    `threads` those that it computes with."""

    has_cpus: float
    has_gpus: float
    workers: int
    cpus: float
    gpus: float
    threads: int

    @property
    def said(self) -> str:
        """Both in words, for messages."""
        each = f"{self.gpus:g} GPU" if self.gpus else f"{self.cpus:g} CPU"
        return (
            f"the cluster has {self.has_cpus:g} CPU and {self.has_gpus:g} GPU, and {self.workers} "
            f"worker{'s' * (self.workers != 1)} with {each} each were asked for"
        )


def imported() -> Any:
    """The package ray; MissingPackageError without it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would tell its makers of every cluster
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise MissingPackageError("ray", "--engine ray", "ray") from error


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """The package ray, connected to a cluster, or with one of its own on this machine without an address.

    What the process was connected to before is used as it is. Standard output is standard error meanwhile: Ray prints
    there when a worker dies. EngineError where there is no cluster.
    """
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    loaded = sys.modules.get("ray")
    if address != "local" and find_spec("ray") and not (loaded and loaded.is_initialized()):
        check_answers(address)  # before the import, at which Ray reads how it is to show who it is
    ray = imported()
    with redirect_stdout(sys.stderr):
        if ray.is_initialized():
            yield ray
            return
        _begin(ray, address)
        try:
            yield ray
        finally:
            ray.shutdown()


def _begin(ray: Any, address: str) -> None:
    own: dict[str, Any] = {"include_dashboard": False, "object_store_memory": _STORE}
    if address != "local":
        own = {}
    try:
        with chdir(Path.cwd().anchor):  # Ray has its workers import from the folder it is started in
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", **own)
    except (OSError, RuntimeError, ValueError) as error:
        raise EngineError(_refused(address, str(error))) from error


def room(ray: Any, settings: EngineSettings) -> Room:
    """The workers that are asked for; EngineError where the cluster has no room for a single one."""
    found = ray.cluster_resources()
    cpus, gpus, each = found.get("CPU", 0.0), found.get("GPU", 0.0), settings.gpus_per_worker
    workers = settings.workers or int(gpus / each if each else cpus)
    # Ray places an actor of no CPU anywhere: so a GPU is never left idle for want of one, and more workers than
    # processors, which somebody asked for, do not wait for each other.
    share = 0.0 if each or workers > cpus else 1.0
    threads = int(os.environ.get("OMP_NUM_THREADS", 0)) or max(1, int(cpus / max(workers, 1)))
    made = Room(cpus, gpus, workers, share, each, threads)
    if workers < 1:
        raise EngineError(f"there is no room for a worker: {made.said}. Give fewer --gpus-per-worker.")
    return made


def check_answers(address: str) -> None:
    """EngineError where no Ray answers at an address. It is asked by a process of its own: a connection that fails
    cannot be given up from within."""
    if "://" in address:
        raise EngineError(
            f"--address {address}: give HOST:PORT or auto, on a machine of the cluster, where this command must run."
        )
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, ValueError, OverflowError) as error:
        raise EngineError(_refused(address, str(error))) from error
    said = "nothing of Ray answers"
    # Where a token exists, `ray start` asks for it (Ray 2.60), but a process that connects by HOST:PORT sends it only
    # in this mode. Without a token the mode fails, so it is tried last.
    for mode in ({}, {"RAY_AUTH_MODE": "token"}):
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-c", _TRY, address],
                timeout=ANSWERS_WITHIN,
                capture_output=True,
                text=True,
                errors="replace",
                env={**os.environ, **mode},
            )
        except subprocess.TimeoutExpired:
            continue
        if not done.returncode:
            if mode and "ray" in sys.modules:
                raise EngineError(f"the Ray cluster at {address} asks for a token: set RAY_AUTH_MODE=token.")
            os.environ.update(mode)
            return
        said = (done.stderr.strip().splitlines() or [said])[-1]
        if "RAY_AUTH_MODE" in os.environ:
            break
    raise EngineError(_refused(address, said))


def _refused(address: str, reason: str) -> str:
    """What is said where a cluster cannot be had."""
    if address == "local":
        return f"no Ray can be started on this machine: {reason}"
    return (
        f"no Ray cluster at --address {address} ({reason.strip().splitlines()[0][:300]}): start one with "
        "`ray start --head` and give its HOST:PORT, or leave --address out for this machine alone."
    )


PLACED_WITHIN = 60.0
"""Seconds in which the cluster must find room for the first worker."""
AHEAD = 2
"""Pieces handed to an actor at once, so that it never waits for the next."""
MOST_DEATHS = 3
"""Workers that may die over one piece, or one after the other while they open the models."""


class Task(Protocol):
    """What all workers of a pool do; it is sent to them pickled."""

    def open(self) -> tuple[Any, Callable[[Any], Any]]:
        """In a worker, once: what all workers must agree on, and what turns the content of a piece into an answer."""
        ...


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of work: `tag` tells it from others, `name` is how messages call it."""

    tag: Any
    name: str
    content: Any


@dataclass(frozen=True, slots=True)
class Answer:
    """What a worker made of a piece in so many seconds; a `refusal` is the message of a PretraceError."""

    value: Any
    seconds: float = 0.0
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a worker takes over from the process that started it: folder, threads, plug-ins, and whether it has GPUs."""

    folder: str
    threads: int
    gpus: bool
    plugins: tuple[Path, ...]

    def enter(self) -> None:
        """Take it over; a folder that is not there is left alone, absolute paths work without it."""
        os.environ["OMP_NUM_THREADS"] = str(self.threads)  # torch is not imported yet
        if not self.gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # else all workers of a host would crowd on its first GPU
        if Path(self.folder).is_dir():
            os.chdir(self.folder)
        for path in self.plugins:
            load_plugin(path)


class Actor:
    """What runs in a worker process."""

    def __init__(self) -> None:
        self._work: Callable[[Any], Any] | None = None

    def place(self) -> str:
        """The host, once the actor has a place."""
        return socket.gethostname()

    def open(self, setting: Setting, task: Task) -> Answer:
        """What the worker tells of itself, once its models are open."""

        def opened() -> Any:
            setting.enter()
            told, self._work = task.open()
            return told

        return _answer(opened)

    def work(self, content: Any) -> Answer:
        """What became of the content of a piece."""
        work = self._work
        assert work is not None, "it is opened first"
        return _answer(lambda: work(content))


def _answer(make: Callable[[], Any]) -> Answer:
    begin = time.perf_counter()
    try:
        value = make()
    except PretraceError as error:
        return Answer(None, refusal=str(error) or type(error).__name__)
    return Answer(value, time.perf_counter() - begin)


@dataclass(slots=True, eq=False)
class _Hand:
    """One actor: what it was asked and has not answered yet, in order."""

    actor: Any
    placing: Any
    opening: Any
    under_way: deque[tuple[Any, Any, Piece]] = field(default_factory=deque)
    """Answer, content in the object store, and the piece without its content."""

    @property
    def next(self) -> list[Any]:
        """The answers that may come next."""
        return [one for one in (self.placing, self.opening) if one is not None] or [
            reference for reference, _, _ in list(self.under_way)[:1]
        ]


class Pool:
    """Workers on a cluster, as a context manager; they end with it, and with the process.

    `told` is what the workers said when they had opened the models. EngineError where none is placed in time, where
    they die over and over, or where two of them opened different things.
    """

    def __init__(self, ray: Any, task: Task, settings: EngineSettings) -> None:
        self.room: Room = room(ray, settings)
        self.told: Any = None
        self._ray = ray
        self._task = ray.put(task)
        self._setting = Setting(str(Path.cwd()), self.room.threads, self.room.gpus > 0, loaded_plugins())
        self._hands: list[_Hand] = []
        self._deaths: Counter[str] = Counter()
        self._again: deque[tuple[Any, Piece]] = deque()

    def __enter__(self) -> Self:
        try:
            self._hands = [self._started() for _ in range(self.room.workers)]
            limit = time.monotonic() + PLACED_WITHIN
            while self.told is None:
                for _ in self._arrived(1.0):
                    pass
                if time.monotonic() > limit and all(hand.placing is not None for hand in self._hands):
                    raise EngineError(
                        f"no worker found a place in {PLACED_WITHIN:.0f} seconds: {self.room.said}. Ask for fewer "
                        "--workers or --gpus-per-worker, or wait until others leave the cluster."
                    )
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for hand in self._hands:
            self._ray.kill(hand.actor)

    def each(self, pieces: Iterable[Piece]) -> Iterator[tuple[Piece, Answer]]:
        """Each piece, without its content, with its answer, as they come. A PretraceError of a worker is raised here;
        what was answered before stays with the caller."""
        coming = iter(pieces)
        while self._handed_out(coming):
            yield from self._arrived(None)

    def _handed_out(self, coming: Iterator[Piece]) -> bool:
        """Give work to every worker that has room for some; whether any is under way."""
        for turn in range(AHEAD):
            for hand in self._hands:
                if hand.opening is None and len(hand.under_way) == turn:
                    self._hand(hand, coming)
        return bool(self._again) or any(hand.under_way for hand in self._hands)

    def _hand(self, hand: _Hand, coming: Iterator[Piece]) -> None:
        if self._again:
            content, piece = self._again.popleft()
        elif (fresh := next(coming, None)) is not None:
            content, piece = self._ray.put(fresh.content), Piece(fresh.tag, fresh.name, None)
        else:
            return
        hand.under_way.append((hand.actor.work.remote(content), content, piece))

    def _arrived(self, seconds: float | None) -> Iterator[tuple[Piece, Answer]]:
        """The answers that are there, once there is one, or after so many seconds."""
        waiting = {reference: hand for hand in self._hands for reference in hand.next}
        ready, _ = self._ray.wait(list(waiting), num_returns=1, timeout=seconds)
        for reference in ready:
            hand = waiting[reference]
            try:
                answer = self._ray.get(reference)
            except self._ray.exceptions.RayTaskError:
                raise
            except self._ray.exceptions.RayError as error:
                self._replace(hand, str(error))
                continue
            if reference == hand.placing:
                hand.placing = None
                continue
            if answer.refusal:
                raise PretraceError(answer.refusal)
            if reference == hand.opening:
                self._opened(hand, answer.value)
                continue
            _, _, piece = hand.under_way.popleft()
            yield piece, answer

    def _opened(self, hand: _Hand, told: Any) -> None:
        hand.opening = None
        self._deaths.pop("", None)
        if self.told is None:
            self.told = told
        elif told != self.told:
            raise EngineError(
                "two workers opened different things: give all hosts of the cluster the same models, versions of "
                "packages and --dtype."
            )

    def _replace(self, hand: _Hand, reason: str) -> None:
        """Another actor in the place of one that died; its pieces are handed out again."""
        over = hand.under_way[0][2].name if hand.under_way else ""
        self._deaths[over] += 1
        if self._deaths[over] >= MOST_DEATHS:
            doing = f"over {over}" if over else "while they opened the models"
            raise EngineError(
                f"{MOST_DEATHS} workers died {doing} ({_why(reason)}); memory is the usual cause: ask for fewer "
                "--workers. What was done is kept, the same command goes on from there."
            )
        self._again.extend((content, piece) for _, content, piece in hand.under_way)
        self._ray.kill(hand.actor)
        self._hands[self._hands.index(hand)] = self._started()

    def _started(self) -> _Hand:
        how = {"num_cpus": self.room.cpus, "num_gpus": self.room.gpus, "max_restarts": 0}
        actor = self._ray.remote(Actor).options(**how, scheduling_strategy="SPREAD").remote()
        return _Hand(actor, actor.place.remote(), actor.open.remote(self._setting, self._task))


def _why(reason: str) -> str:
    """The telling line of what Ray says of a death."""
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    return next((line for line in lines if "exit detail" in line), lines[-1] if lines else "no reason given")[
        :300
    ]
