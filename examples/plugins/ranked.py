"""A verdict test, the rank of one text among others of its kind, and the section of its report."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from markupsafe import Markup

from pretrace.registry import test_pages, tests
from pretrace.report.frame import Section
from pretrace.report.verdict import TestPage
from pretrace.scoring.plan import Models
from pretrace.types import Backend, Check, Corpus, Doubles, Verdict
from pretrace.verdicts.frame import Numbers, Test, Tested, TestWording, verdict
from pretrace.verdicts.outcome import ExcessOverSecondModel, second_model_multiple
from pretrace.verdicts.reading import read_scores
from pretrace.verdicts.settings import TestSettings


def rank(values: Doubles) -> float:
    """The share of texts, the first one among them, that have at least its value."""
    return float(np.mean(values >= values[0]))


@tests.add("ranked")
@dataclass(frozen=True, eq=False, kw_only=True)
class Ranked(Test[Doubles]):
    """A text among others, by its mean log-probability."""

    name: ClassVar[str] = "ranked"
    others: Corpus

    @property
    def texts(self) -> Sequence[str]:
        return [one.text for one in (*self.corpus.texts, *self.others.texts)]

    def read(self, model: Backend, stage: str) -> Doubles:
        how = {"stage": stage, "watch": self.watch, "cache": self.settings.cache}
        return read_scores(replace(self.models, target=model), "loss", self.texts, **how).values

    def numbers(self, values: Doubles) -> Numbers:
        return {"value": values}

    @classmethod
    def tested(cls, numbers: Numbers, *, draws: int, seed: int) -> Tested:
        return Tested(p=rank(numbers["value"]), units=len(numbers["value"]))

    @classmethod
    def beyond(cls, own: Numbers, other: Numbers, *, draws: int, seed: int) -> ExcessOverSecondModel:
        # what is taken off follows from the controls alone, which nobody suspects
        x, y = ((one - one[1:].mean()) / one[1:].std() for one in (own["value"], other["value"]))
        d = second_model_multiple(float(np.mean(x[1:] * y[1:])))
        return ExcessOverSecondModel(rank(x - d * y) if np.isfinite(d) else 1.0, d)

    def checks(self, values: Doubles) -> tuple[Check, ...]:
        enough = len(values) * self.settings.level >= 1
        words = f"With {len(values)} texts the smallest p is {1 / len(values):.3g}."
        return (
            Check(
                "enough",
                "There are enough texts",
                "passed" if enough else "failed",
                words,
                "Give more texts.",
            ),
        )

    def words(self, values: Doubles) -> TestWording:
        return TestWording(
            unit="text",
            of=self.corpus.name,
            question=f"Was {self.models.target.name} trained on {self.corpus.name}?",
            compared=("The text is compared with the others, by how likely the model finds each.",),
            hypothesis="The text is exchangeable with the others.",
            assumption="It holds if the text differs from the others in nothing but training.",
            statistic="rank of the text's mean log-probability",
            effect_unit="ranks",
            preferred="the text",
        )


def ranks(found: Verdict) -> Section:
    """The section: how many texts there are, with the one that may stand out."""
    return Section("Ranks", "ranks", Markup("<p>{} texts were ranked.</p>").format(found.units))


@test_pages.add("ranked")
class RankedPage(TestPage):
    """What the report of this test has of its own."""

    sections = (ranks,)


def ranked(text: Corpus, others: Corpus, models: Models) -> Verdict:
    """The verdict on a corpus of one text; `models.placebos` are models that cannot have seen it."""
    return verdict(Ranked(corpus=text, others=others, models=models, settings=TestSettings()))
