"""A model that gives text alone, behind a real HTTP server: asked once, kept, refused, filtered, within a budget."""

import json
from concurrent.futures import ALL_COMPLETED

import pytest
from made import written

from pretrace.backends import open_model
from pretrace.backends.naming import ModelSettings
from pretrace.backends.serving import client
from pretrace.backends.serving.continuing import open_continuing
from pretrace.cache import Draw
from pretrace.errors import ModelError
from pretrace.scoring.evidence import Progress
from pretrace.types import Sampling

PROMPTS = ["The cat sat on", "In 1869 the railway"]
DRAWS = (Draw(4, Sampling(temperature=0.0)), Draw(4, Sampling(temperature=1.0), 1))


def opened(server, kind="chat", **more):
    return open_continuing(f"{kind}:{server.root}", ModelSettings(), **more)


@pytest.mark.parametrize("kind", ["chat", "completions"])
def test_it_continues_as_the_model_behind_it_and_asks_nothing_twice(server, kind):
    model = opened(server, kind)
    assert model.name == f"{kind}:{server.root}/v1#tiny"
    found = model.continued([*PROMPTS, PROMPTS[0]], DRAWS, Progress())
    assert len(server.asked) == 4
    assert found[0] == found[2]
    ids = server.model.ids(PROMPTS[0], special=True)
    for _ in range(4):
        ids.append(server.model.said(ids)["written"])
    assert found[0][0].text == server.model.rust.decode(ids[-4:], skip_special_tokens=False)
    assert not found[0][0].ended
    again = opened(server, kind).continued(PROMPTS, DRAWS, Progress())
    assert again == found[:2]
    assert len(server.asked) == 4


@pytest.mark.parametrize("at_once", [False, True])
def test_what_a_stopped_run_was_told_is_kept(server, monkeypatch, at_once):
    """Also where two requests are done at once, and one of them failed."""
    server.fail = ["", "500 for good"]
    wait = client.wait
    with monkeypatch.context() as patched:
        if at_once:
            patched.setattr(client, "wait", lambda waiting, **_: wait(waiting, return_when=ALL_COMPLETED))
        model = open_continuing(f"chat:{server.root}#tiny", ModelSettings(requests=1))
        with pytest.raises(ModelError, match="kept"):
            model.continued(PROMPTS, DRAWS[:1], Progress())
    asked = len(server.asked)
    opened(server).continued(PROMPTS, DRAWS[:1], Progress())
    assert len(server.asked) == asked + 1


@pytest.mark.parametrize("trouble", ["refuses", "filters"])
def test_refusals_and_filters_are_kept_and_a_model_that_gives_nothing_is_told(server, trouble):
    known = opened(server).continued(PROMPTS[:1], DRAWS[:1], Progress())
    server.trouble = trouble
    found = opened(server).continued(PROMPTS, DRAWS[:1], Progress())
    assert [one[0].text for one in found] == [known[0][0].text, ""]
    asked = len(server.asked)
    assert opened(server).continued(PROMPTS, DRAWS[:1], Progress()) == found
    assert len(server.asked) == asked  # a refusal is an answer, too
    with pytest.raises(ModelError, match="refused, or gave no text to, all of 2 requests"):
        opened(server).continued(["others", "and more"], DRAWS[:1], Progress())


def test_nothing_is_sent_above_the_budget(server):
    for budget in ({"most_requests": 3}, {"most_tokens": 20}):
        with pytest.raises(ModelError, match="allow more with --budget"):
            opened(server, **budget).continued(PROMPTS, DRAWS, Progress())
    assert not server.asked
    opened(server).continued(PROMPTS, DRAWS, Progress())
    opened(server, most_requests=0).continued(PROMPTS, DRAWS, Progress())  # all of it is known


CHOICE = '{"choices": [{"message": %s}]}'
SHAPES = [
    *("5", "null", "[]", '"a"', "{}", '{"choices": 5}', '{"choices": []}', '{"choices": {"a": 1}}', ""),
    *('{"choices": [null]}', '{"choices": ["abc"]}', '{"error": {"message": "no"}}', "<html>"),
    *(CHOICE % content for content in ("null", "5", '{"content": 5}', '{"content": [{"text": "a"}]}')),
    *(CHOICE % content for content in ('{"content": NaN}', "[" * 100_000, "9" * 400, "9" * 5000)),
]


def saying(server, words):
    """A model that says these words, whatever is asked."""
    server.trouble, server.words = "says", words
    return open_continuing(f"chat:{server.root}#x", ModelSettings())


@pytest.mark.parametrize("body", SHAPES, ids=lambda body: body[:40])
def test_an_answer_of_another_shape_is_refused(body, server):
    with pytest.raises(ModelError, match="does not answer"):
        saying(server, body).continued(PROMPTS[:1], DRAWS[:1], Progress())


def test_more_than_was_asked_for_is_not_kept(server):
    model = saying(server, CHOICE % json.dumps({"content": "word " * 100_000}))
    [[found]] = model.continued([PROMPTS[0]], DRAWS[:1], Progress())
    assert found.text == ("word " * 1000)[: 256 * DRAWS[0].tokens]
    assert not found.ended


def test_no_score_reads_text_alone(server):
    with pytest.raises(ModelError, match="recite --access text"):
        open_model(f"chat:{server.root}")
    with pytest.raises(ModelError, match="text alone"):
        opened(server).encode(["text"])


def test_the_command_with_text_alone(server, tmp_path, call, monkeypatch):
    for first, name in ((0, "texts"), (6, "controls")):
        rows = [
            {"id": f"{name}{i}", "text": " ".join(f"w{i}x{k}" for k in range(80))}
            for i in range(first, first + 6)
        ]
        written(tmp_path / f"{name}.jsonl", rows)
    command = ["recite", tmp_path / "texts.jsonl", "--controls", tmp_path / "controls.jsonl"]
    command += ["--model", f"chat:{server.root}", "--placebo", f"completions:{server.root}"]
    command += ["--access", "text", "--samples", "0", "--out", tmp_path / "OUT"]
    assert call(*command, "--budget=requests=1")[0] == 2
    assert not server.asked
    server.trouble = "refuses"
    for more, said in (((), "refused, or gave no text to"), (("--power",), "has no weights here")):
        code, _, error = call(*command, *more)
        assert (code, said in error, (tmp_path / "OUT").exists()) == (2, True, False)
    server.trouble = ""
    monkeypatch.setenv("PRETRACE_CACHE", "off")
    assert call(*command)[0] == 4
    page = (tmp_path / "OUT/report.html").read_text("utf-8")
    assert "Continue the following text" in page
    assert "--power" not in page  # there are no weights to train
