"""Models that are trained here, first of all by adapters: FSD's fine-tuning (section 3.2 of its paper), on the very
model that is asked.

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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.backends.adapters import attach, inserted
from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.libraries import peft, torch
from pretrace.cache import cache_folder, text_key
from pretrace.errors import ModelError, TextsError
from pretrace.results.atomic import ADAPTER, check_writable
from pretrace.results.wording import say
from pretrace.tuning.artifacts import Artifact, write_adapter
from pretrace.tuning.plan import AdaLora, Ia3, Lora, On, OnStep, TuningMethod, expression, methods, name_of
from pretrace.tuning.training import computing, settled, train
from pretrace.types import Backend, Corpus, Text, Tuned

# What a method means to peft: which layers of which model are adapted, and how.


# What most architectures call the projections to keys and values, and the one out of the feed-forward block.
_KEYS_AND_VALUES = ("k_proj", "v_proj", "key", "value", "query_key_value", "qkv_proj", "c_attn", "Wqkv")
_OUT_OF_FEEDFORWARD = ("down_proj", "dense_4h_to_h", "fc2", "fc_out", "w2", "mlp.c_proj", "output_linear")


def new_adapter(
    method: TuningMethod, *, steps: int, seed: int | None, task: str = "CAUSAL_LM", cure: str = ""
) -> Callable[[Any], peft.PeftModel]:
    """What puts a new adapter into a model, for `backends.adapters.inserted`: float32, the seed decides its
    weights, torch's global random state is as before; without one the weights follow from that state. ModelError, which
    ends with the `cure`, where there is no layer to adapt."""

    def wrap(model: Any) -> peft.PeftModel:
        settings = _peft_settings(method, model, steps=steps)
        settings.task_type = task
        with torch.random.fork_rng(devices=range(torch.cuda.device_count()), enabled=seed is not None):
            if seed is not None:
                torch.manual_seed(seed)
            try:
                return peft.get_peft_model(model, settings)
            except ValueError as error:  # what peft raises where no layer has the name, or the wrong kind
                told = {"type": model.config.model_type, "reason": str(error).partition("\n")[0] + cure}
                raise ModelError(say("tuning.unadaptable", method=name_of(method), **told)) from None

    return wrap


def _peft_settings(method: TuningMethod, model: Any, *, steps: int) -> peft.PeftConfig:
    """The configuration of the method for a model: layers that peft knows for its type, else all linear ones, and
    for IA3 those with the usual names; ModelError where it finds none."""
    kind, known = str(model.config.model_type), peft.utils.constants
    lora = known.TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING

    def targets(*tables: Mapping[str, Any]) -> list[str] | str:
        """Names of layers, or a pattern for them, from the first table that has the type of model."""
        found = next((table[kind] for table in tables if kind in table), "all-linear")
        return found if isinstance(found, str) else list(found)

    if isinstance(method, Lora | AdaLora):
        both: dict[str, Any] = {"lora_alpha": method.alpha, "lora_dropout": method.dropout}
    if isinstance(method, Lora):
        return peft.LoraConfig(r=method.rank, target_modules=targets(lora), **both)
    if isinstance(method, AdaLora):
        own = known.TRANSFORMERS_MODELS_TO_ADALORA_TARGET_MODULES_MAPPING
        both |= {"total_step": max(1, steps), "tinit": steps // 10, "tfinal": 3 * steps // 10}
        both |= {"init_r": method.first_rank, "target_r": method.rank, "orth_reg_weight": method.penalty}
        return peft.AdaLoraConfig(target_modules=targets(own, lora), **both)
    assert isinstance(method, Ia3)
    attention = known.TRANSFORMERS_MODELS_TO_IA3_TARGET_MODULES_MAPPING.get(kind)
    feedforward = known.TRANSFORMERS_MODELS_TO_IA3_FEEDFORWARD_MODULES_MAPPING.get(kind)
    if attention is None or feedforward is None:
        names = [f".{name}" for name, _ in model.named_modules()]
        keys, feedforward = (
            [one for one in usual if any(name.endswith(f".{one}") for name in names)]
            for usual in (_KEYS_AND_VALUES, _OUT_OF_FEEDFORWARD)
        )
        if not keys or not feedforward:
            missing = "feed-forward layers" if keys else "projections to keys and values"
            raise ModelError(say("tuning.unknown_layers", type=kind, missing=missing))
        attention = keys + feedforward
    return peft.IA3Config(target_modules=attention, feedforward_modules=feedforward)


class _Allocation:
    """AdaLoRA's part in a training (Zhang et al. 2023, eq. 4 and algorithm 1), which peft does only where the
    model computes the loss, and leaves its allocator to the caller."""

    def __init__(self, adapted: peft.AdaLoraModel, *, weight: float, steps: int) -> None:
        self.adapted, self.weight, self.steps = adapted, weight, steps
        named = list(adapted.model.named_parameters())
        self.rows = [weight for name, weight in named if ".lora_A." in name]
        self.columns = [weight for name, weight in named if ".lora_B." in name]

    def penalty(self) -> torch.Tensor:
        """How far the directions of each layer are from orthonormal, on average over the matrices."""
        squares = [a @ a.T for a in self.rows] + [b.T @ b for b in self.columns]
        apart = [s - torch.eye(len(s), device=s.device, dtype=s.dtype) for s in squares]
        distances = [torch.linalg.matrix_norm(one).to(squares[0].device) for one in apart]
        return self.weight * torch.stack(distances).mean()

    def updated(self, step: int) -> None:
        """Take note of the gradients and drop the directions that the budget of this step has no room for."""
        if self.steps == 1:  # the allocator looks at gradients before its last step, and there is no other
            self.adapted.rankallocator.update_ipt(self.adapted.model)
        self.adapted.update_and_allocate(step)


def _select(
    corpus: Corpus, backend: Backend, method: TuningMethod, *, seed: int
) -> tuple[list[tuple[Text, tuple[int, ...], int]], list[str]]:
    """The texts of the side the method wants, as the back end reads them, `limit` of them at random: each with the
    token ids that are read of it, and how many are cut; then the ids of the texts with nothing to predict.

    Nothing depends on the order of the corpus, and a larger limit with the same seed adds texts to those
    of a smaller one. TextsError where no text is left, or fewer than the limit.
    """
    side = _side(corpus, method.on) if method.limit != 0 else []
    # By content: copies of one text are alike to the training, whatever they are called.
    side = sorted(side, key=lambda text: (text.text, text.id))
    encoded = backend.encode([text.text for text in side])
    kept, left_out = [], []
    for text, e in zip(side, encoded, strict=True):
        read = min(e.length, method.max_tokens or e.length)
        if read > max(1, len(e.prefix)):
            ids = [*e.prefix.tolist(), *e.tokens.tolist()][:read]
            kept.append((text, tuple(ids), e.cut + e.length - read))
        else:
            left_out.append(text.id)
    limit, found = method.limit, len(kept)
    if limit != 0 and not found:
        raise TextsError(say("tuning.short", corpus=corpus.name))
    if limit is not None and limit > found:
        raise TextsError(say("tuning.few", limit=limit, corpus=corpus.name, found=found, on=method.on))
    if limit is not None:
        kept = [kept[i] for i in sorted(np.random.default_rng(seed).permutation(found)[:limit].tolist())]
    return kept, left_out


def _side(corpus: Corpus, on: On) -> list[Text]:
    """The texts with the label wanted, or all where `on` says so or no text has a label."""
    labels = [text.member for text in corpus.texts]
    every = on == "all" or all(label is None for label in labels)
    texts = [text for text in corpus.texts if every or text.member is (on == "members")]
    if not texts:
        wanted = {"members": "known members", "nonmembers": "known non-members", "all": "texts"}[on]
        other = {"members": "nonmembers", "nonmembers": "members"}.get(on)
        cure = f"give it some, or choose on={other!r} or on='all'." if other and labels else "give it some."
        names = {True: "members", False: "non-members", None: "texts without a label"}
        counted = [f"{labels.count(label)} {name}" for label, name in names.items() if label in labels]
        found = ", ".join(counted) or "no texts"
        raise TextsError(say("tuning.side", on=on, wanted=wanted, corpus=corpus.name, found=found, cure=cure))
    return texts


SAVE_MINUTES = 10.0
"""The time between checkpoints of a training under way."""


def make_adapter(
    model: HuggingFace,
    corpus: Corpus,
    method: TuningMethod,
    *,
    folder: Path,
    seed: int = 0,
    on_step: OnStep | None = None,
) -> Artifact:
    """An adapter of the model trained on the texts of the corpus that `method` wants, saved in `folder`.

    Texts are read as the back end reads them and never packed together. The same model, texts, method and seed give
    the same weights on one machine with one thread. `model` gives the same traces as before afterwards, whatever
    happens; the folder is written whole or not at all. A training killed after ten minutes or later goes on from
    `.FOLDER.training` beside the folder, but for AdaLoRA, whose allocation is not saved. TextsError where the texts
    cannot be chosen, OutputError where the folder cannot be written, ModelError where no layers are found to adapt or
    the training diverges."""
    check_writable(folder, ADAPTER)
    chosen, left_out = _select(corpus, model, method, seed=seed)
    texts, sequences = tuple(text for text, _, _ in chosen), [ids for _, ids, _ in chosen]
    precision = settled(method.precision, model.device)
    plan = method.plan(seed=seed, precision=precision, save_minutes=SAVE_MINUTES)
    steps = math.ceil(len(texts) / plan.batch) * plan.epochs
    checkpoint = folder.with_name(f".{folder.name}.training")
    facts = ("name", "revision", "weights", "family", "dtype", "tokenizer", "start", "max_tokens")
    labels = [text.member for text in texts]
    with inserted(model.model, new_adapter(method, steps=steps, seed=seed)) as made:
        adapted = made.model
        card = {
            "method": {"name": name_of(method), "expression": expression(method)}
            | dataclasses.asdict(method),
            "seed": plan.seed,
            "precision": plan.precision,
            "threads": torch.get_num_threads(),
            "base": {name: model.facts[name] for name in facts},
            "layers": sorted({name.rpartition(".")[2] for name in adapted.targeted_module_names}),
            "parameters": sum(weight.numel() for weight in adapted.parameters() if weight.requires_grad),
            "corpus": corpus.name,
            "source": corpus.source,
            "notes": list(corpus.notes),
            "texts": len(texts),
            "groups": len({text.document for text in texts}),
            "members": labels.count(True),
            "nonmembers": labels.count(False),
            "cut_texts": sum(cut > 0 for _, _, cut in chosen),
            "cut_tokens": sum(cut for _, _, cut in chosen),
            "left_out": left_out,
            "hashes": sorted({text_key(text.text).hex() for text in texts}),
        }
        companion = None
        if isinstance(method, AdaLora) and isinstance(adapted.base_model, peft.AdaLoraModel):
            companion = _Allocation(adapted.base_model, weight=method.penalty, steps=steps)
        losses: tuple[float, ...] = ()  # what they stay where no texts are wanted
        if texts:
            how: dict[str, Any] = {"on_step": on_step, "checkpoint": None if companion else checkpoint}
            with computing(model.model, precision):
                losses = train(model.model, sequences, plan, companion=companion, **how)
        tokens = sum(len(ids) - 1 for ids in sequences)  # those predicted in one epoch
        card |= {"tokens": tokens, "steps": steps, "losses": list(losses)}
        trained = dataclasses.replace(corpus, texts=texts)
        adapter = write_adapter(folder, adapted, corpus=trained, card=card)
    checkpoint.unlink(missing_ok=True)
    return adapter


def tuned_model(
    model: Backend,
    texts: Corpus,
    method: TuningMethod,
    *,
    seed: int = 0,
    cache: bool | Path = True,
    on_step: OnStep | None = None,
) -> Tuned:
    """The model with an adapter tuned on the texts, over the same weights in memory. `cache` keeps it in the cache
    (True), writes it to a folder, or keeps nothing. ModelError where the model has no weights here."""
    if not isinstance(model, HuggingFace):
        raise ModelError(say("tuning.served", name=model.name))
    with contextlib.ExitStack() as passing:
        if isinstance(cache, Path):
            place = cache
        elif cache:
            place = cache_folder() / "adapters" / _digest(model, texts, method, seed)
        else:
            place = Path(passing.enter_context(tempfile.TemporaryDirectory(prefix="pretrace-"))) / "adapter"
        if place.exists() and place != cache:
            with contextlib.suppress(ModelError):  # damaged: it is made anew
                return attach(model, place)
            shutil.rmtree(place)
        make_adapter(model, texts, method, folder=place, seed=seed, on_step=on_step)
        return attach(model, place)


def tune(
    model: Backend,
    corpus: Corpus,
    method: str = "lora",
    *,
    folder: str | Path | None = None,
    seed: int = 0,
    on_step: OnStep | None = None,
) -> Tuned:
    """The model tuned on the texts (on the non-members among them, where they have labels), for `fsd`, by a
    `method` such as "lora(rank=8)" (`pretrace list`). The adapter is written to `folder`, without one to the
    cache. Raises a PretraceError where method, texts or model do not suit, or the folder cannot be written."""
    how = methods.make(method)
    return tuned_model(model, corpus, how, seed=seed, cache=folder is None or Path(folder), on_step=on_step)


def _digest(model: HuggingFace, texts: Corpus, method: TuningMethod, seed: int) -> str:
    """The name of an adapter in the cache: the format "auto" is settled to is a part, since an adapter trained in
    another is another, and the order of the texts, on which the batches depend."""
    precision = settled(method.precision, model.device)
    digest = hashlib.sha256(f"{model.fingerprint} {method!r} {seed} {precision}".encode())
    for text in texts.texts:
        digest.update(text_key(text.text) + bytes([{True: 1, False: 0, None: 2}[text.member]]))
    return digest.hexdigest()[:32]
