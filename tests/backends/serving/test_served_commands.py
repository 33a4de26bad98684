"""Commands whose models stand behind servers give what weights give: scores, p-values; dry runs; refusals."""

import numpy as np
import pytest
from made import drawn, written
from model_servers import is_known

from pretrace import load_run


def texts_of(path, number):
    rows = drawn(number, 12, name=path.stem)
    return written(path, [{**row, "label": i % 2} for i, row in enumerate(rows)])


def named(folder):
    """Whether the first page says that the model stands behind a server, and what would not have been seen."""
    first = (folder / "report.html").read_text(encoding="utf-8").split('id="results"')[0]
    words = "The model in question answered from behind a server (vllm), where this would not have been seen"
    return f"{words}: other weights" in first


def target(server, folder):
    return ("--model", f"vllm:{server.root}", f"--model-args=tokenizer={folder}")


def test_score_and_evaluate_give_what_the_weights_give(
    call, server, model_folder, reference_folder, tmp_path
):
    texts, scores = texts_of(tmp_path / "t.jsonl", 24), "loss,min_k,lowercase,zlib,ref"
    beside = ("--scores", scores, "--reference-model", reference_folder)
    here, there = tmp_path / "here", tmp_path / "there"
    assert call("score", texts, "--model", model_folder, *beside, "--out", here)[0] == 0
    for command, more in {"score": (), "evaluate": ("--measuring=resamples=100",)}.items():
        code, _, said = call(command, texts, *target(server, model_folder), *beside, *more, "--out", there)
        assert code == 0, said
        np.testing.assert_allclose(load_run(there).matrix, load_run(here).matrix, atol=1e-4)
    facts = load_run(there).settings["models"]["target"]
    assert facts["kind"] == "vllm"
    assert named(there)
    assert not named(here)
    assert facts["served_model"] == "tiny"


def test_a_server_as_placebo_and_as_reference(call, server, model_folder, reference_folder, tmp_path):
    texts, url = texts_of(tmp_path / "t.jsonl", 24), f"vllm:{server.root}"
    asked = ("evaluate", texts, "--model", reference_folder, "--measuring=resamples=100")
    asked = (*asked, f"--model-args=dtype=float32,tokenizer={model_folder}", "--out", tmp_path / "RUN")
    placebo, reference = ("--placebo", url), ("--reference-model", url)
    code, _, said = call(*asked, "--scores=loss", *placebo)
    assert code == 0, said
    assert {one.kind for one in load_run(tmp_path / "RUN").controls} == {"placebo"}
    code, _, said = call(*asked, "--scores=ref", *reference)
    assert code == 0, said
    assert load_run(tmp_path / "RUN").scores == ("ref",)
    code, _, said = call(*asked, "--scores=loss,ref", *placebo, *reference)
    assert code == 2
    assert "would be compared with itself" in said


def test_a_dry_run_sends_no_text_and_counts_what_is_left(call, server, model_folder, tmp_path):
    texts = texts_of(tmp_path / "t.jsonl", 24)
    how = ("score", texts, *target(server, model_folder), "--scores=loss,lowercase")
    how = (*how, "--model-args=token_budget=200", "--out", tmp_path / "RUN")
    code, out, said = call(*how, "--dry-run")
    assert code == 0, said
    checked = len(server.asked)
    assert call(*how)[0] == 0
    sent = [one for one in server.asked[2 * checked :] if not is_known(server, one[1])]
    tokens = sum(len(prompt) for _, body in sent for prompt in body["prompt"])
    assert f"{len(sent)} requests with {tokens:,} tokens, " in out
    out = call(*how, "--dry-run")[1]
    assert "0 requests with 0 tokens" in out
    assert "48 more are answered already" in out


@pytest.mark.parametrize("command", ["tune", "plant"])
def test_weights_are_wanted(command, call, server, model_folder, tmp_path):
    texts = texts_of(tmp_path / "t.jsonl", 12)
    code, _, said = call(command, texts, *target(server, model_folder)[:2], "--out", tmp_path / "OUT")
    assert code == 2
    assert "stands behind a server" in said
