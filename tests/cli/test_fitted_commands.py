"""plant, tune, and evaluate with everything that is fitted, on real tiny models and as a user calls them."""

import math

import numpy as np
import pytest
import torch
from made import drawn, read_lines, written
from tiny import WORDS

from pretrace.runs import load_run

FITTED = "ppl,fsd(ppl),fsd(lowercase),na_pdd,na_pdd(pool='notebook'),probe,neighbor(m=2)"


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    members = np.random.default_rng(0).permutation(80) % 2
    more = ({"label": int(members[i // 2]), "group": f"g{i // 2}"} for i in range(160))
    rows = [row | one for row, one in zip(drawn(160, 16, seed=1, of=WORDS), more, strict=True)]
    return written(tmp_path_factory.mktemp("texts") / "texts.jsonl", rows)


def test_fsd_of_an_adapter_equals_two_models_opened_apart(ask, texts, tmp_path, model_folder):
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    rows = read_lines(texts)
    parts = {"tune": rows[:60], "test": rows[60:]}
    for name, some in parts.items():
        written(tmp_path / f"{name}.jsonl", some)
    adapter = tmp_path / "adapter"
    method = "lora(rank=4, epochs=2, learning_rate=5e-3)"
    how = ("--model", model_folder, "--method", method, "--out", adapter)
    said, _ = ask("tune", tmp_path / "tune.jsonl", *how)
    nonmembers = sum(not row["label"] for row in parts["tune"])
    assert f"Tuned on {nonmembers} texts" in said
    scores = "fsd(ppl),fsd(lowercase),fsd(min_k)"
    asked = ("--model", model_folder, "--tuned", adapter, "--scores", scores)
    ask("evaluate", tmp_path / "test.jsonl", *asked, "--out", tmp_path / "RUN", "--measuring=resamples=200")
    run = load_run(tmp_path / "RUN")

    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    opened = [AutoModelForCausalLM.from_pretrained(model_folder).eval() for _ in range(2)]
    models = [opened[0], PeftModel.from_pretrained(opened[1], adapter).eval()]

    def logp(model, text):
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            table = model(input_ids=ids).logits[0].double().log_softmax(-1)
        return [float(table[i, ids[0, i + 1]]) for i in range(ids.shape[1] - 1)]

    def mean(numbers):
        return sum(numbers) / len(numbers)

    for i, row in enumerate(parts["test"]):
        plain = [logp(model, row["text"]) for model in models]
        lower = [logp(model, row["text"].lower()) for model in models]
        ppl = [-math.exp(-mean(some)) for some in plain]
        ratio = [-(mean(a) / mean(b)) for a, b in zip(plain, lower, strict=True)]
        low = [mean(sorted(some)[: max(1, int(0.2 * len(some)))]) for some in plain]
        expected = [ppl[0] - ppl[1], ratio[0] - ratio[1], low[0] - low[1]]
        assert run.matrix[i].tolist() == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert np.abs(run.matrix).max() > 0.01

    _, leak = ask("score", texts, *asked, "--out", tmp_path / "LEAK", code=2)
    assert f"{nonmembers} of the 160 texts" in leak
    assert "--set-aside tuning" in leak
    assert not (tmp_path / "LEAK").exists()


def test_everything_at_once_with_its_controls(ask, texts, tmp_path, model_folder, reference_folder):
    asked = (
        *("evaluate", texts, "--model", model_folder, "--placebo", reference_folder, "--scores", FITTED),
        *("--set-aside=tuning=0.2,reference=0.4", "--method", "ia3(epochs=1)"),
        *("--neighbors", "causal", "--measuring=resamples=200"),
    )
    said, _ = ask(*asked, "--out", tmp_path / "RUN")
    run = load_run(tmp_path / "RUN")
    assert run.scores == tuple(FITTED.split(","))
    assert 50 <= len(run.ids) <= 80
    kinds = {(control.score, control.kind) for control in run.controls}
    fitted = ["na_pdd", "na_pdd(pool='notebook')", "probe"]
    assert kinds == {(s, "placebo") for s in run.scores} | {(s, "shuffled") for s in fitted}
    assert run.settings["adapter"]["method"]["name"] == "ia3"
    assert run.settings["neighbors"]
    assert set(run.settings["fitted"]) == set(fitted)
    assert "placebo" in said
    page = (tmp_path / "RUN" / "report.html").read_text(encoding="utf-8")
    assert "shuffled" in page


def test_labelled_texts_in_a_file_and_scores_without_labels(ask, texts, tmp_path, model_folder):
    unknown = written(tmp_path / "unknown.jsonl", [f"{word} and {word} again" for word in WORDS])
    asked = ("score", unknown, "--model", model_folder, "--reference", texts, "--scores", "na_pdd,probe")
    ask(*asked, "--out", tmp_path / "RUN")
    run = load_run(tmp_path / "RUN")
    assert run.matrix.shape == (len(WORDS), 2)
    assert run.settings["reference"]["texts"] == 160


def test_an_adapter_of_other_weights_is_refused(ask, texts, tmp_path, model_folder, reference_folder):
    ask("tune", texts, "--model", model_folder, "--method", "lora(limit=0)", "--out", tmp_path / "adapter")
    asked = ("--model", reference_folder, "--tuned", tmp_path / "adapter", "--scores", "fsd(ppl)")
    said = ask("score", texts, *asked, "--out", tmp_path / "RUN", code=2)
    assert "fits only the model it was tuned on" in said[1]
