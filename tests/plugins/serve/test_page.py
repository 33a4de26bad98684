"""What a visitor does with texts, jobs and results: names, plans, second tries, searches, and forms of commands."""

import json
import re
import socket
import time

import pytest
from made import drawn, written

from pretrace.plugins.serve.jobs import Jobs, WebJob
from pretrace.plugins.serve.uploads import Upload
from pretrace.runs import load_verdict


@pytest.fixture
def still(monkeypatch):
    """No job is started: it waits for its turn."""
    monkeypatch.setattr(Jobs, "_start", lambda jobs, job: None)


def rows(number=3, **more):
    text = "Text number {} of a collection that is long enough."
    made = [{"id": f"t{i}", "text": text.format(i), **more} for i in range(number)]
    return "".join(json.dumps(row) + "\n" for row in made).encode()


def test_a_collection_is_deleted_unless_a_job_is_about_to_read_it(visit, still):
    visitor = visit(corpus=("m",))
    address = visitor.upload("mine.jsonl", rows())
    visitor.post(f"{address}/search", {"corpus": "m"})
    refused = visitor.post(f"{address}/delete")
    assert (refused.status_code, "stop the job first" in visitor.said(refused)) == (409, True)
    (job,) = visitor.workspace.records(WebJob)
    visitor.post(f"/jobs/{job.id}/stop")
    assert visitor.post(f"{address}/delete").status_code == 200
    assert visitor.workspace.records(Upload) == []
    assert not visitor.entries("incoming")
    assert visitor.client.get(address).status_code == 404


def test_a_test_that_applies_is_started_or_planned_with_what_was_said_of_the_case(visitor, still):
    sides = [visitor.upload(f"{name}.jsonl", rows(25)) for name in "ab"]
    said = {"model": "m", "power": "on", "requested_by": "--out=X; me"}
    said["controls"] = sides[1].rpartition("/")[2]
    paths = [str(visitor.workspace.within(one.path)) for one in visitor.workspace.records(Upload)]
    visitor.post(f"{sides[0]}/test/flag", {**said, "placebo": "./m"})
    visitor.post(f"{sides[0]}/test/controls", {**said, "ahead": "on"})
    planned, begun = sorted(visitor.workspace.records(WebJob), key=lambda job: job.command)
    options = ("--controls", paths[0], "--model", "m")
    more = ("--power", "--requested-by=--out=X; me")
    out = f"--out={visitor.workspace.folder}/"
    assert begun.command == ("flag", paths[1], *options, "--placebo=./m", *more, f"{out}{begun.out}")
    assert planned.command == ("audit", paths[1], *options, *more, f"{out}{planned.out}", "--plan")
    assert (planned.plans, begun.plans) == (True, False)
    visitor.post(f"/jobs/{planned.id}/begin")
    assert planned.command[:-1] in [job.command for job in visitor.workspace.records(WebJob)]
    assert visitor.post(f"/jobs/{begun.id}/begin").status_code == 409
    page = visitor.client.get(f"{sides[0]}?{begun.case}").text
    assert 'value="--out=X; me"' in page
    assert 'value="on" checked' in page
    flags = (("flag", {name: ""}) for name in ("controls", "model"))
    for test, lacking in (("placebo", {}), ("marks", {}), *flags):
        assert visitor.post(f"{sides[0]}/test/{test}", said | lacking).status_code == 422, test


def test_a_model_that_is_not_there_is_said_before_a_job_starts(visitor, still, tmp_path):
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "config.json").touch()
    with socket.socket() as free:  # nobody listens there
        free.bind(("127.0.0.1", 0))
        silent = f"http://127.0.0.1:{free.getsockname()[1]}"
        for model, said in (
            (str(tmp_path / "nothing"), "there is no folder or file"),
            (str(tmp_path), "is not a model: a model folder holds config.json"),
            (str(tmp_path / "bare"), "holds no weights (*.safetensors); found config.json"),
            ("somebody/a-model", "could not be had from the hub"),  # the tests reach none
            ("a b", "is neither a folder, a .gguf file"),
            (f"vllm:{silent}", f"nothing answers at {silent}"),
            (silent, "an address alone does not tell what kind of server is there"),
        ):
            refused = visitor.post("/text", {"text": "a", "model": model})
            assert (refused.status_code, said in visitor.said(refused)) == (422, True), visitor.said(refused)
            assert 'data-field="model"' in refused.text
    assert visitor.workspace.records(WebJob) == []
    assert visitor.post("/text", {"text": "a", "model": "m"}).status_code == 200


def test_any_answer_of_a_server_will_do(visitor, still, elsewhere):
    host, asked = elsewhere
    assert visitor.post("/text", {"text": "a", "model": f"vllm:http://{host}"}).status_code == 200
    [(path, headers)] = asked
    assert (path, "Authorization" in headers) == ("/v1/models", False)


def test_a_result_is_deleted_unless_a_job_writes_it(visitor, still):
    folder = visitor.workspace.folder / "results" / "a b"
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    (folder / "secret").symlink_to(visitor.workspace.folder / "secret")
    job = Jobs(visitor.workspace).add("x", ("list",), "results/a b")
    assert visitor.post("/results/a b/delete").status_code == 409
    visitor.post(f"/jobs/{job.id}/stop")
    assert visitor.post("/results/a b/delete").status_code == 200
    assert not folder.exists()
    assert visitor.post("/results/a b/delete").status_code == 404
    assert (visitor.workspace.folder / "secret").is_file()


def test_one_question_has_one_number(call, visitor, tmp_path, model_folder):
    """How many documents a single reading takes: the plan of the audit, `ask` without control documents, and the
    page."""
    sides = {name: drawn(25, 80, seed=i) for i, name in enumerate(("texts", "known"))}
    files = [written(tmp_path / f"{name}.jsonl", some) for name, some in sides.items()]
    words = ("--model", str(model_folder))
    planned = call("ask", files[0], *words, "--controls", files[1], "--plan")[1]
    audited = call("audit", files[0], *words, "--controls", files[1], "--plan")[1]
    flagged = call("flag", files[0], *words, "--controls", files[1], "--dry-run", "--out", tmp_path / "F")[1]
    missing = call("ask", files[0], *words, "--plan")[1]
    pages = [visitor.upload(one.name, one.read_bytes()) for one in files]
    query = f"?model={model_folder}&controls={pages[1].rpartition('/')[2]}"
    page = visitor.client.get(pages[0] + query).text
    found = [
        *(re.search(r"read  1 time +█+ ([\d,]+);", said)[1] for said in (planned, audited, flagged)),
        re.search(r"cases, about ([\d,]+) documents", missing)[1],
        *re.findall(r"about ([\d,]+) documents on each side if the model read them once", page),
    ]
    assert len(found) == 6
    assert len({*found}) == 1, found
    assert len({re.search(r"With (\d+)", said)[1] for said in (planned, audited, flagged)}) == 1


def lines(texts):
    return "".join(json.dumps({"text": one}) + "\n" for one in texts).encode()


def test_an_upload_is_searched_in_the_named_corpus_alone(visit, tmp_path):
    words = ("river", "stone", "harbour", "valley") * 6
    texts = [" ".join(f"{word}{i}" for word in words) for i in range(12)]
    corpus = tmp_path / "TRAINING.jsonl"
    corpus.write_bytes(lines([f"It said: {texts[0]} and no more.", "Other words altogether. " * 20]))
    secret = tmp_path / "SECRET.jsonl"
    secret.write_bytes(lines(texts))
    visitor = visit(corpus=(str(corpus),))
    page = visitor.upload("mine.jsonl", lines(texts))
    assert "Training data to search for these texts" in visitor.client.get(page).text
    assert f'<option value="{corpus}">' in visitor.client.get(page).text
    for corpora in (visitor, visit()):
        refused = corpora.post(f"{page}/search", {"corpus": str(secret)})
        assert (refused.status_code, "pretrace serve --corpus" in visitor.said(refused)) == (403, True)
    started = visitor.post(f"{page}/search", {"corpus": str(corpus)})
    assert started.status_code == 200, visitor.said(started)
    (result,) = _finished(visitor)
    assert load_verdict(result).table("texts").columns["found"][:2] == ("whole", "no")
    assert "<mark" in visitor.client.get(f"/results/{result.name}/report").text


def _finished(visitor):
    """The folders of results, once there is one."""
    jobs = Jobs(visitor.workspace)
    for _ in range(2000):
        jobs.tick()
        found = [one.parent for one in visitor.workspace.folder.glob("results/[!.]*/result.json")]
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError([one.read_text() for one in visitor.workspace.folder.glob("jobs/*/log.txt")])
