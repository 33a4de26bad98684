"""The plain training loop: next-token loss, AdamW, one process. Planting, FSD's tuning and the generators of dataset
inference go through it.

A sequence is a list of token ids; the model learns to predict each from those before it. Sequences are never packed
together and never see each other; padding is on the right and counts for nothing.
"""

from __future__ import annotations

import functools
import hashlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, cast

import numpy as np

from pretrace.backends._logits import Head
from pretrace.backends.huggingface import is_head_alone
from pretrace.backends.libraries import nn, torch
from pretrace.backends.tokens import padded
from pretrace.errors import ModelError, TextsError
from pretrace.results.atomic import write_atomically
from pretrace.results.wording import say
from pretrace.tuning.batches import epoch_batches, pieces, rate
from pretrace.tuning.plan import AnyPrecision, History, OnStep, Precision, TrainingPlan, TrainingStep

IGNORED = -100
"""The label of a position that is no target: cross_entropy leaves it out."""
_CPU_ROWS, _GPU_ROWS = 256, 4096


class _NextTokenLoss:
    """The next-token loss of a causal language model, computed in `precision`. A few hundred positions at a time go
    through the output layer and back, since the logits of 2,048 tokens over 49,152 take 0.4 GB, and the body is taken
    back once. Padding never reaches the output layer."""

    def __init__(self, model: Any, sequences: Sequence[Sequence[int]], precision: Precision) -> None:
        self.model, self.sequences, self.precision = model, sequences, precision
        device = self.device = next(weight for _, weight in trainable(model)).device
        self.head = output_layer(model, device)
        self.rows = _CPU_ROWS if device.type == "cpu" else _GPU_ROWS

    def size(self, batch: Sequence[int]) -> int:
        """How many tokens are predicted in a batch of rows."""
        return sum(len(self.sequences[row]) - 1 for row in batch)

    def add_gradient(self, rows: Sequence[int], count: int) -> torch.Tensor:
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


def output_layer(model: Any, device: torch.device) -> Head | None:
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


# The state of a training on disk, so that a killed training goes on where it was saved.


@dataclass
class Position:
    """How far a training has come: steps taken, and loss and tokens summed over each epoch so far."""

    step: int = 0
    sums: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Checkpoint:
    """One file with weights, optimiser, position and random state of the training `identity` names, replaced
    whole; one of another training, or a damaged one, is not continued."""

    path: Path
    identity: str

    def save(self, model: nn.Module, optimiser: torch.optim.Optimizer, position: Position) -> None:
        """Write the state, whole or not at all; OutputError where there is no room for it."""
        state = {
            "identity": self.identity,
            "weights": dict(trainable(model)),
            "optimiser": optimiser.state_dict(),
            "position": asdict(position),
            "random": torch.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state_all(),
        }

        def write(partial: Path) -> None:
            with partial.open("wb") as file:  # by a path torch would not say why it cannot
                torch.save(state, file)

        write_atomically(self.path, write)

    def restore(self, model: nn.Module, optimiser: torch.optim.Optimizer) -> Position:
        """The saved position, with the model and the optimiser put back there; a new one without such a file."""
        try:
            state = torch.load(self.path, map_location="cpu", weights_only=True)
        except (FileNotFoundError, EOFError, RuntimeError, UnpicklingError):
            state = None
        if not isinstance(state, dict) or state.get("identity") != self.identity:
            return Position()
        with torch.no_grad():
            for name, weight in trainable(model):
                weight.copy_(state["weights"][name])
        optimiser.load_state_dict(state["optimiser"])
        torch.set_rng_state(state["random"])
        if torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["random_cuda"])
        return Position(**state["position"])


@contextmanager
def so_many_threads(wanted: int) -> Iterator[int]:
    """So many threads for torch while the context lasts, as many as it has for 0; yields the number."""
    before = torch.get_num_threads()
    torch.set_num_threads(wanted or before)
    try:
        yield wanted or before
    finally:
        torch.set_num_threads(before)


def trainable(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """The parameters that learn, by name: all of them, or an adapter's alone."""
    return ((name, weight) for name, weight in model.named_parameters() if weight.requires_grad)


def identity(model: nn.Module, sequences: Sequence[Sequence[int]], plan: TrainingPlan) -> str:
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
) -> History:
    """What the training did; the model is trained in place, all parameters that require a gradient, and left in
    eval mode. The same model, sequences, plan and threads give the same weights on one machine; torch's global
    random state is as before. A file `checkpoint` is written every `plan.save_minutes`, and a killed training goes
    on from it; the caller removes it with the result safe. It knows nothing of a `companion`, as AdaLoRA's `Allocation`
    is one. TextsError where a sequence has nothing to predict, ModelError where the loss is no longer a number."""
    if not sequences:
        raise TextsError(say("tuning.no_sequence"))
    lengths = [len(sequence) for sequence in sequences]
    if min(lengths) < 2:
        raise TextsError(say("tuning.no_target", sequence=lengths.index(min(lengths)), tokens=min(lengths)))
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(plan.seed)
        if not any(True for _ in trainable(model)):
            raise ModelError(say("tuning.frozen"))
        loss = _NextTokenLoss(model, sequences, plan.precision)
        place = Checkpoint(checkpoint, identity(model, sequences, plan)) if checkpoint else None
        return Training(model, loss, plan, companion=companion).run(on_step, place)


class Training:
    """The steps of a training by AdamW: of a language model, or of a classifier, all of whose weights decay. `loss` has
    the sequences and methods of `_NextTokenLoss`."""

    def __init__(
        self,
        model: nn.Module,
        loss: Any,
        plan: TrainingPlan,
        *,
        companion: Any = None,
        all_decay: bool = False,
    ) -> None:
        self.model, self.loss, self.plan, self.companion = model, loss, plan, companion
        self.lengths = np.array([len(sequence) for sequence in loss.sequences], dtype=np.int64)
        self.weights = [weight for _, weight in trainable(model)]
        # Gains and biases (one axis) are not decayed: pulling a layer norm to 0 regularises nothing.
        decayed = [weight for weight in self.weights if all_decay or weight.ndim >= 2]
        others = [] if all_decay else [weight for weight in self.weights if weight.ndim < 2]
        groups = [(decayed, plan.weight_decay), (others, 0.0)]
        named = [{"params": some, "weight_decay": decay} for some, decay in groups if some]
        self.optimiser = torch.optim.AdamW(named, lr=plan.learning_rate, betas=plan.betas, fused=True)
        self.each_epoch = math.ceil(len(self.lengths) / plan.batch)
        self.steps = self.each_epoch * plan.epochs
        self.position = Position()
        self.batches: list[list[int]] = []

    def run(self, on_step: OnStep | None = None, checkpoint: Checkpoint | None = None) -> History:
        if checkpoint:
            self.position = checkpoint.restore(self.model, self.optimiser)
        self.model.train()
        if self.plan.recompute:
            # The reentrant kind loses the gradient where the embeddings are frozen, as under an adapter.
            _recomputing(self.model, "enable")({"use_reentrant": False})
        try:
            self._go_on(on_step, checkpoint)
        except ModelError:
            if checkpoint:  # it would only lead here again
                checkpoint.path.unlink(missing_ok=True)
            raise
        finally:
            if self.plan.recompute:
                _recomputing(self.model, "disable")()
            self.model.zero_grad(set_to_none=True)
            self.model.eval()
        position = self.position
        losses = tuple(total / count for total, count in zip(position.sums, position.counts, strict=True))
        return History(losses, position.counts[0], self.steps)

    def _go_on(self, on_step: OnStep | None, checkpoint: Checkpoint | None) -> None:
        position, began = self.position, time.monotonic()
        tokens, saved = 0, began
        while position.step < self.steps:
            epoch, index = divmod(position.step, self.each_epoch)
            if index == 0 or not self.batches:
                self.batches = epoch_batches(self.lengths, self.plan, epoch=epoch)
            if index == 0:
                position.sums.append(0.0)
                position.counts.append(0)
            total, count = self._step(self.batches[index])
            position.sums[epoch] += total
            position.counts[epoch] += count
            position.step += 1
            tokens += count
            now = time.monotonic()
            if checkpoint and now - saved >= 60 * self.plan.save_minutes:
                checkpoint.save(self.model, self.optimiser, position)
                saved = time.monotonic()
            if on_step:
                speed = tokens / max(now - began, 1e-9)
                on_step(TrainingStep(position.step, self.steps, total / count, speed))

    def _step(self, batch: Sequence[int]) -> tuple[float, int]:
        """Take one step; its summed loss in nats and the number of tokens it predicted."""
        count = self.loss.size(batch)
        total = 0.0
        for rows in pieces(batch, self.lengths, at_once=self.plan.at_once):
            total += self.loss.add_gradient(rows, count).item()
        if self.companion:
            self.companion.penalty().backward()
        # Without a bound the norm is only measured: a gradient that is no number would spoil the weights.
        norm = nn.utils.clip_grad_norm_(self.weights, self.plan.clip or math.inf)
        if not (math.isfinite(total) and math.isfinite(norm)):
            found = {"loss": total / count, "norm": float(norm), "rate": self.plan.learning_rate}
            raise ModelError(say("tuning.diverged", step=self.position.step + 1, steps=self.steps, **found))
        for group in self.optimiser.param_groups:
            group["lr"] = rate(self.plan, step=self.position.step, steps=self.steps)
        self.optimiser.step()
        if self.companion:
            self.companion.updated(self.position.step + 1)
        self.optimiser.zero_grad(set_to_none=True)
        return total, count


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
    return fastest_format(device.type) if wanted == "auto" else wanted


@functools.cache
def fastest_format(device: str = "cpu") -> Precision:
    """Bfloat16 for a GPU that computes in it and a processor with matrix units (AMX): elsewhere it is slower."""
    if device == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    has_matrix_units = getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    return "bfloat16" if device == "cpu" and has_matrix_units() else "float32"


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
