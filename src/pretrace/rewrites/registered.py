"""The registry every rewrite adds itself to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pretrace.registry import Registry
from pretrace.types import Proposer


class Rewrite(Protocol):
    """From texts to the forms a model is to read, `count` of each text."""

    @property
    def count(self) -> int: ...

    def __call__(self, texts: Sequence[str], proposer: Proposer | None, /) -> list[tuple[str, ...]]: ...


rewrites: Registry[Rewrite] = Registry("rewrite")
