"""Preference optimisation of a generator: true continuations preferred to the generator's own, by SimPO.

Setting 3 of post-hoc dataset inference's table 5 (its appendix B), with the loss of Meng et al. 2024, eq. 6. It is
what suffix completion is compared with and makes texts that are easier to tell apart, so it is no part of the package.
trl has the same loss (`trl.experimental.cpo`, loss_type "simpo") inside a trainer with files and settings of its own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from peft import PeftModel
from torch.nn.functional import cross_entropy, logsigmoid

from pretrace.backends.adapters import attach, inserted
from pretrace.backends.huggingface import HuggingFace
from pretrace.errors import ModelError, TextsError
from pretrace.results.atomic import check_writable
from pretrace.tuning.artifacts import Adapter, read_adapter, write_adapter
from pretrace.tuning.batches import epoch_batches, padded, rate
from pretrace.tuning.plan import AT_ONCE, OnStep, TrainingPlan, TrainingStep
from pretrace.types import Tuned


@dataclass(frozen=True, slots=True)
class SimPO:
    """How preferences are learnt. `beta` and `gamma` are the loss's own, and the rest that of a training; in each of
    the `rounds` the rejected texts are what the generator of the round before wrote. Neither paper gives figures for
    an adapter: beta and gamma are within what SimPO's authors tried, the rate is below that of the generator."""

    rounds: int = 2
    epochs: int = 1
    batch: int = 8
    learning_rate: float = 5e-5
    beta: float = 2.0
    gamma: float = 1.0
    seed: int = 0

    def plan(self, *, bfloat16: bool) -> TrainingPlan:
        """One round's training."""
        return TrainingPlan(
            epochs=self.epochs,
            batch=self.batch,
            learning_rate=self.learning_rate,
            schedule="linear",
            warmup=0.1,
            weight_decay=0.0,
            betas=(0.9, 0.999),
            precision="bfloat16" if bfloat16 else "float32",
            at_once=AT_ONCE,
            seed=self.seed,
        )


class Choice(NamedTuple):
    """A prompt with the continuation that is preferred and the one that is not."""

    prompt: str
    chosen: str
    rejected: str


class _Read(NamedTuple):
    """A prompt and a continuation as token ids, and which of them are the continuation's."""

    ids: list[int]
    counts: list[bool]


def simpo_loss(chosen: torch.Tensor, rejected: torch.Tensor, *, beta: float, gamma: float) -> torch.Tensor:
    """The loss of each pair, -log σ(β (chosen - rejected) - γ), from mean log-probabilities a token in nats.

    >>> simpo_loss(torch.zeros(1), torch.zeros(1), beta=2.0, gamma=0.0).exp().tolist()
    [2.0]
    """
    return -logsigmoid(beta * (chosen - rejected) - gamma)


def prefer(
    model: HuggingFace,
    start: Path,
    choices: Sequence[Choice],
    settings: SimPO,
    *,
    folder: Path,
    on_step: OnStep | None = None,
) -> Tuned:
    """The model with the adapter in `start` after one more round, written to `folder`, whole or not at all.

    The model and the adapter in `start` are as before afterwards. TextsError without choices or with an empty
    continuation, ModelError where `start` does not fit the model or the training diverges.
    """
    check_writable(folder)
    read = [(_read(model, one.prompt, one.chosen), _read(model, one.prompt, one.rejected)) for one in choices]
    if not read:
        raise TextsError("there is nothing to prefer: no pair of continuations was given.")
    before = read_adapter(start)
    attach(model, start)  # which says where it was tuned on another model
    with inserted(
        model.model, lambda bare: PeftModel.from_pretrained(bare, str(start), is_trainable=True)
    ) as made:
        plan = settings.plan(bfloat16=model.dtype == torch.bfloat16)
        losses = _train(model, read, plan, settings, on_step)
        _write(folder, made.model, before, {**asdict(settings), "losses": losses})
    return attach(model, folder)


def _write(folder: Path, adapted: PeftModel, before: Adapter, learnt: dict[str, object]) -> None:
    """The adapter beside its texts, whose card also says what was preferred how."""
    rounds = [*before.card.get("preferred", ()), learnt]
    write_adapter(
        folder, adapted, texts=before.texts, method=before.method, card={**before.card, "preferred": rounds}
    )


def _read(model: HuggingFace, prompt: str, continuation: str) -> _Read:
    """Both as one text: a token that reaches over the seam is the continuation's, as when it is scored."""
    [e] = model.encode([prompt + continuation])
    ends = model.spans(prompt + continuation)[: len(e.tokens), 1]
    counts = [False] * len(e.prefix) + [bool(end > len(prompt)) for end in ends]
    if not any(counts[1:]):  # what stands first is never predicted
        raise TextsError(
            f"a continuation to prefer, or not to, must have a token of its own, and {continuation!r} after "
            f"{prompt[-30:]!r} has none."
        )
    return _Read([*e.prefix.tolist(), *e.tokens.tolist()], counts)


def _train(
    model: HuggingFace,
    read: Sequence[tuple[_Read, _Read]],
    plan: TrainingPlan,
    settings: SimPO,
    on_step: OnStep | None,
) -> list[float]:
    """Train the adapter that is in place; the mean loss of every step."""
    weights = [weight for weight in model.model.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(weights, lr=plan.learning_rate, betas=plan.betas, weight_decay=0.0)
    lengths = np.array([max(len(one.ids) for one in both) for both in read], dtype=np.int64)
    batches = [rows for epoch in range(plan.epochs) for rows in epoch_batches(lengths, plan, epoch=epoch)]
    losses: list[float] = []
    began, tokens = time.monotonic(), 0
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(plan.seed)
        model.model.train()
        try:
            for step, batch in enumerate(batches):
                losses.append(_step(model, [read[row] for row in batch], plan, settings))
                norm = float(torch.nn.utils.clip_grad_norm_(weights, plan.clip))
                _check_finite(losses[-1], norm, step + 1, plan)
                for group in optimiser.param_groups:
                    group["lr"] = rate(plan, step=step, steps=len(batches))
                optimiser.step()
                optimiser.zero_grad(set_to_none=True)
                tokens += 2 * int(lengths[batch].sum())
                if on_step:
                    speed = tokens / max(time.monotonic() - began, 1e-9)
                    epoch = step // (len(batches) // plan.epochs) + 1
                    on_step(TrainingStep(step + 1, len(batches), epoch, plan.epochs, losses[-1], speed))
        finally:
            model.model.zero_grad(set_to_none=True)
            model.model.eval()
    return losses


def _step(
    model: HuggingFace, batch: Sequence[tuple[_Read, _Read]], plan: TrainingPlan, settings: SimPO
) -> float:
    """The mean loss of a batch, whose gradient is left in the weights; both texts of a pair run together."""
    longest = max(len(one.ids) for both in batch for one in both)
    at_once = max(1, plan.at_once // (2 * longest))
    total = 0.0
    for at in range(0, len(batch), at_once):
        some = batch[at : at + at_once]
        logp = mean_logp(
            model, [both[0] for both in some] + [both[1] for both in some], precision=plan.precision
        )
        losses = simpo_loss(logp[: len(some)], logp[len(some) :], beta=settings.beta, gamma=settings.gamma)
        torch.autograd.backward(losses.sum() / len(batch))
        total += float(losses.detach().sum())
    return total / len(batch)


def mean_logp(model: HuggingFace, read: Sequence[_Read], *, precision: str = "float32") -> torch.Tensor:
    """Mean log-probability of each continuation's tokens given what stands before them, in nats, [rows]."""
    ids, mask = (torch.from_numpy(array).to(model.device) for array in padded([one.ids for one in read]))
    wanted = torch.zeros_like(mask)
    for row, one in enumerate(read):
        wanted[row, : len(one.counts)] = torch.tensor(one.counts)
    wanted = wanted[:, 1:].float()
    with torch.autocast(model.device.type, torch.bfloat16, enabled=precision == "bfloat16"):
        logits = model.model(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, :-1]
    lost = cross_entropy(logits.float().transpose(1, 2), ids[:, 1:], reduction="none")
    return -(lost * wanted).sum(dim=1) / wanted.sum(dim=1)


def _check_finite(loss: float, norm: float, step: int, plan: TrainingPlan) -> None:
    if not (math.isfinite(loss) and math.isfinite(norm)):
        raise ModelError(
            f"learning preferences diverged: the loss was {loss:g} at step {step} and its gradient {norm:g}; choose a "
            f"learning rate below {plan.learning_rate:g}."
        )
