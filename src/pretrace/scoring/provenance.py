"""What a run records of its circumstances, so that it can be repeated and checked."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Mapping
from typing import Any

from pretrace import __version__
from pretrace.corpora import TextStream
from pretrace.types import Corpus, Text

_PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scikit-learn")


def record_software() -> dict[str, str]:
    """Versions of pretrace, Python and the libraries that compute the numbers."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"pretrace": __version__, "python": platform.python_version(), "system": platform.platform()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def content_of(text: Text) -> bytes:
    """Id, text, label and group, each after its length in 8 bytes."""
    parts = [
        part.encode("utf-8", "surrogatepass") for part in (text.id, text.text, str(text.member), text.group)
    ]
    return b"".join(len(part).to_bytes(8, "little") + part for part in parts)


def texts_hash(texts: Iterable[Text]) -> str:
    """The SHA-256 of what texts contain (`content_of`), in their order."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(content_of(text))
    return digest.hexdigest()


def record_corpus(corpus: Corpus) -> dict[str, Any]:
    """Name, source, size and hash of the texts (ids, texts and labels, in order), and a benchmark's card."""
    documents = len({text.document for text in corpus.texts})
    return record_texts(corpus, len(corpus), documents, texts_hash(corpus.texts))


def record_texts(source: Corpus | TextStream, texts: int, documents: int, sha256: str) -> dict[str, Any]:
    """The same of texts that may not be in memory."""
    return {
        "name": source.name,
        "source": source.source,
        "texts": texts,
        "documents": documents,
        "sha256": sha256,
        "notes": list(source.notes),
        **({"card": source.card} if source.card else {}),
    }


def record_tuning(card: Mapping[str, Any]) -> dict[str, Any]:
    """How an adapter was made, without the hash of every text it was tuned on."""
    return {name: value for name, value in card.items() if name not in ("hashes", "left_out", "files")}


def record_counts(counts: Any) -> dict[str, Any] | None:
    """Where the token frequencies came from, None where none were used."""
    if counts is None:
        return None
    return {
        "source": getattr(counts, "source", ""),
        "tokens": int(getattr(counts, "total", 0)),
        "tokenizer": counts.tokenizer_hash,
    }
