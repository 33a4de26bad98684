"""The sentences of a test of twins, for a reader without statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pretrace.scoring.plan import Models
from pretrace.statistics.signed_ranks import WIDEST
from pretrace.verdicts.twins.differences import Differences, Signs
from pretrace.verdicts.twins.pairs import EQUAL, Pairs
from pretrace.verdicts.twins.settings import TwinSettings

ASSUMPTION = (
    "For a model that did not read the texts, it is left to chance which of two versions it finds likelier, apart from "
    "what the texts and the reference models predict, and apart from a hidden bias of at most the factor that is named."
)
HYPOTHESIS = (
    "The model was not trained on the published versions: the sign of each difference is + with odds of "
    "at most Γ times "
    "those that texts and reference models predict."
)
STATISTIC = (
    "sum of the ranks of |difference| over the pairs whose published version has the higher score "
    "(Wilcoxon), signs drawn "
    "with the predicted chances"
)
NO_INFORMATION = (
    "Use pairs that differ less, such as the last draft before publication, "
    "or versions with the same length and layout."
)
NO_PLACEBO = (
    "No placebo was named. Authors change their drafts in a direction that language models like, so the result is only "
    "evidence next to a model that cannot have seen the texts."
)
THERE = "At least one model was named that cannot have seen the texts; the same test was made with it."
NAME_A_PLACEBO = (
    "Name a model that cannot have seen the texts with --placebo, such as one whose training ended before they were "
    "published."
)
LIKER_PLACEBO = (
    "Name reference models with --reference-model: what models that did not read the texts like about the published "
    "versions is then taken off."
)


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """What the sentences are about."""

    model: str
    pairs: Pairs
    own: Signs
    beside: Mapping[str, Signs]
    settings: TwinSettings


def gamma_of(one: Signs) -> str:
    """Γ* as a word: "none" where the test does not reject even without hidden bias."""
    if one.gamma is None:
        return "none"
    return "1,000,000 or more" if one.gamma >= WIDEST else f"{one.gamma:.2f}"


def withstood(told: Told) -> str:
    """p at Γ = 1 and Γ* in one sentence; neither is ever told without the other."""
    own, level = told.own, told.settings.level
    if own.gamma is None:
        return (
            f"p = {own.p:.3g} without any hidden bias (Γ = 1), which is above the level of {level:g}: there is no bias "
            "for the result to withstand (Γ* = none)."
        )
    return (
        f"p = {own.p:.3g} without any hidden bias (Γ = 1), and Γ* = {gamma_of(own)}: the result would stand "
        "even if, for "
        f"every pair, the odds that the model likes the published version better were {gamma_of(own)} times as high as "
        "texts and reference models predict. A larger hidden bias could explain it."
    )


def against(own: Signs, beside: Mapping[str, Signs]) -> str:
    """The target's Γ* beside those of the placebos."""
    shown = ", ".join(f"{name} {gamma_of(one)} (p = {one.p:.3g})" for name, one in beside.items())
    return (
        f"The result of the model in question withstands a hidden bias of Γ* = {gamma_of(own)} (p = {own.p:.3g}). The "
        f"same test with models that cannot have seen the texts gave: {shown}."
    )


def left_open(share: float, auc: float) -> str:
    """How much of the answer the texts alone give away."""
    return (
        f"For {share:.0%} of the pairs the texts alone do not settle which version has the higher score. They tell "
        f"published versions from drafts with an AUC of {auc:.2f} (0.5 is a coin, 1 is always right)."
    )


def compared(told: Told) -> tuple[str, ...]:
    """What was compared, and why."""
    return (
        f"{len(told.pairs):,} texts were compared with their own drafts, which were never published. Both "
        "versions have "
        "the same author and subject. A model that was trained on what was published should find the published "
        "version likelier than the draft; one that was not should not, apart from what the changes themselves bring.",
        f"The score {told.settings.score} of both versions was read under {told.model}. What reference models and the "
        "texts themselves (length, words, punctuation) predict of the difference was taken off. Then the signs of the "
        "differences were tested, larger differences counting more.",
    )


def trust(told: Told) -> tuple[str, ...]:
    """How far the answer can be trusted, in plain words."""
    said = [
        "A published version was polished, and models like polished texts. How much of that was missed "
        "cannot be known. "
        "So the report says how much hidden bias the result withstands: " + withstood(told)
    ]
    if told.beside:
        said.append(
            f"{against(told.own, told.beside)} Only a result that withstands more than each of these counts as "
            "evidence "
            "of training."
        )
    else:
        said.append(NO_PLACEBO)
    return tuple(said)


def notes(found: Differences, models: Models) -> tuple[str, ...]:
    """What was done on the way."""
    equal = sum(one.reason == EQUAL for one in found.pairs.skipped)
    said = [f"{equal:,} pairs were left out: {EQUAL}."] if equal else []
    if found.pairs.unit == "document":
        said.append(
            f"The {len(found.pairs):,} pairs belong to {len(found.target):,} documents; pairs of one document were "
            "averaged, and documents counted."
        )
    if models.placebos:
        said.append(
            "The effect is the mean difference of the model in question less that of the placebo with the lowest; "
            "nothing else is taken off it."
        )
    return tuple(said)
