"""A search from the page: in training data that whoever serves it has named, and in no other."""

import json
import time

import pytest

from pretrace.plugins.serve.forms import COMMANDS, CommandForm, Field, forms
from pretrace.plugins.serve.jobs import Jobs
from pretrace.plugins.serve.workspace import RequestError
from pretrace.runs import load_verdict


def rows(texts):
    return "".join(json.dumps({"text": one}) + "\n" for one in texts).encode()


def test_an_upload_is_searched_in_the_named_corpus_alone(visit, tmp_path):
    words = ("river", "stone", "harbour", "valley") * 6
    texts = [" ".join(f"{word}{i}" for word in words) for i in range(12)]
    corpus = tmp_path / "TRAINING.jsonl"
    corpus.write_bytes(rows([f"It said: {texts[0]} and no more.", "Other words altogether. " * 20]))
    secret = tmp_path / "SECRET.jsonl"
    secret.write_bytes(rows(texts))
    visitor = visit(corpus=(str(corpus),))
    page = visitor.upload("mine.jsonl", rows(texts))
    assert "Search training data for these texts" in visitor.client.get(page).text
    form = visitor.client.get(f"{page}/test/scan")
    assert str(corpus) in form.text
    assert 'name="model"' not in form.text
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
    page = visitor.upload("mine.jsonl", rows(["some words of a text that is long enough to be seen"] * 3))
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


def fields(command):
    return {field.name: field for field in FORMS[command].fields}


def test_every_test_has_a_form_that_names_a_model_and_no_output():
    assert set(COMMANDS.values()) <= FORMS.keys()
    for form in FORMS.values():
        names = [field.name for field in form.fields]
        assert ("model" in names) != (form.command == "scan")  # a search asks no model
        assert not {"out", "texts", "plugin", "model-args.trust-remote-code"} & {*names}


def test_a_number_keeps_its_bounds():
    form = CommandForm(("made", "up"), "", (Field("months", "number", "How many.", least=1, most=120),))
    assert form.arguments({"months": ["120"]}, str) == ["--months=120"]
    for written in ("121", "0", "many", "nan"):
        with pytest.raises(RequestError, match="Months is a number, 1 to 120"):
            form.arguments({"months": [written]}, str)


def test_a_value_cannot_become_another_option():
    given = {"model": ["--plugin=evil.py"], "controls": ["u"], "score": ["loss"]}
    made = FORMS["flag"].arguments(given, lambda upload: f"/w/{upload}.jsonl")
    assert made == ["--model=--plugin=evil.py", "--controls=/w/u.jsonl", "--score=loss"]


def test_lines_become_an_option_each():
    given = {"model": ["m"], "placebo": ["one\n two \n\n"], "power": ["on"]}
    made = FORMS["canaries"].arguments(given, str.upper)
    assert made == ["--model=m", "--placebo=one", "--placebo=two", "--power"]
