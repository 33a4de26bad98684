"""Visitors who mean harm, with raw sockets: half-sent requests, many of them, wrong tokens; and who is told what."""

from __future__ import annotations

import os
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

from pretrace.web.connections import LogBudget
from pretrace.web.guard import Tries
from pretrace.web.settings import Limits, ServeSettings
from pretrace.web.workspace import RequestError, Workspace

TOKEN = "a token of many characters"
HALF_A_LOGIN = (
    b"POST /login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\ntoken="
)
LOGIN = "GET /login HTTP/1.1\r\nHost: localhost\r\nConnection: close"
ENTER = f"GET /?token={TOKEN.replace(' ', '+')} HTTP/1.1\r\nHost: localhost\r\nConnection: close"
QUICK = Limits(head_seconds=0.5, body_seconds=0.5, body_rate=1000, connections=30)


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[SimpleNamespace]:
    """`pretrace serve` as its owner starts it, where a process may open 1,024 files."""
    folder = tmp_path_factory.mktemp("served")
    log = folder / "log.txt"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "pretrace",
                "serve",
                f"--workspace={folder / 'w'}",
                "--port=0",
                "--no-browser",
            ],
            stdout=subprocess.PIPE,
            stderr=errors,
            env=os.environ | {"PRETRACE_TOKEN": TOKEN},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024)),
        )
        port = int(re.search(rb":(\d+)/", process.stdout.readline())[1])
        yield SimpleNamespace(port=port, log=log, process=process, workspace=folder / "w")
        process.terminate()
        process.wait(120)
        process.stdout.close()


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def asked(port, head, more=b""):
    """The answer to a request that is sent at once."""
    with closing(connected(port)) as made:
        made.sendall(head.encode() + b"\r\n\r\n" + more)
        return received(made)


def received(made):
    """What comes before the connection is closed; "" where nothing does."""
    found = b""
    try:
        while piece := made.recv(65_536):
            found += piece
    except ConnectionError:
        pass
    return found.decode("utf-8", "replace")


def upload_of(cookie, key, size=""):
    """Head and body of an upload by somebody who gave the token."""
    body = (
        f'--b\r\nContent-Disposition: form-data; name="form_key"\r\n\r\n{key}\r\n'
        '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\none text\n\r\n--b--\r\n'
    )
    head = (
        f"POST /collections HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\nConnection: close\r\n"
        f"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {size or len(body)}\r\n\r\n"
    )
    return head.encode(), body.encode()


def entered(port):
    """The cookie of somebody who gave the token, and the key of the forms."""
    cookie = re.search(r"set-cookie: ([^;]+)", asked(port, ENTER))[1]
    page = asked(port, f"GET /text HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\nConnection: close")
    return cookie, re.search(r'name="form_key" value="(\w+)"', page)[1]


def test_a_thousand_half_sent_logins_keep_nobody_out_break_no_upload_off_and_fill_no_log(served):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4096:
        pytest.skip("this process may not open so many connections")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    head, body = upload_of(*entered(served.port))
    with ExitStack() as held:
        under_way = held.enter_context(closing(connected(served.port)))
        under_way.sendall(head + body[:50])
        for number in range(1100):
            one = held.enter_context(closing(connected(served.port)))
            one.sendall(HALF_A_LOGIN if number % 2 else HALF_A_LOGIN[:40])
        began = time.monotonic()
        assert "This page asks for its token" in asked(served.port, LOGIN)
        assert time.monotonic() - began < 5
        files = len(list(Path(f"/proc/{served.process.pid}/fd").iterdir())) if Path("/proc").is_dir() else 0
        assert files < 400
        under_way.settimeout(60)
        under_way.sendall(body[50:])
        assert received(under_way).startswith("HTTP/1.1 303")
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert served.log.stat().st_size < 10_000
    assert served.process.poll() is None


def test_nonsense_fills_no_log(served):
    for _ in range(60):
        with closing(connected(served.port)) as one:
            one.sendall(b"\x16\x03\x01 not HTTP at all\r\n\r\n")
            assert received(one).startswith("HTTP/1.1 400")
    assert served.log.read_text().count("Invalid HTTP request") <= Limits().log_records
    assert "This page asks for its token" in asked(served.port, LOGIN)


def test_the_head_is_given_without_the_page(served):
    got, headers = (asked(served.port, LOGIN.replace("GET", method)) for method in ("GET", "HEAD"))
    assert headers.startswith("HTTP/1.1 200")
    plain = [line for line in got.partition("\r\n\r\n")[0].splitlines() if not line.startswith("date")]
    assert plain == [line for line in headers.splitlines() if line and not line.startswith("date")]
    assert headers.endswith("\r\n\r\n")


@pytest.fixture(scope="module")
def quick(sites, tmp_path_factory) -> Iterator[SimpleNamespace]:
    """A server with a token whose patience is short."""
    made = sites(tmp_path_factory.mktemp("quick") / "w", QUICK, token=TOKEN)
    yield made
    made.stop()


def drip(made, content, every=0.05):
    """Send a byte at a time for as long as the server takes them; the seconds that was, and what it said."""
    began = time.monotonic()
    made.settimeout(every)
    said = b""
    for place in range(600):
        try:
            made.sendall(content[place % len(content)].to_bytes())
            said += (piece := made.recv(65_536))
            if not piece:
                break
        except TimeoutError:
            continue
        except ConnectionError:
            break
    return time.monotonic() - began, said.decode("utf-8", "replace")


@pytest.mark.parametrize(
    "sent", [b"", b"GET /login HTTP/1.1\r\nHost: localhost\r\n", LOGIN.encode()[:-5] + b"keep-alive\r\n\r\n"]
)
def test_a_head_that_never_ends_is_not_waited_for(quick, sent):
    with closing(connected(quick.port)) as made:
        made.sendall(sent)
        seconds, _ = drip(made, b"x")
        assert seconds < 10  # half a second, on a machine that has nothing else to do


def test_a_connection_that_says_nothing_is_closed(quick):
    with closing(connected(quick.port)) as made:
        assert received(made) == ""


def test_a_login_that_never_ends_is_answered_and_closed(quick):
    with closing(connected(quick.port)) as made:
        made.sendall(HALF_A_LOGIN)
        seconds, said = drip(made, b"x")
        assert (seconds < 10, "HTTP/1.1 408" in said, "did not arrive in time" in said) == (True, True, True)


def test_an_upload_that_stands_still_is_broken_off_and_a_slow_one_is_not(quick):
    cookie, key = entered(quick.port)
    head, body = upload_of(cookie, key, size=5000)
    with closing(connected(quick.port)) as made:
        made.sendall(head + body[:100])
        assert "did not arrive in time" in received(made)
    head, body = upload_of(cookie, "0" * 3000)
    with closing(connected(quick.port)) as made:
        made.sendall(head)
        for place in range(0, len(body), 1500):
            made.sendall(body[place : place + 1500])
            time.sleep(0.4)
        assert "This form was not made by this page" in received(made)
    assert not [*(quick.workspace / "texts").iterdir(), *(quick.workspace / "incoming").iterdir()]


@pytest.mark.parametrize(
    ("more", "body"),
    [("Content-Length: 9000", b""), ("Transfer-Encoding: chunked", b"%x\r\n" % 20_000 + b"x" * 20_000)],
)
def test_no_more_than_a_login_is_taken_from_whoever_has_not_given_the_token(quick, more, body):
    head = HALF_A_LOGIN.partition(b"Content-Length")[0].decode() + more
    assert "That is more than a login holds" in asked(quick.port, head, body)


def test_uploads_that_arrive_at_once_are_counted(quick):
    cookie, key = entered(quick.port)
    head, body = upload_of(cookie, key, size=2_000_000)
    with ExitStack() as held:
        for _ in range(QUICK.bodies):
            held.enter_context(closing(connected(quick.port))).sendall(head + body[:100])
        time.sleep(0.1)
        with closing(connected(quick.port)) as made:
            made.sendall(head)
            assert "Several uploads are being received" in received(made)
        with closing(connected(quick.port)) as made:  # nobody without the token can take these places
            made.sendall(HALF_A_LOGIN.replace(b"100", b"2000000"))
            assert "That is more than a login holds" in received(made)


def test_wrong_tokens_make_their_address_wait_and_no_other(visit):
    visitor = visit(token=TOKEN, limits=Limits(tries=3))
    client = visitor.client
    inside = TestClient(client.app, base_url=str(client.base_url))
    inside.get("/", params={"token": TOKEN})
    key = client.get("/login").text.partition('name="form_key" value="')[2][:64]

    def login(token):
        return client.post("/login", data={"form_key": key, "token": token}, follow_redirects=False)

    assert [login("wrong").status_code for _ in range(2)] == [403, 403]
    assert client.get("/?token=wrong", follow_redirects=False).headers["location"] == "/login"
    for answer in (
        login(TOKEN),
        client.get("/", params={"token": TOKEN}),
        client.get("/", params={"token": "wrong"}),
    ):
        assert (answer.status_code, "try again in 1 s" in visitor.said(answer)) == (429, True)
    assert inside.get("/jobs").status_code == 200  # whoever is in stays in
    assert (
        inside.get("/jobs", params={"token": "wrong"}, follow_redirects=False).headers["location"] == "/jobs"
    )
    time.sleep(1.05)
    assert login(TOKEN).status_code == 303


def test_each_wrong_token_makes_the_wait_longer_up_to_a_minute(monkeypatch):
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr("pretrace.web.guard.monotonic", lambda: clock.now)
    tries, waits = Tries(Limits(tries=2)), []
    for _ in range(12):
        tries.check("192.168.1.5")
        tries.note("192.168.1.5", right=False)
        tries.check("192.168.1.6")  # another address
        waits.append(0)
        while True:
            try:
                tries.check("192.168.1.5")
            except RequestError:
                clock.now += 1
                waits[-1] += 1
            else:
                break
    assert waits == [0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60]
    clock.now += 3600
    tries.note("192.168.1.5", right=False)  # long ago is forgotten
    tries.check("192.168.1.5")
    for place in range(3):  # all addresses of a network of the sixth version are one visitor
        tries.note(f"2001:db8::{place}", right=False)
    with pytest.raises(RequestError, match="wrong tokens"):
        tries.check("2001:db8::ffff")
    tries.check("2001:db8:0:1::1")


@pytest.mark.parametrize("path", ["//evil.example", "///evil.example/x", "//evil.example/%2e%2e"])
def test_a_login_leads_to_no_other_server(visit, path):
    client = visit(token=TOKEN).client
    for _ in range(2):  # the second time with the cookie
        answer = client.get(f"http://127.0.0.1:8765{path}?token={TOKEN}", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"].startswith("/evil.example")) == (303, True)


def test_nobody_else_may_open_the_workspace(tmp_path):
    (tmp_path / "old").mkdir(mode=0o755)
    (tmp_path / "old").chmod(0o755)
    for name in ("new", "old"):
        Workspace.at(tmp_path / name)
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o700


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("settings", "listed"),
    [
        ({"host": "0.0.0.0", "token": TOKEN, "model": ("m", "vllm:http://gpu:8000")}, True),
        ({"host": "0.0.0.0", "token": TOKEN}, False),
        (
            {"model": ("m", "vllm:http://gpu:8000")},
            True,
        ),  # so also on this machine, where some are listed
    ],
)
def test_remote_visitors_choose_among_the_models_that_were_listed(visit, settings, listed):
    visitor = visit(**settings)
    visitor.client.get("/", params={"token": TOKEN})
    page = visitor.upload("a.jsonl", '{"text": "one two three"}\n')
    other = visitor.upload("b.jsonl", '{"text": "one two three"}\n').rpartition("/")[2]
    answers = []
    for wrong in ("/etc", "/etc/passwd", "/nowhere", "completions:http://elsewhere.example"):
        for path, data in (
            ("/text", {"model": wrong, "text": "a"}),
            (f"{page}/test/score", {"model": wrong}),
            (f"{page}/test/flag", {"model": "m", "nonmembers": other, "placebo": wrong}),
            (f"{page}/test/order", {"model": "m", "placebo": f"m\n{wrong}"}),
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


def test_the_log_says_what_it_left_out(monkeypatch):
    import logging

    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr("pretrace.web.connections.monotonic", lambda: clock.now)
    budget = LogBudget(2)

    def shown(words):
        record = logging.LogRecord("asyncio", logging.WARNING, "", 0, "%s", (words,), None)
        return record.getMessage() if budget.filter(record) else None

    assert [shown(word) for word in "abcde"] == ["a", "b", None, None, None]
    clock.now += 61
    assert shown("f") == "f (3 messages before this one were not printed)"


def test_the_limits_are_those_that_the_docs_list():
    page = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")
    for words, most in Limits.rows():
        assert f"| {words} | {most} |" in page
    settings = ServeSettings()
    assert f"{settings.most_upload} MB (`--max-upload`)" in page
    assert f"{settings.most_kept / 1000:g} GB (`--max-workspace`)" in page
    assert f"{settings.job_memory:,} MB (`--max-job-memory`)" in page
    assert f"{settings.job_hours:g} hours (`--max-job-hours`)" in page
