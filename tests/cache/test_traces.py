"""The trace cache in one process: what goes in comes out, and what is damaged never does."""

import hashlib
import multiprocessing
import os
import sqlite3
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from net.api import Hidden, Quantity, Trace, Traces, cache_folder, text_key
from processes import edit

LOGP, BOTH = Quantity.LOGP, Quantity.LOGP | Quantity.MOMENTS


def keys(count, name="text"):
    return [text_key(f"{name} {index}") for index in range(count)]


def test_what_was_put_comes_back_in_the_order_asked(tmp_path, trace, same):
    traces = [trace(seed, length=seed) for seed in range(5)]
    with Traces("model", tmp_path) as store:
        store.put(keys(5), traces)
    with Traces("model", tmp_path) as store:
        found = store.get([*reversed(keys(5)), text_key("other"), keys(5)[2], keys(5)[2]], BOTH)
    assert found.pop(5) is None
    assert all(map(same, found, [*reversed(traces), traces[2], traces[2]]))


@pytest.mark.parametrize("how", ["ends", "closed", "raises"])
def test_batches_that_wait_for_others_are_stored_whenever_the_passes_end(tmp_path, trace, same, how):
    names, traces = keys(5), [trace(seed, length=3) for seed in range(5)]

    def passes():
        for i in range(4):
            if how == "raises" and i == 3:
                raise KeyboardInterrupt
            yield (i,), [traces[i]]

    with Traces("model", tmp_path) as store:
        kept = store.keeping(names, passes(), 3600.0)
        assert [next(kept)[0] for _ in range(3)] == [(0,), (1,), (2,)]
        assert store.get(names, BOTH) == [None] * 5, "nothing waits"
        if how == "closed":
            kept.close()
        elif how == "raises":
            with pytest.raises(KeyboardInterrupt):
                next(kept)
        else:
            assert len(list(kept)) == 1
        at_once = store.keeping(
            names, (((i,), [traces[i]]) for i in (4,))
        )  # a batch that takes long waits for no other
        next(at_once)
        found = store.get(names, BOTH)
    assert all(map(same, found[:3], traces[:3]))
    assert same(found[3], traces[3]) if how == "ends" else found[3] is None
    assert same(found[4], traces[4])


floats = arrays.arrays(np.float32, st.shared(st.integers(0, 20), key="n"))
tokens = arrays.arrays(np.int32, st.shared(st.integers(0, 20), key="n"))
moments = st.one_of(st.just((None, None)), st.tuples(floats, floats))


@settings(max_examples=40, deadline=None)
@given(st.text(), tokens, floats, moments, st.integers(0, 2**40))
def test_every_bit_comes_back(text, tokens, logp, pair, cut):
    with tempfile.TemporaryDirectory() as folder, Traces(text, Path(folder)) as store:
        store.put([text_key(text)], [Trace(tokens, logp, *pair, cut=cut)])
        (found,) = store.get([text_key(text)], LOGP)
        assert found.cut == cut
        assert found.tokens.tobytes() == tokens.tobytes()
        assert found.logp.tobytes() == logp.tobytes()  # bytes: NaN and -0.0 too
        assert (found.mean is None) == (pair[0] is None)
        if found.mean is not None and found.std is not None:
            assert (found.mean.tobytes(), found.std.tobytes()) == (pair[0].tobytes(), pair[1].tobytes())


def test_more_quantities_answer_for_fewer_but_not_the_reverse(tmp_path, trace, same):
    key, few, many = keys(1), trace(1, moments=False), trace(2)
    with Traces("model", tmp_path) as store:
        store.put(key, [few])
        assert store.get(key, BOTH) == [None]
        assert same(store.get(key, LOGP)[0], few)
        store.put(key, [many])
        assert same(store.get(key, LOGP)[0], many)
        store.put(key, [few])
        assert same(store.get(key, BOTH)[0], many)
        assert same(store.get(key, Quantity.MOMENTS)[0], many)
        store.put(keys(1, "twice at once") * 2, [few, many])
        assert same(store.get(keys(1, "twice at once"), BOTH)[0], many)


def test_thousands_of_keys_in_one_get(tmp_path, trace):
    with Traces("model", tmp_path) as store:
        store._connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999)  # as older ones have it
        store.put(keys(2500), [trace(seed, 1, False) for seed in range(2500)])
        found = store.get(keys(40_000), LOGP)
    assert [trace is not None for trace in found] == [True] * 2500 + [False] * 37_500
    assert [trace.cut for trace in found if trace] == list(range(2500))


@pytest.mark.parametrize("wrong", ["lengths", "half", "number", "state"])
def test_a_wrong_trace_is_refused_and_nothing_of_its_batch_is_kept(tmp_path, trace, wrong):
    good = trace(1)
    short, half = Trace(good.tokens, good.logp[:-1]), Trace(good.tokens, good.logp, good.mean)
    odd = replace(good, states={Hidden(): np.array(["text"])})
    bad = {"lengths": [good, short], "half": [good, half], "number": [good], "state": [good, odd]}
    with Traces("model", tmp_path) as store:
        with pytest.raises(ValueError):  # noqa: PT011  they come from different places
            store.put(keys(2), bad[wrong])
        assert store.get(keys(2), LOGP) == [None, None]


def test_text_keys_tell_texts_apart():
    texts = ["", " ", "a", "A", "a\x00", "\ud800", "\\ud800", "\ud83d\ude00", "😀", "é", "e\u0301"]
    assert len({text_key(text) for text in texts}) == len(texts)
    assert {len(text_key(text)) for text in texts} == {32}
    assert text_key("a") == hashlib.sha256(b"a").digest()


@pytest.mark.parametrize(
    "change",
    [
        "body = zeroblob(length(body))", "body = substr(body, 1, length(body) - 4)", "body = 'text'",
        "body = x''", "label = 'hidden 1'", "checksum = checksum + 1", "checksum = 'none'",
    ],
)  # fmt: skip
def test_a_damaged_row_is_a_miss_and_can_be_mended(tmp_path, trace, same, change):
    with Traces("model", tmp_path) as store:
        store.put(keys(2), [trace(1), trace(2)])
        edit(store, f"UPDATE entries SET {change} WHERE key = ?", keys(2)[0])
        found = store.get(keys(2), LOGP)
        assert found[0] is None
        assert same(found[1], trace(2))
        store.put(keys(1), [trace(3, moments=False)])
        assert same(store.get(keys(1), LOGP)[0], trace(3, moments=False))


def test_a_row_that_another_process_mended_is_not_thrown_away(tmp_path, trace, same):
    with Traces("model", tmp_path) as store, Traces("model", tmp_path) as other:
        store.put(keys(1), [trace(1)])
        edit(store, "UPDATE entries SET body = x'00'")
        assert store.get(keys(1), LOGP) == other.get(keys(1), LOGP) == [None]
        other.put(keys(1), [trace(2)])
        store.put(keys(1), [trace(3, moments=False)])
        assert same(store.get(keys(1), BOTH)[0], trace(2))


@pytest.mark.parametrize("damage", ["text", "head", "cut", "name", "columns", "another model"])
def test_a_damaged_file_is_set_aside(tmp_path, trace, same, damage):
    with Traces("model", tmp_path) as store, Traces("other", tmp_path) as other:
        store.put(keys(40), [trace(seed) for seed in range(40)])
    content = store.path.read_bytes()
    if damage == "columns":
        edit(store, "DROP TABLE entries")
        edit(store, "CREATE TABLE entries (id)")
    else:
        new = {
            "text": b"x" * 5000,
            "head": bytes(100) + content[100:],
            "cut": content[:6000],
            "name": content.replace(b"TABLE entries", b"TABLE entr\xe9es"),
            "another model": other.path.read_bytes(),
        }
        store.path.write_bytes(new[damage])
    with pytest.warns(UserWarning, match="is damaged"):
        store = Traces("model", tmp_path)
    with store:
        assert store.get(keys(40), LOGP) == [None] * 40
        store.put(keys(40), [trace(seed) for seed in range(40)])
        assert same(store.get(keys(40), BOTH)[39], trace(39))
    assert store.path.with_name(store.path.name + ".damaged").exists()


@pytest.mark.filterwarnings("ignore:the cache")
def test_flipped_bits_give_the_trace_or_nothing(tmp_path, trace, same):
    with Traces("model", tmp_path) as store:
        store.put(keys(30), [trace(seed) for seed in range(30)])
    content = store.path.read_bytes()
    random = np.random.default_rng(0)
    for _ in range(50):
        bad = bytearray(content)
        for at in random.integers(0, len(bad), 30):
            bad[at] ^= 1 << int(random.integers(8))
        store.path.write_bytes(bad)
        with Traces("model", tmp_path) as store:
            for _ in range(2):
                found = store.get(keys(30), LOGP)
                assert all(one is None or same(one, trace(seed)) for seed, one in enumerate(found))
                store.put(keys(30), [trace(seed) for seed in range(30)])


@pytest.mark.filterwarnings("ignore:the cache")
def test_damage_met_by_two_at_once_costs_no_new_file(tmp_path, trace, same):
    with Traces("model", tmp_path) as one:
        one.put(keys(40), [trace(seed) for seed in range(40)])
    one, two = Traces("model", tmp_path), Traces("model", tmp_path)
    with one.path.open("r+b") as file:
        file.write(b"\xff" * one.path.stat().st_size)
    assert one.get(keys(40), LOGP) == [None] * 40
    one.put(keys(40, "new"), [trace(seed) for seed in range(40)])
    assert two.get(keys(40), LOGP) == [None] * 40  # meets the same damage, in the file moved away
    two.put(keys(40, "newer"), [trace(seed) for seed in range(40)])
    one.close()
    two.close()
    with Traces("model", tmp_path) as store:
        assert all(map(same, store.get(keys(40, "new"), LOGP), [trace(seed) for seed in range(40)]))
        assert all(map(same, store.get(keys(40, "newer"), LOGP), [trace(seed) for seed in range(40)]))


def test_a_store_is_used_after_a_fork(tmp_path, trace, same):
    def child():
        assert store._connection is None  # sqlite forbids carrying one across a fork
        store.put(keys(1, "child"), [trace(2)])
        os._exit(0 if store.get(keys(1, "parent"), LOGP)[0] is not None else 1)

    with Traces("model", tmp_path) as store:
        store.put(keys(1, "parent"), [trace(1)])
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        store.put(keys(1, "meanwhile"), [trace(3)])
        process.join(30)
        assert process.exitcode == 0
        assert same(store.get(keys(1, "child"), LOGP)[0], trace(2))
        assert same(store.get(keys(1, "meanwhile"), LOGP)[0], trace(3))


def test_threads_share_a_store(tmp_path, trace, same):
    with Traces("model", tmp_path) as store:

        def work(name):
            for seed in range(20):
                store.put([text_key(f"{name} {seed}")], [trace(seed)])

        threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number in range(4):
            found = store.get(keys(20, f"t{number}"), LOGP)
            assert all(same(trace_, trace(seed)) for seed, trace_ in enumerate(found))
    store.close()  # twice is no mistake
    with pytest.raises(ValueError, match="closed"):
        store.get(keys(1), LOGP)


def test_where_the_cache_lies(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("PRETRACE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert cache_folder() == tmp_path / ".cache" / "pretrace"
    for name, value, place in (
        ("XDG_CACHE_HOME", "not/absolute", ".cache/pretrace"),
        ("XDG_CACHE_HOME", str(tmp_path / "xdg"), "xdg/pretrace"),
        ("PRETRACE_CACHE", "off", "xdg/pretrace"),
        ("PRETRACE_CACHE", "~/mine", "mine"),
    ):
        monkeypatch.setenv(name, value)
        assert cache_folder() == tmp_path / place
    with Traces("model") as store:
        assert store.path.is_relative_to(tmp_path / "mine")
