"""Models behind servers give the log-probabilities that the weights give here, and are refused where they do not."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from model_servers import PROBES, ModelServer, asked, is_known, same, serving
from tiny import SENTENCES

from pretrace import Models, detect, open_corpus, open_model
from pretrace.backends import open_tokenizer
from pretrace.backends.serving.client import Client
from pretrace.errors import MissingPackageError, ModelError
from pretrace.types import Quantity

KINDS = [("vllm", "vllm"), *(("completions", name) for name in ("vllm", "legacy", "fireworks", "together"))]


@pytest.mark.parametrize(("kind", "flavour"), KINDS)
@pytest.mark.parametrize("family", ["plain", "started"])
def test_log_probabilities_are_those_of_the_weights(kind, flavour, family, request):
    folder = str(request.getfixturevalue({"plain": "model_folder", "started": "reference_folder"}[family]))
    with serving(ModelServer(request.getfixturevalue(family))) as server:
        server.flavour = flavour
        served = open_model(f"{kind}:{server.root}", tokenizer=folder)
        texts = [*SENTENCES, "a", "", "The cat sat. " * 9]
        same(asked(open_model(folder), texts), asked(served, texts))
        assert served.offers == Quantity.LOGP


HOW = [*({"max_tokens": limit} for limit in (5, 17, 30)), {"start": "always"}, {"start": "never"}]


@pytest.mark.parametrize("kind", ["vllm", "completions"])
@pytest.mark.parametrize("how", HOW, ids=str)
def test_texts_are_cut_and_started_alike(kind, how, opened, model_folder):
    texts = ["Ärger über Öl – naïve café, 東京 and 🙂 too. " * 3, *SENTENCES]
    same(asked(open_model(str(model_folder), **how), texts), asked(opened(kind, **how), texts))


def test_texts_share_a_request_up_to_the_budget_and_requests_run_together(opened, server):
    model = opened("vllm", requests=3, token_budget=60)
    before = len(server.asked)
    server.slow = 0.05
    asked(model, [f"{word} {text}" for word in ("a", "b", "c", "d", "e", "f") for text in SENTENCES])
    sizes = [sum(map(len, body["prompt"])) for _, body in server.asked[before:] if not is_known(server, body)]
    assert len(sizes) > 6
    assert max(sizes) <= 60
    assert 2 <= server.busiest <= 3


@pytest.mark.parametrize("kind", ["vllm", "completions"])
def test_no_text_is_sent_before_the_check(kind, opened, server):
    opened(kind)
    asked_for, read = [body["prompt"] for _, body in server.asked], server.model.rust.decode
    sent = [text for one in asked_for for text in ([one] if isinstance(one, str) else map(read, one))]
    assert sent
    assert all(text.startswith(tuple(PROBES)) for text in sent)


SHIFTED, NO_NUMBERS = "shifted by one token", "no log-probabilities"
OTHERS, WRONG_TYPE = "other numbers for the same text", "where a number belongs"
TROUBLES = {
    "early": SHIFTED, "late": SHIFTED, "after": SHIFTED, "-9997": NO_NUMBERS,
    "equal": "the same number, -1.5, for every token",
    "no null": "for the very first token", "moving": OTHERS, "noise": OTHERS, "shuffled": f"{SHIFTED}|{OTHERS}",
    "none": "gives no log-probabilities of prompts: .*(--max-logprobs|--logits_all true)",
    "start counted": r"read \d+ tokens where \d+ were sent", "false": f"'False' {WRONG_TYPE}",
    "NaN": "does not answer as", "null": f"{NO_NUMBERS}|does not answer as",
    "html": "does not answer in JSON", "broken json": "does not answer in JSON",
    "redirect": "redirects elsewhere, and no redirect is followed", "cut": "cannot be reached",
    "500": r"fails \(500\), after 2 more tries", "500 for good": r"fails \(500\): ", "busy": r"too busy .* \(429\)",
}  # fmt: skip
TROUBLED = [(kind, *row) for row in TROUBLES.items() for kind in ("vllm", "completions", "together")]
TROUBLED = [one for one in TROUBLED if one[:2] != ("together", "start counted")]  # which counts nothing
WRONG = {"other ids": "other tokens than the tokenizer", "reordered": "in another order"}
TROUBLED += [(kind, *row) for row in WRONG.items() for kind in ("vllm", "completions")]
TROUBLED += [("vllm", "one less", "numbers for")]


@pytest.mark.parametrize(("kind", "trouble", "says"), TROUBLED)
def test_a_server_in_trouble_is_refused_by_name(kind, trouble, says, opened, server):
    if kind == "together":
        kind, server.flavour = "completions", kind
    server.trouble = trouble
    with pytest.raises(ModelError, match=says) as met:
        opened(kind)
    assert "\n" not in str(met.value)
    assert "abc" not in str(met.value)  # the query of a redirect


def test_llama_cpp_python_is_shifted_without_a_start_token_or_wants_its_flag(opened, server):
    server.flavour = "llama-cpp-python"
    with pytest.raises(ModelError, match=r"shifted by one token \(beside 6 of 6 last tokens"):
        opened("completions")
    asked_ids = [body for _, body in server.asked if not isinstance(body["prompt"], str)]
    assert len(asked_ids) == 1  # its error 500 blames the request, which is not repeated
    server.trouble, before = "no logits", len(server.asked)
    with pytest.raises(ModelError, match=r"Start llama-cpp-python with --logits_all true"):
        opened("completions")
    # one with text, one with ids, the six sentences or as many as were sent before the first refusal: none is repeated
    assert 3 <= len(server.asked) - before <= 8


def test_llama_cpp_python_with_a_start_token_is_read_without_it(started, reference_folder):
    folder = str(reference_folder)
    with serving(ModelServer(started)) as server:
        server.flavour = "llama-cpp-python"
        with pytest.raises(ModelError, match=r"other tokens.*another start rule with --model-args start"):
            open_model(f"completions:{server.root}", tokenizer=folder)
        found = asked(open_model(f"completions:{server.root}", tokenizer=folder, start="never"), SENTENCES)
    for one, other in zip(asked(open_model(folder), SENTENCES), found, strict=True):
        assert one.tokens[1:].tolist() == other.tokens.tolist()
        np.testing.assert_allclose(one.logp[1:], other.logp, atol=1e-5)


@pytest.mark.parametrize("kind", ["vllm", "completions"])
def test_the_tokenizer_of_another_model_is_refused(kind, server, tmp_path):
    from tiny import make_tokenizer
    from tokenizers import normalizers

    other = make_tokenizer()
    other.backend_tokenizer.normalizer = normalizers.Lowercase()
    other.save_pretrained(tmp_path / "other")
    with pytest.raises(ModelError, match="tokeni"):
        open_model(f"{kind}:{server.root}", tokenizer=str(tmp_path / "other"))


@pytest.mark.parametrize("trouble", ["busy", "500", "cut"])
@pytest.mark.parametrize("kind", ["vllm", "completions"])
def test_a_request_that_fails_is_repeated(trouble, kind, opened, server, model_folder):
    model = opened(kind, requests=1)
    server.fail = [trouble, trouble]
    same(asked(open_model(str(model_folder)), SENTENCES), asked(model, SENTENCES))
    assert not server.fail


def test_a_slow_server(opened, server):
    model = opened("vllm")
    model.client = Client(f"{server.root}/v1", requests=1, seconds=0.2)
    server.slow = 60.0  # until the test is over
    with pytest.raises(ModelError, match="did not answer in time: allow it more"):
        asked(model, SENTENCES)
    with pytest.raises(ModelError, match="cannot be reached"):
        open_model("vllm:http://127.0.0.1:9")


def test_names_and_servers_that_cannot_be_used(opened, server):
    for owner, says in (("llamacpp", "GGUF file itself"), ("library", "Ollama")):
        server.owner = owner
        with pytest.raises(ModelError, match=says):
            opened("completions")
    assert not server.asked
    server.owner, server.names = "vllm", ["small", "large"]
    for settings, says in (
        ({}, "several models, name one with --model-args served_model: large, small"),
        ({"served_model": "huge"}, "serves no model 'huge': it has large, small"),
    ):
        with pytest.raises(ModelError, match=says):
            opened(**settings)
    model = opened(served_model="large")
    assert server.asked[-1][1]["model"] == "large"
    assert model.name == f"vllm:{server.root}/v1#large"
    assert open_model(model.name, tokenizer=model.facts["tokenizer_from"]).fingerprint == model.fingerprint


def test_settings_of_the_other_kind(model_folder, opened):
    for settings in ({"served_model": "a"}, {"tokenizer": "a"}, {"requests": 2}, {"request_timeout": 9.0}):
        with pytest.raises(ModelError, match="is for models on servers"):
            open_model(str(model_folder), **settings)
    for more in ({"dtype": "bfloat16"}, {"device": "cpu"}, {"revision": "main"}):
        with pytest.raises(ModelError, match="is for weights that are opened here"):
            opened(**more)
    with pytest.raises(ModelError, match="brings no tokenizer"):
        open_tokenizer("vllm:http://localhost:1")


def test_what_a_server_cannot_give_is_refused_by_name(opened, server, model_folder):
    model = opened()
    before, corpus = len(server.asked), open_corpus(SENTENCES)
    with pytest.raises(ModelError, match=r"MOMENTS .*, which min_k_plus_plus needs.*--scores \"loss,zlib\""):
        detect(corpus, model, "loss,min_k_plus_plus,zlib")
    labelled = Models(model, labelled=corpus)
    with pytest.raises(ModelError, match=r"HIDDEN .*, which probe needs"):
        detect(corpus, labelled, "probe")
    with pytest.raises(ModelError, match="log-probabilities only"):
        model.run(model.encode(SENTENCES), Quantity.MOMENTS)
    assert len(server.asked) == before


def test_a_changed_model_is_noticed(opened, server):
    first = opened()
    assert opened().fingerprint == first.fingerprint
    server.shift = -2e-4  # less than a server's numbers move by themselves
    assert opened().fingerprint == first.fingerprint
    server.shift = -0.05
    with pytest.warns(UserWarning, match="gives other answers than on"):
        changed = opened()
    assert changed.fingerprint != first.fingerprint
    assert changed.facts["weights"] != first.facts["weights"]


def test_the_key_is_sent_and_shown_nowhere(opened, server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    monkeypatch.setenv("PRETRACE_API_KEY", "sk-canary")
    model = opened()
    asked(model, SENTENCES)
    assert server.keys == {"Bearer sk-canary"}
    server.key = "sk-right"
    with pytest.raises(ModelError, match=r"wants a key it knows \(401\): set PRETRACE_API_KEY") as met:
        opened()
    shown = [str(met.value), model.fingerprint, str(model.facts), model.name]
    cache = Path(os.environ["PRETRACE_CACHE"])
    shown += [path.read_bytes().decode("latin-1") for path in cache.rglob("*") if path.is_file()]
    assert not any("canary" in one for one in shown)
    monkeypatch.delenv("PRETRACE_API_KEY")
    server.key = "sk-other"
    opened()


def test_missing_package(monkeypatch, opened):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingPackageError, match=r"pretrace\[servers\]"):
        opened()
