"""States beside the traces, and what models wrote: all comes back to the last bit, under what it was made with, or
not at all."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from processes import edit

from pretrace.cache import NEIGHBORS, TEXT, WRITTEN, Draw, Entries, text_key, written_once
from pretrace.scoring.evidence import Traces, _state_name
from pretrace.types import Firing, Hidden, Quantity, Sampling, Trace, Written

LOGP, BOTH = Quantity.LOGP, Quantity.LOGP | Quantity.MOMENTS
FIRING, COUNT, ALL, ONE = Firing(), Firing("count", 0.5, True), Hidden(), Hidden(17)
KEYS = [text_key(str(number)) for number in range(3)]


def inside(seed, *states):
    random = np.random.default_rng(seed)
    made = {
        FIRING: random.integers(0, 256, (3, 5)).astype(np.uint8),
        COUNT: random.integers(0, 2**32, (3, 40)).astype(np.uint32),
        ALL: random.normal(size=(4, 8)).astype(np.float32),
        ONE: random.normal(size=8).astype(np.float32),
    }
    return {state: made[state] for state in states}


def agree(found, wanted):
    if found is None or set(found.states) != set(wanted):
        return False
    return all(
        found.states[state].tobytes() == array.tobytes()
        and found.states[state].dtype == array.dtype
        and found.states[state].shape == array.shape
        for state, array in wanted.items()
    )


def test_states_come_back_exactly_as_wanted(tmp_path, trace, same):
    everything = (FIRING, COUNT, ALL, ONE)
    with Traces("model", tmp_path) as store:
        store.put(KEYS, [replace(trace(seed), states=inside(seed, *everything)) for seed in range(3)])
    with Traces("model", tmp_path) as store:
        for wanted in ((), (FIRING,), (ONE, COUNT), everything):
            found = store.get([KEYS[2], text_key("other"), *KEYS], BOTH, frozenset(wanted))
            assert found[1] is None
            for one, seed in zip([found[0], *found[2:]], [2, 0, 1, 2], strict=True):
                assert same(one, trace(seed))
                assert agree(one, inside(seed, *wanted))
        with pytest.raises(ValueError, match="read-only"):
            found[0].states[FIRING][0, 0] = 1


def test_a_hit_needs_every_state_and_every_quantity(tmp_path, trace):
    few = replace(trace(0, moments=False), states=inside(0, FIRING))
    with Traces("model", tmp_path) as store:
        store.put(KEYS[:1], [few])
        assert store.get(KEYS[:1], LOGP, frozenset({FIRING, ONE})) == [None]
        assert store.get(KEYS[:1], LOGP, frozenset({Firing(threshold=1.5)})) == [None]
        assert store.get(KEYS[:1], BOTH, frozenset({FIRING})) == [None]
        assert agree(store.get(KEYS[:1], LOGP, frozenset({FIRING}))[0], inside(0, FIRING))


def test_states_add_up_over_runs_and_outlive_a_better_trace(tmp_path, trace, same):
    with Traces("model", tmp_path) as store:
        store.put(KEYS[:1], [replace(trace(0, moments=False), states=inside(0, FIRING))])
        store.put(KEYS[:1], [replace(trace(1), states=inside(0, ONE))])
        store.put(KEYS[:1], [trace(2, moments=False)])
        store.put(KEYS[:1], [replace(trace(3, moments=False), states=inside(9, ONE, ALL))])
        (found,) = store.get(KEYS[:1], BOTH, frozenset({FIRING, ONE, ALL}))
        assert same(found, trace(1))
        assert agree(found, inside(0, FIRING, ONE) | inside(9, ALL))


@pytest.mark.parametrize(("column", "value"), [("key", text_key("other")), ("label", "hidden 3")])
def test_a_state_moved_elsewhere_is_a_miss(tmp_path, trace, column, value):
    with Traces("model", tmp_path) as store:
        store.put(KEYS[:1], [replace(trace(0), states=inside(0, ONE))])
        store.put([text_key("other")], [trace(1)])
        edit(store, f"UPDATE entries SET {column} = ? WHERE label = 'hidden 17'", value)
        for key in (KEYS[0], text_key("other")):
            for state in (ONE, Hidden(3)):
                assert store.get([key], LOGP, frozenset({state})) == [None]


def test_equal_states_have_one_name_and_others_another():
    assert {_state_name(Firing(threshold=one)) for one in (1, 1.0)} == {"firing any>1.0 gated=False"}
    assert _state_name(Firing(threshold=-0.0)) == _state_name(Firing(threshold=0.0))
    states = [FIRING, COUNT, ALL, ONE, Hidden(0), Hidden(1), Firing("mean"), Firing(threshold=1.1)]
    states += [Firing(threshold=-1.0), Firing(gated=True)]
    assert len({_state_name(state) for state in states}) == len(states)
    assert _state_name(ALL) == "hidden all"
    assert _state_name(ONE) == "hidden 17"


dtypes = st.sampled_from([np.uint8, np.uint32, np.int64, np.float16, np.float32, np.float64, np.bool_, ">f4"])


@settings(max_examples=40, deadline=None)
@given(array=dtypes.flatmap(lambda d: arrays.arrays(d, arrays.array_shapes(min_dims=0, min_side=0))))
def test_every_bit_of_a_state_comes_back(array):
    one = Trace(np.zeros(1, np.int32), np.zeros(1, np.float32), states={ALL: array})
    with tempfile.TemporaryDirectory() as folder, Traces("model", Path(folder)) as store:
        store.put(KEYS[:1], [one])
        (found,) = store.get(KEYS[:1], LOGP, frozenset({ALL}))
        back = found.states[ALL]
        assert back.shape == array.shape
        assert back.dtype == array.dtype.newbyteorder("=")
        assert back.tobytes() == array.astype(back.dtype).tobytes()


NAMES = [text_key(name) for name in "abc"]
DRAW = Draw(32, Sampling(0.6, 0.9, 1.2), 0)
ODD = "vier ü\ud800\x00\n🙂 "
KINDS = {
    "continuations": (TEXT, ODD, ""),
    "neighbors": (NEIGHBORS, (ODD, "", "three"), ("x",)),
    "written": (WRITTEN, Written(ODD), Written("two", ended=False)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_written_comes_back(kind, tmp_path):
    codec, one, other = KINDS[kind]
    with Entries(kind, "model", tmp_path) as kept:
        kept.write([(NAMES[0], "how", one, codec), (NAMES[1], "how", other, codec)])
        kept.write([])
    with Entries(kind, "model", tmp_path) as kept:
        assert kept.find([NAMES[1], NAMES[2], NAMES[0]], "how", codec) == {NAMES[0]: one, NAMES[1]: other}
        assert kept.find(NAMES, "otherwise", codec) == {}
    assert kept.path.parent == tmp_path / kind
    with Entries(kind, "another", tmp_path) as kept, Entries(kind, None) as none:
        none.write([(NAMES[0], "how", one, codec)])
        assert kept.find(NAMES, "how", codec) == none.find(NAMES, "how", codec) == {}


def test_another_setting_is_another_text():
    samplings = [Sampling(0.6 + 1e-16, 0.9, 1.2), Sampling(0.6, 0.8, 1.2), Sampling(0.6, 0.9, 1)]
    others = [replace(DRAW, tokens=33), replace(DRAW, seed=1)]
    others += [replace(DRAW, sampling=sampling) for sampling in samplings]
    assert len({DRAW.label, *(other.label for other in others)}) == 6
    assert Draw(sampling=Sampling(1, 1, 1)).label == Draw().label


def test_what_is_there_stays_but_a_longer_list_takes_the_place_of_a_shorter_one(tmp_path):
    some = ("one", "two", "three")
    kept = {NEIGHBORS: ((some[:2], some, some[:1]), some), TEXT: (("one", "another"), "one")}
    with Entries("any", "model", tmp_path) as store:
        for codec, (contents, stays) in kept.items():
            for content in contents:
                store.write([(NAMES[0], str(codec), content, codec)])
            assert store.find(NAMES, str(codec), codec) == {NAMES[0]: stays}


class Writer:
    """Writes in batches of two, and remembers what it was asked for."""

    def __init__(self, texts, *, dies_after=99):
        self.texts, self.dies_after = texts, dies_after
        self.batches = []

    def __call__(self, known):
        new = [text for text in dict.fromkeys(self.texts) if text not in known]
        for at in range(0, len(new), 2):
            if len(self.batches) == self.dies_after:
                raise KeyboardInterrupt
            some = new[at : at + 2]
            self.batches.append(some)
            yield some, [Written(text.upper(), ended=len(text) % 2 == 0) for text in some]


def test_written_once_and_given_back_as_it_was():
    texts = ["a", "\ud83d half", "NUL\x00", "x" * 100_000, "a"]
    expected = [Written(text.upper(), len(text) % 2 == 0) for text in texts]
    known = [("model", "how", True), ("model", "how", False), ("model", "otherwise", True)]
    for fingerprint, label, new in (*known, ("another", "how", True), *[(None, "how", True)] * 2):
        writer = Writer(texts)
        assert written_once(fingerprint, texts, label, writer) == expected
        assert bool(writer.batches) == new


def test_killed_between_batches_goes_on_and_an_empty_answer_is_asked_for_again():
    texts = ["a", "", "c", "d", "e"]
    with pytest.raises(KeyboardInterrupt):
        written_once("model", texts, "", Writer(texts, dies_after=2))
    for left in (["", "e"], [""]):
        later = Writer(texts)
        assert [one.text for one in written_once("model", texts, "", later)] == ["A", "", "C", "D", "E"]
        assert later.batches == [left]
