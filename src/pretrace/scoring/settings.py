"""What scoring and evaluation are asked for, before a model is opened: scores, models beside the target, controls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pretrace.backends.settings import ModelSettings, split_revision
from pretrace.errors import ModelError
from pretrace.settings import (
    CONTROLS,
    MODEL,
    RUN,
    TEXTS,
    Option,
    check_ranges,
    is_kept,
    option,
    seed_option,
)

_DEFAULT_SCORES = "loss,ppl,zlib,min_k,min_k_plus_plus"
TARGET = (
    "--placebo {} is the target itself: name a model that cannot have seen the texts, such as an earlier checkpoint "
    "(NAME@REVISION), the base that the target was tuned from, or a sibling."
)
FITTED = "Detectors that are fitted"
"""The group of options on what detectors are fitted with."""
SET_ASIDE = Option("Shares of TEXTS that are not scored, as in tuning=0.3.", name="set-aside", panel=FITTED)
MEASURING = Option("How figures are measured, as in resamples=10000.", name="measuring", panel=RUN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The model in question, and how it and every other model of the run is opened."""

    model: str = option(
        help="A hub id, a model folder, a .gguf file, smollm2 (packaged), or a server: vllm:URL, "
        "completions:URL.",
        panel=MODEL,
        path="in",
        essential=True,
    )
    opening: ModelSettings = field(default_factory=ModelSettings)

    def with_revisions(self, named: Sequence[str | None]) -> tuple[tuple[str, str | None], ...]:
        """Models beside this one with their revisions; @REVISION alone is this one."""
        found = (split_revision(name) for name in named if name)
        return tuple((name or self.model, revision) for name, revision in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Companions:
    """What some scores need beside the target."""

    counts: Path | None = option(None, "Token counts for dc_pdd, made by `pretrace count`.", path="in")
    reference_model: str | None = option(
        None,
        "The smaller model that the score `ref` compares with; any --model value.",
        panel=MODEL,
        path="in",
        essential=True,
    )
    tuned: Path | None = option(
        None, "Adapter for fsd(...), made by `pretrace tune`.", panel=FITTED, path="in", essential=True
    )
    neighbors: str | None = option(
        None,
        "Who proposes words for neighbor: causal (the target itself), causal:MODEL, or masked:HUB_ID.",
        panel=FITTED,
        path="in",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSettings:
    """Which scores, what they need, and how the run is done; ExpressionError for a value out of its range.

    `reference` names labelled texts. `cache` False keeps nothing on disk.
    """

    scores: str = option(
        _DEFAULT_SCORES,
        'Expressions, comma-separated: "loss,min_k(k=0.1),dc_pdd". See `pretrace list`.',
        essential=True,
    )
    companions: Companions = field(default_factory=Companions)
    reference: str | None = option(
        None,
        "Labelled texts that na_pdd and probe are fitted on, about 100 members and 100 non-members; given as "
        "TEXTS is. None of them may be among TEXTS.",
        panel=FITTED,
        path="in",
        essential=True,
    )
    seed: int = seed_option()
    cache: bool = field(default_factory=is_kept)
    dry_run: bool = option(
        False,
        "Say how many requests and tokens the models will be asked, and stop: no text is read by a model.",
    )

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSettings:
    """How an evaluation is made: what is set aside, which controls, how intervals are drawn; ExpressionError for a
    value out of its range."""

    tune_share: float = SET_ASIDE.key(
        0.0,
        "For fsd(...): tune on the non-members of this share of TEXTS, score the rest (the paper: 0.3).",
        name="tuning",
        least=0.0,
        most=0.9,
    )
    method: str = option(
        "lora",
        "How to tune: lora, adalora or ia3, with settings where the paper's do not suit: "
        "\"lora(rank=8, epochs=1, on='members')\". See `pretrace list`.",
        panel=FITTED,
    )
    reference_share: float = SET_ASIDE.key(
        0.0,
        "Set this share of TEXTS aside as the reference of na_pdd and probe, score the rest.",
        name="reference",
        least=0.0,
        most=0.9,
    )
    placebo: str | None = option(
        None,
        "A model that never saw the members (an earlier checkpoint, a sibling); any --model value, NAME@REVISION, or "
        "@REVISION for the target's. Every score is computed with it too: one that does as well there does not detect "
        "membership.",
        panel=CONTROLS,
        path="in",
        essential=True,
    )
    labels: Path | None = option(
        None,
        "The --out of a `pretrace scan` of the same texts, which gives the labels: a text that the corpus contains "
        "is a member, one that it does not contain a non-member; the rest is left out. The column of labels is not "
        "read.",
        panel=TEXTS,
        path="in",
        essential=True,
    )
    resamples: int = MEASURING.key(
        1000, "Bootstrap resamples of documents for the intervals.", least=100, most=1_000_000
    )
    validation: float = MEASURING.key(
        0.2, "Share of documents on which accuracy thresholds are chosen.", least=0.05, most=0.95
    )

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsSettings:
    """Which models a run asks; `open_models` opens them. ModelError where a placebo is the target by its name and
    revision, or is named twice.

    `placebos` are those that the target is compared with: NAME, NAME@REVISION, @REVISION of the target, or None.
    `several` says that any number of them is wanted side by side, as by an audit; otherwise there is at most one.
    `second` adds the packaged model where none is named.
    """

    target: Target
    companions: Companions = field(default_factory=Companions)
    placebos: Sequence[str | None] = ()
    several: bool = False
    second: bool = False
    cache: bool = field(default_factory=is_kept)

    def __post_init__(self) -> None:
        at = self.placebos_at
        if (self.target.model, self.target.opening.revision) in at:
            raise ModelError(TARGET.format(self.target.model))
        if len(set(at)) < len(at):
            raise ModelError(f"--placebo names {max(at, key=at.count)[0]} twice: name each model once.")

    @property
    def placebos_at(self) -> tuple[tuple[str, str | None], ...]:
        """The placebos that are named, each with its revision."""
        return self.target.with_revisions(self.placebos)

    @property
    def roles(self) -> dict[str, str]:
        """What the models that scores ask are opened from, by the names that views use; a tuned one is the target."""
        found = {"target": self.target.model, "tuned": self.target.model}
        reference = self.companions.reference_model
        return found | ({"reference": reference} if reference else {})

    @property
    def named(self) -> tuple[str, ...]:
        """What every model is opened from."""
        return (*self.roles.values(), *(name for name, _ in self.placebos_at))
