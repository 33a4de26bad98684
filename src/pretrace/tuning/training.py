"""The plain training loop: next-token loss, AdamW, one process. Planting, FSD's tuning and the
generators of dataset inference go through it.

A sequence is a list of token ids; the model learns to predict each from those before it. Sequences are
never packed together and never see each other; padding is on the right and counts for nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt
import torch

from pretrace.errors import ModelError, TextsError
from pretrace.tuning.batches import epoch_batches, pieces, rate
from pretrace.tuning.checkpoint import Checkpoint, Position, identity, trainable
from pretrace.tuning.next_token import NextToken
from pretrace.tuning.plan import History, OnStep, TrainingPlan, TrainingStep


class Companion(Protocol):
    """What takes part in every step of a training beside the loss: AdaLoRA is one."""

    def penalty(self) -> torch.Tensor:
        """A scalar added to the mean loss of the step, but not to the loss that is told and recorded."""
        ...

    def updated(self, step: int) -> None:
        """Called when the optimiser has taken `step`, counted from 1, with its gradients still there."""
        ...


def train(
    model: torch.nn.Module,
    sequences: Sequence[Sequence[int]],
    plan: TrainingPlan,
    *,
    on_step: OnStep | None = None,
    checkpoint: Path | None = None,
    companion: Companion | None = None,
) -> History:
    """What the training did; the model is trained in place, on its own device, and left in eval mode.

    Every parameter that requires a gradient learns. The same model, sequences, plan and number of
    threads give the same weights on one machine; torch's global random state is as before afterwards.
    With `checkpoint`, a file is written there every `plan.save_minutes` and a killed training goes on
    from it; the file stays until the caller, with the result safe, removes it. It knows nothing of a
    `companion`: one that remembers earlier steps goes without. TextsError where a sequence has nothing to
    predict, ModelError where the loss is no longer a number.
    """
    lengths = _lengths(sequences)
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(plan.seed)
        return _Training(model, sequences, lengths, plan, companion).run(on_step, checkpoint)


class _Training:
    """One training under way."""

    def __init__(
        self,
        model: torch.nn.Module,
        sequences: Sequence[Sequence[int]],
        lengths: npt.NDArray[np.int64],
        plan: TrainingPlan,
        companion: Companion | None,
    ) -> None:
        self.model, self.sequences, self.lengths, self.plan = model, sequences, lengths, plan
        self.companion = companion
        self.weights = [weight for _, weight in trainable(model)]
        if not self.weights:
            raise ModelError("the model has no trainable weights: all of them are frozen.")
        self.device = self.weights[0].device
        self.loss = NextToken(model, self.device, plan.precision)
        self.optimiser = _optimiser(self.weights, plan)
        self.each_epoch = math.ceil(len(sequences) / plan.batch)
        self.steps = self.each_epoch * plan.epochs
        self.position = Position()
        self.batches: list[list[int]] = []

    def run(self, on_step: OnStep | None, place: Path | None) -> History:
        """Train from the saved position, or from the beginning, to the end."""
        checkpoint = None
        if place is not None:
            checkpoint = Checkpoint(place, identity(self.model, self.sequences, self.plan))
            self.position = checkpoint.restore(self.model, self.optimiser)
        _set_training(self.model, self.plan)
        try:
            self._go_on(on_step, checkpoint)
        except ModelError:
            if checkpoint:
                checkpoint.remove()  # it would only lead here again
            raise
        finally:
            _set_eval(self.model, self.plan)
        position = self.position
        losses = tuple(total / count for total, count in zip(position.sums, position.counts, strict=True))
        return History(losses, position.counts[0], self.steps, position.seconds)

    def _go_on(self, on_step: OnStep | None, checkpoint: Checkpoint | None) -> None:
        position, began = self.position, time.monotonic()
        before, tokens, saved = position.seconds, 0, began
        while position.step < self.steps:
            loss, count = self._step()
            tokens += count
            now = time.monotonic()
            position.seconds = before + now - began
            if checkpoint and now - saved >= 60 * self.plan.save_minutes:
                checkpoint.save(self.model, self.optimiser, position)
                saved = time.monotonic()
            if on_step:
                on_step(self._progress(loss, tokens / max(now - began, 1e-9)))

    def _step(self) -> tuple[float, int]:
        """Take one step; its mean loss in nats and the number of tokens it predicted."""
        epoch, index = divmod(self.position.step, self.each_epoch)
        if index == 0 or not self.batches:
            self.batches = epoch_batches(self.lengths, self.plan, epoch=epoch)
        batch = self.batches[index]
        count = int(self.lengths[batch].sum()) - len(batch)
        total = 0.0
        for rows in pieces(batch, self.lengths, at_once=self.plan.at_once):
            total += self.loss.add_gradient([self.sequences[row] for row in rows], count).item()
        if self.companion:
            self.companion.penalty().backward()
        # Without a bound the norm is only measured: a gradient that is no number would spoil the weights.
        norm = torch.nn.utils.clip_grad_norm_(self.weights, self.plan.clip or math.inf)
        if not (math.isfinite(total) and math.isfinite(norm)):
            raise ModelError(
                f"the training diverged: the loss was {total / count:g} at step {self.position.step + 1} of "
                f"{self.steps} and its gradient {float(norm):g}; "
                f"choose a learning rate below {self.plan.learning_rate:g}."
            )
        for group in self.optimiser.param_groups:
            group["lr"] = rate(self.plan, step=self.position.step, steps=self.steps)
        self.optimiser.step()
        if self.companion:
            self.companion.updated(self.position.step + 1)
        self.optimiser.zero_grad(set_to_none=True)
        self._count(epoch, total, count)
        return total / count, count

    def _count(self, epoch: int, total: float, count: int) -> None:
        position = self.position
        if len(position.sums) == epoch:
            position.sums.append(0.0)
            position.counts.append(0)
        position.sums[epoch] += total
        position.counts[epoch] += count
        position.step += 1

    def _progress(self, loss: float, speed: float) -> TrainingStep:
        epoch = (self.position.step - 1) // self.each_epoch + 1
        return TrainingStep(self.position.step, self.steps, epoch, self.plan.epochs, loss, speed)


def _lengths(sequences: Sequence[Sequence[int]]) -> npt.NDArray[np.int64]:
    if not sequences:
        raise TextsError("there is nothing to train on: no sequence was given.")
    lengths = np.array([len(sequence) for sequence in sequences], dtype=np.int64)
    if lengths.min() < 2:
        raise TextsError(
            f"a sequence must hold at least 2 tokens, or there is nothing to predict; "
            f"sequence {int(lengths.argmin())} holds {int(lengths.min())}."
        )
    return lengths


def _optimiser(weights: Sequence[torch.nn.Parameter], plan: TrainingPlan) -> torch.optim.AdamW:
    # Gains and biases (one axis) are not decayed: pulling a layer norm to 0 regularises nothing.
    groups = [
        {"params": [w for w in weights if w.ndim >= 2], "weight_decay": plan.weight_decay},
        {"params": [w for w in weights if w.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [g for g in groups if g["params"]], lr=plan.learning_rate, betas=plan.betas, fused=True
    )


def _set_training(model: torch.nn.Module, plan: TrainingPlan) -> None:
    model.train()
    if plan.recompute:
        # The reentrant kind loses the gradient where the embeddings are frozen, as under an adapter.
        _recomputing(model, "enable")({"use_reentrant": False})


def _set_eval(model: torch.nn.Module, plan: TrainingPlan) -> None:
    if plan.recompute:
        _recomputing(model, "disable")()
    model.zero_grad(set_to_none=True)
    model.eval()


def _recomputing(model: torch.nn.Module, what: str) -> Callable[..., None]:
    """The method of transformers' models that switches it; the name changed with version 5."""
    method = getattr(model, f"activation_checkpointing_{what}", None)
    method = method or getattr(model, f"gradient_checkpointing_{what}", None)
    if method is None:
        raise ModelError(
            f"{type(model).__name__} cannot recompute its activations; train it with recompute=False."
        )
    return cast(Callable[..., None], method)
