"""Tuning with adapters: FSD's fine-tuning, on the very model that is asked (section 3.2 of its paper).

The adapter is trained in the back end's own memory, no weight is copied, and when it is saved the model is
as it was.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import math
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from peft import AdaLoraModel, PeftModel

from pretrace.backends.adapters import inserted
from pretrace.backends.huggingface import HuggingFace
from pretrace.cache.location import cache_folder, text_key
from pretrace.errors import ModelError
from pretrace.results.atomic import check_writable
from pretrace.results.output_checks import ADAPTER
from pretrace.tuning.artifacts import Adapter, read_adapter, write_adapter
from pretrace.tuning.batches import Selection, select
from pretrace.tuning.methods import AdaLora, Method, expression, name_of
from pretrace.tuning.number_format import computing, settled
from pretrace.tuning.plan import History, OnStep, TrainingPlan
from pretrace.tuning.targets import new_adapter
from pretrace.tuning.training import train
from pretrace.types import Backend, Corpus, Tuned

if TYPE_CHECKING:
    from pretrace.backends.huggingface import HuggingFace


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


__all__ = ["Adapter", "read_adapter", "tune"]

SAVE_MINUTES = 10.0
"""The time between checkpoints of a training under way."""


def tune(
    model: HuggingFace,
    corpus: Corpus,
    method: Method,
    *,
    folder: Path,
    seed: int = 0,
    on_step: OnStep | None = None,
) -> Adapter:
    """An adapter of the model trained on the texts of the corpus that `method` wants, saved in `folder`.

    Texts are read as the back end reads them and never packed together. The same model, texts, method and
    seed give the same weights on one machine with one thread. `model` gives the same traces as before
    afterwards, whatever happens; the folder is written whole or not at all. A training killed after ten
    minutes or later goes on from `.FOLDER.training` beside the folder when called again, but for AdaLoRA,
    whose allocation is not saved. TextsError where the texts cannot be chosen, OutputError where the
    folder cannot be written, ModelError where no layers are found to adapt or the training diverges.
    """
    check_writable(folder, ADAPTER)
    chosen = select(corpus, model, method, seed=seed)
    precision = settled(method.precision, model.device)
    plan = method.plan(seed=seed, precision=precision, save_minutes=SAVE_MINUTES)
    steps = math.ceil(len(chosen.texts) / plan.batch) * plan.epochs
    checkpoint = folder.with_name(f".{folder.name}.training")
    with inserted(model.model, new_adapter(method, steps=steps, seed=seed)) as made:
        card = {**_made(model, made.model, method, plan), **_counts(corpus, chosen)}
        companion = _companion(method, made.model, steps)
        place = None if companion else checkpoint
        history = History((), 0, 0, 0.0)  # what it stays where no texts are wanted
        if chosen.texts:
            with computing(model.model, precision):
                history = train(
                    model.model,
                    chosen.sequences,
                    plan,
                    on_step=on_step,
                    checkpoint=place,
                    companion=companion,
                )
        card |= {"tokens": history.tokens, "steps": history.steps, "losses": list(history.losses)}
        texts = dataclasses.replace(corpus, texts=chosen.texts)
        adapter = write_adapter(folder, made.model, texts=texts, method=method, card=card)
    checkpoint.unlink(missing_ok=True)
    return adapter


def _companion(method: Method, adapted: PeftModel, steps: int) -> Allocation | None:
    tuner = adapted.base_model
    if isinstance(method, AdaLora) and isinstance(tuner, AdaLoraModel):
        return Allocation(tuner, weight=method.penalty, steps=steps)
    return None


def _made(model: HuggingFace, adapted: PeftModel, method: Method, plan: TrainingPlan) -> dict[str, Any]:
    """How the adapter is made, for its card."""
    facts = ("name", "revision", "weights", "family", "dtype", "tokenizer", "start", "max_tokens")
    return {
        "method": {"name": name_of(method), "expression": expression(method), **dataclasses.asdict(method)},
        "seed": plan.seed,
        "precision": plan.precision,
        "threads": torch.get_num_threads(),
        "base": {name: model.facts[name] for name in facts},
        "layers": sorted({name.rpartition(".")[2] for name in adapted.targeted_module_names}),
        "parameters": sum(weight.numel() for weight in adapted.parameters() if weight.requires_grad),
    }


def _counts(corpus: Corpus, chosen: Selection) -> dict[str, Any]:
    """What the adapter is made of, for its card."""
    labels = [text.member for text in chosen.texts]
    return {
        "corpus": corpus.name,
        "source": corpus.source,
        "notes": list(corpus.notes),
        "texts": len(chosen.texts),
        "groups": len({text.document for text in chosen.texts}),
        "members": labels.count(True),
        "nonmembers": labels.count(False),
        "cut_texts": chosen.cut_texts,
        "cut_tokens": chosen.cut_tokens,
        "left_out": list(chosen.left_out),
        "hashes": sorted({text_key(text.text).hex() for text in chosen.texts}),
    }


def tuned_model(
    model: Backend,
    texts: Corpus,
    method: Method,
    *,
    seed: int = 0,
    cache: bool = True,
    on_step: OnStep | None = None,
) -> Tuned:
    """The model with an adapter tuned on the texts, over the same weights in memory.

    The adapter is kept in the cache under everything it depends on and taken from there the next time;
    `cache` False keeps nothing. ModelError where the model has no weights here.
    """
    from pretrace.backends.adapters import attach
    from pretrace.backends.huggingface import HuggingFace
    from pretrace.tuning.adapters import tune

    if not isinstance(model, HuggingFace):
        raise ModelError(f"tuning needs a model with local weights; {model.name} has none here.")
    with _place(model, texts, method, seed=seed, cache=cache) as folder:
        if folder.exists():
            with contextlib.suppress(ModelError):  # damaged: it is made anew
                return attach(model, folder)
            shutil.rmtree(folder)
        tune(model, texts, method, folder=folder, seed=seed, on_step=on_step)
        return attach(model, folder)


@contextlib.contextmanager
def _place(model: HuggingFace, texts: Corpus, method: Method, *, seed: int, cache: bool) -> Iterator[Path]:
    """Where the adapter is kept: in the cache, or in a folder that lasts until it is read."""
    if not cache:
        with tempfile.TemporaryDirectory(prefix="pretrace-") as folder:
            yield Path(folder) / "adapter"
        return
    from pretrace.tuning.number_format import settled

    # The format "auto" is settled to is a part of the name: an adapter trained in another is another.
    precision = settled(method.precision, model.device)
    digest = hashlib.sha256(f"{model.fingerprint} {method!r} {seed} {precision}".encode())
    for text in texts.texts:  # in their order, on which the batches depend
        digest.update(text_key(text.text) + bytes([{True: 1, False: 0, None: 2}[text.member]]))
    yield cache_folder() / "adapters" / digest.hexdigest()[:32]
