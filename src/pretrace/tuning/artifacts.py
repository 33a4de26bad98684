"""What training leaves on disk: a model or an adapter, the card of how it was made, and the texts it has seen."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pretrace import __version__
from pretrace.backends.adapters import FORMAT, WEIGHTS, read_card
from pretrace.backends.libraries import peft, transformers
from pretrace.backends.loading import quiet
from pretrace.cache import text_key
from pretrace.errors import ExpressionError, ModelError
from pretrace.results.atomic import (
    ADAPTER,
    ADAPTER_CARD,
    ADAPTER_KEY,
    CARD,
    CARD_KEY,
    FILES_KEY,
    PLANTED,
    new_folder,
)
from pretrace.results.folder import file_hashes, json_lines, read_lines
from pretrace.results.wording import say
from pretrace.tuning.plan import TuningMethod, methods
from pretrace.types import Corpus, Text

TEXTS = "texts.jsonl"
_PLANTED_FORMAT = 1
_PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "numpy")


@dataclass(frozen=True, slots=True)
class Artifact:
    """A planted model or an adapter on disk: its folder, the corpus it was trained on, that of a planted model with
    exact labels, and the card that lies beside the weights."""

    folder: Path
    corpus: Corpus
    card: Mapping[str, Any]

    @property
    def method(self) -> TuningMethod:
        """How to tune another model as an adapter was: on the texts that were drawn by its method, all of them now, or
        still none."""
        method = methods.make(self.card["method"]["expression"])
        return replace(method, limit=0 if method.limit == 0 else None)


def write_adapter(
    folder: Path, adapted: peft.PeftModel, *, corpus: Corpus, card: Mapping[str, Any]
) -> Artifact:
    """Write weights, peft's configuration, texts and card as one folder that peft opens too; OutputError where it
    cannot be."""
    from safetensors.torch import save_file

    settings = adapted.peft_config["default"]
    settings.base_model_name_or_path, settings.inference_mode = card["base"]["name"], True
    for name, value in list(vars(settings).items()):
        if isinstance(value, set):  # whose order changes from one process to the next
            setattr(settings, name, sorted(value))
    weights = peft.get_peft_model_state_dict(adapted, save_embedding_layers=False)
    with new_folder(folder, ADAPTER) as partial:
        tensors = {name: weight.detach().cpu().contiguous() for name, weight in sorted(weights.items())}
        save_file(tensors, partial / WEIGHTS, metadata={"format": "pt"})
        settings.save_pretrained(str(partial))
        facts = {ADAPTER_KEY: FORMAT, **card, "versions": _versions("peft")}
        full = _write_card(partial, ADAPTER_CARD, corpus, facts)
    return Artifact(folder, corpus, full)


def read_adapter(folder: Path) -> Artifact:
    """The adapter in a folder, without its weights; ModelError where there is none or it is damaged."""
    card = read_card(folder)
    try:
        methods.make(card["method"]["expression"])
        texts = tuple(_text(row) for row in read_lines((folder / TEXTS).read_bytes()))
    except (ExpressionError, OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(say("tuning.lost", folder=folder, error=error)) from None
    corpus = Corpus(f"texts of {folder.name}", texts, f"{folder}")
    return Artifact(folder, corpus, card)


def write_planted(
    folder: Path,
    model: transformers.PreTrainedModel,
    tokenizer: transformers.PreTrainedTokenizerBase,
    *,
    corpus: Corpus,
    card: Mapping[str, Any],
) -> Artifact:
    """Write model, tokenizer, texts with labels and card, with counts, versions and the SHA-256 of every file, as
    one folder, whole or not at all; OutputError where it cannot be written."""
    with new_folder(folder, PLANTED) as partial, quiet():
        model.save_pretrained(partial, safe_serialization=True)
        tokenizer.save_pretrained(partial)
        facts = {CARD_KEY: _PLANTED_FORMAT, **_counts(corpus), **card, "versions": _versions()}
        full = _write_card(partial, CARD, corpus, facts)
    return Artifact(folder, corpus, full)


def _texts_hash(texts: Sequence[Text]) -> str:
    """SHA-256 over the texts' own, sorted: the same for the same texts in any order."""
    return hashlib.sha256(b"".join(sorted(text_key(text.text) for text in texts))).hexdigest()


def _write_card(partial: Path, name: str, corpus: Corpus, card: Mapping[str, Any]) -> dict[str, Any]:
    (partial / TEXTS).write_bytes(json_lines(map(_row, corpus.texts)))
    full = {**card, FILES_KEY: file_hashes(partial)}
    (partial / name).write_bytes((json.dumps(full, indent=1) + "\n").encode())
    return full


def _row(text: Text) -> dict[str, str | int | None]:
    label = None if text.member is None else int(text.member)
    return {"id": text.id, "text": text.text, "label": label, "group": text.document}


def _text(row: dict[str, str | int | None]) -> Text:
    member = None if row["label"] is None else bool(row["label"])
    return Text(str(row["id"]), str(row["text"]), member, str(row["group"]))


def _versions(*more: str) -> dict[str, str]:
    from importlib.metadata import version

    packages = {package: version(package) for package in (*_PACKAGES, *more)}
    return {"pretrace": __version__, "python": platform.python_version(), **packages}


def _counts(corpus: Corpus) -> dict[str, Any]:
    counts: dict[str, Any] = {"corpus": corpus.name, "source": corpus.source, "notes": list(corpus.notes)}
    for member, name in ((True, "members"), (False, "nonmembers")):
        texts = [text for text in corpus.texts if text.member is member]
        counts[name] = {
            "texts": len(texts),
            "groups": len({text.document for text in texts}),
            "characters": sum(len(text.text) for text in texts),
            "hash": _texts_hash(texts),
        }
    return counts


def record_tuning(card: Mapping[str, Any]) -> dict[str, Any]:
    """How an adapter was made, without the hash of every text it was tuned on."""
    return {name: value for name, value in card.items() if name not in ("hashes", "left_out", "files")}
