"""A server that lies is refused: while connecting, or during the run, and then nothing that it said is kept."""

import json
import math
import time

import made
import numpy as np
import pytest
from model_servers import ESCAPES, asked, is_known

from pretrace import open_model
from pretrace.backends.serving import client
from pretrace.backends.serving.backend import EVERY, _Prompt
from pretrace.cache import text_key
from pretrace.errors import ModelError
from pretrace.scoring.evidence import Traces
from pretrace.types import Quantity

KINDS = ("vllm", "completions")


def drawn(number, words=9):
    return [row["text"] for row in made.drawn(number, words)]


@pytest.mark.parametrize("with_ids", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["swapped", "first"])
def test_answers_to_other_prompts_never_pass(name, kind, with_ids, opened, server):
    server.with_ids = with_ids
    model, texts = opened(kind), drawn(24)
    server.trouble = name
    with Traces(model.fingerprint) as store:
        with pytest.raises(ModelError, match=r"other tokens|another text|numbers for \d+ tokens"):
            asked(model, texts, store)
        assert store.get([text_key(one) for one in texts], Quantity.LOGP) == [None] * len(texts)


def test_an_answer_that_names_no_tokens_is_refused(opened, server, monkeypatch):
    server.with_ids = False
    monkeypatch.setattr(server.model, "words", lambda ids: [""] * len(ids))
    with pytest.raises(ModelError, match=r"without saying of which tokens|reads other tokens"):
        opened("completions")


@pytest.mark.parametrize("kind", KINDS)
def test_known_sentences_are_asked_again_during_a_run(kind, opened, server):
    model, texts = opened(kind, token_budget=60), drawn(2 * EVERY + 5, words=14)
    before = len(server.asked)
    asked(model, texts[:1])
    assert [is_known(server, body) for _, body in server.asked[before:]] == [False, True]
    before = len(server.asked)
    asked(model, texts)
    known = [is_known(server, body) for _, body in server.asked[before:]]
    requests = len(model.pack(model.encode(texts)))
    assert (len(known) - sum(known), sum(known)) == (requests, math.ceil(requests / EVERY))


@pytest.mark.parametrize("kind", KINDS)
def test_another_model_in_the_middle_of_a_run_stops_it_and_nothing_of_it_is_kept(
    kind, opened, server, model_folder
):
    model, texts = opened(kind, token_budget=60, requests=2), drawn(4 * EVERY, words=14)
    server.trouble, server.honest = "lower", 3 * EVERY
    with Traces(model.fingerprint) as store:
        with pytest.raises(ModelError, match=r"than when it was connected \(by 0.02 nats.*The run stops"):
            asked(model, texts, store)
        kept = store.get([text_key(one) for one in texts], Quantity.LOGP)
    # the answers before the last question that was answered as before
    assert any(one is not None for one in kept)
    assert not all(one is not None for one in kept)
    for one, other in zip(kept, asked(open_model(str(model_folder)), texts), strict=True):
        if one is not None:
            np.testing.assert_allclose(one.logp, other.logp, atol=1e-4)


def test_what_a_server_does_unseen_is_in_the_record(opened, server):
    model = opened()
    assert model.facts["bit_identical"] is True
    assert "not have been seen: other weights, text or a start token put in front" in model.facts["unseen"]
    assert "moved by at most 0.001 nats" in model.facts["unseen"]
    server.trouble = "noise small"
    model = opened()
    assert model.facts["bit_identical"] is False
    assert "moved by at most 0.00" in model.facts["unseen"]


@pytest.mark.parametrize("trouble", ["slow bytes", "slow chunks"])
def test_the_time_limit_holds_for_the_whole_answer(trouble, opened, server):
    server.trouble = trouble
    begin = time.monotonic()
    with pytest.raises(ModelError, match="did not answer in time: allow it more"):
        opened(request_timeout=0.5)
    assert time.monotonic() - begin < 10  # twice half a second, where a byte more came each time


def test_an_answer_has_a_largest_size(monkeypatch, opened, server):
    monkeypatch.setattr(client, "MOST_BYTES", 1 << 20)
    server.trouble = "flood"
    with pytest.raises(ModelError, match="answers with more than 1 MiB"):
        opened(request_timeout=30.0)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("5", "something else than a list"),
        ('{"data": 5}', "something else than a list"),
        ('{"data": [5, {"id": 7}]}', "does not say which models"),
        ("[" * 100_000, "does not answer in JSON"),
        ("[" * 100_000 + "]" * 100_000, "does not answer in JSON"),
        ('{"data": [{"id": "a", "max_model_len": ' + "9" * 400 + "}]}", "tokenizer|nowhere"),
        ("9" * 5000, "does not answer in JSON"),
    ],
)
def test_odd_model_lists(body, says, opened, server):
    server.trouble, server.words = "says", body
    with pytest.raises(ModelError, match=says):
        opened(tokenizer="/nowhere/at/all")


def test_escape_sequences_of_a_server_are_shown_as_text(opened, server):
    found, server.words = [], ESCAPES
    names = {"": [f"a{ESCAPES}", "b"]}
    for trouble in ("", "escapes", "400", "redirect", "html"):
        server.trouble, server.names = trouble, names.get(trouble, ["tiny"])
        with pytest.raises(ModelError) as met:
            opened()
        found.append(str(met.value))
    assert sum("\\x1b" in one for one in found) >= 2
    assert all(one.isprintable() for one in found)


def test_json_that_is_no_answer(opened, server):
    model = opened()
    read = model.read
    for body in (5, None, [], {}, {"choices": 5}, {"choices": [5]}, {"choices": [{"prompt_logprobs": [[]]}]}):
        with pytest.raises(ModelError, match="does not answer as vLLM does"):
            read(json.loads(json.dumps(body)), [_Prompt((1, 2))])
