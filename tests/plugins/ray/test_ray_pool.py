"""Workers on a real Ray: what they answer, what happens when they die, and when there is no room for them."""

import itertools
import os
import signal
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import pytest

from pretrace.errors import ModelError, PretraceError
from pretrace.plugins.ray import cluster as pool
from pretrace.plugins.ray.cluster import Pool
from pretrace.plugins.ray.scoring import SMALL, shard_size
from pretrace.scoring.evidence import CHUNK
from pretrace.scoring.parts import SHARD, EngineSettings

ON_RAY, ALONE = EngineSettings(workers=2), EngineSettings(workers=1)


@dataclass(frozen=True)
class Doubling:
    """Doubles numbers. A worker dies at the number `deadly`: each one, or only the first where there is a `marker`."""

    deadly: int = 99
    marker: Path | None = None
    opens: bool = True

    def __call__(self):
        if not self.opens:
            die()
        return "doubling", self.double

    def double(self, number):
        if number == self.deadly and (self.marker is None or not self.marker.exists()):
            if self.marker is not None:
                self.marker.write_text(str(os.getpid()))
            die()
        if number < 0:
            raise ModelError("a number below zero: give others.")
        return 2 * number, os.getpid(), os.environ.get("CUDA_VISIBLE_DEVICES")


def odd():
    """Workers that never agree on what they opened."""
    return os.getpid(), lambda content: content


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def pieces(*numbers):
    return [(number, f"number {number}", number) for number in numbers]


def answers(ray, task, *numbers, on=ON_RAY):
    with Pool(ray, task, on) as some:
        return dict(some.each(pieces(*numbers)))


def test_every_piece_has_an_answer_though_a_worker_is_killed(ray, tmp_path):
    found = answers(ray, Doubling(7, tmp_path / "died"), *range(20))
    killed = int((tmp_path / "died").read_text())
    assert {number: answer.value[0] for number, answer in found.items()} == {n: 2 * n for n in range(20)}
    # not two workers among the answers: the killed one may have died at its first piece
    assert found[7].value[1] != killed, "another worker has done what the killed one left"
    assert {answer.value[2] for answer in found.values()} == {""}, "a worker takes a GPU it was not given"


def test_a_piece_that_kills_every_worker_is_named(ray, monkeypatch):
    monkeypatch.setattr(pool, "MOST_DEATHS", 2)
    done = []
    said = r"2 workers died over .*number 5\b.*the same command goes on from there"
    with Pool(ray, Doubling(5), ALONE) as some, pytest.raises(PretraceError, match=said):
        done.extend(tag for tag, _ in some.each(pieces(*range(9))))
    assert 5 not in done
    assert set(done) == set(range(5))  # what was answered before stays


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (Doubling(opens=False), "2 workers died while they opened the models"),
        (Doubling(), r"^a number below zero: give others\.$"),
    ],
)
def test_a_worker_that_cannot_is_told(ray, monkeypatch, task, said):
    monkeypatch.setattr(pool, "MOST_DEATHS", 2)
    with pytest.raises(PretraceError, match=said):
        answers(ray, task, 1, -1, on=ALONE)


def test_workers_that_opened_different_things(ray):
    # pieces without end: the first worker may do any number of them before the second has opened
    endless = ((number, f"number {number}", number) for number in itertools.count())
    with Pool(ray, odd, ON_RAY) as some, pytest.raises(PretraceError, match="opened different things"):
        deque(some.each(endless), maxlen=0)


def test_no_place_for_a_worker(ray, monkeypatch):
    monkeypatch.setattr(pool, "PLACED_WITHIN", 2.0)
    wanted = EngineSettings(workers=2, gpus_per_worker=1)
    said = r"no worker found a place .* 2 CPU and 0 GPU, and 2 workers with 1 GPU"
    with pytest.raises(PretraceError, match=said), Pool(ray, Doubling(), wanted):
        pass
    with pytest.raises(PretraceError, match=r"no room for a worker: the cluster has 2 CPU and 0 GPU"):
        Pool(ray, Doubling(), EngineSettings(gpus_per_worker=1))


def test_more_workers_than_processors_do_not_wait_for_each_other(ray):
    with Pool(ray, Doubling(), EngineSettings(workers=3)) as some:
        assert {answer.value[0] for _, answer in some.each(pieces(*range(9)))} == set(range(0, 18, 2))
    assert Pool(ray, Doubling(), EngineSettings(workers=0)).workers == 2


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:10001", "nowhere"])
def test_an_address_without_ray(address, monkeypatch):
    package = pytest.importorskip("ray")
    monkeypatch.setattr(package, "is_initialized", lambda: False)
    with pytest.raises(PretraceError, match="--ray address="), pool._connected(address):
        pass


def test_shards_depend_on_the_source_alone_and_keep_the_batches():
    assert [shard_size(range(n)) for n in (1, 512, 5_000, SHARD - 1)] == [16, 16, 157, SHARD // SMALL]
    for texts in (SHARD, 50_000, 200_000, 10**6, 10**8):
        size = shard_size(range(texts))
        assert size % CHUNK == 0
        assert CHUNK <= size <= SHARD
    assert shard_size(range(10**8)) == SHARD
