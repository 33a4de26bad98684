"""Instructions to a model on a server; what all servers may do wrong is tested with the client that asks them."""

import pytest

from pretrace.backends.instructed import open_instructed
from pretrace.errors import ModelError
from pretrace.types import Sampling, Written


def ask(model, *texts, tokens=9, seed=0, sampling=None):
    return model.answers(list(texts), tokens=tokens, sampling=sampling or Sampling(), seed=seed)


@pytest.fixture(autouse=True)
def _no_second_try(monkeypatch):
    monkeypatch.setattr("pretrace.backends.serving.client.RETRIES", 0)


def opened(chat, *, cache=True):
    return open_instructed(chat.source, cache=cache)


def test_answers_in_order_with_all_that_was_set(chat):
    model = open_instructed(chat.source)
    asked = [f"say {number}" for number in range(30)]
    sampling = Sampling(temperature=0.5, top_p=0.9)
    found = model.answers(asked, tokens=50, sampling=sampling, seed=7)
    assert found == [Written(text[::-1]) for text in asked]
    assert len(chat.asked) == 30
    wanted = {"model": "parrot", "temperature": 0.5, "top_p": 0.9, "seed": 7, "max_tokens": 50}
    assert wanted.items() <= chat.asked[0].items()
    assert chat.keys == {None}
    assert model.facts == {"name": "parrot", "server": chat.source[7:-7], "weights": "unknown"}


def test_cut_answers_are_known_and_nothing_is_asked_twice(chat):
    expected = [Written("cba"), Written("dcb", ended=False), Written("cba")]
    for _ in range(2):
        assert ask(opened(chat), "abc", "xbcd", "abc", tokens=3) == expected
        assert len(chat.asked) == 2
    ask(opened(chat), "abc", tokens=3, seed=1)
    ask(opened(chat, cache=False), "abc", tokens=3)
    assert len(chat.asked) == 4
    chat.ends_by = lambda answer: "content_filter"
    with pytest.raises(ModelError, match="gave no text"):
        ask(opened(chat), "a whole")


def test_what_was_answered_before_an_error_is_kept_and_the_key_nowhere(chat, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert "secret" not in opened(chat).fingerprint + str(opened(chat).facts)
    ask(opened(chat), "abc")
    chat.status = 500
    with pytest.raises(ModelError, match="500"):
        ask(opened(chat), "abc", "def")
    chat.status, number = 200, len(chat.asked)
    assert ask(opened(chat), "abc", "def") == [Written("cba"), Written("fed")]
    assert (len(chat.asked), chat.keys) == (number + 1, {"Bearer sk-secret"})


def test_odd_text_in_an_answer_is_read(chat):
    chat.answer = lambda content: "half \ud800, null \0, escape \x1b[31m"
    [answer] = ask(opened(chat), "a", tokens=99)
    assert answer.text.encode().decode() == answer.text
    chat.ends_by = lambda answer: ["length"]
    assert ask(opened(chat), "b", tokens=99)[0].ended


def test_no_text_at_all_and_settings_that_a_server_does_not_know(chat):
    chat.answer = lambda content: ""
    with pytest.raises(ModelError, match="gave no text to any of 2 instructions"):
        ask(opened(chat), "a", "b")
    with pytest.raises(ModelError, match="no repetition penalty"):
        ask(opened(chat), "a", sampling=Sampling(repetition_penalty=1.2))
