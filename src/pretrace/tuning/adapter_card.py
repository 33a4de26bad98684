"""What tuning leaves on disk: an adapter's weights, the card of how it was made, and the texts it has seen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pretrace.backends.adapters import FORMAT, WEIGHTS, read_card
from pretrace.errors import ExpressionError, ModelError
from pretrace.results.atomic import new_folder
from pretrace.results.output_checks import ADAPTER_CARD as CARD
from pretrace.results.output_checks import ADAPTER_KEY as KEY
from pretrace.tuning.methods import Method, methods
from pretrace.tuning.written import file_hashes, read_texts, versions, write_texts
from pretrace.types import Corpus

if TYPE_CHECKING:
    from peft import PeftModel


@dataclass(frozen=True, slots=True)
class Adapter:
    """A saved adapter: its folder, its card, and all that is needed to tune another model in the same way.

    `texts` are those it was tuned on, with the labels they had; `method` tunes on all of them; `seed` is
    that of the weights it began with and of the order of the texts.
    """

    folder: Path
    card: Mapping[str, Any]
    texts: Corpus
    method: Method
    seed: int


def write_adapter(
    folder: Path, adapted: PeftModel, *, texts: Corpus, method: Method, card: Mapping[str, Any]
) -> Adapter:
    """Write weights, peft's configuration, texts and card as one folder, whole or not at all.

    The folder opens with `peft.PeftModel.from_pretrained` too. OutputError where it cannot be written.
    """
    from peft import get_peft_model_state_dict
    from safetensors.torch import save_file

    settings = adapted.peft_config["default"]
    settings.base_model_name_or_path, settings.inference_mode = card["base"]["name"], True
    for name, value in list(vars(settings).items()):
        if isinstance(value, set):  # whose order changes from one process to the next
            setattr(settings, name, sorted(value))
    weights = get_peft_model_state_dict(adapted, save_embedding_layers=False)
    with new_folder(folder) as partial:
        tensors = {name: weight.detach().cpu().contiguous() for name, weight in sorted(weights.items())}
        save_file(tensors, partial / WEIGHTS, metadata={"format": "pt"})
        settings.save_pretrained(str(partial))
        write_texts(partial, texts.texts)
        full = {KEY: FORMAT, **card, "versions": versions("peft"), "files": file_hashes(partial)}
        (partial / CARD).write_bytes((json.dumps(full, indent=1) + "\n").encode())
    return Adapter(folder, full, texts, _again(method), full["seed"])


def read_adapter(folder: Path) -> Adapter:
    """The adapter in a folder, without its weights; ModelError where there is none or it is damaged."""
    card = read_card(folder)
    expression = card["method"]["expression"]
    try:
        method = methods.make(expression)
        texts = read_texts(folder)
    except (ExpressionError, OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"the adapter in {folder} cannot be repeated ({error}): tune it again.") from None
    corpus = Corpus(f"texts of {folder.name}", texts, f"{folder}")
    return Adapter(folder, card, corpus, _again(method), card["seed"])


def _again(method: Method) -> Method:
    """The method on the texts that were drawn by it: all of them now, or still none."""
    return replace(method, limit=0 if method.limit == 0 else None)
