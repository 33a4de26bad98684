"""How alike two models' weights are: what tells an earlier state of a model from one trained apart."""

from __future__ import annotations

import math

import torch

from pretrace.backends.huggingface import HuggingFace
from pretrace.types import Backend


@torch.inference_mode()
def likeness(one: Backend, other: Backend) -> float | None:
    """The cosine between the weight matrices of two models, None where they have none that could be compared.

    Matrices of the same name and shape count, vectors (biases and norms, which begin alike everywhere) do not.
    Training moves weights a little way: a model and an earlier state of it stay far above 0, and two models
    trained from different random weights are at 0, whatever they were trained on.
    """
    if not isinstance(one, HuggingFace) or not isinstance(other, HuggingFace):
        return None
    theirs = dict(other.model.named_parameters())
    product = mine = yours = 0.0
    for name, weight in one.model.named_parameters():
        match = theirs.get(name)
        if weight.ndim < 2 or match is None or match.shape != weight.shape:
            continue
        a, b = weight.float(), match.to(weight.device).float()
        product += float((a * b).sum(dtype=torch.float64))
        mine += float(a.square().sum(dtype=torch.float64))
        yours += float(b.square().sum(dtype=torch.float64))
    if not mine or not yours:
        return None
    return product / math.sqrt(mine * yours)
