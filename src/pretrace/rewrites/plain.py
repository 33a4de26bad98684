"""The text as it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pretrace.rewrites.registered import rewrites
from pretrace.types import Proposer


@rewrites.add("plain")
@dataclass(frozen=True)
class Plain:
    """The text as it stands."""

    count = 1

    def __call__(self, texts: Sequence[str], proposer: Proposer | None, /) -> list[tuple[str, ...]]:
        return [(text,) for text in texts]
