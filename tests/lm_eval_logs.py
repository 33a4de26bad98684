"""Logs that the real lm_eval writes here, with a tiny model and a task of its own."""

import hashlib
import json

import numpy as np
from made import written

NOUNS = [
    "river", "stone", "lamp", "paper", "window", "garden", "silver", "winter", "carpet", "letter", "engine",
]  # fmt: skip
CHOOSING = {
    "output_type": "multiple_choice", "doc_to_choice": "choices", "doc_to_target": "answer", "num_fewshot": 1,
    "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
}  # fmt: skip
LETTERS = {
    **CHOOSING,
    "doc_to_text": "{{question}}\nA. {{choices[0]}}\nB. {{choices[1]}}\nC. {{choices[2]}}\nAnswer:",
    "doc_to_choice": ["A", "B", "C"],
    "num_fewshot": 0,
}
WRITING = {
    "output_type": "generate_until",
    "doc_to_target": "{{choices[answer]}}",
    "generation_kwargs": {"until": ["\n"], "max_gen_toks": 2},
    "metric_list": [{"metric": "exact_match"}],
    "filter_list": [
        {"name": "whole", "filter": [{"function": "take_first"}]},
        {"name": "lower", "filter": [{"function": "lowercase"}, {"function": "take_first"}]},
    ],
}


def items(number, seed, verb="see"):
    """Multiple-choice items whose options, and their order, were drawn by lot; no two say mostly the same."""
    draw = np.random.default_rng(seed)
    return [
        {
            "question": f"Which of these did visitor {draw.integers(10**6)} {verb} in the {draw.choice(NOUNS)}, beside "
            f"{' '.join(f'no{one}' for one in draw.integers(10**6, size=12))}?",
            "choices": draw.choice(NOUNS, 3, replace=False).tolist(),
            "answer": int(draw.integers(3)),
        }
        for _ in range(number)
    ]


def evaluated(folder, model, docs, tasks):
    """The folder that lm_eval wrote for these tasks over the same documents."""
    import lm_eval
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    folder.mkdir(parents=True)
    data = {"data_files": {"test": str(written(folder / "docs.jsonl", docs))}}
    shared = {"dataset_path": "json", "dataset_kwargs": data, "test_split": "test", "fewshot_split": "test"}
    shared |= {"doc_to_text": "Question: {{question}}\nAnswer:"}
    configs = [{"task": name, **shared, **config} for name, config in tasks.items()]
    tracker = EvaluationTracker(output_path=str(folder / "out"))
    found = lm_eval.simple_evaluate(
        model="hf", model_args={"pretrained": str(model), "dtype": "float32"}, tasks=configs, device="cpu",
        task_manager=TaskManager(include_defaults=False), evaluation_tracker=tracker, batch_size=16,
        bootstrap_iters=0,
    )  # fmt: skip
    samples = found.pop("samples")
    tracker.save_results_aggregated(results=found, samples=samples)
    for name in tasks:
        tracker.save_results_samples(task_name=name, samples=samples[name])
    return folder / "out"


def log_as_written(folder, docs, *, model):
    """A log of the task "quiz" in the form that lm_eval writes, without an evaluation: for tests of pages."""
    folder.mkdir(parents=True)
    draw, date = np.random.default_rng(3), "2026-01-01T00-00-00.000000"
    rows = []
    for i, doc in enumerate(docs):
        prompt, right = f"Question: {doc['question']}\nAnswer:", float(draw.integers(2))
        asked = ({"arg_0": prompt, "arg_1": f" {one}"} for one in doc["choices"])
        requests = {f"gen_args_{k}": one for k, one in enumerate(asked)}
        resps = [["-1.0", "False"] for _ in requests]
        target, doc_text = str(doc["answer"]), json.dumps(doc, indent=2, ensure_ascii=False)
        hashes = {"doc": doc_text, "prompt": prompt, "target": target}
        told = {"doc_id": i, "doc": doc, "target": target, "arguments": requests}
        told |= {"resps": [[one] for one in resps], "filtered_resps": resps, "filter": "none"}
        told |= {f"{name}_hash": hashlib.sha256(of.encode()).hexdigest() for name, of in hashes.items()}
        rows.append({**told, "metrics": ["acc", "acc_norm"], "acc": right, "acc_norm": right})
    written(folder / f"samples_quiz_{date}.jsonl", rows)
    config = {"task": "quiz", "doc_to_text": "Question: {{question}}\nAnswer:", "num_fewshot": 0}
    how = {"model": "hf", "model_args": {"pretrained": model}}
    results = {"configs": {"quiz": config}, "model_source": "hf", "config": how}
    (folder / f"results_{date}.json").write_text(json.dumps(results), encoding="utf-8")
    return folder
