"""The plain training loop: next-token loss, AdamW, one process. Planting, FSD's tuning and the generators of dataset
inference go through it.

A sequence is a list of token ids; the model learns to predict each from those before it. Sequences are never packed
together and never see each other; padding is on the right and counts for nothing.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from pretrace.backends import loading
from pretrace.backends.huggingface import Head, is_head_alone
from pretrace.backends.libraries import nn, torch
from pretrace.backends.tokens import padded
from pretrace.errors import ModelError, TextsError
from pretrace.results.atomic import write_atomically
from pretrace.results.wording import say
from pretrace.tuning.plan import AnyPrecision, OnStep, Precision, TrainingPlan, TrainingStep

IGNORED = -100
"""The label of a position that is no target: cross_entropy leaves it out."""
_CPU_ROWS, _GPU_ROWS = 256, 4096


class _NextTokenLoss:
    """The next-token loss of a causal language model, computed in `precision`. A few hundred positions at a time go
    through the output layer and back, since the logits of 2,048 tokens over 49,152 take 0.4 GB, and the body is taken
    back once. Padding never reaches the output layer."""

    def __init__(self, model: Any, sequences: Sequence[Sequence[int]], precision: Precision) -> None:
        self.model, self.sequences, self.precision = model, sequences, precision
        device = self.device = next(weight for _, weight in _trainable(model)).device
        self.head = _output_layer(model, device)
        self.rows = _CPU_ROWS if device.type == "cpu" else _GPU_ROWS

    def __call__(self, rows: Sequence[int], count: int) -> torch.Tensor:
        """The loss summed over every predicted token, in nats, without gradient; that of the sum over `count` is
        added to the weights."""
        ids, mask = (
            torch.from_numpy(array).to(self.device) for array in padded([self.sequences[row] for row in rows])
        )
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
            loss = nn.functional.cross_entropy(
                logits.float(), targets[start : start + self.rows], reduction="sum"
            )
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
        loss = nn.functional.cross_entropy(
            logits.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum"
        )
        (loss / count).backward()
        return loss.detach()

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bfloat16")


def _output_layer(model: Any, device: torch.device) -> Head | None:
    """The output layer, None where it behind the body does not give the model's logits; the model is left in eval
    mode."""
    model.eval()
    try:
        head, vocabulary = model.get_output_embeddings(), model.config.get_text_config().vocab_size
        ids = torch.arange(1, 11, device=device).reshape(2, 5) % vocabulary
        with torch.no_grad():
            whole = model(input_ids=ids, use_cache=False).logits.float()
    except (RuntimeError, TypeError, AttributeError, LookupError):
        return None
    return cast(Head, head) if is_head_alone(model, head, ids, whole) else None


@contextmanager
def so_many_threads(wanted: int) -> Iterator[int]:
    """So many threads for torch while the context lasts, as many as it has for 0; yields the number."""
    before = torch.get_num_threads()
    torch.set_num_threads(wanted or before)
    try:
        yield wanted or before
    finally:
        torch.set_num_threads(before)


def _trainable(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """The parameters that learn, by name: all of them, or an adapter's alone."""
    return ((name, weight) for name, weight in model.named_parameters() if weight.requires_grad)


def _identity(model: nn.Module, sequences: Sequence[Sequence[int]], plan: TrainingPlan) -> str:
    """A hash of the starting weights, the sequences and the plan: what makes two trainings the same."""
    digest = hashlib.sha256(repr(replace(plan, save_minutes=0.0)).encode())
    for sequence in sequences:
        digest.update(len(sequence).to_bytes(8, "little"))
        digest.update(np.asarray(sequence, dtype=np.int64).tobytes())
    for name, weight in model.named_parameters():
        digest.update(name.encode())
        flat = weight.detach().to("cpu", torch.float32).reshape(-1).numpy()
        digest.update(flat.data)  # not copied: an embedding may be a fifth of all the weights
    return digest.hexdigest()


def train(
    model: nn.Module,
    sequences: Sequence[Sequence[int]],
    plan: TrainingPlan,
    *,
    on_step: OnStep | None = None,
    checkpoint: Path | None = None,
    companion: Any = None,
) -> tuple[float, ...]:
    """The mean loss of each epoch in nats a token, measured while the model learned. It is trained in place, all
    parameters that require a gradient, and left in eval mode. The same model, sequences, plan and threads give the same
    weights on one machine; torch's global random state is as before. A file `checkpoint` is written every
    `plan.save_minutes`, and a killed training goes on from it; the caller removes it with the result safe. It knows
    nothing of a `companion`, as AdaLoRA's `_Allocation` is one. TextsError where a sequence has nothing to predict,
    ModelError where the loss is no longer a number."""
    if not sequences:
        raise TextsError(say("tuning.no_sequence"))
    lengths = [len(sequence) for sequence in sequences]
    if min(lengths) < 2:
        raise TextsError(say("tuning.no_target", sequence=lengths.index(min(lengths)), tokens=min(lengths)))
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(plan.seed)
        if not any(True for _ in _trainable(model)):
            raise ModelError(say("tuning.frozen"))
        identity = _identity(model, sequences, plan) if checkpoint else ""
        own: dict[str, Any] = {"companion": companion, "checkpoint": checkpoint, "identity": identity}
        loss = _NextTokenLoss(model, sequences, plan.precision)
        targets = [length - 1 for length in lengths]
        return Training(model, plan, lengths, targets, loss, **own).run(on_step)


@dataclass
class Training:
    """The steps of a training by AdamW on sequences of these lengths, with so many targets: of a language model, or of
    a classifier, all of whose weights decay. `add_gradient(rows, count)` gives the loss summed over the targets of the
    rows, without gradient, and adds that of the sum over `count` to the weights. The file `checkpoint` has weights,
    optimiser, position and random state of the training that `identity` names, and is replaced whole; one of another
    training, or a damaged one, is not continued."""

    model: nn.Module
    plan: TrainingPlan
    lengths: Sequence[int]
    targets: Sequence[int]
    add_gradient: Callable[[Sequence[int], int], torch.Tensor]
    companion: Any = None
    all_decay: bool = False
    checkpoint: Path | None = None
    identity: str = ""

    def __post_init__(self) -> None:
        plan = self.plan
        self._weights = [weight for _, weight in _trainable(self.model)]
        # Gains and biases (one axis) are not decayed: pulling a layer norm to 0 regularises nothing.
        decayed = [weight for weight in self._weights if self.all_decay or weight.ndim >= 2]
        others = [] if self.all_decay else [weight for weight in self._weights if weight.ndim < 2]
        groups = [(decayed, plan.weight_decay), (others, 0.0)]
        named = [{"params": some, "weight_decay": decay} for some, decay in groups if some]
        self._optimiser = torch.optim.AdamW(named, lr=plan.learning_rate, betas=plan.betas, fused=True)
        self._each_epoch = math.ceil(len(self.lengths) / plan.batch)
        self._steps = self._each_epoch * plan.epochs
        self._batches: list[list[int]] = []
        # How far it has come: steps taken, and loss and tokens summed over each epoch so far.
        self._step, self._sums, self._counts = 0, list[float](), list[int]()

    def run(self, on_step: OnStep | None = None) -> tuple[float, ...]:
        if self.checkpoint:
            self._restore(self.checkpoint)
        self.model.train()
        if self.plan.recompute:
            # The reentrant kind loses the gradient where the embeddings are frozen, as under an adapter.
            _recomputing(self.model, "enable")({"use_reentrant": False})
        try:
            self._go_on(on_step)
        except ModelError:
            if self.checkpoint:  # it would only lead here again
                self.checkpoint.unlink(missing_ok=True)
            raise
        finally:
            if self.plan.recompute:
                _recomputing(self.model, "disable")()
            self.model.zero_grad(set_to_none=True)
            self.model.eval()
        return tuple(total / count for total, count in zip(self._sums, self._counts, strict=True))

    def _go_on(self, on_step: OnStep | None) -> None:
        began = time.monotonic()
        tokens, saved = 0, began
        lengths = np.array(self.lengths, dtype=np.int64)
        while self._step < self._steps:
            epoch, index = divmod(self._step, self._each_epoch)
            if index == 0 or not self._batches:
                self._batches = _epoch_batches(lengths, self.plan, epoch=epoch)
            if index == 0:
                self._sums.append(0.0)
                self._counts.append(0)
            total, count = self._take_step(self._batches[index])
            self._sums[epoch] += total
            self._counts[epoch] += count
            self._step += 1
            tokens += count
            now = time.monotonic()
            if self.checkpoint and now - saved >= 60 * self.plan.save_minutes:
                self._save(self.checkpoint)
                saved = time.monotonic()
            if on_step:
                speed = tokens / max(now - began, 1e-9)
                on_step(TrainingStep(self._step, self._steps, total / count, speed))

    def _take_step(self, batch: Sequence[int]) -> tuple[float, int]:
        """Take one step; its summed loss in nats and the number of tokens it predicted."""
        count = sum(self.targets[row] for row in batch)
        total = 0.0
        for rows in _pieces(batch, self.lengths, at_once=self.plan.at_once):
            total += self.add_gradient(rows, count).item()
        if self.companion:
            self.companion.penalty().backward()
        # Without a bound the norm is only measured: a gradient that is no number would spoil the weights.
        norm = nn.utils.clip_grad_norm_(self._weights, self.plan.clip or math.inf)
        if not (math.isfinite(total) and math.isfinite(norm)):
            found = {"loss": total / count, "norm": float(norm), "rate": self.plan.learning_rate}
            raise ModelError(say("tuning.diverged", step=self._step + 1, steps=self._steps, **found))
        for group in self._optimiser.param_groups:
            group["lr"] = _rate(self.plan, step=self._step, steps=self._steps)
        self._optimiser.step()
        if self.companion:
            self.companion.updated(self._step + 1)
        self._optimiser.zero_grad(set_to_none=True)
        return total, count

    def _save(self, path: Path) -> None:
        """Write the state, whole or not at all; OutputError where there is no room for it."""
        state = {
            "identity": self.identity,
            "weights": dict(_trainable(self.model)),
            "optimiser": self._optimiser.state_dict(),
            "position": {"step": self._step, "sums": self._sums, "counts": self._counts},
            "random": torch.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state_all(),
        }

        def write(partial: Path) -> None:
            with partial.open("wb") as file:  # by a path torch would not say why it cannot
                torch.save(state, file)

        write_atomically(path, write)

    def _restore(self, path: Path) -> None:
        """Put model, optimiser and position back where they were saved; without such a file nothing changes."""
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
        except (FileNotFoundError, EOFError, RuntimeError, UnpicklingError):
            state = None
        if not isinstance(state, dict) or state.get("identity") != self.identity:
            return
        with torch.no_grad():
            for name, weight in _trainable(self.model):
                weight.copy_(state["weights"][name])
        self._optimiser.load_state_dict(state["optimiser"])
        torch.set_rng_state(state["random"])
        if torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["random_cuda"])
        self._step, self._sums, self._counts = (state["position"][one] for one in ("step", "sums", "counts"))


# Sequences are sorted by length within buckets of so many batches: wide enough that little is padded,
# narrow enough that the batches of an epoch stay a random draw.
_BUCKET_BATCHES = 16


def _epoch_batches(lengths: npt.NDArray[np.int64], plan: TrainingPlan, *, epoch: int) -> list[list[int]]:
    """The batches of one epoch as lists of row numbers: every row once, rows of like length together. Depends on the
    seed, the epoch and the lengths alone: nothing has to be saved."""
    generator = np.random.default_rng([plan.seed, epoch])
    order = generator.permutation(len(lengths))
    batches: list[list[int]] = []
    for start in range(0, len(order), plan.batch * _BUCKET_BATCHES):
        bucket = order[start : start + plan.batch * _BUCKET_BATCHES]
        bucket = bucket[np.argsort(lengths[bucket], kind="stable")]
        batches += [bucket[i : i + plan.batch].tolist() for i in range(0, len(bucket), plan.batch)]
    return [batches[i] for i in generator.permutation(len(batches))]


def _pieces(batch: Sequence[int], lengths: Sequence[int], *, at_once: int) -> list[list[int]]:
    """The rows of a batch in runs of at most `at_once` padded tokens, one row at least in each."""
    runs: list[list[int]] = []
    longest = 0
    for row in batch:
        longest = max(longest, lengths[row])
        if not runs or longest * (len(runs[-1]) + 1) > at_once:
            runs.append([])
            longest = lengths[row]
        runs[-1].append(row)
    return runs


def _rate(plan: TrainingPlan, *, step: int, steps: int) -> float:
    """The learning rate of a step counted from 0: a linear rise over the warm-up, then the schedule."""
    warmup = min(steps - 1, round(plan.warmup * steps) if plan.warmup < 1 else int(plan.warmup))
    if step < warmup:
        return plan.learning_rate * (step + 1) / (warmup + 1)
    if plan.schedule == "constant":
        return plan.learning_rate
    gone = (step - warmup) / (steps - warmup)
    left = 0.5 * (1 + math.cos(math.pi * gone)) if plan.schedule == "cosine" else 1 - gone
    return plan.learning_rate * left


def _recomputing(model: nn.Module, what: str) -> Callable[..., None]:
    """The method of transformers' models that switches it; the name changed with version 5."""
    method = getattr(model, f"activation_checkpointing_{what}", None)
    method = method or getattr(model, f"gradient_checkpointing_{what}", None)
    if method is None:
        raise ModelError(say("tuning.not_recomputed", model=type(model).__name__))
    return cast(Callable[..., None], method)


def settled(wanted: AnyPrecision, device: torch.device) -> Precision:
    """The format a training on this device computes in, `wanted` or the faster one: it forgives rounding that a score
    would not. The format is in the adapter's card and in the name it is kept under."""
    return loading.fastest_format(device.type) if wanted == "auto" else wanted


@contextmanager
def computing(model: nn.Module, precision: Precision) -> Iterator[None]:
    """The model ready to compute in `precision`: narrower frozen weights as float32 while the context lasts,
    afterwards their former tensors to the last bit. Bfloat16 itself comes from autocast."""
    narrow = (torch.bfloat16, torch.float16)
    weights = [w for w in model.parameters() if w.dtype in narrow and not w.requires_grad]
    if precision != "float32" or not weights:
        yield
        return
    before = [weight.data for weight in weights]
    try:
        for weight in weights:
            weight.data = weight.data.float()
        yield
    finally:
        for weight, own in zip(weights, before, strict=True):
            weight.data = own
