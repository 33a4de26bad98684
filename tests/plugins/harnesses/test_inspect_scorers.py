"""The scorers and the metric inside the real inspect_ai, on a tiny model; logs are read back."""

import math
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import MORE_WORDS

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed (pip install inspect-ai)")

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from made import drawn, written

import pretrace
from pretrace.errors import ModelError
from pretrace.plugins.harnesses.inspect_scorers import (
    SCORERS,
    _opened_by,
    _SampleReading,
    _warn,
    contamination,
    membership,
)
from pretrace.scoring.plan import Models

USAGE = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
"""Counted here: inspect_ai would download a tokenizer to count."""
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _at_home(tmp_path, monkeypatch):
    """inspect_ai keeps what it writes in the test's folder."""
    monkeypatch.chdir(tmp_path)
    _warn.cache_clear()  # what was said in another test is said again
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setattr("pretrace.verdicts.flag.concluding.RESAMPLES", 400)


def texts(number, seed, words=MORE_WORDS):
    return [row["text"] for row in drawn(number, 25, seed=seed, of=words)]


def evaluated(samples, scorers, model, **how):
    """The log of an evaluation, read back from its file."""
    task = Task(dataset=MemoryDataset(samples), scorer=scorers)
    (log,) = eval(task, model=model, log_dir="logs", display="none", max_tokens=1, **how)
    return read_eval_log(log.location)


def figures(log, scorer):
    found = next(one for one in log.results.scores if one.name == scorer)
    return {name: one.value for name, one in found.metrics.items()}


def test_a_task_is_scored_as_pretrace_scores_it(model_folder, tmp_path, caplog):
    near = pretrace.open_model(str(model_folder))  # which reads much as the model does
    with torch.no_grad():
        for weights in near.model.parameters():
            weights.mul_(1 + 0.02 * torch.randn(weights.shape, generator=torch.Generator().manual_seed(1)))
    near.model.save_pretrained(tmp_path / "near")
    near.tokenizer.save_pretrained(tmp_path / "near")
    placebo = str(tmp_path / "near")
    asked = texts(12, 1)
    known = str(written(tmp_path / "known.jsonl", texts(40, 2)))
    others = texts(40, 3, ["seven", "trees", "grow", "slowly", "FOUR"])
    strange = str(written(tmp_path / "strange.jsonl", others))
    min_k = SCORERS["min_k"](k=0.1, nonmembers=known, placebo=placebo)
    used = [min_k, membership("zlib", nonmembers=strange), SCORERS["loss"]()]
    model = get_model("hf/tiny", model_path=str(model_folder), device="cpu")
    log = evaluated([Sample(input=text, target="x") for text in asked], used, model)
    assert log.status == "success", log.error
    run = pretrace.detect(
        pretrace.open_corpus(asked), pretrace.open_model(str(model_folder)), "min_k(k=0.1),zlib,loss"
    )
    for scorer, expression in (("min_k", "min_k(k=0.1)"), ("membership", "zlib"), ("loss", "loss")):
        scored = [one.scores[scorer] for one in log.samples]
        by_text = {one.metadata["pretrace"]["text"]: one.value for one in scored}
        assert np.allclose([by_text[text] for text in asked], run.column(expression), atol=1e-6)
    flagged = pretrace.flag(
        pretrace.open_corpus(asked),
        pretrace.open_corpus(known),
        Models(pretrace.open_model(str(model_folder)), placebo=Models(pretrace.open_model(placebo))),
        pretrace.FlagSettings(score="min_k(k=0.1)"),
    )
    found = figures(log, "min_k")
    assert math.isclose(found["p"], flagged.p, abs_tol=0.02)  # other ids, so other permutations
    assert (found["samples"], found["nonmembers"], found["withheld"]) == (12, 40, 0)
    assert found["placebo_auc"] == pytest.approx(
        next(one for one in flagged.checks if one.name == "placebo").figures["auc"][0]
    )
    refused = figures(log, "membership")  # other words: the comparison means nothing
    assert refused["withheld"] == 1
    assert refused["words_auc"] > 0.9
    assert all(math.isnan(refused[name]) for name in ("answer", "p", "above", "flagged"))
    assert figures(log, "loss")["withheld"] == 1
    assert math.isnan(figures(log, "loss")["p"])
    assert "nonmembers=FILE" in caplog.text
    assert "zlib: contamination is withheld: The texts are like the known non-members" in caplog.text


def bare_output():
    """What a provider gives back."""
    return ModelOutput.from_content("mockllm/model", "x").model_copy(update={"usage": USAGE})


def test_known_non_members_may_be_samples(monkeypatch):
    asked, known = texts(30, 1), texts(60, 2)
    draw = np.random.default_rng(0)
    values = {text: -1 - draw.random() for text in asked} | {text: -2.5 - draw.random() for text in known}
    read = lambda _, corpus, __: {one.id: values[one.text] for one in corpus.texts}  # noqa: E731
    monkeypatch.setattr(_SampleReading, "values", read)
    samples = [Sample(input=text, id=f"a{i}") for i, text in enumerate(asked)]
    samples += [Sample(input=text, id=f"k{i}", metadata={"nonmember": True}) for i, text in enumerate(known)]
    model = get_model("mockllm/model", custom_outputs=lambda *_: bare_output())
    log = evaluated(samples, [SCORERS["loss"](model="m")], model)
    assert log.status == "success", log.error
    assert all(one.scores["loss"].value == values[one.input] for one in log.samples)
    found = figures(log, "loss")
    assert (found["samples"], found["nonmembers"], found["answer"]) == (30, 60, 1)
    assert found["p"] < 0.001


def test_a_model_that_cannot_be_opened_has_to_be_named():
    model = get_model("mockllm/model", custom_outputs=[bare_output()])
    log = evaluated([Sample(input="Nothing was the same again.")], [SCORERS["loss"]()], model)
    assert log.status == "error"
    assert "-S model=" in log.error.message


def test_a_model_behind_a_server_is_opened_there():
    model = get_model("vllm/org/name", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ModelError, match="-S model="):
        _opened_by(model)  # its server was not asked for anything yet, so its address is not known
    model.api.base_url = "http://127.0.0.1:9/v1"
    assert _opened_by(model) == "vllm:http://127.0.0.1:9#org/name"


def test_every_score_has_a_scorer_that_the_entry_point_finds():
    with (ROOT / "pyproject.toml").open("rb") as file:
        groups = tomllib.load(file)["project"]["entry-points"]
    ((name, value),) = groups["inspect_ai"].items()
    assert name == "pretrace"  # inspect_ai looks for the package that stands before the slash
    loaded = EntryPoint(name, value, "inspect_ai").load()
    assert set(loaded.SCORERS) == set(pretrace.registry.scores)


def test_a_metric_of_other_scores_says_so(caplog):
    from inspect_ai.scorer import SampleScore, Score

    compute = contamination()
    assert compute([SampleScore(score=Score(value=1.0), sample_id="a")])["withheld"] == 1
    assert "comes from another scorer" in caplog.text
