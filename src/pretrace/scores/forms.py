"""Scores that compare a text with another form of itself: in lower case, a share disturbed, words replaced, or read
behind others that are known to be unseen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from pretrace.errors import TextsError
from pretrace.registry import require, require_least, scores
from pretrace.results.wording import say
from pretrace.rewrites import After, Disturbance, Neighbors, disturbances
from pretrace.scores.likelihood import FLOOR, compare_perplexities, mean_of
from pretrace.types import Evidence, FittedScore, Needs, Quantity, Reference, Score, View


@scores.add("lowercase")
@dataclass(frozen=True)
class Lowercase:
    """Minus the ratio of the log-perplexities of the text and of its lower-cased form (Carlini et al. 2021).

    lowercase(x) = −(mean logp(x) / mean logp(lower(x)))

    A text without a letter that has two cases, as in Chinese, is skipped, and a corpus in which lower-casing
    changes next to nothing is refused: the score would be −1 whatever the model had read.

    >>> from pretrace.testing import make_evidence
    >>> Lowercase()(make_evidence("Abc", logp=[-1.0, -2.0, -6.0], lower=[-4.0, -4.0, -4.0]))
    -0.75
    """

    needs = Needs(Quantity.LOGP, View(), View(rewrite="lower"))

    def __call__(self, evidence: Evidence, /) -> float:
        lower = mean_of(evidence.trace("lower").logp)
        return -(mean_of(evidence.plain.logp) / min(lower, -FLOOR))


@scores.add("perturbed")
@dataclass(frozen=True)
class Perturbed:
    """Minus the ratio of the log-perplexities of the text and of its disturbed form (Maini et al. 2024).

    perturbed(x) = −(mean logp(x) / mean logp(disturbed x))

    With perplexity=True it is minus the ratio of perplexities, as in the releases of dataset inference. With
    difference=True it is mean logp(x) − mean logp(disturbed x), with both minus the difference of perplexities.

    `kind` changes a `share` of the text: "typos" replaces a letter by a neighbouring key, "deletion" drops words,
    "case" swaps upper and lower case, "whitespace" removes spaces and adds others inside words, "underscore" writes
    underscores around words instead of spaces. The places are drawn from the text and the seed. A text with nothing to
    change gives −1: Chinese under "typos" and "case", and under "deletion" if it has no spaces.

    >>> from pretrace.testing import make_evidence
    >>> Perturbed()(make_evidence(logp=[-1.0, -2.0, -6.0], typos=[-4.0, -4.0, -4.0]))
    -0.75
    """

    kind: str = "typos"
    share: float = 0.1
    seed: int = 0
    perplexity: bool = False
    difference: bool = False

    def __post_init__(self) -> None:
        known = " or ".join(map(repr, disturbances))
        require(self.kind in disturbances, f"perturbed: kind must be {known}, found {self.kind!r}.")
        _ = self._rewrite  # which looks at the other values

    @property
    def _rewrite(self) -> Disturbance:
        made: Disturbance = disturbances.factory(self.kind)(float(self.share), self.seed)
        return made

    @property
    def needs(self) -> Needs:
        return Needs(Quantity.LOGP, View(), View(rewrite=self._rewrite.name))

    def __call__(self, evidence: Evidence, /) -> float:
        own = mean_of(evidence.plain.logp)
        disturbed = mean_of(evidence.trace(self._rewrite.name).logp)
        if self.perplexity:
            return -compare_perplexities(own, disturbed, difference=self.difference)
        if self.difference:
            return own - disturbed
        # both are kept away from 0, so that an unchanged text gives -1 however sure the model is of it
        return -(min(own, -FLOOR) / min(disturbed, -FLOOR))


@scores.add("neighbor")
@dataclass(frozen=True)
class Neighbor:
    """Mean log-probability of the text above that of its neighbours (Mattern et al. 2023).

    neighbor(x) = mean logp(x) − 1/m Σ_j mean logp(x_j), each mean over the tokens of its own text. In the neighbour x_j
    a share of the tokens, at random positions, is replaced by words that another model (`--neighbors`) finds likely
    there: drawn from its 50 likeliest words, never the word itself. A causal model sees the text before the place, a
    masked model the text around all places of the draw. Neighbours with nothing to predict are left out; if none is
    left, or every neighbour equals the text, the score is 0.

    >>> from pretrace.testing import make_evidence, make_trace
    >>> near = {View(rewrite="neighbors(m=2, share=0.15, seed=0)"): (make_trace([-4.0]), make_trace([-5.0, -7.0]))}
    >>> text = make_evidence(logp=[-1.0, -2.0, -6.0])
    >>> Neighbor(m=2)(Evidence(text.text, {**text.views, **near}))
    2.0
    """

    m: int = 25
    share: float = 0.15
    seed: int = 0

    def __post_init__(self) -> None:
        _ = self._rewrite  # which looks at the values

    @property
    def _rewrite(self) -> Neighbors:
        return Neighbors(self.m, float(self.share), self.seed)

    @property
    def needs(self) -> Needs:
        return Needs(Quantity.LOGP, View(), View(rewrite=self._rewrite.name))

    def __call__(self, evidence: Evidence, /) -> float:
        traces = evidence.views[View(evidence.model, self._rewrite.name)]
        near = [mean_of(trace.logp) for trace in traces if len(trace)]
        return mean_of(evidence.plain.logp) - sum(near) / len(near) if near else 0.0


@scores.add("recall")
@dataclass(frozen=True)
class Recall:
    """How much less likely a text is behind known non-members than alone (ReCaLL, Xie et al. 2024).

    recall(x) = mean logp(x | P) / mean logp(x), where P are `shots` known non-members, one a document, drawn at random
    and joined by blanks. P is drawn from reference texts (`--reference`), which are never scored; published code draws
    it from the texts that it scores. P and a text must fit into what the model reads at once.

    >>> from pretrace.testing import make_evidence, make_trace
    >>> text, before = make_evidence(logp=[-1.0, -2.0]), After("Other words.")
    >>> view = {View(rewrite=before.name): (make_trace([-2.0, -1.0, -3.0]),)}
    >>> round(score_behind(_ratio, before)(Evidence(text.text, {**text.views, **view})), 4)  # −2 / −1.5
    1.3333
    """

    shots: int = 7
    needs = Needs(Quantity.LOGP, View(), View(rewrite=After().name))  # a pass, before the prefix is known
    reference = Needs(Quantity.NONE, View())  # no model reads the texts of the prefix by themselves
    called = "recall"

    def __post_init__(self) -> None:
        require_least(self.called, self, shots=1)

    def draw(self, reference: Reference, member: bool) -> tuple[After, list[str]]:
        """The prefix and the ids of its texts, all of them members or not; TextsError where there are too few."""
        kind = "members" if member else "non-members"
        known = [one.text for one in reference.evidence if one.text.member is member]
        order = np.random.default_rng([reference.seed, int(member)]).permutation(len(known))
        drawn = list({known[i].document: known[i] for i in order}.values())[: self.shots]
        if len(drawn) < self.shots:
            numbers = {"shots": self.shots, "found": len(drawn), "fewer": max(1, len(drawn))}
            raise TextsError(say("scores.few_shots", score=self.called, kind=kind, **numbers))
        return After(" ".join(text.text for text in drawn)), [text.id for text in drawn]

    def fit(self, reference: Reference, /) -> Score:
        """The score with its prefix; TextsError where there are too few non-members."""
        before, ids = self.draw(reference, False)
        return score_behind(_ratio, before, nonmembers=ids)


def _ratio(alone: float, behind: float) -> float:
    return behind / min(alone, -FLOOR)


def score_behind(value: Callable[..., float], *prefixes: After, **ids: list[str]) -> Score:
    """A score with its prefixes: the `value` of a text's mean log-probability alone and behind each. `ids` are of the
    texts that they are made of, members or not."""
    names = [one.name for one in prefixes]
    needs = Needs(Quantity.LOGP, View(), *(View(rewrite=name) for name in names))
    return FittedScore(needs, partial(_value_behind, value, names), {"prefix": ids})


def _value_behind(value: Callable[..., float], names: Sequence[str], evidence: Evidence) -> float:
    means = (mean_of(evidence.trace(name).logp) for name in names)
    return value(mean_of(evidence.plain.logp), *means)
