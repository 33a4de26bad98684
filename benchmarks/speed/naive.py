"""The loop that published scripts use: a text at a time, library defaults, full log-softmax, a forward a rewrite.

Written for comparison only; the numbers it gives are the ones pretrace gives.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import torch

KS = [round(0.1 * k, 1) for k in range(1, 11)]


def score_text(model: Any, tokenizer: Any, text: str, log_frequency: np.ndarray) -> dict[str, float]:
    """Every score of the benchmark for one text."""
    ids, logits, loss = _forward(model, tokenizer, text)
    _, _, lower = _forward(model, tokenizer, text.lower())
    log_p = torch.log_softmax(logits[:, :-1].float(), dim=-1)
    token = log_p.gather(-1, ids[:, 1:, None])[0, :, 0]
    p = torch.softmax(logits[:, :-1].float(), dim=-1)
    mean = (p * log_p).sum(-1)[0]
    std = ((p * log_p.square()).sum(-1)[0] - mean.square()).clamp(min=0).sqrt()
    z = ((token - mean) / std.clamp(min=1e-6)).cpu().numpy()
    values = token.cpu().numpy()
    found = {
        "loss": -loss,
        "zlib": -loss / len(zlib.compress(text.encode())),
        "lowercase": -(loss / lower),
    }
    for k in KS:
        found[f"min_k(k={k})"] = float(np.mean(np.sort(values)[: max(1, int(len(values) * k))]))
        found[f"min_k_plus_plus(k={k})"] = float(np.mean(np.sort(z)[: max(1, int(len(z) * k))]))
    found["dc_pdd"] = _dc_pdd(ids[0, 1:].tolist(), values, log_frequency)
    return found


@torch.inference_mode()
def _forward(model: Any, tokenizer: Any, text: str) -> tuple[torch.Tensor, torch.Tensor, float]:
    ids = tokenizer(text, return_tensors="pt")["input_ids"].to(model.device)
    output = model(ids, labels=ids)
    return ids, output.logits, float(output.loss)


def _dc_pdd(tokens: list[int], logp: np.ndarray, log_frequency: np.ndarray) -> float:
    seen: set[int] = set()
    alphas = []
    for token, value in zip(tokens, logp.tolist(), strict=True):
        if token not in seen:
            seen.add(token)
            alphas.append(min(-np.exp(value) * log_frequency[token], 0.01))
    return float(np.mean(alphas))
