"""What a run records of its circumstances, so that it can be repeated and checked."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pretrace import __version__
from pretrace.types import Card, Corpus, Text, TokenTable

_PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scikit-learn")


def record_software() -> dict[str, str]:
    """Versions of pretrace, Python and the libraries that compute the numbers."""
    found = {"pretrace": __version__, "python": platform.python_version(), "system": platform.platform()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def texts_hash(texts: Iterable[Text]) -> str:
    """The SHA-256 of ids, texts, labels and groups in their order, each after its length."""
    digest = hashlib.sha256()
    for text in texts:
        for part in (text.id, text.text, str(text.member), text.group):
            encoded = part.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()


def record_corpus(corpus: Corpus) -> dict[str, Any]:
    """Name, source, size and hash of the texts (ids, texts and labels, in order), and a benchmark's card."""
    return {
        "name": corpus.name,
        "source": corpus.source,
        "texts": len(corpus),
        "documents": len({text.document for text in corpus.texts}),
        "sha256": texts_hash(corpus.texts),
        "notes": list(corpus.notes),
        **record_card(corpus.card),
    }


def record_card(card: Card | None) -> dict[str, Any]:
    """The card of a benchmark under its name; nothing where there is none."""
    return {"card": {**asdict(card), "flaws": list(card.flaws)}} if card else {}


def record_tuning(card: Mapping[str, Any]) -> dict[str, Any]:
    """How an adapter was made, without the hash of every text it was tuned on."""
    return {name: value for name, value in card.items() if name not in ("hashes", "left_out", "files")}


def record_counts(counts: TokenTable | None) -> dict[str, Any] | None:
    """Where the token frequencies came from, None where none were used."""
    if counts is None:
        return None
    return {
        "source": getattr(counts, "source", ""),
        "tokens": int(getattr(counts, "total", 0)),
        "tokenizer": counts.tokenizer_hash,
    }
