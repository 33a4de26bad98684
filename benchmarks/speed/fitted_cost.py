"""What fitted detectors cost: `python -m benchmarks.speed.fitted_cost [--parts hooks memory tuning fsd]`.

- hooks: NA-PDD's pass over the bare forward passes of the same batches of tokens; medians of interleaved repeats.
- memory: peak of NA-PDD's scoring beyond the loaded model, for 16, 64 and 256 texts of equal length.
- tuning: seconds a token of FSD's tuning (LoRA, rank 16, batches of 8) over those of a bare forward pass.
- fsd: peak memory of an evaluation with FSD against the same without it, in copies of the weights.

Each piece runs in a process of its own, one at a time. Writes benchmarks/results/fitted_cost.json and .png;
killed at any time it goes on where it was. --fresh measures the parts that are named anew.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from benchmarks.experiments import Ledger, options
from benchmarks.speed.fitted_plots import draw_cost
from benchmarks.texts import some_texts
from pretrace.types import Corpus, Text

PARTS = ("hooks", "memory", "tuning", "fsd")
DTYPES = ("float32", "bfloat16")
MEMORY_TEXTS = (16, 64, 256)
REFERENCE = 32
"""Texts that NA-PDD is fitted on here: enough to fit, and no more to wait for."""
BATCH = 16
"""Texts that go through the model together while memory is measured: all of the fewest, a part of the others."""
SPARE = 8
"""Tokens a text is longer than what is read of it, so that no seam makes it shorter."""
PLAIN = "ppl,zlib,min_k"
FSD = "ppl,fsd(ppl),zlib,fsd(zlib),min_k,fsd(min_k)"
Case = Mapping[str, Any]
Rows = list[dict[str, Any]]


def hooks(case: Case) -> Rows:
    """Seconds of the bare passes, ours, ours with NA-PDD's hooks, and NA-PDD's whole scoring."""
    import torch

    from benchmarks.speed.passes import timed
    from pretrace import Models
    from pretrace.scoring.plan import ScorePlan
    from pretrace.types import Firing, Quantity

    model = _opened(case)
    texts = _corpus(case["texts"] + REFERENCE, labelled=True).texts
    scored, known = texts[: case["texts"]], Corpus("reference", texts[case["texts"] :])
    encoded = model.encode([text.text for text in scored])
    batches = [[encoded[i] for i in batch] for batch in model.pack(encoded)]
    models = Models(model, labelled=known)
    ready = ScorePlan.parse("na_pdd").fit(models, cache=False)

    def scoring() -> None:
        with models.reader(ready.needs, cache=False) as reader:
            for evidence in reader.read(scored):
                ready.ready["na_pdd"](evidence)

    work: dict[str, Callable[[], object]] = {
        "bare forward": lambda: _bare(model, batches),
        "log-probabilities": lambda: [model.run(b, Quantity.LOGP) for b in batches],
        "with neurons": lambda: [model.run(b, Quantity.LOGP, frozenset({Firing()})) for b in batches],
        "na_pdd, whole scoring": scoring,
    }
    seconds: dict[str, list[float]] = {name: [] for name in work}
    timed(lambda: _bare(model, batches[-1:]))
    for _ in range(case["repeats"]):
        for name, one in work.items():
            seconds[name].append(timed(one)[0])
    tokens = sum(e.length for e in encoded)
    rows = [_against(name, values, seconds["bare forward"]) for name, values in seconds.items()]
    return [{**row, "tokens": tokens, "torch_threads": torch.get_num_threads()} for row in rows]


def tuning(case: Case) -> Rows:
    """Seconds a token of a bare forward pass and of tuning."""
    from benchmarks.speed.passes import timed

    model = _opened(case)
    corpus = _corpus(case["texts"], labelled=False)
    encoded = model.encode([text.text for text in corpus.texts])
    batches = [[encoded[i] for i in batch] for batch in model.pack(encoded)]
    tokens = sum(e.length for e in encoded)
    seconds: dict[str, list[float]] = {"bare forward": [], "tuning": []}
    timed(lambda: _bare(model, batches[-1:]))
    for _ in range(case["repeats"]):
        seconds["bare forward"].append(timed(lambda: _bare(model, batches))[0] / tokens)
        seconds["tuning"].append(1 / _tuning_speed(model, corpus))
    rows = [_against(name, values, seconds["bare forward"]) for name, values in seconds.items()]
    return [{**row, "tokens": tokens, "tokens_per_s": round(1 / row["seconds"], 1)} for row in rows]


def _tuning_speed(model: Any, corpus: Corpus) -> float:
    """Tokens a second of one epoch of tuning."""
    from pretrace.tuning.adapters import tune
    from pretrace.tuning.methods import methods

    speeds: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        tune(
            model,
            corpus,
            methods.make("lora(epochs=1)"),
            folder=Path(folder) / "adapter",
            on_step=lambda step: speeds.append(step.tokens_per_second),
        )
    return speeds[-1]


def memory(case: Case) -> Rows:
    """Peak megabytes of one NA-PDD run beyond the loaded model; all texts are cut to one length, so that every batch
    is as large as any other."""
    from benchmarks.speed.memory import reset_peak, status
    from pretrace import Models, Options, detect
    from pretrace.types import Quantity

    tokens = case["tokens"]
    model = _opened(case, max_tokens=tokens, token_budget=BATCH * tokens)
    texts: list[Text] = []
    for text in _corpus(2000, labelled=True).texts:
        spans = model.spans(text.text)
        if len(spans) >= tokens and len(texts) < case["scored"] + REFERENCE:
            end = int(spans[min(len(spans), tokens + SPARE) - 1, 1])
            texts.append(replace(text, text=text.text[:end], member=len(texts) % 2 == 0))
    if len(texts) < case["scored"] + REFERENCE:
        raise SystemExit(f"too few texts of {tokens} tokens: {len(texts)}")
    scored, known = Corpus("scored", tuple(texts[REFERENCE:])), Corpus("reference", tuple(texts[:REFERENCE]))
    model.run(model.encode([texts[0].text[:30]]), Quantity.LOGP)
    before = reset_peak()
    detect(scored, Models(model, labelled=known), "na_pdd", Options(cache=False, shuffles=0))
    return [{"tokens": tokens, "peak_mb": _megabytes(status("VmHWM") - before)}]


def adapter(case: Case) -> Rows:
    """Nothing: an adapter tuned in the folder of the case, whose memory is none of an evaluation's."""
    from pretrace.tuning.adapters import tune
    from pretrace.tuning.methods import methods

    corpus = _corpus(16, labelled=False, skip=case["texts"])
    tune(_opened(case), corpus, methods.make("lora(epochs=1)"), folder=Path(case["folder"]))
    return []


def evaluation(case: Case) -> Rows:
    """Peak megabytes of an evaluation, the loaded model included; the libraries are loaded beforehand, also
    where they are not needed, for beside so small a model they would look like weights."""
    import peft  # noqa: F401
    import sklearn.linear_model  # noqa: F401

    from benchmarks.speed.memory import reset_peak, status
    from pretrace import Models, Options, detect, evaluate
    from pretrace.backends.adapters import attach
    from pretrace.types import Quantity

    model = _opened(case)
    corpus = _corpus(case["texts"], labelled=True)
    model.run(model.encode([corpus.texts[0].text[:30]]), Quantity.LOGP)
    loaded = reset_peak()
    tuned = attach(model, Path(case["folder"])) if case["tuned"] else None
    run = detect(corpus, Models(model, tuned=tuned), FSD if tuned else PLAIN, Options(cache=False))
    evaluate(run, corpus, resamples=100)
    weights = sum(p.numel() * p.element_size() for p in model.model.parameters())
    return [
        {
            "what": "with FSD" if tuned else "without",
            "loaded_mb": _megabytes(loaded),
            "peak_mb": _megabytes(status("VmHWM")),
            "weights_mb": round(weights / 2**20, 1),
        }
    ]


def repeated(name: str, case: Case) -> dict[str, Any]:
    """The one row of a case of memory, its peak [median, lowest, highest] over processes: the allocator
    alone moves it by tens of megabytes."""
    rows = [apart(name, case)[0] for _ in range(case["repeats"])]
    return {**rows[0], "peak_mb": _spread([row["peak_mb"] for row in rows])}


def fsd(case: Case) -> Rows:
    """Both evaluations, and how many copies of the weights the one with FSD holds: one, and what it needs more."""
    with tempfile.TemporaryDirectory() as folder:
        at = {**case, "folder": str(Path(folder) / "adapter")}
        apart("adapter", at)
        without, tuned = (repeated("evaluation", {**at, "tuned": tuned}) for tuned in (False, True))
    more = tuned["peak_mb"][0] - without["peak_mb"][0]
    return [without, {**tuned, "copies": round(1 + more / without["weights_mb"], 3)}]


def measured(part: str, case: Case) -> Rows:
    """The rows of a piece."""
    if part == "fsd":
        return fsd(case)
    return [repeated(part, case)] if part == "memory" else apart(part, case)


CASES = {"hooks": hooks, "memory": memory, "tuning": tuning, "adapter": adapter, "evaluation": evaluation}


def apart(name: str, case: Case) -> Rows:
    """The rows of a case, measured in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.speed.fitted_cost", "--case", json.dumps([name, dict(case)])],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    if done.returncode:
        raise SystemExit(f"{name} failed: see above")
    rows: Rows = json.loads(done.stdout.splitlines()[-1])
    return rows


def pieces(parts: Sequence[str]) -> Rows:
    """The keys of what is measured, in order."""
    keys: Rows = []
    for part in parts:
        if part == "memory":
            keys += [{"part": part, "scored": number} for number in MEMORY_TEXTS]
        else:
            keys += [{"part": part, "dtype": dtype} for dtype in DTYPES]
    return keys


def main() -> None:
    """Measure what is not on file yet, and draw."""
    parser = options(__doc__ or "", "fitted_cost", texts=48, tokens=128)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        name, case = json.loads(arguments.case)
        print(json.dumps(CASES[name](case)))
        return
    size = {name: getattr(arguments, name) for name in ("model", "texts", "tokens", "repeats")}
    settings = {**size, "memory_dtype": arguments.dtype, "corpus": some_texts(1)[0]}
    ledger = Ledger(arguments.out, settings, fresh=arguments.fresh and set(arguments.parts) == set(PARTS))
    for part in arguments.parts if arguments.fresh else ():
        ledger.forget(part=part)
    for key in ledger.todo(pieces(arguments.parts), arguments.limit):
        case = {"dtype": arguments.dtype, **size, **key}
        ledger.add(key, measured(key["part"], case), {})
    found = ledger.save()
    if found["rows"]:
        draw_cost(found, arguments.out.with_suffix(".png"))


def _opened(case: Case, **settings: Any) -> Any:
    """The back end of a case, which must have weights here."""
    from pretrace import open_model
    from pretrace.backends.huggingface import HuggingFace

    model = open_model(case["model"], dtype=case["dtype"], **settings)
    if not isinstance(model, HuggingFace):
        raise SystemExit(f"{case['model']} has no weights here")
    return model


def _corpus(number: int, *, labelled: bool, skip: int = 0) -> Corpus:
    """So many abstracts, every other one called a member where labels are wanted."""
    name, texts = some_texts(number + skip)
    made = (Text(str(i), text, i % 2 == 0 if labelled else None) for i, text in enumerate(texts[skip:]))
    return Corpus(name, tuple(made))


def _bare(model: Any, batches: Sequence[Sequence[Any]]) -> None:
    """The forward passes alone: same tokens, same batches, same route and dtype, logits for all."""
    import numpy as np
    import torch

    from pretrace.backends import precision

    for batch in batches:
        ids = torch.zeros((len(batch), max(e.length for e in batch)), dtype=torch.long)
        for row, e in enumerate(batch):
            whole = np.concatenate([e.prefix, e.tokens]).astype(np.int64)
            ids[row, : len(whole)] = torch.from_numpy(whole)
        with torch.inference_mode(), precision.products(model.route):
            model.model(input_ids=ids, use_cache=False)


def _against(name: str, seconds: Sequence[float], bare: Sequence[float]) -> dict[str, Any]:
    """A row of timings: the median, and over the bare ones of the same repeat [median, lowest, highest]."""
    over = [ours / theirs for ours, theirs in zip(seconds, bare, strict=True)]
    return {
        "what": name,
        "seconds": float(f"{statistics.median(seconds):.4g}"),
        "over_bare": _spread(over),
    }


def _spread(values: Sequence[float]) -> list[float]:
    """[median, lowest, highest]."""
    return [round(value, 3) for value in (statistics.median(values), min(values), max(values))]


def _megabytes(kilobytes: int) -> float:
    return round(kilobytes / 1024, 1)


if __name__ == "__main__":
    main()
