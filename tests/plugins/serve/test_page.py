"""What a visitor does with texts, jobs and results: names, plans, second tries, searches, and forms of commands."""

import json
import re
import socket
import time
from pathlib import Path

import pytest
from made import drawn, written

from pretrace.plugins.serve.forms import COMMANDS, forms
from pretrace.plugins.serve.jobs import Jobs
from pretrace.plugins.serve.uploads import upload_of, uploads
from pretrace.runs import load_verdict


@pytest.fixture
def still(monkeypatch):
    """No job is started: it waits for its turn."""
    monkeypatch.setattr(Jobs, "_start", lambda jobs, job: None)


def rows(number=3, **more):
    text = "Text number {} of a collection that is long enough."
    made = [{"id": f"t{i}", "text": text.format(i), **more} for i in range(number)]
    return "".join(json.dumps(row) + "\n" for row in made).encode()


def send(visitor, *files):
    some = [("file", file) for file in files]
    return visitor.client.post("/collections", files=some, follow_redirects=False)


def test_what_is_sent_at_once_is_a_collection(visitor):
    for names, called in (
        (("one.jsonl", "two.jsonl"), "one.jsonl and 1 more"),
        (("a/1.txt", "a/2.txt"), "a"),
    ):
        some = [("file", (name, rows())) for name in names]
        answer = visitor.client.post("/collections", files=some, follow_redirects=False)
        made = upload_of(visitor.workspace, answer.headers["location"].removeprefix("/collections/"))
        assert (made.name, made.files) == (called, 2)


def test_a_collection_is_deleted_unless_a_job_is_about_to_read_it(visitor, still):
    address = visitor.upload("mine.jsonl", rows())
    visitor.post(f"{address}/test/score", {"model": "m"})
    refused = visitor.post(f"{address}/delete")
    assert (refused.status_code, "stop the job first" in visitor.said(refused)) == (409, True)
    visitor.post("/jobs/stop")
    assert visitor.post(f"{address}/delete").status_code == 200
    assert uploads(visitor.workspace) == []
    assert not [*visitor.workspace.room("incoming").iterdir()]
    assert visitor.client.get(address).status_code == 404


def test_a_plan_is_made_first_and_started_with_one_click(visitor, still):
    address = visitor.upload("mine.jsonl", rows())
    visitor.post(f"{address}/test/score", {"model": "m", "ahead": "on"})
    (planned,) = Jobs(visitor.workspace).all()
    assert (planned.command[-1], planned.plans) == ("--dry-run", True)
    visitor.post(f"/jobs/{planned.id}/begin")
    begun = next(job for job in Jobs(visitor.workspace).all() if not job.plans)
    assert begun.command == planned.command[:-1]
    assert (begun.test, begun.values) == ("score", planned.values)
    assert visitor.post(f"/jobs/{begun.id}/begin").status_code == 409


def test_a_test_that_applies_is_planned_and_started_at_once(visitor, still):
    pages = [visitor.upload(f"{name}.jsonl", rows(25)) for name in "ab"]
    given = {"model": "m", "controls": pages[1].rpartition("/")[2], "at_once": "plan"}
    for how in ("plan", "start"):
        assert visitor.post(f"{pages[0]}/test/flag", given | {"at_once": how}).status_code == 200
    made = sorted((job.command for job in Jobs(visitor.workspace).all()), key=len)
    assert [("--model=m" in one, "--dry-run" in one) for one in made] == [(True, False), (True, True)]
    missing = visitor.post(f"{pages[0]}/test/placebo", given)  # an earlier checkpoint
    assert missing.status_code == 422


def test_what_was_typed_stands_in_the_form_of_the_next_try(visitor, still):
    Path("m").rename("<m>")
    address = visitor.upload("mine.jsonl", rows())
    visitor.post(f"{address}/test/score", {"model": "<m>", "scores": "loss"})
    (job,) = Jobs(visitor.workspace).all()
    page = visitor.client.get(f"{address}/test/score", params={"again": job.id}).text
    assert 'value="&lt;m&gt;"' in page
    assert 'value="loss"' in page
    assert visitor.client.get(f"{address}/test/score", params={"again": "../secret"}).status_code == 404


def test_a_model_that_is_not_there_is_said_before_a_job_starts(visitor, still, tmp_path):
    address = visitor.upload("mine.jsonl", rows())
    refused = visitor.post(f"{address}/test/score", {"model": str(tmp_path / "nothing")})
    assert (refused.status_code, "there is no folder or file" in visitor.said(refused)) == (422, True)
    assert Jobs(visitor.workspace).all() == []
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "config.json").touch()
    with socket.socket() as free:  # nobody listens there
        free.bind(("127.0.0.1", 0))
        silent = f"http://127.0.0.1:{free.getsockname()[1]}"
        for model, said in (
            (str(tmp_path), "is not a model: a model folder holds config.json"),
            (str(tmp_path / "bare"), "holds no weights (*.safetensors); found config.json"),
            ("somebody/a-model", "could not be had from the hub"),  # the tests reach none
            ("a b", "is neither a folder, a .gguf file"),
            (f"vllm:{silent}", f"nothing answers at {silent}"),
            (silent, "an address alone does not tell what kind of server is there"),
        ):
            refused = visitor.post(f"{address}/test/score", {"model": model})
            assert (refused.status_code, said in visitor.said(refused)) == (422, True), visitor.said(refused)
            assert 'data-field="model"' in refused.text
    assert Jobs(visitor.workspace).all() == []
    assert visitor.post(f"{address}/test/score", {"model": "m"}).status_code == 200


def test_any_answer_of_a_server_will_do(visitor, still, elsewhere):
    host, asked = elsewhere
    address = visitor.upload("mine.jsonl", rows())
    assert visitor.post(f"{address}/test/score", {"model": f"vllm:http://{host}"}).status_code == 200
    [(path, headers)] = asked
    assert (path, "Authorization" in headers) == ("/v1/models", False)


def test_a_result_is_deleted_unless_a_job_writes_it(visitor, still):
    folder = visitor.workspace.room("results") / "a b"
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    (folder / "secret").symlink_to(visitor.workspace.folder / "secret")
    job = Jobs(visitor.workspace).add("x", ("list",), "results/a b", test="score")
    assert visitor.post("/results/a b/delete").status_code == 409
    visitor.post(f"/jobs/{job.id}/stop")
    assert visitor.post("/results/a b/delete").status_code == 200
    assert not folder.exists()
    assert visitor.post("/results/a b/delete").status_code == 404
    assert (visitor.workspace.folder / "secret").is_file()


def test_a_first_visit_has_an_example_one_click_away(visit, still, monkeypatch):
    from pretrace.plugins.serve import testing_collections as example

    monkeypatch.setattr(example, "find_spec", lambda name: name)
    visitor = visit()
    assert "Run the example" in visitor.client.get("/").text
    assert "Forty" in visitor.client.get("/").text
    for _ in range(2):  # its texts are uploaded once
        assert visitor.post("/example").status_code == 200
    assert sorted(one.name for one in uploads(visitor.workspace)) == sorted(example.EXAMPLE_NAMES)
    texts = [one.facts.texts for one in uploads(visitor.workspace)]
    assert texts == [example.EXAMPLE_EACH] * 2
    job = Jobs(visitor.workspace).all()[0]
    assert (job.command[0], "--model=smollm2" in job.command) == ("flag", True)
    sides = [{json.loads(row)["id"] for row in side.splitlines()} for side in example.example_texts()]
    assert not sides[0] & sides[1]
    visitor = visit(model=("another",))
    assert "Run the example" not in visitor.client.get("/").text
    assert visitor.post("/example").status_code == 403


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
    assert "Search training data for these texts" in visitor.client.get(page).text
    assert str(corpus) in visitor.client.get(f"{page}/test/scan").text
    refused = visitor.post(f"{page}/test/scan", {"corpus": str(secret)})
    assert (refused.status_code, "Training data to search is one of" in visitor.said(refused)) == (422, True)
    started = visitor.post(f"{page}/test/scan", {"corpus": str(corpus), "near": "on"})
    assert started.status_code == 200, visitor.said(started)
    (result,) = _finished(visitor)
    found = load_verdict(result)
    assert found.table("texts").columns["found"][:2] == ("whole", "no")
    shown = visitor.client.get(f"/results/{result.name}/report.html")
    assert "<mark" in shown.text or "<mark" in (result / "report.html").read_text(encoding="utf-8")


def test_nothing_is_searched_where_nothing_was_named(visit, tmp_path):
    visitor = visit()
    page = visitor.upload("mine.jsonl", lines(["some words of a text that is long enough to be seen"] * 3))
    assert "Search training data" not in visitor.client.get(page).text
    for answer in (
        visitor.client.get(f"{page}/test/scan"),
        visitor.post(f"{page}/test/scan", {"corpus": str(tmp_path)}),
    ):
        assert (answer.status_code, "pretrace serve --corpus" in visitor.said(answer)) == (403, True)


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


FORMS = forms()


def test_every_test_has_a_form_that_names_a_model_and_no_output():
    assert set(COMMANDS.values()) <= FORMS.keys()
    for form in FORMS.values():
        names = [field.name for field in form.fields]
        assert ("model" in names) != (form.command == "scan")  # a search asks no model
        assert not {"out", "texts", "plugin", "model-args.trust-remote-code"} & {*names}


def test_a_value_cannot_become_another_option_and_lines_become_one_each():
    given = {"model": ["--plugin=evil.py"], "controls": ["u"], "score": ["loss"]}
    made = FORMS["flag"].arguments(given, lambda upload: f"/w/{upload}.jsonl")
    assert made == ["--model=--plugin=evil.py", "--controls=/w/u.jsonl", "--score=loss"]
    given = {"model": ["m"], "placebo": ["one\n two \n\n"], "power": ["on"]}
    made = FORMS["canaries"].arguments(given, str)
    assert made == ["--model=m", "--placebo=one", "--placebo=two", "--power"]
