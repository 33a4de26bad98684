"""The key of a server goes to the hosts it belongs to: a model on the page can be named by somebody else."""

import json
import time

import pytest

from pretrace.backends.serving.address import KEY_HOSTS, api_key, wants_key
from pretrace.backends.serving.client import Client
from pretrace.errors import ModelError
from pretrace.plugins.serve.jobs import Jobs
from pretrace.plugins.serve.settings import ServeSettings
from pretrace.plugins.serve.workspace import Workspace

KEY = "sk-that-nobody-else-may-see"


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("PRETRACE_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv(KEY_HOSTS, raising=False)


@pytest.mark.parametrize(
    ("hosts", "url", "given"),
    [
        (None, "http://elsewhere.example/v1", True),  # the command line: who has the key names the address
        ("", "http://api.example.com/v1", False),
        ("api.example.com", "https://api.example.com/v1", True),
        ("api.example.com", "https://API.example.com:8443/v1", True),
        ("API.example.com", "https://api.example.com/v1", True),
        ("other,api.example.com", "https://api.example.com", True),
        ("other, api.example.com ", "https://api.example.com", True),
        ("api.example.com", "https://api.example.com.evil.example/v1", False),
        ("api.example.com", "https://evil.example/api.example.com", False),
        ("api.example.com", "https://evil.example#api.example.com", False),
        ("example.com", "https://api.example.com", False),
        ("localhost:8000", "http://localhost:8000/v1", True),
        ("localhost:8000", "http://localhost:9000/v1", False),
        ("localhost:80", "http://localhost/v1", True),
        ("localhost:443", "http://localhost/v1", False),
        ("[::1]:8000", "http://[::1]:8000", True),
        ("[::1]", "http://[::1]:8000", True),
        (",", "http://api.example.com", False),
        ("api.example.com:x", "http://api.example.com", False),
    ],
)
def test_a_key_goes_to_the_hosts_that_are_named(monkeypatch, hosts, url, given):
    if hosts is not None:
        monkeypatch.setenv(KEY_HOSTS, hosts)
    assert api_key(url) == (KEY if given else "")
    assert ("--key-host" in wants_key(url)) is not given


@pytest.mark.parametrize("named", [False, True])
def test_the_client_sends_it_nowhere_else(monkeypatch, elsewhere, named):
    host, asked = elsewhere
    monkeypatch.setenv(KEY_HOSTS, host if named else "api.example.com")
    client = Client(f"http://{host}/v1", requests=1, seconds=5, retries=0)
    try:
        with pytest.raises(ModelError, match="wants a key it knows") as met:
            client.find("/models")
    finally:
        client.close()
    assert (KEY in str(asked)) is named
    assert ("given only to the hosts" in str(met.value)) is not named


@pytest.mark.usefixtures("warm_jobs")
def test_a_job_of_the_page_gives_the_key_to_no_server_that_was_not_named_when_it_was_served(
    tmp_path, elsewhere
):
    host, asked = elsewhere
    settings = ServeSettings(workspace=tmp_path / "w", key_host=("api.example.com",))
    jobs = Jobs(Workspace.at(settings.workspace), settings)
    texts = tmp_path / "a.jsonl"
    texts.write_text(json.dumps({"text": "one two three"}) + "\n")
    model = f"--model=completions:http://{host}/v1#m"
    command = ("score", str(texts), f"--out={tmp_path / 'out'}", model, "--scores=loss")
    job = jobs.add("score", command, "results/none")
    until = time.monotonic() + 120
    while not (state := jobs.state(jobs.get(job.id))).over and time.monotonic() < until:
        time.sleep(0.05)
    assert (state.name, "--key-host" in state.said) == ("failed", True), jobs.log(job)
    assert asked
    assert KEY not in str(asked)


def test_the_environment_of_a_job_names_the_hosts_and_holds_the_key_only_for_them():
    given = dict.fromkeys(("PRETRACE_API_KEY", "OPENAI_API_KEY"), KEY)
    given |= {"PRETRACE_TOKEN": "t" * 16, "HOME": "/", KEY_HOSTS: "x"}
    assert ServeSettings().environment(given) == {"HOME": "/", KEY_HOSTS: ""}
    named = ServeSettings(key_host=("a.example", "b.example:80")).environment(given)
    keys = {"PRETRACE_API_KEY": KEY, "OPENAI_API_KEY": KEY}
    assert named == {"HOME": "/", KEY_HOSTS: "a.example,b.example:80", **keys}
