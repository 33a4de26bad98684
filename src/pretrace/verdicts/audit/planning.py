"""The plan of an audit, made in seconds: nothing is trained, and no text goes through a model. Which comparison it
makes is decided by a rule that uses the texts alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from pretrace.baselines.blind import LENGTH, gap
from pretrace.errors import TextsError
from pretrace.scoring.outlook import device_of, guessed_seconds, parameters_of
from pretrace.statistics.documents import FEW_DOCUMENTS
from pretrace.types import AuditPlan, Backend, Check, Design, Gap, Lean, Placebo
from pretrace.verdicts.audit.settings import AuditSettings
from pretrace.verdicts.audit.snippets import Samples, SnippetCut
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


def choose(  # noqa: PLR0913 (numbers of what there is)
    gaps: Sequence[Gap],
    *,
    documents: int,
    controls: int,
    placebos: int,
    generator: bool,
    power: bool,
    judged: int,
) -> AuditPlan:
    """Choose the design by the texts alone, before any model reads them, from the numbers of what there is; `gaps` are
    those between suspect texts and control documents, empty without, and `judged` documents are left where a generator
    learns from a part of the snippets. Where there is no design the plan says why, and what would help."""

    def plan(design: Design | None, why: str, cures: Sequence[str]) -> AuditPlan:
        accuses = design in ("controls", "differences")
        possible = ("consistent",) * accuses, ("nothing",) * (power and design is not None)
        outcomes: Any = (*possible[0], *possible[1], "inconclusive")
        return AuditPlan(design, why, outcomes, documents, 0, controls, cures=tuple(cures))

    def refuse(kind: str, closer: str = "") -> AuditPlan:
        numbers = {"documents": documents, "judged": judged, "fewest": FEW_DOCUMENTS}
        said = fill(sentences_of(f"designs.{kind}"), closer=closer, **numbers)
        return plan(None, said["why"], said["cures"])

    def write(design: Design, cures: Sequence[str], **seen: str) -> AuditPlan:
        """The design, where a generator leaves enough documents to judge."""
        few = judged < FEW_DOCUMENTS
        return (
            refuse("judged", cures[0]) if few else plan(design, say(f"designs.{design}.why", **seen), cures)
        )

    if documents < FEW_DOCUMENTS:
        return refuse("few")
    if not controls:
        bare = not (placebos and generator)
        return refuse("bare") if bare else write("placebos", [say("cures.controls")])
    widest = widest_gap(gaps, ALIKE)
    if widest is None:
        return refuse("unseen")
    formed = widest.classifier.startswith("form")
    closer = [say(f"cures.{one}") for one in (("form", "closer") if formed else ("closer", "later"))]
    seen = say("designs.seen", name=widest.classifier, auc=widest.auc)
    if not differ(widest, ALIKE):
        cures = [] if placebos else [say("cures.placebo")]
        return plan("controls", say("designs.controls.why", seen=seen), cures)
    if differ(widest_gap(gaps, COMPARABLE) or widest, COMPARABLE):
        return plan(None, say("designs.apart.why", seen=seen), closer)
    if not (placebos and generator):
        needed = say("designs.generator") if placebos else say("cures.placebo")
        return plan(None, say("designs.differ.why", seen=seen), [*closer, needed])
    return write("differences", closer, seen=seen)


def widest_gap(gaps: Sequence[Gap], most: float) -> Gap | None:
    """The gap that decides whether texts differ by more than `most`. That of the length never does, and those of whole
    documents only whether texts may be compared directly: the limit of differences is one of single snippets."""
    learnt = [
        gap for gap in gaps if gap.classifier != LENGTH and (most == ALIKE or WHOLE not in gap.classifier)
    ]
    return max(learnt, key=lambda gap: (differ(gap, most), gap.auc.value), default=None)


def differ(gap: Gap, most: float) -> bool:
    """Whether a classifier of texts tells two sets apart by more than `most`, and not by chance alone."""
    return gap.auc.value > most and gap.auc.low > 0.5


def slowness(backend: Backend) -> float:
    """How many times longer than guessed this machine takes to read; 1 for weights that are elsewhere."""
    from pretrace.backends.huggingface import HuggingFace

    if not isinstance(backend, HuggingFace):
        return 1.0
    guessed = guessed_seconds(
        "reading", parameters=parameters_of(backend), tokens=1, device=device_of(backend)
    )
    return backend.seconds_a_token() / guessed
