"""Visitors who mean harm: who is told what, which models they reach, and what a real server takes from a socket."""

import socket
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from pretrace.plugins.serve.settings import Limits, ServeSettings

TOKEN = "a token of many characters"


@pytest.fixture
def small(sites, tmp_path):
    """A real server that takes two connections."""
    made = sites(tmp_path / "w", Limits(connections=2), token=TOKEN)
    yield made
    made.stop()


def asked(port, head):
    """The answer of a real server to what is sent at once, until it closes the connection."""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=60)) as made:
        made.sendall(head)
        return b"".join(iter(lambda: made.recv(65_536), b"")).decode("utf-8", "replace")


def test_a_real_server_refuses_nonsense_long_heads_and_too_many_connections(small):
    login = b"GET /login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    assert "This page asks for its token" in asked(small.port, login + b"\r\n")
    assert asked(small.port, b"\x16\x03\x01 not HTTP at all\r\n\r\n").startswith("HTTP/1.1 400")
    assert asked(small.port, login + b"X: " + b"x" * 20_000).startswith("HTTP/1.1 400")
    assert asked(small.port, login + b"Host: evil.example\r\n\r\n").startswith("HTTP/1.1 400")
    with ExitStack() as held:
        for _ in range(2):
            held.enter_context(closing(socket.create_connection(("127.0.0.1", small.port))))
        assert asked(small.port, login + b"\r\n").startswith("HTTP/1.1 503")
    assert "This page asks for its token" in asked(small.port, login + b"\r\n")


@pytest.mark.parametrize("path", ["//evil.example", "///evil.example/x", "//evil.example/%2e%2e"])
def test_a_login_leads_to_no_other_server(visit, path):
    client = visit(token=TOKEN).client
    for _ in range(2):  # the second time with the cookie
        answer = client.get(f"http://127.0.0.1:8765{path}?token={TOKEN}", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"].startswith("/evil.example")) == (303, True)


@pytest.mark.parametrize(
    ("settings", "listed"),
    [
        ({"proxy_name": ("page.example",), "token": TOKEN, "model": ("m", "vllm:http://gpu:8000")}, True),
        ({"proxy_name": ("page.example",), "token": TOKEN}, False),
        ({"model": ("m", "vllm:http://gpu:8000")}, True),  # so also on this machine, where some are listed
    ],
)
def test_visitors_through_a_proxy_choose_among_the_models_that_were_listed(visit, settings, listed):
    visitor = visit(**settings)
    visitor.client.get("/", params={"token": TOKEN})
    page = visitor.upload("a.jsonl", '{"text": "one two three"}\n')
    other = visitor.upload("b.jsonl", '{"text": "one two three"}\n').rpartition("/")[2]
    answers = []
    for wrong in ("/etc", "/etc/passwd", "/nowhere", "completions:http://elsewhere.example"):
        for path, data in (
            ("/text", {"model": wrong, "text": "a"}),
            (f"{page}/test/score", {"model": wrong}),
            (f"{page}/test/flag", {"model": "m", "controls": other, "placebo": wrong}),
            (f"{page}/test/canaries", {"model": "m", "placebo": f"m\n{wrong}"}),
        ):
            answer = visitor.post(path, data)
            answers.append((answer.status_code, visitor.said(answer).partition(" ")[2]))
    assert {status for status, _ in answers} == {403}
    assert len(set(answers)) == 1  # what is there and what is not is told alike
    assert not list(visitor.workspace.room("jobs").iterdir())
    for path in ("/text", f"{page}/test/flag", page):
        shown = visitor.client.get(path).text
        assert '<option value="vllm:http://gpu:8000">' in shown or not listed
        assert 'list="models"' not in shown
        assert ("No model was listed" in shown) is not listed
    if listed:
        answer = visitor.post(f"{page}/test/score", {"model": "m"}, follow_redirects=False)
        assert answer.status_code == 303


def test_the_owner_names_any_model_that_is_there(visitor):
    assert 'list="models"' in visitor.client.get("/text").text
    for model, status in (("m", 303), ("/some/folder", 422)):
        answer = visitor.post("/text", {"model": model, "text": "a"}, follow_redirects=False)
        assert answer.status_code == status


def test_the_limits_are_those_that_the_docs_list():
    page = (Path(__file__).parents[3] / "docs" / "serve.md").read_text(encoding="utf-8")
    settings = ServeSettings()
    assert f"{settings.most_upload} MB (`--limits upload`)" in page
    assert f"{settings.most_kept / 1000:g} GB (`--limits workspace`)" in page
    assert f"{settings.job_memory:,} MB (`--limits job_memory`)" in page
    assert f"{settings.job_hours:g} hours (`--limits job_hours`)" in page
