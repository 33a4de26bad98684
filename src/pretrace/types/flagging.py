"""What a flagging is concluded from besides its texts: histograms of many scores, and the test of the set."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bars:
    """A histogram: how many values lie in each of equal bins from `low` to `high`, the outermost with those beyond; of
    texts or documents in question (`every`), of the flagged ones among them, and of the known ones."""

    low: float
    high: float
    every: tuple[int, ...]
    flagged: tuple[int, ...]
    known: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SetTest:
    """The test of the set: do the asked documents, as a whole, score higher than the known ones?

    `p` is None where a control withholds it, and `withheld` says why. `above` asked documents lie above the line that
    `expected` of them would be above by chance (p-values of at most 5%). The test rejects at `level` from `least`
    documents on that stand above all known ones while the others are like these; None where not even all would do.

    `explained` is the drift of all asked documents, in standard deviations of the known ones, that would explain a
    rejection. `unseen` is the drift that the checks could not have excluded, and `spread` how many times as far as the
    known ones the asked documents lie below the middle. None in results of before version 0.2.
    """

    p: float | None
    level: float
    above: int
    expected: float
    least: int | None
    permutations: int
    withheld: str = ""
    explained: float | None = None
    unseen: float | None = None
    spread: float | None = None

    @property
    def rejects(self) -> bool:
        """Whether the set stands out."""
        return self.p is not None and self.p <= self.level
