"""What every test of this room is asked for: the models, the score that reads texts, the level, and planting."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any, Literal

from pretrace.registry import require
from pretrace.settings import (
    CONTROLS,
    MODEL,
    Option,
    check_ranges,
    is_kept,
    option,
    requested_option,
    statements_of,
)
from pretrace.verdicts.register import LEAST_DRAWS, MOST_DRAWS


def input_option(default: Any = MISSING, help: str = "", panel: str = "") -> Any:
    """The field for what is read: a text, a folder, a model; it stands in the short help."""
    return option(default, help, panel=panel, path="in", essential=True)


TEST = "Test"
"""The group of options on the test itself."""
POWER = Option("How the copy for --power is trained, as in epochs=32.", name="power-args", panel=CONTROLS)
POWER_BATCH = 4
"""Windows a step when texts are planted: with few texts and steps, larger ones move a model less than real training."""
ALONE: str = "loss"
BESIDE: str = "ref(difference=True)"
"""The score of a text without and with a reference model: the mean log-probability, and that less the reference's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestSettings:
    """How a test is made; ExpressionError for a value out of its range."""

    level: float = option(0.05, "The level of the test.", panel=TEST, essential=True)
    draws: int = option(
        10_000, "Draws of the null distribution.", panel=TEST, least=LEAST_DRAWS, most=MOST_DRAWS
    )
    power: bool = option(
        False,
        "Measure what this test would have seen: train a copy of the target on the texts and test the copy (needed "
        "for “nothing shown”).",
        panel=CONTROLS,
        essential=True,
    )
    power_epochs: int = POWER.key(1, "How often the copy reads the texts.", name="epochs", least=1, most=1000)
    power_method: Literal["full", "lora"] = POWER.key(
        "full", "How the copy is trained: full trains all weights, lora an adapter.", name="method"
    )
    cache: bool = field(default_factory=is_kept)

    __test__ = False  # no test of pytest

    def __post_init__(self) -> None:
        require(1e-9 <= self.level < 1, f"--level lies between 0 and 1, not below 1e-9, found {self.level}.")
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsBeside:
    """Models beside the target, what is said of them, and where the result goes."""

    reference_model: str | None = input_option(
        None,
        "A model of another family: the score is corrected for what this model also finds likely. Choose it before "
        "you look at a result; any --model value.",
        panel=MODEL,
    )
    placebo: tuple[str, ...] = input_option(
        (),
        "A second model, which cannot have seen the texts; any --model value, or NAME@REVISION. If it finds the same, "
        "nobody is accused. May be given more than once. Default: smollm2, unless that is the model in question.",
        panel=CONTROLS,
    )
    placebo_note: str = option(
        "",
        "How the placebo is known not to have seen the texts, for the report.",
        panel=CONTROLS,
        states="placebo",
    )
    requested_by: str = requested_option(TEST)
    out: Path = option(
        help="Folder for report.html, result.json and every table; a result of that kind that is already there is "
        "replaced.",
        panel=TEST,
        path="out",
        essential=True,
    )

    @property
    def statements(self) -> dict[str, str]:
        """What the one who asks says, for the report."""
        return statements_of(self)
