"""The loss of the next token and its gradient, with the logits of a few hundred positions at a time.

A vocabulary of 49,152 makes the logits of 2,048 tokens 0.4 GB, and a loss over all of them at once keeps and
copies them several times. Here each slice is taken through the output layer, to its loss and back to the
hidden states; the body of the model is then taken back once. Padding never reaches the output layer. The
sums are the same but for their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch.nn.functional import cross_entropy

from pretrace.tuning.batches import padded
from pretrace.tuning.plan import Precision

IGNORED = -100
"""The label of a position that is no target: cross_entropy leaves it out."""
_CPU_ROWS, _GPU_ROWS = 256, 4096

Head = Callable[[torch.Tensor], torch.Tensor]


class NextToken:
    """The next-token loss of a causal language model, computed in `precision` on the device of its weights."""

    def __init__(self, model: torch.nn.Module, device: torch.device, precision: Precision) -> None:
        self.model: Any = model
        self.device, self.precision = device, precision
        self.head = output_layer(model, device)
        self.rows = _CPU_ROWS if device.type == "cpu" else _GPU_ROWS

    def add_gradient(self, sequences: Sequence[Sequence[int]], count: int) -> torch.Tensor:
        """The loss summed over every predicted token, in nats (a scalar without gradient).

        The gradient of that sum over `count` is added to those of the weights.
        """
        ids, mask = (torch.from_numpy(array).to(self.device) for array in padded(sequences))
        if self.head is None:
            return self._whole(ids, mask, count)
        with self._autocast():
            # No mask: under the causal one a token never attends to the padding on its right.
            hidden = self.model.base_model(input_ids=ids, use_cache=False)[0]
        known = mask[:, 1:].bool()
        before, targets = hidden[:, :-1][known], ids[:, 1:][known]
        inner = before.detach()
        total = torch.zeros((), device=self.device)
        gradient = torch.empty_like(inner)
        for start in range(0, len(inner), self.rows):
            part = inner[start : start + self.rows].requires_grad_(before.requires_grad)
            with self._autocast():
                logits = self.head(part)
            loss = cross_entropy(logits.float(), targets[start : start + self.rows], reduction="sum")
            (loss / count).backward()
            total += loss.detach()
            if part.grad is not None:
                gradient[start : start + self.rows] = part.grad
        if before.requires_grad:
            before.backward(gradient)
        return total

    def _whole(self, ids: torch.Tensor, mask: torch.Tensor, count: int) -> torch.Tensor:
        """The same for a model that does more to its logits than its output layer: all of them at once."""
        with self._autocast():
            logits = self.model(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, :-1]
        labels = ids.masked_fill(mask == 0, IGNORED)[:, 1:]
        loss = cross_entropy(
            logits.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum"
        )
        (loss / count).backward()
        return loss.detach()

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bfloat16")


@torch.no_grad()
def output_layer(model: Any, device: torch.device) -> Head | None:
    """The output layer, where it behind the body really gives the model's logits; None where it does not.

    It does for most families; some scale or cap their logits. The model is left in eval mode.
    """
    model.eval()
    try:
        head, vocabulary = model.get_output_embeddings(), model.config.get_text_config().vocab_size
        ids = torch.arange(1, 11, device=device).reshape(2, 5) % vocabulary
        whole = model(input_ids=ids, use_cache=False).logits.float()
        apart = head(model.base_model(input_ids=ids, use_cache=False)[0]).float()
    except (RuntimeError, TypeError, AttributeError, LookupError):
        return None
    tolerance = 1e-3 if next(model.parameters()).dtype == torch.float32 else 2e-2
    same = apart.shape == whole.shape and bool(
        (apart - whole).abs().max() <= tolerance * (whole.abs().max() + 1)
    )
    return cast(Head, head) if same else None
