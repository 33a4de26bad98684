"""The trace cache under fire: killed writers, writers at once, a full disk, a folder without the right."""

import inspect
import os
import signal
import sqlite3
import sys
import time

import numpy as np
import pytest

from pretrace.cache import text_key
from pretrace.errors import OutputError
from pretrace.scoring.evidence import Traces
from pretrace.types import Quantity

BATCH = 8


def batch_keys(number, name=""):
    return [text_key(f"{name}{number} {index}") for index in range(8)]


KEYS = inspect.getsource(batch_keys)


def test_a_killed_writer_leaves_whole_batches(tmp_path, start, trace, same):
    code = f"""{KEYS}
store = Traces("model", folder)
for number in range(int(sys.argv[2]), 1_000_000):
    store.put(batch_keys(number), [trace(number)] * 8)
    print(number, flush=True)
"""
    random, first = np.random.default_rng(1), 0
    for _ in range(3):
        process = start(code, str(first))
        for _ in range(int(random.integers(1, 60))):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        said = process.communicate()[0].split()
        last = int(said[-1]) if said else first
        with Traces("model", tmp_path) as store:
            for number in range(first, last + 5):
                found = store.get(batch_keys(number), Quantity.LOGP)
                whole = all(same(one, trace(number)) for one in found)
                assert whole or (number > last and found == [None] * BATCH)
        first = last + 5
    assert not list(tmp_path.rglob("*.damaged"))


def test_two_writers_lose_nothing(tmp_path, start, trace, same):
    code = f"""{KEYS}
store = Traces("model", folder)
for number in range(200):
    store.put(batch_keys(number, sys.argv[2]), [trace(number)] * 8)
    store.put(batch_keys(number, "both"), [trace(number, moments=sys.argv[2] == "a")] * 8)
"""
    processes = [start(code, name) for name in "ab"]
    for process in processes:
        assert process.communicate()[1] == ""
        assert process.returncode == 0
    with Traces("model", tmp_path) as store:
        for name in ("a", "b", "both"):  # of "both" a wrote more quantities: whatever the order, they stay
            for number in range(200):
                found = store.get(batch_keys(number, name), Quantity.MOMENTS)
                assert all(same(one, trace(number)) for one in found)


def test_many_processes_open_a_new_file_at_once(tmp_path, start):
    code = """
import time
time.sleep(max(0, float(sys.argv[3]) - time.time()))
with Traces("model", folder) as store:
    store.put([text_key(sys.argv[2])], [trace(1)])
"""
    at = str(time.time() + 1.5)
    processes = [start(code, str(number), at) for number in range(6)]
    assert [process.communicate()[1] for process in processes] == [""] * 6
    with Traces("model", tmp_path) as store:
        assert None not in store.get([text_key(str(number)) for number in range(6)], Quantity.LOGP)


def test_a_file_that_may_not_grow_stays_usable(tmp_path, start):
    code = f"""{KEYS}
import resource
store = Traces("model", folder)
store.put(batch_keys(0), [trace(0)] * 8)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
done = 0
try:
    for number in range(1, 1000):
        store.put(batch_keys(number), [trace(number, 500)] * 8)
        done = number
except OutputError as error:
    print(error)
assert 1 <= done < 30, done
assert store.get(batch_keys(done + 1), Quantity.LOGP) == [None] * 8
assert all(same(one, trace(done, 500)) for one in store.get(batch_keys(done), Quantity.LOGP))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.put(batch_keys(done + 1), [trace(done + 1)] * 8)
for number in range(done + 2):
    found = store.get(batch_keys(number), Quantity.LOGP)
    assert all(same(one, trace(number, 500 if 0 < number <= done else 50)) for one in found), number
"""
    out, errors = start(code).communicate()
    assert errors == ""
    assert "cannot be used: disk I/O error; set PRETRACE_CACHE" in out
    assert not list(tmp_path.rglob("*.damaged"))


def test_a_full_disk_is_named(tmp_path, trace, same):
    with Traces("model", tmp_path) as store:
        store.put(batch_keys(0), [trace(0)] * BATCH)
        connection = store._connection
        connection.execute("PRAGMA max_page_count = 12")
        with pytest.raises(OutputError, match=r"the disk is full; free some space, set PRETRACE_CACHE"):
            store.put(batch_keys(1), [trace(1, 5000)] * BATCH)
        assert all(same(one, trace(0)) for one in store.get(batch_keys(0), Quantity.LOGP))
        assert store.get(batch_keys(1), Quantity.LOGP) == [None] * BATCH
        store.put(batch_keys(1), [trace(1, 5000)] * BATCH)


def test_whoever_waits_to_write_or_to_open_gives_up_with_a_word(tmp_path, trace, monkeypatch):
    monkeypatch.setattr("pretrace.cache._WAIT", 0.2)
    with Traces("model", tmp_path) as store:
        put, again = (
            lambda: store.put(batch_keys(0), [trace(0)] * BATCH),
            lambda: Traces("model", tmp_path),
        )
        for held, asked in ((store.path, put), (tmp_path / "traces" / "opening.lock", again)):
            other = sqlite3.connect(held)
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(OutputError, match="held by another process"):
                asked()
            other.close()
        put()
    again().close()


@pytest.mark.skipif(sys.platform != "linux", reason="changes the user of a forked process")
def test_a_folder_without_the_right_to_write(tmp_path, trace):
    with Traces("model", tmp_path) as store:
        store.put(batch_keys(0), [trace(0)] * BATCH)
    for path in (tmp_path, *tmp_path.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    for parent in tmp_path.parents[:3]:
        parent.chmod(parent.stat().st_mode | 0o055)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            Traces("model", tmp_path)
        except OutputError as error:
            code = 0 if "set PRETRACE_CACHE" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for path in (tmp_path, *tmp_path.rglob("*")):
        path.chmod(0o755)
