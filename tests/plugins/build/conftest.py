"""A model on a server, asked over a real socket by the real client."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Chat(ThreadingHTTPServer):
    """Speaks chat completions: says an instruction backwards. What to do otherwise is set by a test."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked = []
        self.keys = set()
        self.status = 200
        self.answer = lambda content: content[::-1]
        self.ends_by = lambda answer: "stop"

    @property
    def source(self):
        return f"server:http://127.0.0.1:{self.server_port}/v1#parrot"


class _Handler(BaseHTTPRequestHandler):
    server: Chat

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        server.keys.add(self.headers["Authorization"])
        server.asked.append(request)
        assert self.path == "/v1/chat/completions"
        answer = server.answer(request["messages"][0]["content"])
        content = answer[: request["max_tokens"]]
        reason = "length" if len(content) < len(answer) else server.ends_by(answer)
        choice = {"index": 0, "message": {"content": f" {content}\n"}, "finish_reason": reason}
        whole = {"id": "1", "object": "chat.completion", "created": 0, "model": "parrot", "choices": [choice]}
        body = json.dumps(whole).encode()
        self.send_response(server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        pass


@pytest.fixture
def chat(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Chat() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _no_key(monkeypatch):
    for name in ("PRETRACE_API_KEY", "OPENAI_API_KEY", "PRETRACE_KEY_HOSTS"):
        monkeypatch.delenv(name, raising=False)
