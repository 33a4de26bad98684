"""AdaLoRA's part in a training: its penalty, and which layers keep their rank."""

from __future__ import annotations

import torch
from peft import AdaLoraModel


class Allocation:
    """The `Companion` of an AdaLoRA training (Zhang et al. 2023, eq. 4 and algorithm 1).

    peft computes the penalty only where the model computes the loss, and never calls its allocator: both
    are done here.
    """

    def __init__(self, adapted: AdaLoraModel, *, weight: float, steps: int) -> None:
        self.adapted, self.weight, self.steps = adapted, weight, steps
        named = list(adapted.model.named_parameters())
        self.rows = [weight for name, weight in named if ".lora_A." in name]
        self.columns = [weight for name, weight in named if ".lora_B." in name]

    def penalty(self) -> torch.Tensor:
        """How far the directions of each layer are from orthonormal, on average over the matrices."""
        squares = [a @ a.T for a in self.rows] + [b.T @ b for b in self.columns]
        distances = [
            torch.linalg.matrix_norm(s - torch.eye(len(s), device=s.device, dtype=s.dtype)).to(
                squares[0].device
            )
            for s in squares
        ]
        return self.weight * torch.stack(distances).mean()

    def updated(self, step: int) -> None:
        """Take note of the gradients and drop the directions that the budget of this step has no room for."""
        if (
            self.steps == 1
        ):  # the allocator looks at gradients before its last step only, and there is no other
            self.adapted.rankallocator.update_ipt(self.adapted.model)
        self.adapted.update_and_allocate(step)
