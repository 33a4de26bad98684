"""What an audit's conclusion says: the words for `verdicts/outcome.py`, which concludes by the rule of all verdicts."""

from __future__ import annotations

from dataclasses import dataclass

from pretrace.types import Answer, Outcome, Power
from pretrace.verdicts.outcome import Found

ACCUSING = ("placebo", "controls", "stand-in", "mixture", "spread", "kinds")
"""Checks that withhold an accusation alone: each asks whether something besides training makes the suspect documents
look known, and that hides no training."""
INFORMING = ("power",)
"""The check of the power: the rule itself asks for it."""


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked: was `model` trained on `corpus`? At this `level`; `trainable` says whether a copy of the model
    could be trained, to measure power."""

    corpus: str
    model: str
    level: float
    trainable: bool = True


def found(answer: Answer, power: Power | None, question: Question) -> Found:
    """What the deciding test gave, with the power of the exposure that decides, as the rule wants it.

    An audit asks no second model by the name of "second": control documents and placebos are its own controls.
    """
    corpus, model = question.corpus, question.model
    said: dict[Outcome, str] = {
        "consistent": f"The predictions of {model} on {corpus} are consistent with training on these texts, or on "
        "copies of them.",
        "nothing": f"Nothing was found: {model} does not know {corpus} better than texts it cannot have seen.",
    }
    return Found(
        model=model,
        of=corpus,
        level=question.level,
        p=answer.p,
        effect=answer.effect,
        effect_unit=answer.unit,
        planted=power,
        accusing=ACCUSING,
        informing=INFORMING,
        noun="audit",
        unit="document",
        trainable=question.trainable,
        said=said,
    )
