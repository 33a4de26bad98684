"""What marking is asked for, and the tests of what was marked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pretrace.errors import ExpressionError
from pretrace.registry import require
from pretrace.settings import cache_option, check_ranges, option, seed_option
from pretrace.verdicts.marking.variants import MOST_CHOICES

VARIANTS = "Variants (one kind)"
"""The group of options on where variants come from."""
Lot = Callable[[int], int]
"""Draws a number from 0 to n - 1, all equally likely, for a given n."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkSettings:
    """Where the variants of a text come from; exactly one kind. ExpressionError for none or two, and for a value out of
    its range. `seed` is that of the models that make variants: the draw of what is published has none."""

    variant_column: tuple[str, ...] = option(
        (),
        "A column of TEXTS with another version of each text; may be given more than once.",
        panel=VARIANTS,
        essential=True,
    )
    variant_texts: tuple[str, ...] = option(
        (),
        "A file with another version of each text under the same id; may be given more than once.",
        panel=VARIANTS,
        path="in",
        essential=True,
    )
    rewriter: str | None = option(
        None,
        "A model that follows instructions and paraphrases each text: any --model value, or server:URL#MODEL.",
        panel=VARIANTS,
        path="in",
        essential=True,
    )
    words: str | None = option(
        None,
        "A model that proposes other words here and there: causal:MODEL, masked:HUB_ID, or causal for --model.",
        panel=VARIANTS,
        path="in",
        essential=True,
    )
    canary: bool = option(
        False,
        "Add one sentence to each text, whose last word is drawn out of --choices. Works for servers that give text "
        "only, too.",
        panel=VARIANTS,
        essential=True,
    )
    choices: int = option(8, "Words to draw from, for --canary.", panel=VARIANTS, least=2, most=MOST_CHOICES)
    variants: int = option(
        1, "Variants beside the original, for --rewriter and --words.", panel=VARIANTS, least=1, most=50
    )
    share: float = option(0.1, "Share of the tokens that --words may change.", panel=VARIANTS)
    original: bool = option(
        True,
        "Never publish the original of --rewriter or --words: all variants are then made by one model. Whether that "
        "shows training better was not measured.",
        name="no-original",
        panel=VARIANTS,
    )
    seed: int = seed_option()
    cache: bool = cache_option()

    def __post_init__(self) -> None:
        check_ranges(self)
        require(0 < self.share <= 1, f"--share lies between 0 and 1, found {self.share}.")
        given = self.given
        if len(given) != 1:
            found = "none" if not given else " and ".join(given)
            raise ExpressionError(
                "variants come from one kind of source: --variant-column, --variant-texts, --rewriter, --words or "
                f"--canary; found {found}."
            )
        if not self.original and given[0] not in ("--rewriter", "--words"):
            raise ExpressionError("--no-original is for --rewriter and --words: leave it away.")
        if not self.original and self.variants < 2:
            raise ExpressionError("--no-original needs --variants 2 or more, to draw from.")

    @property
    def given(self) -> list[str]:
        """The options that name a source of variants, of those that were given."""
        sources = {
            "--variant-column": self.variant_column,
            "--variant-texts": self.variant_texts,
            "--rewriter": self.rewriter,
            "--words": self.words,
            "--canary": self.canary,
        }
        return [name for name, value in sources.items() if value]
