"""Jobs as real processes: how they end, what is said of it, that they outlive the server, and what they may know."""

import os
import signal
import time

import pytest

from pretrace.backends.naming import KEY_HOSTS
from pretrace.backends.serving.client import Client, _api_key, _wants_key
from pretrace.errors import ModelError
from pretrace.plugins.serve import RequestError, Workspace, save
from pretrace.plugins.serve.command import ServeSettings
from pretrace.plugins.serve.jobs import Jobs, WebJob


def now(jobs, job):
    return jobs.workspace.record(WebJob, job.id)


@pytest.fixture
def jobs(tmp_path):
    made = Jobs(Workspace.at(tmp_path / "workspace"))
    yield made
    for job, _ in made.states():
        made._signal(job, signal.SIGKILL)


def ended(jobs, job, seconds=60):
    """The state of a job that is over, from files and processes alone, as a new server sees it."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        jobs.tick()
        state = jobs.state(now(jobs, job))
        if state.over:
            return state
        time.sleep(0.05)
    raise AssertionError(jobs.log(job))


def test_how_a_job_ended_is_known_to_the_next_server(jobs):
    job = jobs.add("list", ("list",), "results/none")
    wrong = jobs.add("runs-report", ("runs", "report", "/nowhere"), "results/nothing")
    odd = jobs.add("odd", ("list", "a\0b"), "results/none")  # keeps no other from its turn
    last = jobs.add("list", ("list",), "results/none")
    states = [jobs.state(now(jobs, one)).name for one in (job, wrong)]
    assert states == ["running", "waiting"]  # one at a time
    assert ended(jobs, job).name == "unanswered"
    assert "Scores (higher" in jobs.log(job)
    state = ended(jobs, wrong)
    assert (state.name, state.said.partition(":")[0]) == ("failed", "/nowhere is not a pretrace run")
    assert "cannot be started (embedded null byte)" in ended(jobs, odd).said
    assert ended(jobs, last).name == "unanswered"
    later = Jobs(jobs.workspace)
    assert [later.state(one).name for one in (job, wrong, odd)] == ["unanswered", "failed", "failed"]


def test_a_killed_job_is_stopped_and_goes_on_when_asked(jobs):
    job = jobs.add("list", ("list",), "results/none")
    os.kill(now(jobs, job).pid, signal.SIGKILL)
    state = ended(jobs, job)
    assert (state.name, "process is gone" in state.said) == ("stopped", True)
    time.sleep(0.1)
    assert Jobs(jobs.workspace).state(now(jobs, job)).name == "stopped"  # it does not begin again by itself
    jobs.resume(now(jobs, job))
    assert ended(jobs, job).name == "unanswered"


def test_so_many_wait_and_no_more_and_those_that_wait_can_be_stopped(tmp_path):
    jobs = Jobs(Workspace.at(tmp_path / "workspace"), ServeSettings(most_waiting=2))
    added = [jobs.add("list", ("list",), "results/none") for _ in range(3)]  # the first one runs
    with pytest.raises(RequestError, match="2 jobs wait for their turn, and 2 is the most") as met:
        jobs.add("list", ("list",), "results/none")
    assert (met.value.status, len(jobs.states())) == (429, 3)
    for job in reversed(added):  # those that wait first
        jobs.stop(job)
    assert {ended(jobs, job).name for job in added} == {"stopped"}
    assert [now(jobs, job).pid > 0 for job in added] == [True, False, False]  # those that waited never began
    for job in added[:2]:
        jobs.resume(job)
    assert [state.name for _, state in jobs.states()].count("waiting") == 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"job_memory": 1}, "It took more than 1 MB of memory: choose fewer texts"),
        ({"job_hours": 1e-5}, "It ran for more than 1e-05 hours: let it go on"),
    ],
)
def test_a_job_that_takes_too_much_is_ended_with_the_reason(tmp_path, settings, said):
    jobs = Jobs(Workspace.at(tmp_path / "w"), ServeSettings(workspace=tmp_path / "w", **settings))
    job = jobs.add("list", ("list",), "results/none")
    after = jobs.add("list", ("list",), "results/none")
    state = ended(jobs, job)
    assert (state.name, state.said.startswith(said)) == ("failed", True)
    assert ended(jobs, after).name == "failed"


def test_a_text_that_has_no_place_in_the_queue_leaves_nothing_behind(visit):
    visitor = visit(most_waiting=0)
    answer = visitor.post("/text", {"model": "m", "text": "a"})
    assert (answer.status_code, "0 jobs wait for their turn" in visitor.said(answer)) == (429, True)
    assert not visitor.entries("looks", "jobs")


def test_a_number_that_belongs_to_another_process_now_is_not_the_job(jobs):
    mine = WebJob("one", "list", ("list",), "results/none", 0.0, "/", pid=os.getpid(), born=12345.0)
    place = jobs.workspace.folder / "jobs" / "one"
    place.mkdir()
    save(place / "job.json", mine)
    assert jobs.state(now(jobs, mine)).name == "stopped"
    jobs.stop(mine)  # or this test would be stopped


def test_damaged_records_are_passed_over(jobs):
    place = jobs.workspace.folder / "jobs" / "odd"
    place.mkdir()
    for content in ("", "[]", "{}", '{"id": 3}'):
        (place / "job.json").write_text(content)
        assert jobs.states() == []
        with pytest.raises(RequestError):
            jobs.workspace.record(WebJob, "odd")


# The key of a server goes to the hosts it belongs to: a model on the page can be named by somebody else.

KEY = "sk-that-nobody-else-may-see"


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("PRETRACE_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv(KEY_HOSTS, raising=False)


API, LOCAL = "https://api.example.com", "http://localhost"
GIVEN = [
    (None, "http://elsewhere.example/v1", True),  # the command line: who has the key names the address
    ("", f"{API}/v1", False), ("api.example.com", f"{API}/v1", True), ("API.example.com", f"{API}/v1", True),
    ("api.example.com", f"{API.upper()}:8443/v1", True), ("other, api.example.com ", API, True),
    ("api.example.com", f"{API}.evil.example/v1", False), ("example.com", f"{API}/v1", False),
    ("api.example.com", "https://evil.example/api.example.com", False), (",", API, False),
    ("api.example.com", "https://evil.example#api.example.com", False), ("api.example.com:x", API, False),
    ("localhost:8000", f"{LOCAL}:8000/v1", True), ("localhost:8000", f"{LOCAL}:9000/v1", False),
    ("localhost:80", f"{LOCAL}/v1", True), ("localhost:443", f"{LOCAL}/v1", False),
    ("[::1]:8000", "http://[::1]:8000", True), ("[::1]", "http://[::1]:8000", True),
]  # fmt: skip


@pytest.mark.parametrize(("hosts", "url", "given"), GIVEN)
def test_a_key_goes_to_the_hosts_that_are_named(monkeypatch, hosts, url, given):
    if hosts is not None:
        monkeypatch.setenv(KEY_HOSTS, hosts)
    assert _api_key(url) == (KEY if given else "")
    assert ("--key-host" in _wants_key(url)) is not given


@pytest.mark.parametrize("named", [False, True])
def test_the_client_sends_it_nowhere_else(monkeypatch, elsewhere, named):
    host, asked = elsewhere
    monkeypatch.setenv(KEY_HOSTS, host if named else "api.example.com")
    client = Client(f"http://{host}/v1", requests=1, seconds=5)
    try:
        with pytest.raises(ModelError, match="wants a key it knows") as met:
            client.find("/models")
    finally:
        client.close()
    assert (KEY in str(asked)) is named
    assert ("given only to the hosts" in str(met.value)) is not named


def test_the_environment_of_a_job_names_the_hosts_and_holds_the_key_only_for_them():
    given = dict.fromkeys(("PRETRACE_API_KEY", "OPENAI_API_KEY"), KEY)
    given |= {"PRETRACE_TOKEN": "t" * 16, "HOME": "/", KEY_HOSTS: "x"}
    assert ServeSettings().environment(given) == {"HOME": "/", KEY_HOSTS: ""}
    named = ServeSettings(key_host=("a.example", "b.example:80")).environment(given)
    keys = {"PRETRACE_API_KEY": KEY, "OPENAI_API_KEY": KEY}
    assert named == {"HOME": "/", KEY_HOSTS: "a.example,b.example:80", **keys}
