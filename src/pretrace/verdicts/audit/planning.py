"""The plan of an audit, made in seconds: nothing is trained, and no text goes through a model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Literal

import numpy as np

from pretrace.baselines.blind import gap
from pretrace.errors import TextsError
from pretrace.scoring.outlook import Action, Stage, device_of, guessed_seconds, parameters_of
from pretrace.scoring.plan import ScorePlan, weights_of
from pretrace.tuning.plan import methods
from pretrace.types import Backend, Check, Design, Gap, Lean, Placebo
from pretrace.verdicts.audit.data import SampleLogprobs, expressions
from pretrace.verdicts.audit.designs import WHOLE
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
from pretrace.verdicts.wording import say, word_check

_SAME_ORIGIN = 0.2
"""The likeness of weights above which two models have a common past: trained apart they are at 0.00."""


@cache
def leans() -> tuple[Lean, ...]:
    """The measured leans, one a domain and exposure, in the unit of the audit's values."""
    text = files("pretrace.verdicts.audit").joinpath("leans.json").read_text(encoding="utf-8")
    return tuple(Lean(**row) for row in json.loads(text)["leans"])


def margin(found: tuple[Lean, ...]) -> float:
    """The largest of the leans, 0 without any."""
    return max((lean.value for lean in found), default=0.0)


def graded(target: Backend, placebo: Backend) -> Placebo:
    """The placebo with its grade, found from weights and tokens; no text is read."""
    from pretrace.backends.huggingface import likeness

    alike = likeness(target, placebo)
    grade = _grade(target, placebo, alike)
    facts = {
        "likeness": alike,
        **{key: placebo.facts.get(key) for key in ("family", "parameters", "revision", "weights")},
    }
    return Placebo(placebo.name, grade, None, say(f"audit.grade.{grade}"), facts)


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
    if design == "controls" and not family:
        return word_check("audit.placebo", None, words="alone")
    if not family:
        return word_check("audit.placebo", False, words="none")
    figures = {one.name: {"grade": one.grade, "closeness": one.closeness, **one.facts} for one in placebos}
    return word_check("audit.placebo", True, figures, said=" ".join(map(_sentence, family)))


def _sentence(placebo: Placebo) -> str:
    words, close = f"{placebo.name} is {placebo.words}.", placebo.closeness
    return words if close is None else f"{words} {say('audit.grade.close', closeness=close)}"


def _grade(target: Backend, placebo: Backend, alike: float | None) -> Literal["own", "sibling", "other"]:
    if placebo.tokenizer_hash != target.tokenizer_hash:
        return "other"
    if alike is not None and alike >= _SAME_ORIGIN:
        return "own"
    if "server" in placebo.facts or "server" in target.facts:
        return "sibling"  # the family is not known there; the same tokens speak for it
    return "sibling" if placebo.facts.get("family") == target.facts.get("family") else "other"


A_DOCUMENT = 0.005
"""Seconds of all tests and checks for a document on either side."""


def taking_part(
    design: Design | None, placebos: Sequence[Backend], grades: Sequence[Placebo]
) -> tuple[Backend, ...]:
    """The placebos whose tests decide. Beside control documents the closest one, of the target's own family: any is
    valid there, and another family only adds noise. Otherwise all of the family, whose largest p counts."""
    ranked = sorted(zip(grades, placebos, strict=True), key=lambda pair: pair[0].grade != "own")
    family = tuple(placebo for grade, placebo in ranked if grade.grade != "other")
    if design == "controls":
        return family[:1]
    return family


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
        guess = guessed_seconds(
            action, parameters=parameters_of(model), tokens=number, device=device_of(model)
        )
        return Stage(name, slow * guess)

    if design != "controls" and generator is not None:
        number = sum(judged(one, settings, design) for one in cuts)
        learnt = sum(len(one.snippets) for one in cuts) - number
        learnt = min(learnt, settings.snippets.learnt or learnt)
        if settings.method != NO_TUNING:
            learnt *= int(getattr(methods.make(settings.method), "epochs", 1)) * tokens
            yield stage(TRAINING, "training", generator, learnt)
        yield stage(WRITING, "writing", generator, number * tokens)
        first = tunable(placebos) if settings.method != NO_TUNING else None
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
    planted = sum(len(one.text) for one in cuts[0].snippets) // 4
    for exposure in settings.power:
        yield stage(PLANTING, "training", target, int(exposure.share * exposure.epochs * planted))
        again = SCORING if alone else reading(target, target)
        yield stage(again, "reading", target, int(_share_read(design, cuts, exposure.share) * passes))


def _share_read(design: Design, cuts: Sequence[SnippetCut], planted: float) -> float:
    """The share of all passes that a copy makes in which so many documents were planted."""
    if design != "controls":
        return planted
    suspect, controls = (len(one.snippets) for one in cuts)
    return (planted * suspect + controls) / max(1, suspect + controls)


def slowness(backend: Backend) -> float:
    """How many times longer than guessed this machine takes to read; 1 for weights that are elsewhere."""
    from pretrace.backends.huggingface import HuggingFace

    if not isinstance(backend, HuggingFace):
        return 1.0
    guessed = guessed_seconds(
        "reading", parameters=parameters_of(backend), tokens=1, device=device_of(backend)
    )
    return backend.seconds_a_token() / guessed
