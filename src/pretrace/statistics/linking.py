"""Documents that share a text belong together: whatever divides a corpus must not cut between them."""

from __future__ import annotations

from collections.abc import Sequence

from pretrace.types import Text


def linked(texts: Sequence[Text]) -> dict[str, str]:
    """For each document the first, by name, of those it shares a text with, directly or through others.

    Texts that differ only in white space at their ends count as one; empty texts link nothing.
    """
    parent = {text.document: text.document for text in texts}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = name = parent[parent[name]]
        return name

    first: dict[str, str] = {}
    for text in texts:
        content = text.text.strip()
        if content:
            here, there = root(text.document), root(first.setdefault(content, text.document))
            parent[max(here, there)] = min(here, there)
    return {name: root(name) for name in parent}
