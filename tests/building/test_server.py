"""A model on a server, asked over a real socket by the real client."""

from __future__ import annotations

import builtins
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from pretrace.building.instructed import open_instructed
from pretrace.building.server import ServerInstructed, open_server
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
        self.body: str | None = None
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

    def _reply(self, status: int, body: str) -> None:
        content = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if body.startswith("{") else "text/html")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
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
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
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
        (401, "wants a key it knows .401.: set OPENAI_API_KEY"),
        (403, "wants a key"),
        (404, "knows no model parrot"),
        (429, "too busy"),
        (400, "refused to answer .400."),
    ],
)
def test_refusals_say_what_to_do(chat: Chat, status: int, says: str) -> None:
    chat.status = status
    with pytest.raises(ModelError, match=says):
        opened(chat).answers(["a"], tokens=5, sampling=FREE, seed=0)


@pytest.mark.parametrize("body", ["<html>Hello</html>", "{}", '{"choices": []}', "{broken"])
def test_another_language_is_recognised(chat: Chat, body: str) -> None:
    chat.body = body
    with pytest.raises(ModelError, match="did not answer as chat completions do"):
        opened(chat).answers(["a"], tokens=5, sampling=FREE, seed=0)


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
    with pytest.raises(ModelError, match="put the key in OPENAI_API_KEY"):
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
