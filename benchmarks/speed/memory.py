"""Peak memory of a pass, at several vocabularies, lengths and numbers of texts: `python -m benchmarks.speed.memory`.

Each measurement runs in a process of its own, on a model of one thin layer, so that what is seen is the
output layer and the sweep over the vocabulary, and not the weights.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

CASES = [
    {"vocabulary": vocabulary, "length": length, "texts": texts}
    for vocabulary in (49_152, 262_144)
    for length, texts in ((128, 16), (128, 64), (1024, 8), (4096, 2), (4096, 8))
]


def measure() -> list[dict[str, float]]:
    """A row a case: peak megabytes above the loaded model, and what the whole logits would have taken."""
    rows = []
    for case in CASES:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.speed.memory", json.dumps(case)],
            capture_output=True,
            text=True,
            check=True,
        )
        rows.append(json.loads(done.stdout))
    return rows


def status(name: str) -> int:
    """Kilobytes from Linux' own account; ru_maxrss will not do, for it begins with that of the parent."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def reset_peak() -> int:
    """Let the peak start from what is in use now, and give that in kilobytes."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return status("VmRSS")


def _one(vocabulary: int, length: int, texts: int) -> dict[str, float]:
    import numpy as np
    import torch
    import transformers

    from pretrace.backends.huggingface import Sweep

    configuration = transformers.LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
    )
    model = transformers.LlamaForCausalLM(configuration).eval()
    generator = np.random.default_rng(0)
    ids = [torch.from_numpy(generator.integers(0, vocabulary, (1, length))) for _ in range(texts)]
    with torch.inference_mode():
        model.base_model(input_ids=ids[0][:, :8], use_cache=False)
        before = reset_peak()
        sweep = Sweep(vocabulary, torch.device("cpu"), moments=True)
        for row in ids:
            hidden = model.base_model(input_ids=row, use_cache=False)[0][0, :-1]
            sweep.read(hidden, row[0, 1:], model.lm_head)
    peak = status("VmHWM")
    return {
        "vocabulary": vocabulary,
        "length": length,
        "texts": texts,
        "peak_mb": round((peak - before) / 1024, 1),
        "whole_logits_mb": round(vocabulary * length * texts * 4 / 2**20, 1),
    }


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(_one(**json.loads(sys.argv[1]))))
    else:
        print(json.dumps(measure(), indent=1))
