"""Who may ask for what: Host, Origin, token, sizes, models, paths, and what a real server takes from a socket."""

import base64
import itertools
import json
import os
import socket
from contextlib import ExitStack, closing
from pathlib import Path

import psutil
import pytest
from itsdangerous import TimestampSigner

from pretrace.errors import ExpressionError, MissingPackageError, OutputError
from pretrace.plugins.serve import RequestError, Workspace, command, inside
from pretrace.plugins.serve.command import TOKEN_VARIABLE, ServeSettings
from pretrace.plugins.serve.serving import _claim, serve

TOKEN = "a token of many characters"
HOME = "http://127.0.0.1:8765"


def test_the_own_names_are_answered_and_another_is_refused_before_anything_is_read(visitor):
    for host in ("127.0.0.1:8765", "LOCALHOST", "localhost:9000"):
        assert visitor.client.get("/", headers={"host": host}).status_code == 200
    named = ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example")
    evil = (*named, "10.0.0.7:8765", "[::1", "*", "")
    for host, ask in itertools.product(evil, (visitor.client.get, visitor.client.post)):
        answer = ask("/collections", headers={"host": host})
        assert (answer.status_code, answer.text) == (400, "Invalid host header")


def test_a_form_of_another_page_is_refused(visitor):
    for name, value in (
        *(("origin", f"http://{host}") for host in ("evil.example", "[::1", "127.0.0.1:9999")), ("origin", "null"),
        ("sec-fetch-site", "cross-site"), ("sec-fetch-site", "same-site"),
    ):  # fmt: skip
        answer = visitor.post("/text", {"text": "a", "model": "m"}, headers={name: value})
        assert answer.status_code == 403, value
    assert not visitor.entries("jobs")
    own = {"origin": HOME, "sec-fetch-site": "same-origin"}
    answer = visitor.post("/text", {"text": " ", "model": "m"}, headers=own)
    assert (answer.status_code, "There is no text" in visitor.said(answer)) == (422, True)


def test_what_can_be_no_part_of_a_command_is_refused_before_anything_is_kept(visitor):
    for field in ({"model": "a\0b"}, {"model": "m" * 200_000}, {"scores": "lo\0ss"}):
        answer = visitor.post("/text", {"text": "a", "model": "m", **field})
        assert (answer.status_code, "The field" in visitor.said(answer)) == (422, True)
    assert not visitor.entries("looks")


def test_every_answer_forbids_what_is_not_needed(visitor):
    for path in ("/", "/nowhere", "/static/page.js"):
        headers = visitor.client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


def test_nothing_but_the_login_is_shown_without_the_token(visit):
    client = visit(token=TOKEN).client
    for path in ("/", "/text", "/results/x/report", "/jobs", "/?token=wrong", "/collections"):
        answer = client.get(path, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert client.post("/text", data={"text": "a"}, follow_redirects=False).headers["location"] == "/login"
    forged = base64.b64encode(b'{"entered": true}').decode()
    for cookie in (forged, TimestampSigner("secret").sign(forged).decode(), "0" * 64):
        client.cookies.set("pretrace_8765", cookie)
        assert client.get("/", follow_redirects=False).headers["location"] == "/login"


def test_the_token_opens_the_page_by_the_form_and_by_the_address(visit):
    client = visit(token=TOKEN).client
    wrong = client.post("/login", data={"token": "wrong"})
    assert (wrong.status_code, len(client.cookies)) == (403, 0)
    right = client.post("/login", data={"token": TOKEN}, follow_redirects=False)
    assert {"httponly", "samesite=strict"} <= set(right.headers["set-cookie"].split("; "))
    assert TOKEN not in right.headers["set-cookie"]
    assert client.get("/", follow_redirects=False).status_code == 200

    client.cookies.clear()
    asked = client.get("/results", params={"token": TOKEN}, follow_redirects=False)
    assert (asked.status_code, asked.headers["location"]) == (303, "/results")
    assert client.get("/results", follow_redirects=False).status_code == 200


def test_a_session_ends_with_its_token(visit):
    before, after = (visit(token=token).client for token in (TOKEN, TOKEN[::-1]))
    before.get("/", params={"token": TOKEN})
    after.cookies.update(before.cookies)
    assert before.get("/", follow_redirects=False).status_code == 200
    assert after.get("/", follow_redirects=False).headers["location"] == "/login"


def test_a_proxy_needs_a_token_and_its_name_is_answered(visit, monkeypatch):
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    with pytest.raises(ExpressionError, match=f"needs a token: set {TOKEN_VARIABLE}"):
        ServeSettings(proxy_name=("page.example",))
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    client = visit(proxy_name=("page.example",)).client
    known = {"host": "page.example", "origin": "https://page.example"}
    form = {"token": TOKEN}
    assert client.post("/login", data=form, headers=known, follow_redirects=False).status_code == 303
    assert client.post("/login", data=form, headers=known | {"origin": "http://localhost"}).status_code == 403
    assert client.get("/login", headers={"host": "other.page.example"}).status_code == 400


def test_no_more_than_a_login_is_taken_from_whoever_has_not_given_the_token(visit):
    client = visit(token=TOKEN).client
    for path, status in (("/login", 413), ("/collections", 303)):
        form = {"content-type": "application/x-www-form-urlencoded"}
        for body in (b"x" * 9_000, (b"x" * 5_000 for _ in range(2))):
            answer = client.post(path, content=body, headers=form, follow_redirects=False)
            assert answer.status_code == status


def test_a_body_that_is_too_large_is_refused_whatever_it_says(visit):
    visitor = visit(most_upload=1)
    many, headers = b"x" * 1_100_000, {"content-type": "multipart/form-data; boundary=b"}
    for content in (many, iter((many[:500_000], many[500_000:]))):  # the second without a length
        answer = visitor.client.post("/collections", content=content, headers=headers)
        assert answer.status_code == 413
    assert visitor.said(answer).startswith("That is larger than is taken here:")
    assert not visitor.entries("texts")


def test_no_name_leads_out_of_its_folder(tmp_path):
    (tmp_path / "results" / "a").mkdir(parents=True)
    (tmp_path / "secret").write_text("key")
    for name in (
        "..", ".", "", "/etc", "../secret", "a/../../secret", "a\0", "..\\secret", "a//b", "missing", "x" * 300,
    ):  # fmt: skip
        with pytest.raises(RequestError):
            inside(tmp_path / "results", name)


def test_a_link_leads_nowhere(visitor, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "run.json").write_text('{"pretrace_run": 1}')
    (outside / "report.html").write_text("elsewhere")
    (visitor.workspace.folder / "results" / "link").symlink_to(outside)
    for path in ("link", "link/report", "link/files/run.json", "..%2Fsecret", "%2e%2e/secret"):
        assert visitor.client.get(f"/results/{path}").status_code == 404
    assert "None yet." in visitor.client.get("/results").text


def test_a_workspace_is_for_its_owner_alone_and_a_folder_of_somebody_else_is_none(tmp_path):
    (tmp_path / "old").mkdir(mode=0o755)
    for name in ("new", "old"):
        workspace = Workspace.at(tmp_path / name)
        modes = [path.stat().st_mode & 0o777 for path in (workspace.folder, workspace.folder / "secret")]
        assert modes == [0o700, 0o600]
        key = (workspace.folder / "secret").read_bytes()
        assert (Workspace.at(tmp_path / name).folder / "secret").read_bytes() == key
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    with pytest.raises(OutputError, match="is no workspace of pretrace"):
        Workspace.at(tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_a_workspace_has_one_server(tmp_path):
    workspace, other = Workspace.at(tmp_path / "w"), psutil.Process(os.getppid())
    place, known = workspace.folder / "server.json", {"pid": other.pid, "born": other.create_time()}
    place.write_text(json.dumps(known))
    with pytest.raises(OutputError, match=f"is served by process {other.pid} already"):
        _claim(workspace)
    place.write_text(json.dumps(known | {"born": 12345.0}))  # the number belongs to another one now
    _claim(workspace)
    assert json.loads(place.read_text())["pid"] == os.getpid()


def test_a_port_in_use_is_said_with_the_cure(site, tmp_path):
    settings = ServeSettings(workspace=tmp_path / "other", port=site.port)
    said = f"port {site.port} of 127.0.0.1 is in use: give another --port"
    with pytest.raises(ExpressionError, match=said):
        serve(settings)


def test_without_the_extra_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(command, "find_spec", {"python_multipart": None}.get)
    monkeypatch.setattr(command, "_PACKAGES", ("python_multipart",))
    with pytest.raises(MissingPackageError, match=r"python-multipart.*pip install 'pretrace\[serve\]'"):
        command.serve(ServeSettings(workspace=tmp_path / "w"))


@pytest.fixture
def small(sites, tmp_path):
    """A real server that takes two connections."""
    made = sites(tmp_path / "w", most_connections=2, token=TOKEN)
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


def test_a_login_leads_to_no_other_server(visit):
    client = visit(token=TOKEN).client
    for path in ("//evil.example", "///evil.example/x", "//evil.example/%2e%2e"):  # then with a cookie
        answer = client.get(f"{HOME}{path}?token={TOKEN}", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"].startswith("/evil.example")) == (303, True)


_LISTED = {"model": ("m", "vllm:http://gpu:8000")}


@pytest.mark.parametrize(
    ("settings", "listed"),
    [
        ({"proxy_name": ("page.example",), "token": TOKEN, **_LISTED}, True),
        ({"proxy_name": ("page.example",), "token": TOKEN}, False),
        (_LISTED, True),  # so also on this machine, where some are listed
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
            (f"{page}/test/flag", {"model": wrong}),
            (f"{page}/test/flag", {"model": "m", "controls": other, "placebo": wrong}),
        ):
            answer = visitor.post(path, data)
            answers.append((answer.status_code, visitor.said(answer).partition(" ")[2]))
    assert {status for status, _ in answers} == {403}
    assert len(set(answers)) == 1  # what is there and what is not is told alike
    assert not visitor.entries("jobs")
    for path in ("/text", page):
        shown = visitor.client.get(path).text
        assert '<option value="vllm:http://gpu:8000">' in shown or not listed
        assert 'list="models"' not in shown
        assert ("No model was listed" in shown) is not listed
    if listed:
        answer = visitor.post("/text", {"model": "m", "text": "a"}, follow_redirects=False)
        assert answer.status_code == 303


def test_the_limits_are_those_that_the_docs_list():
    page = (Path(__file__).parents[3] / "docs" / "serve.md").read_text(encoding="utf-8")
    settings = ServeSettings()
    assert f"{settings.most_upload} MB (`--limits upload`)" in page
    assert f"{settings.most_kept / 1000:g} GB (`--limits workspace`)" in page
    assert f"{settings.job_memory:,} MB (`--limits job_memory`)" in page
    assert f"{settings.job_hours:g} hours (`--limits job_hours`)" in page
