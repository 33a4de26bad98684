"""Every test of a collection that needs log-probabilities alone, from the command line: a model behind a server gives
the p-value, effect and checks that its weights give."""

import hashlib
import json

import numpy as np
import pytest
from made import written
from tiny import MORE_WORDS


def words(random, number):
    return " ".join(random.choice(MORE_WORDS, number))


def marks(random, folder, call):
    texts = [{"id": f"t{i}", "text": words(random, 20), "other": words(random, 20)} for i in range(20)]
    published, sealed = folder / "PUB", folder / "sealed.json"
    path, places = written(folder / "texts.jsonl", texts), ("--out", published, "--sealed", sealed)
    assert call("mark", "texts", path, "--variant-column", "other", *places)[0] == 0
    told = ("--commitment", published / "commitment.txt", "--texts", published / "published.jsonl")
    return ("mark", "check", sealed, *told)


def random_strings(random, folder, call):
    digests = [hashlib.sha256(random.bytes(8)).hexdigest() for _ in range(8)]
    rows = [{"id": f"f{i}", "text": f"file {i} {digest}"} for i, digest in enumerate(digests)]
    return ("mark", "canaries", written(folder / "files.jsonl", rows))


@pytest.mark.parametrize("design", [marks, random_strings])
def test_a_server_gives_what_its_weights_give(design, call, server, model_folder, reference_folder, tmp_path):
    beside = ("--reference-model" if design is marks else "--placebo", reference_folder)
    how = (*design(np.random.default_rng(3), tmp_path, call), *beside)
    there = ("--model", f"vllm:{server.root}", f"--model-args=tokenizer={model_folder}")
    found = []
    for name, model in {"here": ("--model", model_folder), "there": there}.items():
        code, _, said = call(*how, *model, "--out", tmp_path / name)
        assert code in (3, 4), said
        found.append(json.loads((tmp_path / name / "result.json").read_text(encoding="utf-8")))
    weights, served = found
    assert weights["p"] is not None
    assert served["p"] == weights["p"]
    assert served["effect"] == pytest.approx(weights["effect"], abs=1e-4)
    assert served["outcome"] == weights["outcome"]
    states = [{one["name"]: one["status"] for one in result["checks"]} for result in found]
    assert states[0] == states[1]
    assert served["settings"]["models"]["target"]["kind"] == "vllm"
    first = (tmp_path / "there" / "report.html").read_text(encoding="utf-8").split('id="test"')[0]
    assert "The model in question answered from behind a server (vllm)" in first


@pytest.mark.parametrize("design", [random_strings, marks])
def test_power_is_refused_before_anything_is_sent(design, call, server, model_folder, tmp_path):
    how = design(np.random.default_rng(3), tmp_path, call)
    there = ("--model", f"vllm:{server.root}", f"--model-args=tokenizer={model_folder}")
    code, _, said = call(*how, *there, "--power", "--out", tmp_path / "power")
    assert code == 2
    assert "omit --power" in said
    assert said.count("\n") == 1
    assert not (tmp_path / "power").exists()
    assert not server.asked  # not even the check
