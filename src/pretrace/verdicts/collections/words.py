"""What the report says of a collection ranked among others, for a reader without statistics."""

from __future__ import annotations

from dataclasses import dataclass

from pretrace.types import Check, Situation
from pretrace.verdicts.collections.gathering import Gathered
from pretrace.verdicts.collections.ranking import Ranked
from pretrace.verdicts.collections.settings import Value

HYPOTHESIS = (
    "The collections are exchangeable: nothing, training on it included, sets the suspect collection apart from the "
    "controls."
)
ASSUMPTION = (
    "The p-value is exact if the collections are exchangeable, that is, if before anyone asked the model each of them "
    "could as well have been the suspect one: the same site, kind of text, length and period, chosen without looking "
    "at the model. The check of the texts can show that this fails; it cannot show that it holds."
)
_COUNTED: dict[Value, str] = {
    "alone": "how well the model predicts the document",
    "residual": "how well the model predicts the document, less what other models and the text itself let one expect",
    "generated": "how much better the model predicts the true text than what a small model wrote in its place",
}


def unit(score: str, value: Value, references: bool) -> str:
    """The unit of the effect."""
    what = "nats a token" if score == "loss" else f"of {score}"
    if value == "generated":
        what += ", true less generated text"
    return f"{what}, beyond the prediction" if references else what


@dataclass(frozen=True, slots=True)
class Story:
    """The sentences of the first page: the model, the suspect collection, the number of controls and of documents
    each, what a document counts with, and whether reference models take part."""

    model: str
    name: str
    controls: int
    documents: int
    value: Value
    references: bool

    @property
    def counted(self) -> str:
        """What a document counts with, in words."""
        words = _COUNTED[self.value]
        if self.value == "generated" and self.references:
            words += ", less what other models let one expect"
        return words

    @property
    def statistic(self) -> str:
        """The statistic of the test."""
        return f"Rank of the collection's mean value among all; the value of a document is {self.counted}."

    def compared(self, found: Ranked) -> tuple[str, ...]:
        """What was compared, and what was seen."""
        place = found.above + 1
        rank = f"the highest of all {self.controls + 1}"
        if place > 1:
            rank = f"number {place} from the top, of {self.controls + 1}"
        return (
            f"{self.name} was compared with {self.controls} other collections of the same kind, with {self.documents} "
            f"documents of each. All went through the same steps. For every document the test takes {self.counted}, "
            "and for every collection the mean of that.",
            "A model knows texts better that it has read in training. If it was not trained on this collection, or was "
            "trained on it no more than on the others, each of the collections has the same chance of being the "
            f"highest. {self.name} is {rank}.",
        )

    def trust(self, found: Ranked) -> tuple[str, ...]:
        """How far the answer goes, and what was seen beside it."""
        made = [
            "What all of these collections share, such as their kind and language, the errors of other models, or that "
            "the model likes such texts, is the same on both sides and falls out. If the model was trained on some of "
            "the control collections too, that hides training; it does not make false findings more frequent."
        ]
        if found.left_two_out is not None:
            made.append(
                "A second count, which leaves out each pair of control collections in turn, guarantees "
                f"p = {found.left_two_out.p:.3g}. It is shown beside the rank and does not decide."
            )
        return tuple(made)


def no_placebo() -> Check:
    """The check of a placebo where none was given."""
    return Check(
        "placebo",
        "A model that cannot have seen the texts does not rank them as high",
        "not run",
        "No such model was given. The test is valid without one; it would show whether this collection is easier than "
        "the others for any model.",
        "Name a model that cannot have seen the texts with --placebo.",
    )


def situation(together: Gathered) -> Situation:
    """What the one who asks has, as far as this test knows."""
    own = [one for one in together.documents if one.collection == 0]
    dated = sum(bool(one.dates) for one in own)
    return Situation(documents=len(own), collections=len(together.names) - 1, dated=dated)
