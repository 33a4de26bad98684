"""How texts are flagged, settled before anything is looked at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pretrace.registry import require
from pretrace.scoring.plan import ScorePlan
from pretrace.settings import cache_option, check_ranges, option, seed_option
from pretrace.statistics.conformal import METHODS

SCORE = "min_k_plus_plus"
"""Of the scores that need nothing but the target it survived its controls most often on planted domains: in 7 of
8, `loss` in 5 (benchmarks/results/planted_domains.json). `ref` with an earlier checkpoint survived in 8 of 8."""
FLAGGING = "Flagging"
HIGHEST = 0.5
LOWEST_LEVEL = 0.001
"""What the permutations of a test of the set can still show."""


@dataclass(frozen=True, slots=True)
class FlagSettings:
    """How texts are flagged; ExpressionError for a value out of its range or a score that is fitted on labels.

    `fdr` is about the flags and `level` about the test of the whole set. `method` is "bh", "by", or "auto", which is
    "bh". `randomised` breaks ties of documents by lot instead of against the asked one. `seed` decides which texts of
    a document are drawn, and every other draw. `cache` False keeps no traces on disk.
    """

    score: str = option(
        SCORE,
        "The score that decides, chosen beforehand: any that is not fitted on labels. With an earlier checkpoint "
        "of the model at hand: ref, and --reference-model CHECKPOINT.",
        panel=FLAGGING,
        essential=True,
    )
    fdr: float = option(
        0.05,
        "The share of the flagged texts (documents, where they have several texts) that may be false, on average.",
        panel=FLAGGING,
        essential=True,
    )
    level: float = option(
        0.05,
        "How often the test of the TEXTS as a whole may say that they stand out where none was seen.",
        panel=FLAGGING,
        essential=True,
    )
    method: Literal["auto", "bh", "by"] = option(
        "auto",
        "How that rate is kept: bh (documents are independent of each other), by (they depend on each other; "
        "stricter), or auto: bh.",
        panel=FLAGGING,
    )
    randomised: bool = option(
        False, "Break ties of scores at random instead of against the text.", panel=FLAGGING
    )
    seed: int = seed_option()
    cache: bool = cache_option()
    plan: ScorePlan = field(init=False, repr=False, compare=False)
    """The score, parsed."""

    def __post_init__(self) -> None:
        require(
            0 < self.fdr <= HIGHEST, f"--fdr is a rate above 0 and up to {HIGHEST:g}, found {self.fdr:g}."
        )
        require(
            LOWEST_LEVEL <= self.level <= HIGHEST,
            f"--level lies between {LOWEST_LEVEL:g} and {HIGHEST:g}, found {self.level:g}.",
        )
        require(
            self.method in ("auto", *METHODS),
            f"--method is auto, {' or '.join(METHODS)}, found {self.method!r}.",
        )
        check_ranges(self)
        plan = ScorePlan.parse(self.score)
        object.__setattr__(self, "plan", plan)
        names = list(plan.scores)
        require(
            len(names) == 1,
            f"one score decides which texts are flagged, found {len(names)} ({', '.join(names)}): choose one before "
            "looking.",
        )
        require(
            "labelled" not in plan.uses,
            f"{names[0]} is fitted on known members, and flagging is for those who have none: use {SCORE}, loss, or "
            "ref with --reference-model.",
        )
