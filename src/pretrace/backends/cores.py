"""How the cores of a machine share batches: a batch a core, or all cores on one batch after the other.

Several threads on one batch wait for each other at the end of each product, long where other programs want the
cores too; a batch a core waits for nobody. So batches are handed to threads of this process that compute with one
thread each, over the same weights. A batch is computed by one thread whoever computes it: its numbers are the same to
the last bit for any number of threads.
"""

from __future__ import annotations

import functools
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

from pretrace.backends import precision
from pretrace.cache.measured import Choice, Round, measured_once

T = TypeVar("T")

APART = "a batch a core"
TOGETHER = "all cores on a batch"
KIND = "cores"
"""The folder of the cache that holds the choices."""
ROUNDS = 3
"""How often both ways are timed at most: the first time that a batch a core is not too slow settles it."""
SLOWER = 1.2
"""Times the seconds of all cores on a batch, in every round, from which a batch a core is refused: where other programs
want the cores too, all cores on a batch take several times as long."""
ROWS = 512
"""Tokens of a batch where each core has its own."""
LEAST_ROWS = 128
"""Tokens of the last batches, which are smaller so that no core waits long for another one at the end."""
_LEAST = 2.0e9  # operations of a batch below which Python's own work, one thread at a time, is most of it
_PRODUCTS = 2.0e9  # operations of a batch that is timed
_TIMED = 4
"""Batches for each core that are timed, besides a first one, which has to start its thread and is not counted."""


def best_sharing(model: Any) -> str:
    """`APART` or `TOGETHER` for a model on this processor; the latter for one that cannot be asked by several threads.

    Measured once for a machine, a number of threads, a format and the shapes of the model's linear layers, and then
    kept in the cache with its figures. With one thread there is nothing to measure: it is `APART`, so that the numbers
    are those of a machine with more.
    """
    layers = [layer for layer in model.modules() if isinstance(layer, torch.nn.Linear)]
    weights = sum(layer.weight.numel() for layer in layers)
    if 2.0 * ROWS * weights < _LEAST or keeps_state(model):
        return TOGETHER
    return sharing_of(precision.shapes_of(model), next(model.parameters()).dtype, torch.get_num_threads())


def keeps_state(model: Any) -> bool:
    """Whether a pass may change what another one reads: positions that are computed anew for each length, weights that
    are moved or unpacked as they are used, and code that came with the model, of which nothing is known."""
    if type(model).__module__.startswith("transformers_modules"):
        return True
    if getattr(model, "hf_device_map", None) or getattr(model, "is_quantized", False):
        return True
    for module in model.modules():
        kinds = getattr(module, "rope_type", None)
        if kinds is not None:
            kinds = kinds.values() if isinstance(kinds, dict) else [kinds]
            if any("dynamic" in str(kind) or kind == "longrope" for kind in kinds):
                return True
    return False


@functools.cache
def sharing_of(shapes: tuple[precision.Shape, ...], dtype: torch.dtype, threads: int) -> str:
    """The sharing for products of these shapes, as `best_sharing`."""
    if threads < 2 or not shapes:
        return APART
    kind = str(dtype).removeprefix("torch.")
    named = precision.machine(f"shapes {shapes} {kind}, {_TIMED} batches for each core")
    return measured_once(KIND, named, lambda: decided(_measured(shapes, dtype, threads), threads)).chosen


def decided(rounds: Sequence[Round], threads: int) -> Choice:
    """The sharing these seconds (all cores on a batch, a batch a core) speak for: time only refuses the second."""
    ratios = [apart / together for together, apart in rounds]
    figures = {
        "threads": threads,
        "seconds_by_round": [list(pair) for pair in rounds],
        "apart_over_together": [round(ratio, 3) for ratio in ratios],
    }
    chosen = TOGETHER if len(ratios) >= 2 and min(ratios) > SLOWER else APART
    told = " and ".join(f"{ratio:.2f}" for ratio in ratios)
    return Choice(
        chosen, f"a batch a core took {told} times as long as {threads} cores on each batch", figures
    )


def _measured(shapes: Sequence[precision.Shape], dtype: torch.dtype, threads: int) -> tuple[Round, ...]:
    """Seconds of `_TIMED` batches for each core through layers of these shapes, both ways, again and again until it is
    known what they speak for."""
    generator = torch.Generator().manual_seed(0)
    each = sum(2 * inputs * outputs for inputs, outputs in shapes)
    rows = int(min(ROWS, max(32, _PRODUCTS // each)))
    layers = [
        (
            torch.randn(rows, i, generator=generator).to(dtype),
            torch.randn(o, i, generator=generator).to(dtype),
        )
        for i, o in shapes
    ]

    @torch.inference_mode()
    def work(_: int) -> None:
        for left, right in layers:
            torch.nn.functional.silu(torch.nn.functional.linear(left, right))

    found: list[Round] = []
    while len(found) < ROUNDS and all(apart > SLOWER * together for together, apart in found):
        found.append((_together(work, threads), _apart(work, threads)))
    return tuple(found)


def _together(work: Callable[[int], object], threads: int) -> float:
    """Seconds of the batches one after the other, after a first one."""
    work(0)
    began = time.perf_counter()
    for number in range(_TIMED * threads):
        work(number)
    return time.perf_counter() - began


def _apart(work: Callable[[int], object], threads: int) -> float:
    """Seconds of the batches a thread each, from when each thread has done one."""
    ended = [time.perf_counter() for _ in spread(work, [1] * ((1 + _TIMED) * threads), workers=threads)]
    return ended[-1] - ended[threads - 1]


class StoppedError(BaseException):
    """Raised in a worker whose work nobody waits for any more; it is no error of the model."""


def spread(
    work: Callable[[int], T],
    sizes: Sequence[int],
    *,
    workers: int,
    room: int | None = None,
    stop: threading.Event | None = None,
) -> Generator[tuple[int, T]]:
    """(i, `work(i)`) for each of the sizes, as they are done; `work` runs in threads that compute with one thread each.

    Work begins in order. With `room` the sizes under way at once sum to at most that, or one is alone. When the
    iterator ends, is closed or raises, `stop` is set and no thread is left: `work` may look at it and raise
    `StoppedError`. What `work` raises is raised here.
    """
    stop = stop or threading.Event()
    workers = min(workers, len(sizes))
    with _one_thread_each():
        if workers <= 1 and torch.get_num_threads() == 1:  # this thread is already one
            yield from ((i, work(i)) for i in range(len(sizes)))
            return
        crew = _Crew(work, sizes, room, stop)
        threads = [threading.Thread(target=crew.labour, name=f"batches {n}") for n in range(workers)]
        try:
            for thread in threads:
                thread.start()
            for _ in sizes:
                done = crew.done.get()
                if isinstance(done, BaseException):
                    raise done
                yield done
        finally:
            crew.dismiss()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()


class _Crew:
    """What the threads share: the work that is left, what is under way, and what is done."""

    def __init__(
        self, work: Callable[[int], Any], sizes: Sequence[int], room: int | None, stop: threading.Event
    ) -> None:
        self.done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._work, self._sizes, self._room, self._stop = work, sizes, room, stop
        self._left = deque(range(len(sizes)))
        self._under_way = 0
        self._changed = threading.Condition()

    def labour(self) -> None:
        """Take work until there is none; in a thread."""
        torch.set_num_threads(1)
        while (i := self._taken()) is not None:
            try:
                self.done.put((i, self._work(i)))
            except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
                self._stop.set()
                self.done.put(error)
            finally:
                with self._changed:
                    self._under_way -= self._sizes[i]
                    self._changed.notify_all()

    def dismiss(self) -> None:
        """No more work is taken."""
        self._stop.set()
        with self._changed:
            self._changed.notify_all()

    def _taken(self) -> int | None:
        with self._changed:
            self._changed.wait_for(lambda: self._stop.is_set() or not self._left or self._fits())
            if self._stop.is_set() or not self._left:
                return None
            self._under_way += self._sizes[self._left[0]]
            return self._left.popleft()

    def _fits(self) -> bool:
        if self._room is None or not self._under_way:
            return True
        return self._under_way + self._sizes[self._left[0]] <= self._room


_before: list[int] = []
_guard = threading.Lock()
_users = 0


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """While it lasts, threads may set their own number of threads to one. Part of what that sets is not the thread's
    but the process's: it is put back when nobody needs it any more."""
    global _users
    with _guard:
        if _users == 0:
            _before[:] = [torch.get_num_threads()]
        _users += 1
    try:
        yield
    finally:
        with _guard:
            _users -= 1
            if _users == 0 and _before[0] != 1:
                torch.set_num_threads(_before[0])
