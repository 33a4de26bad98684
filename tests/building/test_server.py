"""A model on a server, asked over a real socket by the real client."""

from __future__ import annotations

import builtins
import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from pretrace.building.instructed import ServerInstructed, open_instructed, open_server
from pretrace.errors import MissingPackageError, ModelError
from pretrace.types import Sampling, Written

FREE = Sampling()


def texts(answers: list[Written]) -> list[str]:
    """What was answered, without whether it ended."""
    return [one.text for one in answers]


class Chat(ThreadingHTTPServer):
    """Speaks chat completions: says an instruction backwards. What to do otherwise is set by a test."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.busy = 0  # answers 503 so many times first
        self.status = 200
        self.body: str | bytes | None = None
        self.drip = False  # sends a byte now and then, without end
        self.empty = False
        self.reason = "stop"
        self.pause = 0.0

    @property
    def source(self) -> str:
        return f"server:http://127.0.0.1:{self.server_port}/v1#parrot"


class _Handler(BaseHTTPRequestHandler):
    server: Chat

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        server.keys.add(self.headers["Authorization"])
        if self.path != "/v1/chat/completions":
            return self._reply(404, json.dumps({"error": {"message": f"no {self.path}"}}))
        if server.busy > 0:
            server.busy -= 1
            return self._reply(503, json.dumps({"error": {"message": "busy"}}))
        server.asked.append(request)
        threading.Event().wait(server.pause)
        if server.status != 200 or server.body is not None:
            return self._reply(
                server.status, server.body or json.dumps({"error": {"message": "no such thing"}})
            )
        content = request["messages"][0]["content"][::-1][: request["max_tokens"]]
        cut = len(content) < len(request["messages"][0]["content"])
        return self._reply(200, json.dumps(self._completion("" if server.empty else content, cut)))

    def _completion(self, content: str, cut: bool) -> dict[str, Any]:
        message = {"role": "assistant", "content": f" {content}\n"}
        choice = {"index": 0, "message": message, "finish_reason": "length" if cut else self.server.reason}
        return {"id": "1", "object": "chat.completion", "created": 0, "model": "parrot", "choices": [choice]}

    def _reply(self, status: int, body: str | bytes) -> None:
        content = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if content.startswith(b"<") else "application/json")
        self.send_header("Content-Length", str(10**6 if self.server.drip else len(content)))
        self.end_headers()
        with suppress(ConnectionError):  # who asked may have gone
            while self.server.drip and not threading.Event().wait(0.05):
                self.wfile.write(b" ")
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def chat() -> Iterator[Chat]:
    with Chat() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PRETRACE_API_KEY", "OPENAI_API_KEY", "PRETRACE_KEY_HOSTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def opened(chat: Chat, *, retries: int = 0, seconds: float = 10, cache: bool = True) -> ServerInstructed:
    return open_server(chat.source, cache=cache, retries=retries, seconds=seconds)


def test_answers_in_order_with_all_that_was_set(chat: Chat) -> None:
    model = open_instructed(chat.source)
    asked = [f"say {number}" for number in range(30)]
    sampling = Sampling(temperature=0.5, top_p=0.9)
    assert texts(model.answers(asked, tokens=50, sampling=sampling, seed=7)) == [text[::-1] for text in asked]
    assert len(chat.asked) == 30
    one = chat.asked[0]
    assert (one["model"], one["temperature"], one["top_p"], one["seed"], one["max_tokens"]) == (
        "parrot",
        0.5,
        0.9,
        7,
        50,
    )
    assert chat.keys == {"Bearer none"}
    assert model.facts == {"name": "parrot", "server": chat.source[7:-7], "weights": "unknown"}


def test_cut_answers_are_known_and_nothing_is_asked_twice(chat: Chat) -> None:
    model = opened(chat)
    expected = [Written("cba"), Written("dcb", ended=False), Written("cba")]
    assert model.answers(["abc", "xbcd", "abc"], tokens=3, sampling=FREE, seed=0) == [
        Written("cba"),
        Written("dcb", ended=False),
        Written("cba"),
    ]
    assert len(chat.asked) == 2
    assert opened(chat).answers(["abc", "xbcd", "abc"], tokens=3, sampling=FREE, seed=0) == expected
    assert len(chat.asked) == 2
    opened(chat).answers(["abc"], tokens=3, sampling=FREE, seed=1)
    opened(chat, cache=False).answers(["abc"], tokens=3, sampling=FREE, seed=0)
    assert len(chat.asked) == 4


def test_an_answer_broken_off_by_a_filter_is_not_whole(chat: Chat) -> None:
    chat.reason = "content_filter"
    assert opened(chat).answers(["abc"], tokens=9, sampling=FREE, seed=0) == [Written("cba", ended=False)]


def test_the_key_is_sent_and_never_recorded(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    model = opened(chat)
    model.answers(["a"], tokens=5, sampling=FREE, seed=0)
    assert chat.keys == {"Bearer sk-secret"}
    assert "secret" not in model.fingerprint + str(model.facts)


def test_a_busy_server_is_asked_again(chat: Chat) -> None:
    chat.busy = 1
    assert texts(opened(chat, retries=1).answers(["abc"], tokens=5, sampling=FREE, seed=0)) == ["cba"]


def test_what_was_answered_before_an_error_is_kept(chat: Chat) -> None:
    opened(chat).answers(["abc"], tokens=5, sampling=FREE, seed=0)
    chat.status = 500
    with pytest.raises(ModelError, match="500"):
        opened(chat).answers(["abc", "def"], tokens=5, sampling=FREE, seed=0)
    chat.status, number = 200, len(chat.asked)
    assert texts(opened(chat).answers(["abc", "def"], tokens=5, sampling=FREE, seed=0)) == ["cba", "fed"]
    assert len(chat.asked) == number + 1


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (401, "wants a key it knows .401.: set PRETRACE_API_KEY"),
        (403, "wants a key"),
        (404, "no such route or model .404.: check the model's name"),
        (429, "too busy"),
        (400, "refused to answer .400."),
    ],
)
def test_refusals_say_what_to_do(chat: Chat, status: int, says: str) -> None:
    chat.status = status
    with pytest.raises(ModelError, match=says):
        opened(chat).answers(["a"], tokens=5, sampling=FREE, seed=0)


def of_content(content: str) -> str:
    return f'{{"choices": [{{"message": {{"content": {content}}}}}]}}'


SHAPE, JSON = "did not answer as chat completions do", "does not answer in JSON"
ODD: dict[str, tuple[str | bytes, str]] = {
    "a page": ("<html>Hello</html>", JSON),
    "broken JSON": ("{broken", JSON),
    "a string": ('"Hello"', JSON),
    "bytes that are no text": (b"\xff\xfe\x00{}", JSON),
    "bytes within JSON": (b'{"choices": [{"message": {"content": "\xff"}}]}', JSON),
    "nothing": (b" ", JSON),
    "too deep": ("[" * 100_000, "too deep"),
    "a number of 5,000 digits": ("9" * 5000, JSON),
    "a list": ("[]", SHAPE),
    "a list of lists": ("[[1]]", SHAPE),
    "a number": ("5", SHAPE),
    "null": ("null", SHAPE),
    "false": ("false", SHAPE),
    "NaN": ("NaN", SHAPE),
    "an empty object": ("{}", SHAPE),
    "no choices": ('{"choices": []}', SHAPE),
    "null choices": ('{"choices": null}', SHAPE),
    "choices by name": ('{"choices": {"0": {"message": {"content": "a"}}}}', SHAPE),
    "choices of strings": ('{"choices": ["abc"]}', SHAPE),
    "a choice of null": ('{"choices": [null]}', SHAPE),
    "no message": ('{"choices": [{"text": "abc"}]}', SHAPE),
    "a message that is a string": ('{"choices": [{"message": "abc"}]}', SHAPE),
    "no content": ('{"choices": [{"message": {"role": "assistant"}}]}', SHAPE),
    "content in parts": (of_content('[{"type": "text", "text": "abc"}]'), SHAPE),
    "content that is a number": (of_content("5"), SHAPE),
    "content that is false": (of_content("false"), SHAPE),
    "an error in an answer of 200": ('{"error": {"message": "no such model"}}', SHAPE),
}


@pytest.mark.parametrize("name", ODD)
def test_answers_of_another_shape_are_refused_in_one_line(chat: Chat, name: str) -> None:
    chat.body, says = ODD[name]
    with pytest.raises(ModelError, match=says) as refused:
        opened(chat).answers(["a"], tokens=5, sampling=FREE, seed=0)
    said = str(refused.value)
    assert "/chat/completions lies" in said
    assert len(said) < 600
    assert said.isprintable()
    assert "--" not in said  # no option that the command does not have


def test_odd_text_in_an_answer_is_read(chat: Chat) -> None:
    chat.body = of_content(json.dumps("half \ud800, null \0, escape \x1b[31m"))
    [answer] = opened(chat).answers(["a"], tokens=5, sampling=FREE, seed=0)
    assert answer.text.encode().decode() == answer.text
    chat.body = json.dumps({"choices": [{"message": {"content": "a"}, "finish_reason": ["length"]}]})
    assert opened(chat).answers(["b"], tokens=5, sampling=FREE, seed=0) == [Written("a")]


def test_an_answer_has_a_size(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pretrace.backends.serving.client.MOST_BYTES", 1 << 20)
    chat.body = of_content(json.dumps("a" * (1 << 20)))
    with pytest.raises(ModelError, match="more than 1 MiB"):
        opened(chat).answers(["a"], tokens=5, sampling=FREE, seed=0)


def test_an_answer_that_drips_has_its_time_as_a_whole(chat: Chat) -> None:
    chat.drip = True
    with pytest.raises(ModelError, match="did not answer in time"):
        opened(chat, seconds=0.3).answers(["a"], tokens=5, sampling=FREE, seed=0)
    chat.drip = False


def test_a_redirect_is_not_followed_and_the_key_stays_with_its_hosts(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRETRACE_API_KEY", "sk-secret")
    monkeypatch.setenv("PRETRACE_KEY_HOSTS", "elsewhere.example")
    opened(chat).answers(["a"], tokens=5, sampling=FREE, seed=0)
    assert chat.keys == {"Bearer none"}
    chat.status = 307
    with pytest.raises(ModelError, match="redirects to another path, and no redirect is followed"):
        opened(chat).answers(["b"], tokens=5, sampling=FREE, seed=0)


def test_no_text_at_all(chat: Chat) -> None:
    chat.empty = True
    with pytest.raises(ModelError, match="gave no text to any of 2 instructions"):
        opened(chat).answers(["a", "b"], tokens=5, sampling=FREE, seed=0)


def test_nobody_there_and_nobody_in_time(chat: Chat) -> None:
    with pytest.raises(ModelError, match="cannot be reached"):
        open_server("server:http://127.0.0.1:9/v1#x", retries=0).answers(
            ["a"], tokens=5, sampling=FREE, seed=0
        )
    chat.pause = 0.6
    with pytest.raises(ModelError, match="did not answer in time"):
        opened(chat, seconds=0.2).answers(["a"], tokens=5, sampling=FREE, seed=0)


def test_settings_a_server_does_not_know(chat: Chat) -> None:
    with pytest.raises(ModelError, match="no repetition penalty"):
        opened(chat).answers(["a"], tokens=5, sampling=Sampling(repetition_penalty=1.2), seed=0)


@pytest.mark.parametrize(
    "source",
    [
        "server:",
        "server:http://localhost/v1",
        "server:localhost:8000/v1#m",
        "server:http://#m",
        "server:http://h:x/#m",
    ],
)
def test_addresses_that_are_none(source: str) -> None:
    with pytest.raises(ModelError, match="a server is written server:http"):
        open_instructed(source)


def test_no_secrets_in_an_address() -> None:
    with pytest.raises(ModelError, match="put the key in PRETRACE_API_KEY"):
        open_instructed("server:https://me:secret@host/v1#m")


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "openai":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingPackageError, match=r"pretrace\[server\]"):
        open_instructed("server:http://localhost/v1#m")
