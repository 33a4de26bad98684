"""The state of a training on disk, so that a killed training goes on where it was saved."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch

from pretrace.results.atomic import explained
from pretrace.tuning.plan import TrainingPlan


@dataclass
class Position:
    """How far a training has come: steps taken, and loss and tokens summed over each epoch so far."""

    step: int = 0
    seconds: float = 0.0
    sums: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Checkpoint:
    """One file that holds weights, optimiser, position and random state of the training `identity` names.

    The file is replaced whole. One that belongs to another training, or is damaged, is not continued.
    """

    path: Path
    identity: str

    def save(self, model: torch.nn.Module, optimiser: torch.optim.Optimizer, position: Position) -> None:
        """Write the state beside the file, then put it in its place; OutputError where there is no room for it."""
        state = {
            "identity": self.identity,
            "weights": dict(trainable(model)),
            "optimiser": optimiser.state_dict(),
            "position": asdict(position),
            "random": torch.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state_all(),
        }
        beside = self.path.with_name(self.path.name + ".part")
        with explained(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("wb") as file:
                torch.save(state, file)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path)

    def restore(self, model: torch.nn.Module, optimiser: torch.optim.Optimizer) -> Position:
        """The saved position, with the model and the optimiser put back there; a new one without a file."""
        state = self._read()
        if state is None:
            return Position()
        with torch.no_grad():
            for name, weight in trainable(model):
                weight.copy_(state["weights"][name])
        optimiser.load_state_dict(state["optimiser"])
        torch.set_rng_state(state["random"])
        if torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["random_cuda"])
        return Position(**state["position"])

    def remove(self) -> None:
        """Take the file away, once the result of the training is safe."""
        self.path.unlink(missing_ok=True)
        self.path.with_name(self.path.name + ".part").unlink(missing_ok=True)

    def _read(self) -> dict[str, Any] | None:
        try:
            state = torch.load(self.path, map_location="cpu", weights_only=True)
        except (FileNotFoundError, EOFError, RuntimeError, UnpicklingError):
            return None
        return state if isinstance(state, dict) and state.get("identity") == self.identity else None


def trainable(model: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Parameter]]:
    """The parameters that learn, by name: all of them, or an adapter's alone."""
    return ((name, weight) for name, weight in model.named_parameters() if weight.requires_grad)


def identity(model: torch.nn.Module, sequences: Sequence[Sequence[int]], plan: TrainingPlan) -> str:
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
