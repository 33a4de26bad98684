"""What is measured on a GPU, part by part; `benchmarks.speed.gpu` runs each in a process of its own."""

from __future__ import annotations

import itertools
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from benchmarks import ROOT
from benchmarks.speed import passes as speed
from pretrace import open_corpus, open_model
from pretrace.backends.huggingface import HuggingFace, Sweep
from pretrace.backends.naming import ModelSettings
from pretrace.types import Run

USUAL = ["loss", "zlib", "lowercase", "min_k", "min_k_plus_plus"]
"""Scores as a user asks for them; `speed.SCORES` holds each Min-K at ten values of k."""
_EVERY = 24
_LARGE = {
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 24,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
}
"""1.7 billion parameters, as SmolLM2-1.7B has them."""
_TINY = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


@dataclass(frozen=True, slots=True)
class Setting:
    """What the parts are measured on: `tiny` takes a small random model and few texts, to see that it works."""

    device: str
    tiny: bool
    smollm2: str
    texts: int
    repeats: int


def texts_of(setting: Setting) -> list[str]:
    """Docstrings of the standard library, evenly spaced: the number asked for, or all there are."""
    found = [text.text for text in open_corpus("stdlib").texts]
    return found[:: max(1, len(found) // setting.texts)][: setting.texts]


def smollm2(setting: Setting, dtype: str) -> HuggingFace:
    """SmolLM2-135M, or in a tiny run a random Llama with two layers."""
    if setting.tiny:
        return _random_llama(setting, dtype)
    model = open_model(setting.smollm2, dtype=dtype, device=setting.device)
    assert isinstance(model, HuggingFace)
    return model


def _random_llama(setting: Setting, dtype: str) -> HuggingFace:
    """A Llama of 1.7 billion random parameters, made on the device in its dtype; of two layers in a tiny run."""
    from transformers import LlamaConfig, LlamaForCausalLM

    from pretrace.tuning.architectures import train_vocabulary

    size = 1024 if setting.tiny else 49_152
    tokenizer = train_vocabulary(texts_of(setting), size=min(size, 8192), max_tokens=2048)
    config = LlamaConfig(
        **(_TINY if setting.tiny else _LARGE),
        vocab_size=size,  # the tokenizer's tokens are its first ones
        max_position_embeddings=2048,
        tie_word_embeddings=True,
    )
    before = torch.get_default_dtype()
    torch.manual_seed(0)
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        with torch.device(setting.device):
            model = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    return HuggingFace(model, tokenizer, name="random Llama", weights="random", settings=ModelSettings())


def compare(model: HuggingFace, setting: Setting) -> dict[str, Any]:
    """Seconds of the bare forward, of pretrace and of the loop, interleaved, and how far the numbers are apart.

    The loop reads every so-manieth text only (`naive_texts`), since it would take minutes; rates are compared.
    """
    texts = texts_of(setting)
    some = list(range(0, len(texts), 1 if setting.tiny else _EVERY))
    few = [texts[i] for i in some]
    work: dict[str, Callable[[], Any]] = {
        "bare": lambda: speed.bare(model, texts),
        "ours": lambda: speed.ours(model, texts),
        "usual": lambda: speed.ours(model, texts, USUAL),
        "naive": lambda: speed.loop(model, few),
    }
    for name in ("bare", "ours"):  # warm-up with the real batches: memory is taken and kernels are chosen
        work[name]()
    speed.loop(model, few[:3])
    seconds: dict[str, list[float]] = {name: [] for name in work}
    made: dict[str, Any] = {}
    for repeat, (name, one) in itertools.product(range(setting.repeats), work.items()):
        took, made[name] = speed.timed(one)
        seconds[name].append(took)
        print(f"  repeat {repeat + 1} {name}: {took:.2f} s", flush=True)
    tokens = {"all": made["bare"], "naive": _tokens(model, few)}
    share = tokens["naive"] / tokens["all"]
    return {
        **_ratios(seconds, share),
        "tokens_per_s": round(tokens["all"] / statistics.median(seconds["ours"])),
        "bare_tokens_per_s": round(tokens["all"] / statistics.median(seconds["bare"])),
        "naive_tokens_per_s": round(tokens["naive"] / statistics.median(seconds["naive"])),
        "texts": len(texts),
        "naive_texts": len(few),
        "tokens": tokens["all"],
        "seconds": {name: [round(v, 3) for v in values] for name, values in seconds.items()},
        "parameters": model.facts["parameters"],
        "dtype": model.facts["dtype"],
        "vocabulary": model.vocabulary,
        "difference": _differences(made["ours"], made["naive"], some),
        "profile": speed.profile(model, texts),
        **_peaks(work),
        # last, for the model is float32 afterwards
        "against_float32": _against_float32(model, few, {"ours": made["ours"], "naive": made["naive"]}, some),
    }


def _tokens(model: HuggingFace, texts: Sequence[str]) -> int:
    both = [*texts, *(text.lower() for text in texts)]
    return sum(e.length for e in model.encode(both))


def _ratios(seconds: Mapping[str, Sequence[float]], share: float) -> dict[str, float]:
    def over(above: str, below: str) -> float:
        pairs = zip(seconds[above], seconds[below], strict=True)
        return statistics.median(a / b for a, b in pairs)

    return {
        "over_bare": round(over("ours", "bare"), 3),
        "over_bare_usual_scores": round(over("usual", "bare"), 3),
        "naive_over_ours": round(over("naive", "ours") / share, 2),
    }


def _differences(run: Run, rows: Sequence[Mapping[str, float]], some: Sequence[int]) -> dict[str, Any]:
    """How far pretrace and the loop are apart: for `loss` in nats, for each score in standard deviations."""
    apart = np.abs([rows[n]["loss"] - run.column("loss")[i] for n, i in enumerate(some)])
    scaled = {}
    for name in run.scores:
        ours = run.column(name)[list(some)]
        scaled[name] = float(np.abs(ours - [row[name] for row in rows]).max() / max(ours.std(), 1e-12))
    return {
        "loss_largest": _short(apart.max()),
        "loss_median": _short(np.median(apart)),
        "loss_of_mean": _short(
            abs(np.mean([rows[n]["loss"] - run.column("loss")[i] for n, i in enumerate(some)]))
        ),
        "any_score_largest_in_sd": _short(max(scaled.values())),
    }


def _against_float32(
    model: HuggingFace, few: list[str], made: Mapping[str, Any], some: Sequence[int]
) -> dict[str, Any]:
    """Mean and largest error of `loss` against the loop over the same weights in float32."""
    model.model.float()
    truth = np.array([row["loss"] for row in speed.loop(model, few)])
    found = {
        "ours": made["ours"].column("loss")[list(some)],
        "naive": np.array([row["loss"] for row in made["naive"]]),
    }
    errors = {name: np.abs(values - truth) for name, values in found.items()}
    return {n: {"mean": _short(e.mean()), "largest": _short(e.max())} for n, e in errors.items()}


def _peaks(work: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Peak megabytes on the GPU above the weights; nothing on a CPU."""
    if not torch.cuda.is_initialized():
        return {}
    found = {}
    for name in ("bare", "ours"):
        found[name] = _peak(work[name])
    return {"peak_mb": found}


def _peak(work: Callable[[], Any]) -> float:
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    work()
    torch.cuda.synchronize()
    return round((torch.cuda.max_memory_allocated() - before) / 2**20, 1)


def smollm2_bfloat16(setting: Setting) -> dict[str, Any]:
    """SmolLM2-135M in bfloat16."""
    return compare(smollm2(setting, "bfloat16"), setting)


def smollm2_float16(setting: Setting) -> dict[str, Any]:
    """SmolLM2-135M in float16: with bfloat16, how far half precision is from the loop in float32."""
    return compare(smollm2(setting, "float16"), replace(setting, repeats=min(3, setting.repeats)))


def smollm2_float32(setting: Setting) -> dict[str, Any]:
    """SmolLM2-135M in float32: the numbers of the loop to 1e-4."""
    return compare(smollm2(setting, "float32"), replace(setting, repeats=min(3, setting.repeats)))


def llama(setting: Setting) -> dict[str, Any]:
    """A random Llama of 1.7 billion parameters in bfloat16."""
    return compare(_random_llama(setting, "bfloat16"), setting)


def memory(setting: Setting) -> dict[str, Any]:
    """Peak megabytes of the statistics over the vocabulary, beside what the logits in float32 would take."""
    if setting.device == "cpu":
        from benchmarks.speed import memory as of_processes

        return {"cases": [of_processes._one(**of_processes.CASES[0])]}
    rows = []
    for vocabulary, positions in itertools.product((49_152, 262_144), (2048, 8192, 32_768)):
        device = torch.device(setting.device)
        hidden = torch.randn(positions, 64, device=device, dtype=torch.bfloat16)
        head = torch.nn.Linear(64, vocabulary, bias=False, device=device, dtype=torch.bfloat16)
        targets = torch.randint(0, vocabulary, (positions,), device=device)
        peak = _peak(
            lambda h=hidden, t=targets, f=head: Sweep(  # type: ignore[misc]
                f.out_features, h.device, moments=True
            ).read(h, t, f)
        )
        rows.append(
            {
                "vocabulary": vocabulary,
                "positions": positions,
                "peak_mb": peak,
                "whole_logits_mb": round(vocabulary * positions * 4 / 2**20, 1),
            }
        )
    return {"cases": rows}


def tests(setting: Setting) -> dict[str, Any]:
    """The tests marked `gpu`: how many passed, failed and were skipped, and the end of the output."""
    command = [sys.executable, "-m", "pytest", "tests/gpu", "-m", "gpu", "-rfE", "--tb=short"]
    done = subprocess.run([*command, "-p", "no:cacheprovider"], capture_output=True, text=True, cwd=ROOT)
    print(done.stdout, flush=True)
    counted = {
        word: int(number)
        for number, word in re.findall(r"(\d+) (passed|failed|skipped|error)", done.stdout.splitlines()[-1])
    }
    if done.returncode or not counted.get("passed"):
        raise RuntimeError(f"{counted or done.stderr[-500:]}\n{done.stdout[-6000:]}")
    return {**counted, "seconds": re.findall(r"in ([0-9.]+)s", done.stdout.splitlines()[-1])}


def _short(value: float | np.floating[Any]) -> float:
    return float(f"{value:.2g}")


PARTS: dict[str, Callable[[Setting], dict[str, Any]]] = {
    "tests": tests,
    "smollm2_bfloat16": smollm2_bfloat16,
    "llama_bfloat16": llama,
    "memory": memory,
    "smollm2_float32": smollm2_float32,
    "smollm2_float16": smollm2_float16,
}
