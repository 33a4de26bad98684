"""Logits at a few positions, from any language model of transformers.

The body of the model is run once. What comes after it (the output layer, and in some families a scale, a
cap or a small network before it) works position by position, so the model is asked again with its body
stood in for by one that answers with the wanted positions alone, a slice at a time: nothing of shape
texts × positions × vocabulary ever exists, and no family needs code of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from pretrace.backends import precision

_SLICE_BYTES = 64 << 20


@torch.inference_mode()
def logits_at(
    model: Any, inputs: Mapping[str, Any], rows: torch.Tensor, columns: torch.Tensor
) -> Iterator[torch.Tensor]:
    """Float32 logits [some, vocabulary] of positions (rows[i], columns[i]), in order, a slice at a time.

    `inputs` are what the model's forward takes, tensors on its device; `rows` and `columns` are int64.
    """
    on_cpu32 = model.device.type == "cpu" and model.dtype == torch.float32
    with precision.products(precision.best_route() if on_cpu32 else precision.DEFAULT):
        output = model.base_model(**inputs)
        hidden = output[0][rows, columns]
        size = max(16, _SLICE_BYTES // (4 * model.config.get_text_config().vocab_size))
        for start in range(0, len(rows), size):
            part = hidden[start : start + size]
            logits = _after_body(model, inputs, type(output), part)
            if logits is None:  # this family's forward goes past its own body: ask it for whole texts
                yield from _whole(model, inputs, rows, columns)
                return
            yield logits.float()


def _after_body(
    model: Any, inputs: Mapping[str, Any], kind: Callable[..., Any], hidden: torch.Tensor
) -> torch.Tensor | None:
    """What the model makes of these hidden states, None where it does not take them from its body."""
    asked = False

    def answer(*_: Any, **__: Any) -> Any:
        nonlocal asked
        asked = True
        return kind(last_hidden_state=hidden[None])

    with _stood_in(model.base_model, answer):
        logits: torch.Tensor = model(**_row(inputs, 0)).logits
    return logits[0] if asked and logits.shape[:2] == (1, len(hidden)) else None


def _whole(
    model: Any, inputs: Mapping[str, Any], rows: torch.Tensor, columns: torch.Tensor
) -> Iterator[torch.Tensor]:
    """The same from whole texts, one at a time."""
    for row in rows.unique_consecutive().tolist():
        yield model(**_row(inputs, row)).logits[0][columns[rows == row]].float()


def _row(inputs: Mapping[str, Any], row: int) -> dict[str, Any]:
    return {name: x[row : row + 1] if torch.is_tensor(x) else x for name, x in inputs.items()}


@contextmanager
def _stood_in(body: Any, answer: Callable[..., Any]) -> Iterator[None]:
    """`answer` in place of the module's forward while the context lasts."""
    before = vars(body).get("forward")  # accelerate puts a forward of its own there
    body.forward = answer
    try:
        yield
    finally:
        if before is None:
            del body.forward
        else:
            body.forward = before
