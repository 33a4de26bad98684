"""What a method means to peft: which layers of which model are adapted, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from peft import AdaLoraConfig, IA3Config, LoraConfig, PeftConfig, PeftModel, get_peft_model
from peft.utils.constants import (
    TRANSFORMERS_MODELS_TO_ADALORA_TARGET_MODULES_MAPPING as ADALORA_TARGETS,
)
from peft.utils.constants import (
    TRANSFORMERS_MODELS_TO_IA3_FEEDFORWARD_MODULES_MAPPING as IA3_FEEDFORWARD,
)
from peft.utils.constants import (
    TRANSFORMERS_MODELS_TO_IA3_TARGET_MODULES_MAPPING as IA3_TARGETS,
)
from peft.utils.constants import (
    TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING as LORA_TARGETS,
)

from pretrace.errors import ModelError
from pretrace.tuning.methods import AdaLora, Ia3, Lora, Method, name_of

_ALL = "all-linear"
# What most architectures call the projections to keys and values, and the one out of the feed-forward block.
_KEYS_AND_VALUES = ("k_proj", "v_proj", "key", "value", "query_key_value", "qkv_proj", "c_attn", "Wqkv")
_OUT_OF_FEEDFORWARD = ("down_proj", "dense_4h_to_h", "fc2", "fc_out", "w2", "mlp.c_proj", "output_linear")


def new_adapter(method: Method, *, steps: int, seed: int) -> Callable[[Any], PeftModel]:
    """What puts a new adapter into a transformers model, for `backends.adapters.inserted`.

    The seed decides its weights; torch's global random state is as before. They are float32 whatever the
    model's own, and the same model and seed give the same. ModelError where there is no layer to adapt.
    """

    def wrap(model: Any) -> PeftModel:
        settings = peft_settings(method, model, steps=steps)
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            torch.manual_seed(seed)
            try:
                return get_peft_model(model, settings)
            except ValueError as error:  # what peft raises where no layer has the name, or the wrong kind
                reason = str(error).partition("\n")[0]
                raise ModelError(
                    f"{name_of(method)} cannot adapt a model of type {model.config.model_type!r}: {reason}"
                ) from None

    return wrap


def peft_settings(method: Method, model: Any, *, steps: int) -> PeftConfig:
    """The configuration of the method for a transformers model and a training of so many steps.

    Layers are those peft knows for the type of the model; else LoRA and AdaLoRA take all linear layers,
    and IA3 those with the usual names. ModelError where IA3 finds none.
    """
    kind = str(model.config.model_type)
    if isinstance(method, Lora):
        return LoraConfig(
            r=method.rank,
            lora_alpha=method.alpha,  # type: ignore[arg-type]  # any number will do
            lora_dropout=method.dropout,
            target_modules=_targets(kind, LORA_TARGETS),
            task_type="CAUSAL_LM",
        )
    if isinstance(method, AdaLora):
        return AdaLoraConfig(
            init_r=method.first_rank,
            target_r=method.rank,
            lora_alpha=method.alpha,  # type: ignore[arg-type]
            lora_dropout=method.dropout,
            orth_reg_weight=method.penalty,
            target_modules=_targets(kind, ADALORA_TARGETS, LORA_TARGETS),
            total_step=max(1, steps),
            tinit=steps // 10,
            tfinal=3 * steps // 10,
            task_type="CAUSAL_LM",
        )
    assert isinstance(method, Ia3)
    targets, feedforward = IA3_TARGETS.get(kind), IA3_FEEDFORWARD.get(kind)
    if targets is None or feedforward is None:
        targets, feedforward = _by_name(model)
    return IA3Config(target_modules=targets, feedforward_modules=feedforward, task_type="CAUSAL_LM")


def _targets(kind: str, *known: Mapping[str, Any]) -> list[str] | str:
    """Names of layers, or a pattern for them, from the first table that has the type of model."""
    for table in known:
        if kind in table:
            found = table[kind]
            return found if isinstance(found, str) else list(found)
    return _ALL


def _by_name(model: Any) -> tuple[list[str], list[str]]:
    """The layers IA3 scales in a model peft does not know."""
    names = [f".{name}" for name, _ in model.named_modules()]

    def present(candidates: Sequence[str]) -> list[str]:
        return [one for one in candidates if any(name.endswith(f".{one}") for name in names)]

    attention, feedforward = present(_KEYS_AND_VALUES), present(_OUT_OF_FEEDFORWARD)
    if not attention or not feedforward:
        missing = "feed-forward layers" if attention else "projections to keys and values"
        raise ModelError(
            f"ia3 does not know the layers of a model of type {model.config.model_type!r} and found no {missing} "
            "under a usual name: choose lora or adalora, which take all linear layers."
        )
    return attention + feedforward, feedforward
