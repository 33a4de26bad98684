"""A Ray cluster: found or started, and how many workers it has room for. Ray is imported only when it is used."""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from pretrace.errors import EngineError, MissingPackageError
from pretrace.jobs.settings import EngineSettings

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
            asked = [sys.executable, "-c", _TRY, address]
            done = subprocess.run(
                asked,
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
