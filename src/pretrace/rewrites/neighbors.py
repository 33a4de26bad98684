"""Copies of the text in which a model replaced some words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pretrace.registry import require, rewrites
from pretrace.types import Proposer


@rewrites.add("neighbors")
@dataclass(frozen=True)
class Neighbors:
    """`m` copies of the text in which a model replaced about `share` of the tokens."""

    m: int = 25
    share: float = 0.15
    seed: int = 0

    def __post_init__(self) -> None:
        require(self.m >= 1, f"neighbor: m must be at least 1, found {self.m}.")
        require(0 < self.share <= 1, f"neighbor: share must be above 0 and at most 1, found {self.share}.")
        require(self.seed >= 0, f"neighbor: seed must be 0 or more, found {self.seed}.")

    @property
    def name(self) -> str:
        """The expression that makes this rewrite, for a `View`."""
        return f"neighbors(m={self.m}, share={self.share}, seed={self.seed})"

    @property
    def count(self) -> int:
        """So many forms of each text."""
        return self.m

    def __call__(self, texts: Sequence[str], proposer: Proposer | None, /) -> list[tuple[str, ...]]:
        assert proposer is not None  # looked at before any model is asked
        return proposer.propose(texts, number=self.m, share=self.share, seed=self.seed)
