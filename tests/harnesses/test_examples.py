"""The example tasks run inside the real harnesses, and give what `pretrace order` gives."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest
from lm_eval_logs import items
from verdicts.order.memorising import by_hash

import pretrace

EXAMPLES = Path(__file__).parents[2] / "examples"
SHUFFLED = [
    {**item, "choices": by_hash(item["choices"], f"{item['question'].strip()}\n")} for item in items(40, 1)
]
SORTED = [{**item, "choices": sorted(item["choices"])} for item in SHUFFLED]


@pytest.fixture(autouse=True)
def _at_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))


def written(docs):
    Path("quiz.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))


def by_pretrace(model_folder):
    columns = pretrace.Columns(text="question", label="", more=("choices",))
    return pretrace.order(
        pretrace.open_corpus("quiz.jsonl", columns),
        pretrace.Models(pretrace.open_model(str(model_folder))),
        pretrace.OrderSettings(options="choices", shuffled_with="sha256"),
    )


def test_the_task_of_inspect_ai(model_folder):
    inspect_ai = pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
    written(SHUFFLED)
    shutil.copy(EXAMPLES / "inspect_order.py", "inspect_order.py")
    arguments = {"shuffled_with": "sha256", "model": str(model_folder)}

    def score():
        (log,) = inspect_ai.eval(
            "inspect_order.py",
            model="mockllm/model",
            task_args=arguments,
            log_dir="logs",
            display="none",
        )
        assert log.status == "success", log.error
        return log.samples[0].scores["order_test"]

    assert score().value == by_pretrace(model_folder).p
    written(SORTED)
    arguments["shuffled_with"] = ""
    withheld = score()
    assert math.isnan(withheld.value)
    assert (withheld.metadata["lot"], withheld.metadata["order"]) == ("failed", "failed")


def test_the_task_of_lm_eval(model_folder, monkeypatch, tmp_path):
    lm_eval = pytest.importorskip("lm_eval", reason="lm_eval is not installed")
    from lm_eval.tasks import TaskManager

    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "datasets")

    def p():
        found = lm_eval.simple_evaluate(
            model="hf",
            model_args={"pretrained": str(model_folder), "dtype": "float32"},
            tasks=[str(EXAMPLES / "lm_eval_order.yaml")],
            task_manager=TaskManager(include_defaults=False),
            batch_size=16,
            bootstrap_iters=0,
            device="cpu",
        )
        return found["results"]["pretrace_answer_order"]["p,none"]

    written(SHUFFLED)
    assert p() == pytest.approx(by_pretrace(model_folder).p, abs=0.02)  # the question is context here
    written(SORTED)
    assert math.isnan(p())
