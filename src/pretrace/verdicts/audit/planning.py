"""The plan of an audit, made in seconds: nothing is trained, and no text goes through a model. Which comparison it
makes is decided by a rule that uses the texts alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from pretrace.baselines.blind import LENGTH, gap
from pretrace.errors import TextsError
from pretrace.scoring.outlook import Action, Stage, device_of, guessed_seconds, parameters_of
from pretrace.scoring.plan import ScorePlan, weights_of
from pretrace.statistics.documents import FEW_DOCUMENTS
from pretrace.tuning.plan import methods
from pretrace.types import AuditPlan, Backend, Check, Design, Gap, Lean, Placebo
from pretrace.verdicts.audit.data import SampleLogprobs, expressions
from pretrace.verdicts.audit.settings import PRETRACE, RELEASE, AuditSettings
from pretrace.verdicts.audit.snippets import (
    NO_TUNING,
    SCORING,
    TRAINING,
    TUNING,
    WRITING,
    Samples,
    SnippetCut,
    reading,
)
from pretrace.verdicts.planting import PLANTING
from pretrace.verdicts.wording import fill, say, sentences_of, word_check

_SAME_ORIGIN = 0.2
"""The likeness of weights above which two models have a common past: trained apart they are at 0.00."""


@cache
def leans() -> tuple[Lean, ...]:
    """The measured leans, one a domain and exposure, in the unit of the audit's values."""
    text = files("pretrace.verdicts.audit").joinpath("leans.json").read_text(encoding="utf-8")
    return tuple(Lean(**row) for row in json.loads(text)["leans"])


def graded(target: Backend, placebo: Backend) -> Placebo:
    """The placebo with its grade, found from weights and tokens; no text is read."""
    from pretrace.backends.huggingface import likeness

    alike, grade = likeness(target, placebo), "sibling"
    if placebo.tokenizer_hash != target.tokenizer_hash:
        grade = "other"
    elif alike is not None and alike >= _SAME_ORIGIN:
        grade = "own"
    elif "server" not in placebo.facts and "server" not in target.facts:
        # the family is not known there; the same tokens speak for it
        grade = "sibling" if placebo.facts.get("family") == target.facts.get("family") else "other"
    kept = {key: placebo.facts.get(key) for key in ("family", "parameters", "revision", "weights")}
    words = say(f"audit.grade.{grade}")
    return Placebo(placebo.name, grade, None, words, {"likeness": alike, **kept})  # type: ignore[arg-type]


def closeness(target: SampleLogprobs, placebo: SampleLogprobs, *, by_byte: bool) -> float:
    """The correlation of both models' mean log-probabilities on text that neither was trained on."""
    one, other = (
        found.heldout.per_byte if by_byte else found.heldout.per_token for found in (target, placebo)
    )
    if len(one) < 2 or not one.std() or not other.std():
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def placebo_check(placebos: Sequence[Placebo], design: Design) -> Check:
    """Check that what the target is compared with is enough for a verdict of this design."""
    family = [one for one in placebos if one.grade != "other"]
    if not family:
        alone = design == "controls"
        return word_check("audit.placebo", None if alone else False, words="alone" if alone else "none")
    figures = {one.name: {"grade": one.grade, "closeness": one.closeness, **one.facts} for one in placebos}
    said = []
    for one in family:
        said.append(f"{one.name} is {one.words}.")
        if one.closeness is not None:
            said.append(say("audit.grade.close", closeness=one.closeness))
    return word_check("audit.placebo", True, figures, said=" ".join(said))


A_DOCUMENT = 0.005
"""Seconds of all tests and checks for a document on either side."""


def taking_part(
    design: Design | None, placebos: Sequence[Backend], grades: Sequence[Placebo]
) -> tuple[Backend, ...]:
    """The placebos whose tests decide. Beside control documents the closest one, of the target's own family: any is
    valid there, and another family only adds noise. Otherwise all of the family, whose largest p counts."""
    ranked = sorted(zip(grades, placebos, strict=True), key=lambda pair: pair[0].grade != "own")
    family = tuple(placebo for grade, placebo in ranked if grade.grade != "other")
    return family[:1] if design == "controls" else family


def tunable(placebos: Sequence[Backend]) -> Backend | None:
    """The first placebo that has weights here."""
    from pretrace.backends.huggingface import HuggingFace

    return next((one for one in placebos if isinstance(one, HuggingFace)), None)


def gaps_between(cuts: Sequence[SnippetCut], settings: AuditSettings, seed: int) -> tuple[Gap, ...]:
    """How well classifiers of texts tell suspect snippets from control ones, and whole documents from whole ones:
    what stands in one snippet of a document says little of its others. Nothing where they are too few."""
    samples = Samples.of_snippets(cuts[0].snippets, cuts[1].snippets)
    sides, whole = samples.corpora(), samples.corpora(whole=True)
    try:
        found = gap(*sides, settings.learners, seed=seed)
        if [len(side.texts) for side in whole] == [len(side.texts) for side in sides]:
            return found
        *more, _ = gap(*whole, settings.learners, seed=seed)
    except TextsError:
        return ()
    return (*found[:-1], *(replace(one, classifier=f"{one.classifier}, {WHOLE}") for one in more), found[-1])


ALIKE = 0.60
"""The text-only AUC up to which suspect texts and control documents may be compared directly."""
COMPARABLE = 0.80
"""The text-only AUC up to which they may be compared by differences; above it they are not compared."""
WHOLE = "whole documents"
"""What a classifier judged that saw the snippets of a document as one text."""


@dataclass(frozen=True, slots=True)
class AuditMaterial:
    """Numbers of what there is; `judged` documents are left where a generator learns from a part of the snippets."""

    documents: int
    controls: int
    placebos: int
    generator: bool
    power: bool
    judged: int

    def plan(self, design: Design | None, why: str, cures: Sequence[str]) -> AuditPlan:
        """The plan of this design, without one that of a refusal."""
        accuses = design in ("controls", "differences")
        possible = ("consistent",) * accuses, ("nothing",) * (self.power and design is not None)
        outcomes: Any = (*possible[0], *possible[1], "inconclusive")
        return AuditPlan(design, why, outcomes, self.documents, 0, self.controls, cures=tuple(cures))

    def refuse(self, kind: str, closer: str = "") -> AuditPlan:
        """No design, for a reason of `designs`."""
        numbers = {"documents": self.documents, "judged": self.judged, "fewest": FEW_DOCUMENTS}
        said = fill(sentences_of(f"designs.{kind}"), closer=closer, **numbers)
        return self.plan(None, said["why"], said["cures"])


def choose(given: AuditMaterial, gaps: Sequence[Gap]) -> AuditPlan:
    """Choose the design by the texts alone, before any model reads them; `gaps` are those between suspect texts and
    control documents, empty without. Where there is no design the plan says why, and what would help."""
    if given.documents < FEW_DOCUMENTS:
        return given.refuse("few")
    if given.controls:
        return _with_controls(given, gaps)
    if not (given.placebos and given.generator):
        return given.refuse("bare")
    if given.judged < FEW_DOCUMENTS:
        return given.refuse("judged", say("cures.controls"))
    return given.plan("placebos", say("designs.placebos.why"), [say("cures.controls")])


def _with_controls(given: AuditMaterial, gaps: Sequence[Gap]) -> AuditPlan:
    widest = widest_gap(gaps, (ALIKE,))
    if widest is None:
        return given.refuse("unseen")
    formed = widest.classifier.startswith("form")
    closer = [say(f"cures.{one}") for one in (("form", "closer") if formed else ("closer", "later"))]
    seen = say("designs.seen", name=widest.classifier, auc=widest.auc)
    if not differ(widest, ALIKE):
        cures = [] if given.placebos else [say("cures.placebo")]
        return given.plan("controls", say("designs.controls.why", seen=seen), cures)
    if differ(widest_gap(gaps, (COMPARABLE,)) or widest, COMPARABLE):
        return given.plan(None, say("designs.apart.why", seen=seen), closer)
    if not (given.placebos and given.generator):
        needed = say("designs.generator") if given.placebos else say("cures.placebo")
        return given.plan(None, say("designs.differ.why", seen=seen), [*closer, needed])
    if given.judged < FEW_DOCUMENTS:
        return given.refuse("judged", closer[0])
    return given.plan("differences", say("designs.differences.why", seen=seen), closer)


def widest_gap(gaps: Sequence[Gap], limits: Sequence[float]) -> Gap | None:
    """The gap that decides: the widest of those beyond the most limits. That of the length never decides, and those of
    whole documents only whether texts may be compared directly: the limit of differences is one of single snippets."""
    learnt = [gap for gap in gaps if gap.classifier != LENGTH]
    if ALIKE not in limits:
        learnt = [gap for gap in learnt if WHOLE not in gap.classifier]
    return max(
        learnt, key=lambda gap: (sum(differ(gap, most) for most in limits), gap.auc.value), default=None
    )


def differ(gap: Gap, most: float) -> bool:
    """Whether a classifier of texts tells two sets apart by more than `most`, and not by chance alone."""
    return gap.auc.value > most and gap.auc.low > 0.5


def judged(cut: SnippetCut, settings: AuditSettings, design: Design | None) -> int:
    share = 1.0 if design == "controls" else settings.snippets.share
    return min(settings.snippets.pairs, max(1, int(share * len(cut.snippets))))


def count_passes(design: Design | None, cuts: Sequence[SnippetCut], settings: AuditSettings) -> int:
    if design is None:
        return 0
    both = sum(judged(one, settings, design) for one in cuts)
    return both if design == "controls" else 2 * both


def stages_of(
    design: Design,
    cuts: Sequence[SnippetCut],
    models: Sequence[Backend],
    generator: Backend | None,
    settings: AuditSettings,
    *,
    alone: bool,
) -> Iterator[Stage]:
    """The stages in their order, each with its seconds; `alone` where the target is scored by itself."""
    target, *placebos = models
    slow, tokens = slowness(target), settings.snippets.tokens

    def stage(name: str, action: Action, model: Backend, number: int) -> Stage:
        size, device = parameters_of(model), device_of(model)
        return Stage(name, slow * guessed_seconds(action, parameters=size, tokens=number, device=device))

    tuned = settings.method != NO_TUNING
    if design != "controls" and generator is not None:
        number = sum(judged(one, settings, design) for one in cuts)
        learnt = sum(len(one.snippets) for one in cuts) - number
        learnt = min(learnt, settings.snippets.learnt or learnt)
        if tuned:
            learnt *= int(getattr(methods.make(settings.method), "epochs", 1)) * tokens
            yield stage(TRAINING, "training", generator, learnt)
        yield stage(WRITING, "writing", generator, number * tokens)
        first = tunable(placebos) if tuned else None
        if first is not None and weights_of(generator) != weights_of(first):
            yield stage(TUNING, "training", first, learnt)
    passes = count_passes(design, cuts, settings) * tokens
    procedures = {settings.procedure, *settings.also}
    if alone:
        yield stage(SCORING, "reading", target, passes)
    for model in placebos if alone else models:
        yield stage(reading(target, model), "reading", model, passes)
    for release in (False, True):
        if procedures & ({RELEASE} if release else procedures - {PRETRACE, RELEASE}):
            forms = ScorePlan.parse(expressions(False, release)).passes
            yield stage(SCORING, "reading", target, forms * passes)
    suspect, controls = len(cuts[0].snippets), len(cuts[-1].snippets) if design == "controls" else 0
    planted = sum(len(one.text) for one in cuts[0].snippets) // 4
    for exposure in settings.power:
        yield stage(PLANTING, "training", target, int(exposure.share * exposure.epochs * planted))
        again = SCORING if alone else reading(target, target)
        # of all passes, those of a copy in which so many documents were planted
        share = (exposure.share * suspect + controls) / max(1, suspect + controls)
        yield stage(again, "reading", target, int(share * passes))


def slowness(backend: Backend) -> float:
    """How many times longer than guessed this machine takes to read; 1 for weights that are elsewhere."""
    from pretrace.backends.huggingface import HuggingFace

    if not isinstance(backend, HuggingFace):
        return 1.0
    guessed = guessed_seconds(
        "reading", parameters=parameters_of(backend), tokens=1, device=device_of(backend)
    )
    return backend.seconds_a_token() / guessed
