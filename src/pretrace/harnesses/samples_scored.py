"""Scores of a harness's samples, one at a time, and the test of all of them against known non-members."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from pretrace.backends import open_model
from pretrace.corpora import open_corpus
from pretrace.errors import ExpressionError, TextsError
from pretrace.frequencies import Frequencies
from pretrace.scoring.detect import detect
from pretrace.scoring.plan import Models, ScorePlan
from pretrace.types import Control, Corpus, Evidence, Quantity, Run, Text, Trace, Verdict, View
from pretrace.verdicts.flag import FlagSettings, flag_scored, plan

_BESIDE = {
    "labelled": "is fitted on texts whose labels are known",
    "reference": "compares the model with a second one",
    "tuned": "compares the model with a tuned copy of it",
    "neighbors": "needs a model that proposes other words",
}
_ASKING = threading.Lock()
"""A model in this process reads one text at a time."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How samples are scored: one score by expression, the model as `open_model` takes it ("" where log-probabilities
    are given), token counts for dc_pdd, and a file of known non-members ("" where they are among the samples)."""

    score: str
    model: str = ""
    counts: str = ""
    nonmembers: str = ""
    placebo: str = ""

    @property
    def plan(self) -> ScorePlan:
        """The score, parsed; ExpressionError where log-probabilities of the model are not all that it needs."""
        return logprob_plan(self.score, counts=bool(self.counts))

    def value(self, text: str) -> float:
        """The score of a text by the model; TextsError where it has none."""
        return self._one(self.model, text)

    def placebo_value(self, text: str) -> float:
        """The same by the placebo."""
        return self._one(self.placebo, text)

    def known(self, model: str) -> dict[str, float]:
        """The scores of the known non-members in the file, by id."""
        with _ASKING:
            run = detect(_corpus(self.nonmembers), _models(model, self.counts), self.plan)
        return dict(zip(run.ids, run.matrix[:, 0].tolist(), strict=True))

    def _one(self, model: str, text: str) -> float:
        with _ASKING:
            run = detect(Corpus("sample", (Text("sample", text),)), _models(model, self.counts), self.plan)
        return float(run.matrix[0, 0])


@dataclass(frozen=True, slots=True)
class Scored:
    """A sample with its score, and with that of the placebo (NaN where there is none); `known` says that the model
    cannot have seen it."""

    id: str
    text: str
    value: float
    group: str = ""
    known: bool = False
    placebo: float = math.nan


def logprob_plan(expression: str, *, counts: bool) -> ScorePlan:
    """The plan of one score that log-probabilities are enough for; ExpressionError, by name, for any other.

    TableError for dc_pdd without `counts`.
    """
    plan = ScorePlan.parse(expression)
    names = list(plan.scores)
    if len(names) != 1:
        raise ExpressionError(f"a scorer has one score, found {', '.join(names)}: use a scorer for each.")
    missing = [said for name, said in _BESIDE.items() if name in plan.uses]
    if any(quantity & ~Quantity.LOGP for quantity in plan.needs.views.values()):
        missing.insert(0, "needs more than the log-probability of each token")
    if missing:
        raise ExpressionError(
            f"{names[0]} {missing[0]}, and a scorer in a harness has the log-probabilities of one model alone: use "
            "loss, ppl, zlib, min_k, max_k, lowercase, perturbed or dc_pdd here, or `pretrace score` on the texts."
        )
    plan.require(["counts"] if counts else [])
    return plan


def check_given(plan: ScorePlan) -> None:
    """ExpressionError for a score that cannot be had from log-probabilities which a provider gave back."""
    (name,) = plan.scores
    if "counts" in plan.uses or set(plan.needs.views) != {View()}:
        raise ExpressionError(
            f"{name} needs token ids or another form of the text, which the log-probabilities in the output do not "
            "give: name the model for pretrace to open (-S model=…)."
        )


def value_of(plan: ScorePlan, text: str, trace: Trace) -> float:
    """The score of a text from log-probabilities that are there; ExpressionError as for `check_given`."""
    check_given(plan)
    (score,) = plan.scores.values()
    return float(score(Evidence(Text("sample", text), {View(): (trace,)})))  # type: ignore[operator]


def against_known(samples: Sequence[Scored], reading: Reading, *, level: float, fdr: float) -> Verdict:
    """The test of the samples that are not `known` against those that are and those of the file, as `flag` makes it.

    TextsError where there are too few known ones, or where both sides share texts.
    """
    asked = tuple(one for one in samples if not one.known)
    others = [one for one in samples if one.known]
    if reading.nonmembers:
        others += _from_file(reading)
    if not others:
        raise TextsError(
            "there are no known non-members to compare with: name a file of them (-S nonmembers=FILE), or mark samples "
            "with metadata {'nonmember': True}."
        )
    corpus, known = _side("the samples", asked), _side("the known non-members", others)
    settings = FlagSettings(score=reading.score, level=level, fdr=fdr, cache=False)
    made = plan(corpus, known, settings)
    rows = (*asked, *others)
    placebo = np.array([one.placebo for one in rows])
    (name,) = settings.plan.scores
    run = Run(
        corpus=made.corpus.name,
        ids=tuple(text.id for text in made.corpus.texts),
        groups=tuple(text.document for text in made.corpus.texts),
        members=tuple(text.member for text in made.corpus.texts),
        tokens=np.zeros(len(rows), dtype=np.int32),
        cut=np.zeros(len(rows), dtype=np.int32),
        scores=(name,),
        matrix=np.array([[one.value] for one in rows], dtype=np.float64),
        controls=(Control(name, "placebo", placebo[:, None]),) if reading.placebo else (),
    )
    return flag_scored(run, made, settings, corpus=corpus, known=known, model=reading.model)


def _side(name: str, samples: Sequence[Scored]) -> Corpus:
    return Corpus(name, tuple(Text(one.id, one.text, group=one.group) for one in samples))


def _from_file(reading: Reading) -> list[Scored]:
    values = reading.known(reading.model)
    placebo = reading.known(reading.placebo) if reading.placebo else {}
    return [
        Scored(
            f"{reading.nonmembers}: {one.id}",
            one.text,
            values[one.id],
            one.group,
            True,
            placebo.get(one.id, math.nan),
        )
        for one in _corpus(reading.nonmembers).texts
        if one.id in values
    ]


@cache
def _models(model: str, counts: str) -> Models:
    return Models(open_model(model), counts=Frequencies.load(Path(counts)) if counts else None)


@cache
def _corpus(path: str) -> Corpus:
    return open_corpus(path)
