"""The site on a workspace of its own: in the process for what is quick, behind a real server for a browser."""

import re
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
import uvicorn
from processes import Running, forking, job
from starlette.testclient import TestClient

from pretrace.plugins.serve import Workspace, jobs
from pretrace.plugins.serve.command import ServeSettings
from pretrace.plugins.serve.serving import _bound, _configuration, application


@pytest.fixture(autouse=True)
def _control_c():
    """Jobs can be stopped even where the tests run with Ctrl-C ignored, as jobs that a shell starts in the background
    do: a child takes over which signals are ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def warm_jobs(monkeypatch):
    """Jobs are processes of their own that are forked from one that has imported what commands need. That they are
    started as `python -m pretrace` is tested in test_jobs and in the browser."""
    started = []

    def begin(words, *, stdout, env, cwd, **how):
        assert words[1:4] == ["-P", "-m", "pretrace"]
        assert how["start_new_session"]
        process = forking().Process(target=job, args=(words[4:], env, str(cwd), stdout.name))
        process.start()
        started.append(Running(process))
        return started[-1]

    monkeypatch.setattr(jobs, "subprocess", SimpleNamespace(Popen=begin, DEVNULL=subprocess.DEVNULL))
    yield
    for one in started:
        one.end()


HOME = "http://127.0.0.1:8765"


@dataclass(frozen=True)
class Visitor:
    """A client and its workspace."""

    client: TestClient
    workspace: Workspace

    def post(self, path, data=None, file=None, **how):
        files = {"file": file} if file else None
        return self.client.post(path, data=data, files=files, **how)

    def entries(self, *folders):
        """What lies in these folders of the workspace."""
        return [one for name in folders for one in (self.workspace.folder / name).iterdir()]

    @staticmethod
    def said(answer):
        """The sentence of a page that says what did not work."""
        found = re.search(r'role="alert"[^>]*>(.*?)</p>', answer.text, re.DOTALL)
        return found[1] if found else ""

    def upload(self, name, content):
        """The address of the page of an upload."""
        answer = self.post("/collections", file=(name, content), follow_redirects=False)
        assert answer.status_code == 303, self.said(answer)
        return answer.headers["location"]


@pytest.fixture
def visit(tmp_path, monkeypatch):
    """Makes a site and somebody who visits it; `settings` are those of the server, which runs where "m" is a folder
    that looks like a model."""
    clients = []
    model = tmp_path / "here" / "m"
    model.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        (model / name).touch()
    monkeypatch.chdir(model.parent)

    def made(**settings):
        folder = tmp_path / "workspace"
        served = application(ServeSettings(workspace=folder, **settings))
        client = TestClient(served, base_url=HOME, raise_server_exceptions=False)
        clients.append(client)
        return Visitor(client, Workspace.at(folder))

    yield made
    for client in clients:
        client.close()


@pytest.fixture
def visitor(visit):
    return visit()


@pytest.fixture
def elsewhere():
    """The address of a server that refuses everybody, and what was asked of it."""
    asked = []

    class Refuses(BaseHTTPRequestHandler):
        def do_GET(self):  # the list of models is what a client asks for first
            asked.append((self.path, str(self.headers)))
            self.send_response(401)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Refuses) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}", asked
        server.shutdown()


class Site:
    """The site behind a real server in a thread, which can be stopped and started again on the same port."""

    def __init__(self, workspace, **settings):
        self.workspace, self.port, self.settings = workspace, 0, settings
        self.start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        settings = ServeSettings(workspace=self.workspace, port=self.port, **self.settings)
        listener = _bound(settings)
        self.port = listener.getsockname()[1]
        config = _configuration(application(settings, port=self.port), settings)
        config.timeout_graceful_shutdown = 1
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listener]})
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def stop(self):
        self.server.should_exit = True
        self.thread.join()


@pytest.fixture(scope="session")
def sites():
    """What makes a site behind a real server; whoever makes one stops it."""
    return Site


@pytest.fixture
def site(tmp_path):
    """A site behind a real server."""
    made = Site(tmp_path / "workspace")
    yield made
    if made.thread.is_alive():
        made.stop()
