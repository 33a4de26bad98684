"""One value a document, and the test on these values: samples of one document are not independent, documents are.

The values depend on the design. "controls": how much likelier the target finds a document than the placebo does, in
suspect and in control documents. "differences": the same of what stands there, less the same of what a generator wrote
in its place, in suspect and in control documents. "placebos": that difference in suspect documents alone, less a
margin, since a target that only knows the domain better than the placebo leans towards true text.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pretrace.statistics.intervals import difference_interval, mean_interval, standardised
from pretrace.statistics.permutation import PermutationTest, sign_flip_test, two_sample_test
from pretrace.types import Answer, Doubles, Null
from pretrace.verdicts import outcome

DRAWS = 10_000
PAIRED = "sign-flip permutation test of document means, less a margin of {margin:.3g}"
UNPAIRED = "two-sample permutation test of document means"


@dataclass(frozen=True, slots=True, eq=False)
class DocumentValues:
    """The value of each suspect document, and of each control document where there are any.

    Without control documents `margin` has been taken off the values. `unit` names what they are measured in.
    """

    documents: tuple[str, ...]
    values: Doubles
    heldout_documents: tuple[str, ...] = ()
    heldout_values: Doubles = field(default_factory=lambda: np.zeros(0))
    margin: float = 0.0
    unit: str = ""

    @property
    def paired(self) -> bool:
        """Whether a value is a difference that is compared with 0, since there are no control documents."""
        return not self.heldout_documents

    @property
    def sides(self) -> tuple[Doubles, Doubles]:
        """The values of suspect and of control documents."""
        return self.values, self.heldout_values

    @property
    def within(self) -> Doubles:
        """All values less the mean of their side."""
        return np.concatenate([side - side.mean() for side in self.sides if len(side)])

    @property
    def spread(self) -> float:
        """The standard deviation between documents of one side."""
        return float(self.within.std())


def permuted(found: DocumentValues, *, seed: int = 0, draws: int = DRAWS) -> PermutationTest:
    """The one-sided test that the suspect documents' values lie above 0, or above those of control documents."""
    if found.paired:
        return sign_flip_test(found.values, flips=draws, seed=seed)
    return two_sample_test(found.values, found.heldout_values, permutations=draws, seed=seed)


def p_value(found: DocumentValues, *, seed: int = 0, draws: int = DRAWS) -> float:
    """The p-value of `permuted`."""
    return permuted(found, seed=seed, draws=draws).p


def reversed_p(found: DocumentValues, *, seed: int = 0, draws: int = DRAWS) -> float:
    """The p-value of the opposite, that the values lie below by more than the margin: training cannot explain that."""
    values = -found.values - 2 * found.margin
    turned = DocumentValues(found.documents, values, found.heldout_documents, -found.heldout_values)
    return p_value(turned, seed=seed, draws=draws)


def answer(found: DocumentValues, *, pieces: int, seed: int, facts: dict[str, object]) -> Answer:
    """The default procedure's answer on these values, of so many pieces of suspect text."""
    if found.paired:
        statistic = PAIRED.format(margin=found.margin)
        effect, size = mean_interval(found.values), standardised(found.values)
    else:
        statistic = UNPAIRED
        effect = difference_interval(found.values, found.heldout_values)
        size = standardised(found.values, found.heldout_values)
    return Answer(
        procedure="pretrace",
        p=p_value(found, seed=seed),
        statistic=statistic,
        documents=len(found.documents),
        pieces=pieces,
        effect=effect,
        unit=found.unit,
        standardised=size,
        facts={
            "permutations": DRAWS,
            "margin": found.margin,
            "control_documents": len(found.heldout_documents),
            **facts,
        },
    )


def null_of(found: DocumentValues, *, level: float, seed: int = 0) -> Null:
    """The distribution of the statistic that `answer` tested, as a histogram."""
    said = "mean over its standard error, skewness taken out"
    return outcome.null_of(permuted(found, seed=seed), level, said)
