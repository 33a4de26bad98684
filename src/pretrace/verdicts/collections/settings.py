"""What a test among control collections is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from pretrace.auditing.settings import GENERATOR
from pretrace.registry import require
from pretrace.settings import option
from pretrace.types.audit import COMPARED
from pretrace.verdicts.settings import TEST, TestSettings

Value = Literal["auto", "alone", "residual", "generated"]
FEWEST_DOCUMENTS = 5
"""Documents a collection needs: below, its mean says too little, and one odd document decides its rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionSettings(TestSettings):
    """How a collection is ranked among others; ExpressionError for a value out of its range.

    `value` is what a document counts with: its score "alone"; the "residual" beyond what reference models and the
    text itself predict of it; or how far the true text is above what a model "generated" in its place. "auto" is
    the residual with reference models and alone without. `score` is "" for the mean log-probability. The others are
    the generator's: `method` "none" takes it as it is, "lora" tunes it on a part of each collection, for each apart.
    """

    value: Value = option(
        "auto",
        "What a document counts with: alone (its score), residual (beyond what --reference-model predicts), "
        "generated (true text less what --generator wrote instead), or auto: residual with a reference model, else "
        "alone. Choose before you look at a result.",
        panel=TEST,
        essential=True,
    )
    score: str = option(
        "", "Score a text is read with; loss unless given. Choose before you look at a result.", panel=TEST
    )
    documents: int = option(
        100,
        "Documents taken of each collection, at most; all give as many as the smallest one has.",
        panel=TEST,
        least=FEWEST_DOCUMENTS,
        essential=True,
    )
    method: str = option(
        "none",
        "How the generator is tuned for --value generated, for each collection apart on half of its pieces: none "
        "(as it is), lora, or an expression as for `pretrace tune`.",
        panel=COMPARED,
    )
    tokens: int = option(
        64,
        "Tokens of a piece for --value generated; the second half is written anew.",
        panel=COMPARED,
        least=8,
    )
    snippets: int = option(
        4,
        "Pieces of a document for --value generated, at most.",
        name="max-snippets",
        panel=COMPARED,
        least=1,
    )

    def __post_init__(self) -> None:
        TestSettings.__post_init__(self)
        names = get_args(Value)
        require(self.value in names, f"--value is one of {', '.join(names)}, found {self.value!r}.")

    def chosen(self, references: int, *, generator: bool) -> Value:
        """What documents count with, given how many reference models there are and whether there is a generator.

        ExpressionError where one of the models is missing, or was named and is not asked.
        """
        value = self.value
        if value == "auto":
            value = "residual" if references else "alone"
        require(
            value != "residual" or references > 0,
            "--value residual takes off what reference models predict: name one of another family with "
            "--reference-model, or take --value alone.",
        )
        require(value != "alone" or not references, "--value alone asks no --reference-model: leave it out.")
        require(
            value != "generated" or generator,
            "--value generated needs a model with weights here that writes texts: name one with --generator.",
        )
        require(value == "generated" or not generator, f"--generator has no use with --value {value}.")
        return value

    @property
    def tuning(self) -> str:
        """How the generator is tuned, as an expression; "none" for one that is not."""
        return GENERATOR if self.method.strip() == "lora" else self.method
