"""The settings of an audit, checked before anything is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pretrace.baselines import classifiers
from pretrace.cache import Draw
from pretrace.registry import require
from pretrace.results.wording import say
from pretrace.settings import check_ranges, is_kept, option
from pretrace.tuning.plan import methods
from pretrace.tuning.planting import FULL_RATE, LORA_RATE, PlantMethod, PlantSettings
from pretrace.types import GENERATING, Sampling, TextClassifier
from pretrace.verdicts.audit.snippets import SnippetSettings
from pretrace.verdicts.settings import POWER_BATCH

PRETRACE, PAPER, RELEASE, ORIGINAL = "pretrace", "paper", "release", "original"
PROCEDURES = {
    PRETRACE: "one value a document and one permutation test: against control documents, or against placebos (the "
    "default)",
    PAPER: "post-hoc dataset inference as its paper says: 10 seeds, t-test of two differences, 1 - Π(1 - p)",
    RELEASE: "post-hoc dataset inference as its authors' published code does it, where that differs",
    ORIGINAL: "dataset inference without calibration: linear regression, t-test (Maini et al. 2024)",
}

DRAWS = 10_000
"""Draws of the null distribution."""
ALONE = "min_k_plus_plus(k=0.2)"
"""The score of a document under the target alone: of five the one with the most power (docs/audit.md)."""

_TUNED = (
    "lora(rank=32, epochs={}, learning_rate={}, schedule='linear', warmup=0.03, weight_decay=0.0, on='all')"
)
GENERATOR = _TUNED.format(6, 0.0005)
"""How the generator is tuned unless told otherwise."""
PAPER_GENERATOR = _TUNED.format(100, 0.0002)
"""The paper's setting (appendix D.1), for an 8-billion-parameter model on graphics processors."""
LIGHT, HEAVY = 5e-5, 5e-4
"""The learning rates that --power tries, each text read once: as late in a training, and as in its midst."""


def exposures(method: PlantMethod = "full") -> tuple[PlantSettings, ...]:
    """The exposures that --power tries, the lightest first: half of the documents read once, at either rate."""
    scale = LORA_RATE / FULL_RATE if method == "lora" else 1.0
    return tuple(
        PlantSettings(epochs=1, batch=POWER_BATCH, method=method, learning_rate=rate * scale)
        for rate in (LIGHT, HEAVY)
    )


AUDIT, BESIDE = "Audit", "Models beside the target, and controls"
"""Groups of options."""


def _names(written: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in written.split(",") if name.strip())


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """How an audit is made; ExpressionError for a value out of its range or a name that does not exist.

    `sampling` is how the generator writes, and the first of the `classifiers` calibrates. `power` holds the exposures
    that are tried, the lightest first (see `exposures`). `statements` are what the one who asks says, for the report:
    `requested_by`, `placebo` (how it is known that it never saw the texts), `controls` (where they come from).
    """

    procedure: str = option(
        PRETRACE,
        "The procedure that decides: pretrace, paper, release or original. Choose it before you see a result.",
        panel=AUDIT,
        essential=True,
    )
    also: tuple[str, ...] = option(
        (), "Further procedures to show, comma-separated; they decide nothing.", panel=AUDIT, read=_names
    )
    level: float = option(0.05, "The level of the test.", panel=AUDIT, essential=True)
    snippets: SnippetSettings = field(default_factory=SnippetSettings)
    sampling: Sampling = field(default_factory=Sampling)
    method: str = GENERATING.key(
        GENERATOR,
        'How the generator is tuned, as for `tune`, "paper" for the paper\'s 100 epochs, or "none".',
        read=lambda written: {"lora": GENERATOR, "paper": PAPER_GENERATOR}.get(written, written),
        written="lora",
    )
    classifiers: tuple[str, ...] = option(
        ("words", "form"),
        "Text-only classifiers, comma-separated: words, form, gpt2, gpt2(preset='paper'), embeddings, "
        "pretrained.",
        panel=BESIDE,
        read=classifiers.split,
        written="words,form",
    )
    power: tuple[PlantSettings, ...] = ()
    statements: Mapping[str, str] = field(default_factory=dict)
    cache: bool = field(default_factory=is_kept)
    draws: ClassVar[int] = DRAWS
    learners: Mapping[str, TextClassifier] = field(init=False, repr=False, compare=False)
    """The classifiers themselves, by name."""

    def draw(self, seed: int) -> Draw:
        """How the generator continues a prefix: as far as the true suffix goes."""
        tokens = self.snippets.tokens
        return Draw(tokens - tokens // 2, self.sampling, seed)

    def __post_init__(self) -> None:
        for name in (self.procedure, *self.also):
            known = ", ".join(PROCEDURES)
            require(name in PROCEDURES, f"no procedure is called {name!r}; there are {known}.")
        decides = self.procedure == PRETRACE
        require(not (decides and PRETRACE in self.also), say("asked.also"))
        require(decides or not self.power, say("asked.power", procedure=self.procedure))
        require(0 < self.level < 0.5, f"the level of a test is between 0 and 0.5, found {self.level}.")
        check_ranges(self)
        _ = self.draw(0)  # whose own checks are of the sampling
        if self.method not in ("none", GENERATOR):
            methods.make(self.method)
        require(len(self.classifiers) > 0, "an audit needs a classifier of texts, such as words.")
        object.__setattr__(self, "learners", classifiers.several(self.classifiers))
