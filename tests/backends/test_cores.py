"""A batch a core gives the numbers of one thread to the last bit, ends cleanly, and keeps each thread's state apart."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import WORDS, make_model, make_tokenizer

from pretrace.backends import cores
from pretrace.backends.cores import APART, TOGETHER, StoppedError, decided, keeps_state, spread
from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.settings import ModelSettings
from pretrace.backends.tokens import pack
from pretrace.errors import ModelError
from pretrace.scoring.evidence import Want, open_store, trace
from pretrace.types import Firing, Hidden, Quantity, States, Trace

ALL = Quantity.LOGP | Quantity.MOMENTS
INSIDE: States = frozenset(
    [Hidden(), Firing(), Firing("mean", 0.0), Firing("count", 0.1), Firing("any", 0.05, gated=True)]
)


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    """As many threads as before, and none left over."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
    assert not [one for one in threading.enumerate() if one.name.startswith("batches")]


def apart(family: str, budget: int | None = 400) -> HuggingFace:
    settings = ModelSettings(token_budget=budget)
    made = HuggingFace(make_model(family), make_tokenizer(), name=family, weights="w", settings=settings)
    made.sharing = APART
    return made


def drawn(number: int) -> list[str]:
    rng = np.random.default_rng(5)
    return [" ".join(rng.choice(WORDS, size=int(n))) for n in rng.integers(1, 40, size=number)]


def equal(one: Trace, other: Trace) -> bool:
    pairs = [(one.tokens, other.tokens), (one.logp, other.logp), (one.mean, other.mean), (one.std, other.std)]
    pairs += [(array, other.states[state]) for state, array in one.states.items()]
    assert one.states.keys() == other.states.keys()
    return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in pairs)


@pytest.mark.parametrize("family", ["gpt_neox", "llama", "gemma2", "opt"])
def test_any_number_of_threads_gives_the_same_bits(family: str) -> None:
    """Gated neurons, counts and hidden states too: their hooks note what passes in each thread for itself."""
    texts, found = drawn(60), []
    states = INSIDE if family != "opt" else frozenset([Hidden()])
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        found.append(trace(apart(family), texts, Want(ALL, states), store=open_store(None)))
        assert torch.get_num_threads() == threads
    for others in found[1:]:
        assert all(equal(one, other) for one, other in zip(found[0], others, strict=True))


def test_a_single_batch_has_the_bits_it_has_among_others() -> None:
    torch.set_num_threads(2)
    model = apart("llama")
    encoded = model.encode(drawn(40))
    batches = [[encoded[i] for i in batch] for batch in model.pack(encoded)]
    assert len(batches) > 4
    streamed = dict(model.stream(batches, ALL))
    for number, batch in enumerate(batches):
        assert all(equal(a, b) for a, b in zip(streamed[number], model.run(batch, ALL), strict=True))


def test_both_sharings_agree() -> None:
    torch.set_num_threads(2)
    texts = drawn(30)
    model = apart("gpt_neox")
    one = trace(model, texts, Want(ALL, INSIDE), store=open_store(None))
    model.sharing = TOGETHER
    other = trace(model, texts, Want(ALL, INSIDE), store=open_store(None))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a.logp, b.logp, atol=2e-5)


def test_threads_really_pass_through_the_model_at_once() -> None:
    """Two passes meet inside the model: each waits there until the other has come, too."""
    torch.set_num_threads(2)
    model = apart("llama")
    meeting = threading.Barrier(2, timeout=60)

    def meet(*_: Any) -> None:
        meeting.wait()

    handle = model.blocks[1].register_forward_pre_hook(meet)
    encoded = model.encode(drawn(2) * 2)
    try:
        found = dict(model.stream([encoded[:1], encoded[1:2]], ALL, INSIDE))
    finally:
        handle.remove()
    assert sorted(found) == [0, 1]
    for number in found:
        assert equal(found[number][0], model.run([encoded[number]], ALL, INSIDE)[0])


def test_an_error_in_one_thread_ends_all_and_is_raised(sentences: list[str]) -> None:
    torch.set_num_threads(3)
    model = apart("llama", budget=40)
    whole, bad = model._body, threading.Event()

    def failing(ids: torch.Tensor) -> torch.Tensor:
        if bad.is_set():
            return whole(ids) * float("nan")
        bad.set()
        return whole(ids)

    model._body = failing  # type: ignore[method-assign]
    with pytest.raises(ModelError, match="not finite"):
        trace(model, drawn(50), ALL, store=open_store(None))
    assert not any(block._forward_pre_hooks for block in model.blocks), "hooks are left"


def test_what_is_done_before_an_error_is_kept(tmp_path: Path) -> None:
    """And a run that goes on ends with the bits of one that was never stopped."""
    torch.set_num_threads(2)
    texts = drawn(60)
    truth = trace(apart("llama"), texts, ALL, store=open_store(None))
    model = apart("llama")
    store = open_store(model.fingerprint, tmp_path)

    class Stops:
        done = 0

        def begin(self, texts: int) -> None: ...

        def advance(self, texts: int, tokens: int, seconds: float, fresh: bool) -> None:
            self.done += fresh
            if self.done == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trace(model, texts, ALL, store=store, progress=Stops())
    torch.set_num_threads(3)
    again = trace(model, texts, ALL, store=store)
    assert all(equal(one, other) for one, other in zip(truth, again, strict=True))


def test_an_interrupt_while_batches_are_under_way_waits_for_no_long_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The signal comes while all threads are inside a pass: they end at their next block."""
    torch.set_num_threads(2)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    model = apart("llama")
    inside, passed, stops = threading.Barrier(2, timeout=60), [], []
    before = cores.spread

    def noted(*given: Any, **named: Any) -> Any:
        stops.append(named["stop"])
        return before(*given, **named)

    def first(*_: Any) -> None:
        if inside.wait() == 0:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        assert stops[0].wait(60)

    handles = [
        model.blocks[0].register_forward_pre_hook(first),
        model.blocks[1].register_forward_hook(lambda *_: passed.append(1)),
    ]
    monkeypatch.setattr(cores, "spread", noted)
    encoded = model.encode(drawn(2))
    try:
        with pytest.raises(KeyboardInterrupt):
            list(model.stream([encoded[:1], encoded[1:2]], ALL))
    finally:
        for handle in handles:
            handle.remove()
    assert not passed, "a pass went on to its end"


def test_sizes_under_way_stay_within_the_room() -> None:
    sizes, lock, under_way, most = [5, 9, 4, 4, 3, 3, 2, 2, 1], threading.Lock(), [0], [0]

    def work(i: int) -> int:
        with lock:
            under_way[0] += sizes[i]
            alone = under_way[0] == sizes[i]
            most[0] = max(most[0], 0 if alone else under_way[0])
        time.sleep(0.005)
        with lock:
            under_way[0] -= sizes[i]
        return i * i

    found = dict(spread(work, sizes, workers=4, room=8))
    assert found == {i: i * i for i in range(len(sizes))}
    assert 4 < most[0] <= 8


def test_work_that_nobody_waits_for_is_stopped() -> None:
    stop, begun = threading.Event(), []

    def work(i: int) -> int:
        begun.append(i)
        if i and stop.wait(60):
            raise StoppedError
        return i

    made = spread(work, [1] * 50, workers=2, stop=stop)
    next(made)
    made.close()
    assert len(begun) <= 4
    assert list(spread(lambda i: i, [], workers=2)) == []


def test_batches_shrink_towards_the_end_and_keep_every_text() -> None:
    lengths = [int(n) for n in np.random.default_rng(1).integers(5, 120, size=300)]
    batches = pack(lengths, 512, least=128)
    assert sorted(i for batch in batches for i in batch) == list(range(300))
    padded = [len(batch) * max(lengths[i] for i in batch) for batch in batches]
    assert max(padded) <= 512
    assert max(padded[-4:]) <= 128
    assert pack(lengths, 512)[:10] == batches[:10]


@pytest.mark.parametrize(
    ("rounds", "chosen"),
    [
        ([(1.0, 0.4), (1.0, 0.6)], APART),
        ([(1.0, 1.05), (1.0, 1.05)], APART),
        ([(1.0, 3.0), (1.0, 0.8)], APART),  # one busy moment
        ([(1.0, 1.5), (1.0, 1.3)], TOGETHER),
    ],
)
def test_time_refuses_a_batch_a_core_only_if_it_is_slower_in_every_round(
    rounds: list[tuple[float, float]], chosen: str
) -> None:
    assert decided(rounds, 2).chosen == chosen


@pytest.mark.parametrize(
    ("apart", "rounds", "chosen"),
    [([1.1], 1, APART), ([3.0, 1.1], 2, APART), ([3.0, 1.3, 1.3], 3, TOGETHER)],
)
def test_what_is_settled_is_not_timed_again(
    monkeypatch: pytest.MonkeyPatch, apart: list[float], rounds: int, chosen: str
) -> None:
    left = iter(apart)
    monkeypatch.setattr(cores, "_together", lambda *_: 1.0)
    monkeypatch.setattr(cores, "_apart", lambda *_: next(left))
    found = cores._measured(((8, 8),), torch.float32, 2)
    assert len(found) == rounds
    assert decided(found, 2).chosen == chosen


def test_starting_threads_is_not_timed() -> None:
    """The first batch of each thread takes long, as one that sets up what later ones use."""
    mine, meeting = threading.local(), threading.Barrier(2, timeout=60)

    def work(_: int) -> None:
        if not getattr(mine, "begun", False):
            mine.begun = True
            time.sleep(0.5)
            meeting.wait()

    assert cores._apart(work, 2) < 0.4


def test_the_choice_is_measured_once_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from pretrace.cache.measured import kept_choices

    cores.sharing_of.cache_clear()
    torch.set_num_threads(2)
    found = cores.sharing_of(((64, 32),), torch.float32, 2)
    ((_, choice),) = kept_choices(cores.KIND)
    assert choice.chosen == found
    assert 1 <= len(choice.figures["seconds_by_round"]) <= cores.ROUNDS
    cores.sharing_of.cache_clear()
    monkeypatch.setattr(cores, "_measured", lambda *_: pytest.fail("it is known already"))
    assert cores.sharing_of(((64, 32),), torch.float32, 2) == found
    cores.sharing_of.cache_clear()


def test_models_whose_passes_change_each_other_keep_all_cores_on_a_batch() -> None:
    import transformers as t

    size = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 50}
    rope = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}
    moving = t.LlamaForCausalLM(t.LlamaConfig(**size, intermediate_size=32, rope_parameters=rope))
    assert keeps_state(moving)
    assert not keeps_state(make_model("llama"))
    spread_out = make_model("llama")
    spread_out.hf_device_map = {"": "cpu"}
    assert keeps_state(spread_out)
    assert cores.best_sharing(make_model("llama")) == TOGETHER, "too small to gain anything"
