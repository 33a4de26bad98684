"""What lies beside the weights of every model that is trained here: texts, hashes, versions."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Iterable
from pathlib import Path

from pretrace import __version__
from pretrace.types import Text

TEXTS = "texts.jsonl"

_PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "numpy")


def write_texts(folder: Path, texts: Iterable[Text]) -> None:
    """One line a text in `texts.jsonl`: id, text, label (1, 0 or null) and group."""
    lines = (json.dumps(_row(text), ensure_ascii=False) + "\n" for text in texts)
    # Half a surrogate pair becomes its escape, which JSON reads back as it was.
    (folder / TEXTS).write_bytes("".join(lines).encode("utf-8", "backslashreplace"))


def read_texts(folder: Path) -> tuple[Text, ...]:
    """The texts that `write_texts` wrote, character by character; ValueError or KeyError where it did not."""
    lines = (folder / TEXTS).read_bytes().decode().split("\n")
    return tuple(_text(json.loads(line)) for line in lines if line)


def _row(text: Text) -> dict[str, str | int | None]:
    label = None if text.member is None else int(text.member)
    return {"id": text.id, "text": text.text, "label": label, "group": text.document}


def _text(row: dict[str, str | int | None]) -> Text:
    member = None if row["label"] is None else bool(row["label"])
    return Text(str(row["id"]), str(row["text"]), member, str(row["group"]))


def file_hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file in the folder, by name."""
    return {path.name: _hash(path) for path in sorted(folder.iterdir()) if path.is_file()}


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def versions(*more: str) -> dict[str, str]:
    """The versions of Python and of every package that had a hand in the weights."""
    packages = {package: importlib.metadata.version(package) for package in (*_PACKAGES, *more)}
    return {"pretrace": __version__, "python": platform.python_version(), **packages}
