"""The text in lower case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pretrace.rewrites.registered import rewrites
from pretrace.types import Proposer


@rewrites.add("lower")
@dataclass(frozen=True)
class Lower:
    """The text in lower case."""

    count = 1

    def __call__(self, texts: Sequence[str], proposer: Proposer | None, /) -> list[tuple[str, ...]]:
        return [(text.lower(),) for text in texts]
