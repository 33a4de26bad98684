"""What planting leaves on disk: a model folder with the labels and a card of how it was made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pretrace.cache.location import text_key
from pretrace.results.atomic import new_folder
from pretrace.tuning.written import file_hashes, versions, write_texts
from pretrace.types import Corpus, Text

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

CARD = "card.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Planted:
    """A planted model: its folder, the corpus with exact labels, and the card that lies beside the weights."""

    folder: Path
    corpus: Corpus
    card: Mapping[str, Any]


def write_planted(
    folder: Path,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    corpus: Corpus,
    card: Mapping[str, Any],
) -> Planted:
    """Write model, tokenizer, texts with labels and card as one folder, whole or not at all.

    The card gains the counts of the corpus, the versions and the SHA-256 of every file beside it.
    OutputError where the folder cannot be written.
    """
    with new_folder(folder) as partial, _no_bars():
        model.save_pretrained(partial, safe_serialization=True)
        tokenizer.save_pretrained(partial)
        write_texts(partial, corpus.texts)
        full = {"pretrace_planted": FORMAT, **_counts(corpus), **card, "versions": versions()}
        full["files"] = file_hashes(partial)
        (partial / CARD).write_bytes((json.dumps(full, indent=1) + "\n").encode())
    return Planted(folder, corpus, full)


@contextmanager
def _no_bars() -> Iterator[None]:
    """No progress bar of transformers between our own lines."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _counts(corpus: Corpus) -> dict[str, Any]:
    sides = {True: "members", False: "nonmembers"}
    counts: dict[str, Any] = {"corpus": corpus.name, "source": corpus.source, "notes": list(corpus.notes)}
    for member, name in sides.items():
        texts = [text for text in corpus.texts if text.member is member]
        counts[name] = {
            "texts": len(texts),
            "groups": len({text.document for text in texts}),
            "characters": sum(len(text.text) for text in texts),
            "hash": texts_hash(texts),
        }
    return counts


def texts_hash(texts: Sequence[Text]) -> str:
    """SHA-256 over the texts' own, sorted: the same for the same texts in any order."""
    return hashlib.sha256(b"".join(sorted(text_key(text.text) for text in texts))).hexdigest()
